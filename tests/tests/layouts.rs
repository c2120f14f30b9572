//! The same weights as other repositories lay them out: inside a model that also sees, with experts in one tensor or
//! in many, without root, with unused tensors. The logits are the same, bit for bit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{Chunk, Devices, KvDType, LoadOptions, LogitsSelection, Model};
use serde_json::{Value, json};
use weights::WeightFile;

/// A tensor as it is stored.
#[derive(Clone)]
struct Raw {
    name: String,
    dtype: &'static str,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Raw {
    /// Something beside the language model.
    fn other(name: &str) -> Self {
        Self { name: name.into(), dtype: "F32", shape: vec![2, 3], bytes: vec![1; 24] }
    }

    fn renamed(self, name: String) -> Self {
        Self { name, ..self }
    }
}

fn source(family: &str) -> PathBuf {
    inglenook_tests::workspace_root().join("tests/reference/families").join(family)
}

fn tensors(family: &str) -> Vec<Raw> {
    let file = WeightFile::open(&source(family)).unwrap();
    let raw = |view: weights::TensorView<'_>| Raw {
        name: view.name.to_owned(),
        dtype: view.dtype.name(),
        shape: view.shape.to_vec(),
        bytes: view.data.to_vec(),
    };
    file.tensors().map(raw).collect()
}

fn config(family: &str) -> Value {
    serde_json::from_slice(&std::fs::read(source(family).join("config.json")).unwrap()).unwrap()
}

/// A family's model in another layout has the logits of the original.
fn check(family: &str, what: &str, tensors: Vec<Raw>, config: &Value) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("layouts-{}-{family}-{what}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for Raw { name, dtype, shape, bytes } in tensors {
        let start = data.len();
        data.extend(bytes);
        let entry = json!({"dtype": dtype, "shape": shape, "data_offsets": [start, data.len()]});
        header.insert(name, entry);
    }
    let header = Value::Object(header).to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend(data);
    std::fs::write(folder.join("model.safetensors"), bytes).unwrap();
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let found = logits(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(found == logits(&source(family)), "{family}, {what}: other logits");
}

fn logits(path: &Path) -> Vec<f32> {
    let file = Arc::new(WeightFile::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())));
    let options = LoadOptions {
        devices: Devices::Scalar,
        kv: KvDType::F32.both(),
        ctx: Some(64),
        ..LoadOptions::default()
    };
    let mut model = Model::load(file, &options, &mut |_| {})
        .unwrap_or_else(|e| panic!("{}: {} {e}", path.display(), e.code()));
    let tokens: Vec<u32> = (0..40).map(|i| (i * 37 + 5) % 96).collect();
    let seq = model.new_sequence().unwrap();
    let rows = model.forward(&[Chunk { seq, tokens: &tokens, logits: LogitsSelection::All }]).unwrap();
    (0..rows.n_rows()).flat_map(|row| rows.row(row).unwrap().to_vec()).collect()
}

/// A config whose language part lies inside.
fn nested(inner: &Value, model_type: &str) -> Value {
    json!({
        "model_type": model_type,
        "text_config": inner,
        "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 8, "num_hidden_layers": 3},
        "tie_word_embeddings": inner["tie_word_embeddings"],
        "image_token_index": 3,
    })
}

/// As newer repositories name the tensors of a model that also sees.
fn inside(tensors: Vec<Raw>) -> Vec<Raw> {
    let rename = |raw: Raw| match raw.name.strip_prefix("model.") {
        Some(rest) => {
            let name = format!("model.language_model.{rest}");
            raw.renamed(name)
        }
        None => raw,
    };
    let others = ["model.visual.blocks.0.attn.qkv.weight", "model.vision_tower.norm.weight", "mtp.fc.weight"];
    let others = others.into_iter().chain(["mtp.layers.0.input_layernorm.weight", "mtp.norm.weight"]);
    tensors.into_iter().map(rename).chain(others.map(Raw::other)).collect()
}

/// As older ones do.
fn inside_as_before(tensors: Vec<Raw>) -> Vec<Raw> {
    let rename = |raw: Raw| {
        let name = format!("language_model.{}", raw.name);
        raw.renamed(name)
    };
    let others = ["vision_tower.layers.0.input_layernorm.weight", "multi_modal_projector.linear_1.weight"];
    tensors.into_iter().map(rename).chain(others.map(Raw::other)).collect()
}

#[test]
fn language_models_inside_others() {
    let families = [
        ("gemma3", "gemma3"),
        ("gemma4", "gemma4"),
        ("gemma4_e", "gemma4"),
        ("gemma4_moe", "gemma4"),
        ("ministral3", "mistral3"),
        ("qwen3_5", "qwen3_5"),
        ("qwen3_5_moe", "qwen3_5_moe"),
        ("qwen3_5-even", "qwen3_5"),
    ];
    for (family, model_type) in families {
        let config = nested(&config(family), model_type);
        check(family, "inside", inside(tensors(family)), &config);
        check(family, "inside-as-before", inside_as_before(tensors(family)), &config);
    }
}

