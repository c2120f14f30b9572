//! Sound safetensors with damaged config.json: refused by name, never a panic; published variants: taken.

use std::path::PathBuf;

use engine::spec::ModelSpec;
use engine::{EngineError, arch};
use serde_json::{Value, json};
use test_support::{Missing, skip};
use weights::WeightFile;

/// A family's folder in either batch of the reference data.
fn source(family: &str) -> PathBuf {
    let root = inglenook_tests::reference_dir();
    let first = root.join("logits").join(family);
    if first.exists() { first } else { root.join("more-families").join(family) }
}

/// A folder with a family's weights and a config changed by `change`; None without reference data.
fn folder(family: &str, name: &str, change: &dyn Fn(&mut Value)) -> Option<PathBuf> {
    let source = source(family);
    let config = std::fs::read(source.join("config.json")).ok()?;
    let folder =
        std::env::temp_dir().join(format!("inglenook-configs-{}-{family}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let weights = folder.join("model.safetensors");
    if !weights.exists() {
        std::fs::copy(source.join("model.safetensors"), weights).unwrap();
    }
    let mut config: Value = serde_json::from_slice(&config).unwrap();
    change(&mut config);
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    Some(folder)
}

fn read(family: &str, name: &str, change: &dyn Fn(&mut Value)) -> Option<Result<ModelSpec, EngineError>> {
    let file = WeightFile::open(&folder(family, name, change)?).unwrap();
    let checked = arch::find(&file).and_then(|family| {
        let spec = arch::spec(&file, family)?;
        arch::tensors(&file, family, &spec)?;
        Ok(spec)
    });
    Some(checked)
}

fn remove(family: &str, name: &str) {
    if let Some(folder) = folder(family, name, &|_| {}) {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// Families of the second batch with keys of their own.
const MORE: &[&str] = &[
    "apertus",
    "bamba",
    "cohere2",
    "deepseek_v2",
    "deepseek_v3",
    "dots1",
    "ernie4_5_moe",
    "exaone4",
    "falcon_h1",
    "gemma3n",
    "glm4_moe",
    "granitemoe",
    "granitemoehybrid",
    "hunyuan_v1_moe",
    "lfm2_moe",
    "minicpm3",
    "olmo3",
    "phimoe",
    "qwen3_next",
    "stablelm_parallel",
    "starcoder2_window",
];

#[test]
fn damaged_values_are_refused_or_harmless() {
    let values =
        [json!(null), json!(0), json!(-1), json!(1e300), json!("x"), json!([1]), json!({}), json!(true)];
    for family in ["llama", "smollm3"].iter().chain(MORE) {
        let Some(whole) = read(family, "damaged", &|_| {}) else {
            skip!(Missing::Reference, "no config of {family}");
        };
        whole.unwrap();
        let config = std::fs::read(source(family).join("config.json")).unwrap();
        let config: Value = serde_json::from_slice(&config).unwrap();
        for key in config.as_object().unwrap().keys() {
            for value in &values {
                let found = read(family, "damaged", &|config| config[key] = value.clone()).unwrap();
                if let Err(error) = found {
                    assert!(error.code().starts_with("model."), "{key} = {value}: {error}");
                    assert!(!error.to_string().is_empty() && !error.remedy().is_empty());
                }
            }
        }
        remove(family, "damaged");
    }
}

#[test]
fn wrong_values_are_named() {
    let cases = [
        ("llama", "num_hidden_layers", json!(0), "model.hyperparameter"),
        ("llama", "num_hidden_layers", json!(4), "model.tensor_missing"),
        ("llama", "num_attention_heads", json!(3), "model.hyperparameter"),
        ("llama", "num_key_value_heads", json!(3), "model.hyperparameter"),
        ("llama", "head_dim", json!(33), "model.hyperparameter"),
        ("llama", "head_dim", json!(64), "model.tensor_shape"),
        ("llama", "vocab_size", json!(511), "model.hyperparameter"),
        ("llama", "rms_norm_eps", json!(-1), "model.hyperparameter"),
        ("llama", "rope_theta", json!(0), "model.hyperparameter"),
        ("llama", "hidden_act", json!("relu"), "model.feature_unsupported"),
        ("llama", "attention_bias", json!(true), "model.tensor_missing"),
        ("llama", "mlp_bias", json!(true), "model.tensor_missing"),
        ("llama", "rope_scaling", json!({"rope_type": "dynamic", "factor": 4}), "model.feature_unsupported"),
        ("llama", "rope_scaling", json!({"rope_type": "linear"}), "model.hyperparameter"),
        ("llama", "rope_scaling", json!({"rope_type": "yarn"}), "model.hyperparameter"),
        ("llama", "rope_scaling", json!({"rope_type": "longrope"}), "model.hyperparameter"),
        ("llama", "rope_scaling", json!({"rope_type": "llama3", "factor": 8}), "model.hyperparameter"),
        ("llama", "quantization_config", json!({"quant_method": "awq"}), "model.feature_unsupported"),
        ("llama", "model_type", json!("mamba"), "model.architecture_unknown"),
        ("llama", "model_type", json!(null), "model.config_missing"),
        ("smollm3", "no_rope_layers", json!([1, 1]), "model.hyperparameter"),
        ("smollm3", "no_rope_layers", json!([1, 1, 1, 2, 1]), "model.hyperparameter"),
        ("smollm3", "layer_types", json!(["linear_attention"]), "model.hyperparameter"),
    ];
    for (family, key, value, code) in cases {
        let Some(found) = read(family, "wrong", &|config| config[key] = value.clone()) else {
            skip!(Missing::Reference, "no config of {family}");
        };
        let error = found.err().unwrap_or_else(|| panic!("{family}: {key} = {value} is refused"));
        assert_eq!(error.code(), code, "{family}: {key} = {value}: {error}");
    }
    remove("llama", "wrong");
    remove("smollm3", "wrong");
}

#[test]
fn what_more_families_cannot_do_is_named() {
    let unsupported = "model.feature_unsupported";
    let wrong = "model.hyperparameter";
    let cases = [
        ("apertus", "post_norm", json!(true), unsupported),
        ("apertus", "hidden_act", json!("silu"), unsupported),
        ("apertus", "mlp_bias", json!(true), "model.tensor_missing"),
        ("bamba", "attn_layer_indices", json!([3]), wrong),
        ("bamba", "attn_rotary_emb", json!(8), wrong),
        ("bamba", "hidden_act", json!("gelu"), unsupported),
        ("bamba", "mamba_d_head", json!(24), wrong),
        ("bamba", "time_step_limit", json!([1.0, 0.5]), wrong),
        ("cohere2", "use_parallel_block", json!(false), unsupported),
        ("cohere2", "order_of_interleaved_layers", json!("global_attn_first"), unsupported),
        ("deepseek_v3", "attention_bias", json!(true), unsupported),
        ("deepseek_v3", "kv_lora_rank", json!(65), "model.tensor_shape"),
        ("deepseek_v3", "moe_layer_freq", json!(2), unsupported),
        ("deepseek_v3", "qk_nope_head_dim", json!(31), "model.tensor_shape"),
        ("deepseek_v3", "scoring_func", json!("sinkhorn"), unsupported),
        ("deepseek_v3", "topk_method", json!("auction"), unsupported),
        ("deepseek_v3", "v_head_dim", json!(31), "model.tensor_shape"),
        ("dots1", "scoring_func", json!("softmax"), unsupported),
        ("dots1", "n_group", json!(3), wrong),
        ("dots1", "n_shared_experts", json!(3), "model.tensor_shape"),
        ("ernie4_5_moe", "moe_gate", json!("sinkhorn"), unsupported),
        ("ernie4_5_moe", "moe_layer_end_index", json!(-2), wrong),
        ("exaone4", "layer_types", json!(["full_attention"]), wrong),
        ("falcon_h1", "mamba_n_groups", json!(4), wrong),
        ("falcon_h1", "mamba_use_mlp", json!(false), unsupported),
        ("falcon_h1", "mlp_multipliers", json!([0.5]), wrong),
        ("falcon_h1", "ssm_multipliers", json!("none"), wrong),
        ("glm4_moe", "topk_group", json!(2), wrong),
        ("glm4_moe", "first_k_dense_replace", json!(0), "model.tensor_missing"),
        ("granite", "logits_scaling", json!(0), wrong),
        ("granitemoehybrid", "layer_types", json!(["mamba", "mamba", "window", "mamba"]), unsupported),
        ("granitemoehybrid", "position_embedding_type", json!("alibi"), unsupported),
        ("hunyuan_v1_dense", "use_cla", json!(true), unsupported),
        ("hunyuan_v1_moe", "moe_topk", json!([3, 0]), unsupported),
        ("hunyuan_v1_moe", "moe_topk", json!([3, 7]), wrong),
        ("phimoe", "num_experts_per_tok", json!(3), unsupported),
        ("qwen3_next", "linear_num_key_heads", json!(4), "model.tensor_shape"),
        ("starcoder2", "mlp_type", json!("gated"), unsupported),
        ("starcoder2", "hidden_act", json!("tanh"), unsupported),
    ];
    for (family, key, value, code) in cases {
        let Some(found) = read(family, "unsupported", &|config| config[key] = value.clone()) else {
            skip!(Missing::Reference, "no config of {family}");
        };
        let error = found.err().unwrap_or_else(|| panic!("{family}: {key} = {value} is refused"));
        assert_eq!(error.code(), code, "{family}: {key} = {value}: {error}");
        remove(family, "unsupported");
    }
}

#[test]
fn numbers_of_gemma_3n_that_do_not_agree_are_named() {
    let (unsupported, wrong) = ("model.feature_unsupported", "model.hyperparameter");
    let cases = [
        ("altup_active_idx", json!(4), wrong),
        ("altup_num_inputs", json!(0), wrong),
        ("altup_num_inputs", json!(3), "model.tensor_shape"),
        ("altup_num_inputs", json!(5), "model.tensor_missing"),
        ("activation_sparsity_pattern", json!([0.95, 0.0]), wrong),
        ("activation_sparsity_pattern", json!(0.95), wrong),
        ("activation_sparsity_pattern", json!([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]), wrong),
        ("activation_sparsity_pattern", json!([-0.1, 0.0, 0.0, 0.0, 0.0, 0.0]), wrong),
        ("intermediate_size", json!([96, 96, 97]), wrong),
        ("intermediate_size", json!(95), "model.tensor_shape"),
        ("laurel_rank", json!(17), "model.tensor_shape"),
        ("laurel_rank", json!(0), wrong),
        ("layer_types", json!(["full_attention"]), wrong),
        ("num_kv_shared_layers", json!(6), wrong),
        ("num_kv_shared_layers", json!(5), wrong),
        ("hidden_size_per_layer_input", json!(0), wrong),
        ("hidden_size_per_layer_input", json!(17), "model.tensor_shape"),
        ("vocab_size_per_layer_input", json!(511), "model.tensor_shape"),
        ("attention_bias", json!(true), "model.tensor_missing"),
        ("hidden_activation", json!("relu"), unsupported),
    ];
    for (key, value, code) in cases {
        let Some(found) = read("gemma3n", "wrong", &|config| config[key] = value.clone()) else {
            skip!(Missing::Reference, "no config of gemma3n");
        };
        let error = found.err().unwrap_or_else(|| panic!("{key} = {value} is refused"));
        assert_eq!(error.code(), code, "{key} = {value}: {error}");
    }
    remove("gemma3n", "wrong");
}

#[test]
fn published_spellings_mean_the_same() {
    let Some(plain) = read("llama", "spelling", &|_| {}) else {
        skip!(Missing::Reference, "no config of llama");
    };
    let plain = plain.unwrap();
    let newer = |config: &mut Value| {
        let mut parameters = config["rope_scaling"].take();
        parameters["rope_theta"] = config["rope_theta"].take();
        config["rope_parameters"] = parameters;
    };
    let older = |config: &mut Value| {
        let kind = config["rope_scaling"]["rope_type"].take();
        config["rope_scaling"]["type"] = kind;
    };
    let changes: [&dyn Fn(&mut Value); 2] = [&newer, &older];
    for change in changes {
        assert_eq!(read("llama", "spelling", change).unwrap().unwrap(), plain);
    }
    remove("llama", "spelling");

    let plain = read("smollm3", "spelling", &|_| {}).unwrap().unwrap();
    let by_interval = |config: &mut Value| config["no_rope_layers"] = Value::Null;
    assert_eq!(read("smollm3", "spelling", &by_interval).unwrap().unwrap(), plain);
    let windowed = |config: &mut Value| {
        config["use_sliding_window"] = json!(true);
        config["sliding_window"] = json!(16);
        config["layer_types"] = Value::Null;
    };
    let windows: Vec<_> = read("smollm3", "spelling", &windowed).unwrap().unwrap().layers;
    let windows: Vec<_> =
        windows.iter().map(|layer| layer.mixer.attention().and_then(|a| a.window)).collect();
    assert_eq!(windows, [None, None, None, Some(16), None]);
    remove("smollm3", "spelling");
}
