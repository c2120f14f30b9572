#!/usr/bin/env python3
"""Us and the other engines, alternately, on the same files, threads and token counts; a table at the end.

    make peers                                   the rows that we hold ourselves to
    make peers ONLY=llama-3.2-1b:Q4_K_M TESTS=pp512,tg ROUNDS=1
    make peers-all                               every shape in every common mix; files made for it are removed again

Tests: pp512 (prefill); tg (64 tokens generated); load (start of the process to its first token, files in memory).
pp4096 and deep: 64 tokens after 4,096, keys and values in f16 and q8_0. busy: decode beside two computing processes.
Every measurement becomes a JSON row in target/peers/results.jsonl at once. Rows of the same builds on the same file are
not measured again, so an interrupted run continues where it was.

PEERS_MODELS  the folder of the files (target/peers/models); missing ones are made there
PEERS_EXTRA   further engines with the command line of llama-bench: name=/path,name=/path
"""

import argparse
import hashlib
import os
import sys
import time
from dataclasses import replace

import report
from engines import Candle, Failed, LlamaBench, LlamaCpp, Machine, Ours, Sitting

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILT = os.path.join(ROOT, "target/peers/release")
MODELS = os.environ.get("PEERS_MODELS") or os.path.join(ROOT, "target/peers/models")
RESULTS = os.path.join(ROOT, "target/peers/results.jsonl")
NOOK = os.environ.get("INGLENOOK_NOOK") or os.path.join(ROOT, "target/release/nook")

TESTS = ("pp512", "tg", "load", "pp4096", "deep", "busy")
# Contexts of 4,096 tokens, and a busy machine, are measured on these only.
LONG = [("llama-3.2-1b", "Q4_K_M"), ("smollm3-3b", "Q4_K_M")]
ROWS = [
    ("llama-3.2-1b", "Q4_K_M"),
    ("llama-3.2-1b", "Q4_0"),
    ("llama-3.2-1b", "Q8_0"),
    ("smollm3-3b", "Q4_K_M"),
    ("gemma-3-1b", "Q4_0"),
    ("gpt-oss-20b", "MXFP4"),
    ("qwen3.5-4b", "Q4_K_M"),
    ("gemma-4-e4b", "Q4_K_M"),
    ("lfm2-1.2b", "Q4_K_M"),
    ("gemma-4-26b-a4b", "Q4_K_M"),
    ("gemma-4-26b-a4b/6", "Q4_K_M"),
    ("qwen3.6-35b-a3b", "Q4_K_M"),
    ("qwen3.6-35b-a3b/8", "Q4_K_M"),
]
ALL_SHAPES = (
    "llama-3.2-1b",
    "llama-3.1-8b",
    "smollm3-3b",
    "gemma-3-1b",
    "gemma-3-4b",
    "gpt-oss-20b",
    "qwen3-4b",
    "qwen3.5-4b",
    "qwen3.6-35b-a3b",
    "qwen3.6-35b-a3b/8",
    "gemma-4-e4b",
    "gemma-4-26b-a4b",
    "gemma-4-26b-a4b/6",
    "lfm2-1.2b",
)
ALL_MIXES = ("Q4_K_M", "Q4_0", "Q8_0")
# Prompts of this one take half a minute each: fewer rounds.
SLOW, SLOW_ROUNDS = "gpt-oss-20b", 3
BUSY_TOKENS = 16
# Where a whole model does not fit, its first layers (`/8`) still compare the engines.
# Gigabytes of memory without which the whole of a large model is not measured: it would be read from disk.
NEEDED_GB = {"gemma-4-26b-a4b": 20, "qwen3.6-35b-a3b": 26}
# Rounds with every setting of every peer: one alone may have been disturbed.
TRIAL_ROUNDS = 2


def files(everything, only):
    """(shape, mix) of the run."""
    if only:
        named = [tuple(name.split(":", 1)) for name in only.split(",")]
        wrong = [":".join(name) for name in named if len(name) != 2 or name[0] not in ALL_SHAPES]
        if wrong:
            raise SystemExit(f"no such file: {', '.join(wrong)}; NAME:MIX of {', '.join(ALL_SHAPES)}")
        return named
    if not everything:
        return [row for row in ROWS if fits(row[0]) and not is_spare(row[0])]
    mixes = {shape: ("MXFP4",) if shape == SLOW else ALL_MIXES for shape in ALL_SHAPES}
    return [(shape, mix) for shape in ALL_SHAPES if fits(shape) for mix in mixes[shape]]


def is_spare(shape):
    """Whether the shape has the first layers of one that fits whole."""
    whole, _, n_layers = shape.partition("/")
    return bool(n_layers) and fits(whole)


