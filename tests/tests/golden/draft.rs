//! Draft blocks: the logits of their drafts, chained and with the prompt's own tokens, in both containers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{Chunk, Devices, DraftBlockUse, KvDType, LoadOptions, LogitsSelection, Model, Precision};
use serde_json::Value;
use test_support::{Missing, difference, largest, largest_difference, skip};
use weights::WeightFile;

use super::judge::{NOISE, Verdict};
use super::reference::{float, ids, json, list, npy, pairs};
use super::{Line, TOLERANCE, float_devices, names, run};

/// Of the two conventions in use, ours is that of vLLM: no row of the first token.
const CONVENTION: &str = "plain";

/// The best ids of a draft with their logits.
type Top = Vec<(u32, f32)>;

/// One prompt with the drafts of the reference.
struct DraftCase {
    tokens: Vec<u32>,
    /// The model's best id after the prompt.
    next: u32,
    /// For each position the draft after the prompt's own next token.
    rows: Vec<Top>,
    /// For each position the chained drafts after the model's best id there. Empty where the reference has none.
    chains: Vec<Vec<Top>>,
    /// All logits of the chained drafts after the prompt.
    last: Vec<Vec<f32>>,
}

#[test]
fn draft_blocks() {
    let root = inglenook_tests::reference_dir().join("mtp");
    if !root.exists() && inglenook_tests::reference_is_small() {
        skip!(Missing::Reference, "the small set has no draft blocks");
    }
    let mut lines = Vec::new();
    for family in names(&root) {
        let dir = root.join(&family);
        let folder = dir.clone();
        lines.push(Line::new(&family, "safetensors", "drafts", move || {
            exactly(&folder, &draft_cases(&folder, "ref"), float_devices())
        }));
        let (folder, file) = (dir.clone(), dir.join(format!("{family}.q8_0.gguf")));
        lines.push(Line::new(&family, "GGUF", "drafts, q8_0", move || {
            exactly(&file, &draft_cases(&folder, "ref.q8_0.exact"), float_devices())
        }));
        let name = family.clone();
        lines.push(Line::new(&name, "GGUF, noise", "drafts, q8_0, cpu", move || noise(&dir, &family)));
    }
    assert!(lines.len() >= 3, "{} has no model", root.display());
    run("Drafts of draft blocks", &lines);
}

#[test]
fn a_model_without_a_draft_block_is_refused() {
    let path = inglenook_tests::workspace_root().join("tests/reference/families/llama");
    let file = Arc::new(WeightFile::open(&path).unwrap());
    let options = LoadOptions { draft_block: DraftBlockUse::Required, ..LoadOptions::default() };
    let error = Model::load(file, &options, &mut |_| {}).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), "model.no_draft_block");
    assert!(!error.remedy().is_empty());
}

fn draft_cases(dir: &Path, stem: &str) -> Vec<DraftCase> {
    let answers = json(&dir.join(format!("{stem}.mtp.json")));
    let (prompts, n_steps) = (list(&answers["prompts"]), answers["steps"].as_u64().unwrap() as usize);
    let last = npy(&dir.join(format!("{stem}.mtp.draft.npy")));
    assert_eq!(last.len(), prompts.len() * n_steps, "{}: {stem}", dir.display());
    let top = |value: &Value| pairs(&value[0], &value[1]);
    let case = |(prompt, last): (&Value, &[Vec<f32>])| DraftCase {
        tokens: ids(&prompt["tokens"]),
        next: prompt["target_next"].as_u64().unwrap() as u32,
        rows: list(&prompt["rows"][CONVENTION]).iter().map(top).collect(),
        chains: prompt.get("chains").map_or(Vec::new(), |chains| {
            let of_position = |chain: &Value| list(chain).iter().map(|draft| top(&draft["top10"])).collect();
            list(&chains[CONVENTION]).iter().map(of_position).collect()
        }),
        last: last.to_vec(),
    };
    prompts.iter().zip(last.chunks_exact(n_steps)).map(case).collect()
}

fn load(path: &Path, devices: Devices, n_ctx: usize) -> Result<Model, String> {
    let file = Arc::new(WeightFile::open(path).map_err(|e| e.to_string())?);
    let options = LoadOptions {
        devices,
        gpu_precision: Precision::F32,
        kv: KvDType::F32.both(),
        ctx: Some(n_ctx),
        threads: Some(1),
        max_sequences: 1,
        draft_block: DraftBlockUse::Required,
        ..LoadOptions::default()
    };
    Model::load(file, &options, &mut |_| {}).map_err(|e| e.to_string())
}

