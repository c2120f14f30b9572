//! What speculation with an assistant promises: the same tokens as without, and a refusal of what does not fit.

use std::path::PathBuf;
use std::sync::Arc;

use engine::speculate::DraftLength;
use engine::{
    AssistantFile, BackendKind, Devices, FaultPlan, GpuFault, LoadOptions, Model, Request, TokenId,
};
use serde_json::{Value, json};
use weights::WeightFile;

use crate::cli::Home;
use crate::draft_block::{answers_as_without_drafts, chain, request, run, text};

/// Assistants, each of a target of the same name.
const NAMES: [&str; 2] = ["gemma4", "gemma4_e"];

fn reference(group: &str, name: &str) -> PathBuf {
    inglenook_tests::workspace_root().join("tests/reference").join(group).join(name)
}

fn open(group: &str, name: &str) -> Arc<WeightFile> {
    Arc::new(WeightFile::open(&reference(group, name)).unwrap())
}

fn load_with(target: &str, assistant: &str, devices: Devices) -> engine::Result<Model> {
    load_faulty(target, assistant, devices, FaultPlan::default())
}

fn load_faulty(target: &str, assistant: &str, devices: Devices, faults: FaultPlan) -> engine::Result<Model> {
    let options = LoadOptions {
        devices,
        faults,
        threads: Some(2),
        ctx: Some(256),
        assistant: Some(AssistantFile(open("assistants", assistant))),
        ..LoadOptions::default()
    };
    Model::load(open("families", target), &options, &mut |_| {})
}

/// Prompts of tokens that the small vocabulary has.
fn prompt(seed: u32, n: usize) -> Vec<TokenId> {
    text(seed, n).into_iter().map(|token| token % 128).collect()
}

#[test]
fn an_assistant_changes_no_answer() {
    for name in NAMES {
        let mut model = load_with(name, name, Devices::Cpu).unwrap();
        assert!(model.has_draft_block());
        let n_drafted = answers_as_without_drafts(&mut model, &prompt, name);
        assert!(n_drafted > 500, "{n_drafted}");
        assert_eq!(model.kv_usage().n_pages, 0, "{name}: nothing is left");
    }
}

/// On a GPU, also where it is lost in the middle of the answer or of a draft.
#[test]
fn an_assistant_changes_no_answer_of_a_gpu() {
    let gpu = Devices::Gpu { layers: None };
    for name in NAMES {
        let asked = |length| Request { max_tokens: Some(24), ..request(1, prompt(5, 30), length) };
        let mut model = load_with(name, name, gpu.clone()).unwrap();
        let (expected, _) = run(&mut model, asked(None));
        let length = Some(DraftLength::Always(3));
        let (found, done) = run(&mut model, asked(length));
        assert_eq!(found, expected, "{name}");
        assert!(done.n_drafted > 15 && model.has_draft_block(), "{name}: {}", done.n_drafted);
        for submission in [9, 12, 15, 18] {
            let faults = FaultPlan::before(submission, GpuFault::Lost);
            let mut model = load_faulty(name, name, gpu.clone(), faults.clone()).unwrap();
            let (found, done) = run(&mut model, asked(length));
            assert_eq!(found, expected, "{name}, lost before submission {submission}");
            assert!(faults.is_over() && done.n_drafted > 5, "{name}: {}", done.n_drafted);
        }
    }
}

/// An answer that follows the drafts for some tokens, then leaves them: exactly those are accepted, also beyond the
/// window and right after others were rejected.
#[test]
fn drafts_that_come_true_are_accepted() {
    const N_DRAFTED: usize = 3;
    for name in NAMES {
        let mut model = load_with(name, name, Devices::Cpu).unwrap();
        let prompt = prompt(8, 30);
        let mut whole = [&prompt[..], &[11]].concat();
        let mut n_expected = 0;
        for n_true in [3, 0, 2, 2, 1, 3, 3, 0, 0, 2, 1, 1, 3] {
            let drafts = chain(&mut model, &whole, N_DRAFTED);
            n_expected += n_true;
            whole.extend(&drafts[..n_true]);
            whole.push(drafts.get(n_true).map_or(11, |draft| (draft + 1) % 128));
        }
        let script = whole[prompt.len()..].to_vec();
        let (length, max_tokens) = (Some(DraftLength::Always(N_DRAFTED)), Some(script.len()));
        let asked = Request { script: script.into(), max_tokens, ..request(1, prompt.clone(), length) };
        let (found, done) = run(&mut model, asked);
        assert_eq!(found, whole[prompt.len()..]);
        assert_eq!(done.n_accepted, n_expected, "{name}");
    }
}

