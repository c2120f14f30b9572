//! Assistants: the logits of their chained drafts, in both containers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{AssistantFile, Chunk, Devices, KvDType, LoadOptions, LogitsSelection, Model, Precision};
use serde_json::Value;
use test_support::largest_difference;
use weights::write::{GgufWriter, OwnedValue};
use weights::{DType, SharedBytes, WeightFile};

use super::judge::Verdict;
use super::reference::{ids, json, list, npy};
use super::{Line, TOLERANCE, float_devices, names, run};

/// Drafts after the first tokens of a prompt.
struct DraftChain {
    /// What the target has read.
    before: Vec<u32>,
    /// The token after it.
    token: u32,
    /// (steps, n_vocab)
    drafts: Vec<Vec<f32>>,
}

#[test]
fn assistants() {
    let root = inglenook_tests::workspace_root().join("tests/reference/assistants");
    let mut lines = Vec::new();
    for name in names(&root) {
        let dir = root.join(&name);
        for (what, devices) in [("drafts", float_devices()), ("drafts, cpu", Devices::Cpu)] {
            let dir = dir.clone();
            lines.push(Line::new(&name, "safetensors", what, move || {
                let file = WeightFile::open(&dir).unwrap();
                exactly(&target(&dir), file, devices.clone(), &chains(&dir, "ref"))
            }));
        }
        lines.push(Line::new(&name, "GGUF", "drafts", move || {
            // llama.cpp's files have no clusters.
            let stem = if dir.join("ref.all.npy").exists() { "ref.all" } else { "ref" };
            exactly(&target(&dir), gguf(&dir), float_devices(), &chains(&dir, stem))
        }));
    }
    assert!(lines.len() >= 6, "{} has no model", root.display());
    run("Drafts of assistants", &lines);
}

fn target(dir: &Path) -> PathBuf {
    let target = json(&dir.join("ref.json"));
    let name = target["target"].as_str().unwrap();
    inglenook_tests::workspace_root().join("tests/reference/families").join(name)
}

fn chains(dir: &Path, stem: &str) -> Vec<DraftChain> {
    let answers = json(&dir.join("ref.json"));
    let n_steps = answers["steps"].as_u64().unwrap() as usize;
    let logits = npy(&dir.join(format!("{stem}.npy")));
    let cut = |prompt: &Value| {
        let tokens = ids(&prompt["tokens"]);
        let positions = ids(&prompt["positions"]).into_iter().map(|position| position as usize);
        let cut = positions.map(|position| (tokens[..position].to_vec(), tokens[position]));
        cut.collect::<Vec<_>>()
    };
    let texts: Vec<_> = list(&answers["prompts"]).iter().flat_map(cut).collect();
    assert_eq!(logits.len(), texts.len() * n_steps, "{}: {stem}", dir.display());
    let chains = texts.into_iter().zip(logits.chunks_exact(n_steps));
    chains.map(|((before, token), drafts)| DraftChain { before, token, drafts: drafts.to_vec() }).collect()
}

/// Every draft within the tolerance, and the same after the sequence went on.
fn exactly(target: &Path, assistant: WeightFile, devices: Devices, chains: &[DraftChain]) -> Verdict {
    let options = LoadOptions {
        devices,
        gpu_precision: Precision::F32,
        kv: KvDType::F32.both(),
        ctx: Some(64),
        threads: Some(1),
        max_sequences: 1,
        assistant: Some(AssistantFile(Arc::new(assistant))),
        ..LoadOptions::default()
    };
    let file = Arc::new(WeightFile::open(target).map_err(|e| e.to_string())?);
    let mut model = Model::load(file, &options, &mut |_| {}).map_err(|e| e.to_string())?;
    let mut worst = 0f32;
    for DraftChain { before, token, drafts } in chains {
        let mut draft = || -> engine::Result<[Vec<Vec<f32>>; 2]> {
            let seq = model.new_sequence()?;
            let logits = model.forward(&[Chunk { seq, tokens: before, logits: LogitsSelection::Last }])?;
            let hidden = logits.hidden(0).expect("the model has an assistant").to_vec();
            let found = model.draft_logits(seq, (before.len(), *token), &hidden, drafts.len())?;
            model.forward(&[Chunk { seq, tokens: &[*token, 5, 6], logits: LogitsSelection::None }])?;
            let again = model.draft_logits(seq, (before.len(), *token), &hidden, drafts.len())?;
            model.free(seq);
            Ok([found, again])
        };
        let [found, again] = draft().map_err(|e| e.to_string())?;
        if found != again {
            return Err(format!("other drafts after {} tokens once the text went on", before.len()));
        }
        for (step, (draft, expected)) in found.iter().zip(drafts).enumerate() {
            let error = largest_difference(draft, expected);
            worst = worst.max(error);
            if error.is_nan() || error > TOLERANCE {
                return Err(format!("draft {step} after {} tokens: off by {error:.2e}", before.len()));
            }
        }
    }
    Ok(format!("largest error {worst:.1e}, {} chains", chains.len()))
}

