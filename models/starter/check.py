"""Checks the data before training: facts, held-out separation, numbers in the answers.

Run as `python check.py`; exits with 1 and a list when something is wrong.
"""

import re
import sys

from generate import PREFIXES, SUFFIXES, load_heldout, load_heldout_dialogues, load_topics
from phrases import normal, parse, regex


def missing_facts(answer: str, facts: list[str]) -> list[str]:
    """The required facts (regular expressions) that an answer lacks."""
    plain = re.sub(r"[*`]", "", answer).lower().replace("’", "'")
    return [fact for fact in facts if not re.search(fact, plain)]


def check_answers(topics) -> list[str]:
    return [f"{t.id}: answer lacks {m}: {a}" for t in topics.values() for a in t.answers if (m := missing_facts(a, t.facts))]


def check_heldout(topics, heldout) -> list[str]:
    faults = [f"{name}: no such topic" for name in heldout if name not in topics]
    faults += [f"{name}: {len(heldout.get(name, []))} held-out paraphrases, not 4" for name in topics if len(heldout.get(name, [])) != 4]
    around = ["(?:(?:" + "|".join(re.escape(normal(p)) for p in words) + r")\s+)?" for words in (PREFIXES, [])]
    tail = r"(?:\s+(?:" + "|".join(re.escape(normal(s)) for s in SUFFIXES) + "))?"
    lines = [(name, line) for name, each in heldout.items() for line in each]
    lines += [("dialogue", turn) for turns in load_heldout_dialogues() for turn in turns[::2]]
    for topic in topics.values():
        for pattern in topic.patterns:
            reach = re.compile(around[0] + regex(parse(pattern)) + tail)
            faults += [f"{name}: {line!r} is within {topic.id}: {pattern}" for name, line in lines if reach.fullmatch(normal(line))]
    return faults


if __name__ == "__main__":
    topics, heldout = load_topics(), load_heldout()
    faults = check_answers(topics) + check_heldout(topics, heldout)
    print("\n".join(faults) or f"{len(topics)} topics, {sum(map(len, heldout.values()))} held-out paraphrases: no fault")
    sys.exit(1 if faults else 0)
