#!/usr/bin/env python3
"""Makes small random models of every family, with the logits that transformers computes for them.

    pip install torch transformers safetensors numpy
    python3 tests/reference/make.py tests/reference/logits [--seed 1] [NAME ...]

Each model is a folder: model.safetensors (bfloat16), config.json, perhaps the config as transformers saves it
(config.saved.json), ref.hf.json and ref.hf.last.npy in the form of the conformance data: for each prompt its tokens,
the ten best logits after every position, and ids continued by argmax with their margins. Weights are drawn so that
every part of a layer matters; the same seed gives the same model. Without names all of CASES are made.
"""

import argparse
import json
import os
import shutil

import numpy
import safetensors.torch
import torch
import transformers

VOCAB = 128
PROMPTS = [1, 7, 44]
N_GREEDY = 12

BASE = dict(vocab_size=VOCAB, max_position_embeddings=256, rms_norm_eps=1e-5, hidden_size=32, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, intermediate_size=48, hidden_act="silu", bos_token_id=0,
            eos_token_id=1, pad_token_id=None)
GEMMA = dict(BASE, head_dim=24, hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh", tie_word_embeddings=True, rms_norm_eps=1e-6)
GEMMA4 = dict(GEMMA, model_type="gemma4_text", head_dim=16, global_head_dim=32, sliding_window=12,
              final_logit_softcapping=7.0, num_hidden_layers=3,
              layer_types=["sliding_attention", "sliding_attention", "full_attention"],
              rope_parameters=dict(
                  sliding_attention=dict(rope_type="default", rope_theta=10000.0),
                  full_attention=dict(rope_type="proportional", partial_rotary_factor=0.25, rope_theta=1000000.0)),
              attention_k_eq_v=False, num_kv_shared_layers=0, hidden_size_per_layer_input=0,
              vocab_size_per_layer_input=VOCAB, enable_moe_block=False, use_double_wide_mlp=False)
QWEN35 = dict(BASE, head_dim=32, layer_types=["linear_attention", "linear_attention", "full_attention"],
              num_hidden_layers=3, linear_conv_kernel_dim=4, linear_key_head_dim=16, linear_value_head_dim=16,
              linear_num_key_heads=2, linear_num_value_heads=4, attn_output_gate=True, tie_word_embeddings=True,
              rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25))
MOE = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=16)

CASES = {
    "gpt2": dict(model_type="gpt2", vocab_size=512, n_positions=256, n_embd=32, n_layer=2, n_head=4,
                 activation_function="gelu_new", layer_norm_epsilon=1e-5, bos_token_id=508, eos_token_id=509),
    "llama": dict(BASE, model_type="llama", tie_word_embeddings=False, rope_theta=10000.0,
                  rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                    original_max_position_embeddings=32)),
    "smollm3": dict(BASE, model_type="smollm3", num_hidden_layers=4, tie_word_embeddings=True, rope_theta=50000.0),
    "mistral": dict(BASE, model_type="mistral", sliding_window=16, tie_word_embeddings=False, head_dim=24),
    "ministral3": dict(BASE, model_type="ministral3", head_dim=24, sliding_window=None, tie_word_embeddings=True,
                       rope_parameters=dict(type="yarn", rope_type="yarn", rope_theta=1000000.0, factor=8.0,
                                            original_max_position_embeddings=32, beta_fast=32.0, beta_slow=1.0,
                                            mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1)),
    "gemma": dict(GEMMA, model_type="gemma"),
    "gemma2": dict(GEMMA, model_type="gemma2", attn_logit_softcapping=5.0, final_logit_softcapping=6.0,
                   query_pre_attn_scalar=48, sliding_window=12),
    "gemma3": dict(GEMMA, model_type="gemma3_text", num_hidden_layers=3, query_pre_attn_scalar=40, sliding_window=12,
                   rope_theta=1000000.0, rope_local_base_freq=10000.0,
                   rope_scaling=dict(rope_type="linear", factor=8.0),
                   layer_types=["sliding_attention", "sliding_attention", "full_attention"]),
    "gemma4": dict(GEMMA4, attention_k_eq_v=True, num_global_key_value_heads=1),
    "gemma4_moe": dict(GEMMA4, attention_k_eq_v=True, num_global_key_value_heads=1, enable_moe_block=True,
                       num_experts=6, top_k_experts=2, moe_intermediate_size=16),
    "gemma4_e": dict(GEMMA4, num_hidden_layers=5, num_kv_shared_layers=2, use_double_wide_mlp=True,
                     hidden_size_per_layer_input=16, num_key_value_heads=1, intermediate_size=32,
                     layer_types=["sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
                                  "full_attention"]),
    "qwen2": dict(BASE, model_type="qwen2", tie_word_embeddings=False),
    "qwen3": dict(BASE, model_type="qwen3", head_dim=24, tie_word_embeddings=True),
    "qwen3_moe": dict(BASE, **MOE, model_type="qwen3_moe", head_dim=16, norm_topk_prob=True, decoder_sparse_step=1,
                      mlp_only_layers=[], tie_word_embeddings=False),
    "qwen3_5": dict(QWEN35, model_type="qwen3_5_text"),
    "qwen3_5_moe": dict({k: v for k, v in QWEN35.items() if k != "intermediate_size"}, **MOE,
                        model_type="qwen3_5_moe_text", shared_expert_intermediate_size=24),
    "gpt_oss": dict(BASE, model_type="gpt_oss", head_dim=16, num_hidden_layers=2, intermediate_size=32,
                    num_local_experts=4, num_experts_per_tok=2, sliding_window=12, attention_bias=True,
                    swiglu_limit=7.0, tie_word_embeddings=False, rope_theta=150000.0,
                    rope_scaling=dict(rope_type="yarn", factor=8.0, beta_fast=32.0, beta_slow=1.0, truncate=False,
                                      original_max_position_embeddings=32),
                    layer_types=["sliding_attention", "full_attention"],
                    quantization_config=dict(quant_method="mxfp4", modules_to_not_convert=["model.embed_tokens"])),
    "phi3": dict(BASE, model_type="phi3", rope_theta=10000.0, sliding_window=20, tie_word_embeddings=False,
                 original_max_position_embeddings=256, rope_scaling=None),
    "lfm2": dict(model_type="lfm2", vocab_size=VOCAB, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
                 num_key_value_heads=2, norm_eps=1e-5, layer_types=["conv", "full_attention", "conv"], conv_L_cache=3,
                 conv_bias=False, block_ff_dim=96, block_auto_adjust_ff_dim=True, block_multiple_of=32,
                 block_ffn_dim_multiplier=1.0, rope_theta=1000000.0, tie_word_embeddings=True,
                 max_position_embeddings=256, bos_token_id=0, eos_token_id=1),
}

