//! Every family that sees, from the files of pictures on, against what transformers computed: embeddings of the towers,
//! logits and greedy answers. Needs the whole reference.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use std::path::Path;
use std::sync::Arc;

use crate::vision_data::{full_set, greedy, json, largest_difference, last_logits, npy, npy_bytes, prompts};
use engine::vision::{VisionTower, image_settings, sha256, tiles};
use engine::{BackendKind, Devices, KvDType, LoadOptions, Model, TokenId, VisionFile, generate};
use kernels::backends::BackendOptions;
use kernels::{CpuOptions, CpuPrecision};
use vision::{DecodeLimits, Picture, PictureSize, decode};
use weights::WeightFile;

/// Of an embedding, from exact pixels.
const CLOSE: f32 = 1e-4;
/// Relative error of an image's embeddings from integers: about that of rounding both operands to bfloat16 once. Most
/// towers are within half of it.
const CLOSE_IN_INTEGERS: f64 = 4e-3;
/// Of a logit, from exact pixels.
const CLOSE_LOGITS: f32 = 1e-3;

/// A picture as the reference decoded it: decoders of JPEG differ by a level.
fn picture(folder: &Path, name: &str) -> Picture {
    if name.ends_with(".jpg") {
        let (shape, rgb) = npy_bytes(&folder.join(format!("{name}.rgb.npy")));
        return Picture::new(PictureSize::new(shape[1], shape[0]), rgb).unwrap();
    }
    decode(&std::fs::read(folder.join(name)).unwrap(), &DecodeLimits::default()).unwrap()
}

fn open(path: &Path) -> Arc<WeightFile> {
    Arc::new(WeightFile::open(path).unwrap())
}

/// Checks the towers of a family in both containers on every picture that the reference has embeddings of.
fn check_embeddings(reference: &Path, family: &str) {
    let folder = reference.join(family);
    let index = json(&folder.join("images/index.json"));
    for (path, kind) in [
        (folder.clone(), BackendKind::Scalar),
        (folder.clone(), BackendKind::Cpu),
        (folder.join(format!("mmproj-{family}.f16.gguf")), BackendKind::Cpu),
    ] {
        let file = open(&path);
        let settings = image_settings(&file).unwrap();
        let mut tower = VisionTower::load(&file, kind, BackendOptions::default()).unwrap().unwrap();
        for image in index.as_array().unwrap().iter().filter(|image| image["error"].is_null()) {
            let name = image["file"].as_str().unwrap();
            let pixels = settings.preprocess(&picture(&reference.join("images"), name)).unwrap();
            let (d_out, width) = (tower.spec().projector.d_out, tower.spec().row_width());
            let mut columns = vec![Vec::new(); width / d_out];
            for tile in tiles(&pixels) {
                for row in tower.embed(&tile).unwrap().chunks_exact(width) {
                    columns.iter_mut().zip(row.chunks_exact(d_out)).for_each(|(all, row)| all.extend(row));
                }
            }
            let (_, expected) = npy(&folder.join(format!("images/{name}.embeds.npy")));
            let off = largest_difference(&columns[0], &expected);
            println!("{} {kind:?} {name}: {off:.7}", path.display());
            assert!(off < CLOSE, "{} {kind:?} {name}: {off}", path.display());
            if width > d_out {
                let (_, deep) = npy(&folder.join(format!("images/{name}.deepstack.npy")));
                let off = largest_difference(&columns[1..].concat(), &deep);
                assert!(off < CLOSE, "{} {kind:?} {name}, deepstack: {off}", path.display());
            }
        }
    }
}

/// Checks a family's towers in integers, as chats have them, on every picture that the reference has embeddings of.
fn check_integers(reference: &Path, family: &str) {
    let folder = reference.join(family);
    let index = json(&folder.join("images/index.json"));
    for path in [folder.clone(), folder.join(format!("mmproj-{family}.f16.gguf"))] {
        let file = open(&path);
        let settings = image_settings(&file).unwrap();
        let cpu = CpuOptions { precision: CpuPrecision::I16, ..CpuOptions::default() };
        let options = BackendOptions { cpu, ..BackendOptions::default() };
        let mut tower = VisionTower::load(&file, BackendKind::Cpu, options).unwrap().unwrap();
        let (d_out, width) = (tower.spec().projector.d_out, tower.spec().row_width());
        for image in index.as_array().unwrap().iter().filter(|image| image["error"].is_null()) {
            let name = image["file"].as_str().unwrap();
            let pixels = settings.preprocess(&picture(&reference.join("images"), name)).unwrap();
            let mut found = Vec::new();
            for tile in tiles(&pixels) {
                let rows = tower.embed(&tile).unwrap();
                found.extend(rows.chunks_exact(width).flat_map(|row| row[..d_out].to_vec()));
            }
            let (_, expected) = npy(&folder.join(format!("images/{name}.embeds.npy")));
            let off = relative_error(&found, &expected);
            println!("{} in integers, {name}: {off:.7}", path.display());
            assert!(off < CLOSE_IN_INTEGERS, "{} in integers, {name}: {off}", path.display());
        }
    }
}

