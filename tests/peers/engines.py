"""The engines: what each is started with, and what it says.

A sitting is one test, or several that share a process. `short`: a prompt of 512 tokens, 64 generated. `deep`: 4,096,
and 64 after them. `load`: start to first token. `busy`: a few tokens, alone and beside two computing processes.
Every engine is a class with `name`, `version`, `variants(sitting)` and `measure(sitting, file, variant)`; a
measurement is a list of rows: test, depth, kv, tok_s or ms, rss_peak_mb.
"""

import hashlib
import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass

DEEP = 4096
SHORT_PROMPT = "The quick brown fox"
# Tokens that a start with a short prompt has room for.
SHORT_CONTEXT = 512
LIMIT_S = 1800


@dataclass(frozen=True)
class Sitting:
    """What one process is asked for: tokens of a prompt and generated ones, 0 leaving a test out."""

    kind: str  # short, deep, load, busy
    n_prompt: int
    n_generated: int
    kv: str = "f16"

    @property
    def label(self):
        return f"{self.kind} {self.kv}" if self.kind == "deep" else self.kind

    def tests(self):
        """(test, depth, kv) of the rows that it makes."""
        if self.kind == "load":
            return [("load", 0, self.kv)]
        if self.kind == "busy":
            quiet = f"tg{self.n_generated}"
            return [(quiet, 0, self.kv), (f"{quiet} busy", 0, self.kv)]
        depth = DEEP if self.kind == "deep" else 0
        prompt = [(f"pp{self.n_prompt}", 0, self.kv)] if self.n_prompt else []
        return prompt + ([(f"tg{self.n_generated}", depth, self.kv)] if self.n_generated else [])


class Failed(Exception):
    """An engine did not do it; says why."""


@dataclass(frozen=True)
class Run:
    """One process that has ended."""

    output: str
    first_line_ms: float
    rss_peak_mb: float


def run(command, env=None):
    """Runs a command to its end; Failed where it fails. Time runs from its start, as its user's clock does."""
    with tempfile.TemporaryFile() as errors:
        began = time.monotonic()
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=env)
        except OSError as error:
            raise Failed(f"{command[0]}: {error}") from error
        try:
            first = process.stdout.readline()
            first_line_ms = (time.monotonic() - began) * 1000
            output = (first + process.stdout.read()).decode(errors="replace")
            # As wait() does, with what the process used.
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            process.stdout.close()
        if process.returncode != 0:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().splitlines()
            raise Failed(f"{' '.join(command)} ended with {process.returncode}: {' / '.join(said[-3:])}")
        return Run(output, first_line_ms, used.ru_maxrss / 1024)


def version_of(program):
    """The program's own bytes: a figure is of that build."""
    try:
        with open(program, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:12]
    except OSError as error:
        raise Failed(f"{program} is not built ({error.strerror}): make peers builds it") from error


def json_lines(output):
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def speed(row):
    """Tokens per second of a row of ours or of a peer's."""
    tok_s = row["tok_s"]
    return tok_s["median"] if isinstance(tok_s, dict) else tok_s


def speeds(ran, kv):
    """The rows that a process printed, one JSON value on a line."""
    rows = []
    for row in (row for row in json_lines(ran.output) if "tok_s" in row):
        kept = {"test": row["test"], "depth": row["depth"], "kv": kv, "tok_s": speed(row)}
        if "bytes_per_token" in row:
            kept["bytes_per_token"] = row["bytes_per_token"]
        rows.append(kept | {"rss_peak_mb": ran.rss_peak_mb})
    return rows


def load(ran, kv):
    """The row of a start: the first line came with the first token."""
    if not json_lines(ran.output):
        raise Failed("no first token came")
    return [{"test": "load", "depth": 0, "kv": kv, "ms": ran.first_line_ms, "rss_peak_mb": ran.rss_peak_mb}]


def touch(path):
    """Reads a file, so that a start finds it in memory."""
    with open(path, "rb", buffering=0) as file:
        while file.read(16 << 20):
            pass


