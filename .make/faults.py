#!/usr/bin/env python3
"""The failure cases F01 to F81, each by the tests that tests/failure-cases.tsv names.

A case is shown where all its tests pass. What is not shown is named with its test; a test that cannot run here, and so is
skipped, is named too. The last line is `N/81`. `--only F18,F21` runs some cases; `--without desktop,browser` leaves kinds
of tests out, and their cases count as not shown.
"""

import argparse
import csv
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join(ROOT, "tests/failure-cases.tsv")
N_CASES = 81

RUST = re.compile(r"^test (?:\S+::)?(?P<name>\w+)(?: - should panic)? \.\.\. (?P<verdict>ok|FAILED|ignored)")
SKIPPED = re.compile(r"^(?:PARTLY )?SKIPPED (?:\S+::)?(?P<name>\w+): (?P<reason>.+)$")
SCENARIO = re.compile(r"^(?P<verdict>ok|FAILED) +(?P<name>\w+)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def kind_of(file):
    if file.endswith(".rs"):
        return "rust"
    return {"ui": "page", "tests/desktop": "desktop", "tests/browser": "browser"}.get(
        file.split("/")[0] if file.startswith("ui/") else os.path.dirname(file), "unknown")


def lines_of(command, cwd=ROOT):
    """Runs a command with its output shown; gives its lines."""
    print("──", " ".join(command[:8]), "…" if len(command) > 8 else "", flush=True)
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace")
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        yield COLOUR.sub("", line).rstrip("\n")
    process.wait()


def run_rust(rows, verdicts, skips):
    names = sorted({row["test"] for row in rows})
    command = ["cargo", "test", "--locked", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast", "--", *names]
    for line in lines_of(command):
        if match := RUST.match(line):
            verdicts[match["name"]] = match["verdict"] == "ok" and verdicts.get(match["name"], True)
        elif match := SKIPPED.match(line):
            skips[match["name"]] = match["reason"]


def run_page(rows, verdicts, _skips):
    for file in sorted({row["file"] for row in rows}):
        of_file = [row["test"] for row in rows if row["file"] == file]
        for name in of_file:
            command = ["npx", "vitest", "run", file.removeprefix("ui/"), "-t", name]
            summary = [line for line in lines_of(command, os.path.join(ROOT, "ui")) if "Tests" in line]
            verdicts[name] = any("passed" in line and "failed" not in line for line in summary)


def run_scenarios(program):
    def run(rows, verdicts, _skips):
        for line in lines_of([*program, *sorted({row["test"] for row in rows})]):
            if match := SCENARIO.match(line):
                verdicts[match["name"]] = match["verdict"] == "ok"
    return run


RUNNERS = {
    "rust": run_rust,
    "page": run_page,
    "desktop": run_scenarios(["python3", "tests/desktop/run.py"]),
    "browser": run_scenarios(["node", "tests/browser/run.mjs"]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="comma-separated cases: F18,F21")
    parser.add_argument("--without", default="", help="comma-separated kinds: " + ", ".join(RUNNERS))
    args = parser.parse_args()
    with open(TABLE, encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    cases = args.only.split(",") if args.only else [f"F{n:02}" for n in range(1, N_CASES + 1)]
    rows = [row for row in rows if row["case"] in cases]
    verdicts, skips = {}, {}
    for kind, run in RUNNERS.items():
        of_kind = [row for row in rows if kind_of(row["file"]) == kind]
        if of_kind and kind not in args.without.split(","):
            run(of_kind, verdicts, skips)
    shown = 0
    print()
    for case in cases:
        of_case = [row for row in rows if row["case"] == case]
        failed = [row for row in of_case if not verdicts.get(row["test"], False)]
        shown += bool(of_case) and not failed
        if not of_case:
            print(f"{case}: not shown: the table names no test")
        for row in failed:
            what = "failed" if row["test"] in verdicts else "did not run"
            print(f"{case}: not shown: {row['test']} ({row['file']}) {what}")
        for row in of_case:
            if row["test"] in skips:
                print(f"{case}: skipped in part: {row['test']}: {skips[row['test']]}")
    print(f"{shown}/{len(cases)}")
    return 0 if shown == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