/// Experts as single tensors: gates above what they gate.
fn fused(tensors: Vec<Raw>) -> Vec<Raw> {
    let (mut experts, mut all): (Vec<Raw>, Vec<Raw>) =
        tensors.into_iter().partition(|raw| raw.name.contains(".mlp.experts."));
    let number = |name: &str| -> usize {
        name.split(".experts.").nth(1).unwrap().split('.').next().unwrap().parse().unwrap()
    };
    // by layer, by which matrix, by expert
    experts.sort_by_key(|raw| number(&raw.name));
    let mut roots: Vec<String> =
        experts.iter().map(|raw| raw.name.split(".experts.").next().unwrap().to_owned()).collect();
    roots.sort();
    roots.dedup();
    for root in roots {
        let of = |which: &str| -> Vec<&Raw> {
            let is = |raw: &&Raw| {
                raw.name.starts_with(&format!("{root}.experts."))
                    && raw.name.ends_with(&format!(".{which}_proj.weight"))
            };
            experts.iter().filter(is).collect()
        };
        let (gate, up, down) = (of("gate"), of("up"), of("down"));
        let join = |parts: Vec<&Raw>| parts.iter().flat_map(|raw| raw.bytes.clone()).collect::<Vec<u8>>();
        let both = gate.iter().zip(&up).flat_map(|(gate, up)| [*gate, *up]).collect();
        let (n, dtype) = (gate.len(), gate[0].dtype);
        let [d_ff, d_model] = gate[0].shape[..] else { panic!("a matrix") };
        let shape = vec![n, 2 * d_ff, d_model];
        all.push(Raw { name: format!("{root}.experts.gate_up_proj"), dtype, shape, bytes: join(both) });
        let shape = vec![n, d_model, d_ff];
        all.push(Raw { name: format!("{root}.experts.down_proj"), dtype, shape, bytes: join(down) });
    }
    all
}

#[test]
fn experts_in_one_tensor() {
    for family in ["qwen3_moe", "qwen3_5_moe"] {
        check(family, "fused", fused(tensors(family)), &config(family));
    }
    let config = nested(&config("qwen3_5_moe"), "qwen3_5_moe");
    check("qwen3_5_moe", "fused-inside", inside(fused(tensors("qwen3_5_moe"))), &config);
}

#[test]
fn tensors_that_nobody_needs() {
    // a tied model that carries its output matrix too: it is not looked at
    for family in ["qwen3", "smollm3", "gemma3"] {
        let mut all = tensors(family);
        let table = all.iter().find(|raw| raw.name == "model.embed_tokens.weight").unwrap().clone();
        all.push(Raw { bytes: vec![0; table.bytes.len()], ..table }.renamed("lm_head.weight".into()));
        check(family, "with-head", all, &config(family));
    }
    // layers that share keys and values carry some of their own nevertheless
    let mut all = tensors("gemma4_e");
    for (from, to) in [(1, 3), (2, 4)] {
        let prefix = format!("model.layers.{from}.self_attn.");
        let copies: Vec<Raw> = all.iter().filter(|raw| raw.name.starts_with(&prefix)).cloned().collect();
        let is_own = |raw: &Raw| ["k_proj", "v_proj", "k_norm"].iter().any(|part| raw.name.contains(part));
        for copy in copies.into_iter().filter(is_own) {
            let name = copy.name.replace(&prefix, &format!("model.layers.{to}.self_attn."));
            all.push(Raw { bytes: vec![0x3f; copy.bytes.len()], ..copy }.renamed(name));
        }
    }
    check("gemma4_e", "superfluous", all, &config("gemma4_e"));
    // GPT-2 as it was first published: no root, masks as tensors
    let mut all: Vec<Raw> = tensors("gpt2")
        .into_iter()
        .map(|raw| {
            let name = raw.name.strip_prefix("transformer.").unwrap_or(&raw.name).to_owned();
            raw.renamed(name)
        })
        .collect();
    all.extend(["h.0.attn.bias", "h.1.attn.masked_bias"].map(Raw::other));
    check("gpt2", "rootless", all, &config("gpt2"));
}

/// What configs leave out is what the family always has.
#[test]
fn short_configs() {
    let cases: [(&str, &[&str]); 7] = [
        ("llama", &["tie_word_embeddings", "hidden_act", "bos_token_id", "architectures", "torch_dtype"]),
        ("gemma3", &["tie_word_embeddings", "hidden_act", "hidden_activation", "pad_token_id"]),
        ("qwen3_5", &["attn_output_gate", "hidden_act", "bos_token_id"]),
        ("gpt_oss", &["hidden_act", "attention_bias", "swiglu_limit", "layer_types"]),
        ("lfm2", &["tie_word_embeddings", "conv_bias", "block_ffn_dim_multiplier"]),
        ("smollm3", &["tie_word_embeddings", "hidden_act"]),
        ("qwen3_moe", &["decoder_sparse_step", "mlp_only_layers", "hidden_act"]),
    ];
    for (family, keys) in cases {
        let mut config = config(family);
        for key in keys {
            config.as_object_mut().unwrap().remove(*key);
        }
        check(family, "short", tensors(family), &config);
    }
}
