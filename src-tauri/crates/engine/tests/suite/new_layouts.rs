//! Layouts that the reference data lacks: Gemma 4 without a tower, its assistant, and the experts of Qwen3-VL.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::convert;
use engine::vision::{ImagePatches, VisionTower};
use engine::{
    AssistantFile, BackendKind, Chunk, Devices, KvDType, LoadOptions, LogitsSelection, Model, TokenId,
};
use kernels::backends::BackendOptions;
use serde_json::{Value, json};
use test_support::{Missing, TempDir, skip};
use weights::write::{GgufWriter, OwnedValue};
use weights::{DType, SharedBytes, WeightFile};

/// Tensors by name: shape and values.
type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Writes a folder with these tensors as float32, and with bytes of FP8.
fn write_folder(
    folder: &Path,
    config: &Value,
    tensors: &Tensors,
    fp8: &BTreeMap<String, (Vec<usize>, Vec<u8>)>,
) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    let mut add = |name: &str, dtype: &str, shape: &[usize], bytes: Vec<u8>| {
        let start = data.len();
        data.extend(bytes);
        header.insert(
            name.into(),
            json!({"dtype": dtype, "shape": shape, "data_offsets": [start, data.len()]}),
        );
    };
    for (name, (shape, values)) in tensors {
        add(name, "F32", shape, values.iter().flat_map(|x| x.to_le_bytes()).collect());
    }
    for (name, (shape, bytes)) in fp8 {
        add(name, "F8_E4M3", shape, bytes.clone());
    }
    let header = serde_json::to_vec(&header).unwrap();
    let bytes = [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat();
    std::fs::write(folder.join("model.safetensors"), bytes).unwrap();
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
}

/// Numbers that look like nothing, between -1 and 1.
fn numbers(seed: usize, n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919 + seed * 104_729 + 13) % 1999) as f32 / 999.5 - 1.0).collect()
}

const PIXELS: usize = 2;
const POOL: usize = 2;
const SIDE: usize = PIXELS * POOL;
const SAMPLES: usize = SIDE * SIDE * 3;
const WIDTH: usize = 12;
const D_OUT: usize = 8;
const PLACES: usize = 5;

/// The embedder's tensors in a repository's order.
fn unified_tensors() -> Tensors {
    let shapes: [(&str, Vec<usize>); 10] = [
        ("vision_embedder.patch_ln1.weight", vec![SAMPLES]),
        ("vision_embedder.patch_ln1.bias", vec![SAMPLES]),
        ("vision_embedder.patch_dense.weight", vec![WIDTH, SAMPLES]),
        ("vision_embedder.patch_dense.bias", vec![WIDTH]),
        ("vision_embedder.patch_ln2.weight", vec![WIDTH]),
        ("vision_embedder.patch_ln2.bias", vec![WIDTH]),
        ("vision_embedder.pos_embedding", vec![PLACES, 2, WIDTH]),
        ("vision_embedder.pos_norm.weight", vec![WIDTH]),
        ("vision_embedder.pos_norm.bias", vec![WIDTH]),
        ("embed_vision.embedding_projection.weight", vec![D_OUT, WIDTH]),
    ];
    let one = |(seed, (name, shape)): (usize, (&str, Vec<usize>))| {
        let values = numbers(seed, shape.iter().product());
        (format!("model.{name}"), (shape, values))
    };
    shapes.into_iter().enumerate().map(one).collect()
}

/// Brings the columns of a row over samples from (y, x, channel) to (channel, y, x).
fn channels_first(row: &[f32]) -> Vec<f32> {
    (0..3).flat_map(|channel| row.iter().skip(channel).step_by(3)).copied().collect()
}