class Engine:
    """What all have in common: a sitting becomes commands, their output rows."""

    env = None

    def runs(self, _inspected):
        """Whether it reads a file, of which `nook inspect` says this."""
        return True

    def measure(self, sitting, path, variant):
        if sitting.kind == "load":
            touch(path)
        rows = []
        for command in self.commands(sitting, path, variant):
            ran = run(command, self.env)
            rows += load(ran, sitting.kv) if sitting.kind == "load" else self.rows(ran, sitting)
        return rows


class Ours(Engine):
    name = "inglenook"

    def __init__(self, nook, threads, data_dir):
        self.nook, self.threads, self.data_dir = nook, threads, data_dir
        self.version = version_of(nook)

    def variants(self, _sitting):
        return [""]

    def measure(self, sitting, path, variant):
        # What a first start leaves for the next is there: the start that is timed is a warm one.
        if sitting.kind == "load":
            run(self.commands(sitting, path, variant)[0])
        return super().measure(sitting, path, variant)

    def rows(self, ran, sitting):
        return speeds(ran, sitting.kv)

    def commands(self, sitting, path, _variant):
        common = ["--threads", str(self.threads), "--kv", sitting.kv, "--data-dir", self.data_dir, "--json"]
        if sitting.kind == "load":
            short = ["--max-tokens", "1", "--temperature", "0", "--ignore-eos", "--ctx", str(SHORT_CONTEXT)]
            return [[self.nook, "run", "--model", path, "--raw", "--prompt", SHORT_PROMPT, *short, *common]]

        def bench(n_prompt, n_generated, *more):
            tokens = ["--prompt", str(n_prompt), "--gen", str(n_generated), "--repeat", "1", *more]
            return [self.nook, "bench", "--model", path, *tokens, *common]

        if sitting.kind != "deep":
            return [bench(sitting.n_prompt, sitting.n_generated)]
        # Copied pages are as slow to read as computed ones, and soon made.
        prompt = [bench(sitting.n_prompt, 0)] if sitting.n_prompt else []
        deep = ["--depth", str(DEEP), "--copied-depth"]
        return prompt + ([bench(0, sitting.n_generated, *deep)] if sitting.n_generated else [])

    def inspect(self, path):
        """What the file holds, as `nook inspect` says it."""
        return json.loads(run([self.nook, "inspect", path, "--json", "--data-dir", self.data_dir]).output)

    def make(self, shape, mix, path):
        """A file of random weights in that shape."""
        made = path + ".part"
        if os.path.exists(made):
            os.remove(made)
        one = ["--prompt", "1", "--gen", "0", "--repeat", "1", "--json", "--data-dir", self.data_dir]
        run([self.nook, "bench", "--shape", f"{shape}:{mix}", "--keep", made, *one])
        os.replace(made, path)


class LlamaCpp(Engine):
    """llama.cpp as Cargo's registry carries it, in `peer-llama`."""

    name = "llama.cpp"
    FLAGS = {
        "repacked": [],
        "mapped": ["--no-repack"],
        "repacked, no flash attention": ["--no-flash"],
        "mapped, no flash attention": ["--no-repack", "--no-flash"],
    }

    def __init__(self, program, threads, kept_dir):
        self.program, self.threads, self.kept_dir = program, threads, kept_dir
        self.version = version_of(program)

    def variants(self, sitting):
        # A start is over before attention counts; values that are quantised need flash attention.
        flash_only = sitting.kind in ("load", "busy") or sitting.kv != "f16"
        return [name for name in self.FLAGS if not (flash_only and "no flash" in name)]

    def rows(self, ran, sitting):
        return speeds(ran, sitting.kv)

    def commands(self, sitting, path, variant):
        common = ["--threads", str(self.threads), "--kv", sitting.kv, *self.FLAGS[variant]]
        tokens = ["--prompt", str(sitting.n_prompt), "--gen", str(sitting.n_generated)]
        if sitting.kind == "load":
            tokens = ["--first-token", "--prompt", "0", "--gen", "0", "--ctx", str(SHORT_CONTEXT)]
        if sitting.kind == "deep":
            tokens = ["--prompt", "0", "--gen", str(sitting.n_generated), "--depth", str(DEEP)]
            # What is not a test itself is computed once, and read again in later rounds.
            kept = f"{os.path.basename(path)}-{sitting.kv}-{variant}-{self.version}".replace(" ", "")
            tokens += ["--time-depth"] if sitting.n_prompt else ["--keep", os.path.join(self.kept_dir, kept)]
        return [[self.program, "--model", path, *tokens, *common]]


