//! Models in several files: a whole set opens as one, and every damage is an error with file and remedy.
//!
//! Damages: a part that is missing, swapped, doubled or of another model; an index that is wrong or leaves its folder.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weights::write::{GgufWriter, OwnedValue};
use weights::{DType, WeightFile, WeightsError};

/// A temporary folder, removed when dropped.
struct PartsFolder(PathBuf);

impl PartsFolder {
    fn new(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("parts-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    fn open(&self, name: &str) -> Result<WeightFile, WeightsError> {
        WeightFile::open(&self.0.join(name))
    }
}

impl Drop for PartsFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The values that tensor `i` has, so that each can be told from the others.
fn values(i: usize) -> Vec<f32> {
    (0..8).map(|column| (i * 100 + column) as f32).collect()
}

fn tensor_name(i: usize) -> String {
    format!("blk.{i}.weight")
}

// ---- split GGUF

/// What a part says of itself, and what it holds.
#[derive(Clone)]
struct SplitPart {
    file: &'static str,
    no: u32,
    count: u32,
    n_tensors: u32,
    tensors: Vec<usize>,
}

impl SplitPart {
    fn bytes(&self) -> Vec<u8> {
        let mut writer = GgufWriter::new();
        if self.no == 0 {
            writer.set("general.architecture", OwnedValue::Str("llama".into()));
        }
        writer.set("split.no", OwnedValue::U32(self.no));
        writer.set("split.count", OwnedValue::U32(self.count));
        writer.set("split.tensors.count", OwnedValue::U32(self.n_tensors));
        for &i in &self.tensors {
            writer.encode(&tensor_name(i), DType::F32, &[2, 4], &values(i));
        }
        writer.to_bytes()
    }
}

const NAMES: [&str; 3] = ["m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"];

/// Five tensors in three parts; the first has none, as some splitters do it.
fn parts() -> [SplitPart; 3] {
    let held = [vec![], vec![0, 1, 2], vec![3, 4]];
    let mut no = 0..;
    held.map(|tensors| {
        let no = no.next().unwrap();
        SplitPart { file: NAMES[no as usize], no, count: 3, n_tensors: 5, tensors }
    })
}

fn folder_of(name: &str, parts: &[SplitPart]) -> PartsFolder {
    let folder = PartsFolder::new(name);
    parts.iter().for_each(|part| folder.write(part.file, &part.bytes()));
    folder
}

fn check_tensors(file: &WeightFile, n: usize) {
    assert_eq!(file.n_tensors(), n);
    for i in 0..n {
        let view = file.tensor(&tensor_name(i)).unwrap();
        let expected: Vec<u8> = values(i).iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(&view.data[..], expected, "{}", view.name);
    }
}

#[test]
fn a_split_gguf_is_one_model() {
    let folder = folder_of("whole", &parts());
    let file = folder.open(NAMES[0]).unwrap();
    check_tensors(&file, 5);
    assert_eq!(file.metadata().str("general.architecture").unwrap(), "llama");
    let told: Vec<(&str, usize)> = file.parts().map(|part| (part.name, part.n_tensors)).collect();
    assert_eq!(told, [(NAMES[0], 0), (NAMES[1], 3), (NAMES[2], 2)]);
    let on_disk: u64 = NAMES.iter().map(|name| fs::metadata(folder.0.join(name)).unwrap().len()).sum();
    assert_eq!(file.len_bytes(), on_disk);
    // every part counts in the fingerprint
    let before = file.fingerprint();
    let mut last = fs::read(folder.0.join(NAMES[2])).unwrap();
    *last.last_mut().unwrap() ^= 1;
    folder.write(NAMES[2], &last);
    assert_ne!(folder.open(NAMES[0]).unwrap().fingerprint(), before);
}

/// Damages the parts, opens the file of that name, and looks for the words in the error.
fn check_split(case: &str, open: &str, words: &[&str], damage: impl FnOnce(&mut Vec<SplitPart>)) {
    let mut all = parts().to_vec();
    damage(&mut all);
    let folder = folder_of(case, &all);
    check_refused(case, folder.open(open), words);
}

fn check_refused(case: &str, outcome: Result<WeightFile, WeightsError>, words: &[&str]) {
    let error = outcome.err().unwrap_or_else(|| panic!("{case}: opened"));
    let text = format!("{error} {}", error.remedy());
    assert!(error.code().starts_with("weights.") && !error.remedy().is_empty(), "{case}");
    assert!(!text.contains('\n') && text.len() < 500, "{case}: {text}");
    for word in words {
        assert!(text.contains(word), "{case}: no \"{word}\" in: {text}");
    }
}

#[test]
fn f09_a_damaged_split_gguf_names_file_and_remedy() {
    let first = NAMES[0];
    check_split("missing", first, &[NAMES[2], "missing", "Download"], |all| drop(all.pop()));
    check_split("middle-missing", first, &[NAMES[1], "missing"], |all| drop(all.remove(1)));
    check_split("second-named", NAMES[1], &["part 2 of 3", "Open m-00001-of-00003.gguf"], |_| {});
    check_split("swapped", first, &[NAMES[1], "part 3 by its contents", "part 2 by its name"], |all| {
        all[1].no = 2;
        all[2].no = 1;
    });
    check_split("first-swapped", first, &[first, "part 2 by its contents", "names back"], |all| {
        all[0].no = 1;
        all[1].no = 0;
    });
    check_split("other-model", first, &[NAMES[2], "4 parts"], |all| all[2].count = 4);
    check_split("other-count", first, &[first, "one of 4 parts", "of 3 by its name"], |all| all[0].count = 4);
    check_split("other-total", first, &[NAMES[1], "6 tensors"], |all| all[1].n_tensors = 6);
    check_split("too-few", first, &["split.tensors.count", "9 tensors", "hold 5"], |all| {
        all.iter_mut().for_each(|part| part.n_tensors = 9);
    });
    check_split("twice", first, &[NAMES[2], "blk.1.weight", NAMES[1]], |all| all[2].tensors = vec![3, 1]);
    check_split("beyond", first, &["split.no", "3 is no part of 3"], |all| all[0].no = 3);
    check_split("renamed", "model.gguf", &["model.gguf", "does not say so"], |all| {
        all[0].file = "model.gguf"
    });
    check_split("huge", first, &["split.count", "limit"], |all| all[0].count = u32::MAX);
    check_split("alone", first, &[NAMES[1], "does not say that it is part"], |all| all[1].count = 1);
}

#[test]
fn foreign_files_among_the_parts_are_refused() {
    let folder = folder_of("foreign", &parts());
    folder.write(NAMES[1], b"<!DOCTYPE html><html>");
    check_refused("web page", folder.open(NAMES[0]), &[NAMES[1], "web page"]);
    let whole = parts()[1].bytes();
    folder.write(NAMES[1], &whole[..whole.len() - 40]);
    check_refused("cut", folder.open(NAMES[0]), &[NAMES[1], "ends beyond the file"]);
    let alone = WeightFile::from_bytes("memory", weights::SharedBytes::from_vec(parts()[0].bytes()));
    check_refused("in memory", alone, &["memory", "part 1 of 3"]);
}

// ---- sharded safetensors

fn safetensors(tensors: &[usize]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for &i in tensors {
        let start = data.len();
        data.extend(values(i).iter().flat_map(|v| v.to_le_bytes()));
        let row = json!({"dtype": "F32", "shape": [2, 4], "data_offsets": [start, data.len()]});
        header.insert(tensor_name(i), row);
    }
    let header = Value::Object(header).to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

const SHARDS: [&str; 2] = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
const INDEX: &str = "model.safetensors.index.json";

fn index(entries: &[(usize, &str)]) -> String {
    let map: serde_json::Map<String, Value> =
        entries.iter().map(|(i, file)| (tensor_name(*i), json!(file))).collect();
    json!({"metadata": {"total_size": 96}, "weight_map": map}).to_string()
}

fn sharded(name: &str) -> PartsFolder {
    let folder = PartsFolder::new(name);
    folder.write("config.json", br#"{"model_type": "llama"}"#);
    folder.write(SHARDS[0], &safetensors(&[0, 1]));
    folder.write(SHARDS[1], &safetensors(&[2]));
    folder.write(INDEX, index(&[(2, SHARDS[1]), (0, SHARDS[0]), (1, SHARDS[0])]).as_bytes());
    folder
}

#[test]
fn sharded_safetensors_are_one_model() {
    let folder = sharded("shards");
    let file = folder.open("").unwrap();
    check_tensors(&file, 3);
    let told: Vec<(&str, usize)> = file.parts().map(|part| (part.name, part.n_tensors)).collect();
    assert_eq!(told, [(SHARDS[0], 2), (SHARDS[1], 1)]);
    let before = file.fingerprint();
    folder.write(SHARDS[1], &safetensors(&[2]).iter().rev().copied().collect::<Vec<u8>>());
    assert!(folder.open("").is_err());
    let mut last = safetensors(&[2]);
    *last.last_mut().unwrap() ^= 1;
    folder.write(SHARDS[1], &last);
    assert_ne!(folder.open("").unwrap().fingerprint(), before);
    // one file wins over an index: it is what the index was made of, or what was made of it
    folder.write("model.safetensors", &safetensors(&[0]));
    assert_eq!(folder.open("").unwrap().n_tensors(), 1);
}

#[test]
fn the_only_safetensors_file_of_a_folder_is_its_model() {
    let folder = PartsFolder::new("only");
    folder.write("consolidated.safetensors", &safetensors(&[0, 1]));
    check_refused("no config", folder.open(""), &["without model.safetensors"]);
    folder.write("config.json", b"{}");
    check_tensors(&folder.open("").unwrap(), 2);
    folder.write("other.safetensors", &safetensors(&[0]));
    check_refused("two", folder.open(""), &["without model.safetensors"]);
}

/// Replaces the index (unless empty) and the second shard, opens the folder, and looks for the words in the error.
fn check_shards(case: &str, index: &str, second: Option<&[usize]>, words: &[&str]) {
    let folder = sharded(case);
    if !index.is_empty() {
        folder.write(INDEX, index.as_bytes());
    }
    match second {
        Some(tensors) => folder.write(SHARDS[1], &safetensors(tensors)),
        None => fs::remove_file(folder.0.join(SHARDS[1])).unwrap(),
    }
    check_refused(case, folder.open(""), words);
}

#[test]
fn a_damaged_sharded_folder_names_file_and_remedy() {
    let [one, two] = SHARDS;
    let whole: &[usize] = &[2];
    check_shards("gone", "", None, &[two, "missing", "Download"]);
    let lies = index(&[(0, one), (1, two), (2, two)]);
    check_shards("lies", &lies, Some(whole), &[one, "blk.1.weight", "belongs into", two]);
    let too_many = index(&[(0, one), (1, one), (2, two), (7, two)]);
    check_shards("absent", &too_many, Some(whole), &[INDEX, "blk.7.weight", two]);
    check_shards("unlisted", "", Some(&[2, 5]), &[two, "blk.5.weight", INDEX]);
    check_shards("repeated", "", Some(&[2, 0]), &[two, "blk.0.weight"]);
    for outside in
        ["../../etc/passwd", "/etc/passwd", "..", "a/b.safetensors", "..\\b.safetensors", ".hidden"]
    {
        let index = index(&[(0, one), (1, one), (2, outside)]);
        check_shards("outside", &index, Some(whole), &[INDEX, "no plain file name"]);
    }
    check_shards("kind", &index(&[(0, "pytorch_model.bin")]), Some(whole), &["no .safetensors file"]);
    let long = format!("{}.safetensors", "x".repeat(300));
    check_shards("long", &index(&[(0, &long)]), Some(whole), &["too long"]);
}

#[test]
fn a_damaged_index_is_refused() {
    let cases = [
        ("", "is wrong"),
        ("{", "is wrong"),
        ("[]", "weight_map"),
        ("{}", "weight_map is missing"),
        (r#"{"weight_map": {}}"#, "names no tensor"),
        (r#"{"weight_map": []}"#, "is wrong"),
        (r#"{"weight_map": {"a": 1}}"#, "is wrong"),
        (r#"{"weight_map": {"a": "b.safetensors", "a": "b.safetensors"}}"#, "stands twice"),
        (r#"{"weight_map": {"a": "b.safetensors"}, "weight_map": {}}"#, "stands twice"),
        (r#"{"weight_map": {"a": "b.safetensors"}} x"#, "is wrong"),
    ];
    let folder = sharded("index");
    for (text, word) in cases {
        folder.write(INDEX, text.as_bytes());
        check_refused(text, folder.open(""), &[INDEX, word]);
    }
}

#[test]
fn no_damage_of_an_index_makes_the_reader_panic() {
    let folder = sharded("mutants");
    let valid = fs::read(folder.0.join(INDEX)).unwrap();
    let mut state = 0x1D_E5_B0_0Cu64;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    let (mut opened, mut refused) = (0, 0);
    for _ in 0..500 {
        let mut bytes = valid.clone();
        match below(3) {
            0 => bytes.truncate(below(valid.len())),
            1 => drop(bytes.remove(below(valid.len()))),
            _ => bytes[below(valid.len())] ^= 1 << below(8),
        }
        folder.write(INDEX, &bytes);
        match folder.open("") {
            // what was hit is not looked at
            Ok(file) => {
                check_tensors(&file, 3);
                opened += 1;
            }
            Err(error) => {
                assert!(!error.to_string().contains('\n'), "{error}");
                refused += 1;
            }
        }
    }
    assert!(opened > 0 && refused > opened, "{opened} opened, {refused} refused");
}
