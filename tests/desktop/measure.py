#!/usr/bin/env python3
"""What the window costs: time from start to a page that takes input, memory, and CPU when it is left alone.

    cargo build --release --package inglenook && python3 tests/desktop/measure.py [--idle SECONDS] [--json]

- cold_start_ms: from the start of the process to the composer, files not in the page cache. That needs root.
- warm_start_ms: the same with files in the page cache; both are medians of five.
- idle_cpu_s: CPU time of all its processes over 60 s (or --idle), the window open after an answer.
- pss_mib: memory of all its processes, shared pages divided among those who share them.
- gpu_devices: devices of GPUs that the program itself (not the web view) holds open then.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time

from webdriver import Display, Window, until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("INGLENOOK_WINDOW", os.path.join(ROOT, "target/release/inglenook"))
COMPOSER = '[data-testid="composer"]'
ANSWERED = '[data-testid="message-assistant"][data-state="complete"]'
STARTS = 5
TICKS = os.sysconf("SC_CLK_TCK")
# Of `slowdown`, in seconds of processor time.
TYPICAL_WORK_S = 0.067


def started_at_ms(pid):
    """When the process began, in the page's own clock: milliseconds since the epoch."""
    with open(f"/proc/{pid}/stat") as stat:
        ticks = int(stat.read().rsplit(")", 1)[1].split()[19])
    with open("/proc/stat") as stat:
        boot_s = next(int(line.split()[1]) for line in stat if line.startswith("btime"))
    # btime is in whole seconds: the uptime gives the fraction.
    with open("/proc/uptime") as uptime:
        boot = time.time() - float(uptime.read().split()[0])
    assert abs(boot - boot_s) < 2, "the clocks disagree"
    return (boot + ticks / TICKS) * 1000


def cpu_s(pids):
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        except FileNotFoundError:
            pass
    return total / TICKS


def slowdown():
    """How many times as long as on the idle machine of docs/BENCHMARKS.md the same work takes here now, at least 1."""

    def typical_work_s():
        began, state = time.process_time(), 1
        for _ in range(1_000_000):
            state = (state * 3 + 1) & 0xFFFF
        return time.process_time() - began

    return max(1, statistics.median(typical_work_s() for _ in range(9)) / TYPICAL_WORK_S)


def pss_mib(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            total += next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
    return total / 1024


def gpu_devices(pids):
    """What the program and its workers have open under /dev that only a GPU has."""
    held = set()
    for pid in pids:
        if os.path.basename(os.readlink(f"/proc/{pid}/exe")) != os.path.basename(PROGRAM):
            continue
        for number in os.listdir(f"/proc/{pid}/fd"):
            try:
                path = os.readlink(f"/proc/{pid}/fd/{number}")
            except FileNotFoundError:
                continue
            if path.startswith(("/dev/dri/", "/dev/nvidia", "/dev/kfd")):
                held.add(path)
    return len(held)


def forget_files():
    try:
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w") as drop:
            drop.write("3")
        return True
    except OSError:
        return False


def start(display, data_dir):
    """A window, and how long it took until its composer was painted."""
    window = Window(display, PROGRAM, data_dir)
    until(lambda: window.exists(COMPOSER), "the composer is there")
    script = """
      const paint = performance.getEntriesByName('interactive')[0]
        ?? performance.getEntriesByName('first-contentful-paint')[0];
      return paint ? performance.timeOrigin + paint.startTime : null;
    """
    at = until(lambda: window.run(script), "the page says when it was painted")
    return window, at - started_at_ms(window.program_pid())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--idle", type=float, default=60, help="seconds to watch an untouched window")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    display, data_dir = Display(), tempfile.mkdtemp(prefix="inglenook-measure-")
    figures = {}
    try:
        for name, cold in (("warm_start_ms", False), ("cold_start_ms", True)):
            took = []
            for _ in range(STARTS):
                if cold and not forget_files():
                    break
                window, ms = start(display, data_dir)
                took.append(ms)
                window.close()
            if took:
                figures[name] = round(statistics.median(took))

        window, _ = start(display, data_dir)
        time.sleep(3)
        figures["pss_before_mib"] = round(pss_mib(window.tree()))
        if window.exists('[data-testid="welcome"]'):
            window.skip_welcome()
        window.type(COMPOSER, "Hello!")
        window.press("Enter")
        until(lambda: window.exists(ANSWERED), "an answer", 120)
        time.sleep(10)
        pids = window.tree()
        figures["pss_after_answer_mib"] = round(pss_mib(pids))
        before = cpu_s(pids)
        time.sleep(args.idle)
        figures["idle_cpu_s"] = round(cpu_s(pids) - before, 2)
        figures["idle_watched_s"] = args.idle
        figures["processes"] = len(pids)
        figures["gpu_devices"] = gpu_devices(pids)
        window.close()
    finally:
        display.close()
        shutil.rmtree(data_dir, ignore_errors=True)
    if args.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:22} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