/// The same embedder as llama.cpp's converter writes it.
fn unified_gguf(tensors: &Tensors) -> WeightFile {
    let of = |name: &str| tensors[&format!("model.{name}")].1.clone();
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", OwnedValue::Str("clip".into()));
    writer.set("clip.vision.projector_type", OwnedValue::Str("gemma4uv".into()));
    for (key, n) in [
        ("embedding_length", WIDTH),
        ("patch_size", PIXELS),
        ("projector.scale_factor", POOL),
        ("projection_dim", D_OUT),
        ("block_count", 0),
    ] {
        writer.set(&format!("clip.vision.{key}"), OwnedValue::U32(n as u32));
    }
    writer.set("clip.vision.attention.layer_norm_epsilon", OwnedValue::F32(1e-6));
    let mut tensor = |name: &str, shape: &[usize], values: &[f32]| {
        writer.encode(name, DType::F32, shape, values);
    };
    let dense = of("vision_embedder.patch_dense.weight");
    let dense: Vec<f32> = dense.chunks_exact(SAMPLES).flat_map(channels_first).collect();
    tensor("v.patch_embd.weight", &[WIDTH, SAMPLES], &dense);
    tensor("v.patch_embd.bias", &[WIDTH], &of("vision_embedder.patch_dense.bias"));
    for kind in ["weight", "bias"] {
        let first = channels_first(&of(&format!("vision_embedder.patch_ln1.{kind}")));
        tensor(&format!("v.patch_norm.1.{kind}"), &[SAMPLES], &first);
        tensor(
            &format!("v.patch_norm.2.{kind}"),
            &[WIDTH],
            &of(&format!("vision_embedder.patch_ln2.{kind}")),
        );
        tensor(&format!("v.patch_norm.3.{kind}"), &[WIDTH], &of(&format!("vision_embedder.pos_norm.{kind}")));
    }
    let places = of("vision_embedder.pos_embedding");
    let axis = |axis: usize| places.chunks_exact(WIDTH).skip(axis).step_by(2).flatten().copied();
    let table: Vec<f32> = axis(0).chain(axis(1)).collect();
    tensor("v.position_embd.weight", &[2, PLACES, WIDTH], &table);
    let projection = of("embed_vision.embedding_projection.weight");
    tensor("mm.input_projection.weight", &[D_OUT, WIDTH], &projection);
    WeightFile::from_bytes("mmproj", SharedBytes::from_vec(writer.to_bytes())).unwrap()
}

fn layer_norm(x: &[f64], weight: &[f32], bias: &[f32]) -> Vec<f64> {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
    let scale = 1.0 / (variance + 1e-5).sqrt();
    x.iter()
        .zip(weight.iter().zip(bias))
        .map(|(x, (w, b))| (x - mean) * scale * f64::from(*w) + f64::from(*b))
        .collect()
}

fn product(x: &[f64], weight: &[f32]) -> Vec<f64> {
    weight.chunks_exact(x.len()).map(|row| row.iter().zip(x).map(|(w, x)| f64::from(*w) * x).sum()).collect()
}

/// What transformers' Gemma4UnifiedVisionEmbedder does with a patch at (column, row), in float64.
fn expected(tensors: &Tensors, patch: &[f32], (col, row): (usize, usize)) -> Vec<f64> {
    let of = |name: &str| &tensors[&format!("model.{name}")].1[..];
    let embedder = |name: &str| of(&format!("vision_embedder.{name}"));
    let norm = |x: &[f64], name: &str| {
        layer_norm(x, embedder(&format!("{name}.weight")), embedder(&format!("{name}.bias")))
    };
    let x: Vec<f64> = patch.iter().map(|x| f64::from(*x)).collect();
    let mut x = product(&norm(&x, "patch_ln1"), embedder("patch_dense.weight"));
    x.iter_mut().zip(embedder("patch_dense.bias")).for_each(|(x, b)| *x += f64::from(*b));
    let mut x = norm(&x, "patch_ln2");
    let places = embedder("pos_embedding");
    for (place, axis) in [(col, 0), (row, 1)] {
        let table = &places[(place * 2 + axis) * WIDTH..][..WIDTH];
        x.iter_mut().zip(table).for_each(|(x, p)| *x += f64::from(*p));
    }
    let x = norm(&x, "pos_norm");
    let rms = (x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64 + 1e-6).sqrt();
    product(&x.iter().map(|x| x / rms).collect::<Vec<_>>(), of("embed_vision.embedding_projection.weight"))
}