# Rarer settings of published models.
CASES |= {
    "llama-odd": dict(BASE, model_type="llama", vocab_size=101, hidden_size=40, num_attention_heads=5,
                      num_key_value_heads=1, intermediate_size=37, tie_word_embeddings=False, attention_bias=True,
                      mlp_bias=True, rope_theta=10000.0, rope_scaling=dict(type="linear", factor=4.0)),
    "smollm3-window": dict(CASES["smollm3"], no_rope_layers=[0, 1, 1, 0], use_sliding_window=True, sliding_window=9,
                           rope_scaling=dict(rope_type="yarn", factor=2.0, original_max_position_embeddings=32)),
    "qwen2-window": dict(CASES["qwen2"], num_hidden_layers=4, use_sliding_window=True, sliding_window=8,
                         max_window_layers=2, tie_word_embeddings=True),
    "qwen3_5-even": dict({k: v for k, v in CASES["qwen3_5"].items() if k not in ("layer_types", "rope_parameters")},
                         num_hidden_layers=4, full_attention_interval=2, linear_num_value_heads=2,
                         linear_key_head_dim=8, linear_value_head_dim=24, linear_conv_kernel_dim=3,
                         tie_word_embeddings=False, partial_rotary_factor=0.5, rope_theta=5000.0),
    "gpt2-inner": dict(CASES["gpt2"], n_inner=50, n_layer=3, activation_function="gelu", tie_word_embeddings=False,
                       scale_attn_by_inverse_layer_idx=True, vocab_size=99, n_positions=64, bos_token_id=1,
                       eos_token_id=1),
    "phi3-long": dict(CASES["phi3"], hidden_size=64, partial_rotary_factor=0.75, tie_word_embeddings=True,
                      original_max_position_embeddings=32, sliding_window=None,
                      rope_scaling=dict(type="longrope", short_factor=[1.0, 1.1, 1.3, 1.5, 1.6, 1.7],
                                        long_factor=[1.5, 2.0, 4.0, 7.0, 8.0, 9.0])),
    "lfm2-bias": dict({k: v for k, v in CASES["lfm2"].items() if k not in ("layer_types", "block_ff_dim")},
                      conv_bias=True, num_hidden_layers=4, full_attn_idxs=[1, 3], block_auto_adjust_ff_dim=False,
                      intermediate_size=40, conv_L_cache=4),
    "qwen3_moe-raw": dict(CASES["qwen3_moe"], num_hidden_layers=4, norm_topk_prob=False, decoder_sparse_step=2,
                          mlp_only_layers=[3], tie_word_embeddings=True),
}


