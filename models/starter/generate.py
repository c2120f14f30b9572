"""Training dialogues, made from the topics in data/.

Guarantees: the same seed gives the same dialogues, and no user line equals a
held-out paraphrase. Knows nothing of tokens.
"""

import random
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from phrases import HERE, noise, normal, parse, sample

PREFIXES = ["hi, ", "hi! ", "hey, ", "hello, ", "hello! ", "please ", "ok, ", "okay, ", "so ", "um, ", "quick question: ", "sorry, ", "excuse me, ", "tell me, ", "i was wondering, ", "another question: ", "and ", "also, ", "one more thing: ", "good morning, ", "dear inglenook, ", "well, ", "now ", "a question: ", "maybe a silly question, but ", "hmm, ", "just wondering: ", "i have a question: ", "next question: ", "alright, "]
SUFFIXES = [" please", " in inglenook", " in this app", " here", ", thanks", " exactly", " now", ", please", " in the app", " with inglenook", " again", " then", " in this program", " today", " actually", ", any idea", " on my computer", ", can you tell me", " by the way", ", i wonder", " for me"]
SYNONYMS = [
    ["app", "program", "application", "software", "tool"],
    ["chat", "conversation"], ["chats", "conversations"],
    ["delete", "remove", "erase"], ["computer", "machine", "laptop", "pc"],
    ["answer", "reply", "response"], ["answers", "replies", "responses"],
    ["show", "display"], ["start", "begin"], ["big", "large"], ["bigger", "larger"], ["small", "little"],
    ["fast", "quick"], ["faster", "quicker"], ["make", "get"], ["good", "fine", "decent"],
    ["change", "modify", "alter", "adjust"], ["find", "locate"], ["use", "employ", "work with"],
    ["explain", "describe"], ["need", "require"], ["message", "text"], ["shortcut", "hotkey", "key combination"],
    ["want", "wish", "would like"], ["file", "file"], ["load", "open"], ["happens", "occurs"], ["internet", "net"],
    ["picture", "image"], ["pictures", "images"], ["settings", "preferences", "options"], ["folder", "directory"],
]
SYNONYM_OF = {word: group for group in SYNONYMS for word in group}
SMALL = {"the", "a", "an", "my", "is", "are", "do", "does", "to", "of", "in", "it", "this", "i", "can", "me", "you", "for", "with", "please", "some", "there"}
SYSTEMS = ["You are a helpful assistant.", "You are Inglenook's guide.", "Be brief.", "Answer in short sentences.", "You are a friendly assistant in a desktop app.", "Help the user with the app.", "You are a kind helper.", "Please be polite and short.", "You are an assistant. Answer truthfully.", "Be concise and warm.", "You're an expert in local language models.", "Reply in English.", "Keep it simple.", "You are a large language model.", "You are a helpful AI assistant named SmolLM.", "Act as a patient teacher."]


@dataclass
class Follow:
    ask: list
    answers: list[str]


@dataclass
class Topic:
    id: str
    facts: list[str]
    answers: list[str]
    ask: list  # the topic's own patterns
    framed: list  # its words in frames that fit any topic
    group: str
    patterns: list[str]
    follows: list[Follow] = field(default_factory=list)


def load_topics() -> dict[str, Topic]:
    words = tomllib.loads((HERE / "data/about.toml").read_text())
    more = tomllib.loads((HERE / "data/more.toml").read_text())
    frames = tomllib.loads((HERE / "data/frames.toml").read_text())
    rows = [row for path in sorted((HERE / "data/topics").glob("*.toml")) for row in tomllib.loads(path.read_text())["topic"]]
    topics: dict[str, Topic] = {}
    for row in rows:
        assert row["id"] not in topics, row["id"]
        framed = [
            frame.replace("{it}", "(" + "|".join(words[row["id"]][kind]) + ")")
            for kind, asks in frames.items() if words.get(row["id"], {}).get(kind) for frame in asks
        ]
        row["ask"] += more[row["id"]]
        topics[row["id"]] = Topic(
            row["id"], row["facts"], row["answers"], [parse(p) for p in row["ask"]], [parse(p) for p in framed],
            row.get("group", row["id"]), row["ask"] + framed,
        )
    for row in rows:
        for follow in row.get("follow", []):
            answers = topics[follow["to"]].answers if "to" in follow else follow["answers"]
            topics[row["id"]].follows.append(Follow([parse(p) for p in follow["ask"]], answers))
            topics[row["id"]].patterns = topics[row["id"]].patterns + follow["ask"]
    return topics


def load_heldout() -> dict[str, list[str]]:
    return tomllib.loads((HERE / "eval/heldout.toml").read_text())


