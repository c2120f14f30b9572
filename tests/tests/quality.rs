//! What `nook perplexity` measures: a model beside itself differs in nothing, and quantised ones stay within the
//! bounds that their formats are known for.

use std::path::{Path, PathBuf};
use std::process::Command;

use inglenook_tests::{nook, reference_dir, reference_is_small, workspace_root};
use serde_json::Value;
use test_support::{Missing, skip};

/// A temporary folder, removed when dropped.
struct QualityFolder(PathBuf);

impl QualityFolder {
    fn new(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("quality-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// A file with this text.
    fn text(&self, text: &str) -> String {
        let path = self.path("text.txt");
        std::fs::write(&path, text).unwrap();
        path
    }

    fn converted(&self, source: &str, dtype: &str) -> String {
        let out = self.path(&format!("{dtype}.gguf"));
        run(&["convert", source, "--out", &out, "--dtype", dtype]);
        out
    }
}

impl Drop for QualityFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(args: &[&str]) -> Value {
    let ran = Command::new(nook()).args(args).arg("--json").output().unwrap();
    assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn number(report: &Value, key: &str) -> f64 {
    report[key].as_f64().unwrap_or_else(|| panic!("no {key} in {report}"))
}

/// The held-out dialogues of the starter, as its template has them.
fn dialogues() -> String {
    let source =
        std::fs::read_to_string(workspace_root().join("models/starter/eval/dialogues.toml")).unwrap();
    let mut text = String::new();
    for dialogue in source.split("[[dialogue]]").skip(1) {
        // the lines hold texts in quotes alone: a JSON list
        let list = dialogue.split_once("turns =").unwrap().1.trim();
        let turns: Vec<String> = serde_json::from_str(list).unwrap();
        for (i, turn) in turns.iter().enumerate() {
            let role = ["user", "assistant"][i % 2];
            text.push_str(&format!("<|im_start|>{role}\n{turn}<|im_end|>\n"));
        }
    }
    text
}

#[test]
fn a_model_beside_itself_differs_in_nothing() {
    let folder = QualityFolder::new("itself");
    let text = folder.text(&dialogues());
    let args =
        ["perplexity", "--model", "starter", "--against", "starter", "--file", &text, "--parse-special"];
    let whole = run(&args);
    assert_eq!((number(&whole, "mean_kl"), number(&whole, "max_kl")), (0.0, 0.0), "{whole}");
    assert_eq!(number(&whole, "top1_agreement"), 1.0);
    assert_eq!(whole["perplexity"], whole["against_perplexity"]);
    // every token is scored once, whatever the windows
    let narrow =
        run(&["perplexity", "--model", "starter", "--file", &text, "--parse-special", "--ctx", "100"]);
    assert_eq!(narrow["tokens"], whole["tokens"]);
    assert!(number(&narrow, "windows") > number(&whole, "windows"));
    assert!(number(&narrow, "perplexity") > 1.0);
}

/// The starter ships in Q8_0: its float32 is what those weights say.
#[test]
fn the_starter_loses_little_at_four_bits() {
    let folder = QualityFolder::new("starter");
    let text = folder.text(&dialogues());
    let full = folder.converted("starter", "f32");
    let fewer = folder.converted("starter", "q4_k_m");
    for (model, bound) in [("starter", 0.002), (&fewer, 0.03)] {
        let args = ["perplexity", "--model", model, "--against", &full, "--file", &text, "--parse-special"];
        let report = run(&args);
        let ratio = number(&report, "perplexity") / number(&report, "against_perplexity");
        eprintln!("starter {model}: perplexity {:+.3} %, {report}", (ratio - 1.0) * 100.0);
        assert!(ratio <= 1.0 + bound, "{model}: {report}");
    }
}

#[test]
fn stories_lose_little_too() {
    if reference_is_small() {
        skip!(Missing::Reference, "the stories are part of the conformance data");
    }
    let source = reference_dir().join("real/stories260K");
    let known: Value = serde_json::from_slice(&std::fs::read(source.join("text.json")).unwrap()).unwrap();
    let folder = QualityFolder::new("stories");
    let text = folder.text(known["greedy_story_text"].as_str().unwrap());
    let source = source.to_str().unwrap();
    for (dtype, bound) in [("q8_0", 0.001), ("q4_k_m", 0.03)] {
        let model = folder.converted(source, dtype);
        let report = run(&["perplexity", "--model", &model, "--against", source, "--file", &text]);
        let ratio = number(&report, "perplexity") / number(&report, "against_perplexity");
        eprintln!("stories {dtype}: perplexity {:+.3} %, {report}", (ratio - 1.0) * 100.0);
        assert!(ratio <= 1.0 + bound, "{dtype}: {report}");
    }
}

#[test]
fn what_cannot_be_measured_is_said() {
    let folder = QualityFolder::new("refused");
    let check = |text: &str, more: &[&str], code: &str| {
        let file = folder.text(text);
        let args = [&["perplexity", "--model", "starter", "--file", &file, "--json"], more].concat();
        let ran = Command::new(nook()).args(&args).output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(3), "{args:?}: {stderr}");
        assert!(stderr.contains(code), "{args:?}: {stderr}");
    };
    check("", &[], "perplexity.too_short");
    check("A text of several words, long enough.", &["--ctx", "4"], "perplexity.window");
    let other = reference_dir().join("logits/llama/llama.q8_0.gguf");
    check("A text of several words.", &["--against", other.to_str().unwrap()], "perplexity.vocabularies");
}