def draw(model, rng):
    """Every parameter anew: norms about their neutral value, matrices so that no part of a layer fades."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.from_numpy(rng.standard_normal(tuple(p.shape)).astype(numpy.float32))
            last = name.split(".")[-1]
            if "A_log" in name or "dt_bias" in name:
                p.copy_(noise * 0.5)
            elif "layer_scalar" in name:
                p.copy_(1 + 0.2 * noise)
            elif "router.scale" in name or "per_expert_scale" in name:
                p.copy_(1 + 0.3 * noise)
            elif p.ndim == 1 and last == "weight":
                is_centred = torch.abs(p).max() == 0  # fresh norms are at their neutral value
                p.copy_((0.0 if is_centred else 1.0) + 0.3 * noise)
            elif p.ndim == 1 or last in ("bias", "sinks") or "_bias" in last:
                p.copy_(0.5 * noise)
            elif "embed" in name or "wte" in name or "wpe" in name:
                p.copy_(noise * (0.3 if "wpe" in name else 1.0))
            elif "conv" in name:
                p.copy_(noise * 0.5)
            else:
                is_router = "router" in name or ".gate.weight" in name and "mlp" in name
                fan_in = p.shape[-2] if p.ndim == 3 and "gpt_oss" in type(model).__module__ else p.shape[-1]
                p.copy_(noise * (3.0 if is_router else 1.3) / fan_in**0.5)
        for p in model.parameters():
            p.copy_(p.to(torch.bfloat16).float())


def mxfp4(model, rng):
    """Experts of random MXFP4 blocks: sets the model's matrices and returns the tensors of a published file."""
    levels = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    tensors = {}
    for index, layer in enumerate(model.model.layers):
        for name in ("gate_up_proj", "down_proj"):
            p = getattr(layer.mlp.experts, name)  # [experts, in, out]
            n, n_in, n_out = p.shape
            blocks = torch.from_numpy(rng.integers(0, 256, (n, n_out, n_in // 32, 16), dtype=numpy.uint8))
            scales = torch.from_numpy(rng.integers(122, 125, (n, n_out, n_in // 32), dtype=numpy.uint8))
            values = torch.stack([levels[(blocks & 15).long()], levels[(blocks >> 4).long()]], -1).flatten(-2)
            values = values * torch.exp2(scales.float() - 127).unsqueeze(-1)
            with torch.no_grad():
                p.copy_(values.reshape(n, n_out, n_in).transpose(1, 2))
            place = f"model.layers.{index}.mlp.experts.{name}"
            tensors[f"{place}_blocks"], tensors[f"{place}_scales"] = blocks, scales
    return tensors


def logits(model, tokens):
    """All logits, computed anew. (tokens, vocab)"""
    with torch.no_grad():
        return model(torch.tensor([tokens]), use_cache=False).logits[0].float()


def answers(model, prompts):
    found, last = [], []
    for tokens in prompts:
        rows = logits(model, tokens)
        top = torch.topk(rows, 10)
        top10 = [[ids, [round(x, 6) for x in values]] for ids, values in zip(top.indices.tolist(), top.values.tolist())]
        greedy, margins, now = [], [], list(tokens)
        for _ in range(N_GREEDY):
            best = torch.topk(logits(model, now)[-1], 2)
            greedy.append(best.indices[0].item())
            margins.append(round((best.values[0] - best.values[1]).item(), 6))
            now.append(greedy[-1])
        found.append(dict(tokens=tokens, top10=top10, greedy=greedy, greedy_margin=margins))
        last.append(rows[-1].numpy())
    return found, numpy.stack(last).astype(numpy.float32)


def build(config, seed):
    """A model with weights drawn from the seed, and tensors of its file that transformers would store otherwise."""
    rng = numpy.random.default_rng(seed)
    torch.manual_seed(seed)
    config = dict(config)
    config.pop("quantization_config", None)
    built = transformers.AutoConfig.for_model(**config)
    model = transformers.AutoModelForCausalLM.from_config(built, dtype=torch.float32, attn_implementation="eager")
    model.eval()
    draw(model, rng)
    return model, mxfp4(model, rng) if config["model_type"] == "gpt_oss" else {}


def make(folder, name, config, seed):
    model, packed = build(config, seed)
    rng = numpy.random.default_rng(seed + 1)
    prompts = [rng.integers(2, config["vocab_size"], n).tolist() for n in PROMPTS]
    found, last = answers(model, prompts)

    os.makedirs(folder, exist_ok=True)
    saved = os.path.join(folder, "saved")
    model.to(torch.bfloat16).save_pretrained(saved)
    tensors = safetensors.torch.load_file(os.path.join(saved, "model.safetensors"))
    tensors = {k: v for k, v in tensors.items() if not any(k + end in packed for end in ("_blocks", "_scales"))}
    safetensors.torch.save_file({**tensors, **packed}, os.path.join(folder, "model.safetensors"))
    config = dict(config, architectures=[type(model).__name__], torch_dtype="bfloat16")
    if not packed:
        os.replace(os.path.join(saved, "config.json"), os.path.join(folder, "config.saved.json"))
    shutil.rmtree(saved)
    with open(os.path.join(folder, "config.json"), "w") as out:
        json.dump(config, out, indent=1)
    source = f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}, float32, eager attention"
    with open(os.path.join(folder, "ref.hf.json"), "w") as out:
        answer = dict(arch=name, source=source, vocab_size=config["vocab_size"], prompts=found)
        json.dump(answer, out, separators=(",", ":"))
    numpy.save(os.path.join(folder, "ref.hf.last.npy"), last)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in args.names or CASES:
        make(os.path.join(args.out, name), name, CASES[name], args.seed)
        print(name, flush=True)


if __name__ == "__main__":
    main()
