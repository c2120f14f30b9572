"""Writes the trained weights as one GGUF v3 file in Q8_0, and reads such a file back.

Matrices become Q8_0, norms stay F32, as llama.cpp does it. `load` gives the network
with exactly the numbers that are in the file, so that what is evaluated is what ships.
"""

import argparse
import json

import gguf
import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import tokenizer as vocabulary
from model import Config, Llama
from phrases import HERE
from train import PATH as CHECKPOINT

OUT = HERE / "starter.gguf"


def add_metadata(writer: gguf.GGUFWriter, cfg: Config, parameters: int) -> None:
    writer.add_type("model")
    writer.add_name("Inglenook Starter")
    writer.add_size_label(f"{parameters / 1e6:.1f}M")
    writer.add_license("MIT OR Apache-2.0")
    writer.add_description("The guide that ships inside Inglenook; it knows the app and little else.")
    writer.add_languages(["en"])
    writer.add_context_length(cfg.context)
    writer.add_embedding_length(cfg.width)
    writer.add_block_count(cfg.layers)
    writer.add_feed_forward_length(cfg.ffn)
    writer.add_head_count(cfg.heads)
    writer.add_head_count_kv(cfg.kv_heads)
    writer.add_key_length(cfg.head_dim)
    writer.add_value_length(cfg.head_dim)
    writer.add_rope_dimension_count(cfg.head_dim)
    writer.add_rope_freq_base(cfg.rope_theta)
    writer.add_layer_norm_rms_eps(cfg.rms_eps)
    writer.add_vocab_size(cfg.vocab)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)


def add_vocabulary(writer: gguf.GGUFWriter) -> None:
    bpe = json.loads(vocabulary.PATH.read_text())["model"]
    tokens = sorted(bpe["vocab"], key=bpe["vocab"].get)
    control = set(vocabulary.SPECIAL)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL if t in control else gguf.TokenType.NORMAL for t in tokens])
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in bpe["merges"]])
    writer.add_bos_token_id(bpe["vocab"][vocabulary.BEGIN])
    writer.add_eos_token_id(bpe["vocab"][vocabulary.END])
    writer.add_pad_token_id(bpe["vocab"][vocabulary.BEGIN])
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(vocabulary.TEMPLATE)


def export(state: dict[str, torch.Tensor], cfg: Config, out=OUT) -> None:
    writer = gguf.GGUFWriter(str(out), "llama")
    add_metadata(writer, cfg, sum(v.numel() for v in state.values()))
    add_vocabulary(writer)
    kind = gguf.GGMLQuantizationType.Q8_0
    for name, value in state.items():  # modules are named as GGUF names tensors
        array = value.float().numpy()
        if array.ndim == 1:
            writer.add_tensor(name, array)
        else:
            writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def load(path=OUT, cfg: Config = Config()) -> Llama:
    """The network with the file's own numbers, in float32."""
    state = {}
    for tensor in gguf.GGUFReader(str(path)).tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        state[tensor.name] = torch.from_numpy(np.array(values, dtype=np.float32))
    model = Llama(cfg)
    model.load_state_dict(state)
    return model.eval()


def load_vocabulary(path=OUT) -> Tokenizer:
    """The tokenizer that the file itself describes."""
    fields = gguf.GGUFReader(str(path)).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(vocabulary.SPECIAL)
    return tokenizer


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--average", action="store_true", help="the running average of the weights: better while the rate is still high")
    args = options.parse_args()
    kept = torch.load(CHECKPOINT)
    export(kept["average" if args.average else "model"], Config())
    print(f"step {kept['step']}: {OUT.stat().st_size:,} bytes in {OUT.relative_to(HERE)}")
