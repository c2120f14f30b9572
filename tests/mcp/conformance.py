"""The official conformance suite against our MCP server and client: `conformance.py --server FILE --client FILE`, built
examples of `mcp-server` and `mcp`. `--install` fetches the suite from npm into the cache. Last line: `N passed, N failed`.

The fixture server has the transports, sessions and limits of `nook mcp`, with the tools that the suite calls. A scenario
that revisions require must pass. The others must pass too, unless EXCEPTIONS names a reason.
"""

import argparse
import asyncio
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

PACKAGES = ["@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@22"]
REVISIONS = ["2025-11-25", "2026-07-28"]
KEY = "conformance-key"

NO_TASKS = "the extension io.modelcontextprotocol/tasks is not offered"
NO_GRANT = "an extension for machines: Inglenook signs users in"

# Beginnings of the names of scenarios that no revision requires and that may fail.
EXCEPTIONS = {
    "tasks-": NO_TASKS,
    "auth/client-credentials-": NO_GRANT,
    "auth/enterprise-managed-authorization": NO_GRANT,
    "auth/wif-jwt-bearer": NO_GRANT,
    "auth/dpop": "the extension for proofs of possession is not offered",
}


def install(cache):
    """Fetches the suite, and the Node that it needs."""
    cache.mkdir(parents=True, exist_ok=True)
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", cache, *PACKAGES], check=True)


class KeyProxy:
    """Adds the server's key to every request, because the suite sends none. A connection has one request."""

    def __init__(self, target):
        self.target = target
        self.loop = asyncio.new_event_loop()
        self.server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0))
        self.port = self.server.sockets[0].getsockname()[1]
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    async def serve(self, reader, writer):
        peer = None
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            there, peer = await asyncio.open_connection("127.0.0.1", self.target)
            lines = [line for line in head[:-4].split(b"\r\n") if not line.lower().startswith(b"connection:")]
            lines += [b"Authorization: Bearer " + KEY.encode(), b"Connection: close", b"", b""]
            peer.write(b"\r\n".join(lines))
            both = [asyncio.ensure_future(self.copy(reader, peer)), asyncio.ensure_future(self.copy(there, writer))]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for one in both:
                one.cancel()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            for one in (writer, peer):
                if one:
                    one.close()

    async def copy(self, reader, writer):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()


def run_suite(cache, arguments):
    """Output of the suite's program, also where scenarios fail."""
    node = cache / "node_modules/node/bin/node"
    program = cache / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    if not program.exists() or not node.exists():
        sys.exit(f"The suite is not in {cache}. Run this with --install.")
    with tempfile.TemporaryDirectory(prefix="inglenook-conformance-") as folder:
        done = subprocess.run([node, program, *arguments], cwd=folder, capture_output=True, text=True, timeout=900)
    return done.stdout + done.stderr


def scenarios(output):
    """Whether each scenario passed, and those that the revision does not require."""
    found = re.findall(r"^([✓✗]) (\S+): (\d+) passed", output, re.M)
    # A scenario that checked nothing has shown nothing.
    passed = {name: mark == "✓" and n != "0" for mark, name, n in found}
    optional = set(re.findall(r"^  [✓✗] (\S+) \(", output, re.M))
    if not passed:
        sys.exit(f"The suite reported nothing:\n{output[-4000:]}")
    return passed, optional


def is_excepted(name):
    return any(name.startswith(start) for start in EXCEPTIONS)


def judge(title, output):
    """Numbers of scenarios that passed and failed, without excepted ones. Prints what failed."""
    passed, optional = scenarios(output)
    required = [name for name in passed if name not in optional]
    print(f"{title}: {sum(passed[name] for name in required)} of {len(required)} required scenarios pass")
    wrong = [name for name in required if not passed[name]]
    for name in sorted(optional):
        if is_excepted(name):
            continue
        print(f"  not required: {name} {'passes' if passed[name] else 'FAILS'}")
        wrong += [] if passed[name] else [name]
    for name in wrong:
        print(f"  FAILS: {name}. The suite explains it with --scenario {name} --verbose.")
    return len(passed) - len(wrong) - len([name for name in optional if is_excepted(name)]), len(wrong)


def check_server(cache, program, revision):
    with tempfile.TemporaryDirectory(prefix="inglenook-conformance-") as folder:
        server = subprocess.Popen([program, KEY, folder], stdout=subprocess.PIPE, text=True)
        try:
            address = json.loads(server.stdout.readline())["listening"]
            proxy = KeyProxy(int(re.search(r":(\d+)/", address)[1]))
            url = f"http://127.0.0.1:{proxy.port}/mcp"
            output = run_suite(cache, ["server", "--url", url, "--requirements", revision, "--timeout", "10000"])
        finally:
            server.terminate()
            server.wait(30)
    return judge(f"server, {revision}", output)


def check_client(cache, program, revision):
    output = run_suite(cache, ["client", "--command", str(program), "--requirements", revision])
    return judge(f"client, {revision}", output)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    home = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    parser.add_argument("--cache", type=pathlib.Path, default=home / "inglenook-conformance")
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--server", type=pathlib.Path)
    parser.add_argument("--client", type=pathlib.Path)
    parser.add_argument("--revision", choices=REVISIONS, action="append")
    args = parser.parse_args()
    if args.install and not shutil.which("npm"):
        sys.exit("npm is missing. Install Node.")
    if args.install:
        install(args.cache)
    totals = [0, 0]
    for revision in args.revision or REVISIONS:
        for program, check in ((args.server, check_server), (args.client, check_client)):
            if program:
                numbers = check(args.cache.resolve(), program.resolve(), revision)
                totals = [a + b for a, b in zip(totals, numbers)]
    for name, reason in EXCEPTIONS.items():
        print(f"excepted: {name}*: {reason}")
    print(f"{totals[0]} passed, {totals[1]} failed")
    sys.exit(1 if totals[1] or not totals[0] else 0)


if __name__ == "__main__":
    main()
