#!/usr/bin/env python3
"""A download through faults and kills: it ends bit-correct, with little fetched twice. The last line is JSON.

    python3 tests/hub/chaos.py --nook target/debug/nook --bytes 24M --faults 36 --kills 4
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import padded  # noqa: E402
import sign  # noqa: E402

STARTER = os.path.join(HERE, "../../models/starter/starter.gguf")
REPOSITORY, NAME = "acme/chaos-GGUF", "chaos-Q8_0.gguf"
LIMIT_S = 1800
# As docs/BENCHMARKS.md promises: of the file, after faults and kills.
MAX_TWICE = 0.05


class Hub:
    def __init__(self, root):
        command = [sys.executable, os.path.join(HERE, "server.py"), "--root", root]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = json.loads(self.process.stdout.readline())["listening"]

    def control(self, **order):
        request = urllib.request.Request(self.url + "/_control", json.dumps(order).encode())
        urllib.request.urlopen(request).read()

    def stats(self):
        return json.load(urllib.request.urlopen(self.url + "/_stats"))

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Nook:
    def __init__(self, program, folder, hub, token="hf_accepted"):
        self.program, self.folder = program, folder
        self.environment = dict(os.environ, HF_ENDPOINT=hub.url, HF_TOKEN=token, INGLENOOK_DATA_DIR=folder)

    def start(self, *args):
        return subprocess.Popen(
            [self.program, *args], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, *args):
        process = self.start(*args)
        out, err = process.communicate(timeout=LIMIT_S)
        return process.returncode, out, err


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def pull_with_kills(nook, hub, size, kills, dice):
    """How many times it was killed, and what the last one said."""
    moments = sorted(dice.randrange(size) for _ in range(kills))
    killed = 0
    while True:
        process = nook.start("models", "pull", f"{REPOSITORY}:{NAME}", "--json")
        while process.poll() is None and moments:
            if sum(hub.stats()["served"].values()) >= moments[0]:
                moments.pop(0)
                process.send_signal(signal.SIGKILL)
                killed += 1
                break
            time.sleep(0.02)
        out, err = process.communicate(timeout=LIMIT_S)
        if process.returncode != -signal.SIGKILL:
            return killed, process.returncode, out, err


def chaos(args, folder):
    dice = random.Random(args.seed)
    root = os.path.join(folder, "hub")
    repository = os.path.join(root, REPOSITORY)
    os.makedirs(repository)
    source = os.path.join(repository, NAME)
    padded.padded(STARTER, source, args.bytes, args.seed)
    key = sign.Key("chaos")
    if not args.unsigned:
        sign.write_manifest(key, repository, REPOSITORY)
    size, expected = os.path.getsize(source), sha256(source)
    hub = Hub(root)
    try:
        nook = Nook(args.nook, os.path.join(folder, "data"), hub)
        for setting, value in [("download_patience", "2"), ("trusted_keys", json.dumps(key.public()))]:
            code, _, err = nook.run("settings", "set", setting, value)
            assert code == 0, err
        kinds = {"kinds": args.kinds.split(",")} if args.kinds else {}
        span = max(min(size // 4, 8 << 20), 1 << 20)
        hub.control(random={"count": args.faults, "seed": args.seed, "span": span, **kinds}, delay_ms=args.delay_ms)
        began = time.monotonic()
        killed, code, out, err = pull_with_kills(nook, hub, size, args.kills, dice)
        took = time.monotonic() - began
        assert code == 0, f"exit code {code}: {err}"
        said = json.loads(out)
        stats = hub.stats()
        served = stats["served"][f"{REPOSITORY}/{NAME}"]
        verified, _, words = nook.run("models", "verify", said["id"])
        left = [name for _, _, names in os.walk(os.path.join(folder, "data", "models")) for name in names]
        return {
            "bytes": size, "correct": sha256(said["path"]) == expected, "verified": verified == 0,
            "trust": said["trust"]["kind"], "faults": sum(stats["faults"].values()), "kinds": stats["faults"],
            "kills": killed, "served": served, "twice": round(served / size - 1, 4), "seconds": round(took, 1),
            "leaked_tokens": stats["leaked_tokens"], "left_behind": [name for name in left if name != NAME],
        }
    finally:
        hub.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nook", default="target/debug/nook")
    parser.add_argument("--bytes", type=lambda text: int(text[:-1]) << {"M": 20, "G": 30}[text[-1]], default=24 << 20)
    parser.add_argument("--faults", type=int, default=36)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--delay-ms", type=int, default=4)
    parser.add_argument("--max-twice", type=float, default=MAX_TWICE, help="share of the file that may be fetched twice")
    parser.add_argument("--kinds", help="only these kinds of faults")
    parser.add_argument("--unsigned", action="store_true", help="nothing tells a chunk that arrives damaged")
    parser.add_argument("--folder", help="where to work; a temporary folder otherwise")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="inglenook-chaos-", dir=args.folder)
    try:
        figures = chaos(args, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(figures))
    fine = figures["correct"] and figures["verified"] and figures["kills"] == args.kills
    fine = fine and not figures["leaked_tokens"] and not figures["left_behind"]
    fine = fine and (args.unsigned or figures["trust"] == "signed")
    fine = fine and figures["twice"] <= args.max_twice
    print("1 passed, 0 failed" if fine else "0 passed, 1 failed")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
