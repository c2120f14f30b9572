#!/usr/bin/env python3
"""Everything that must be green, stage by stage; the last line is `N passed, M failed, K skipped`.

A stage that fails does not hide the later ones, unless they stand on it. `--only name,name` runs some.

A test that cannot run prints a marker (tests/support): it counts as skipped, not as passed, and is named at the end.

Where a few tests of thousands fail, they are run once more. One that passes then is flaky: it is named above the
closing line and in target/test-summary, so that it is mended. One flaky test leaves the run green, two fail it.
"""

import argparse
import io
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MINUTE = 60

# (name, stages it stands on, command, limit in seconds)
STAGES = [
    ("setup", [], ".make/setup.sh window test && make ui/node_modules/.installed", 15 * MINUTE),
    ("format", [], "cargo fmt --all --check", 2 * MINUTE),
    ("summary", [], "python3 .make/test_summary.py", MINUTE),
    ("packages", ["setup"], "python3 .make/test_packages.py", MINUTE),
    ("page-check", ["setup"], "cd ui && npm run --silent check", 5 * MINUTE),
    ("page-test", ["setup"], "cd ui && npm run --silent test", 5 * MINUTE),
    ("page-build", ["setup"], "make ui", 5 * MINUTE),
    ("build", ["page-build"], "cargo build --locked --workspace", 45 * MINUTE),
    ("clippy", ["page-build"], "cargo clippy --locked --workspace --all-targets -- -D warnings", 30 * MINUTE),
    ("test", ["build"], "cargo test --locked --workspace --lib --bins --tests --no-fail-fast", 45 * MINUTE),
    ("downloads", ["build"], "python3 tests/hub/chaos.py --bytes 128M --faults 26 --kills 3", 5 * MINUTE),
    ("peers", [], "python3 tests/peers/check.py", MINUTE),
    ("desktop", ["build"], "python3 tests/desktop/run.py", 10 * MINUTE),
    ("browser", ["build"], "node tests/browser/run.mjs", 10 * MINUTE),
]

# Stages that wait for programs more than they compute: one runs beside another, and is shown when its turn comes.
BESIDE = {"browser": "desktop"}

