"""The starter's vocabulary: byte-level BPE with GPT-2's pre-tokeniser, and its ChatML template.

Writes build/tokenizer.json: the vocabulary of the shipped file, which tests and stored chats count tokens with, or
with `--new` one that is made from the present data. The pre-tokeniser must stay GPT-2's, because the GGUF file says
`tokenizer.ggml.pre = gpt-2`.
"""

import argparse
import random

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from generate import dialogue, load_topics
from phrases import HERE, SYMBOLS

VOCAB = 3072
BEGIN, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL = [BEGIN, START, END]
TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
PATH = HERE / "build/tokenizer.json"


def train() -> Tokenizer:
    rng, topics = random.Random(7), load_topics()

    def lines():
        for _ in range(12000):
            for role, text in dialogue(topics, rng):
                yield text
                yield role + "\n"
        for topic in topics.values():  # answers weigh more than questions
            for answer in topic.answers * 40:
                yield answer

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=SPECIAL, initial_alphabet=alphabet, min_frequency=2, show_progress=False)
    tokenizer.train_from_iterator(lines(), trainer)
    return tokenizer


def shipped() -> Tokenizer:
    from export import load_vocabulary  # which imports this module

    return load_vocabulary()


def load(dropout: float | None = None) -> Tokenizer:
    """With dropout, words split at random now and then: typing errors look less strange then."""
    tokenizer = Tokenizer.from_file(str(PATH))
    if dropout:
        tokenizer.model.dropout = dropout
    return tokenizer


def render(messages: list[tuple[str, str]], generation_prompt: bool) -> str:
    """What TEMPLATE makes of (role, text) messages."""
    text = "".join(f"{START}{role}\n{content}{END}\n" for role, content in messages)
    return text + f"{START}assistant\n" if generation_prompt else text


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--new", action="store_true", help="make it from the data, instead of taking the shipped file's")
    tokenizer = train() if options.parse_args().new else shipped()
    assert tokenizer.get_vocab_size() == VOCAB, tokenizer.get_vocab_size()
    assert tokenizer.decode(tokenizer.encode(SYMBOLS).ids) == SYMBOLS
    PATH.parent.mkdir(exist_ok=True)
    tokenizer.save(str(PATH))
    print(f"vocabulary of {VOCAB} in {PATH.relative_to(HERE)}")
