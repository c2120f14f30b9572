//! Files that are valid containers with invalid models. Each must fail with a code and a message that names the key
//! or tensor.

use weights::quant::presets::QuantPreset;
use weights::write::{GgufWriter, OwnedValue};
use weights::{DType, SharedBytes, WeightFile};

use super::{find, spec, tensors};
use crate::error::Result;
use crate::shape::{tiny, writer};
use crate::spec::{Attention, ModelSpec, Rope};

fn read(writer: &GgufWriter) -> Result<ModelSpec> {
    let file = WeightFile::from_bytes("tiny", SharedBytes::from_vec(writer.to_bytes()))?;
    let family = find(&file)?;
    let spec = spec(&file, family)?;
    tensors(&file, family, &spec)?;
    Ok(spec)
}

fn attention(spec: &ModelSpec, layer: usize) -> &Attention {
    spec.layers[layer].mixer.attention().expect("a layer with attention")
}

fn llama() -> GgufWriter {
    writer(&tiny("llama", false), QuantPreset::F32, 1).unwrap()
}

fn check_key(key: &str, value: OwnedValue, code: &str) {
    let found = read(llama().set(&format!("llama.{key}"), value.clone()));
    let error = found.err().unwrap_or_else(|| panic!("{key} = {value:?} is refused"));
    assert_eq!(error.code(), code, "{key} = {value:?}: {error}");
    assert!(!error.remedy().is_empty());
    if code == "model.hyperparameter" {
        assert!(error.to_string().contains("llama."), "{key} = {value:?}: {error}");
    }
}

#[test]
fn counts_outside_their_bounds_are_refused() {
    let counts = [
        ("block_count", vec![0, 1025, u32::MAX], "model.hyperparameter"),
        ("block_count", vec![10, 1024], "model.tensor_missing"),
        ("embedding_length", vec![0, u32::MAX], "model.hyperparameter"),
        ("embedding_length", vec![255, 512], "model.tensor_shape"),
        ("attention.head_count", vec![0, 3, u32::MAX], "model.hyperparameter"),
        ("attention.head_count", vec![8], "model.tensor_shape"),
        ("attention.head_count_kv", vec![0, 3, 8, u32::MAX], "model.hyperparameter"),
        ("attention.head_count_kv", vec![1, 4], "model.tensor_shape"),
        ("attention.key_length", vec![0, 513, u32::MAX], "model.hyperparameter"),
        ("attention.value_length", vec![32], "model.feature_unsupported"),
        ("feed_forward_length", vec![0, u32::MAX], "model.hyperparameter"),
        ("feed_forward_length", vec![511, 1024], "model.tensor_shape"),
        ("rope.dimension_count", vec![0, 15, 66, u32::MAX], "model.hyperparameter"),
        ("context_length", vec![0], "model.hyperparameter"),
        ("expert_count", vec![8, u32::MAX], "model.feature_unsupported"),
    ];
    for (key, values, code) in counts {
        values.into_iter().for_each(|value| check_key(key, OwnedValue::U32(value), code));
    }
    check_key("block_count", OwnedValue::U64(1 << 40), "model.hyperparameter");
    for key in ["block_count", "attention.head_count_kv", "context_length", "embedding_length"] {
        check_key(key, OwnedValue::I32(-1), "weights.key_invalid");
        check_key(key, OwnedValue::Str("9".into()), "weights.key_invalid");
        check_key(
            key,
            OwnedValue::U32s(vec![]),
            if key.ends_with("_kv") { "model.hyperparameter" } else { "weights.key_invalid" },
        );
    }
    for key in ["block_count", "context_length", "embedding_length"] {
        check_key(key, OwnedValue::U32s(vec![9; 9]), "weights.key_invalid");
    }
}

