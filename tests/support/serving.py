"""A running `nook serve` and its calls, for tests in Python."""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request

API_KEY = "a-key-of-the-fixture"
TURN_TIMEOUT_S = 240

# Those that were started: `stop_all` ends them.
STARTED = []


class Nook:
    """A running `nook serve` and its calls. `flags` go to `nook serve`."""

    def __init__(self, program, data, environment=None, flags=("--backend", "scalar", "--threads", "1")):
        self.program, self.data, self.flags = program, data, flags
        self.environment = dict(os.environ, **(environment or {}))
        self.environment.pop("DBUS_SESSION_BUS_ADDRESS", None)
        self.environment.pop("XDG_RUNTIME_DIR", None)
        STARTED.append(self)
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.program, "serve", "--port", "0", "--api-key", API_KEY, *self.flags, "--data-dir", self.data],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.environment)
        self.url = json.loads(self.process.stdout.readline())["listening"]

    def stop(self):
        self.process.terminate()
        self.process.wait(30)

    def call(self, name, /, **args):
        request = urllib.request.Request(
            f"{self.url}/api/{name}", json.dumps(args).encode(),
            {"Authorization": f"Bearer {API_KEY}", "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TURN_TIMEOUT_S) as response:
                return json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{name} {args}: {error.read().decode()}")

    def turn(self, name, /, **args):
        """A call that starts an answer; returns what it returned once the answer has ended."""
        started = self.call(name, **args)
        self.wait_for(lambda: self.conversation(started["conversation"])["summary"]["active_turn"] is None)
        return started

    def wait_for(self, is_so):
        """Returns once `is_so()` holds."""
        deadline = time.monotonic() + TURN_TIMEOUT_S
        while not is_so():
            if time.monotonic() > deadline:
                raise SystemExit(f"it is not so after {TURN_TIMEOUT_S} s")
            time.sleep(0.05)

    def conversation(self, identifier):
        return self.call("conversation_get", id=identifier)

    def cli(self, *args, stdin=""):
        done = subprocess.run([self.program, "--data-dir", self.data, "--json", *args], input=stdin, text=True,
                              capture_output=True, env=self.environment)
        if done.returncode:
            raise SystemExit(f"nook {' '.join(args)}: {done.stderr}")
        return json.loads(done.stdout.strip().splitlines()[-1]) if done.stdout.strip() else None


def stop_all():
    """Ends every server that still runs."""
    for nook in STARTED:
        nook.process.kill()