#[test]
fn gemma_4_without_a_tower_embeds_as_transformers_does() {
    let tensors = unified_tensors();
    let config = json!({
        "model_type": "gemma4_unified",
        "text_config": {
            "model_type": "gemma4_unified_text", "hidden_size": D_OUT, "use_bidirectional_attention": "vision"
        },
        "vision_config": {
            "model_type": "gemma4_unified_vision", "patch_size": PIXELS, "pooling_kernel_size": POOL,
            "mm_embed_dim": WIDTH, "mm_posemb_size": PLACES, "rms_norm_eps": 1e-6
        },
    });
    let folder = TempDir::new();
    write_folder(folder.path(), &config, &tensors, &BTreeMap::new());
    let files = [WeightFile::open(folder.path()).unwrap(), unified_gguf(&tensors)];
    let (rows, cols) = (2, 3);
    let patches = numbers(77, rows * cols * SAMPLES);
    for file in files.map(Arc::new) {
        for kind in [BackendKind::Scalar, BackendKind::Cpu] {
            let mut tower = VisionTower::load(&file, kind, BackendOptions::default()).unwrap().unwrap();
            let found = tower.embed(&ImagePatches { rows, cols, values: &patches }).unwrap();
            assert_eq!(found.len(), rows * cols * D_OUT);
            for (at, found) in found.chunks_exact(D_OUT).enumerate() {
                let patch = &patches[at * SAMPLES..][..SAMPLES];
                let expected = expected(&tensors, patch, (at % cols, at / cols));
                for (a, b) in found.iter().zip(&expected) {
                    assert!((f64::from(*a) - b).abs() < 1e-4, "{kind:?}, patch {at}: {found:?} {expected:?}");
                }
            }
        }
    }
}

fn reference(path: &str) -> Option<PathBuf> {
    let named = std::env::var_os("INGLENOOK_REFERENCE").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/reference");
    Some(named.unwrap_or(beside).join(path)).filter(|path| path.is_dir())
}

fn logits(folder: &Path) -> Vec<Vec<f32>> {
    let options = LoadOptions {
        devices: Devices::Scalar,
        kv: KvDType::F32.both(),
        ctx: Some(64),
        ..LoadOptions::default()
    };
    let file = Arc::new(WeightFile::open(folder).unwrap());
    let mut model = Model::load(file, &options, &mut |_| {}).unwrap();
    let seq = model.new_sequence().unwrap();
    let tokens: Vec<TokenId> = (0..20u32).map(|i| (i * 37 + 5) % 500).collect();
    let rows = model.forward(&[Chunk { seq, tokens: &tokens, logits: LogitsSelection::All }]).unwrap();
    (0..rows.n_rows()).map(|row| rows.row(row).unwrap().to_vec()).collect()
}

/// The matrices of one kind of all experts of a layer, each (out, in), as [experts, in, out].
fn stacked(file: &WeightFile, layer: usize, kinds: &[&str]) -> (Vec<usize>, Vec<f32>) {
    let (mut all, mut shape) = (Vec::new(), Vec::new());
    let name = |expert: usize, kind: &str| format!("model.layers.{layer}.mlp.experts.{expert}.{kind}.weight");
    let n_experts = (0..).take_while(|expert| file.tensor(&name(*expert, kinds[0])).is_some()).count();
    for expert in 0..n_experts {
        let views: Vec<_> = kinds.iter().map(|kind| file.tensor(&name(expert, kind)).unwrap()).collect();
        let (n_out, n_in) = (views[0].shape[0], views[0].shape[1]);
        shape = vec![n_experts, n_in, n_out * kinds.len()];
        for column in 0..n_in {
            for view in &views {
                let bf16 = |row: usize| &view.data[(row * n_in + column) * 2..][..2];
                all.extend(
                    (0..n_out)
                        .map(|row| f32::from_bits(u32::from_le_bytes([0, 0, bf16(row)[0], bf16(row)[1]]))),
                );
            }
        }
    }
    (shape, all)
}

/// The weights of a Qwen 3 with experts under the names and in the order of Qwen3-VL's repositories.
#[test]
fn experts_of_qwen3_vl_are_those_of_qwen3() {
    let Some(source) = reference("logits/qwen3_moe") else {
        skip!(Missing::Reference, "the small set has no Qwen 3 with experts")
    };
    let file = WeightFile::open(&source).unwrap();
    let mut tensors = Tensors::new();
    for view in file.tensors().filter(|view| !view.name.contains(".experts.")) {
        let values =
            view.data.chunks_exact(2).map(|b| f32::from_bits(u32::from_le_bytes([0, 0, b[0], b[1]])));
        let name = view
            .name
            .strip_prefix("model.")
            .map_or_else(|| view.name.to_owned(), |rest| format!("model.language_model.{rest}"));
        tensors.insert(name, (view.shape.to_vec(), values.collect()));
    }
    let mut text = file.metadata().config().clone();
    for layer in 0..text["num_hidden_layers"].as_u64().unwrap() as usize {
        let experts = |name: &str| format!("model.language_model.layers.{layer}.mlp.experts.{name}");
        tensors.insert(experts("gate_up_proj"), stacked(&file, layer, &["gate_proj", "up_proj"]));
        tensors.insert(experts("down_proj"), stacked(&file, layer, &["down_proj"]));
    }
    assert_eq!(text["norm_topk_prob"], true, "Qwen3-VL always normalizes");
    text["model_type"] = json!("qwen3_vl_moe_text");
    let config = json!({"model_type": "qwen3_vl_moe", "text_config": text});
    let folder = TempDir::new();
    write_folder(folder.path(), &config, &tensors, &BTreeMap::new());
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(source.join(name), folder.path().join(name)).unwrap();
    }
    let (before, after) = (logits(&source), logits(folder.path()));
    for (a, b) in before.iter().zip(&after) {
        assert!(test_support::largest_difference(a, b) < 1e-5);
    }
}

