"""The user guide's articles, and the questions that they answer: what the starter is taught about Inglenook.

Reads docs/USER_GUIDE.md, where the names of settings, keys and commands are filled in, and the questions in
docs/guide. Knows nothing of dialogues or tokens.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/USER_GUIDE.md"
ARTICLES = ROOT / "docs/guide/en"
QUESTIONS = ROOT / "docs/guide/questions"
REPORT = Path(__file__).parent / "eval/report.json"
DECLINED, SMALL_TALK = "out-of-scope", "small-talk"  # the two sets of questions that have no article


@dataclass(frozen=True)
class Article:
    id: str
    title: str
    text: str
    questions: tuple[str, ...]

    @property
    def answer(self) -> str:
        """Its title first: the first words of an answer then decide which article it is."""
        return f"**{self.title}**\n\n{self.text}"

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.answer.encode()).hexdigest()[:16]


def load_texts() -> dict[str, tuple[str, str]]:
    """Title and text of each article by its id."""
    found = {}
    for part in GUIDE.read_text().split('<a id="')[1:]:
        id, rest = part.split('"></a>', 1)
        title, body = re.fullmatch(r"\s*### ([^\n]+)\n(.*)", rest, re.DOTALL).groups()
        body = re.split(r"\nSee also: |\n## ", body)[0]
        body = re.sub(r"^!\[[^\n]*\n", "", body, flags=re.MULTILINE)  # pictures
        body = re.sub(r"\[([^]]+)\]\(#[^)]+\)", r"\1", body)  # links within the guide
        found[id] = (title, re.sub(r"\n{3,}", "\n\n", body).strip())
    return found


def load_questions(language: str) -> dict[str, list[str]]:
    """Questions by the id of the article that answers them."""
    found: dict[str, list[str]] = {}
    for line in (QUESTIONS / f"{language}.txt").read_text().splitlines():
        if line.startswith("# "):
            article = line[2:].strip()
        elif line.strip():
            found.setdefault(article, []).append(line.strip())
    return found


def load_phrasings() -> dict[str, list[str]]:
    """Other phrasings that the articles themselves name."""
    found: dict[str, list[str]] = {}
    for path in sorted(ARTICLES.glob("*.md")):
        for line in path.read_text().splitlines():
            if heading := re.fullmatch(r"## .* \{#([\w-]+)\}", line):
                article = heading[1]
            elif line.startswith("ask: "):
                found.setdefault(article, []).append(line[5:].strip())
    return found


def load_articles() -> list[Article]:
    questions, phrasings = load_questions("en"), load_phrasings()
    return [
        Article(id, title, text, tuple(dict.fromkeys([title, *phrasings.get(id, []), *questions.get(id, [])])))
        for id, (title, text) in load_texts().items()
    ]


def changed_articles(articles: list[Article]) -> list[str]:
    """Ids of the articles that the shipped file was not taught in their present words."""
    taught = json.loads(REPORT.read_text())["articles"]
    return [article.id for article in articles if taught.get(article.id) != article.digest]


if __name__ == "__main__":
    articles = load_articles()
    changed = changed_articles(articles)
    print(f"{len(articles)} articles, {len(changed)} of them changed since the model was made: {', '.join(changed) or '-'}")