def load_heldout_dialogues() -> list[list[str]]:
    return [d["turns"] for d in tomllib.loads((HERE / "eval/dialogues.toml").read_text())["dialogue"]]


HELD_OUT = {normal(line) for lines in load_heldout().values() for line in lines} | {
    normal(turn) for turns in load_heldout_dialogues() for turn in turns[::2]
}


def tidy(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def swap_words(text: str, rng: random.Random) -> str:
    words = []
    for word in text.split(" "):
        if word in SYNONYM_OF and rng.random() < 0.15:
            word = rng.choice(SYNONYM_OF[word])
        elif word in SMALL and rng.random() < 0.04:
            continue
        words.append(word)
    return " ".join(words) or text


def typo(word: str, rng: random.Random) -> str:
    if len(word) < 4:
        return word
    i = rng.randrange(len(word) - 1)
    kind = rng.randrange(4)
    if kind == 0:
        return word[:i] + word[i + 1] + word[i] + word[i + 2 :]
    if kind == 1:
        return word[:i] + word[i + 1 :]
    if kind == 2:
        return word[:i] + word[i] + word[i:]
    return word[:i] + rng.choice("abcdefghijklmnopqrstuvwxyz") + word[i + 1 :]


def dress(text: str, rng: random.Random) -> str:
    """A plain lower-case phrase as somebody might really type it."""
    bare = text
    text = swap_words(text, rng)
    if rng.random() < 0.16 and len(text.split()) > 2:
        text = rng.choice(PREFIXES) + text
    if rng.random() < 0.14 and len(text.split()) > 2:
        text = text + rng.choice(SUFFIXES)
    if rng.random() < 0.15:
        text = text.replace("'", "")
    if rng.random() < 0.12:
        words = text.split(" ")
        for _ in range(rng.randint(1, 2)):
            i = rng.randrange(len(words))
            words[i] = typo(words[i], rng)
        text = " ".join(words)
    style = rng.random()
    if style < 0.55:
        text = text[:1].upper() + text[1:]
        text = re.sub(r"\bi\b", "I", text)
        text = re.sub(r"\b(inglenook|llama|cmd|ctrl|esc|enter|shift)\b", lambda m: m[0].capitalize(), text)
        text = re.sub(r"\b(gguf|gpu|cpu|ram|kv|llm|api|openai)\b", lambda m: m[0].upper(), text)
    elif style > 0.98:
        text = text.upper()
    question = re.match(r"(what|how|why|where|which|who|can|could|is|are|does|do|will|when|should|may|any)\b", bare) is not None
    ends = ["?", "?", "?", "", "", "??", " ?"] if question else [".", ".", "", "", "!", "?", "..."]
    return tidy(text) + rng.choice(ends)


def say(ask: list, rng: random.Random) -> str:
    while True:
        text = tidy(sample(rng.choice(ask), rng))
        dressed = dress(text, rng)
        if text and normal(text) not in HELD_OUT and normal(dressed) not in HELD_OUT:
            return dressed


WEIGHTS = {"add-model": 1.6, "world": 2.2, "bigger-model": 1.2, "code": 1.3, "write-text": 1.3, "translate": 1.3, "maths": 1.2, "images": 1.2, "web": 1.2, "unknown": 0.7, "bye": 0.7, "joke": 0.8, "mac": 0.8, "nook-devices": 0.8, "min-p": 0.8}
FRAMED = 0.4  # of the questions come from data/frames.toml
TURNS = [1] * 50 + [2] * 22 + [3] * 12 + [4] * 7 + [6] * 5 + [9] * 3 + [20] * 1


def dialogue(topics: dict[str, Topic], rng: random.Random, turns: list[int] = TURNS) -> list[tuple[str, str]]:
    """Messages as (role, text)."""
    messages = []
    if rng.random() < 0.12:
        messages.append(("system", rng.choice(SYSTEMS) if rng.random() < 0.8 else f"You are {noise(rng)}."))
    names = list(topics)
    weights = [WEIGHTS.get(name, 1.0) for name in names]
    last = None
    for _ in range(rng.choice(turns)):
        if last is not None and last.follows and rng.random() < 0.5:
            follow = rng.choice(last.follows)
            messages += [("user", say(follow.ask, rng)), ("assistant", rng.choice(follow.answers))]
            last = None
            continue
        last = topics[rng.choices(names, weights)[0]]
        messages += [("user", say(last.framed if last.framed and rng.random() < FRAMED else last.ask, rng)), ("assistant", rng.choice(last.answers))]
    return messages


if __name__ == "__main__":
    rng = random.Random(1)
    topics = load_topics()
    for _ in range(12):
        for role, text in dialogue(topics, rng):
            print(f"{role:>9}: {text}")
        print()