class Candle(Engine):
    """candle's quantised Llama, in `peer-candle`: short contexts of files of that family."""

    name = "candle"

    def __init__(self, program, threads):
        self.program, self.threads = program, threads
        self.version = version_of(program)
        self.env = {**os.environ, "RAYON_NUM_THREADS": str(threads)}

    def runs(self, inspected):
        """Files of one architecture; it does not read MXFP4."""
        return inspected["architecture"] == "llama" and "MXFP4" not in inspected["dtypes"]

    def variants(self, sitting):
        return [] if sitting.kind in ("load", "deep") else ["f32 context"]

    def rows(self, ran, sitting):
        return speeds(ran, sitting.kv)

    def commands(self, sitting, path, _variant):
        tokens = ["--prompt", str(sitting.n_prompt), "--gen", str(sitting.n_generated)]
        return [[self.program, "--model", path, "--threads", str(self.threads), *tokens]]


class LlamaBench(Engine):
    """A program with the command line of `llama-bench`, named from outside."""

    def __init__(self, name, program, threads):
        self.name, self.program, self.threads = name, program, threads
        self.version = version_of(program)
        said = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60, check=False)
        self.known = options_in(said.stdout + said.stderr)

    def variants(self, sitting):
        if sitting.kind == "load":
            return []
        return ["as it is"] + (["repacked"] if "-rtr" in self.known else [])

    def commands(self, sitting, path, variant):
        common = ["-m", path, "-t", str(self.threads), "-fa", "1", "-ctk", sitting.kv, "-ctv", sitting.kv]
        common += ["-o", "json"] + (["-rtr", "1"] if variant == "repacked" else [])

        def bench(*tokens):
            return [self.program, *common, *tokens]

        if sitting.kind != "deep":
            # Its own warming is one token: the first of two repetitions isn't counted.
            return [bench("-p", str(sitting.n_prompt), "-n", str(sitting.n_generated), "-r", "2")]
        commands = [bench("-p", str(sitting.n_prompt), "-n", "0", "-r", "1")] if sitting.n_prompt else []
        n = str(sitting.n_generated)
        if not sitting.n_generated:
            return commands
        if "-gp" in self.known:
            commands.append(bench("-p", "0", "-n", "0", "-gp", f"{DEEP},{n}", "-r", "1"))
        else:
            commands.append(bench("-p", "0", "-n", n, "-d", str(DEEP), "-r", "1"))
        return commands

    def rows(self, ran, sitting):
        return [row | {"rss_peak_mb": ran.rss_peak_mb} for row in bench_rows(ran.output, sitting.kv)]


def options_in(help_text):
    """The options that a help text names."""
    words = help_text.replace(",", " ").split()
    return {word for word in words if word.startswith("-")}


def bench_rows(output, kv):
    """Rows out of `llama-bench -o json`: the last sample of each test."""
    rows = []
    for said in json.loads(output[output.index("["):]):
        n_prompt, n_generated = said["n_prompt"], said["n_gen"]
        depth = said.get("n_depth", 0) or (n_prompt if n_generated else 0)
        test = f"tg{n_generated}" if n_generated else f"pp{n_prompt}"
        rows.append({"test": test, "depth": depth, "kv": kv, "tok_s": said["samples_ts"][-1]})
    return rows


class Machine:
    """What this machine gives at most, and work beside that keeps it busy."""

    def __init__(self, program, threads):
        self.program, self.threads = program, threads

    def limits(self):
        return json_lines(run([self.program, "limits", "--threads", str(self.threads)]).output)[0]

    def busy(self, n_processes=2):
        return Busy(self.program, n_processes)


class Busy:
    """Processes that compute until the block is left."""

    def __init__(self, program, n_processes):
        self.program, self.n_processes, self.running = program, n_processes, []

    def __enter__(self):
        self.running = [subprocess.Popen([self.program, "spin"]) for _ in range(self.n_processes)]

    def __exit__(self, *_):
        for process in self.running:
            process.kill()
            process.wait()
