//! A model with LoRA adapters is the model into which they were merged; and without them again it is what it was,
//! bit for bit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{Adapter, Chunk, Devices, KvDType, LoadOptions, LogitsSelection, Model};
use serde_json::json;
use test_support::largest_difference;
use weights::write::{GgufWriter, OwnedValue};
use weights::{DType, WeightFile};

use crate::stored_chunks::StoredChunks;

/// Sums in another order.
const SAME: f32 = 1e-4;

/// A temporary folder, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("adapters-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A tensor as numbers.
#[derive(Clone)]
struct Matrix {
    name: String,
    shape: Vec<usize>,
    values: Vec<f32>,
}

/// All tensors of a file, decoded.
fn tensors(file: &WeightFile) -> Vec<Matrix> {
    let decode = |view: weights::TensorView<'_>| {
        let mut values = vec![0.0; view.shape.iter().product()];
        (view.dtype.codec().unwrap().decode)(&view.data, &mut values);
        Matrix { name: view.name.to_owned(), shape: view.shape.to_vec(), values }
    };
    file.tensors().map(decode).collect()
}

fn write_safetensors(path: &Path, tensors: &[Matrix]) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for Matrix { name, shape, values } in tensors {
        let start = data.len();
        data.extend(values.iter().flat_map(|x| x.to_le_bytes()));
        let entry = json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]});
        header.insert(name.clone(), entry);
    }
    let header = serde_json::Value::Object(header).to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend(data);
    std::fs::write(path, bytes).unwrap();
}

/// The same numbers each time, between −1 and 1.
fn random(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// What an adapter adds to one matrix [out, in].
struct LowRank {
    a: Matrix,
    b: Matrix,
}

const RANK: usize = 3;

fn low_rank(module: &str, n_out: usize, n_in: usize, seed: u64) -> LowRank {
    let matrix = |which: &str, shape: Vec<usize>, seed| {
        let values = random(shape.iter().product(), seed).iter().map(|x| 0.3 * x).collect();
        Matrix { name: format!("base_model.model.{module}.lora_{which}.weight"), shape, values }
    };
    LowRank { a: matrix("A", vec![RANK, n_in], seed), b: matrix("B", vec![n_out, RANK], seed + 1) }
}

impl LowRank {
    /// b · a, times `scale`, at [row, column].
    fn at(&self, row: usize, column: usize, scale: f32) -> f32 {
        let n_in = self.a.shape[1];
        let products = (0..RANK).map(|r| self.b.values[row * RANK + r] * self.a.values[r * n_in + column]);
        scale * products.sum::<f32>()
    }
}

/// A model's folder with every tensor as float32.
fn base(family: &str, folder: &Folder, name: &str, tensors: &[Matrix]) -> PathBuf {
    let source = source(family);
    let to = folder.0.join(name);
    std::fs::create_dir_all(&to).unwrap();
    std::fs::copy(source.join("config.json"), to.join("config.json")).unwrap();
    write_safetensors(&to.join("model.safetensors"), tensors);
    to
}

fn source(family: &str) -> PathBuf {
    inglenook_tests::workspace_root().join("tests/reference/families").join(family)
}

fn peft(folder: &Folder, name: &str, parts: &[&LowRank], config: &serde_json::Value) -> PathBuf {
    let to = folder.0.join(name);
    std::fs::create_dir_all(&to).unwrap();
    let tensors: Vec<Matrix> = parts.iter().flat_map(|part| [part.a.clone(), part.b.clone()]).collect();
    write_safetensors(&to.join("adapter_model.safetensors"), &tensors);
    std::fs::write(to.join("adapter_config.json"), config.to_string()).unwrap();
    to
}

fn load(path: &Path) -> Model {
    let file = Arc::new(WeightFile::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())));
    let options = LoadOptions {
        devices: Devices::Scalar,
        kv: KvDType::F32.both(),
        ctx: Some(64),
        ..LoadOptions::default()
    };
    Model::load(file, &options, &mut |_| {}).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// After every one of some tokens.
fn logits(model: &mut Model) -> Vec<f32> {
    let tokens: Vec<u32> = (0..24).map(|i| (i * 37 + 5) % 96).collect();
    let seq = model.new_sequence().unwrap();
    let rows = model.forward(&[Chunk { seq, tokens: &tokens, logits: LogitsSelection::All }]).unwrap();
    let all = (0..rows.n_rows()).flat_map(|row| rows.row(row).unwrap().to_vec()).collect();
    model.free(seq);
    all
}

