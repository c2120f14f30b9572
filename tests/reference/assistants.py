#!/usr/bin/env python3
"""Makes small random assistants (drafters for Gemma 4), with the drafts that transformers computes with them.

    pip install torch transformers safetensors numpy
    python3 tests/reference/assistants.py tests/reference [--seed 1] [NAME ...]

Their targets are models of tests/reference/families. Each assistant is a folder in tests/reference/assistants:
model.safetensors (bfloat16), config.json and ref.json with prompts, positions and the token that follows each position.
ref.npy has the logits of the drafts, (prompts · positions · steps, vocab), and ref.all.npy the same without clusters,
as GGUF files have none. The target reads the tokens before the last one in one run and the last one alone, as it does
while it answers.
"""

import argparse
import json
import os
import shutil

import numpy
import torch
import transformers

import make

N_STEPS = 4
PROMPTS = [5, 14, 43]

# One for a target without shared keys, whose values are its keys, and one for a target with per-layer embeddings.
CASES = {
    "gemma4": dict(target="gemma4", hidden_size=24, intermediate_size=40, num_key_value_heads=2,
                   attention_k_eq_v=True, num_global_key_value_heads=1),
    "gemma4_e": dict(target="gemma4_e", hidden_size=16, intermediate_size=24, num_key_value_heads=1, clusters=(16, 3)),
}


def configure(case):
    case = dict(case)
    case.pop("target")
    clusters = case.pop("clusters", None)
    text = {**make.GEMMA4, **case, "num_kv_shared_layers": 3, "vocab_size_per_layer_input": 0}
    text.pop("final_logit_softcapping")
    config = dict(model_type="gemma4_assistant", backbone_hidden_size=make.GEMMA4["hidden_size"], text_config=text,
                  tie_word_embeddings=True, use_ordered_embeddings=clusters is not None)
    if clusters:
        config |= dict(num_centroids=clusters[0], centroid_intermediate_top_k=clusters[1])
    return config


def build(config, seed):
    rng = numpy.random.default_rng(seed)
    torch.manual_seed(seed)
    built = transformers.AutoConfig.for_model(**config)
    model = transformers.Gemma4AssistantForCausalLM._from_config(built, dtype=torch.float32, attn_implementation="eager")
    model.eval()
    make.draw(model, rng)
    if model.masked_embedding is not None:
        order = torch.from_numpy(rng.permutation(make.VOCAB))
        model.masked_embedding.token_ordering.copy_(order)
    return model


def drafts(target, model, tokens, following):
    """The logits of a chain of drafts after `tokens` and the token that follows them. (N_STEPS, vocab)"""
    with torch.no_grad():
        cache = transformers.DynamicCache(config=target.config)
        if len(tokens) > 1:
            target(torch.tensor([tokens[:-1]]), cache=cache, use_cache=True)
        ran = target(torch.tensor([tokens[-1:]]), cache=cache, use_cache=True, output_hidden_states=True,
                     return_shared_kv_states=True)
        hidden, position = ran.hidden_states[-1][:, -1:], torch.tensor([[len(tokens)]])
        token, found = torch.tensor([[following]]), []
        for _ in range(N_STEPS):
            embedded = target.get_input_embeddings()(token)
            draft = model(inputs_embeds=torch.cat([embedded, hidden], -1), position_ids=position,
                          shared_kv_states=dict(ran.shared_kv_states), use_cache=False)
            found.append(draft.logits[0, 0].numpy())
            token, hidden = draft.logits.argmax(-1), draft.last_hidden_state
    return found


def make_assistant(root, name, case, seed):
    path = os.path.join(root, "families", case["target"])
    target = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager")
    target.eval()
    config = configure(case)
    model = build(config, seed)
    rng = numpy.random.default_rng(seed + 1)
    prompts, found, unclustered = [], [], []
    for n in PROMPTS:
        tokens = rng.integers(2, make.VOCAB, n).tolist()
        positions = sorted({1, n // 2, n - 1})
        prompts.append(dict(tokens=tokens, positions=positions))
        for position in positions:
            before, following = tokens[:position], tokens[position]
            found += drafts(target, model, before, following)
            model.config.use_ordered_embeddings = False
            unclustered += drafts(target, model, before, following)
            model.config.use_ordered_embeddings = config["use_ordered_embeddings"]

    folder = os.path.join(root, "assistants", name)
    os.makedirs(folder, exist_ok=True)
    saved = os.path.join(folder, "saved")
    model.to(torch.bfloat16).save_pretrained(saved)
    os.replace(os.path.join(saved, "model.safetensors"), os.path.join(folder, "model.safetensors"))
    os.replace(os.path.join(saved, "config.json"), os.path.join(folder, "config.json"))
    shutil.rmtree(saved)
    source = f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}, float32, eager attention"
    with open(os.path.join(folder, "ref.json"), "w") as out:
        answer = dict(target=case["target"], source=source, steps=N_STEPS, prompts=prompts)
        json.dump(answer, out, separators=(",", ":"))
    numpy.save(os.path.join(folder, "ref.npy"), numpy.stack(found).astype(numpy.float32))
    if config["use_ordered_embeddings"]:
        numpy.save(os.path.join(folder, "ref.all.npy"), numpy.stack(unclustered).astype(numpy.float32))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in args.names or CASES:
        make_assistant(args.root, name, CASES[name], args.seed)
        print(name, flush=True)


if __name__ == "__main__":
    main()
