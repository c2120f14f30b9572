//! Vectors of texts against those that transformers computes for the same weights, everywhere that models run; and that
//! models that embed say so where they are asked to answer.

use std::path::PathBuf;
use std::sync::Arc;

use engine::{Chunk, Devices, KvDType, LoadOptions, LogitsSelection, Model};
use kernels::cpu::isa::IsaLevel;
use serde_json::Value;
use weights::WeightFile;

use crate::cli::Home;

/// Largest distance of a cosine from 1, in float32: it is the square of what numbers are off by.
const TOLERANCE: f64 = 1e-10;
/// Where activations are rounded, as kernels of quants do.
const ROUNDED: f64 = 1e-4;

const MODELS: [&str; 6] = ["qwen3-last", "qwen3-mean", "gemma", "gemma-plain", "bert", "nomic"];

fn path(name: &str) -> PathBuf {
    inglenook_tests::workspace_root().join("tests/reference/embeddings").join(name)
}

fn load(name: &str, options: &LoadOptions) -> Model {
    let file = Arc::new(WeightFile::open(&path(&format!("{name}.gguf"))).unwrap());
    Model::load(file, options, &mut |_| {}).unwrap()
}

/// The reference's texts and their vectors.
fn texts(name: &str) -> Vec<(Vec<u32>, Vec<f64>)> {
    let numbers = |list: &Value| list.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    let of = |text: &Value| {
        let ids = text["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
        (ids, numbers(&text["vector"]))
    };
    reference(name)["texts"].as_array().unwrap().iter().map(of).collect()
}

fn reference(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path(&format!("{name}.json"))).unwrap()).unwrap()
}

fn cosine(ours: &[f32], theirs: &[f64]) -> f64 {
    assert_eq!(ours.len(), theirs.len());
    let length = |x: f64| x * x;
    let (a, b): (f64, f64) =
        (ours.iter().map(|x| length(f64::from(*x))).sum(), theirs.iter().map(|x| length(*x)).sum());
    ours.iter().zip(theirs).map(|(a, b)| f64::from(*a) * b).sum::<f64>() / (a.sqrt() * b.sqrt())
}

/// Every backend and level of this machine, with a name for messages.
fn everywhere() -> Vec<(String, LoadOptions)> {
    let options = |devices| LoadOptions {
        devices,
        threads: Some(2),
        max_sequences: 1,
        kv: KvDType::F32.both(),
        ..LoadOptions::default()
    };
    let mut all = vec![("scalar".to_owned(), options(Devices::Scalar))];
    for level in IsaLevel::present() {
        all.push((level.name().to_owned(), LoadOptions { isa: Some(level), ..options(Devices::Cpu) }));
    }
    all.push(("gpu".to_owned(), options(Devices::Gpu { layers: None })));
    all
}

#[test]
fn vectors_are_those_of_the_reference() {
    for name in MODELS {
        for (level, options) in everywhere() {
            let mut model = load(name, &options);
            for (ids, theirs) in texts(name) {
                let ours = model.embed(&ids).unwrap();
                let off = 1.0 - cosine(&ours, &theirs);
                println!("{name}, {level}, {} tokens: 1 - cosine {off:.1e}", ids.len());
                assert!(off.abs() < TOLERANCE, "{name}, {level}, {} tokens: {off}", ids.len());
                let length: f32 = ours.iter().map(|x| x * x).sum();
                assert!((length - 1.0).abs() < 1e-5, "{name}, {level}: length² {length}");
            }
        }
    }
}

#[test]
fn a_text_has_one_vector_whatever_was_embedded_before() {
    for name in MODELS {
        for (level, options) in everywhere() {
            let texts = texts(name);
            let alone: Vec<_> =
                texts.iter().map(|(ids, _)| load(name, &options).embed(ids).unwrap()).collect();
            // smaller pieces where a text can be cut, and another number of threads
            let mut other =
                load(name, &LoadOptions { max_rows: Some(8), threads: Some(1), ..options.clone() });
            for _ in 0..2 {
                for ((ids, _), alone) in texts.iter().zip(&alone) {
                    assert_eq!(other.embed(ids).unwrap(), *alone, "{name}, {level}, {} tokens", ids.len());
                }
            }
            let half =
                load(name, &LoadOptions { kv: KvDType::F16.both(), ..options }).embed(&texts[2].0).unwrap();
            let whole: Vec<f64> = alone[2].iter().map(|x| f64::from(*x)).collect();
            assert!(1.0 - cosine(&half, &whole) < ROUNDED, "{name}, {level}: keys and values of 16 bits");
        }
    }
}

