#!/usr/bin/env python3
"""Checks how .make/test.py counts: skipped tests, flaky ones, the closing line."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from test import CRASHED, Outcome, StageBeside, Summary, accounts, run  # noqa: E402: beside this file

COUNTED = [
    # (lines, passed, failed, skipped, named)
    (["test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured"], 12, 0, 0, []),
    (["test result: FAILED. 12 passed; 2 failed; 1 ignored; 0 measured"], 12, 2, 1, []),
    (["", "SKIPPED quants::mixes: no /data: gone", "test quants::mixes ... ok",
      "test result: ok. 2 passed; 0 failed; 0 ignored"], 1, 0, 1, ["quants::mixes: no /data: gone"]),
    (["PARTLY SKIPPED golden::every_family: few", "test result: ok. 2 passed; 0 failed; 0 ignored"],
     2, 0, 1, ["part of golden::every_family: few"]),
    (["      Tests  11 passed (11)"], 11, 0, 0, []),
    (["      Tests  1 failed | 11 passed | 2 skipped (14)"], 11, 1, 2, []),
    (["      Tests  11 passed | 2 skipped (13)"], 11, 0, 2, []),
    (["12 passed, 1 failed"], 12, 1, 0, []),
    (["12 passed, 1 failed, 3 skipped"], 12, 1, 3, []),
    (["of 12 passed, 1 failed"], 0, 0, 0, []),
]

CLOSED = [
    # (flaky, failed, closing line)
    ([], 0, "5 passed, 0 failed, 1 skipped"),
    (["test: a"], 0, "5 passed, 0 failed, 1 skipped"),
    (["test: a", "browser: b"], 2, "3 passed, 2 failed, 1 skipped"),
]

TOLD = [
    # (lines, the accounts of failed tests)
    (["ok      a (1 s)", "FAILED  b", "Traceback:", "AssertionError: 2", "", "ok      c (2 s)", "1 passed, 1 failed"],
     [("b", ["Traceback:", "AssertionError: 2"])]),
    (["---- a::b stdout ----", "thread panicked at x.rs:1:", "left: 1", "failures:", "    a::b"],
     [("a::b", ["thread panicked at x.rs:1:", "left: 1"])]),
    ([" FAIL  src/a.test.ts > a > b", "AssertionError: 1"], [("src/a.test.ts > a > b", ["AssertionError: 1"])]),
    (["error: could not compile"], []),
]


CRASHES = [
    ("  process didn't exit successfully: `target/debug/deps/all-1f tidy` (signal: 11, SIGSEGV: invalid memory reference)", True),
    ("ERROR supervisor: the inference process ended unexpectedly (signal: 9 (SIGKILL)).", False),
]


def main():
    wrong = []
    for lines, expected in TOLD:
        if accounts(lines) != expected:
            wrong.append(f"{lines}: {accounts(lines)}, not {expected}")
    for lines, *expected in COUNTED:
        outcome = Outcome()
        for line in lines:
            outcome.read(line)
        found = [outcome.passed, outcome.failed, outcome.skipped, outcome.named]
        if found != expected:
            wrong.append(f"{lines}: {found}, not {expected}")
    for flaky, failed, expected in CLOSED:
        summary = Summary(passed=5, skipped=1, skips=["test: x: no data"], flaky=flaky)
        lines = summary.close()
        if lines[-1] != expected or summary.failed != failed:
            wrong.append(f"{flaky}: {lines[-1]}, not {expected}")
        if lines[0] != "skipped: test: x: no data" or not all(any(f in line for line in lines) for f in flaky):
            wrong.append(f"{flaky}: not named in {lines}")
    for line, expected in CRASHES:
        if bool(CRASHED.search(line)) != expected:
            wrong.append(f"{line}: counts as a crash: {not expected}")
    began = time.monotonic()
    left = run("(sleep 30 &); echo '1 passed, 0 failed'", 40, sys.stdout)
    if not left.ok or time.monotonic() - began > 10:
        wrong.append(f"what a stage left running was waited for: {left}, {time.monotonic() - began:.0f} s")
    beside = StageBeside("b", "sleep 1; echo '2 passed, 0 failed'", 40, [])
    if beside.outcome.ok or not beside.end().ok or beside.outcome.passed != 2 or "2 passed" not in beside.output.getvalue():
        wrong.append(f"a stage beside another: {beside.outcome}")
    for line in wrong:
        print(f"FAILED  {line}")
    print(f"{len(COUNTED) + len(CLOSED) + len(TOLD) + len(CRASHES) + 2 - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