/// What a model drafts for a case, by position.
struct Drafts {
    /// After the prompt's own tokens.
    rows: Vec<Vec<f32>>,
    /// After the model's best ids.
    chains: Vec<Vec<Vec<f32>>>,
}

fn drafts(path: &Path, devices: Devices, case: &DraftCase) -> Result<Drafts, String> {
    let (n, n_steps) = (case.tokens.len(), case.last.len());
    let mut model = load(path, devices, n + n_steps)?;
    let mut draft = || -> engine::Result<Drafts> {
        let seq = model.new_sequence()?;
        let chunk = Chunk { seq, tokens: &case.tokens, logits: LogitsSelection::All };
        let logits = model.forward(&[chunk])?;
        let mut states = Vec::new();
        for row in 0..n {
            let hidden = logits.hidden(row).expect("the model has a draft block").to_vec();
            states.push((best(logits.row(row)?), hidden));
        }
        let mut found = Drafts { rows: Vec::new(), chains: Vec::new() };
        for (position, (best, hidden)) in states.iter().enumerate().rev() {
            let next = case.tokens.get(position + 1).copied().unwrap_or(case.next);
            found.rows.extend(model.draft_logits(seq, (position + 1, next), hidden, 1)?);
            found.chains.push(model.draft_logits(seq, (position + 1, *best), hidden, n_steps)?);
        }
        found.rows.reverse();
        found.chains.reverse();
        Ok(found)
    };
    draft().map_err(|e| e.to_string())
}

fn best(logits: &[f32]) -> u32 {
    (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as u32
}

fn error(logits: &[f32], top: &Top) -> f32 {
    largest(top.iter().map(|&(id, logit)| difference(logits[id as usize], logit)))
}

/// Every draft that the reference knows, within the tolerance.
fn exactly(path: &Path, cases: &[DraftCase], devices: Devices) -> Verdict {
    let (mut worst, mut n_chained) = (0f32, 0);
    for case in cases {
        let n = case.tokens.len();
        let found = drafts(path, devices.clone(), case)?;
        if case.rows.len() != n || !(case.chains.is_empty() || case.chains.len() == n) {
            return Err(format!("{} rows for {n} tokens", case.rows.len()));
        }
        for (position, (row, top)) in found.rows.iter().zip(&case.rows).enumerate() {
            let error = error(row, top);
            worst = worst.max(error);
            if error.is_nan() || error > TOLERANCE {
                return Err(format!("row {position} of {n}: off by {error:.2e}"));
            }
        }
        let chains = found.chains.iter().zip(&case.chains).enumerate();
        for (position, (drafts, expected)) in chains {
            assert_eq!(drafts.len(), expected.len());
            for (step, (draft, top)) in drafts.iter().zip(expected).enumerate() {
                let error = error(draft, top);
                worst = worst.max(error);
                n_chained += 1;
                if error.is_nan() || error > TOLERANCE || best(draft) != top[0].0 {
                    return Err(format!("draft {step} after position {position} of {n}: off by {error:.2e}"));
                }
            }
        }
        assert_eq!(found.chains[n - 1].len(), case.last.len());
        for (draft, expected) in found.chains[n - 1].iter().zip(&case.last) {
            worst = worst.max(largest_difference(draft, expected));
        }
    }
    let figure = format!("largest error {worst:.1e}, {n_chained} drafts in chains");
    if worst <= TOLERANCE { Ok(figure) } else { Err(figure) }
}

/// The mean error over all rows with quantised activations, against llama.cpp's on the same file.
fn noise(dir: &Path, family: &str) -> Verdict {
    let path: PathBuf = dir.join(format!("{family}.q8_0.gguf"));
    let agreement = json(&dir.join("agreement.json"));
    let theirs = list(&agreement[&format!("MTP q8_0 {CONVENTION}: llama.cpp vs exact, rows")]);
    let (mut ours_sum, mut theirs_sum) = (0.0, 0.0);
    for (case, theirs) in draft_cases(dir, "ref.q8_0.exact").iter().zip(theirs) {
        let found = drafts(&path, Devices::Cpu, case)?;
        let errors = found.rows.iter().zip(&case.rows).flat_map(|(row, top)| {
            top.iter().map(|&(id, logit)| f64::from(difference(row[id as usize], logit)))
        });
        let n_logits: usize = case.rows.iter().map(Vec::len).sum();
        ours_sum += errors.sum::<f64>() / n_logits as f64;
        theirs_sum += f64::from(float(&theirs[1]));
    }
    let figure = format!("{:.2} of llama.cpp's error", ours_sum / theirs_sum);
    if ours_sum <= NOISE * theirs_sum { Ok(figure) } else { Err(figure) }
}
