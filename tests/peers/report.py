"""Rows into a table: medians, spread, ratios, shares of what the machine gives. Knows of the engines only which is ours."""

import json
import os
from statistics import median

# A variant that is this far behind another of its engine in every test is not run again.
NEAR = 0.95
# So is one this far behind the best peer.
FAR = 0.5
OURS = "inglenook"


# What makes two rows the same measurement: the later one counts.
IDENTITY = ("shape", "mix", "file", "sitting", "round", "engine", "version", "variant", "test", "depth", "kv")


class Results:
    """Rows of one run's versions, in a file that grows by a line at a time."""

    def __init__(self, path, run_id):
        self.path, self.run_id, self.by_identity = path, run_id, {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for row in map(parsed, file):
                    if row and row["run"] == run_id:
                        self.keep(row)

    @property
    def rows(self):
        return list(self.by_identity.values())

    def keep(self, row):
        self.by_identity[tuple(row.get(key) for key in IDENTITY)] = row

    def add(self, row):
        row = {"run": self.run_id, **row}
        self.keep(row)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        # A line that a crash cut short is ended before the next begins.
        with open(self.path, "a+b") as file:
            file.seek(0, os.SEEK_END)
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(json.dumps(row).encode() + b"\n")

    def of(self, **wanted):
        """The rows that have all these values."""
        return [row for row in self.rows if all(row.get(key) == value for key, value in wanted.items())]


def parsed(line):
    """A row; None for a line that a crash cut short."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and "run" in row else None


def worth(row):
    """Greater is better, whatever was measured."""
    return row["tok_s"] if "tok_s" in row else 1 / row["ms"]


def contenders(own, rivals, variants):
    """The variants of an engine that go on after the first rounds.

    Each was near its engine's best in some test, and not always far behind the best of all peers.
    """
    if not own:
        return variants
    best_own, best = best_of(own), best_of(rivals)
    near = {row["variant"] for row in own if worth(row) >= NEAR * best_own[row["test"]]}
    far = {row["variant"] for row in own if all_far(own, row["variant"], best)}
    return [variant for variant in variants if variant in near - far]


def best_of(rows):
    """The best of each test."""
    best = {}
    for row in rows:
        best[row["test"]] = max(best.get(row["test"], 0), worth(row))
    return best


def all_far(rows, variant, best):
    return all(worth(row) < FAR * best[row["test"]] for row in rows if row["variant"] == variant)


def figure(rows):
    """(median, least, most) of what rows of one kind measured."""
    values = [row["tok_s"] if "tok_s" in row else row["ms"] for row in rows]
    return median(values), min(values), max(values)


def best_variant(rows):
    """The rows of that variant whose median is best; those with fewer rounds than others don't stand."""
    by_variant = {}
    for row in rows:
        by_variant.setdefault(row["variant"], []).append(row)
    most = max(len(some) for some in by_variant.values())
    full = [some for some in by_variant.values() if len(some) == most]
    return max(full, key=lambda some: median(map(worth, some)))


def multiplied_per_token(inspected, n_prompt):
    """Weights that a token of a prompt is multiplied with.

    Of experts the chosen ones count, of the output head its share of the one position. Embeddings are only looked up.
    """
    metadata, tensors = inspected["metadata"], inspected["tensors"]

    def fact(ending):
        return next((value for key, value in metadata.items() if key.endswith(ending)), 0)

    n_experts, n_used = fact(".expert_count"), fact(".expert_used_count")
    head = "output.weight" if any(t["name"] == "output.weight" for t in tensors) else "token_embd.weight"
    total = 0.0
    for tensor in tensors:
        n = 1
        for length in tensor["shape"]:
            n *= length
        name = tensor["name"]
        if name == head:
            total += n / n_prompt
        elif len(tensor["shape"]) < 2 or not name.startswith("blk.") or not name.endswith(".weight"):
            continue
        elif "_exps." in name:
            total += n / n_experts * n_used
        else:
            total += n
    return total


def shares(rows, limits, per_token):
    """(what ours did in 10⁹ per second, its median share of the limit of the same round); None where unknown.
    `per_token`: bytes or operations."""
    done = [row["tok_s"] * per_token / 1e9 for row in rows]
    pairs = [(amount, limits.get(row["round"])) for row, amount in zip(rows, done)]
    known = [amount / limit for amount, limit in pairs if limit]
    return median(done), (median(known) if known else None)


def cell(figures, unit):
    """`45.2 [44.0–46.1] tok/s`; a single measurement has no spread."""
    middle, least, most = figures
    digits = 0 if unit == "ms" or middle >= 100 else 1
    spread = f" [{least:.{digits}f}–{most:.{digits}f}]" if least < most else ""
    return f"{middle:.{digits}f}{spread} {unit}"


def lines(results):
    """The table: a list of cells as in `HEAD` for each test of each file, files in the order of their first rows."""
    keys = ("shape", "mix", "file", "test", "depth", "kv")
    rows = [row for row in results.rows if row["engine"] != "machine"]
    seen = dict.fromkeys(tuple(row[key] for key in keys) for row in rows)
    order = list(dict.fromkeys(key[:3] for key in seen))
    sorted_keys = sorted(seen, key=lambda key: order.index(key[:3]))
    return [line(results, dict(zip(keys, key))) for key in sorted_keys]


def line(results, about):
    by_engine = {}
    for row in results.of(**about):
        by_engine.setdefault(row["engine"], []).append(row)
    # Of a rebuilt engine only the newest build counts.
    newest = {name: [r for r in rows if r["version"] == rows[-1]["version"]] for name, rows in by_engine.items()}
    ours = newest.pop(OURS, [])
    peers = [best_variant(rows) for rows in newest.values()]
    unit = "ms" if about["test"] == "load" else "tok/s"
    test = about["test"] + (f" at {about['depth']}, {about['kv']}" if about["depth"] else "")
    entry = [f"{about['shape']} {about['mix']}", test, "–", "–", "–", "–", "–", "–"]
    if ours:
        entry[2] = cell(figure(ours), unit)
        entry[6] = of_quiet(results, about, ours) or of_the_machine(results, about, ours)
    if peers:
        best = max(peers, key=lambda some: median(map(worth, some)))
        entry[3] = cell(figure(best), unit)
        entry[4] = f"{best[0]['engine']}, {best[0]['variant']}"
    if ours and peers:
        entry[5] = f"{figure(ours)[0] / figure(best)[0]:.2f}"
        entry[7] = f"{peak(ours):.0f} / {peak(best):.0f} MB"
    return entry


def peak(rows):
    return median(row["rss_peak_mb"] for row in rows)


def of_quiet(results, about, ours):
    """`0.48 of quiet` for what ran beside other work; None for the rest."""
    quiet_test = about["test"].removesuffix(" busy")
    if quiet_test == about["test"]:
        return None
    quiet = results.of(**about | {"test": quiet_test, "engine": OURS})
    return f"{figure(ours)[0] / figure(quiet)[0]:.2f} of quiet"


def of_the_machine(results, about, ours):
    """`480 GOPS, 55%` of a prompt; `30.1 GB/s, 76% (88% of the usual)` of a decode, where it is known what is usual."""
    first = ours[0]
    if "operations_per_token" in first:
        per_token, name, unit, digits = first["operations_per_token"], "int8_gops", "GOPS", 0
    elif "bytes_per_token" in first and first["test"].startswith("tg"):
        per_token, name, unit, digits = first["bytes_per_token"], "read_gb_s", "GB/s", 1
    else:
        return "–"
    place = {key: about[key] for key in ("shape", "mix", "file")}
    machine = results.of(engine="machine", sitting=first["sitting"], **place)
    done, share = shares(ours, {row["round"]: row[name] for row in machine}, per_token)
    usual = {row["round"]: row.get("read_usual_gb_s") for row in machine if name == "read_gb_s"}
    of_usual = shares(ours, usual, per_token)[1]
    return (
        f"{done:.{digits}f} {unit}"
        + ("" if share is None else f", {share:.0%}")
        + ("" if of_usual is None else f" ({of_usual:.0%} of the usual)")
    )


HEAD = ["file", "test", "ours", "best peer", "which", "ours : peer", "of the machine", "peak ours / peer"]


def markdown(entries):
    return "\n".join("| " + " | ".join(entry) + " |" for entry in [HEAD, ["---"] * len(HEAD), *entries])