/// The norm of the difference as a share of the expected one.
fn relative_error(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let squares = |x: &mut dyn Iterator<Item = f32>| x.map(|x| f64::from(x).powi(2)).sum::<f64>();
    let error = squares(&mut found.iter().zip(expected).map(|(a, b)| a - b));
    (error / squares(&mut expected.iter().copied())).sqrt()
}

/// Checks every prompt of a family in both containers.
fn check_answers(reference: &Path, family: &str) {
    let folder = reference.join(family);
    let scalar = LoadOptions { devices: Devices::Scalar, ..LoadOptions::default() };
    let mmproj = format!("mmproj-{family}.f16.gguf");
    // The file of Gemma 3 cannot say which of its layers have windows: not those that published models have.
    let gguf = if family == "gemma3" { ".".to_owned() } else { format!("{family}.bf16.gguf") };
    for (text, tower, options) in [
        (".", ".", scalar),
        (".", ".", LoadOptions::default()),
        (gguf.as_str(), mmproj.as_str(), LoadOptions::default()),
    ] {
        // The reference leaves one text model out, which another family has.
        let Ok(file) = WeightFile::open(&folder.join(text)) else { continue };
        let vision = Some(VisionFile(open(&folder.join(tower))));
        let options = LoadOptions { vision, kv: KvDType::F32.both(), ..options };
        let mut model = Model::load(Arc::new(file), &options, &mut |_| {}).unwrap();
        let settings = model.image_settings().unwrap().unwrap().clone();
        let placeholder = model.image_token().unwrap();
        for prompt in prompts(&folder) {
            let mut tokens = prompt.tokens.clone();
            let mut rows = Vec::new();
            for name in &prompt.images {
                let picture = picture(&reference.join("images"), name);
                rows.extend(model.embed_picture(&sha256(name.as_bytes()), &picture, &settings).unwrap());
            }
            let places: Vec<&mut TokenId> = tokens.iter_mut().filter(|id| **id == placeholder).collect();
            assert_eq!(places.len(), rows.len(), "{family} {}", prompt.name);
            places.into_iter().zip(rows).for_each(|(id, row)| *id = row);
            let off = largest_difference(&last_logits(&mut model, &tokens), &prompt.last);
            println!("{family} {text} {:?} {}: {off:.6}", options.devices, prompt.name);
            assert!(off < CLOSE_LOGITS, "{family} {text} {}: {off}", prompt.name);
            let answer = generate(&mut model, greedy(tokens, prompt.greedy.len()), &mut |_| true).unwrap();
            let n_sure = prompt.margins.iter().take_while(|margin| **margin > 2.0 * CLOSE_LOGITS).count();
            assert_eq!(answer.ids[..n_sure], prompt.greedy[..n_sure], "{family} {text} {}", prompt.name);
        }
    }
}

macro_rules! families {
    ($($name:ident),+) => {$(
        mod $name {
            #[test]
            fn embeddings_equal_transformers() {
                let Some(reference) = super::full_set() else {
                    test_support::skip!(test_support::Missing::Reference, "no conformance data for vision");
                };
                super::check_embeddings(&reference, stringify!($name));
            }

            #[test]
            fn embeddings_in_integers_are_close() {
                let Some(reference) = super::full_set() else {
                    test_support::skip!(test_support::Missing::Reference, "no conformance data for vision");
                };
                super::check_integers(&reference, stringify!($name));
            }

            #[test]
            fn answers_equal_transformers() {
                let Some(reference) = super::full_set() else {
                    test_support::skip!(test_support::Missing::Reference, "no conformance data for vision");
                };
                super::check_answers(&reference, stringify!($name));
            }
        }
    )+};
}

families!(gemma3, gemma4, gemma4_e, idefics3, lfm2_vl, mistral3, qwen3_5, qwen3_vl, smolvlm);
