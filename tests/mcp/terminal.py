"""`nook run --tools` and `nook chat` at a real terminal, with the server of `server.py`: `terminal.py --nook FILE [ONLY…]`.

A model played here calls what a scenario says. What the terminal is given is looked at as a person sees it, Ctrl+C is
pressed as a person presses it. Last line: `N passed`.
"""

import argparse
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HERE = pathlib.Path(__file__).parent
# Far more than anything takes on a busy machine.
PATIENCE = 120
CTRL_C, CTRL_D, CTRL_R = b"\x03", b"\x04", b"\x12"
UP, LEFT = b"\x1b[A", b"\x1b[D"
ESCAPES = "\x1b[31mred\x1b]0;title\x07 over\rwritten"


class Model:
    """Calls these until a result stands in what it is asked, then repeats the results."""

    def __init__(self, calls):
        self.calls, self.asked, self.is_closed = calls, [], threading.Event()
        model = self

        class Handler(BaseHTTPRequestHandler):
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
                model.asked.append(asked)
                last = asked["messages"][-1]
                results = [it["content"] for it in asked["messages"] if it["role"] == "tool"]
                if last["role"] == "user" and last["content"] == "wait":
                    return model.is_closed.wait(PATIENCE)
                if last["role"] == "user" and not model.calls:
                    delta, ends = {"content": f"You said: {last['content']}"}, "stop"
                elif last["role"] == "user":
                    calls = [{"index": at, "id": f"c{len(model.asked)}-{at}",
                              "function": {"name": name, "arguments": arguments}}
                             for at, (name, arguments) in enumerate(model.calls)]
                    delta, ends = {"tool_calls": calls}, "tool_calls"
                else:
                    delta, ends = {"content": "It said: " + " | ".join(it[:300] for it in results)}, "stop"
                chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
                          {"choices": [{"index": 0, "delta": {}, "finish_reason": ends}]}]
                body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
                self.send("text/event-stream", body.encode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.is_closed.set()
        self.server.shutdown()
        self.server.server_close()


class Terminal:
    """A program at its own pseudo-terminal."""

    def __init__(self, *command, **environment):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm"} | environment)
            os.execv(command[0], command)

    def read(self):
        """More of what it shows; False: it shows nothing more."""
        if not select.select([self.fd], [], [], 1)[0]:
            return True
        try:
            piece = os.read(self.fd, 1 << 16)
        except OSError:
            piece = b""
        self.seen += piece.decode(errors="replace")
        return bool(piece)

    def wait(self, text, after=0):
        """Until it shows this; where that ends."""
        end = time.monotonic() + PATIENCE
        while (at := self.seen.find(text, after)) < 0:
            assert time.monotonic() < end and self.read(), f"no {text!r} in {self.seen[-3000:]!r}"
        return at + len(text)

    def type(self, keys):
        os.write(self.fd, keys)

    def end(self):
        """Its exit code, once it has ended."""
        end = time.monotonic() + PATIENCE
        while self.read():
            assert time.monotonic() < end, f"it goes on: {self.seen[-3000:]!r}"
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        self.pid = None
        return os.waitstatus_to_exitcode(status)

    def kill(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self.fd)


class Home:
    def __init__(self, nook, calls, *flags):
        self.nook, self.folder = nook, tempfile.TemporaryDirectory(prefix="inglenook-terminal-")
        self.model = Model(calls)
        self.terminals = []
        # So that its process is known among others.
        self.marker = self.folder.name
        self.do("endpoints", "add", "lab", f"http://127.0.0.1:{self.model.server.server_port}")
        self.do("tools", "add", "tools", "--", sys.executable, str(HERE / "server.py"), "--key", self.marker, *flags)

    def do(self, *args):
        command = [self.nook, "--data-dir", self.folder.name, *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
        return done.stdout

    def at_terminal(self, *args, **environment):
        self.terminals.append(Terminal(self.nook, "--data-dir", self.folder.name, *args, **environment))
        return self.terminals[-1]

    def run(self):
        return self.at_terminal("run", "--model", "lab/m", "--prompt", "Use it", "--tools")

    def chat(self):
        terminal = self.at_terminal("chat", "--model", "lab/m")
        terminal.wait("> ")
        terminal.type(b"Use it\n")
        return terminal

    def has_server(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                line = pathlib.Path("/proc", pid, "cmdline").read_bytes()
            except OSError:
                continue
            if self.marker.encode() in line and b"server.py" in line:
                return True
        return False

    def wait_for_server(self, runs):
        end = time.monotonic() + PATIENCE
        while self.has_server() != runs:
            assert time.monotonic() < end, "it goes on" if not runs else "it doesn't start"
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for terminal in self.terminals:
            terminal.kill()
        self.model.close()
        self.folder.cleanup()


def plain(seen):
    """Nothing but our own escapes: dim, normal, a line that is cleared, and those of the line editor."""
    left = re.sub(r"\x1b\[(2?K|0m|2m|J|\?20(04|26)[hl]|\d*[A-D])", "", seen)
    return not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", left)


def asked_and_answered(nook):
    """The question names tool, arguments and server; what is always allowed is not asked again."""
    for way in ("run", "chat"):
        with Home(nook, [("echo", '{"text":"hello"}')]) as home:
            terminal = getattr(home, way)()
            terminal.wait('Run echo({"text":"hello"}) of tools? [y]es once')
            terminal.type(b"what\n")
            at = terminal.wait("Run echo", terminal.wait("what"))
            terminal.type(b"t\n")
            at = terminal.wait("← echo: hello", at)
            at = terminal.wait("It said: hello", at)
            if way == "chat":
                terminal.wait("> ", at)
                terminal.type(b"/exit\n")
            assert terminal.end() == 0
            again = home.run()
            again.wait("It said: hello")
            assert again.end() == 0 and "Run echo" not in again.seen, again.seen


def denied(nook):
    with Home(nook, [("echo", '{"text":"hello"}')]) as home:
        terminal = home.run()
        terminal.wait("[n]o: ")
        terminal.type(b"n\n")
        terminal.wait("It said: The user did not allow this call.")
        assert terminal.end() == 0


def stopped_while_asked(nook):
    """Ctrl+C at the question ends it at once: nothing runs, and a chat goes on."""
    with Home(nook, [("echo", '{"text":"hello"}')]) as home:
        terminal = home.run()
        terminal.wait("[n]o: ")
        terminal.type(CTRL_C)
        assert terminal.end() == 0 and len(home.model.asked) == 1, terminal.seen
        terminal = home.chat()
        at = terminal.wait("[n]o: ")
        terminal.type(CTRL_C)
        at = terminal.wait("\n> ", at)
        terminal.type(b"/exit\n")
        assert terminal.end() == 0 and "It said" not in terminal.seen, terminal.seen


def stopped_while_it_runs(nook):
    """Ctrl+C ends the waiting for a call, also of a server that goes on for ever; the server ends with the program."""
    for way in ("run", "chat"):
        with Home(nook, [("sleep", '{"seconds":3600}')], "--stubborn") as home:
            terminal = getattr(home, way)()
            terminal.wait("[n]o: ")
            terminal.type(b"y\n")
            at = terminal.wait("Ctrl+C stops it")
            home.wait_for_server(True)
            terminal.type(CTRL_C)
            if way == "chat":
                terminal.wait("> ", at)
                terminal.type(CTRL_D)
            assert terminal.end() == 0, terminal.seen
            home.wait_for_server(False)


def never_returns(nook):
    with Home(nook, [("sleep", '{"seconds":3600}')]) as home:
        home.do("settings", "set", "tool_seconds", "1")
        terminal = home.run()
        terminal.wait("[n]o: ")
        terminal.type(b"y\n")
        terminal.wait("It said: Error: tools did not respond within 1 seconds.")
        assert terminal.end() == 0


def dies(nook):
    with Home(nook, [("die", "{}")]) as home:
        terminal = home.run()
        terminal.wait("[n]o: ")
        terminal.type(b"y\n")
        terminal.wait("← die: Error: tools exited")
        terminal.wait("out of coffee")
        assert terminal.end() == 0


def a_megabyte(nook):
    """A very long result is shown in short, and the model gets a part."""
    with Home(nook, [("huge", '{"characters":1000000}')]) as home:
        terminal = home.run()
        terminal.wait("[n]o: ")
        terminal.type(b"y\n")
        terminal.wait("It said: xxx")
        assert terminal.end() == 0 and len(terminal.seen) < 2000, len(terminal.seen)
        assert len(home.model.asked[-1]["messages"][-1]["content"]) < 21_000
    with Home(nook, [("echo", json.dumps({"text": "y" * 1_000_000}))]) as home:
        terminal = home.run()
        terminal.wait("more characters) of tools?")
        assert len(terminal.seen) < 10_000, len(terminal.seen)
        terminal.type(b"n\n")
        assert terminal.end() == 0


def escapes(nook):
    """What steers a terminal reaches none: from arguments, results, a model that repeats them, and lists."""
    for way in ("run", "chat"):
        with Home(nook, [("echo", json.dumps({"text": ESCAPES}, ensure_ascii=False))]) as home:
            home.model.calls.append(("echo", '{"text":"a\x1b[2Jb\u202e"}\n\x1b[1A'))
            terminal = getattr(home, way)()
            at = terminal.wait("[n]o: ")
            terminal.type(b"y\n")
            at = terminal.wait("[n]o: ", at)
            terminal.type(b"n\n")
            at = terminal.wait("It said: ␛[31mred␛]0;title␇ over␍written")
            if way == "chat":
                terminal.wait("> ", at)
                terminal.type(b"/exit\n")
            assert terminal.end() == 0
            assert plain(terminal.seen), terminal.seen
            assert "\u202e" not in terminal.seen and "[U+202E]" in terminal.seen
            for command in (["resources", "tools"], ["read", "tools", "note://escapes"], ["list"]):
                listed = home.at_terminal("tools", *command)
                assert listed.end() == 0 and plain(listed.seen), listed.seen
            # A pipe gets what there is.
            assert "\x1b[31m" in home.do("tools", "read", "tools", "note://escapes")


def edited(nook):
    """Lines of a chat are edited; what was sent comes back, in the next start too; Ctrl+C never ends the chat."""
    with Home(nook, []) as home:
        # Titles of conversations are asked for too.
        all_sent = lambda: [it["messages"][-1]["content"] for it in home.model.asked]
        sent = lambda: [it for it in all_sent() if not it.startswith("Write a short title")]

        def start(*flags):
            terminal = home.at_terminal("chat", "--model", "lab/m", *flags)
            return terminal, terminal.wait("> ")

        def send(keys, said, at):
            terminal.type(keys)
            return terminal.wait("> ", terminal.wait(f"You said: {said}", at))

        terminal, at = start()
        at = send(b"\x1b[200~one\ntwo\x1b[201~\r", "one", at)
        assert sent() == ["one\ntwo"], sent()
        at = send(b"helo" + LEFT + b"l\r", "hello", at)
        terminal.type(b"nonsense" + CTRL_C)
        at = terminal.wait("> ", terminal.wait("Ctrl+D ends the chat", at))
        at = send(UP + b"\r", "hello", at)
        terminal.type(b"wait\r")
        end = time.monotonic() + PATIENCE
        while len(sent()) < 4:
            assert time.monotonic() < end and terminal.read(), terminal.seen
        terminal.type(CTRL_C)
        at = terminal.wait("> ", terminal.wait("^C", at))
        # A question without an answer is asked with the next one.
        at = send(b"more\r", "wait", at)
        terminal.type(CTRL_D)
        assert terminal.end() == 0, terminal.seen
        assert sent() == ["one\ntwo", "hello", "hello", "wait", "wait\n\nmore"], sent()
        kept = pathlib.Path(home.folder.name, "chat-history.jsonl")
        assert kept.stat().st_mode & 0o777 == 0o600, oct(kept.stat().st_mode)
        lines = [json.loads(it) for it in kept.read_text().splitlines()]
        assert lines == ["one\ntwo", "hello", "wait", "more"], lines
        terminal, at = start()
        send(UP + UP + UP + b"\r", "hello", at)
        terminal.type(CTRL_D)
        assert terminal.end() == 0
        before = kept.read_bytes()
        terminal, at = start("--no-history")
        send(UP + b"x\r", "x", at)
        terminal.type(b"/exit\r")
        assert terminal.end() == 0 and kept.read_bytes() == before


def edited_by_key(nook):
    """Search, completion, line breaks, wide and combined characters; what was typed ahead is the next line."""
    with Home(nook, []) as home:
        def start(**environment):
            terminal = home.at_terminal("chat", "--model", "lab/m", **environment)
            return terminal, terminal.wait("> ")

        terminal, at = start()
        cases = [
            (b"first words\r", "first words"),
            (b"second\r", "second"),
            (CTRL_R + b"st w\r", "first words"),
            (b"a\x1b\rb\r", "a\nb"),
            ("日本語\x7f\x1b[D\x1b[D!\r".encode(), "!日本"),
            ("שלום\x7fe\u0301x\x1b[D\x7f\r".encode(), "שלוx"),
            (b"one two\x17\x01\x0b\x19three\r", "one three"),
            (b"a\x01\x1b[200~\xc2\x9b2J\x07\x1b[201~\r", "\u009b2J\x07a"),
            (b"\xffdropped", None),
            (b"kept\r", "kept"),
        ]
        for keys, said in cases:
            terminal.type(keys)
            if said is None:
                at = terminal.wait("> ", terminal.wait("not UTF-8", at))
                continue
            at = terminal.wait("> ", terminal.wait("You said: ", at))
            sent = [it["messages"][-1]["content"] for it in home.model.asked]
            sent = [it for it in sent if not it.startswith("Write a short title")]
            assert sent[-1] == said, (keys, sent)
        terminal.type(b"ahead\rand the next\r")
        at = terminal.wait("You said: and the next", terminal.wait("You said: ahead", at))
        at = terminal.wait("> ", at)
        terminal.type(b"/fi")
        terminal.wait("\x1b[2mle \x1b[0m", at)
        terminal.type(b"\t\r")
        at = terminal.wait("> ", terminal.wait("which file?", at))
        terminal.type(b"/exi\t\r")
        assert terminal.end() == 0 and plain(terminal.seen), terminal.seen
        terminal, at = start(NO_COLOR="1")
        terminal.type(b"/exi\t\r")
        assert terminal.end() == 0 and "\x1b[2m" not in terminal.seen, terminal.seen
        terminal, at = start(TERM="dumb")
        terminal.type(b"plain\n")
        terminal.wait("> ", terminal.wait("You said: plain", at))
        terminal.type(CTRL_C)
        assert terminal.end() == 0 and "\x1b" not in terminal.seen, terminal.seen


SCENARIOS = [asked_and_answered, denied, stopped_while_asked, stopped_while_it_runs, never_returns, dies, a_megabyte,
             escapes, edited, edited_by_key]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nook", required=True)
    parser.add_argument("only", nargs="*")
    flags = parser.parse_args()
    nook = str(pathlib.Path(flags.nook).resolve())
    chosen = [it for it in SCENARIOS if not flags.only or it.__name__ in flags.only]
    for scenario in chosen:
        scenario(nook)
        print(f"ok      {scenario.__name__}", flush=True)
    print(f"{len(chosen)} passed")


main()
