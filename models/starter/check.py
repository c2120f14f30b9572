"""Checks the data before training; exits with 1 and a list of what is wrong.

Run as `python check.py`.
"""

import sys

from articles import DECLINED, ROOT, SMALL_TALK, load_articles, load_phrasings, load_questions
from generate import DECLINE, load_heldout, load_topics
from phrases import parse

FEWEST = 20  # questions of an article
GUIDE_REPLIES = ROOT / "src-tauri/crates/guide/src/small_talk.rs"


def faults() -> list[str]:
    articles = {article.id: article for article in load_articles()}
    known = {*articles, DECLINED, SMALL_TALK}
    named = [("docs/guide/questions/en.txt", load_questions("en")), ("docs/guide/en", load_phrasings())]
    found = [f"{place}: no article {id}" for place, each in named for id in each if id not in known]
    found += [f"held out: no article {id}" for _, ids in load_heldout() for id in ids if id != "-" and id not in articles]
    found += [f"{a.id}: {len(a.questions)} questions, fewer than {FEWEST}" for a in articles.values() if len(a.questions) < FEWEST]
    found += [f"{a.id}: no text" for a in articles.values() if not a.text]
    if DECLINE not in GUIDE_REPLIES.read_text():
        found.append(f"the guide declines in other words than: {DECLINE}")
    for topic in load_topics().values():
        for pattern in topic.patterns:
            try:
                parse(pattern)
            except ValueError as error:
                found.append(f"{topic.id}: {error}")
    return found


if __name__ == "__main__":
    found = faults()
    print("\n".join(found) or f"{len(load_topics())} topics, {len(load_heldout())} held-out questions: no fault")
    sys.exit(1 if found else 0)
