//! Sound safetensors with damaged config.json: refused by name, never a panic; published variants: taken.

use std::path::PathBuf;

use engine::spec::ModelSpec;
use engine::{EngineError, arch};
use serde_json::{Value, json};
use test_support::{Missing, skip};
use weights::WeightFile;

/// A folder with a family's weights and a config changed by `change`; None without reference data.
fn folder(family: &str, name: &str, change: &dyn Fn(&mut Value)) -> Option<PathBuf> {
    let source = inglenook_tests::reference_dir().join("logits").join(family);
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

#[test]
fn damaged_values_are_refused_or_harmless() {
    let values =
        [json!(null), json!(0), json!(-1), json!(1e300), json!("x"), json!([1]), json!({}), json!(true)];
    for family in ["llama", "smollm3"] {
        let Some(whole) = read(family, "damaged", &|_| {}) else {
            skip!(Missing::Reference, "no config of {family}");
        };
        whole.unwrap();
        let source = inglenook_tests::reference_dir().join("logits").join(family).join("config.json");
        let config: Value = serde_json::from_slice(&std::fs::read(source).unwrap()).unwrap();
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
        ("llama", "hidden_act", json!("relu2"), "model.feature_unsupported"),
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
