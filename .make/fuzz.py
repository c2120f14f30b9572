#!/usr/bin/env python3
"""Runs the fuzz targets of tests/fuzz with libFuzzer, one after another, and prints a table.

New inputs are kept in target/fuzz/corpus, and what broke an invariant in target/fuzz/artifacts. The seeds are the corpus
of the repository and files that other tests have. Stable Rust is enough: the flags only ask LLVM for coverage counters.
"""

import argparse
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FUZZ = os.path.join(ROOT, "tests", "fuzz")
TARGETS = sorted(name[:-3] for name in os.listdir(os.path.join(FUZZ, "src", "bin")))

# Folders with more seeds. Files beyond MAX_INPUT_BYTES are left out by libFuzzer.
MORE_SEEDS = {
    "gguf": ["tests/reference/embeddings", "tests/reference/malformed"],
    "image": ["tests/reference/vision/images"],
    "pdf": ["src-tauri/crates/pdf-pages/tests/files", "src-tauri/crates/documents/fixtures/pdf"],
    "template": ["tests/reference/templates/jinja"],
}

MAX_INPUT_BYTES = 64 << 10
# An input that takes longer is a finding.
INPUT_TIMEOUT_S = 10
# Beyond what targets allow their inputs, for what libFuzzer itself keeps.
MAX_MEMORY_MB = 2048

# As cargo-fuzz sets them, without a sanitizer: there is hardly any unsafe code, and a stack as deep as it ships.
COVERAGE = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-sanitizer-coverage-stack-depth",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
]


def host():
    lines = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout.splitlines()
    return next(line.split()[1] for line in lines if line.startswith("host:"))


def build(names, target_dir):
    """Returns the folder of the programs. With --target the flags leave build scripts and macros alone."""
    triple, features = host(), ",".join(["libfuzzer", *names])
    command = ["cargo", "build", "--locked", "--profile", "fuzz", "--package", "fuzz", "--bins", "--no-default-features",
               "--features", features]
    env = dict(os.environ, RUSTFLAGS=" ".join(COVERAGE), CARGO_TARGET_DIR=target_dir)
    subprocess.run([*command, "--target", triple], cwd=ROOT, env=env, check=True)
    return os.path.join(target_dir, triple, "fuzz")


class Outcome:
    """What a target's runs said."""

    def __init__(self):
        self.executions, self.seconds, self.edges = 0, 0.0, 0
        self.findings = []

    def read(self, text, artifacts):
        if found := re.search(r"stat::number_of_executed_units:\s*(\d+)", text):
            self.executions += int(found[1])
        elif found := re.findall(r"^#(\d+)\t", text, re.M):
            self.executions += int(found[-1])
        self.edges = max([self.edges, *map(int, re.findall(r"cov: (\d+)", text))])
        if path := re.search(r"Test unit written to (\S+)", text):
            cause = re.search(r"^(?:PANIC: .*(?:\n.+)?|OUT OF MEMORY.*|==\d+== ?ERROR.*|.*ERROR: libFuzzer.*)", text, re.M)
            self.findings.append((os.path.relpath(path[1], ROOT), cause[0] if cause else "ended"))


def fuzz(name, folder, seconds):
    """Starts again after a finding, until the time is over."""
    corpus, artifacts, log = (os.path.join(folder, it, name) for it in ("corpus", "artifacts", "logs"))
    for path in (corpus, artifacts, os.path.dirname(log)):
        os.makedirs(path, exist_ok=True)
    own = [os.path.join(FUZZ, it, name) for it in ("corpus", "regressions")]
    seeds = [path for path in own + [os.path.join(ROOT, it) for it in MORE_SEEDS.get(name, [])] if os.path.isdir(path)]
    options = [
        f"-max_len={MAX_INPUT_BYTES}", f"-timeout={INPUT_TIMEOUT_S}", f"-rss_limit_mb={MAX_MEMORY_MB}",
        f"-artifact_prefix={artifacts}/", "-print_final_stats=1",
    ]
    dictionary = os.path.join(FUZZ, "dictionaries", f"{name}.dict")
    if os.path.exists(dictionary):
        options.append(f"-dict={dictionary}")
    env = dict(os.environ)
    if os.path.isdir("/dev/shm"):
        env["TMPDIR"] = "/dev/shm"
    outcome, began = Outcome(), time.monotonic()
    while (left := seconds - (time.monotonic() - began)) > 1:
        command = [os.path.join(folder, "bin", f"fuzz-{name}"), f"-max_total_time={int(left)}", *options]
        with open(log, "w+", encoding="utf-8", errors="replace") as out:
            ended = subprocess.run([*command, corpus, *seeds], stdout=out, stderr=out, env=env)
            out.seek(0)
            outcome.read(out.read(), artifacts)
        if ended.returncode == 0:
            break
    outcome.seconds = time.monotonic() - began
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="targets, with commas: " + ",".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    arguments = parser.parse_args()
    names = [name for name in arguments.only.split(",") if name] or TARGETS
    if unknown := [name for name in names if name not in TARGETS]:
        sys.exit(f"no target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    target_dir = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    folder = os.path.join(target_dir, "fuzz")
    os.makedirs(folder, exist_ok=True)
    programs = build(names, target_dir)
    link = os.path.join(folder, "bin")
    if os.path.islink(link):
        os.unlink(link)
    os.symlink(programs, link)
    print(f"{'target':<12} {'executions':>12} {'per second':>10} {'edges':>8} {'findings':>8}", flush=True)
    findings = []
    for name in names:
        outcome = fuzz(name, folder, arguments.seconds)
        rate = outcome.executions / max(outcome.seconds, 0.001)
        print(f"{name:<12} {outcome.executions:>12,} {rate:>10,.0f} {outcome.edges:>8,} {len(outcome.findings):>8}",
              flush=True)
        findings += outcome.findings
    for path, cause in findings:
        print(f"\n{path}\n  {cause}")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
