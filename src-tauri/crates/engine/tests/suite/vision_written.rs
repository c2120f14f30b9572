//! Towers of every family, written from their repositories as `mmproj` files: the names, shapes, formats and keys of
//! llama.cpp's converter, and the same embeddings. Needs the whole reference.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::vision_data::{full_set, json, largest_difference, npy};
use engine::BackendKind;
use engine::convert::{Formats, plan_tower};
use engine::vision::{VisionTower, image_settings, tiles};
use kernels::backends::BackendOptions;
use serde_json::{Value, json};
use vision::{DecodeLimits, PatchPixels, decode};
use weights::{Container, WeightFile};

const FAMILIES: [&str; 9] =
    ["gemma3", "gemma4", "gemma4_e", "idefics3", "lfm2_vl", "mistral3", "qwen3_5", "qwen3_vl", "smolvlm"];
const PICTURE: &str = "gradient.png";
/// Of an embedding, with other orders of sums.
const SAME: f32 = 1e-5;
/// Of an embedding, through float16.
const CLOSE: f32 = 1e-3;
/// Keys about the writer, or that llama.cpp's converter takes from elsewhere.
const OF_THE_WRITER: [&str; 5] =
    ["GGUF.version", "GGUF.tensor_count", "GGUF.kv_count", "general.name", "general.size_label"];
/// Said by our files alone.
const OURS: [&str; 5] = [
    "clip.vision.image_min_pixels",
    "clip.vision.image_max_pixels",
    "clip.vision.preproc_min_tiles",
    "clip.vision.preproc_max_tiles",
    "clip.vision.preproc_image_size",
];

/// A temporary folder, removed when dropped.
struct WrittenTower(PathBuf);

impl WrittenTower {
    fn new(source: &WeightFile, format: &str, name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mmproj-{name}-{format}"));
        std::fs::create_dir_all(&folder).unwrap();
        let planned = plan_tower(source, &Formats::parse(format).unwrap(), Some(1)).unwrap().unwrap();
        let mut bytes = Vec::new();
        let reports = planned.write(&mut bytes).unwrap();
        assert_eq!((reports.len(), bytes.len() as u64), (planned.n_tensors, planned.n_bytes()));
        std::fs::write(folder.join("mmproj.gguf"), bytes).unwrap();
        Self(folder)
    }

    fn open(&self) -> Arc<WeightFile> {
        Arc::new(WeightFile::open(&self.0.join("mmproj.gguf")).unwrap())
    }
}

impl Drop for WrittenTower {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn embeddings(file: &Arc<WeightFile>, pixels: &PatchPixels) -> Vec<f32> {
    let mut tower = VisionTower::load(file, BackendKind::Cpu, BackendOptions::default()).unwrap().unwrap();
    tiles(pixels).flat_map(|tile| tower.embed(&tile).unwrap()).collect()
}

/// A value of the metadata, as the reference has it.
fn value(file: &WeightFile, key: &str) -> Value {
    let metadata = file.metadata();
    if let Ok(Some(array)) = metadata.opt_array(key) {
        return array.f32s().map(|all| json!(all)).or_else(|_| array.bools().map(|all| json!(all))).unwrap();
    }
    let of = |value: Option<Value>| value.unwrap_or(Value::Null);
    match (metadata.opt_u64(key), metadata.opt_f32(key), metadata.opt_bool(key), metadata.opt_str(key)) {
        (Ok(number), ..) => of(number.map(Value::from)),
        (_, Ok(number), ..) => of(number.map(Value::from)),
        (_, _, Ok(flag), _) => of(flag.map(Value::from)),
        (.., Ok(text)) => of(text.map(Value::from)),
        _ => panic!("{key} is of another type"),
    }
}

/// Numbers are float32 in either.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Number(a), Value::Number(b)) => {
            (a.as_f64().unwrap() as f32).to_bits() == (b.as_f64().unwrap() as f32).to_bits()
        }
        _ => a == b,
    }
}

