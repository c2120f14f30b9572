"""Patterns of phrases: `(a|b)` is a choice, `{name}` a shared word list or a small generator.

Knows nothing of topics or models.
"""

import random
import re
import string
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
MACROS: dict[str, list[str]] = tomllib.loads((HERE / "data/macros.toml").read_text())
SYMBOLS = "?!.,;:#@&%*+-=/()[]<>~^_|\\\"'…€£äöüßéèñçøłжшяαβω中文字日本語한국어عربي🙂🔥👍🎉❤"


def pseudo(rng: random.Random) -> str:
    """A word that doesn't exist, but could."""
    parts = ("br", "k", "l", "m", "n", "p", "st", "t", "v", "z", "gr", "d", "f", "s", "w", "fl", "sh", "j", "qu", "x", "h", "r", "c", "y", "b", "g")
    ends = ("", "", "n", "r", "s", "l", "t", "nd", "rk", "m", "b", "p", "x")
    word = "".join(rng.choice(parts) + rng.choice("aeiou") for _ in range(rng.randint(1, 3)))
    return word + rng.choice(ends)


def noise(rng: random.Random) -> str:
    if rng.random() < 0.6:
        return pseudo(rng)
    return "".join(rng.choice(string.ascii_lowercase) for _ in range(rng.randint(2, 9)))


def number(rng: random.Random) -> str:
    n = rng.choice((rng.randint(0, 20), rng.randint(0, 100), rng.randint(0, 1000), rng.randint(0, 99999)))
    return str(n) if rng.random() < 0.93 else f"{n}.{rng.randint(1, 99)}"


def symbols(rng: random.Random) -> str:
    return "".join(rng.choice(SYMBOLS) for _ in range(rng.randint(1, 6)))


GENERATORS = {"pseudo": pseudo, "noise": noise, "number": number, "symbols": symbols}


def parse(pattern: str):
    """A pattern as nested tuples: ("seq", …), ("alt", …), ("macro", name) or a plain string."""
    tokens, at = re.findall(r"\{\w+\}|[(|)]|[^(|){]+|\{", pattern), 0

    def alternatives(inside: bool):
        nonlocal at
        options, items = [], []
        while at < len(tokens):
            token = tokens[at]
            at += 1
            if token == "(":
                items.append(alternatives(True))
            elif token == "|":
                options.append(("seq", *items))
                items = []
            elif token == ")":
                if not inside:
                    raise ValueError(f"stray ) in {pattern!r}")
                return ("alt", *options, ("seq", *items))
            elif re.fullmatch(r"\{\w+\}", token):
                items.append(("macro", token[1:-1]))
            else:
                items.append(token)
        if inside:
            raise ValueError(f"missing ) in {pattern!r}")
        return ("alt", *options, ("seq", *items))

    return alternatives(False)


def sample(node, rng: random.Random) -> str:
    if isinstance(node, str):
        return node
    kind, *rest = node
    if kind == "seq":
        return "".join(sample(item, rng) for item in rest)
    if kind == "alt":
        return sample(rng.choice(rest), rng)
    name = rest[0]
    if name in GENERATORS:
        return GENERATORS[name](rng)
    return sample(parse(rng.choice(MACROS[name])), rng)


def normal(text: str) -> str:
    """Text for comparison: lower case, letters and digits only, single spaces."""
    return " ".join(re.sub(r"[^a-z0-9]+", " ", text.lower().replace("'", "")).split())