#[test]
fn texts_begin_and_end_as_the_file_says() {
    let ids = |name: &str| load(name, &LoadOptions::default()).embedding_tokens("a").unwrap();
    let (qwen, gemma) = (ids("qwen3-last"), ids("gemma"));
    assert_eq!(
        (qwen[0] == 1, qwen.last()),
        (false, Some(&2)),
        "the end, which the last token's state stands for"
    );
    assert_eq!((gemma[0], gemma.last()), (1, Some(&2)));
    assert_eq!(gemma[1..], qwen);
}

#[test]
fn words_are_cut_as_the_reference_cuts_them() {
    let bert = load("bert", &LoadOptions::default());
    for case in reference("bert")["words"].as_array().unwrap() {
        let (text, theirs) = (case["text"].as_str().unwrap(), case["ids"].as_array().unwrap());
        let ours = bert.embedding_tokens(text).unwrap();
        let theirs: Vec<u32> = theirs.iter().map(|id| id.as_u64().unwrap() as u32).collect();
        assert_eq!(ours, theirs, "{text:?}");
    }
}

#[test]
fn models_say_what_they_are_for() {
    let options = LoadOptions { max_sequences: 2, ..LoadOptions::default() };
    let mut embeds = load("gemma", &options);
    assert!(embeds.embeds());
    let seq = embeds.new_sequence().unwrap();
    let asked = embeds.forward(&[Chunk { seq, tokens: &[5], logits: LogitsSelection::Last }]).err().unwrap();
    assert_eq!(asked.code(), "model.embeds_only");
    assert_eq!(embeds.embed(&[]).unwrap_err().code(), "request.empty");
    assert_eq!(embeds.embed(&[VOCAB]).unwrap_err().code(), "request.token_unknown");
    let long = vec![5; embeds.n_ctx() + 1];
    assert_eq!(embeds.embed(&long).unwrap_err().code(), "request.context_full");
    assert_eq!(embeds.embed(&long[1..]).unwrap().len(), 12, "a whole context is one run");

    let answers = inglenook_tests::reference_dir().join("logits/llama/llama.q8_0.gguf");
    let file = Arc::new(WeightFile::open(&answers).unwrap());
    let mut answers = Model::load(file, &options, &mut |_| {}).unwrap();
    assert!(!answers.embeds());
    assert_eq!(answers.embed(&[5]).unwrap_err().code(), "model.no_embeddings");
}

/// Tokens that the models here know.
const VOCAB: u32 = 260;

#[test]
fn nook_gives_vectors_of_texts() {
    let home = Home::new();
    let bert = path("bert.gguf");
    let bert = bert.to_str().unwrap();
    let file = home.0.join("texts.jsonl");
    std::fs::write(&file, "{\"text\": \"fox\"}\n{\"text\": \"a tower\"}\n").unwrap();
    let (file, one) = (file.to_str().unwrap(), home.json(&["embed", "--model", bert, "--text", "fox"]));
    let lines = home.lines(&["embed", "--model", bert, "--jsonl", file]);
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0], one["tokens"].as_u64()), (&one, Some(3)));
    assert_eq!(one["vector"].as_array().unwrap().len(), 16);
    assert_ne!(lines[0]["vector"], lines[1]["vector"]);
    // one thing for all of it: its family has no words to put before
    let asked = home.json(&["embed", "--model", bert, "--text", "fox", "--as", "question"]);
    assert_eq!(asked, one);

    let fails = |args: &[&str], code: &str| {
        let (exit, error) = home.error(args);
        assert_eq!((exit, error["code"].as_str()), (3, Some(code)), "{args:?}: {error}");
    };
    fails(&["embed", "--model", "starter", "--text", "fox"], "model.no_embeddings");
    fails(&["run", "--model", bert, "--prompt", "fox"], "model.embeds_only");
    fails(&["logits", "--model", bert, "--ids", "5"], "model.embeds_only");
    fails(&["perplexity", "--model", bert, "--file", file], "model.embeds_only");
}