/// Compares a written file with what llama.cpp's converter made of the same repository.
fn check_layout(family: &str, written: &WeightFile, theirs: &Value) {
    let expected: Vec<&Value> = theirs["tensors"].as_array().unwrap().iter().collect();
    for tensor in &expected {
        let name = tensor[0].as_str().unwrap();
        let view = written.tensor(name).unwrap_or_else(|| panic!("{family}: {name} is missing"));
        let shape: Vec<usize> = view.shape.iter().rev().copied().collect();
        assert_eq!(json!([name, view.dtype.name(), shape]), **tensor, "{family}");
    }
    assert_eq!(written.tensors().len(), expected.len(), "{family}: tensors that nobody knows");
    for (key, expected) in theirs["kv"].as_object().unwrap() {
        if OF_THE_WRITER.contains(&key.as_str()) {
            continue;
        }
        let found = value(written, key);
        assert!(is_same(&found, expected), "{family}: {key} is {found}, not {expected}");
    }
    let is_known = |key: &str| theirs["kv"].get(key).is_some() || OURS.contains(&key);
    let unknown: Vec<_> = written.metadata().raw_pairs().filter(|(key, _)| !is_known(key)).collect();
    assert!(unknown.is_empty(), "{family}: {:?}", unknown.iter().map(|(key, _)| key).collect::<Vec<_>>());
}

#[test]
fn written_towers_are_those_of_their_repositories() {
    let Some(reference) = full_set() else {
        test_support::skip!(test_support::Missing::Reference, "no conformance data for vision");
    };
    let picture = std::fs::read(reference.join("images").join(PICTURE)).unwrap();
    let picture = decode(&picture, &DecodeLimits::default()).unwrap();
    for family in FAMILIES {
        let folder = reference.join(family);
        let source = Arc::new(WeightFile::open(&folder).unwrap());
        let settings = image_settings(&source).unwrap();
        let pixels = settings.preprocess(&picture).unwrap();
        let own = embeddings(&source, &pixels);

        let exact = WrittenTower::new(&source, "f32", family);
        let off = largest_difference(&embeddings(&exact.open(), &pixels), &own);
        assert!(off < SAME, "{family} in float32: {off}");
        assert_eq!(image_settings(&exact.open()).unwrap(), settings, "{family}");

        let half = WrittenTower::new(&source, "q4_k_m", family);
        let off = largest_difference(&embeddings(&half.open(), &pixels), &own);
        println!("{family} in float16: {off:.7}");
        assert!(off < CLOSE, "{family} in float16: {off}");
        let theirs = json(&folder.join("gguf.json"));
        check_layout(family, &half.open(), &theirs[format!("mmproj-{family}.f16.gguf")]);
        let expected = npy(&folder.join(format!("images/{PICTURE}.embeds.npy"))).1;
        if !half.open().metadata().raw_pairs().any(|(key, _)| key.ends_with("is_deepstack_layers")) {
            assert!(largest_difference(&embeddings(&half.open(), &pixels), &expected) < CLOSE, "{family}");
        }
        assert!(matches!(half.open().container(), Container::Gguf { .. }));
        assert!(plan_tower(&half.open(), &Formats::parse("f16").unwrap(), None).unwrap().is_none());
    }
}

/// The config of a repository, changed by `change`, with its weights beside it.
fn changed(reference: &Path, family: &str, change: &dyn Fn(&mut Value)) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mmproj-changed-{family}"));
    std::fs::create_dir_all(&folder).unwrap();
    for entry in std::fs::read_dir(reference.join(family)).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
    }
    let mut config = json(&folder.join("config.json"));
    change(&mut config);
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    folder
}

#[test]
fn what_a_gguf_cannot_say_is_refused_by_the_familys_name() {
    let Some(reference) = full_set() else {
        test_support::skip!(test_support::Missing::Reference, "no conformance data for vision");
    };
    let refusal = |family: &str, change: &dyn Fn(&mut Value)| {
        let folder = changed(&reference, family, change);
        let file = WeightFile::open(&folder).unwrap();
        let planned = plan_tower(&file, &Formats::parse("f16").unwrap(), Some(1));
        let error = planned.err().expect("it is refused");
        drop(file);
        std::fs::remove_dir_all(folder).unwrap();
        assert_eq!(error.code(), "convert.tower");
        error.to_string()
    };
    let activation = refusal("gemma3", &|config| config["vision_config"]["hidden_act"] = json!("gelu"));
    assert!(activation.contains("family gemma3") && activation.contains("Gelu"), "{activation}");
    let rotation = refusal("mistral3", &|config| {
        config["vision_config"]["rope_parameters"]["rope_theta"] = json!(500.0);
    });
    assert!(rotation.contains("family pixtral"), "{rotation}");
}
