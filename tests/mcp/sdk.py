"""Our client against a server by the official Python SDK, over stdio and over HTTP: `sdk.py --nook FILE`, run by a Python
that has the package `mcp`. A model played here calls the tools through `nook run --tools`. Last line: `N passed`."""

import argparse
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HERE = pathlib.Path(__file__).parent


class Model(BaseHTTPRequestHandler):
    """Calls both tools at once, then repeats what they said."""

    def log_message(self, *_):
        pass

    def send(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send("application/json", json.dumps({"object": "list", "data": [{"id": "m"}]}).encode())

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        results = [message["content"] for message in asked["messages"] if message["role"] == "tool"]
        call = lambda at, name, arguments: {
            "index": at, "id": f"c{at}", "function": {"name": name, "arguments": json.dumps(arguments)}}
        calls = [call(0, "add", {"a": 20, "b": 22}), call(1, "fail", {})]
        delta = {"content": " | ".join(results)} if results else {"tool_calls": calls}
        ends = "stop" if results else "tool_calls"
        chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
                  {"choices": [{"index": 0, "delta": {}, "finish_reason": ends}]}]
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.send("text/event-stream", body.encode())


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def check(nook, where):
    """`where`: arguments of `nook tools add` behind the name."""
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="inglenook-sdk-") as folder:
        def run(*args):
            done = subprocess.run([nook, "--data-dir", folder, "--json", *args], capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
            return json.loads(done.stdout)

        added = run("tools", "add", "sdk", *where)
        assert added["state"]["state"] == "ready", added
        assert [tool["name"] for tool in added["tools"]] == ["add", "fail"], added
        offered = run("tools", "resources", "sdk")
        assert [it["uri"] for it in offered["resources"]] == ["note://today"], offered
        assert [it["template"] for it in offered["templates"]] == ["note://named/{name}"], offered
        assert run("tools", "read", "sdk", "note://today")["text"] == "Feed the fox."
        assert run("tools", "read", "sdk", "note://named/a")["text"] == "A note called a."
        run("endpoints", "add", "lab", f"http://127.0.0.1:{model.server_port}")
        answer = run("run", "--model", "lab/m", "--prompt", "Use them", "--tools", "--allow-tools")
        added, failed = answer["text"].split(" | ")
        # Later versions keep the reason to themselves.
        assert added == "42" and "Error executing tool fail" in failed, answer
    model.shutdown()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nook", required=True)
    nook = str(pathlib.Path(parser.parse_args().nook).resolve())
    script = str(HERE / "sdk_server.py")
    check(nook, ["--", sys.executable, script])
    print("ok      over stdio")
    port = free_port()
    server = subprocess.Popen([sys.executable, script, str(port)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as it:
                if it.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        check(nook, ["--url", f"http://127.0.0.1:{port}/mcp"])
        print("ok      over HTTP")
    finally:
        server.kill()
        server.wait()
    print("2 passed")


main()
