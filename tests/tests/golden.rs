//! Logits and greedy continuations against implementations that nobody of this project wrote.
//!
//! With float32 activations (the scalar backend) every logit is held to a tolerance; with quantised ones (the
//! cpu backend) the mean error may be at most `NOISE` times llama.cpp's.

mod reference;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{Chunk, Devices, KvDType, LoadOptions, Model, Wanted};
use reference::{Case, cases, npy, story_cases};
use weights::WeightFile;

/// Largest difference of a logit with float32 activations: what the references differ among themselves by
/// is a thirtieth of it.
const TOLERANCE: f32 = 1e-3;

/// Allowed mean error with quantised activations, as a multiple of llama.cpp's.
const NOISE: f64 = 1.25;

fn logits_dir(family: &str) -> PathBuf {
    inglenook_tests::reference_dir().join("logits").join(family)
}

fn stories_dir() -> PathBuf {
    inglenook_tests::reference_dir().join("real/stories260K")
}

fn load(path: &Path, devices: Devices) -> Model {
    let file = Arc::new(WeightFile::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())));
    let options = LoadOptions { devices, kv: KvDType::F32, ctx: Some(512), ..LoadOptions::default() };
    Model::load(file, &options, &mut |_| {}).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Logits after every position. (n_tokens, n_vocab)
fn all_logits(model: &mut Model, tokens: &[u32]) -> Vec<Vec<f32>> {
    let seq = model.new_sequence().unwrap();
    let logits = model.forward(&[Chunk { seq, tokens, logits: Wanted::All }]).unwrap();
    let rows = (0..logits.n_rows()).map(|row| logits.row(row).unwrap().to_vec()).collect();
    model.free(seq);
    rows
}

/// Best id, and by how much it beats the second.
fn best(logits: &[f32]) -> (u32, f32) {
    let id = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap();
    let others = logits.iter().enumerate().filter(|(i, _)| *i != id).map(|(_, &l)| l);
    (id as u32, logits[id] - others.fold(f32::MIN, f32::max))
}

/// Every logit the case knows, top-1 by position, and the greedy continuation, all within the tolerance.
fn check_exactly(what: &str, model: &mut Model, case: &Case) {
    let what = format!("{what}, {} tokens", case.tokens.len());
    let rows = all_logits(model, &case.tokens);
    let mut worst = 0f32;
    for (position, (row, top)) in rows.iter().zip(&case.top).enumerate() {
        for &(id, expected) in top {
            let error = (row[id as usize] - expected).abs();
            assert!(error <= TOLERANCE, "{what}: position {position}, id {id}: off by {error}");
            worst = worst.max(error);
        }
        if top[0].1 - top[1].1 > 2.0 * TOLERANCE {
            assert_eq!(best(row).0, top[0].0, "{what}: best id at position {position}");
        }
    }
    for (id, (ours, expected)) in rows[rows.len() - 1].iter().zip(&case.last).enumerate() {
        let error = (ours - expected).abs();
        assert!(error <= TOLERANCE, "{what}: last position, id {id}: off by {error}");
        worst = worst.max(error);
    }
    check_greedy(&what, model, case);
    eprintln!("{what}: largest error {worst:.1e}");
}

/// The same ids, until a step where the two best are closer than rounding may decide.
fn check_greedy(what: &str, model: &mut Model, case: &Case) {
    let seq = model.new_sequence().unwrap();
    let mut tokens = case.tokens.clone();
    for (step, &expected) in case.greedy.iter().enumerate() {
        let logits = model.forward(&[Chunk { seq, tokens: &tokens, logits: Wanted::Last }]).unwrap();
        let (id, margin) = best(logits.row(0).unwrap());
        if id != expected {
            assert!(
                margin <= 2.0 * TOLERANCE,
                "{what}: greedy step {step}: {id} for {expected}, margin {margin}"
            );
            break;
        }
        tokens = vec![id];
    }
    model.free(seq);
}

