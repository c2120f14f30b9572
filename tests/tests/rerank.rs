//! Scores of passages against those that transformers computes for the same weights, everywhere that models run.

use std::path::Path;
use std::sync::Arc;

use engine::{Devices, KvDType, LoadOptions, Model};
use inglenook_tests::reference_dir;
use kernels::cpu::isa::IsaLevel;
use serde_json::Value;
use test_support::{Missing, skip};
use weights::WeightFile;

use crate::cli::Home;

/// Largest difference of a score in float32; the references differ from float64 by 2e-6.
const TOLERANCE: f64 = 5e-5;

fn pairs(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("ref.json")).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    reference["pairs"].as_array().unwrap().clone()
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

fn check(file: &Path, pairs: &[Value], key: &str, tolerance: f64, places: Vec<(String, LoadOptions)>) {
    for (level, options) in places {
        let weights = Arc::new(WeightFile::open(file).unwrap());
        let mut model = Model::load(weights, &options, &mut |_| {}).unwrap();
        for pair in pairs {
            let (query, passage) = (pair["query"].as_str().unwrap(), pair["passage"].as_str().unwrap());
            let ours = model.rank(query, passage).unwrap();
            let off = (f64::from(ours.score) - pair[key].as_f64().unwrap()).abs();
            let name = format!("{}, {level}, {query:?}, {passage:?}", file.display());
            assert_eq!(ours.n_tokens, pair["ids"].as_array().unwrap().len(), "{name}");
            assert!(!ours.is_cut, "{name}");
            assert!(off < tolerance, "{name}: {} is off by {off}", ours.score);
        }
    }
}

/// Checks the weights of a family of the reference in float32.
fn check_reference(family: &str) {
    let folder = reference_dir().join("rerank").join(family);
    if !folder.is_dir() {
        skip!(Missing::Reference, "no conformance data for rerankers");
    }
    check(&folder, &pairs(&folder), "score", TOLERANCE, everywhere());
}

#[test]
fn qwen3_answers_yes_with_the_reference_s_probability() {
    check_reference("qwen3");
}

#[test]
fn bert_scores_as_the_reference() {
    check_reference("bert");
}

#[test]
fn xlm_roberta_scores_as_the_reference() {
    check_reference("xlm_roberta");
}

/// Its vocabulary normalizes texts by a table, without which tabs and line ends would be unknown tokens.
#[test]
fn a_quantized_file_scores_as_its_own_weights() {
    let folder = reference_dir().join("rerank/xlm_roberta");
    if !folder.is_dir() {
        skip!(Missing::Reference, "no conformance data for rerankers");
    }
    let file = folder.join("xlm_roberta.q8_0.gguf");
    // Elsewhere activations are quantized too.
    let scalar = everywhere().into_iter().filter(|(name, _)| name == "scalar").collect();
    check(&file, &pairs(&folder), "score_q8_0_exact", TOLERANCE, scalar);
}

#[test]
fn a_model_that_does_not_rank_says_so() {
    let home = Home::new();
    let file = home.0.join("passages.jsonl");
    std::fs::write(&file, "{\"text\": \"Paris\"}\n").unwrap();
    let file = file.to_str().unwrap();
    let (exit, error) =
        home.error(&["rerank", "--model", "starter", "--query", "capital of France", "--jsonl", file]);
    assert_eq!((exit, error["code"].as_str()), (3, Some("model.no_ranking")), "{error}");
}
