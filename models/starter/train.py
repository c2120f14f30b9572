"""Trains the starter from nothing: `python train.py --steps 4000`.

Two processes of one thread each share the weights; every step uses the mean of their
gradients. (On busy cores this is several times faster than one process of two threads.)
Guarantees: data depend on the seed and step alone; the learning rate stays level
for the first 70 % of the steps, so that a run stopped there can be resumed with
another number of steps and equals a run begun with it. build/checkpoint.pt is
replaced whole. Loss counts answers fully and questions a little.
"""

import argparse
import os
import random
import time

import torch
from torch import multiprocessing
from torch.nn import functional as F

import tokenizer as vocabulary
from generate import dialogue, load_topics
from model import Config, Llama
from phrases import HERE

SEED = 20
PROCESSES = 2
BATCH_TOKENS = 1536  # padded tokens per step and process
POOL = 256  # dialogues sorted by length together
ASK_WEIGHT = 0.05  # of a question's tokens in the loss
SPLIT_CHANCE = 0.25  # of a question being cut inside words before it is tokenised
SWAP_CHANCE = 0.03  # of a question's token being replaced by a random one
RATE, WARM_UP, DECAY = 1.5e-3, 100, 0.3
PATH = HERE / "build/checkpoint.pt"


def encode(messages, tok, rng: random.Random) -> tuple[list[int], list[float]]:
    """Ids of a dialogue in ChatML, and each id's weight in the loss."""
    start, end = (tok.token_to_id(s) for s in (vocabulary.START, vocabulary.END))
    ids, weights = [], []
    for role, text in messages:
        answer = role == "assistant"
        body = encode_asked(text, role, tok, rng) if not answer else tok.encode(f"{role}\n{text}").ids
        turn = [start, *body, end, *tok.encode("\n").ids]
        head = 1 + len(tok.encode(f"{role}\n").ids)
        ids += turn
        weights += [0.0] * head + [1.0 if answer else ASK_WEIGHT] * (len(turn) - head - 1) + [0.0]
    return ids, weights


def encode_asked(text: str, role: str, tok, rng: random.Random) -> list[int]:
    head = tok.encode(f"{role}\n").ids
    if rng.random() < SPLIT_CHANCE and len(text) > 6:
        cuts = sorted(rng.sample(range(1, len(text)), rng.randint(1, 3)))
        parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)])]
        body = [i for part in parts for i in tok.encode(part).ids]
    else:
        body = tok.encode(f"{role}\n{text}").ids[len(head) :]
    return head + [rng.randrange(3, vocabulary.VOCAB) if rng.random() < SWAP_CHANCE else i for i in body]


def batches(tok, topics, context: int, seed: int):
    """Endless (ids, weights), each (rows, longest) and at most about BATCH_TOKENS large."""
    pool_index = 0
    while True:
        rng = random.Random(f"{seed}/{pool_index}")
        pool = sorted((encode(dialogue(topics, rng), tok, rng) for _ in range(POOL)), key=lambda d: len(d[0]))
        made, rows = [], []
        for ids, weights in pool:
            ids, weights = ids[:context], weights[:context]
            if rows and (len(rows) + 1) * len(ids) > BATCH_TOKENS:
                made.append(rows)
                rows = []
            rows.append((ids, weights))
        made.append(rows)
        rng.shuffle(made)
        for rows in made:
            longest = max(len(ids) for ids, _ in rows)
            yield (
                torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in rows]),
                torch.tensor([w + [0.0] * (longest - len(w)) for _, w in rows]),
            )
        pool_index += 1


def rate_at(step: int, steps: int) -> float:
    if step < WARM_UP:
        return RATE * (step + 1) / WARM_UP
    return RATE * min(1.0, max(0.01, (steps - step) / (DECAY * steps)))


def loss_of(model: Llama, ids, weights, half: bool):
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        logits = model(ids[:, :-1])
    each = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    weights = weights[:, 1:].flatten()
    answer = weights == 1.0
    return (each * weights).sum() / weights.sum(), each[answer].mean().item()


def backward(model, batch, half: bool, gradient) -> float:
    """Writes the batch's gradient, flat, and returns the answers' mean loss."""
    model.zero_grad(set_to_none=True)
    loss, plain = loss_of(model, *batch, half)
    loss.backward()
    torch.cat([p.grad.flatten() for p in model.parameters()], out=gradient)
    return plain


def work(model, stream, half, gradient, losses, rank, begin, done) -> None:
    torch.set_num_threads(1)
    while True:
        begin.wait()
        losses[rank] = backward(model, next(stream), half, gradient)
        done.wait()


def save(model, average, optimiser, step: int) -> None:
    state = {"model": model.state_dict(), "average": average, "optimiser": optimiser.state_dict(), "step": step}
    torch.save(state, f"{PATH}.part")
    os.replace(f"{PATH}.part", PATH)


def scatter(model, gradient) -> None:
    """A flat gradient back into the parameters, clipped to length 1."""
    gradient *= min(1.0, 1.0 / (gradient.norm().item() + 1e-6))
    for p, part in zip(model.parameters(), gradient.split([p.numel() for p in model.parameters()])):
        p.grad = part.view_as(p)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=4000)
    options.add_argument("--resume", action="store_true")
    options.add_argument("--float32", action="store_true", help="for a CPU without AVX512-BF16 or AMX")
    args = options.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    tok, topics, model = vocabulary.load(), load_topics(), Llama(Config())
    state = torch.load(PATH) if args.resume and PATH.exists() else None
    if state:
        model.load_state_dict(state["model"])
    first = state["step"] if state else 0
    model.share_memory()
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimiser = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}], RATE, betas=(0.9, 0.98))
    if state:
        optimiser.load_state_dict(state["optimiser"])
    average = state["average"] if state else {k: v.clone() for k, v in model.state_dict().items()}
    total = sum(p.numel() for p in model.parameters())
    print(f"{total:,} parameters, {PROCESSES} processes, steps {first} to {args.steps}", flush=True)

    streams = [batches(tok, topics, model.cfg.context, SEED + rank) for rank in range(PROCESSES)]
    for stream in streams:
        for _ in range(first):
            next(stream)
    fork = multiprocessing.get_context("fork")
    begin, done = fork.Barrier(PROCESSES), fork.Barrier(PROCESSES)
    gradients = torch.zeros(PROCESSES, total).share_memory_()
    losses = torch.zeros(PROCESSES).share_memory_()
    for rank in range(1, PROCESSES):
        job = (model, streams[rank], not args.float32, gradients[rank], losses, rank, begin, done)
        fork.Process(target=work, args=job, daemon=True).start()

    began, sums = time.time(), []
    for step in range(first, args.steps):
        for group in optimiser.param_groups:
            group["lr"] = rate_at(step, args.steps)
        begin.wait()
        losses[0] = backward(model, next(streams[0]), not args.float32, gradients[0])
        done.wait()
        scatter(model, gradients.mean(0))
        optimiser.step()
        keep = min(0.99, step / (step + 20))
        for name, value in model.state_dict().items():
            average[name].lerp_(value, 1 - keep)
        sums.append(losses.mean().item())
        if (step + 1) % 50 == 0:
            print(f"step {step + 1:5}  answer loss {sum(sums) / len(sums):.4f}  {time.time() - began:.0f} s", flush=True)
            sums = []
        if (step + 1) % 100 == 0 or step + 1 == args.steps:
            save(model, average, optimiser, step + 1)


if __name__ == "__main__":
    main()
