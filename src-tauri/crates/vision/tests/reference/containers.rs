//! The same model as a repository and as an `mmproj` GGUF has the same settings, up to what a GGUF does not carry.

use serde_json::Value;
use vision::{FamilySettings, GgufValue, ImageSettings};

use crate::data::{FAMILIES, Repository, json};

fn from_gguf(family: &str) -> ImageSettings {
    let files = json(format!("{family}/gguf.json"));
    let (_, file) = files.as_object().unwrap().iter().find(|(name, _)| name.starts_with("mmproj")).unwrap();
    let metadata = ["metadata", "kv"].into_iter().map(|key| &file[key]).find(|m| m.is_object()).unwrap();
    ImageSettings::from_gguf(&|key| gguf_value(&metadata[key])).unwrap()
}

fn gguf_value(value: &Value) -> Option<GgufValue> {
    match value {
        Value::Number(number) => number.as_u64().map(GgufValue::Integer),
        Value::String(text) => Some(GgufValue::Text(text.clone())),
        Value::Array(values) => values
            .iter()
            .map(|v| v.as_f64().map(|v| v as f32))
            .collect::<Option<Vec<f32>>>()
            .map(GgufValue::Floats),
        _ => None,
    }
}

#[test]
fn a_gguf_has_the_settings_of_its_repository() {
    for family in FAMILIES {
        let mut expected = Repository::open(family).settings();
        // The small models have small limits; a GGUF without limits gets those of published models.
        match &mut expected.family {
            FamilySettings::QwenVl(qwen_vl) => {
                (qwen_vl.min_pixels, qwen_vl.max_pixels) = (65_536, 16_777_216)
            }
            FamilySettings::Gemma4(gemma4) => gemma4.max_tokens = 280,
            FamilySettings::Lfm2(lfm2) => {
                (lfm2.min_tokens, lfm2.max_tokens) = (64, 256);
                (lfm2.max_tiles, lfm2.tile_side) = (10, 512);
            }
            FamilySettings::Gemma3(_) | FamilySettings::Pixtral(_) | FamilySettings::Idefics3(_) => {}
        }
        assert_eq!(from_gguf(family), expected, "{family}");
    }
}

#[test]
fn a_projector_that_is_not_known_is_named() {
    let lookup = |key: &str| (key == "clip.projector_type").then(|| GgufValue::Text("resampler".to_owned()));
    let error = ImageSettings::from_gguf(&lookup).unwrap_err();
    assert!(error.message.contains("\"resampler\""), "{error}");
}

#[test]
fn a_setting_that_cannot_work_is_refused_by_name() {
    let mut files = Repository::open("qwen3_vl");
    let cases = [
        ("patch_size", Value::from(0), "patch_size"),
        ("merge_size", Value::from("two"), "merge_size"),
        ("image_std", Value::from(vec![0.5, 0.0, 0.5]), "image_std"),
        ("image_mean", Value::from(vec![0.5, 0.5]), "image_mean"),
        ("max_pixels", Value::from(u64::MAX), "size.longest_edge"),
        ("do_resize", Value::from(false), "do_resize"),
        ("resample", Value::from(77), "resample"),
    ];
    for (key, value, named) in cases {
        let mut preprocessor = files.preprocessor.take().unwrap();
        let before = preprocessor[key].clone();
        preprocessor[key] = value;
        let error = ImageSettings::from_json(Some(&preprocessor), None, &files.config).unwrap_err();
        assert!(error.message.contains(named), "{key}: {error}");
        preprocessor[key] = before;
        files.preprocessor = Some(preprocessor);
    }
    let text_only = serde_json::json!({ "model_type": "qwen3" });
    assert!(ImageSettings::from_json(None, None, &text_only).is_err());
}
