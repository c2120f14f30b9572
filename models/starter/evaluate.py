"""Measures the shipped file: held-out questions, held-out dialogues, and golden numbers.

An answer is right when it is, word for word, one that its question should get, and comes to its own end. Everything is
greedy. Writes eval/report.json and eval/golden.json.
"""

import argparse
import json
import math
import tomllib
from collections import defaultdict
from pathlib import Path

import torch
from torch.nn import functional as F

import tokenizer as vocabulary
from articles import load_articles
from export import OUT, load, load_vocabulary
from generate import DECLINED, load_heldout, load_topics
from model import Config, Llama
from phrases import HERE
from train import PATH as CHECKPOINT

LONGEST = 440  # tokens of an answer; the longest taught one has 412
ALSO_DECLINE = ("unclear", "joke", "medical", "legal", "other-language")  # topics of their own for other subjects
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


def questions(model: Llama, tok, topics, asked: list[tuple[str, list[str]]]) -> dict:
    """How many of the questions get an answer of one of their articles; which article each other one gets."""
    answers = answer_all(model, tok, [prompt_ids(tok, [("user", question)]) for question, _ in asked])
    topic_of = {answer: topic.id for topic in topics.values() for answer in topic.answers}
    sets, wrong = defaultdict(lambda: [0, 0]), []
    for (question, articles), (answer, ended) in zip(asked, answers):
        declined = articles == ["-"]
        wanted = [DECLINED, "other-subjects", *ALSO_DECLINE] if declined else articles
        given = topic_of.get(answer) if ended else None
        counts = sets["out of scope" if declined else "articles"]
        counts[0] += given in wanted
        counts[1] += 1
        if given not in wanted:
            wrong.append({"asked": question, "article": articles[0], "answered": given or answer[:80]})
    taught = sum(answer in topic_of for answer, _ in answers)
    return {
        **{name: {"right": right, "asked": n, "share": round(right / n, 4)} for name, (right, n) in sets.items()},
        "word_for_word_a_taught_answer": round(taught / len(asked), 4),
        "wrong": wrong,
    }


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


def load_dialogues() -> list[list[str]]:
    return [d["turns"] for d in tomllib.loads((HERE / "eval/dialogues.toml").read_text())["dialogue"]]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--lines", help="another file of questions: print the counts and write nothing")
    options.add_argument("--checkpoint", action="store_true", help="also measure the float32 weights before Q8_0")
    args = options.parse_args()
    torch.set_num_threads(1)
    tok, topics, model = load_vocabulary(), load_topics(), load()
    if args.lines:
        found = questions(model, tok, topics, load_heldout(Path(args.lines)))
        found.pop("wrong")
        print(json.dumps(found, indent=1))
        return
    report = {"file": OUT.name, "bytes": OUT.stat().st_size, "parameters": sum(p.numel() for p in model.parameters())}
    report["q8_0"] = {**perplexity(model, tok, load_dialogues()), "questions": questions(model, tok, topics, load_heldout())}
    if args.checkpoint:
        plain = Llama(Config())
        plain.load_state_dict(torch.load(CHECKPOINT)["model"])
        found = questions(plain.eval(), tok, topics, load_heldout())
        found.pop("wrong")
        report["float32"] = {**perplexity(plain, tok, load_dialogues()), "questions": found}
    report["articles"] = {article.id: article.digest for article in load_articles()}
    (HERE / "eval/report.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    (HERE / "eval/golden.json").write_text(json.dumps(golden(model, tok), indent=1, ensure_ascii=False) + "\n")
    for name in ("articles", "out of scope"):
        counts = report["q8_0"]["questions"][name]
        print(f"held-out questions, {name}: {counts['right']} of {counts['asked']} right")
    print(f"perplexity of the held-out dialogues: {report['q8_0']['perplexity']}")


if __name__ == "__main__":
    main()
