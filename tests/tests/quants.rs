//! Block formats against the reference: decoding to the bit, encoding no worse than llama.cpp's.

use std::collections::BTreeMap;
use std::path::Path;

use inglenook_tests::{reference_dir, reference_is_small};
use test_support::{Missing, skip, skip_part};
use weights::quant::presets::{ModelDims, QuantPreset, TensorDesc};
use weights::{DType, Value, WeightFile};

/// The values of a little-endian float32 array in NumPy's format.
fn read_npy(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(bytes.starts_with(b"\x93NUMPY\x01"), "{}", path.display());
    let header_len = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8_lossy(&bytes[10..10 + header_len]);
    assert!(header.contains("'<f4'") && header.contains("False"), "{header}");
    let (values, rest) = bytes[10 + header_len..].as_chunks::<4>();
    assert!(rest.is_empty());
    values.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

#[test]
fn sizes_are_those_of_the_reference_and_decoding_is_exact_to_the_bit() {
    let folder = reference_dir().join("quants");
    let Ok(index) = std::fs::read(folder.join("index.json")) else {
        skip!(Missing::Reference, "no {}", folder.display());
    };
    let index: serde_json::Value = serde_json::from_slice(&index).expect("index.json is JSON");
    let mut decoded = 0;
    for entry in index["entries"].as_array().expect("a list") {
        let name = entry["type"].as_str().expect("a name");
        let dtype = DType::from_name(name).unwrap_or_else(|| panic!("{name} has no row"));
        let number = |field: &str| entry[field].as_u64().expect(field);
        assert_eq!(dtype.gguf_id().map(u64::from), Some(number("ggml_type_id")), "{name}");
        assert_eq!(dtype.block_len() as u64, number("block_values"), "{name}");
        assert_eq!(dtype.block_bytes() as u64, number("block_bytes"), "{name}");
        let codec = dtype.codec().unwrap_or_else(|| panic!("{name} has no codec"));
        let bytes = std::fs::read(folder.join(format!("{name}.bin"))).expect("blocks");
        let expected = read_npy(&folder.join(format!("{name}.npy")));
        let mut values = vec![0.0; expected.len()];
        (codec.decode)(&bytes, &mut values);
        for (i, (got, expected)) in values.iter().zip(&expected).enumerate() {
            assert_eq!(got.to_bits(), expected.to_bits(), "{name} element {i}: {got} for {expected}");
        }
        decoded += 1;
    }
    assert!(decoded >= 25, "only {decoded} formats decoded");
}

/// What a file's own numbers say a mix depends on.
fn facts(file: &WeightFile) -> ModelDims {
    let metadata = file.metadata();
    let arch = metadata.str("general.architecture").expect("an architecture").to_owned();
    // A number, or one for each layer: those of the first.
    let number = |key: &str| match metadata.get(&format!("{arch}.{key}")) {
        Some(Value::Array(array)) => {
            let signed = || array.i32s().map(|all| all.into_iter().map(i32::unsigned_abs).collect());
            array
                .u32s()
                .or_else(|_| signed())
                .ok()
                .and_then(|all: Vec<u32>| all.first().copied().map(u64::from))
        }
        Some(value) => value.as_u64(),
        None => None,
    };
    let heads = number("attention.head_count").unwrap_or(1);
    ModelDims {
        n_layers: number("block_count").expect("a number of layers") as usize,
        n_queries_per_kv: (heads / number("attention.head_count_kv").unwrap_or(heads).max(1)) as usize,
    }
}

#[test]
fn mixes_choose_what_llama_quantize_chose() {
    let folder = reference_dir().join("logits");
    let Ok(families) = std::fs::read_dir(&folder) else {
        skip!(Missing::Reference, "no {}", folder.display());
    };
    let mut n_files = 0;
    let files = families.flatten().flat_map(|family| std::fs::read_dir(family.path()).into_iter().flatten());
    for path in files.flatten().map(|file| file.path()).filter(|p| p.extension().is_some_and(|e| e == "gguf"))
    {
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        let Some(mix) = name.rsplit_once('.').and_then(|(_, mix)| QuantPreset::from_name(mix)) else {
            continue;
        };
        if mix.base().block_len() == 1 {
            continue; // not made by llama-quantize: experts that were published as MXFP4 stay so
        }
        let file = WeightFile::open(&path).expect("a valid file");
        let views: Vec<_> = file.tensors().collect();
        let tensors: Vec<TensorDesc> =
            views.iter().map(|v| TensorDesc { name: v.name, dims: v.shape }).collect();
        for (view, ours) in views.iter().zip(mix.dtypes(&tensors, &facts(&file))) {
            // Left as the source had it there: a float format of one width or another.
            if view.dtype.block_len() == 1 && ours.block_len() == 1 {
                continue;
            }
            assert_eq!(view.dtype, ours, "{name}: {} {:?}", view.name, view.shape);
        }
        n_files += 1;
    }
    println!("{n_files} files");
    let is_small = reference_is_small();
    if is_small {
        skip_part!(Missing::Reference, "the small set has few files of a known mix");
    }
    let least = if is_small { 1 } else { 11 };
    assert!(n_files >= least, "only {n_files} files of a known mix");
}

fn decode(file: &WeightFile, name: &str) -> Vec<f32> {
    let tensor = file.tensor(name).unwrap_or_else(|| panic!("{name} is missing"));
    let mut values = vec![0.0; tensor.shape.iter().product()];
    (tensor.dtype.codec().expect("a format with a codec").decode)(&tensor.data, &mut values);
    values
}

fn squared_error(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum()
}

/// Matrices of a layer that a GGUF holds in the same order as a safetensors file.
const PAIRS: [(&str, &str); 5] = [
    ("attn_v.weight", "self_attn.v_proj.weight"),
    ("attn_output.weight", "self_attn.o_proj.weight"),
    ("ffn_gate.weight", "mlp.gate_proj.weight"),
    ("ffn_up.weight", "mlp.up_proj.weight"),
    ("ffn_down.weight", "mlp.down_proj.weight"),
];

/// Every matrix that both containers of a family hold alike: names in the GGUF and in the safetensors file.
fn shared_matrices(file: &WeightFile, original: &WeightFile) -> Vec<(String, String)> {
    let mut pairs = vec![("token_embd.weight".to_owned(), "model.embed_tokens.weight".to_owned())];
    for layer in 0..facts(file).n_layers {
        pairs.extend(
            PAIRS.map(|(gguf, hf)| (format!("blk.{layer}.{gguf}"), format!("model.layers.{layer}.{hf}"))),
        );
    }
    pairs.retain(|(gguf, hf)| match (file.tensor(gguf), original.tensor(hf)) {
        (Some(a), Some(b)) => a.shape == b.shape,
        _ => false,
    });
    pairs
}

/// Squared errors of our encoder and of llama.cpp's, and the number of values.
#[derive(Default, Clone, Copy)]
struct Errors {
    ours: f64,
    theirs: f64,
    n: usize,
}

/// Adds what the matrices of one quantised file show, by format.
fn compare(file: &WeightFile, original: &WeightFile, errors: &mut BTreeMap<DType, Errors>) {
    for (gguf, hf) in shared_matrices(file, original) {
        let dtype = file.tensor(&gguf).expect("one of the pairs").dtype;
        let Some(encode) = dtype.encoder().filter(|_| dtype.block_len() > 1) else { continue };
        let quantised = decode(file, &gguf);
        let values = decode(original, &hf);
        let mut bytes = vec![0; values.len() / dtype.block_len() * dtype.block_bytes()];
        let mut back = vec![0.0; values.len()];
        encode(&values, &mut bytes);
        (dtype.codec().expect("what is encoded is decoded").decode)(&bytes, &mut back);
        let sum = errors.entry(dtype).or_default();
        sum.ours += squared_error(&values, &back);
        sum.theirs += squared_error(&values, &quantised);
        sum.n += values.len();
    }
}

#[test]
fn encoding_has_no_larger_error_than_llama_cpp_on_the_same_weights() {
    if reference_is_small() {
        skip!(Missing::Reference, "the small set has no file of llama.cpp beside its source");
    }
    let folder = reference_dir().join("logits");
    let Ok(families) = std::fs::read_dir(&folder) else {
        skip!(Missing::Reference, "no {}", folder.display());
    };
    let mut all: BTreeMap<DType, Errors> = BTreeMap::new();
    for family in families.flatten().map(|family| family.path()) {
        let Ok(original) = WeightFile::open(&family) else { continue };
        for path in std::fs::read_dir(&family).into_iter().flatten().flatten().map(|file| file.path()) {
            if path.extension().is_some_and(|e| e == "gguf") {
                let mut errors = BTreeMap::new();
                compare(&WeightFile::open(&path).expect("a valid file"), &original, &mut errors);
                for (dtype, of_file) in errors {
                    // Up to the rounding of the sums.
                    assert!(of_file.ours <= of_file.theirs * 1.000_001, "{dtype} in {}", path.display());
                    let sum = all.entry(dtype).or_default();
                    sum.ours += of_file.ours;
                    sum.theirs += of_file.theirs;
                    sum.n += of_file.n;
                }
            }
        }
    }
    for (dtype, errors) in &all {
        let rmse = |sum: f64| (sum / errors.n as f64).sqrt();
        println!("{dtype}: RMSE {:.3e}, llama.cpp {:.3e}", rmse(errors.ours), rmse(errors.theirs));
    }
    assert!(all.len() >= 5, "only {:?} are in the reference's files", all.keys());
}
