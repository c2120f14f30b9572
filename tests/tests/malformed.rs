//! Any file is safe to open: every malformed file through the real `nook`, as a person would meet it.
//!
//! `inspect` and then `logits`: the right exit code, one clear error, under five seconds, and no heap
//! allocation above 64 MB, measured in the process itself by a preloaded counter.

mod damages;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use inglenook_tests::{nook, reference_dir, workspace_root};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(5);
/// Above it, something was allocated from an unchecked number.
const ALLOCATION_BYTES: u64 = 64 << 20;
const BAD_INPUT: i32 = 3;

#[test]
fn every_malformed_file_is_loaded_or_refused_cleanly() {
    let dir = reference_dir().join("malformed");
    let index = fs::read_to_string(dir.join("index.json")).expect("malformed/index.json");
    let cases: Vec<Value> = serde_json::from_str(&index).expect("index.json is a list");
    assert!(!cases.is_empty());
    let mut wrong = Vec::new();
    for case in &cases {
        let text = |key: &str| case[key].as_str().expect("index.json names file and expectation").to_string();
        let (name, expect) = (text("file"), text("expect"));
        let file = dir.join(&name);
        wrong.extend(check(&file, &expect).into_iter().map(|w| format!("{name} ({expect}): {w}")));
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn our_own_damages_are_refused_cleanly() {
    let mut wrong = Vec::new();
    for (name, expect, bytes) in damages::all() {
        let file = scratch(&name);
        fs::write(&file, bytes).expect("the target folder is ours");
        wrong.extend(check(&file, expect).into_iter().map(|w| format!("{name} ({expect}): {w}")));
        let _ = fs::remove_file(&file);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn f04_claims_beyond_the_file_allocate_nothing() {
    let whole = fs::read(workspace_root().join("models/starter/starter.gguf")).expect("the starter is there");
    let key = b"tokenizer.ggml.tokens";
    let at = whole.windows(key.len()).position(|window| window == key).expect("it has a vocabulary");
    // Behind the key: the type "array", the type of its entries, their number.
    let count = at + key.len() + 8;
    for claimed in [1_u64 << 40, u64::MAX, 1 << 32] {
        let mut bytes = whole.clone();
        bytes[count..count + 8].copy_from_slice(&claimed.to_le_bytes());
        let file = scratch(&format!("claims-{claimed}.gguf"));
        fs::write(&file, bytes).expect("the target folder is ours");
        let wrong = check(&file, "refuse");
        let _ = fs::remove_file(&file);
        assert!(wrong.is_empty(), "{claimed} entries: {}", wrong.join("\n"));
    }
}

#[test]
fn f10_safetensors_that_do_not_cover_their_file_are_refused() {
    let tensor = r#"{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#;
    let other = r#"{"dtype":"F32","shape":[2],"data_offsets":[12,20]}"#;
    let cases = [
        ("whole", "load", format!(r#"{{"a":{tensor}}}"#), 8),
        ("hole", "refuse", format!(r#"{{"a":{tensor},"b":{other}}}"#), 20),
        ("trailing", "refuse", format!(r#"{{"a":{tensor}}}"#), 12),
        ("twice", "refuse", format!(r#"{{"a":{tensor},"a":{tensor}}}"#), 8),
    ];
    for (name, expect, header, n_bytes) in cases {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.resize(bytes.len() + n_bytes, 0);
        let file = scratch(&format!("cover-{name}.safetensors"));
        fs::write(&file, bytes).expect("the target folder is ours");
        let wrong = check(&file, expect);
        let _ = fs::remove_file(&file);
        assert!(wrong.is_empty(), "{name}: {}", wrong.join("\n"));
    }
    // A header of 150 MB, which the file even has: a hole on the disk.
    let file = scratch("header-150m.safetensors");
    fs::write(&file, (150_u64 << 20).to_le_bytes()).expect("the target folder is ours");
    fs::OpenOptions::new().write(true).open(&file).and_then(|it| it.set_len(160 << 20)).expect("it grows");
    let wrong = check(&file, "refuse");
    let _ = fs::remove_file(&file);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_counter_counts() {
    let big = "import sys; b = bytearray(100 << 20)";
    let ran = run(Command::new("python3").args(["-c", big]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.largest_bytes >= 100 << 20, "the counter missed an allocation: {}", ran.largest_bytes);
    let none = run(&mut Command::new("true"));
    assert!(none.largest_bytes < 1 << 20, "{}", none.largest_bytes);
}

fn check(file: &Path, expect: &str) -> Vec<String> {
    let file_text = file.to_string_lossy().into_owned();
    let inspect = run(Command::new(nook()).args(["inspect", &file_text, "--json"]));
    let logits = run(Command::new(nook()).args(["logits", "--model", &file_text, "--ids", "1", "--json"]));
    let mut wrong = Vec::new();
    for (verb, ran) in [("inspect", &inspect), ("logits", &logits)] {
        wrong.extend(ran.misbehaved().into_iter().map(|w| format!("{verb}: {w}")));
    }
    let bare = file.extension().is_some_and(|e| e == "safetensors");
    match expect {
        "refuse" if logits.code != Some(BAD_INPUT) => {
            wrong.push(format!("logits took it: {:?}", logits.code))
        }
        "load" if inspect.code != Some(0) => wrong.push(format!("inspect refused it: {}", inspect.stderr)),
        // A bare safetensors file holds no model: logits may refuse it.
        "load" if !bare && logits.code != Some(0) => {
            wrong.push(format!("logits refused it: {}", logits.stderr))
        }
        _ => {}
    }
    wrong
}

struct ProgramResult {
    code: Option<i32>,
    stderr: String,
    took: Duration,
    largest_bytes: u64,
}

impl ProgramResult {
    /// What no file may bring about, whatever is expected of it.
    fn misbehaved(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.took > LIMIT {
            wrong.push(format!("took {:.1} s", self.took.as_secs_f64()));
        }
        if self.largest_bytes > ALLOCATION_BYTES {
            wrong.push(format!("asked for {} bytes at once", self.largest_bytes));
        }
        match self.code {
            Some(0) => {}
            Some(BAD_INPUT) => wrong.extend(self.unclear()),
            _ => wrong.push(format!("ended with {:?}: {}", self.code, self.stderr)),
        }
        wrong
    }

    /// A refusal is one line of JSON with a code, a message and a remedy.
    fn unclear(&self) -> Option<String> {
        let lines: Vec<&str> = self.stderr.lines().filter(|l| l.starts_with('{')).collect();
        let error: Value = match lines[..] {
            [line] => serde_json::from_str(line).unwrap_or(Value::Null),
            _ => return Some(format!("{} error lines: {}", lines.len(), self.stderr)),
        };
        let said = |key: &str| error["error"][key].as_str().is_some_and(|s| !s.is_empty());
        let clear = said("code") && said("message") && said("remedy") && !self.stderr.contains("panicked");
        (!clear).then(|| format!("unclear: {}", self.stderr))
    }
}

fn run(command: &mut Command) -> ProgramResult {
    let record = scratch(&format!("largest-{}", next()));
    command.env("LD_PRELOAD", counter()).env("LARGEST_ALLOCATION", &record).stdin(Stdio::null());
    command.env("INGLENOOK_DATA_DIR", scratch("data"));
    let began = Instant::now();
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let (code, stderr) = finish(child, began);
    let bytes = fs::read(&record).expect("the counter wrote its file");
    let _ = fs::remove_file(&record);
    let largest_bytes = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
    ProgramResult { code, stderr, took: began.elapsed(), largest_bytes }
}

/// Waits, and ends a program that hangs: twice the limit, so that a slow program is not taken for a hung one.
fn finish(mut child: Child, began: Instant) -> (Option<i32>, String) {
    let stderr = child.stderr.take().expect("piped");
    let reader = std::thread::spawn(move || std::io::read_to_string(stderr).unwrap_or_default());
    let code = loop {
        match child.try_wait().expect("our own child") {
            Some(status) => break status.code(),
            None if began.elapsed() > LIMIT * 2 => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    (code, reader.join().expect("reading ends"))
}

/// The counter as a shared library, compiled once with the machine's C compiler.
fn counter() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    let compile = || {
        let source = workspace_root().join("tests/tests/malformed/allocations.c");
        let library = scratch(&format!("allocations-{}.so", std::process::id()));
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(source);
        assert!(cc.status().expect("cc is there: SQLite needed it").success());
        library
    };
    LIBRARY.get_or_init(compile).clone()
}

fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("malformed");
    fs::create_dir_all(&dir).expect("the target folder is ours");
    dir.join(name)
}

fn next() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
