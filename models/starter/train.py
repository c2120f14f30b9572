"""Trains the starter: `python train.py --phase 1`, then `--phase 2`.

Phase 1 starts from nothing with whole dialogues and learns to speak. Phase 2 goes on
from its weights with short drills, mostly a question and its answer's first tokens:
there it learns what is being asked.

Two processes of one thread each share the weights in memory. Each reads its own
dialogues; then both use the mean of the two gradients, and each updates its own half
of the layers. (On busy cores this is several times faster than two threads.)

Guarantees: data depend on the seed and step alone. The learning rate stays level for
the first part of a phase; until then build/steps may be given another number, and the
run equals one begun with it. build/checkpoint.pt is replaced whole.
Loss counts answers fully and questions a little.
"""

import argparse
import os
import random
import time
from dataclasses import dataclass

import torch
from torch import Tensor, multiprocessing
from torch.nn import functional as F

import tokenizer as vocabulary
from generate import TURNS, dialogue, load_topics
from model import Config, Llama
from muon import Muon
from phrases import HERE

SEED = 20
PROCESSES = 2
BATCH_TOKENS = 1024  # padded tokens per step and process
POOL = 256  # dialogues sorted by length together
ASK_WEIGHT = 0.05  # of a question's tokens in the loss
SPLIT_CHANCE = 0.25  # of a question being cut inside words before it is tokenised
SWAP_CHANCE = 0.03  # of a question's token being replaced by a random one
DRILL_TOKENS = (4, 10)  # of the answer that are kept in a drill
RATE, MUON_RATE, WARM_UP = 2e-3, 0.01, 40
WAIT_S = 300  # for the other process, before giving up
PATH = HERE / "build/checkpoint.pt"
STEPS_FILE = HERE / "build/steps"


@dataclass(frozen=True)
class Phase:
    steps: int
    turns: list[int]  # how many questions a dialogue has, each number as often as it is likely
    drill: float  # chance of a dialogue being cut soon after its last answer begins
    single: bool  # only dialogues of one question are cut
    decay: float  # the last part of the steps, in which the rate falls to nothing


PHASES = {
    1: Phase(800, TURNS, 0.6, True, 0.0),
    2: Phase(1500, [1] * 80 + [2] * 12 + [3] * 5 + [4] * 2 + [8], 0.88, False, 0.8),
}


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


def drill(phase: Phase, ids: list[int], weights: list[float], rng: random.Random) -> tuple[list[int], list[float]]:
    """The same dialogue, sometimes cut soon after its last answer begins."""
    begins = [i for i in range(1, len(ids)) if weights[i] == 1.0 and weights[i - 1] == 0.0]
    if (len(begins) == 1 or not phase.single) and rng.random() < phase.drill:
        cut = begins[-1] + rng.randint(*DRILL_TOKENS)
        return ids[:cut], weights[:cut]
    return ids, weights


def batches(phase: Phase, tok, topics, context: int, seed: int):
    """Endless (ids, weights), each (rows, longest) and at most about BATCH_TOKENS large."""
    pool_index = 0
    while True:
        rng = random.Random(f"{seed}/{pool_index}")
        pool = sorted((drill(phase, *encode(dialogue(topics, rng, phase.turns), tok, rng), rng) for _ in range(POOL)), key=lambda d: len(d[0]))
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


def pace(phase: Phase, step: int, steps: int) -> float:
    """The learning rate as a part of its highest value."""
    if step < WARM_UP:
        return (step + 1) / WARM_UP
    return min(1.0, max(0.01, (steps - step) / (phase.decay * steps))) if phase.decay else 1.0


def loss_of(model: Llama, ids, weights, half: bool):
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        logits = model(ids[:, :-1])
    each = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    weights = weights[:, 1:].flatten()
    answer = weights == 1.0
    return (each * weights).sum() / weights.sum(), each[answer].mean().item()


def backward(model: Llama, batch, half: bool, gradient: Tensor) -> float:
    """Writes the batch's gradient, flat, and returns the answers' mean loss."""
    model.zero_grad(set_to_none=True)
    loss, plain = loss_of(model, *batch, half)
    loss.backward()
    torch.cat([p.grad.flatten() for p in model.parameters()], out=gradient)
    return plain


