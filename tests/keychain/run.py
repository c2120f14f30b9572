#!/usr/bin/env python3
"""Keys in a real keychain: GNOME's, on a separate bus, apart from any real one.

    python3 tests/keychain/run.py --nook target/debug/nook

Checks that a key lies in the keychain and in no file, is sent to its server, and is removed with its endpoint. The hub's
token is stored the same way. Without a keychain an encrypted file is used, and the program says so.
"""

import argparse
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

KEY = "sk-canary-of-the-keychain"


class Server(http.server.BaseHTTPRequestHandler):
    """Another server that wants the key."""

    def do_GET(self):
        is_known = self.headers.get("Authorization") == f"Bearer {KEY}"
        body = json.dumps({"data": [{"id": "m", "owned_by": "vllm"}]} if is_known else {"error": {"message": "no"}})
        self.send_response(200 if is_known else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


def holds(folder, text):
    for here, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(here, name), "rb") as file:
                if text.encode() in file.read():
                    return os.path.join(here, name)
    return None


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got!r} instead of {wanted!r}")
    print(f"{what}: {got!r}")


class Nook:
    def __init__(self, program, home, bus):
        self.program, self.home = program, home
        self.data = os.path.join(home, "data")
        kept = {"PATH": os.environ["PATH"], "HOME": home}
        self.env = dict(kept, DBUS_SESSION_BUS_ADDRESS=os.environ["DBUS_SESSION_BUS_ADDRESS"]) if bus else kept

    def __call__(self, *args, key=""):
        command = [self.program, "--data-dir", self.data, "--json", *args]
        ran = subprocess.run(command, env=self.env, input=key, capture_output=True, text=True, timeout=120)
        if ran.returncode != 0:
            return json.loads(ran.stderr.strip().splitlines()[-1])["error"]
        return json.loads(ran.stdout.strip().splitlines()[-1])


def within(program, home):
    """Under the bus, with the keychain unlocked."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"

    nook = Nook(program, home, bus=True)
    added = nook("endpoints", "add", "lab", url, "--key-stdin", key=KEY)
    expect("a key that is given", added.get("key"), {"type": "keychain"})
    expect("its server", added["health"]["state"], "up")
    expect("in the keychain", found(), [f"secret = {KEY}"])
    expect("in a file", holds(nook.data, KEY), None)
    expect("a sealed file", os.path.exists(os.path.join(nook.data, "keys", "endpoints.sealed")), False)
    expect("another process", nook("endpoints", "test", "lab")["health"]["state"], "up")
    expect("a token", nook("models", "token", "--stdin", key="hf_canary")["place"], "keychain")
    expect("the next time", nook("models", "token")["place"], "keychain")
    expect("forgotten", nook("models", "token", "--rm")["place"], None)

    bare = Nook(program, home, bus=False)
    lost = bare("endpoints", "test", "lab")
    expect("without the bus", lost["code"], "keys.no_keychain")
    expect("a new key there", bare("endpoints", "update", "lab", "--key-stdin", key=KEY)["key"], {"type": "kept"})
    expect("its server", bare("endpoints", "test", "lab")["health"]["state"], "up")
    expect("in clear", holds(nook.data, KEY), None)

    expect("back", nook("endpoints", "update", "lab", "--key-stdin", key=KEY)["key"], {"type": "keychain"})
    nook("settings", "set", "key_place", "file")
    expect("by setting", nook("endpoints", "update", "lab", "--key-stdin", key=KEY)["key"], {"type": "kept"})
    nook("settings", "set", "key_place", "auto")
    expect("again", nook("endpoints", "update", "lab", "--key-stdin", key=KEY)["key"], {"type": "keychain"})
    nook("endpoints", "rm", "lab")
    expect("after its endpoint went", found(), [])


def found():
    """What the keychain holds of ours, by its own tool."""
    ran = subprocess.run(["secret-tool", "search", "--all", "service", "Inglenook"], capture_output=True, text=True)
    return [line for line in ran.stdout.splitlines() if line.startswith("secret")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nook", required=True)
    parser.add_argument("--within", metavar="HOME", help=argparse.SUPPRESS)
    args = parser.parse_args()
    program = os.path.abspath(args.nook)
    if args.within:
        unlock = ["gnome-keyring-daemon", "--unlock", "--components=secrets", "--foreground"]
        daemon = subprocess.Popen(unlock, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        daemon.stdin.write(b"a password")
        daemon.stdin.close()
        try:
            within(program, args.within)
        finally:
            daemon.terminate()
        return
    home = tempfile.mkdtemp(prefix="inglenook-keychain-")
    try:
        env = dict(os.environ, HOME=home, XDG_DATA_HOME=os.path.join(home, "share"), XDG_RUNTIME_DIR=home)
        inner = [sys.executable, os.path.abspath(__file__), "--nook", program, "--within", home]
        ran = subprocess.run(["dbus-run-session", "--", *inner], env=env, timeout=600)
        sys.exit(ran.returncode)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
