"""Drives the real window: Xvfb, WebKitWebDriver and the program itself, by the W3C WebDriver protocol.

Standard library only. Everything started here is ended here, by its own id.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

# A session takes 13 to 29 s on a busy machine.
SESSION_LIMIT_S = 120
STEP_LIMIT_S = 60
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# Debian's: it knows the packages python3-gi and gir1.2-gtk-3.0, another one may not.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
KEYS = {"Enter": "\ue007", "ArrowRight": "\ue014", "Escape": "\ue00c", "Shift": "\ue008", "Control": "\ue009"}


class Display:
    """A virtual screen."""

    def __init__(self, size="1280x900x24"):
        read, write = os.pipe()
        self.process = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", size, "-nolisten", "tcp"],
            pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(write)
        with os.fdopen(read) as number:
            self.name = ":" + number.readline().strip()
        if self.name == ":":
            raise RuntimeError("Xvfb did not start")

    def close(self):
        end(self.process)


class Window:
    """One run of the program under its own driver."""

    def __init__(self, display, program, data_dir, env=None):
        self.port, self.display = free_port(), display
        self.runtime = tempfile.mkdtemp(prefix="inglenook-runtime-")
        env = dict(
            os.environ, DISPLAY=display.name, TAURI_AUTOMATION="true", TAURI_WEBVIEW_AUTOMATION="true",
            XDG_RUNTIME_DIR=self.runtime, GDK_BACKEND="x11", NO_AT_BRIDGE="1",
            GSETTINGS_BACKEND="memory", **(env or {}),
        )
        env.pop("WAYLAND_DISPLAY", None)
        self.driver = subprocess.Popen(
            ["WebKitWebDriver", f"--port={self.port}", "--host=127.0.0.1"],
            env=env, stdout=subprocess.DEVNULL, start_new_session=True,
        )
        self.session = None
        try:
            until(lambda: self.ask("GET", "/status")["ready"], "WebKitWebDriver answers", STEP_LIMIT_S)
            options = {"binary": program, "args": ["--data-dir", data_dir]}
            wanted = {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}}
            self.session = self.ask("POST", "/session", wanted, SESSION_LIMIT_S)["sessionId"]
        except Exception:
            self.close()
            raise

    def ask(self, method, path, body=None, limit_s=STEP_LIMIT_S):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=limit_s) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise RuntimeError(f"{method} {path}: {value['error']}: {value['message']}") from None

    def step(self, method, path, body=None):
        return self.ask(method, f"/session/{self.session}{path}", body)

    # ---- what a person does ----

    def find(self, css):
        return self.step("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css):
        until(lambda: self.exists(css), f"{css} is there")
        self.step("POST", f"/element/{self.find(css)}/click", {})

    def type(self, css, text):
        until(lambda: self.exists(css), f"{css} is there")
        self.step("POST", f"/element/{self.find(css)}/value", {"text": text})

    def skip_welcome(self):
        """The first steps lie over a window on a new data folder."""
        self.click('[data-testid="welcome-skip"]')
        until(lambda: not self.exists('[data-testid="welcome"]'), "the first steps are gone")

    def press(self, *keys):
        down = [{"type": "keyDown", "value": KEYS.get(key, key)} for key in keys]
        up = [{"type": "keyUp", "value": KEYS.get(key, key)} for key in reversed(keys)]
        self.step("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": down + up}]})

    def double_click(self, css):
        where = {ELEMENT: self.find(css)}
        moves = [{"type": "pointerMove", "origin": where, "x": 0, "y": 0}]
        for _ in range(2):
            moves += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.step("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": moves}]})

    # ---- what a person sees ----

    def exists(self, css):
        return self.run("return document.querySelector(arguments[0]) !== null", css)

    def count(self, css):
        return self.run("return document.querySelectorAll(arguments[0]).length", css)

    def text(self, css):
        """The visible text of the last such element; empty if there is none."""
        return self.run("const all = document.querySelectorAll(arguments[0]);"
                        "return all.length ? all[all.length - 1].innerText : ''", css)

    def run(self, script, *args):
        return self.step("POST", "/execute/sync", {"script": script, "args": list(args)})

    def call(self, name, args):
        """A use case, as the page itself calls it."""
        script = ("const [name, args, done] = arguments;"
                  "window.__TAURI_INTERNALS__.invoke('call', { name, args })"
                  ".then((ok) => done({ ok }), (error) => done({ error }))")
        answer = self.step("POST", "/execute/async", {"script": script, "args": [name, args]})
        if "error" in answer:
            raise RuntimeError(f"{name}: {answer['error']}")
        return answer["ok"]

    def screenshot(self, path):
        grab = [PYTHON, os.path.join(os.path.dirname(os.path.abspath(__file__)), "grab.py"), self.display.name, path]
        subprocess.run(grab, env=dict(os.environ, GDK_BACKEND="x11"), check=True, timeout=STEP_LIMIT_S)

    # ---- its processes ----

    def program_pid(self):
        """The program is the driver's child."""
        children = children_of(self.driver.pid)
        return children[0] if children else None

    def tree(self):
        return descendants(self.program_pid())

    def kill(self):
        """As a power cut would: no warning, nothing cleaned up."""
        for pid in self.tree():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.session = None
        self.close()

    def close(self):
        """Closes the window as its button does, then the driver."""
        pids = self.tree() if self.driver.poll() is None and self.program_pid() else []
        if self.session:
            try:
                self.ask("DELETE", f"/session/{self.session}")
            except (OSError, RuntimeError):
                pass
            self.session = None
        gone = wait_gone(pids, 15)
        end(self.driver)
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return gone


def until(check, what, limit_s=STEP_LIMIT_S):
    """Waits until `check` gives something true, and gives that."""
    deadline = time.monotonic() + limit_s
    last = None
    while time.monotonic() < deadline:
        try:
            got = check()
            if got:
                return got
        except (OSError, RuntimeError) as error:
            last = error
        time.sleep(0.05)
    raise AssertionError(f"not within {limit_s} s: {what}" + (f" ({last})" if last else ""))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def children_of(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children") as children:
                found += [int(child) for child in children.read().split()]
        except FileNotFoundError:
            pass
    return found


def descendants(pid):
    """`pid` and everything below it."""
    found = [pid]
    for child in found:
        try:
            found += children_of(child)
        except FileNotFoundError:
            pass
    return found


def wait_gone(pids, limit_s):
    deadline = time.monotonic() + limit_s
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def end(process):
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