def scatter(model: Llama, gradient: Tensor) -> None:
    """A flat gradient back into the parameters, clipped to length 1."""
    gradient *= min(1.0, 1.0 / (gradient.norm().item() + 1e-6))
    for p, part in zip(model.parameters(), gradient.split([p.numel() for p in model.parameters()])):
        p.grad = part.view_as(p)


def optimisers_of(model: Llama, rank: int) -> list[tuple[torch.optim.Optimizer, float]]:
    """This process's share of the parameters, each optimiser with its highest rate."""
    matrices = [p for i, block in enumerate(model.blk) if i % PROCESSES == rank for p in block.parameters() if p.dim() == 2]
    found = [(Muon(matrices, MUON_RATE, weight_decay=0.1), MUON_RATE)]
    if rank == 0:
        others = [p for name, p in model.named_parameters() if p.dim() == 1 or not name.startswith("blk.")]
        found.append((torch.optim.AdamW(others, RATE, betas=(0.9, 0.95), weight_decay=0.01), RATE))
    return found


def train(rank: int, phase: Phase, model: Llama, steps: Tensor, half: bool, gradients: Tensor, losses: Tensor, barrier) -> None:
    """One process of the run; rank 0 also keeps the average, the log and the checkpoint."""
    torch.set_num_threads(1)
    stream = batches(phase, vocabulary.load(), load_topics(), model.cfg.context, SEED + rank + 10 * (phase is PHASES[2]))
    optimisers = optimisers_of(model, rank)
    average = {k: v.clone() for k, v in model.state_dict().items()}
    began, sums, step = time.time(), [], 0
    while step < steps.item():
        losses[rank] = backward(model, next(stream), half, gradients[rank])
        barrier.wait()
        scatter(model, gradients.mean(0))
        for optimiser, rate in optimisers:
            optimiser.param_groups[0]["lr"] = rate * pace(phase, step, steps.item())
            optimiser.step()
        step += 1
        if rank == 0:
            sums.append(losses.mean().item())
            if STEPS_FILE.exists():
                steps.fill_(int(STEPS_FILE.read_text()))
        barrier.wait()
        if rank > 0:
            continue
        keep = min(0.99, step / (step + 20))
        for name, value in model.state_dict().items():
            average[name].lerp_(value, 1 - keep)
        if step % 50 == 0:
            print(f"step {step:5}  answer loss {sum(sums) / len(sums):.4f}  {time.time() - began:.0f} s", flush=True)
            sums = []
        if step % 100 == 0 or step == steps.item():
            torch.save({"model": model.state_dict(), "average": average, "step": step}, f"{PATH}.part")
            os.replace(f"{PATH}.part", PATH)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--phase", type=int, choices=PHASES, required=True)
    options.add_argument("--steps", type=int, help="other than the phase's own number")
    options.add_argument("--float32", action="store_true", help="for a CPU without AVX512-BF16 or AMX")
    args = options.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    phase = PHASES[args.phase]
    STEPS_FILE.unlink(missing_ok=True)
    model = Llama(Config()).train()
    if args.phase > 1:
        model.load_state_dict(torch.load(PATH)["model"])
    model.share_memory()
    total = sum(p.numel() for p in model.parameters())
    print(f"{total:,} parameters, phase {args.phase}, {PROCESSES} processes, {args.steps or phase.steps} steps", flush=True)
    gradients = torch.zeros(PROCESSES, total).share_memory_()
    losses = torch.zeros(PROCESSES).share_memory_()
    steps = torch.tensor(args.steps or phase.steps).share_memory_()
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(PROCESSES, timeout=WAIT_S)
    jobs = [(rank, phase, model, steps, not args.float32, gradients, losses, barrier) for rank in range(PROCESSES)]
    for job in jobs[1:]:
        fork.Process(target=train, args=job, daemon=True).start()
    train(*jobs[0])


if __name__ == "__main__":
    main()