fn mean_error(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs())).sum::<f64>() / a.len() as f64
}

/// The mean error over all prompts' last logits, against llama.cpp's on the same file.
fn check_noise(what: &str, model: &mut Model, exact: &[Case], theirs: &[Vec<f32>]) {
    let (mut ours_sum, mut theirs_sum) = (0.0, 0.0);
    for (case, theirs) in exact.iter().zip(theirs) {
        let rows = all_logits(model, &case.tokens);
        ours_sum += mean_error(&rows[rows.len() - 1], &case.last);
        theirs_sum += mean_error(theirs, &case.last);
    }
    let ratio = ours_sum / theirs_sum;
    eprintln!("{what}: mean error {:.4}, {ratio:.2} of llama.cpp's", ours_sum / exact.len() as f64);
    assert!(ratio <= NOISE, "{what}: mean error is {ratio:.2} times llama.cpp's");
}

fn check_safetensors(family: &str) {
    let dir = logits_dir(family);
    if !dir.join("model.safetensors").exists() && inglenook_tests::reference_is_small() {
        return; // the project's own set has GGUF files only
    }
    let mut model = load(&dir, Devices::Scalar);
    for case in cases(&dir, "ref.hf") {
        check_exactly(&format!("{family} safetensors"), &mut model, &case);
    }
}

/// Every GGUF of a family: with the scalar backend exactly, with the cpu backend as well as llama.cpp.
fn check_ggufs(family: &str) {
    let dir = logits_dir(family);
    let mut n_files = 0;
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "gguf") {
            continue;
        }
        n_files += 1;
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let format = stem.split('.').nth(1).unwrap();
        let exact = cases(&dir, &format!("ref.{format}.exact"));
        let mut model = load(&path, Devices::Scalar);
        for case in &exact {
            check_exactly(stem, &mut model, case);
        }
        let theirs = npy(&dir.join(format!("ref.{format}.llamacpp.last.npy")));
        check_noise(&format!("{stem} on cpu"), &mut load(&path, Devices::Cpu), &exact, &theirs);
    }
    assert!(n_files > 0, "no GGUF in {}", dir.display());
}

#[test]
fn llama_safetensors() {
    check_safetensors("llama");
}

#[test]
fn smollm3_safetensors() {
    check_safetensors("smollm3");
}

#[test]
fn llama_gguf() {
    check_ggufs("llama");
}

#[test]
fn smollm3_gguf() {
    check_ggufs("smollm3");
}

#[test]
fn stories_in_float32() {
    let dir = stories_dir();
    if !dir.exists() && inglenook_tests::reference_is_small() {
        return;
    }
    let cases = story_cases(&dir, "hf");
    for path in [dir.clone(), dir.join("stories260K-f32.gguf")] {
        for devices in [Devices::Scalar, Devices::Cpu] {
            let what = format!("{} {devices:?}", path.file_name().unwrap().display());
            let mut model = load(&path, devices);
            cases.iter().for_each(|case| check_exactly(&what, &mut model, case));
        }
    }
}

/// Quantised weights have no `exact` reference here: llama.cpp's logits differ by its quantised activations.
#[test]
fn stories_quantised() {
    const NEAR: f64 = 0.25;
    let dir = stories_dir();
    if !dir.exists() && inglenook_tests::reference_is_small() {
        return;
    }
    for format in ["q8_0", "q4_0"] {
        for devices in [Devices::Scalar, Devices::Cpu] {
            let mut model = load(&dir.join(format!("stories260K-{format}.gguf")), devices.clone());
            for case in story_cases(&dir, &format!("llamacpp-{format}")) {
                let rows = all_logits(&mut model, &case.tokens);
                let error = mean_error(&rows[rows.len() - 1], &case.last);
                eprintln!(
                    "stories {format} {devices:?}, {} tokens: mean error {error:.4}",
                    case.tokens.len()
                );
                assert!(error <= NEAR, "stories {format} {devices:?}: mean error {error}");
            }
        }
    }
}
