//! Formats chosen by measured error, and weights quantised while a model loads: made once, found again, made again
//! where damaged.

use std::path::{Path, PathBuf};
use std::process::Command;

use inglenook_tests::{nook, reference_dir};
use serde_json::Value;

/// A temporary folder, removed when dropped.
struct QuantizedFolder(PathBuf);

impl QuantizedFolder {
    fn new(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("quantized-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Files of the folder of kept weights with this ending.
    fn kept(&self, ending: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.0.join("quantized")).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|e| e == ending)).collect()
    }
}

impl Drop for QuantizedFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(args: &[&str]) -> (Option<i32>, Value, String) {
    let ran = Command::new(nook()).args(args).arg("--json").output().unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
    (ran.status.code(), serde_json::from_slice(&ran.stdout).unwrap_or(Value::Null), stderr)
}

fn ok(args: &[&str]) -> Value {
    let (code, report, stderr) = run(args);
    assert_eq!(code, Some(0), "{args:?}: {stderr}");
    report
}

#[test]
fn auto_keeps_within_its_bounds_and_spends_them() {
    let folder = QuantizedFolder::new("auto");
    let out = folder.0.join("auto.gguf");
    let out = out.to_str().unwrap();
    let bytes = |max: u64| {
        let max = max.to_string();
        let report =
            ok(&["convert", "starter", "--out", out, "--dtype", "auto", "--max-bytes", &max, "--force"]);
        let bytes = report["bytes"].as_u64().unwrap();
        assert!(bytes <= max.parse().unwrap() && bytes == std::fs::metadata(out).unwrap().len(), "{report}");
        bytes
    };
    for max in [3_000_000, 4_000_000, 5_000_000] {
        let n = bytes(max);
        assert!(n as f64 > 0.93 * max as f64, "{n} of {max} bytes are used");
    }
    // without a bound this machine's memory is one: the starter fits with all its bits
    let whole = ok(&["convert", "starter", "--out", out, "--dtype", "auto", "--force"]);
    assert!(whole["tensors"].as_array().unwrap().iter().all(|t| t["rmse"] == 0.0), "{whole}");
    for (args, code, word) in [
        (vec!["--dtype", "auto", "--max-bytes", "1000"], 4, "convert.too_small"),
        (vec!["--dtype", "q8_0", "--max-bytes", "1000"], 2, "usage.auto"),
        (vec!["--dtype", "auto", "--max-kl", "-1"], 2, "usage.max_kl"),
    ] {
        let (exit, _, stderr) = run(&[vec!["convert", "starter", "--out", out, "--force"], args].concat());
        assert!(exit == Some(code) && stderr.contains(word), "{exit:?} {stderr}");
    }
}

#[test]
fn a_divergence_is_met_by_few_bytes() {
    let folder = QuantizedFolder::new("kl");
    let out = folder.0.join("kl.gguf");
    let args = ["convert", "starter", "--out", out.to_str().unwrap(), "--dtype", "auto", "--max-kl", "0.02"];
    let report = ok(&args);
    let kl = report["mean_kl"].as_f64().unwrap();
    assert!(kl <= 0.02 && kl > 0.001, "{kl}");
    assert!(report["bytes"].as_u64().unwrap() < 5_000_000, "{}", report["bytes"]);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1, "probes are removed");
}

/// The same ids with and without what was kept, and after it was damaged.
#[test]
fn what_is_quantised_while_loading_is_kept() {
    let source = reference_dir().join("logits/smollm3/smollm3.q8_0.gguf");
    let folder = QuantizedFolder::new("kept");
    let data = folder.0.to_str().unwrap();
    let logits = || {
        let model = source.to_str().unwrap();
        ok(&["logits", "--model", model, "--ids", "1,2,3", "--quantize", "q4_k_m", "--data-dir", data])
    };
    let first = logits();
    let [kept] = &folder.kept("gguf")[..] else { panic!("one file is kept") };
    let made = std::fs::metadata(kept).unwrap().modified().unwrap();
    assert!(logits() == first);
    assert_eq!(std::fs::metadata(kept).unwrap().modified().unwrap(), made, "it is not made twice");
    let mut bytes = std::fs::read(kept).unwrap();
    let (middle, last) = (bytes.len() / 2, bytes.len() - 1);
    bytes[last] ^= 0x55;
    std::fs::write(kept, &bytes).unwrap();
    assert!(logits() == first, "damage is found and mended");
    std::fs::write(kept, &bytes[..middle]).unwrap();
    assert!(logits() == first, "so is a cut");
    // as a conversion by hand gives it
    let by_hand = folder.0.join("by-hand.gguf");
    let by_hand = by_hand.to_str().unwrap();
    ok(&["convert", source.to_str().unwrap(), "--out", by_hand, "--dtype", "q4_k_m"]);
    assert!(ok(&["logits", "--model", by_hand, "--ids", "1,2,3"]) == first);
    let (code, _, stderr) = run(&["logits", "--model", by_hand, "--ids", "1", "--quantize", "q9"]);
    assert!(code == Some(2) && stderr.contains("convert.dtype"), "{stderr}");
}

#[test]
fn what_was_kept_goes_with_its_model() {
    let source = reference_dir().join("logits/smollm3/smollm3.q8_0.gguf");
    let folder = QuantizedFolder::new("goes");
    let data = folder.0.to_str().unwrap();
    let entry = ok(&["models", "add", source.to_str().unwrap(), "--data-dir", data]);
    let id = entry["id"].as_str().unwrap();
    let args = ["run", "--model", id, "--ids", "1,2,3", "--max-tokens", "3", "--ignore-eos"];
    ok(&[&args[..], &["--quantize", "q4_0", "--data-dir", data]].concat());
    assert_eq!((folder.kept("gguf").len(), folder.kept("json").len()), (1, 1));
    ok(&["models", "rm", id, "--data-dir", data]);
    assert_eq!((folder.kept("gguf").len(), folder.kept("json").len()), (0, 0));
}

/// The reference folder is not written to, so a folder that is a file stands for a disk that cannot take more.
#[test]
fn a_folder_that_cannot_be_made_is_said() {
    let folder = QuantizedFolder::new("blocked");
    std::fs::write(folder.0.join("quantized"), b"in the way").unwrap();
    let source = reference_dir().join("logits/smollm3/smollm3.q8_0.gguf");
    let args = ["logits", "--model", source.to_str().unwrap(), "--ids", "1", "--quantize", "q4_0"];
    let (code, _, stderr) = run(&[&args[..], &["--data-dir", folder.0.to_str().unwrap()]].concat());
    assert!(code == Some(3) && stderr.contains("io."), "{code:?} {stderr}");
}