/// A folder's assistant as llama.cpp's converter writes it, in float32.
fn gguf(dir: &Path) -> WeightFile {
    let (source, config) = (WeightFile::open(dir).unwrap(), json(&dir.join("config.json")));
    let text = &config["text_config"];
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", OwnedValue::Str("gemma4-assistant".into()));
    let mut set = |key: &str, value: OwnedValue| {
        writer.set(&format!("gemma4-assistant.{key}"), value);
    };
    let count = |value: &Value| OwnedValue::U32(value.as_u64().unwrap() as u32);
    for (key, name) in [
        ("block_count", "num_hidden_layers"),
        ("nextn_predict_layers", "num_hidden_layers"),
        ("attention.shared_kv_layers", "num_kv_shared_layers"),
        ("embedding_length", "hidden_size"),
        ("embedding_length_per_layer_input", "hidden_size_per_layer_input"),
        ("feed_forward_length", "intermediate_size"),
        ("context_length", "max_position_embeddings"),
        ("attention.head_count", "num_attention_heads"),
        ("attention.sliding_window", "sliding_window"),
        ("attention.key_length_swa", "head_dim"),
        ("attention.value_length_swa", "head_dim"),
        ("rope.dimension_count_swa", "head_dim"),
    ] {
        set(key, count(&text[name]));
    }
    set("embedding_length_out", count(&config["backbone_hidden_size"]));
    let is_windowed: Vec<bool> =
        list(&text["layer_types"]).iter().map(|it| it == "sliding_attention").collect();
    let full = text["per_layer_config"].as_object().unwrap().values().next().unwrap();
    for key in ["attention.key_length", "attention.value_length", "rope.dimension_count"] {
        set(key, count(&full["head_dim"]));
    }
    let (n, n_full) = (&text["num_key_value_heads"], &full["num_key_value_heads"]);
    let n_full = if n_full.is_null() { n } else { n_full };
    let n_heads = |windowed: &bool| (if *windowed { n } else { n_full }).as_u64().unwrap() as u32;
    set("attention.head_count_kv", OwnedValue::U32s(is_windowed.iter().map(n_heads).collect()));
    set("attention.sliding_window_pattern", OwnedValue::Bools(is_windowed));
    set("attention.layer_norm_rms_epsilon", OwnedValue::F32(text["rms_norm_eps"].as_f64().unwrap() as f32));
    set("rope.freq_base", OwnedValue::F32(1e6));
    set("rope.freq_base_swa", OwnedValue::F32(1e4));
    let n_pairs = full["head_dim"].as_u64().unwrap() as usize / 2;
    // A quarter of the pairs turns.
    let factors: Vec<f32> = (0..n_pairs).map(|pair| if pair < n_pairs / 4 { 1.0 } else { 1e30 }).collect();
    writer.encode("rope_freqs.weight", DType::F32, &[n_pairs], &factors);
    for view in source.tensors().filter(|view| !view.name.starts_with("masked_embedding")) {
        let mut values = vec![0.0; view.shape.iter().product()];
        (view.dtype.codec().unwrap().decode)(&view.data, &mut values);
        writer.encode(&gguf_name(view.name), DType::F32, view.shape, &values);
    }
    WeightFile::from_bytes("assistant", SharedBytes::from_vec(writer.to_bytes())).unwrap()
}

fn gguf_name(name: &str) -> String {
    let in_layer = |rest: &str| {
        let (layer, part) = rest.split_once('.').unwrap();
        let part = match part.trim_end_matches(".weight") {
            "input_layernorm" => "attn_norm",
            "self_attn.q_proj" => "attn_q",
            "self_attn.q_norm" => "attn_q_norm",
            "self_attn.o_proj" => "attn_output",
            "post_attention_layernorm" => "post_attention_norm",
            "pre_feedforward_layernorm" => "ffn_norm",
            "mlp.gate_proj" => "ffn_gate",
            "mlp.up_proj" => "ffn_up",
            "mlp.down_proj" => "ffn_down",
            "post_feedforward_layernorm" => "post_ffw_norm",
            "layer_scalar" => "layer_output_scale",
            other => panic!("{other} has no name"),
        };
        format!("blk.{layer}.{part}.weight")
    };
    match name {
        "model.embed_tokens.weight" => "token_embd.weight".into(),
        "model.norm.weight" => "output_norm.weight".into(),
        "pre_projection.weight" | "post_projection.weight" => format!("nextn.{name}"),
        _ => in_layer(name.strip_prefix("model.layers.").unwrap()),
    }
}
