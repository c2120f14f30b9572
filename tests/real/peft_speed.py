#!/usr/bin/env python3
"""How fast and in how much memory a LoRA adapter is trained: `nook tune` beside PEFT with PyTorch.

    make tune-peers        # fetches the models, PyTorch and PEFT (some GB) into target/real

Both take the same file, the same adapter and the same batch of token ids, by turns. PEFT trains on the weights in
float32, as it does without a GPU; `nook tune` on the quantized ones. A step is forward, backward and AdamW.
Loading does not count: a run of one step is subtracted from one of more. Prints a line for each round and the medians.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CACHE = os.path.join(ROOT, "target/real")
RANK, ALPHA = 16, 32
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
LR, BETAS, EPS, WEIGHT_DECAY = 1e-4, [0.9, 0.999], 1e-8, 0.0


def peft(model, batch_path, adapter, steps, threads):
    """Trains with PEFT in this process; prints the seconds of each step. Makes the adapter where there is none."""
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    folder, name = os.path.split(model)
    base = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    if os.path.exists(os.path.join(adapter, "adapter_config.json")):
        net = PeftModel.from_pretrained(base, adapter, is_trainable=True)
    else:
        net = get_peft_model(base, LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=TARGETS, task_type="CAUSAL_LM"))
        net.save_pretrained(adapter)
    with open(batch_path) as file:
        batch = json.load(file)
    ids, mask = torch.tensor(batch["ids"]), torch.tensor(batch["loss_mask"])
    labels = torch.where(mask == 1, ids, torch.full_like(ids, -100))
    optimizer = torch.optim.AdamW(
        (p for p in net.parameters() if p.requires_grad), lr=LR, betas=BETAS, eps=EPS, weight_decay=WEIGHT_DECAY)
    seconds, losses = [], []
    for _ in range(steps):
        began = time.perf_counter()
        loss = net(input_ids=ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - began)
        losses.append(loss.item())
    print(json.dumps({"seconds": seconds, "losses": losses}))


def measured(command):
    """Output, seconds and peak memory in MB of a process."""
    # The peak of the only child of another process.
    ask = ("import json, resource, subprocess, sys, time; began = time.perf_counter();"
           "done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True);"
           "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss;"
           "print(json.dumps([done.returncode, done.stdout, time.perf_counter() - began, peak / 1024]))")
    done = subprocess.run([sys.executable, "-c", ask, *command], stdout=subprocess.PIPE, text=True, check=True)
    code, out, seconds, peak = json.loads(done.stdout)
    assert code == 0, f"{command[0]} ended with {code}"
    return json.loads(out.strip().splitlines()[-1]), seconds, peak


def compare(name, args):
    import fetch

    model = os.path.abspath(args.file or fetch.model(name, CACHE))
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        batch_path, adapter = os.path.join(folder, "batch.json"), os.path.join(folder, "adapter")
        rng = random.Random(1)
        ids = [[rng.randrange(100, args.ids) for _ in range(args.seq)] for _ in range(args.examples)]
        mask = [[0] + [1] * (args.seq - 1)] * args.examples
        with open(batch_path, "w") as file:
            json.dump({"ids": ids, "loss_mask": mask, "lr": LR, "betas": BETAS, "eps": EPS,
                       "weight_decay": WEIGHT_DECAY}, file)
        tokens = args.seq * args.examples
        other = [sys.executable, __file__, "--peft", model, batch_path, adapter, str(args.steps), str(args.threads)]
        ours = [args.nook, "--data-dir", os.path.join(folder, "data"), "tune", "--model", model, "--batch", batch_path,
                "--adapter", adapter, "--threads", str(args.threads), "--json", "--steps"]
        measured([*other[:-2], "1", str(args.threads)])  # makes the adapter
        rates = {"nook": [], "peft": []}
        peaks = {"nook": 0, "peft": 0}
        for _ in range(args.rounds):
            _, first, _ = measured([*ours, "1"])
            report, whole, peak = measured([*ours, str(1 + args.steps)])
            rates["nook"].append(tokens * args.steps / (whole - first))
            peaks["nook"] = max(peaks["nook"], peak)
            theirs, _, peak = measured(other)
            # The first step allocates.
            rates["peft"].append(tokens / statistics.median(theirs["seconds"][1:]))
            peaks["peft"] = max(peaks["peft"], peak)
            print(f"{name}: nook {rates['nook'][-1]:.0f} tokens/s, loss {report['losses'][0]:.4f}; "
                  f"PEFT {rates['peft'][-1]:.0f} tokens/s, loss {theirs['losses'][0]:.4f}", flush=True)
            difference = abs(report["losses"][0] - theirs["losses"][0])
            assert difference < 0.05 * theirs["losses"][0], "the two do not compute the same"
        nook, other_rate = (statistics.median(rates[who]) for who in ("nook", "peft"))
        print(f"{name}: {tokens} tokens a step, {args.threads} threads, medians of {args.rounds}: nook {nook:.0f} tokens/s "
              f"and {peaks['nook']:.0f} MB, PEFT {other_rate:.0f} tokens/s and {peaks['peft']:.0f} MB, "
              f"ratio {nook / other_rate:.2f}")


def main():
    if sys.argv[1:2] == ["--peft"]:
        model, batch, adapter, steps, threads = sys.argv[2:]
        return peft(model, batch, adapter, int(steps), int(threads))
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--nook", default=os.path.join(ROOT, "target/release/nook"))
    options.add_argument("--file", help="measure this GGUF file instead of a fetched one")
    options.add_argument("--seq", type=int, default=256, help="tokens of an example")
    options.add_argument("--examples", type=int, default=4, help="examples of a step")
    options.add_argument("--ids", type=int, default=10_000, help="token ids are below this")
    options.add_argument("--steps", type=int, default=3)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--threads", type=int, default=os.cpu_count())
    options.add_argument("models", nargs="*", default=["smollm2"], metavar="MODELS")
    args = options.parse_args()
    for name in args.models:
        compare(name, args)


if __name__ == "__main__":
    main()