#[test]
fn a_number_may_stand_once_per_layer() {
    let plain = llama();
    let expected = read(&plain).unwrap();
    let n_layers = expected.layers.len();
    let (first, d_ff) = (attention(&expected, 0).clone(), dense_width(&expected, 0));
    let counts = [
        ("attention.head_count", first.n_heads),
        ("attention.head_count_kv", first.n_kv_heads),
        ("attention.key_length", first.head_dim),
        ("attention.value_length", first.head_dim),
        ("rope.dimension_count", first.head_dim),
        ("feed_forward_length", d_ff),
        ("expert_count", 0),
    ];
    for (key, n) in counts {
        // some converters count the layers of a draft head too
        for len in [n_layers, n_layers + 1] {
            let value = OwnedValue::U32s(vec![n as u32; len]);
            let found = read(llama().set(&format!("llama.{key}"), value));
            assert_eq!(found.unwrap_or_else(|error| panic!("{key}: {error}")), expected, "{key}");
        }
    }
    let base = read(llama().set("llama.rope.freq_base", OwnedValue::F32(5e5))).unwrap();
    let bases = OwnedValue::F32s(vec![5e5; n_layers]);
    assert_eq!(read(llama().set("llama.rope.freq_base", bases)).unwrap(), base);
}

#[test]
fn numbers_that_differ_between_layers_are_used_or_named() {
    let unequal = |first: u32, other: u32| OwnedValue::U32s([vec![first], vec![other; 8]].concat());
    // What the engine has one value of: the remedy is not to download the file again.
    for key in ["rope.dimension_count", "attention.key_length", "expert_count"] {
        let error = read(llama().set(&format!("llama.{key}"), unequal(64, 32))).unwrap_err();
        assert_eq!(error.code(), "model.feature_unsupported", "{key}: {error}");
        assert!(error.to_string().contains(&format!("llama.{key}")), "{error}");
        assert_eq!(error.remedy(), "Choose another model.");
    }
    let none = read(llama().set("llama.attention.head_count_kv", unequal(2, 0))).unwrap_err();
    assert_eq!(none.code(), "model.feature_unsupported", "{none}");
    let few = read(llama().set("llama.attention.head_count_kv", OwnedValue::U32s(vec![1, 2]))).unwrap_err();
    assert_eq!(few.code(), "model.hyperparameter", "{few}");

    let mut writer = GgufWriter::new();
    writer.set("general.architecture", OwnedValue::Str("llama".into()));
    for (key, n) in [("block_count", 2), ("context_length", 64), ("embedding_length", 64)] {
        writer.set(&format!("llama.{key}"), OwnedValue::U32(n));
    }
    writer.set("llama.attention.layer_norm_rms_epsilon", OwnedValue::F32(1e-5));
    writer.set("llama.attention.key_length", OwnedValue::U32(16));
    let per_layer = [
        ("attention.head_count", [4, 2]),
        ("attention.head_count_kv", [2, 1]),
        ("feed_forward_length", [32, 96]),
    ];
    for (key, counts) in per_layer {
        writer.set(&format!("llama.{key}"), OwnedValue::U32s(counts.to_vec()));
    }
    let mut put = |name: String, shape: &[usize]| {
        writer.encode(&name, DType::F32, shape, &vec![0.5; shape.iter().product()]);
    };
    put("token_embd.weight".into(), &[8, 64]);
    put("output_norm.weight".into(), &[64]);
    for (layer, (heads, kv, d_ff)) in [(4, 2, 32), (2, 1, 96)].into_iter().enumerate() {
        let tensors: [(&str, &[usize]); 9] = [
            ("attn_norm", &[64]),
            ("attn_q", &[heads * 16, 64]),
            ("attn_k", &[kv * 16, 64]),
            ("attn_v", &[kv * 16, 64]),
            ("attn_output", &[64, heads * 16]),
            ("ffn_norm", &[64]),
            ("ffn_gate", &[d_ff, 64]),
            ("ffn_up", &[d_ff, 64]),
            ("ffn_down", &[64, d_ff]),
        ];
        tensors.iter().for_each(|(name, shape)| put(format!("blk.{layer}.{name}.weight"), shape));
    }
    let spec = read(&writer).unwrap();
    let heads = |layer| (attention(&spec, layer).n_heads, attention(&spec, layer).n_kv_heads);
    assert_eq!([heads(0), heads(1)], [(4, 2), (2, 1)]);
    assert_eq!([dense_width(&spec, 0), dense_width(&spec, 1)], [32, 96]);
}