def fits(shape):
    """Whether the machine has the memory of a shape. Says so where it has not."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    needed = NEEDED_GB.get(shape, 0)
    if needed > total:
        print(f"left out: {shape} needs {needed} GB of memory; this machine has {total:.0f}", flush=True)
    return needed <= total


def sittings(shape, mix, tests, chosen):
    """The sittings of an engine with one file. Long contexts and busy machines only on some, unless named."""
    long = (shape, mix) in LONG or chosen
    planned = []
    if {"pp512", "tg"} & tests:
        planned.append(Sitting("short", 512 if "pp512" in tests else 0, 64 if "tg" in tests else 0))
    if "load" in tests:
        planned.append(Sitting("load", 0, 0))
    if long and {"pp4096", "deep"} & tests:
        n_generated = 64 if "deep" in tests else 0
        planned.append(Sitting("deep", 4096 if "pp4096" in tests else 0, n_generated))
        if n_generated:
            planned.append(Sitting("deep", 0, n_generated, "q8_0"))
    if long and "busy" in tests:
        planned.append(Sitting("busy", 0, BUSY_TOKENS))
    return planned


def in_round(shape, sitting, at):
    """What is left of a sitting in a round, None for nothing: slow prompts have fewer."""
    if shape != SLOW or at < SLOW_ROUNDS or not sitting.n_prompt:
        return sitting
    return replace(sitting, n_prompt=0) if sitting.n_generated else None


def fingerprint(path):
    """Tells one file from another by its length, its beginning and its end."""
    digest = hashlib.sha256(str(os.path.getsize(path)).encode())
    with open(path, "rb") as file:
        digest.update(file.read(1 << 20))
        file.seek(-min(1 << 20, os.path.getsize(path)), os.SEEK_END)
        digest.update(file.read())
    return digest.hexdigest()[:12]


def measured(engine, sitting, path, variant, machine):
    """The rows of one sitting."""
    if sitting.kind != "busy":
        return engine.measure(sitting, path, variant)
    rows = engine.measure(sitting, path, variant)
    with machine.busy():
        beside = engine.measure(sitting, path, variant)
    return rows + [row | {"test": row["test"] + " busy"} for row in beside]


class Driver:
    """Goes through files, sittings, rounds and engines; knows what is done."""

    def __init__(self, engines, machine, results):
        self.engines, self.machine, self.results = engines, machine, results
        self.failures, self.inspected = {}, {}

    def about(self, shape, mix, path):
        return {"shape": shape, "mix": mix, "file": fingerprint(path)}

    def sit(self, about, path, sitting, at):
        """One round of one sitting."""
        sitting = in_round(about["shape"], sitting, at)
        if sitting is None:
            return
        round_of = about | {"sitting": sitting.label, "round": at}
        todo = [
            (engine, variant)
            for engine in self.engines
            if engine.runs(self.inspect(path))
            for variant in self.variants(engine, about, sitting, at)
            if not self.done(round_of, sitting, engine, variant)
        ]
        if todo and not self.results.of(engine="machine", **round_of):
            self.results.add(round_of | {"engine": "machine"} | self.machine.limits())
        for engine, variant in todo:
            self.one(round_of, sitting, engine, variant, path)

    def variants(self, engine, about, sitting, at):
        """All settings in the first rounds; later those that these left in the race."""
        variants = engine.variants(sitting)
        if at < TRIAL_ROUNDS:
            return variants
        wanted = {test for test, _, _ in sitting.tests()}
        rows = [row for row in self.results.of(sitting=sitting.label, **about) if row["round"] < TRIAL_ROUNDS]
        first = [row for row in rows if row.get("test") in wanted and row["engine"] != self.engines[0].name]
        own = [row for row in first if row["engine"] == engine.name]
        return report.contenders(own, first, variants)

    def done(self, round_of, sitting, engine, variant):
        if (engine.name, variant, sitting.label, round_of["file"]) in self.failures:
            return True
        rows = self.results.of(engine=engine.name, version=engine.version, variant=variant, **round_of)
        have = {(row["test"], row["depth"], row["kv"]) for row in rows}
        return have.issuperset(sitting.tests())

    def inspect(self, path):
        if path not in self.inspected:
            self.inspected[path] = self.engines[0].inspect(path)
        return self.inspected[path]

    def operations(self, path, n_prompt):
        """Of a token of a prompt: a multiplication and an addition per weight."""
        return 2 * report.multiplied_per_token(self.inspect(path), n_prompt)

    def one(self, round_of, sitting, engine, variant, path):
        began = time.monotonic()
        what = f"{round_of['shape']}:{round_of['mix']} {sitting.label}, round {round_of['round'] + 1}, {engine.name}"
        what += f" ({variant})" if variant else ""
        try:
            rows = measured(engine, sitting, path, variant, self.machine)
        except Failed as failure:
            self.failures[engine.name, variant, sitting.label, round_of["file"]] = str(failure)
            print(f"{what}: failed: {failure}", flush=True)
            return
        for row in rows:
            if engine is self.engines[0] and row["test"].startswith("pp"):
                row["operations_per_token"] = self.operations(path, sitting.n_prompt)
            self.results.add(round_of | {"engine": engine.name, "version": engine.version, "variant": variant} | row)
        figures = ", ".join(f"{row['test']} {report.cell(report.figure([row]), unit(row))}" for row in rows)
        print(f"{what}: {figures} ({time.monotonic() - began:.0f} s)", flush=True)


def unit(row):
    return "ms" if "ms" in row else "tok/s"


class File:
    """A file of a shape, made where it is missing."""

    def __init__(self, ours, shape, mix, keep=True):
        self.ours, self.shape, self.mix, self.keep = ours, shape, mix, keep
        self.at, self.made = os.path.join(MODELS, f"{shape.replace('/', '-')}-{mix}.gguf"), False

    def path(self):
        if not os.path.exists(self.at):
            print(f"making {self.at}", flush=True)
            os.makedirs(MODELS, exist_ok=True)
            self.ours.make(self.shape, self.mix, self.at)
            self.made = True
        return self.at

    def __enter__(self):
        return self.path()

    def __exit__(self, *_):
        if self.made and not self.keep:
            os.remove(self.at)


def rounds(driver, options, chosen):
    """All rounds over these (shape, mix, path)."""
    tests = set(options.tests.split(","))
    for at in range(options.rounds):
        for shape, mix, path in chosen:
            for sitting in sittings(shape, mix, tests, bool(options.only)):
                driver.sit(driver.about(shape, mix, path), path, sitting, at)


def extra_engines(named, threads):
    for pair in filter(None, named.split(",")):
        name, _, program = pair.partition("=")
        if not os.access(program, os.X_OK):
            raise SystemExit(f"PEERS_EXTRA: {pair}: no program there; name=/path/of/llama-bench")
        yield LlamaBench(name, program, threads)


def chosen_peers(peers, named):
    """Those that are named, all where none is."""
    names = named.split(",") if named else [peer.name for peer in peers]
    unknown = set(names) - {peer.name for peer in peers}
    if unknown:
        raise SystemExit(f"no such engine: {', '.join(sorted(unknown))}; of {', '.join(peer.name for peer in peers)}")
    return [peer for peer in peers if peer.name in names]


def physical_cores():
    """Cores, threads that share one counted once."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            blocks = info.read().split("\n\n")
    except OSError:
        blocks = []
    ids = ("physical id", "core id")
    pairs = {tuple(line for line in block.splitlines() if line.startswith(ids)) for block in blocks}
    return len({pair for pair in pairs if len(pair) == 2}) or os.cpu_count() or 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every shape in every common mix")
    parser.add_argument("--only", help="files: NAME:MIX,NAME:MIX")
    parser.add_argument("--tests", default=",".join(TESTS), help="of " + ",".join(TESTS))
    parser.add_argument("--engines", help="of the peers only these: llama.cpp,candle and what PEERS_EXTRA names")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=physical_cores())
    parser.add_argument("--table", action="store_true", help="only show what there is")
    options = parser.parse_args()
    unknown = set(options.tests.split(",")) - set(TESTS)
    if unknown or options.rounds < 1 or options.threads < 1:
        parser.error(f"tests are {', '.join(TESTS)}; rounds and threads at least 1")
    return options