COUNTS = [
    # cargo: `test result: ok. 12 passed; 0 failed; 1 ignored; …`
    re.compile(r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed; (?P<skipped>\d+) ignored"),
    # vitest: ` Tests  1 failed | 11 passed | 2 skipped (14)`
    re.compile(
        r"^\s+Tests\s+(?:(?P<failed>\d+) failed(?: \| )?)?(?:(?P<passed>\d+) passed(?: \| )?)?"
        r"(?:(?P<skipped>\d+) skipped)?"),
    # ours: `12 passed, 0 failed`, `12 passed, 0 failed, 1 skipped`
    re.compile(r"^(?P<passed>\d+) passed, (?P<failed>\d+) failed(?:, (?P<skipped>\d+) skipped)?$"),
]
# Markers of `tests/support`: the harness counted a skipped test as passed.
SKIPPED = re.compile(r"^SKIPPED (?P<name>.+?): (?P<reason>.+)$")
PARTLY_SKIPPED = re.compile(r"^PARTLY SKIPPED (?P<name>.+?): (?P<reason>.+)$")

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
MAX_REPEATED = 3
# As many flaky tests in one run fail it.
MAX_FLAKY = 1
# A test program that ended by a signal took others with it. Tests themselves log signals of programs that they kill.
CRASHED = re.compile(r"^\s*process didn't exit successfully: .*\(signal: ")

# What begins the account of a failed test, by kind of stage, and what ends it.
FAILED_TEST = re.compile(r"^(?:FAILED  (?P<scenario>\w+)|---- (?P<rust>\S+) stdout ----| FAIL  (?P<page>.+))$")
NEXT_TEST = re.compile(r"^(?:ok      \w+|failures:|\d+ passed, \d+ failed)")
# Of an account these many lines are repeated at the end.
ACCOUNT_LINES = 6

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Outcome:
    """What a stage's command printed, counted."""

    ok: bool = True
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    # Names with reasons of skipped tests and parts of tests.
    named: list = field(default_factory=list)
    lines: list = field(default_factory=list)

    def read(self, line):
        """Counts one line of output, colours removed."""
        self.lines.append(line)
        for pattern in COUNTS:
            if match := pattern.match(line):
                self.passed += int(match["passed"] or 0)
                self.failed += int(match["failed"] or 0)
                self.skipped += int(match["skipped"] or 0)
        if match := SKIPPED.match(line):
            self.passed -= 1
            self.skipped += 1
            self.named.append(f"{match['name']}: {match['reason']}")
        elif match := PARTLY_SKIPPED.match(line):
            self.skipped += 1
            self.named.append(f"part of {match['name']}: {match['reason']}")


def accounts(lines):
    """The failed tests that the lines tell of, each with the last lines of its account."""
    found = []
    for line in lines:
        if match := FAILED_TEST.match(line):
            found.append((match["scenario"] or match["rust"] or match["page"], []))
        elif NEXT_TEST.match(line):
            found.append((None, []))
        elif found and line.strip():
            found[-1][1].append(line)
    return [(name, account[-ACCOUNT_LINES:]) for name, account in found if name]


@dataclass
class Summary:
    """All stages together."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    skips: list = field(default_factory=list)
    failures: list = field(default_factory=list)
    flaky: list = field(default_factory=list)

    def add(self, stage, outcome):
        self.passed += outcome.passed
        self.failed += outcome.failed
        self.skipped += outcome.skipped
        self.skips += [f"{stage}: {it}" for it in outcome.named]
        if not outcome.ok:
            last = [line for line in outcome.lines if line.strip()][-ACCOUNT_LINES:]
            for name, account in accounts(outcome.lines) or [("its last lines", last)]:
                self.failures += [f"failed: {stage}: {name}", *(f"    {line}" for line in account)]

    def close(self):
        """The lines that end a run, the closing one last."""
        lines = [f"skipped: {it}" for it in self.skips] + self.failures
        lines += [f"flaky: {it} failed once and passed when it was repeated: mend it" for it in self.flaky]
        if len(self.flaky) > MAX_FLAKY:
            self.failed += len(self.flaky)
            self.passed -= len(self.flaky)
            lines.append(f"{len(self.flaky)} flaky tests in one run count as failed")
        return lines + [f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="comma-separated stages: " + ", ".join(s[0] for s in STAGES))
    only = parser.parse_args().only
    chosen = only.split(",") if only else [s[0] for s in STAGES]
    unknown = set(chosen) - {s[0] for s in STAGES}
    if unknown:
        parser.error(f"no such stage: {', '.join(sorted(unknown))}")

    broken, rows, summary, beside = set(), [], Summary(), {}
    for name, needs, command, limit_s in STAGES:
        if name not in chosen:
            continue
        blocked = broken.intersection(needs)
        if blocked:
            print(f"\n── {name}: not run, {', '.join(sorted(blocked))} failed", flush=True)
            outcome, verdict, took, worked = Outcome(ok=False, failed=1), "not run", 0.0, 0.0
        else:
            for other, other_needs, other_command, other_limit_s in STAGES:
                if BESIDE.get(other) == name and other in chosen and not broken.intersection(other_needs):
                    beside[other] = StageBeside(other, other_command, other_limit_s, summary.flaky)
            print(f"\n── {name}: {command}", flush=True)
            began, worked_before = time.monotonic(), processor_s()
            if name in beside:
                outcome, took = beside[name].end(), beside[name].took
            else:
                outcome = run_stage(name, command, limit_s, summary.flaky, sys.stdout)
                took = time.monotonic() - began
            verdict = "ok" if outcome.ok else "FAILED"
            worked = processor_s() - worked_before
        if not outcome.ok:
            broken.add(name)
        rows.append((name, verdict, took, worked, outcome))
        summary.add(name, outcome)

    print()
    for name, verdict, took, worked, it in rows:
        print(f"{name:12} {verdict:8} {took:7.1f} s {worked:8.1f} s of processors   "
              f"{it.passed} passed, {it.failed} failed, {it.skipped} skipped")
    closing = summary.close()
    os.makedirs(os.path.join(ROOT, "target"), exist_ok=True)
    with open(os.path.join(ROOT, "target/test-summary"), "w") as file:
        file.write("\n".join(closing) + "\n")
    print("\n".join(closing))
    return 1 if summary.failed else 0


def processor_s():
    """Seconds of all processors that finished stages took: a stage that waits takes fewer than it lasts."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class StageBeside:
    """A stage that runs while another one does. The other one's processor time has its own in it."""

    def __init__(self, *stage):
        self.output, self.outcome, self.took = io.StringIO(), Outcome(ok=False, failed=1), 0.0
        self.thread = threading.Thread(target=self.run, args=stage)
        self.thread.start()

    def run(self, *stage):
        began = time.monotonic()
        self.outcome = run_stage(*stage, self.output)
        self.took = time.monotonic() - began

    def end(self):
        """Waits for its end and shows what it printed."""
        self.thread.join()
        print(self.output.getvalue(), end="", flush=True)
        return self.outcome


def run_stage(name, command, limit_s, flaky, output):
    """Runs a stage, its few failed tests once more; adds those that passed then to `flaky`."""
    outcome = run(command, limit_s, output)
    if not outcome.ok:
        names = passed_when_repeated(name, outcome, limit_s, output)
        flaky += [f"{name}: {it}" for it in names]
        outcome.ok = bool(names)
        outcome.passed += len(names)
        outcome.failed -= len(names)
    if not outcome.ok:
        outcome.failed = max(outcome.failed, 1)
    elif outcome.passed + outcome.skipped == 0:
        outcome.passed = 1
    return outcome


def passed_when_repeated(stage, outcome, limit_s, output):
    """The tests of a stage that failed, if all of them pass when they are run once more; else none."""
    if stage not in REPEATED or any(CRASHED.search(line) for line in outcome.lines):
        return []
    names_one, command = REPEATED[stage]
    names = [match["name"] for match in map(names_one.match, outcome.lines) if match]
    if len(names) != outcome.failed or not 0 < outcome.failed <= MAX_REPEATED:
        return []
    print(f"\n── {stage}, once more: {', '.join(names)}", file=output, flush=True)
    again = run(command.format(names=" ".join(names)), limit_s, output)
    return names if again.ok and again.passed >= outcome.failed else []


def run(command, limit_s, output):
    """Runs a stage's command, which prints to `output`."""
    env = dict(os.environ, INGLENOOK_NOOK=os.path.join("target", "debug", "nook"))
    env["PATH"] = os.path.join(ROOT, "target/tools/node_modules/.bin") + os.pathsep + env["PATH"]
    process = subprocess.Popen(
        ["bash", "-c", f"set -euo pipefail; {command}"],
        cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True,
    )
    deadline = Deadline(process, limit_s)
    threading.Thread(target=end_rest, args=(process,), daemon=True).start()
    outcome = Outcome()
    for line in process.stdout:
        output.write(line)
        output.flush()
        outcome.read(COLOUR.sub("", line).rstrip("\n"))
    outcome.ok = process.wait() == 0
    if deadline.ran_out():
        print(f"ended after its limit of {limit_s} s", file=output)
    return outcome


def end_rest(process):
    """Ends what a stage that is over has left running: it would hold the output open, and with it the whole run."""
    process.wait()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


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