/// A small model of the tests with the vocabulary of another, whose tokenizer it gets.
fn with_vocabulary(folder: &str, of: &Path, n_vocab: usize) -> TempDir {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference").join(folder);
    let file = WeightFile::open(&root).unwrap();
    let mut tensors = Tensors::new();
    for view in file.tensors().filter(|view| !view.name.starts_with("masked_embedding")) {
        let (mut shape, mut values) = (view.shape.to_vec(), bf16_values(&view.data));
        if view.name.ends_with("embed_tokens.weight") {
            let repeated = values.iter().copied().cycle().take(n_vocab * shape[1]).collect();
            (shape[0], values) = (n_vocab, repeated);
        }
        tensors.insert(view.name.to_owned(), (shape, values));
    }
    let mut config = file.metadata().config().clone();
    match config.get_mut("text_config") {
        Some(text) => text["vocab_size"] = json!(n_vocab),
        None => config["vocab_size"] = json!(n_vocab),
    }
    let made = TempDir::new();
    write_folder(made.path(), &config, &tensors, &BTreeMap::new());
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(of.join(name), made.path().join(name)).unwrap();
    }
    made
}

/// An assistant becomes a GGUF with llama.cpp's names and keys, and drafts the same with its target as a GGUF.
#[test]
fn assistants_become_gguf() {
    let Some(source) = reference("logits/gemma4") else {
        skip!(Missing::Reference, "the small set has no tokenizer of Gemma 4")
    };
    let n_vocab =
        WeightFile::open(&source).unwrap().metadata().config()["vocab_size"].as_u64().unwrap() as usize;
    let folders =
        ["families/gemma4", "assistants/gemma4"].map(|folder| with_vocabulary(folder, &source, n_vocab));
    let opened = folders.each_ref().map(|folder| WeightFile::open(folder.path()).unwrap());
    let converted = opened.each_ref().map(|file| {
        let mut bytes = Vec::new();
        let formats = convert::Formats::parse("f32").unwrap();
        convert::plan(file, &formats, Some(1)).unwrap().write(&mut bytes).unwrap();
        WeightFile::from_bytes("converted", SharedBytes::from_vec(bytes)).unwrap()
    });
    let metadata = converted[1].metadata();
    assert_eq!(metadata.str("general.architecture").unwrap(), "gemma4-assistant");
    for (key, n) in [("embedding_length_out", 32), ("nextn_predict_layers", 3), ("block_count", 3)] {
        assert_eq!(metadata.u32(&format!("gemma4-assistant.{key}")).unwrap(), n, "{key}");
    }
    for name in ["nextn.pre_projection.weight", "nextn.post_projection.weight", "blk.2.attn_q.weight"] {
        assert!(converted[1].tensor(name).is_some(), "{name}");
    }
    assert!(converted[1].tensor("blk.0.attn_k.weight").is_none());
    let drafts = |[target, assistant]: [WeightFile; 2]| {
        let options = LoadOptions {
            devices: Devices::Scalar,
            kv: KvDType::F32.both(),
            ctx: Some(64),
            assistant: Some(AssistantFile(Arc::new(assistant))),
            ..LoadOptions::default()
        };
        let mut model = Model::load(Arc::new(target), &options, &mut |_| {}).unwrap();
        let seq = model.new_sequence().unwrap();
        let chunk = Chunk { seq, tokens: &[7, 300, 41, 9], logits: LogitsSelection::Last };
        let hidden = model.forward(&[chunk]).unwrap().hidden(0).unwrap().to_vec();
        model.draft_logits(seq, (4, 11), &hidden, 3).unwrap()
    };
    let (before, after) = (drafts(opened), drafts(converted));
    for (a, b) in before.iter().zip(&after) {
        assert!(test_support::largest_difference(a, b) < 1e-4);
    }
}

