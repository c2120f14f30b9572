#!/usr/bin/env python3
"""Makes small random models that embed, as GGUF files, with the vectors that transformers computes for them.

    pip install torch transformers safetensors numpy gguf
    python3 tests/reference/embed.py tests/reference/embeddings [--seed 1] [NAME ...]

Each model is NAME.gguf (float32, written with gguf-py under its own names) beside NAME.json: texts as ids, and the
vector of each, pooled and of length 1. The same seed gives the same model. Without names all of CASES are made.
"""

import argparse
import json
import os

import gguf
import numpy
import tokenizers
import torch
import transformers

from make import draw

# control tokens, bytes, and a few letters: what a SentencePiece vocabulary has at least
PIECES = ["<unk>", "<s>", "</s>"] + [f"<0x{n:02X}>" for n in range(256)] + ["▁"]
VOCAB = len(PIECES)

# BERT's: words, and parts of words as its own files mark them
BERT_WORDS = ["un", "##aff", "##able", "fox", "##es", "cafe", "naive", "don", "tower", "東", "京", "ß", "##s"]
BERT_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + list("abcdefghijklmnopqrstuvwxyz.,!?'-") + \
    ["##" + letter for letter in "abcdefghijklmnopqrstuvwxyz"] + BERT_WORDS
BERT_TEXTS = ["Unaffable FOXES!", "Café, naïve?", "東京 tower", " a\tb\n  c ", "don't", "fox" * 40, "", "foxß", "x§y z",
              "a\u200bb \u00a0c", "ÄÖ", "don -- fox.", "un" + "b" * 98, "un" + "b" * 99]
LENGTHS = [1, 6, 41]

BASE = dict(vocab_size=VOCAB, max_position_embeddings=128, rms_norm_eps=1e-6, hidden_size=16, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, head_dim=8, intermediate_size=24)
SLIDING = ["sliding_attention"] * 5 + ["full_attention"]

CASES = {
    "qwen3-last": dict(arch="qwen3", pooling="last", config=dict(BASE, model_type="qwen3", rope_theta=1000000.0)),
    "qwen3-mean": dict(arch="qwen3", pooling="mean", config=dict(BASE, model_type="qwen3", rope_theta=10000.0)),
    "gemma": dict(arch="gemma-embedding", pooling="mean", dense=[20, 12],
                  config=dict(BASE, model_type="gemma3_text", num_hidden_layers=6, layer_types=SLIDING,
                              sliding_window=12, query_pre_attn_scalar=8, rope_theta=1000000.0,
                              rope_local_base_freq=10000.0, use_bidirectional_attention=True,
                              hidden_activation="gelu_pytorch_tanh")),
    "gemma-plain": dict(arch="gemma-embedding", pooling="mean",
                        config=dict(BASE, model_type="gemma3_text", num_hidden_layers=2, layer_types=SLIDING[:2],
                                    sliding_window=9, query_pre_attn_scalar=8, rope_theta=1000000.0,
                                    rope_local_base_freq=10000.0, use_bidirectional_attention=True,
                                    hidden_activation="gelu_pytorch_tanh")),
}

# BERT: one table of positions and one of kinds, biases everywhere
CASES["bert"] = dict(arch="bert", pooling="cls",
                     config=dict(model_type="bert", vocab_size=len(BERT_PIECES), hidden_size=16, num_hidden_layers=2,
                                 num_attention_heads=4, intermediate_size=24, max_position_embeddings=64,
                                 type_vocab_size=2, hidden_act="gelu", layer_norm_eps=1e-12))
# Nomic's: rotation, a gate, no biases; files have queries, keys and values in one
CASES["nomic"] = dict(arch="nomic-bert", pooling="mean",
                      config=dict({k: v for k, v in CASES["bert"]["config"].items() if k != "hidden_act"},
                                  model_type="nomic_bert", vocab_size=VOCAB, rope_theta=1000.0))
NOMIC = {"post_attention_layernorm": "attn_output_norm", "post_mlp_layernorm": "layer_output_norm"}

POOLING = dict(mean=gguf.PoolingType.MEAN, cls=gguf.PoolingType.CLS, last=gguf.PoolingType.LAST)


def build(case, seed):
    """A model with weights drawn from the seed, and linear layers behind it."""
    rng = numpy.random.default_rng(seed)
    torch.manual_seed(seed)
    built = transformers.AutoConfig.for_model(**case["config"])
    model = transformers.AutoModel.from_config(built, dtype=torch.float32, attn_implementation="eager")
    model.eval()
    draw(model, rng)
    widths = [built.hidden_size] + case.get("dense", [])
    dense = [torch.from_numpy(rng.standard_normal((n, m)).astype(numpy.float32)) for m, n in zip(widths, widths[1:])]
    return model, dense