#[test]
fn checkpoints_do_not_depend_on_the_assistant() {
    let mut with = load_with("gemma4", "gemma4", Devices::Cpu).unwrap();
    let options = LoadOptions { devices: Devices::Cpu, ctx: Some(256), ..LoadOptions::default() };
    let mut without = Model::load(open("families", "gemma4"), &options, &mut |_| {}).unwrap();
    assert_eq!(with.info().n_parameters, without.info().n_parameters);
    assert!(with.info().n_weight_bytes > without.info().n_weight_bytes);
    let seq = with.new_sequence().unwrap();
    let tokens = prompt(3, 40);
    let read = |model: &mut Model, seq| {
        let chunk = engine::Chunk { seq, tokens: &tokens, logits: engine::LogitsSelection::Last };
        model.forward(&[chunk]).unwrap().row(0).unwrap().to_vec()
    };
    let expected = read(&mut with, seq);
    let stored = crate::stored_chunks::StoredChunks::of(&with, seq, &[40]);
    let restored = stored.restore(&mut without, 40).unwrap();
    assert_eq!(without.len(restored).unwrap(), 40);
    let seq = without.new_sequence().unwrap();
    assert_eq!(read(&mut without, seq), expected);
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |loaded: engine::Result<Model>, code: &str| {
        let error = loaded.map(|_| ()).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(!error.remedy().is_empty());
    };
    // Another family, other heads, another vocabulary.
    refused(load_with("llama", "gemma4", Devices::Cpu), "model.draft_target");
    refused(load_with("gemma4_e", "gemma4", Devices::Cpu), "model.draft_target");
    refused(load_with("llama-odd", "gemma4", Devices::Cpu), "model.draft_target");
    refused(load_with("gpt2", "gemma4", Devices::Cpu), "model.draft_vocabulary");
    // The last layer with a window is the second, that without the third.
    let split = Devices::Split(vec![(BackendKind::Scalar, 2), (BackendKind::Cpu, 1)]);
    refused(load_with("gemma4", "gemma4", split), "model.draft_split");
    let split = Devices::Split(vec![(BackendKind::Scalar, 1), (BackendKind::Cpu, 2)]);
    assert!(load_with("gemma4", "gemma4", split).unwrap().has_draft_block());
    for name in NAMES {
        let alone = Model::load(open("assistants", name), &LoadOptions::default(), &mut |_| {});
        refused(alone, "model.drafts_only");
    }
    assert!(engine::arch::is_assistant(&open("assistants", "gemma4")));
    assert!(!engine::arch::is_assistant(&open("families", "gemma4")));
}

/// Copies a small model with a tokenizer of as many tokens: printable characters, then unused ones.
fn with_tokenizer(home: &Home, group: &str, name: &str) -> String {
    let folder = home.0.join(format!("{group}-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    for file in ["config.json", "model.safetensors"] {
        std::fs::copy(reference(group, name).join(file), folder.join(file)).unwrap();
    }
    let printable = (' '..='~').map(String::from);
    let specials = ["<bos>", "<eos>", "he"].map(str::to_owned);
    let tokens = specials.into_iter().chain(printable).chain((0..).map(|n| format!("<unused{n}>")));
    let vocab: serde_json::Map<String, Value> =
        tokens.zip(0..128).map(|(token, id)| (token, json!(id))).collect();
    let tokenizer = json!({
        "added_tokens": [{"id": 1, "content": "<eos>", "special": true, "normalized": false, "single_word": false,
            "lstrip": false, "rstrip": false}],
        "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
        "model": {"type": "BPE", "vocab": vocab, "merges": [["h", "e"]]},
    });
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn nook_drafts_with_an_assistant_that_is_named_as_draft_model() {
    let home = Home::new();
    for name in NAMES {
        let [target, assistant] = ["families", "assistants"].map(|group| with_tokenizer(&home, group, name));
        let args = ["run", "--model", &target, "--raw", "--prompt", "hello there", "--max-tokens", "60"];
        let args = [&args[..], &["--ignore-eos", "--temperature", "0"]].concat();
        let plain = home.json(&[&args[..], &["--speculate", "off"]].concat());
        let drafted = home.json(&[&args[..], &["--draft-model", &assistant, "--draft-max", "4"]].concat());
        assert_eq!(drafted["ids"], plain["ids"]);
        assert!(drafted["timings"]["drafted_tokens"].as_u64() > Some(0), "{}", drafted["timings"]);
        let logits =
            ["logits", "--model", &target, "--ids", "3,4,5", "--mtp", "2", "--draft-model", &assistant];
        let logits = home.json(&logits);
        assert_eq!(logits["positions"][0]["mtp"].as_array().map(Vec::len), Some(2));
        let other = ["run", "--model", "starter", "--raw", "--prompt", "hello", "--draft-model", &assistant];
        let other = home.error(&other);
        assert_eq!((other.0, &other.1["code"]), (3, &json!("model.draft_target")));
        let (code, alone) = home.error(&["run", "--model", &assistant, "--raw", "--prompt", "hello"]);
        assert_eq!((code, &alone["code"]), (3, &json!("model.drafts_only")));
    }
}

/// The setting is for all models; that of a flag is for this one.
#[test]
fn a_draft_model_of_the_settings_that_cannot_draft_is_left_out_with_a_notice() {
    let home = Home::new();
    let [target, assistant] = ["families", "assistants"].map(|group| with_tokenizer(&home, group, "gemma4"));
    let asked = |draft: &str| {
        home.json(&["settings", "set", "draft_model", draft]);
        let args = ["run", "--model", "starter", "--raw", "--prompt", "hello", "--max-tokens", "4", "--json"];
        let ran = home.command(&args).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{draft}: {said}");
        said.contains("loaded without the draft model: ").then_some(said)
    };
    let add = |folder: &str| home.json(&["models", "add", folder])["id"].as_str().unwrap().to_owned();
    home.json(&["settings", "set", "speculation", "draft"]);
    let other_vocabulary = asked(&add(&target)).expect("it has other tokens");
    assert!(other_vocabulary.contains("different vocabulary"), "{other_vocabulary}");
    let id = add(&assistant);
    let of_another = asked(&id).expect("it is the assistant of another model");
    assert!(of_another.contains("cannot draft for this"), "{of_another}");
    std::fs::remove_file(std::path::Path::new(&assistant).join("model.safetensors")).unwrap();
    assert!(asked(&id).is_some(), "its file is gone");
    assert_eq!(asked("starter"), None, "a model does not draft for itself");
}
