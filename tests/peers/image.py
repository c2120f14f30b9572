#!/usr/bin/env python3
"""An image, by us and by llama.cpp's mtmd, alternately: seconds of the tower, of reading its tokens, and of as much text.

    make peers-image                             1,024 × 768 pixels on the qwen3.5-4b shape, 3 rounds
    make peers-image SIZE=512x512 ROUNDS=5

Both read the same files of random weights, a model and its tower, which are made where they are missing.
PEERS_MODELS  their folder (target/peers/models)
"""

import argparse
import os
import sys
from statistics import median

from engines import Failed, json_lines, run
from run import BUILT, MODELS, NOOK, ROOT, physical_cores

SHAPE, MIX = "qwen3.5-4b", "q4_k_m"
# Tokens that a context has room for: those of the largest picture that the tower takes without a limit.
CONTEXT = 4096
FIGURES = ("tower_s", "image_prefill_s", "text_prefill_s")
# llama.cpp's settings: whatever is best for it counts.
THEIRS = {
    "mapped": ["--no-repack"],
    "mapped, no flash attention": ["--no-repack", "--no-flash"],
    "repacked": [],
    "repacked, no flash attention": ["--no-flash"],
}


def made(data):
    """The model's file and its tower's."""
    model = os.path.join(MODELS, f"{SHAPE}-{MIX}-image.gguf")
    tower = os.path.join(MODELS, f"mmproj-{SHAPE}-{MIX}-image.gguf")
    if not (os.path.exists(model) and os.path.exists(tower)):
        print(f"making {model}", flush=True)
        os.makedirs(MODELS, exist_ok=True)
        for path in filter(os.path.exists, (model, tower)):
            os.remove(path)
        once = ["--test", "image", "--image-size", "64x64", "--repeat", "1", "--data-dir", data]
        run([NOOK, "bench", "--shape", f"{SHAPE}:{MIX}", "--keep", model, *once])
    return model, tower


def measure(commands, rounds):
    """The rows of every command, taken in turn."""
    rows = {name: [] for name in commands}
    for at in range(rounds):
        for name, command in commands.items():
            row = json_lines(run(command).output)[-1]
            rows[name].append(row)
            figures = ", ".join(f"{figure} {row[figure]:.2f}" for figure in FIGURES)
            print(f"round {at + 1}, {name}: {row['tokens']} tokens, {figures}", flush=True)
    return rows


def table(rows):
    lines = ["| engine | tokens | tower | its tokens | as many tokens of text |", "|---|---|---|---|---|"]
    for name, measured in rows.items():
        cells = []
        for figure in FIGURES:
            values = [row[figure] for row in measured]
            cells.append(f"{median(values):.1f} s [{min(values):.1f}–{max(values):.1f}]")
        lines.append(f"| {name} | {measured[-1]['tokens']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="1024x768", help="of the picture, in pixels")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=physical_cores())
    options = parser.parse_args()
    data = os.path.join(ROOT, "target/peers/data")
    model, tower = made(data)
    threads, size = ["--threads", str(options.threads)], ["--image-size", options.size, "--repeat", "1"]
    ours = [NOOK, "bench", "--model", model, "--test", "image", "--json", "--data-dir", data, *threads, *size]
    theirs = [os.path.join(BUILT, "peer-llama"), "--model", model, "--mmproj", tower, "--ctx", str(CONTEXT)]
    commands = {"Inglenook": ours}
    commands |= {f"mtmd ({name})": [*theirs, *flags, *threads, *size] for name, flags in THEIRS.items()}
    print(table(measure(commands, options.rounds)))


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"error: {failure}")