def vector(model, dense, pooling, ids):
    with torch.no_grad():
        states = model(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids))).last_hidden_state[0].double()
    x = dict(mean=states.mean(0), cls=states[0], last=states[-1])[pooling]
    for matrix in dense:
        x = matrix.double() @ x
    return (x / x.norm()).tolist()


def write_words(writer, arch):
    if arch == "bert":
        # as llama.cpp's converter writes them: what begins a word is marked, not what goes on
        as_stored = lambda piece: piece[2:] if piece.startswith("##") else piece if piece[0] == "[" else "▁" + piece
        writer.add_tokenizer_model("bert")
        writer.add_token_list([as_stored(piece) for piece in BERT_PIECES])
        writer.add_token_types([gguf.TokenType.CONTROL] * 5 + [gguf.TokenType.NORMAL] * (len(BERT_PIECES) - 5))
        writer.add_pad_token_id(0)
        writer.add_unk_token_id(1)
        writer.add_bos_token_id(2)
        writer.add_sep_token_id(3)
        writer.add_mask_token_id(4)
        return
    writer.add_tokenizer_model("llama")
    writer.add_token_list(PIECES)
    writer.add_token_scores([0.0] * VOCAB)
    kinds = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * 256
    writer.add_token_types(kinds + [gguf.TokenType.NORMAL] * (VOCAB - len(kinds)))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(arch == "gemma-embedding")
    writer.add_add_eos_token(True)


def bert_words():
    """Texts and their ids by the `tokenizers` library."""
    vocab = {piece: index for index, piece in enumerate(BERT_PIECES)}
    words = tokenizers.BertWordPieceTokenizer(vocab=vocab, lowercase=True)
    return [dict(text=text, ids=words.encode(text).ids) for text in BERT_TEXTS]


def gguf_name(names, arch, name):
    """What gguf-py calls a tensor of transformers."""
    root = "" if "bert" in arch else "model."
    found = names.get_name(root + name, try_suffixes=(".weight", ".bias"))
    if found is None:
        _, layer, part, end = name.split(".")
        found = f"blk.{layer}.{NOMIC[part]}.{end}"
    return found


def write(path, case, model, dense):
    arch, config = case["arch"], model.config
    writer = gguf.GGUFWriter(path, arch)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    if "bert" in arch:
        writer.add_layer_norm_eps(config.layer_norm_eps)
        writer.add_causal_attention(False)
    else:
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if "rope_theta" in case["config"]:
        writer.add_rope_freq_base(case["config"]["rope_theta"])
    if "sliding_window" in case["config"]:
        writer.add_sliding_window(case["config"]["sliding_window"])
    writer.add_pooling_type(POOLING[case["pooling"]])
    write_words(writer, arch)
    kind = next(kind for kind, name in gguf.MODEL_ARCH_NAMES.items() if name == arch)
    names = gguf.get_tensor_name_map(kind, config.num_hidden_layers)
    for name, p in model.state_dict().items():
        x = p.float().numpy()
        if arch == "gemma-embedding" and name.endswith("norm.weight"):
            x = x + 1  # as llama.cpp's converter stores them
        is_fused = arch == "nomic-bert" and any(f".{part}_proj." in name for part in "qkv")
        if name.startswith("pooler.") or "position_ids" in name or is_fused:
            continue
        writer.add_tensor(gguf_name(names, arch, name), x)
    if arch == "nomic-bert":
        for index, layer in enumerate(model.layers):
            parts = [getattr(layer.self_attn, part + "_proj").weight for part in "qkv"]
            writer.add_tensor(f"blk.{index}.attn_qkv.weight", torch.cat(parts).detach().numpy())
    for number, matrix in enumerate(dense, 2):
        writer.add_dense_features_dims(f"dense_{number}", matrix.shape[1], matrix.shape[0])
        writer.add_tensor(f"dense_{number}.weight", matrix.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make(folder, name, seed):
    case = CASES[name]
    model, dense = build(case, seed)
    rng = numpy.random.default_rng(seed + 1)
    texts = [rng.integers(3, case["config"]["vocab_size"], n).tolist() for n in LENGTHS]
    write(os.path.join(folder, name + ".gguf"), case, model, dense)
    found = [dict(ids=ids, vector=[round(x, 8) for x in vector(model, dense, case["pooling"], ids)]) for ids in texts]
    source = f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}, float32, eager attention"
    with open(os.path.join(folder, name + ".json"), "w") as out:
        words = dict(words=bert_words()) if case["arch"] == "bert" else {}
        json.dump(dict(source=source, texts=found, **words), out, separators=(",", ":"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    os.makedirs(args.out, exist_ok=True)
    for name in args.names or CASES:
        make(args.out, name, args.seed)
        print(name, flush=True)


if __name__ == "__main__":
    main()
