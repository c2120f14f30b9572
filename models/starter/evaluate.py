"""Measures the shipped file: held-out paraphrases, held-out dialogues, and golden numbers.

An answer is right when it holds every required fact of its topic (check.py), comes to
its own end, and so was written by the network alone. Everything is greedy. Writes
eval/report.json and eval/golden.json.
"""

import argparse
import json
import math
from collections import defaultdict

import torch
from torch.nn import functional as F

import tokenizer as vocabulary
from check import missing_facts
from export import OUT, load, load_vocabulary
from generate import load_heldout, load_heldout_dialogues, load_topics
from model import Config, Llama
from phrases import HERE
from train import PATH as CHECKPOINT

LONGEST = 120  # tokens of an answer; the longest taught one has 57
GOLDEN = [
    [("user", "How do I add a model?")],
    [("system", "You are a helpful assistant."), ("user", "what is top-p")],
    [("user", "Hello!"), ("assistant", "Hello! I'm the Inglenook starter. Ask me anything about using this app."), ("user", "How can I delete a chat?")],
]


@torch.no_grad()
def answer_all(model: Llama, tok, prompts: list[list[int]]) -> list[tuple[str, bool]]:
    """Greedy answers and whether each came to an end. Prompts of one length run together."""
    end, by_length, out = tok.token_to_id(vocabulary.END), defaultdict(list), {}
    for i, ids in enumerate(prompts):
        by_length[len(ids)].append(i)
    for group in by_length.values():
        past, feed = model.empty_past(), torch.tensor([prompts[i] for i in group])
        written = []
        for _ in range(LONGEST):
            feed = model(feed, past)[:, -1:].argmax(-1)
            written.append(feed)
            if all(end in row for row in torch.cat(written, 1).tolist()):
                break
        for i, row in zip(group, torch.cat(written, 1).tolist()):
            ended = end in row
            out[i] = tok.decode(row[: row.index(end)] if ended else row), ended
    return [out[i] for i in range(len(prompts))]


def prompt_ids(tok, messages) -> list[int]:
    return tok.encode(vocabulary.render(messages, True)).ids


def right(answer: str, ended: bool, topic) -> bool:
    return ended and not missing_facts(answer, topic.facts)


def paraphrases(model: Llama, tok, topics, lines: dict[str, list[str]]) -> dict:
    asked = [(name, line) for name, each in lines.items() for line in each]
    answers = answer_all(model, tok, [prompt_ids(tok, [("user", line)]) for _, line in asked])
    taught = {a for t in topics.values() for a in t.answers}
    wrong, good, group_good, verbatim = [], 0, 0, 0
    for (name, line), (answer, ended) in zip(asked, answers):
        ok = right(answer, ended, topics[name])
        good += ok
        kin = [t for t in topics.values() if t.group == topics[name].group]
        group_good += ok or any(right(answer, ended, t) for t in kin)
        verbatim += answer in taught
        if not ok:
            wrong.append({"topic": name, "asked": line, "answer": answer})
    n = len(asked)
    return {"asked": n, "right": good, "accuracy": round(good / n, 4), "right_or_same_group": round(group_good / n, 4), "word_for_word_a_taught_answer": round(verbatim / n, 4), "wrong": wrong}


@torch.no_grad()
def perplexity(model: Llama, tok, dialogues: list[list[str]]) -> dict:
    """Over the answers' tokens of held-out dialogues, their end marks included."""
    total, count = 0.0, 0
    for turns in dialogues:
        ids: list[int] = []
        for i, text in enumerate(turns):
            head = tok.encode(f"{vocabulary.START}{('user', 'assistant')[i % 2]}\n").ids
            turn = head + tok.encode(text + vocabulary.END).ids
            ids += turn
            if i % 2:
                logits = model(torch.tensor([ids[:-1]]))[0]
                n = len(turn) - len(head)
                total += F.cross_entropy(logits[-n:], torch.tensor(ids[-n:]), reduction="sum").item()
                count += n
            ids += tok.encode("\n").ids
    return {"dialogues": len(dialogues), "answer_tokens": count, "perplexity": round(math.exp(total / count), 3)}


@torch.no_grad()
def golden(model: Llama, tok) -> list[dict]:
    cases = []
    for messages in GOLDEN:
        ids = prompt_ids(tok, messages)
        logits = model(torch.tensor([ids]))[0, -1]
        top = logits.topk(10)
        past, feed, greedy = model.empty_past(), torch.tensor([ids]), []
        for _ in range(24):
            feed = model(feed, past)[:, -1:].argmax(-1)
            greedy.append(feed.item())
        cases.append({
            "messages": [{"role": r, "content": c} for r, c in messages],
            "prompt": vocabulary.render(messages, True),
            "ids": ids,
            "top": [[int(i), round(float(v), 5)] for v, i in zip(*top)],
            "greedy": greedy,
            "greedy_text": tok.decode(greedy, skip_special_tokens=False),
        })
    return cases


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--lines", help="another file of paraphrases: print its wrong answers and write nothing")
    options.add_argument("--checkpoint", action="store_true", help="also measure the float32 weights before Q8_0")
    args = options.parse_args()
    torch.set_num_threads(1)
    tok, topics, model = load_vocabulary(), load_topics(), load()
    if args.lines:
        import tomllib

        found = paraphrases(model, tok, topics, tomllib.loads(open(args.lines).read()))
        for w in found.pop("wrong"):
            print(f"{w['topic']:>18} | {w['asked']} | {w['answer'][:110]!r}")
        print(found)
        return
    report = {"file": OUT.name, "bytes": OUT.stat().st_size, "parameters": sum(p.numel() for p in model.parameters())}
    report["q8_0"] = {**perplexity(model, tok, load_heldout_dialogues()), "paraphrases": paraphrases(model, tok, topics, load_heldout())}
    if args.checkpoint:
        plain = Llama(Config())
        plain.load_state_dict(torch.load(CHECKPOINT)["model"])
        found = paraphrases(plain.eval(), tok, topics, load_heldout())
        found.pop("wrong")
        report["float32"] = {**perplexity(plain, tok, load_heldout_dialogues()), "paraphrases": found}
    (HERE / "eval/report.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    (HERE / "eval/golden.json").write_text(json.dumps(golden(model, tok), indent=1, ensure_ascii=False) + "\n")
    found = report["q8_0"]
    print(f"held-out paraphrases: {found['paraphrases']['right']} of {found['paraphrases']['asked']} right; perplexity {found['perplexity']}")


if __name__ == "__main__":
    main()
