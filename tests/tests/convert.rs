//! Converted models are the models they were made of: in float32 to the last rounding, in fewer bits as near as the
//! format allows, from either container.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use engine::{Chunk, Devices, KvDType, LoadOptions, LogitsSelection, Model};
use inglenook_tests::{nook, reference_dir, reference_is_small};
use serde_json::Value;
use test_support::{Missing, skip};
use weights::WeightFile;

/// A temporary folder, removed when dropped.
struct ConvertFolder(PathBuf);

impl ConvertFolder {
    fn new(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("convert-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for ConvertFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Converts with the real program and returns its report.
fn convert(source: &Path, out: &Path, dtype: &str) -> Value {
    let mut command = Command::new(nook());
    command.arg("convert").arg(source).arg("--out").arg(out).args(["--dtype", dtype, "--json"]);
    let ran = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{} as {dtype}: {stderr}", source.display());
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn load(path: &Path, devices: Devices) -> Model {
    let file = Arc::new(WeightFile::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())));
    let options = LoadOptions { devices, kv: KvDType::F32.both(), ctx: Some(256), ..LoadOptions::default() };
    Model::load(file, &options, &mut |_| {}).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Ids that look like nothing, long enough to pass every window of the reference models.
fn tokens(n_vocab: usize) -> Vec<u32> {
    (0..100u64).map(|i| ((i * 7919 + 17) % n_vocab as u64) as u32).collect()
}

/// Logits after every position. (n_tokens, n_vocab)
fn logits(path: &Path, devices: Devices) -> Vec<Vec<f32>> {
    let mut model = load(path, devices);
    let seq = model.new_sequence().unwrap();
    let tokens = tokens(model.info().n_vocab);
    let rows = model.forward(&[Chunk { seq, tokens: &tokens, logits: LogitsSelection::All }]).unwrap();
    (0..rows.n_rows()).map(|row| rows.row(row).unwrap().to_vec()).collect()
}

fn largest_difference(a: &[Vec<f32>], b: &[Vec<f32>]) -> f32 {
    assert_eq!(a.len(), b.len());
    test_support::largest(a.iter().zip(b).map(|(a, b)| test_support::largest_difference(a, b)))
}

/// Rounding of sums in another order: rows of queries and keys change places.
const SAME: f32 = 1e-4;

/// A folder in float32 through a GGUF gives the same logits on every backend.
fn check_folder(source: &Path) {
    let name = source.file_name().unwrap().to_str().unwrap();
    let folder = ConvertFolder::new(name);
    let out = folder.0.join("f32.gguf");
    let report = convert(source, &out, "f32");
    assert!(report["tensors"].as_array().unwrap().iter().all(|tensor| tensor["rmse"] == 0.0), "{report}");
    for devices in [Devices::Scalar, Devices::Cpu] {
        let off = largest_difference(&logits(source, devices.clone()), &logits(&out, devices.clone()));
        eprintln!("{name} as f32 on {devices:?}: largest difference {off:.1e}");
        assert!(off <= SAME, "{name} on {devices:?}: off by {off}");
    }
    check_text(name, &load(source, Devices::Cpu), &load(&out, Devices::Cpu));
}

/// The same tokenizer and template came along.
fn check_text(name: &str, before: &Model, after: &Model) {
    use engine::tokenizer::Tokenizer;
    let special = engine::tokenizer::Special::Parse;
    let (a, b): (&Tokenizer, &Tokenizer) = (before.tokenizer().unwrap(), after.tokenizer().unwrap());
    for text in ["Once upon a time, 12345 <|im_end|>", " naïve\n\n\tcode(); ", "日本語 ½"] {
        assert_eq!(a.encode(text, special), b.encode(text, special), "{name}: {text:?}");
        assert_eq!(
            a.decode(&a.encode(text, special)),
            b.decode(&b.encode(text, special)),
            "{name}: {text:?}"
        );
    }
    assert_eq!((a.bos(), a.eos()), (b.bos(), b.eos()), "{name}");
    assert_eq!(a.add_special(vec![5]), b.add_special(vec![5]), "{name}");
    let source = |model: &Model| model.template().unwrap().map(|template| template.source().to_owned());
    assert_eq!(source(before), source(after), "{name}");
}

/// Families whose safetensors are written: with permuted rows, norms around zero, fused and per-expert tensors, heads
/// that differ by layer, layers without keys.
const FAMILIES: [&str; 14] = [
    "llama",
    "smollm3",
    "ministral3",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma4",
    "gemma4_e",
    "gemma4_moe",
    "qwen2",
    "qwen3",
    "qwen3_moe",
    "phi3",
    "lfm2",
];

#[test]
fn folders_become_the_same_models() {
    if reference_is_small() {
        skip!(Missing::Reference, "the small set has no folders of safetensors");
    }
    for family in FAMILIES {
        check_folder(&reference_dir().join("logits").join(family));
    }
    check_folder(&reference_dir().join("real/stories260K"));
}

/// Llama's files have no key for a window: the same weights with one are another model.
#[test]
fn what_a_gguf_cannot_say_is_refused() {
    if reference_is_small() {
        skip!(Missing::Reference, "the small set has no folders of safetensors");
    }
    let folder = ConvertFolder::new("window");
    let source = reference_dir().join("logits/mistral");
    let mut command = Command::new(nook());
    command
        .arg("convert")
        .arg(source)
        .arg("--out")
        .arg(folder.0.join("x.gguf"))
        .args(["--dtype", "f16", "--json"]);
    let ran = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(3) && stderr.contains("convert.family"), "{stderr}");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0);
}

/// Every tensor's error is reported, and is that of its format.
#[test]
fn fewer_bits_cost_what_the_format_costs() {
    let source = reference_dir().join("logits/llama/llama.q8_0.gguf");
    let folder = ConvertFolder::new("fewer");
    for (dtype, least, most) in [("q8_0", 0.0, 0.0), ("f16", 0.0, 1e-3), ("q4_k_m", 0.01, 0.12)] {
        let out = folder.0.join(format!("{dtype}.gguf"));
        let report = convert(&source, &out, dtype);
        assert_eq!(report["bytes"].as_u64().unwrap(), std::fs::metadata(&out).unwrap().len());
        let tensors = report["tensors"].as_array().unwrap();
        let matrices = tensors.iter().filter(|tensor| tensor["shape"].as_array().unwrap().len() == 2);
        for tensor in matrices {
            let relative = tensor["relative"].as_f64().unwrap();
            assert!((least..=most).contains(&relative), "{dtype}: {tensor}");
        }
        let file = WeightFile::open(&out).unwrap();
        assert_eq!(file.n_tensors(), tensors.len());
        load(&out, Devices::Cpu);
    }
}

/// From GGUF to GGUF every pair comes along, and what is coarse already stays.
#[test]
fn what_a_gguf_says_is_carried_over() {
    let source = reference_dir().join("logits/smollm3/smollm3.q8_0.gguf");
    let folder = ConvertFolder::new("carried");
    let (small, back) = (folder.0.join("small.gguf"), folder.0.join("back.gguf"));
    convert(&source, &small, "q4_k_m");
    let report = convert(&small, &back, "q8_0");
    assert!(report["kept_coarser"].as_u64().unwrap() > 0, "{report}");
    let (before, after) = (WeightFile::open(&source).unwrap(), WeightFile::open(&small).unwrap());
    for (key, value) in before.metadata().iter().filter(|(key, _)| *key != "general.file_type") {
        let other = after.metadata().get(key).unwrap_or_else(|| panic!("{key} is gone"));
        assert_eq!(format!("{value:?}"), format!("{other:?}"), "{key}");
    }
    let names = |file: &WeightFile| file.tensors().map(|tensor| tensor.name.to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after));
    // the split pieces of the same tensors: byte for byte, whatever the number of threads
    let mut command = Command::new(nook());
    let one = folder.0.join("one.gguf");
    command.arg("convert").arg(&source).arg("--out").arg(&one).args(["--dtype", "q4_k_m", "--threads", "1"]);
    assert!(command.output().unwrap().status.success());
    assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&small).unwrap());
}

