#!/usr/bin/env python3
"""Everything that must be green, stage by stage; the last line is `N passed, N failed`.

A stage that fails does not hide the later ones, unless they stand on it. `--only name,name` runs some.

Where a few tests of thousands fail, they are run once more. One that passes then is unsteady: it is named at the end
with what it said, so that it is mended, and the run is green. One that fails twice has failed.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MINUTE = 60

# (name, stages it stands on, command, limit in seconds)
STAGES = [
    ("setup", [], ".make/setup.sh window test && make ui/node_modules/.installed", 15 * MINUTE),
    ("format", [], "cargo fmt --all --check", 2 * MINUTE),
    ("page-check", ["setup"], "cd ui && npm run --silent check", 5 * MINUTE),
    ("page-test", ["setup"], "cd ui && npm run --silent test", 5 * MINUTE),
    ("page-build", ["setup"], "make ui", 5 * MINUTE),
    ("build", ["page-build"], "cargo build --locked --workspace", 30 * MINUTE),
    ("clippy", ["page-build"], "cargo clippy --locked --workspace --all-targets -- -D warnings", 30 * MINUTE),
    ("test", ["build"], "cargo test --locked --workspace --lib --bins --tests --no-fail-fast", 30 * MINUTE),
    ("downloads", ["build"], "python3 tests/hub/chaos.py --bytes 24M --faults 26 --kills 3", 5 * MINUTE),
    ("peers", [], "python3 tests/peers/check.py", MINUTE),
    ("desktop", ["build"], "python3 tests/desktop/run.py", 10 * MINUTE),
    ("browser", ["build"], "node tests/browser/run.mjs", 10 * MINUTE),
]

COUNTS = [
    # cargo: `test result: ok. 12 passed; 0 failed; …`
    re.compile(r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed"),
    # vitest: ` Tests  1 failed | 11 passed (12)`
    re.compile(r"^\s+Tests\s+(?:(?P<failed>\d+) failed \| )?(?:(?P<passed>\d+) passed)?"),
    # ours: `12 passed, 0 failed`
    re.compile(r"^(?P<passed>\d+) passed, (?P<failed>\d+) failed"),
]
# Stages whose failed tests can be run once more: (what names one, the command for those names).
REPEATED = {
    "test": (
        re.compile(r"^test (?P<name>\S+) \.\.\. FAILED"),
        "cargo test --locked --workspace --lib --bins --tests --no-fail-fast -- --exact {names}",
    ),
    "desktop": (re.compile(r"^FAILED  (?P<name>\w+)"), "python3 tests/desktop/run.py {names}"),
    "browser": (re.compile(r"^FAILED  (?P<name>\w+)"), "node tests/browser/run.mjs {names}"),
}
# More than this is no accident.
MOST_REPEATED = 3
# A test program that ended by a signal took others with it.
CRASHED = re.compile(r"\(signal: ")

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="comma-separated stages: " + ", ".join(s[0] for s in STAGES))
    only = parser.parse_args().only
    chosen = only.split(",") if only else [s[0] for s in STAGES]
    unknown = set(chosen) - {s[0] for s in STAGES}
    if unknown:
        parser.error(f"no such stage: {', '.join(sorted(unknown))}")

    broken, rows, unsteady, passed, failed = set(), [], [], 0, 0
    for name, needs, command, limit_s in STAGES:
        if name not in chosen:
            continue
        blocked = broken.intersection(needs)
        if blocked:
            print(f"\n── {name}: not run, {', '.join(sorted(blocked))} failed", flush=True)
            rows.append((name, "not run", 0.0, 0, 1))
            broken.add(name)
            failed += 1
            continue
        print(f"\n── {name}: {command}", flush=True)
        began = time.monotonic()
        ok, good, bad, said = run(command, limit_s)
        if not ok:
            names = passed_when_repeated(name, bad, said, limit_s)
            unsteady += [f"{name}: {it}" for it in names]
            ok, good, bad = bool(names), good + len(names), bad - len(names)
        took = time.monotonic() - began
        if not ok:
            broken.add(name)
            bad = max(bad, 1)
        elif good == 0:
            good = 1
        rows.append((name, "ok" if ok else "FAILED", took, good, bad))
        passed, failed = passed + good, failed + bad

    print()
    for name, verdict, took, good, bad in rows:
        print(f"{name:12} {verdict:8} {took:7.1f} s   {good} passed, {bad} failed")
    for it in unsteady:
        print(f"unsteady: {it} failed once and passed when it was repeated: mend it")
    closing = f"{passed} passed, {failed} failed"
    os.makedirs(os.path.join(ROOT, "target"), exist_ok=True)
    with open(os.path.join(ROOT, "target/test-summary"), "w") as summary:
        summary.write(closing + "\n")
    print(closing)
    return 1 if failed else 0


def passed_when_repeated(stage, n_failed, said, limit_s):
    """The tests of a stage that failed, if all of them pass when they are run once more; else none."""
    if stage not in REPEATED or any(CRASHED.search(line) for line in said):
        return []
    names_one, command = REPEATED[stage]
    names = [match["name"] for match in map(names_one.match, said) if match]
    if len(names) != n_failed or not 0 < n_failed <= MOST_REPEATED:
        return []
    print(f"\n── {stage}, once more: {', '.join(names)}", flush=True)
    ok, good, _, _ = run(command.format(names=" ".join(names)), limit_s)
    return names if ok and good >= n_failed else []


def run(command, limit_s):
    """Runs a stage with its output shown; (exit status was 0, tests passed, tests failed, its lines)."""
    env = dict(os.environ, INGLENOOK_NOOK=os.path.join("target", "debug", "nook"))
    env["PATH"] = os.path.join(ROOT, "target/tools/node_modules/.bin") + os.pathsep + env["PATH"]
    process = subprocess.Popen(
        ["bash", "-c", f"set -euo pipefail; {command}"],
        cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True,
    )
    deadline = Deadline(process, limit_s)
    passed = failed = 0
    said = []
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        plain = COLOUR.sub("", line)
        said.append(plain)
        for pattern in COUNTS:
            match = pattern.match(plain)
            if match:
                passed += int(match["passed"] or 0)
                failed += int(match["failed"] or 0)
    status = process.wait()
    if deadline.ran_out():
        print(f"ended after its limit of {limit_s} s")
    return status == 0, passed, failed, said


class Deadline:
    """Ends a stage, with everything it started, that takes longer than its limit."""

    def __init__(self, process, limit_s):
        self.process = process
        self.timer = threading.Timer(limit_s, self.end)
        self.timer.daemon = True
        self.ended = False
        self.timer.start()

    def end(self):
        self.ended = True
        os.killpg(self.process.pid, signal.SIGKILL)

    def ran_out(self):
        self.timer.cancel()
        return self.ended


if __name__ == "__main__":
    sys.exit(main())
