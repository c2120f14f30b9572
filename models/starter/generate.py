"""Training dialogues, made from the user guide's articles and questions, and the small talk in data/.

Guarantees: the same seed gives the same dialogues, and no user line equals a
held-out question. Knows nothing of tokens.
"""

import random
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from articles import DECLINED, ROOT, load_articles, load_questions
from phrases import HERE, noise, normal, parse, sample

HELD_OUT_FILE = ROOT / "src-tauri/crates/guide/examples/questions.tsv"
DECLINE = "I only know this app, so I can't answer that; a downloaded model can."
OTHER_LANGUAGE = "I only speak English here. The user guide also speaks German, Japanese and Arabic: open **Help** in the app, or run `nook guide QUESTION`."

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


@dataclass(frozen=True)
class Topic:
    id: str
    answers: tuple[str, ...]
    questions: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()  # of phrases; a topic has either these or questions
    weight: float = 1.0  # how often it is asked about, an article being 1


def load_topics() -> dict[str, Topic]:
    """Everything that the starter answers: the guide's articles, small talk, and what it declines."""
    small_talk = tomllib.loads((HERE / "data/small-talk.toml").read_text())["topic"]
    declined = tomllib.loads((HERE / "data/out-of-scope.toml").read_text())
    patterns = tuple(pattern for each in declined.values() for pattern in each)
    foreign = tuple(question for code in ("de", "ja", "ar") for each in load_questions(code).values() for question in each)
    topics = [Topic(a.id, (a.answer,), a.questions) for a in load_articles()]
    topics += [Topic(row["id"], tuple(row["answers"]), patterns=tuple(row["ask"])) for row in small_talk]
    topics += [
        Topic(DECLINED, (DECLINE,), tuple(load_questions("en")[DECLINED]), weight=14.0),
        Topic("other-subjects", (DECLINE,), patterns=patterns, weight=5.0),
        Topic("other-language", (OTHER_LANGUAGE,), foreign, weight=4.0),
    ]
    found = {topic.id: topic for topic in topics}
    assert len(found) == len(topics), "an id occurs twice"
    return found


def load_heldout(path: Path = HELD_OUT_FILE) -> list[tuple[str, list[str]]]:
    """English questions that were never trained on, each with the ids of the right articles (`-`: none)."""
    rows = [line.split("\t") for line in path.read_text().splitlines() if line.startswith("en\t")]
    return [(question, articles.split(",")) for _, articles, question in rows]


HELD_OUT = {normal(question) for question, _ in load_heldout()}


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


@cache
def parsed(pattern: str):
    return parse(pattern)


def say(topic: Topic, rng: random.Random) -> str:
    """One of the topic's questions, as somebody might type it."""
    while True:
        text = rng.choice(topic.questions) if topic.questions else tidy(sample(parsed(rng.choice(topic.patterns)), rng))
        said = dress(text, rng) if text.isascii() else text
        # A mark of the template, such as <|im_end|>, would be one of its tokens here.
        if text and "<|" not in said and normal(text) not in HELD_OUT and normal(said) not in HELD_OUT:
            return said


TURNS = [1] * 55 + [2] * 25 + [3] * 10 + [4] * 5 + [6] * 4 + [8]


def dialogue(topics: dict[str, Topic], rng: random.Random, turns: list[int] = TURNS) -> list[tuple[str, str]]:
    """Messages as (role, text)."""
    messages = []
    if rng.random() < 0.12:
        messages.append(("system", rng.choice(SYSTEMS) if rng.random() < 0.8 else f"You are {noise(rng)}."))
    each = list(topics.values())
    weights = [topic.weight for topic in each]
    for _ in range(rng.choice(turns)):
        topic = rng.choices(each, weights)[0]
        messages += [("user", say(topic, rng)), ("assistant", rng.choice(topic.answers))]
    return messages


if __name__ == "__main__":
    rng = random.Random(1)
    topics = load_topics()
    for _ in range(12):
        for role, text in dialogue(topics, rng):
            print(f"{role:>9}: {text}")
        print()
