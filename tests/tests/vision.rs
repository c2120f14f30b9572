//! `nook vision` and `nook logits --image` on the models of the reference, from files of pictures on.

use std::path::{Path, PathBuf};

use inglenook_tests::{reference_dir, reference_is_small, workspace_root};
use serde_json::Value;
use test_support::{Missing, largest_difference, skip_part};

use crate::cli::Home;
use crate::seeing::CONVERTED;

/// Families whose models are in the project itself.
const SMALL: [&str; 2] = ["gemma3", "qwen3_5"];
const ALL: [&str; 9] =
    ["gemma3", "gemma4", "gemma4_e", "idefics3", "lfm2_vl", "mistral3", "qwen3_5", "qwen3_vl", "smolvlm"];
/// A picture that decoders of all programs read alike.
const PICTURE: &str = "text_palette.png";
const CLOSE: f32 = 1e-4;
const CLOSE_LOGITS: f32 = 1e-3;

fn families() -> &'static [&'static str] {
    if reference_is_small() {
        skip_part!(Missing::Reference, "seven families are only in the conformance data");
        return &SMALL;
    }
    &ALL
}

fn folder(family: &str) -> PathBuf {
    reference_dir().join("vision").join(family)
}

fn picture() -> String {
    text(&reference_dir().join("vision/images").join(PICTURE))
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn image_files(prompt: &Value) -> Vec<String> {
    let images = reference_dir().join("vision/images");
    let names = prompt["images"].as_array().unwrap().iter();
    names.map(|name| text(&images.join(name.as_str().unwrap()))).collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Shape and numbers of a float32 array.
fn npy(path: &Path) -> (Vec<usize>, Vec<f32>) {
    let bytes = std::fs::read(path).unwrap();
    let n_header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let (header, data) = bytes[10..].split_at(n_header);
    let header = std::str::from_utf8(header).unwrap();
    assert!(header.contains("<f4"), "{}", path.display());
    let shape = header.split_once("'shape': (").unwrap().1.split_once(')').unwrap().0;
    let shape = shape.split(',').filter_map(|n| n.trim().parse().ok()).collect();
    let number = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    (shape, data.chunks_exact(4).map(number).collect())
}

fn numbers(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

#[test]
fn embeddings_and_tokens_of_a_picture_are_the_published_ones() {
    let home = Home::new();
    for family in families() {
        let folder = folder(family);
        let index = json(&folder.join("images/index.json"));
        let image = index.as_array().unwrap().iter().find(|image| image["file"] == PICTURE).unwrap();
        let (shape, expected) = npy(&folder.join(format!("images/{PICTURE}.embeds.npy")));
        let mmproj = text(&folder.join(format!("mmproj-{family}.f16.gguf")));
        let (model, picture) = (text(&folder), picture());
        for tower in [&["--model", model.as_str()][..], &["--model", &model, "--mmproj", &mmproj]] {
            let args = [&["vision", "--image", &picture, "--pixels", "--embeddings"], tower].concat();
            let report = home.json(&args);
            assert_eq!(report["tokens"], image["n_image_tokens"], "{args:?}");
            assert_eq!(report["pixels"]["shape"], image["stored_shape"], "{args:?}");
            let n: u64 =
                image["stored_shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).product();
            assert_eq!(report["pixels"]["values"].as_array().unwrap().len() as u64, n, "{args:?}");
            let rows: Vec<Vec<f32>> = report["embeddings"].as_array().unwrap().iter().map(numbers).collect();
            assert_eq!((rows.len(), rows[0].len()), (shape[0], shape[1]), "{args:?}");
            let off = largest_difference(&rows.concat(), &expected);
            assert!(off < CLOSE, "{args:?}: {off}");
        }
    }
}

#[test]
fn the_tokens_of_a_size_are_those_of_the_published_processors() {
    let home = Home::new();
    for family in families() {
        let model = text(&folder(family));
        let tables = json(&folder(family).join("tokens.json"));
        for entry in tables["tiny"]["sizes"].as_array().unwrap().iter().step_by(7) {
            let size = format!("{}x{}", entry["width"], entry["height"]);
            let args = ["vision", "--model", &model, "--size", &size];
            // Pixtral's published processor fails on thin pictures, which ours widens.
            if entry["error"].is_null() {
                let report = home.json(&args);
                assert_eq!(report["tokens"], entry["tokens"], "{args:?}");
                let resized = [report["width"].clone(), report["height"].clone()];
                assert_eq!(Value::from(resized.to_vec()), entry["resized"], "{args:?}");
            } else if *family != "mistral3" {
                let (code, error) = home.error(&args);
                assert_eq!((code, error["code"].as_str()), (3, Some("vision.shape")), "{args:?}");
            }
        }
    }
}

#[test]
fn logits_after_pictures_are_those_of_transformers() {
    let home = Home::new();
    for family in families() {
        let folder = folder(family);
        let reference = json(&folder.join("ref.hf.json"));
        let (shape, last) = npy(&folder.join("ref.hf.last.npy"));
        for (prompt, last) in reference["prompts"].as_array().unwrap().iter().zip(last.chunks_exact(shape[1]))
        {
            let files = image_files(prompt);
            // Of JPEG files the pixels differ by a level; one prompt of each kind is enough.
            let name = prompt["name"].as_str().unwrap();
            let is_exact = files.iter().all(|file| file.ends_with(".png"));
            if !is_exact || !["two", "two_adjacent", "start", "text_only"].contains(&name) {
                continue;
            }
            let ids = prompt["tokens"].to_string();
            let model = text(&folder);
            let mut args = vec!["logits", "--model", &model, "--ids", &ids, "--backend", "scalar"];
            files.iter().for_each(|file| args.extend(["--image", file.as_str()]));
            let report = home.json(&args);
            let off = largest_difference(&numbers(&report["positions"][0]["logits"]), last);
            assert!(off < CLOSE_LOGITS, "{family} {name}: {off}");
        }
    }
}

/// Most that the mean error of logits after images may be of that without, in a file with quantized weights.
const MAX_ERROR_RATIO: f64 = 1.25;

#[test]
fn quantized_models_err_after_images_little_more_than_after_text() {
    let home = Home::new();
    let families: &[&str] = if reference_is_small() { &["gemma3"] } else { CONVERTED };
    for family in families {
        let source = folder(family);
        let out = text(&home.0.join(format!("{family}-q8_0.gguf")));
        home.json(&["convert", &text(&source), "--out", &out, "--dtype", "q8_0"]);
        let reference = json(&source.join("ref.hf.json"));
        let (shape, last) = npy(&source.join("ref.hf.last.npy"));
        // After text, and after images.
        let mut errors = [Vec::new(), Vec::new()];
        for (prompt, last) in reference["prompts"].as_array().unwrap().iter().zip(last.chunks_exact(shape[1]))
        {
            let files = image_files(prompt);
            let ids = prompt["tokens"].to_string();
            let mut args = vec!["logits", "--model", &out, "--ids", &ids, "--backend", "scalar"];
            files.iter().for_each(|file| args.extend(["--image", file.as_str()]));
            let found = numbers(&home.json(&args)["positions"][0]["logits"]);
            let sum: f64 = found.iter().zip(last).map(|(a, b)| f64::from((a - b).abs())).sum();
            errors[usize::from(!files.is_empty())].push(sum / last.len() as f64);
        }
        let [of_text, of_images] = errors.map(|all| all.iter().sum::<f64>() / all.len() as f64);
        assert!(of_text > 0.0 && of_images <= MAX_ERROR_RATIO * of_text, "{family}: {of_images}, {of_text}");
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let home = Home::new();
    let (model, picture) = (text(&folder("gemma3")), picture());
    let blind = text(&workspace_root().join("tests/reference/families/llama"));
    let config = text(&folder("gemma3").join("config.json"));
    let check = |args: &[&str], code: i32, expected: &str| {
        let (found, error) = home.error(args);
        assert_eq!((found, error["code"].as_str().unwrap()), (code, expected), "{args:?}: {error}");
    };
    check(&["vision", "--model", &model], 2, "usage");
    check(&["vision", "--model", &model, "--size", "1024"], 2, "usage");
    check(&["vision", "--model", &model, "--size", "0x5"], 2, "usage");
    check(&["vision", "--model", &model, "--size", "5x5", "--embeddings"], 2, "usage");
    check(&["vision", "--model", &blind, "--size", "5x5"], 3, "vision.not_taken");
    check(&["vision", "--model", &model, "--image", &config], 3, "vision.unknown_format");
    check(&["vision", "--model", &model, "--image", "/no/such.png"], 3, "input.unreadable");
    check(&["vision", "--model", &model, "--mmproj", &blind, "--size", "5x5"], 3, "vision.no_tower");
    check(&["logits", "--model", &model, "--ids", "1,2", "--image", &picture], 3, "request.image_tokens");
    check(&["logits", "--model", &blind, "--ids", "1,2", "--image", &picture], 3, "vision.not_taken");
}