#[test]
fn a_conversion_replaces_nothing_unasked_and_leaves_nothing_behind() {
    let source = reference_dir().join("logits/llama/llama.q8_0.gguf");
    let folder = ConvertFolder::new("refused");
    let out = folder.0.join("out.gguf");
    let check = |args: &[&str], exit: i32, code: &str| {
        let ran = Command::new(nook()).arg("convert").args(args).arg("--json").output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(exit), "{args:?}: {stderr}");
        assert!(stderr.contains(code), "{args:?}: {stderr}");
    };
    let (from, to) = (source.to_str().unwrap(), out.to_str().unwrap());
    check(&[from, "--out", to, "--dtype", "q9_z"], 2, "convert.dtype");
    check(&[from, "--out", folder.0.to_str().unwrap(), "--dtype", "q8_0"], 3, "convert.out");
    check(&[from, "--out", from, "--dtype", "q8_0", "--force"], 3, "convert.exists");
    check(&["/nowhere.gguf", "--out", to, "--dtype", "q8_0"], 3, "model.no_file");
    check(&[from, "--out", "/nowhere/at/all.gguf", "--dtype", "q8_0"], 3, "io.not_found");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0);
    std::fs::write(&out, b"mine").unwrap();
    check(&[from, "--out", to, "--dtype", "q8_0"], 3, "convert.exists");
    assert_eq!(std::fs::read(&out).unwrap(), b"mine");
    check(&[from, "--out", to, "--dtype", "q8_0", "--force"], 0, "");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
    assert!(WeightFile::open(&out).is_ok());
}