fn dense_width(spec: &ModelSpec, layer: usize) -> usize {
    match &spec.layers[layer].ffn {
        crate::spec::Ffn::Gated(dense) => dense.d_ff,
        _ => panic!("llama's are gated"),
    }
}

#[test]
fn numbers_outside_their_bounds_are_refused() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let reals = [
        ("attention.layer_norm_rms_epsilon", vec![-1.0, 2.0, nan, inf, -inf]),
        ("rope.freq_base", vec![0.0, -1.0, nan, inf, f32::MIN_POSITIVE]),
        ("rope.scaling.factor", vec![-1.0, nan, inf]),
        ("rope.scale_linear", vec![-1.0, nan]),
    ];
    for (key, values) in reals {
        values.into_iter().for_each(|value| check_key(key, OwnedValue::F32(value), "model.hyperparameter"));
    }
    check_key("rope.scaling.type", OwnedValue::Str("yarn".into()), "model.hyperparameter"); // no factor
    check_key("rope.scaling.type", OwnedValue::Str("dynamic".into()), "model.feature_unsupported");
    check_key("rope.scaling.type", OwnedValue::U32(1), "weights.key_invalid");
}

#[test]
fn numbers_at_their_bounds_are_accepted() {
    let set = |key: &str, value| read(llama().set(&format!("llama.{key}"), value)).unwrap();
    assert_eq!(set("context_length", OwnedValue::U32(u32::MAX)).context_length, u32::MAX as usize);
    assert_eq!(set("block_count", OwnedValue::U64(8)).layers.len(), 8);
    let rotary = |spec: &ModelSpec| match &attention(spec, 0).rope {
        Rope::Rotary(rotary) => rotary.clone(),
        Rope::ByAxis { .. } | Rope::None => panic!("llama turns"),
    };
    let plain = rotary(&read(&llama()).unwrap());
    let halved = rotary(&set("rope.scaling.factor", OwnedValue::F32(2.0)));
    assert_eq!(halved.inv_freq[5], plain.inv_freq[5] / 2.0);
    let half_turned = rotary(&{
        let shape =
            crate::shape::Shape { rope_divisors: crate::shape::RopeDivisors::None, ..tiny("llama", false) };
        let mut writer = writer(&shape, QuantPreset::F32, 1).unwrap();
        read(writer.set("llama.rope.dimension_count", OwnedValue::U32(32))).unwrap()
    });
    assert_eq!((half_turned.n_rot, half_turned.inv_freq.len()), (32, 16));
}

#[test]
fn unsupported_families_list_the_supported_ones() {
    let error = read(llama().set("general.architecture", OwnedValue::Str("mamba".into()))).unwrap_err();
    assert_eq!(error.code(), "model.architecture_unknown");
    assert!(error.to_string().contains("mamba") && error.remedy().contains("llama, mistral3, smollm3"));
    let error = read(llama().set("general.architecture", OwnedValue::U32(1))).unwrap_err();
    assert_eq!(error.code(), "weights.key_invalid");
}

