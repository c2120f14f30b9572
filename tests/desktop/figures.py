#!/usr/bin/env python3
"""What the packages weigh and what the window costs, as a table in target/figures.md: `make figures`.

Sizes are of the packages that `make bundle` left in target/release/bundle, speed and memory those of measure.py on the
release build, on this machine, medians.
"""

import glob
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MB = 1_000_000


def newest(kind):
    found = glob.glob(os.path.join(ROOT, f"target/release/bundle/{kind}/*.{kind}"))
    if not found:
        sys.exit(f"There is no .{kind} in target/release/bundle: make bundle")
    return max(found, key=os.path.getmtime)


def installed_bytes(deb):
    """Of every file that the package lays down."""
    listed = subprocess.run(["dpkg-deb", "--contents", deb], check=True, capture_output=True, text=True).stdout
    return sum(int(line.split()[2]) for line in listed.splitlines() if line.startswith("-"))


def main():
    deb, rpm = newest("deb"), newest("rpm")
    measure = [sys.executable, os.path.join(ROOT, "tests/desktop/measure.py"), "--json"]
    window = json.loads(subprocess.run(measure, check=True, capture_output=True, text=True).stdout)
    rows = [
        (".deb, the starter model inside", f"{os.path.getsize(deb) / MB:.1f} MB"),
        (".rpm, the starter model inside", f"{os.path.getsize(rpm) / MB:.1f} MB"),
        ("installed", f"{installed_bytes(deb) / MB:.1f} MB"),
        ("start to a page that takes input, files cold", seconds(window.get("cold_start_ms"))),
        ("the same, files warm", seconds(window["warm_start_ms"])),
        ("memory of all processes (PSS, web view included) before the first answer", f"{window['pss_before_mib']} MiB"),
        ("the same after it, the model loaded", f"{window['pss_after_answer_mib']} MiB"),
        (f"processor time in {window['idle_watched_s']:.0f} s, untouched", f"{window['idle_cpu_s']:.2f} s"),
        ("devices of GPUs held open", str(window["gpu_devices"])),
    ]
    table = "| | |\n|---|---|\n" + "".join(f"| {what} | {figure} |\n" for what, figure in rows)
    with open(os.path.join(ROOT, "target/figures.md"), "w") as out:
        out.write(table)
    print(table, end="")


def seconds(ms):
    return "not measured: the page cache could not be dropped" if ms is None else f"{ms / 1000:.2f} s"


if __name__ == "__main__":
    main()