/// Every matrix of a family whose name holds one of `modules` gets an adapter, as PEFT names it.
fn check_merged(family: &str, modules: &[&str], is_transposed: bool) {
    let folder = Folder::new(family);
    let plain = tensors(&WeightFile::open(&source(family)).unwrap());
    let mut merged = plain.clone();
    let mut parts = Vec::new();
    for (seed, tensor) in merged.iter_mut().enumerate() {
        let Some(module) = tensor.name.strip_suffix(".weight") else { continue };
        if tensor.shape.len() != 2 || !modules.iter().any(|m| module.ends_with(m)) {
            continue;
        }
        let [rows, columns] = tensor.shape[..] else { unreachable!() };
        let (n_out, n_in) = if is_transposed { (columns, rows) } else { (rows, columns) };
        let part = low_rank(module, n_out, n_in, 10 * seed as u64 + 1);
        for (i, value) in tensor.values.iter_mut().enumerate() {
            let (row, column) = (i / columns, i % columns);
            let (out, at) = if is_transposed { (column, row) } else { (row, column) };
            *value += part.at(out, at, 6.0 / RANK as f32);
        }
        parts.push(part);
    }
    assert!(parts.len() >= modules.len(), "{family}: {} parts", parts.len());
    let parts: Vec<&LowRank> = parts.iter().collect();
    let config = json!({"peft_type": "LORA", "r": RANK, "lora_alpha": 6});
    let adapter = Adapter::open(&peft(&folder, "lora", &parts, &config)).unwrap();

    let mut model = load(&base(family, &folder, "base", &plain));
    let before = logits(&mut model);
    model.set_adapters(&[(&adapter, 1.0)]).unwrap();
    let adapted = logits(&mut model);
    let expected = logits(&mut load(&base(family, &folder, "merged", &merged)));
    let off = largest_difference(&adapted, &expected);
    eprintln!("{family}: {} matrices adapted, largest difference to the merged model {off:.1e}", parts.len());
    assert!(off <= SAME, "{family}: off by {off}");
    assert!(largest_difference(&adapted, &before) > 0.1, "{family}: the adapter does nothing");
    model.set_adapters(&[]).unwrap();
    assert_eq!(logits(&mut model), before, "{family}: switched back");
}

#[test]
fn adapters_are_as_if_merged() {
    let llama = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head"];
    check_merged("llama", &llama, false);
    check_merged("phi3", &["qkv_proj", "o_proj", "gate_up_proj", "down_proj"], false);
    check_merged("gpt2", &["attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"], true);
    check_merged("gemma4_e", &["q_proj", "v_proj", "per_layer_input_gate", "down_proj"], false);
    check_merged("qwen3_5", &["in_proj_qkv", "in_proj_z", "out_proj", "q_proj", "up_proj"], false);
    check_merged("lfm2", &["conv.in_proj", "conv.out_proj", "q_proj", "w1", "w2"], false);
    check_merged("qwen3_moe", &["q_proj", "o_proj", "mlp.gate"], false);
}

#[test]
fn several_adapters_add_up_by_their_factors() {
    let folder = Folder::new("several");
    let plain = tensors(&WeightFile::open(&source("llama")).unwrap());
    let module = "model.layers.1.self_attn.v_proj";
    let index = plain.iter().position(|t| t.name == format!("{module}.weight")).unwrap();
    let [n_out, n_in] = plain[index].shape[..] else { unreachable!() };
    let (first, second) = (low_rank(module, n_out, n_in, 3), low_rank(module, n_out, n_in, 5));
    let by_root = json!({"r": RANK, "lora_alpha": 2.0, "use_rslora": true});
    let by_pattern = json!({"r": RANK, "lora_alpha": 100, "alpha_pattern": {"v_proj": 6}});
    let first_path = peft(&folder, "first", &[&first], &by_root);
    let second_path = peft(&folder, "second", &[&second], &by_pattern);

    let mut merged = plain.clone();
    for (i, value) in merged[index].values.iter_mut().enumerate() {
        *value += first.at(i / n_in, i % n_in, 0.5 * 2.0 / (RANK as f32).sqrt());
        *value += second.at(i / n_in, i % n_in, -2.0);
    }
    let mut model = load(&base("llama", &folder, "base", &plain));
    let before = logits(&mut model);
    let named = [format!("{}:0.5", first_path.display()), format!("{}:-1", second_path.display())];
    model.adapt(&named).unwrap();
    let expected = logits(&mut load(&base("llama", &folder, "merged", &merged)));
    let off = largest_difference(&logits(&mut model), &expected);
    assert!(off <= SAME, "off by {off}");
    assert!(largest_difference(&expected, &before) > 0.01);
}