/// The values of a bf16 tensor.
fn bf16_values(data: &[u8]) -> Vec<f32> {
    data.chunks_exact(2).map(|b| f32::from_bits(u32::from_le_bytes([0, 0, b[0], b[1]]))).collect()
}

/// To the nearest, of two to the even one.
fn rounded_to_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF_0000)
}

/// Rows and columns of a block; neither divides the matrices.
const BLOCK: [usize; 2] = [24, 40];

/// A matrix whose blocks have factors, and what it stands for, both of bytes that look like nothing.
fn fp8_matrix(seed: usize, shape: &[usize]) -> (Vec<u8>, Vec<f32>, Vec<f32>) {
    let grid = [shape[0].div_ceil(BLOCK[0]), shape[1].div_ceil(BLOCK[1])];
    let factors: Vec<f32> =
        numbers(seed, grid[0] * grid[1]).iter().map(|x| 2f32.powi(-5) * (1.0 + x / 2.0)).collect();
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    for (row, column) in (0..shape[0]).flat_map(|row| (0..shape[1]).map(move |column| (row, column))) {
        let random = row * 31 + column * 17 + row * column + seed;
        let (mantissa, exponent, is_negative) = (random % 8, 4 + random / 8 % 4, random / 32 % 2 == 1);
        bytes.push((mantissa + 8 * exponent + if is_negative { 128 } else { 0 }) as u8);
        let size = (1.0 + mantissa as f32 / 8.0) * 2f32.powi(exponent as i32 - 7);
        let factor = factors[row / BLOCK[0] * grid[1] + column / BLOCK[1]];
        values.push(rounded_to_bf16(if is_negative { -size * factor } else { size * factor }));
    }
    (bytes, factors, values)
}

/// A model with FP8 weights is the model of its values in bf16, and can be converted.
#[test]
fn fp8_weights_are_their_values() {
    let Some(source) = reference("logits/qwen3") else {
        skip!(Missing::Reference, "the small set has no safetensors of Qwen 3")
    };
    let file = WeightFile::open(&source).unwrap();
    let (mut kept, mut plain, mut fp8) = (Tensors::new(), Tensors::new(), BTreeMap::new());
    for (seed, view) in file.tensors().enumerate() {
        let (name, shape) = (view.name.to_owned(), view.shape.to_vec());
        if !name.ends_with("_proj.weight") {
            let values = bf16_values(&view.data);
            plain.insert(name.clone(), (shape.clone(), values.clone()));
            kept.insert(name, (shape, values));
            continue;
        }
        let (bytes, factors, values) = fp8_matrix(seed, &shape);
        let grid = vec![shape[0].div_ceil(BLOCK[0]), shape[1].div_ceil(BLOCK[1])];
        kept.insert(format!("{name}_scale_inv"), (grid, factors));
        fp8.insert(name.clone(), (shape.clone(), bytes));
        plain.insert(name, (shape, values));
    }
    assert!(fp8.len() >= 14, "{}", fp8.len());
    let mut config = file.metadata().config().clone();
    let folders = [TempDir::new(), TempDir::new()];
    write_folder(folders[0].path(), &config, &plain, &BTreeMap::new());
    config["quantization_config"] = json!({"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": BLOCK});
    write_folder(folders[1].path(), &config, &kept, &fp8);
    for folder in &folders {
        for name in ["tokenizer.json", "tokenizer_config.json"] {
            std::fs::copy(source.join(name), folder.path().join(name)).unwrap();
        }
    }
    let (expected, found) = (logits(folders[0].path()), logits(folders[1].path()));
    let off = test_support::largest(
        expected.iter().zip(&found).map(|(a, b)| test_support::largest_difference(a, b)),
    );
    let spread = test_support::largest(expected.iter().flatten().copied());
    assert!(off < 1e-5 * spread, "off by {off} of {spread}");
    let source = WeightFile::open(folders[1].path()).unwrap();
    let mut bytes = Vec::new();
    let conversion =
        engine::convert::plan(&source, &engine::convert::Formats::parse("q8_0").unwrap(), Some(1)).unwrap();
    conversion.write(&mut bytes).unwrap();
    let made = WeightFile::from_bytes("q8_0", SharedBytes::from_vec(bytes)).unwrap();
    assert_eq!(made.tensor("blk.0.attn_q.weight").unwrap().dtype, DType::Q8_0);
}