/// Builds a model of one layer with one tensor changed.
fn with_tensor(change: &str, dtype: DType, shape: &[usize], value: f32) -> Result<ModelSpec> {
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", OwnedValue::Str("llama".into()));
    for (key, n) in [
        ("block_count", 1),
        ("context_length", 64),
        ("embedding_length", 64),
        ("feed_forward_length", 32),
        ("attention.head_count", 2),
    ] {
        writer.set(&format!("llama.{key}"), OwnedValue::U32(n));
    }
    writer.set("llama.attention.layer_norm_rms_epsilon", OwnedValue::F32(1e-5));
    let sound: [(&str, &[usize]); 11] = [
        ("token_embd.weight", &[8, 64]),
        ("output_norm.weight", &[64]),
        ("blk.0.attn_norm.weight", &[64]),
        ("blk.0.attn_q.weight", &[64, 64]),
        ("blk.0.attn_k.weight", &[64, 64]),
        ("blk.0.attn_v.weight", &[64, 64]),
        ("blk.0.attn_output.weight", &[64, 64]),
        ("blk.0.ffn_norm.weight", &[64]),
        ("blk.0.ffn_gate.weight", &[32, 64]),
        ("blk.0.ffn_up.weight", &[32, 64]),
        ("blk.0.ffn_down.weight", &[64, 32]),
    ];
    let put = |writer: &mut GgufWriter, name: &str, dtype: DType, shape: &[usize], value: f32| {
        let n: usize = shape.iter().product();
        match dtype.encoder() {
            Some(_) => writer.encode(name, dtype, shape, &vec![value; n]),
            None => writer.tensor(
                name,
                dtype,
                shape,
                vec![0; n / shape[shape.len() - 1] * dtype.row_bytes(shape[shape.len() - 1])],
            ),
        };
    };
    for (name, sound) in sound.into_iter().filter(|(name, _)| *name != change) {
        put(&mut writer, name, DType::F32, sound, 1.0);
    }
    if !shape.is_empty() {
        put(&mut writer, change, dtype, shape, value);
    }
    read(&writer)
}

#[test]
fn tensors_need_their_shape_and_a_supported_format() {
    assert!(with_tensor("nothing", DType::F32, &[], 0.0).is_ok());
    let names =
        ["token_embd", "output_norm", "blk.0.attn_norm", "blk.0.attn_q", "blk.0.attn_v", "blk.0.ffn_down"];
    for name in names.map(|name| format!("{name}.weight")) {
        let cases: [(DType, &[usize], &str); 4] = [
            (DType::F32, &[], "model.tensor_missing"),
            (DType::F32, &[2, 2, 64], "model.tensor_shape"),
            (DType::F32, &[3], "model.tensor_shape"),
            (DType::Q8_0, &[96], "model.tensor_shape"),
        ];
        for (dtype, shape, code) in cases {
            let error =
                with_tensor(&name, dtype, shape, 1.0).err().unwrap_or_else(|| panic!("{name} {shape:?}"));
            // any number of embedding rows is a valid vocabulary
            assert_eq!(error.code(), code, "{name} {shape:?}: {error}");
            assert!(error.to_string().contains(&name), "{error}");
        }
    }
    let norm_2d = with_tensor("blk.0.attn_norm.weight", DType::F32, &[2, 64], 1.0).unwrap_err();
    assert_eq!(norm_2d.code(), "model.tensor_shape");
    for dtype in [DType::I32, DType::I8, DType::F64] {
        for (name, shape) in [("blk.0.attn_q.weight", vec![64, 64]), ("blk.0.ffn_norm.weight", vec![64])] {
            assert_eq!(with_tensor(name, dtype, &shape, 1.0).unwrap_err().code(), "model.dtype_unsupported");
        }
    }
    let bias = with_tensor("blk.0.attn_q.bias", DType::F32, &[64], 1.0).unwrap_err();
    assert_eq!(bias.code(), "model.tensor_missing", "a bias for one projection alone: {bias}");
}

#[test]
fn rotary_divisors_are_positive_numbers() {
    assert!(with_tensor("rope_freqs.weight", DType::F32, &[16], 2.0).is_ok());
    assert_eq!(
        with_tensor("rope_freqs.weight", DType::F32, &[15], 2.0).unwrap_err().code(),
        "model.tensor_shape"
    );
    for value in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let error = with_tensor("rope_freqs.weight", DType::F32, &[16], value).unwrap_err();
        assert_eq!(error.code(), "model.hyperparameter", "{value}");
    }
}

#[test]
fn smollm3_does_not_rotate_every_fourth_layer() {
    let spec = read(&writer(&tiny("smollm3", true), QuantPreset::F32, 1).unwrap()).unwrap();
    let turned: Vec<bool> = (0..spec.layers.len()).map(|l| attention(&spec, l).rope != Rope::None).collect();
    assert_eq!(turned, [true, true, true, false, true, true, true, false, true]);
}