def main():
    options = arguments()
    ours = Ours(NOOK, options.threads, os.path.join(ROOT, "target/peers/data"))
    machine = Machine(os.path.join(BUILT, "peer-machine"), options.threads)
    kept = os.path.join(ROOT, "target/peers/kept")
    os.makedirs(kept, exist_ok=True)
    llama_cpp = LlamaCpp(os.path.join(BUILT, "peer-llama"), options.threads, kept)
    engines = [ours, llama_cpp]
    # One that is not wanted need not be built.
    if not options.engines or Candle.name in options.engines.split(","):
        engines.append(Candle(os.path.join(BUILT, "peer-candle"), options.threads))
    engines += extra_engines(os.environ.get("PEERS_EXTRA", ""), options.threads)
    engines = engines[:1] + chosen_peers(engines[1:], options.engines)
    run_id = "-".join([ours.version, llama_cpp.version, str(options.threads)])
    results = report.Results(RESULTS, run_id)
    driver = Driver(engines, machine, results)
    if options.all:
        for shape, mix in files(True, options.only):
            with File(ours, shape, mix, keep=False) as path:
                rounds(driver, options, [(shape, mix, path)])
    elif not options.table:
        # Rounds outside, files inside: a run that is ended early has measured every file.
        chosen = files(False, options.only)
        rounds(driver, options, [(shape, mix, File(ours, shape, mix).path()) for shape, mix in chosen])
    table = report.markdown(report.lines(results))
    with open(os.path.join(ROOT, "target/peers/table.md"), "w", encoding="utf-8") as file:
        file.write(table + "\n")
    print(table)
    for (name, variant, label, _), why in driver.failures.items():
        print(f"failed: {name} ({variant}), {label}: {why}")
    return 1 if driver.failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\ninterrupted: the same command goes on from here", flush=True)
        sys.exit(130)
    except Failed as failure:
        sys.exit(f"error: {failure}")