/// A small llama as GGUF: its layers turn neighbouring pairs.
fn gguf_base(path: &Path) {
    let shape = engine::shape::Shape {
        name: "small",
        n_layers: 2,
        d_model: 64,
        n_heads: 4,
        n_kv_heads: 2,
        head_dim: 16,
        d_ff: 96,
        n_vocab: 400,
        context_length: 128,
        rope_divisors: engine::shape::RopeDivisors::None,
        ..engine::shape::SHAPES[0]
    };
    let mut bytes = Vec::new();
    engine::shape::write(&shape, engine::shape::mix("f32").unwrap(), 1, &mut bytes).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// The same file with other values.
fn write_gguf(path: &Path, source: &WeightFile, tensors: &[Matrix]) {
    let mut writer = GgufWriter::new();
    for (key, value) in source.metadata().raw_pairs() {
        writer.set(key, OwnedValue::Raw(value));
    }
    for Matrix { name, shape, values } in tensors {
        writer.encode(name, DType::F32, shape, values);
    }
    let mut bytes = Vec::new();
    writer.write(&mut bytes).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// An adapter as llama.cpp's converter writes it.
fn gguf_adapter(path: &Path, architecture: &str, tensors: &[(&str, &Matrix)], alpha: f32) {
    let mut writer = GgufWriter::new();
    writer.set("general.type", OwnedValue::Str("adapter".into()));
    writer.set("general.architecture", OwnedValue::Str(architecture.into()));
    writer.set("adapter.type", OwnedValue::Str("lora".into()));
    writer.set("adapter.lora.alpha", OwnedValue::F32(alpha));
    for (name, matrix) in tensors {
        writer.encode(name, DType::F32, &matrix.shape, &matrix.values);
    }
    let mut bytes = Vec::new();
    writer.write(&mut bytes).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// In a GGUF of llama the two halves of each head of queries and keys take turns; an adapter in GGUF has them so too,
/// one of PEFT has not.
#[test]
fn adapters_of_a_gguf_from_either_container() {
    let folder = Folder::new("gguf");
    let path = folder.0.join("base.gguf");
    gguf_base(&path);
    let source = WeightFile::open(&path).unwrap();
    let plain = tensors(&source);
    let (n_out, n_in, head_dim) = (64, 64, 16);
    let part = low_rank("model.layers.0.self_attn.q_proj", n_out, n_in, 7);
    let down = low_rank("model.layers.1.mlp.down_proj", 64, 96, 9);
    // row of the GGUF → row of PEFT
    let mut peft_row = vec![0; n_out];
    for head in 0..n_out / head_dim {
        for half in 0..2 {
            for pair in 0..head_dim / 2 {
                peft_row[head * head_dim + 2 * pair + half] = head * head_dim + half * head_dim / 2 + pair;
            }
        }
    }
    let merged = |row_of: &dyn Fn(usize) -> usize| -> Vec<Matrix> {
        let mut merged = plain.clone();
        for tensor in &mut merged {
            let n_cols = *tensor.shape.last().unwrap();
            for (i, value) in tensor.values.iter_mut().enumerate() {
                match tensor.name.as_str() {
                    "blk.0.attn_q.weight" => *value += part.at(row_of(i / n_cols), i % n_cols, 2.0),
                    "blk.1.ffn_down.weight" => *value += down.at(i / n_cols, i % n_cols, 2.0),
                    _ => {}
                }
            }
        }
        merged
    };
    let own = folder.0.join("own.gguf");
    let named = [
        ("blk.0.attn_q.weight.lora_a", &part.a),
        ("blk.0.attn_q.weight.lora_b", &part.b),
        ("blk.1.ffn_down.weight.lora_a", &down.a),
        ("blk.1.ffn_down.weight.lora_b", &down.b),
    ];
    gguf_adapter(&own, "llama", &named, 2.0 * RANK as f32);
    let peft = peft(&folder, "peft", &[&part, &down], &json!({"lora_alpha": 2 * RANK}));
    let cases: [(&Path, &dyn Fn(usize) -> usize); 2] = [(&own, &|row| row), (&peft, &|row| peft_row[row])];
    let mut model = load(&path);
    let before = logits(&mut model);
    for (adapter, row_of) in cases {
        model.set_adapters(&[(&Adapter::open(adapter).unwrap(), 1.0)]).unwrap();
        let out = folder.0.join("merged.gguf");
        write_gguf(&out, &source, &merged(row_of));
        let expected = logits(&mut load(&out));
        let off = largest_difference(&logits(&mut model), &expected);
        assert!(off <= SAME, "{}: off by {off}", adapter.display());
        assert!(largest_difference(&expected, &before) > 1e-3, "{}", adapter.display());
    }
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let folder = Folder::new("refused");
    let config = json!({"lora_alpha": 6});
    let query = |n_out, n_in| low_rank("model.layers.0.self_attn.q_proj", n_out, n_in, 1);
    let mut model = load(&source("qwen3_moe"));
    let before = (logits(&mut model), model.info().fingerprint.clone());
    let expert = low_rank("model.layers.0.mlp.experts.0.gate_proj", 16, 32, 1);
    let table = low_rank("model.embed_tokens", 128, 32, 1);
    let deep = low_rank("model.layers.9.self_attn.q_proj", 64, 32, 1);
    let alone = LowRank {
        a: query(64, 32).a,
        b: Matrix {
            name: "base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight".into(),
            ..query(64, 32).a
        },
    };
    let other_shape = query(32, 32);
    let cases: [(&str, &LowRank, &str); 5] = [
        ("expert", &expert, "adapter.unfit"),
        ("table", &table, "adapter.unfit"),
        ("deep", &deep, "adapter.unfit"),
        ("alone", &alone, "adapter.tensor_missing"),
        ("shape", &other_shape, "adapter.shape"),
    ];
    for (name, part, code) in cases {
        let adapter = Adapter::open(&peft(&folder, name, &[part], &config)).unwrap();
        let error = model.set_adapters(&[(&adapter, 1.0)]).unwrap_err();
        assert_eq!(error.code(), code, "{name}: {error}");
        assert!(!error.remedy().is_empty());
    }
    let own = folder.0.join("own.gguf");
    gguf_adapter(&own, "llama", &[("blk.0.attn_q.weight.lora_a", &query(64, 32).a)], 1.0);
    let adapter = Adapter::open(&own).unwrap();
    assert_eq!(model.set_adapters(&[(&adapter, 1.0)]).unwrap_err().code(), "adapter.unfit");
    assert_eq!((logits(&mut model), model.info().fingerprint.clone()), before);

    gguf_base(&folder.0.join("base.gguf"));
    let mut llama = load(&folder.0.join("base.gguf"));
    gguf_adapter(&own, "qwen3", &[("blk.0.attn_q.weight.lora_a", &query(64, 64).a)], 1.0);
    let error = llama.set_adapters(&[(&Adapter::open(&own).unwrap(), 1.0)]).unwrap_err();
    assert!(error.code() == "adapter.unfit" && error.to_string().contains("qwen3"), "{error}");
    assert_eq!(Adapter::open(&folder.0.join("base.gguf")).err().unwrap().code(), "adapter.kind");
    let dora = peft(&folder, "dora", &[&query(64, 32)], &json!({"lora_alpha": 6, "use_dora": true}));
    assert_eq!(Adapter::open(&dora).err().unwrap().code(), "adapter.unsupported");
}

/// Keys and values are of the weights they were made with, adapters included.
#[test]
fn checkpoints_of_other_adapters_are_not_taken() {
    let folder = Folder::new("checkpoint");
    let part = low_rank("model.layers.0.self_attn.q_proj", 32, 32, 1);
    let adapter = Adapter::open(&peft(&folder, "lora", &[&part], &json!({"lora_alpha": 6}))).unwrap();
    let mut model = load(&source("llama"));
    let plain = model.info().fingerprint.clone();
    let seq = model.new_sequence().unwrap();
    model.forward(&[Chunk { seq, tokens: &[1, 2, 3], logits: LogitsSelection::None }]).unwrap();
    let kept = StoredChunks::of(&model, seq, &[]);
    model.set_adapters(&[(&adapter, 1.0)]).unwrap();
    assert_ne!(model.info().fingerprint, plain);
    assert!(model.tokens(seq).is_err(), "no sequence survives");
    assert!(kept.restore_all(&mut model).is_err());
    let one = model.info().fingerprint.clone();
    model.set_adapters(&[(&adapter, 0.5)]).unwrap();
    assert_ne!(model.info().fingerprint, one);
    model.set_adapters(&[]).unwrap();
    assert_eq!(model.info().fingerprint, plain);
    let seq = kept.restore_all(&mut model).unwrap();
    assert_eq!(model.tokens(seq).unwrap(), [1, 2, 3]);
}
