//! How far a model's answers are from a reference's, and whether that is near enough.

use std::path::Path;
use std::sync::Arc;

use engine::convert::{self, Formats};
use engine::{Chunk, Devices, KvDType, LoadOptions, LogitsSelection, Model, Precision};
use weights::{SharedBytes, WeightFile};

use super::reference::{Case, Theirs};
use test_support::{difference, largest, largest_difference};

/// Allowed mean error with quantised activations, as a multiple of llama.cpp's.
pub const NOISE: f64 = 1.25;

/// Of a mixture of experts: share of positions that must agree with float32 activations. A router's near-tie may be
/// decided otherwise by another order of additions, which moves single positions by several units.
const AGREEING: f64 = 0.97;

/// Of a mixture, by how much more its positions' best ids may differ than llama.cpp's do, with quantised activations:
/// each side has its own flips.
const FLIPS: f64 = 0.03;

/// What was measured, and whether it suffices.
pub type Verdict = Result<String, String>;

/// With room for `n_ctx` tokens: what some models compute depends on it.
pub fn load(path: &Path, devices: Devices, n_ctx: usize) -> Result<Model, String> {
    load_file(WeightFile::open(path).map_err(|e| e.to_string())?, devices, Precision::F32, n_ctx)
}

/// On a GPU whose products have operands of half precision.
pub fn load_halved(path: &Path, n_ctx: usize) -> Result<Model, String> {
    let file = WeightFile::open(path).map_err(|e| e.to_string())?;
    let mut model = load_file(file, Devices::Gpu { layers: None }, Precision::F16, n_ctx)?;
    let given_up = model.take_gpu_incident().map(|trouble| trouble.error.to_string());
    given_up.map_or(Ok(model), Err)
}

/// A folder as the GGUF that our converter makes of it.
pub fn load_converted(dir: &Path, n_ctx: usize) -> Result<Model, String> {
    let source = WeightFile::open(dir).map_err(|e| e.to_string())?;
    let mut bytes = Vec::new();
    let formats = Formats::parse("f32").map_err(|e| e.to_string())?;
    let planned = convert::plan(&source, &formats, Some(1)).map_err(|e| e.to_string())?;
    planned.write(&mut bytes).map_err(|e| e.to_string())?;
    let file = WeightFile::from_bytes("converted.gguf", SharedBytes::from_vec(bytes));
    load_file(file.map_err(|e| e.to_string())?, Devices::Scalar, Precision::F32, n_ctx)
}

fn load_file(
    file: WeightFile,
    devices: Devices,
    gpu_precision: Precision,
    n_ctx: usize,
) -> Result<Model, String> {
    let options = LoadOptions {
        devices,
        gpu_precision,
        kv: KvDType::F32.both(),
        ctx: Some(n_ctx),
        threads: Some(1),
        max_sequences: 1,
        ..LoadOptions::default()
    };
    let model = Model::load(Arc::new(file), &options, &mut |_| {}).map_err(|e| e.to_string())?;
    match &model.info().fallback_error {
        Some(error) => Err(format!("another device computes: {error}")),
        None => Ok(model),
    }
}

/// Logits after every position (n_tokens, n_vocab), and the ids that follow by argmax.
fn answers(model: &mut Model, tokens: &[u32], n_greedy: usize) -> Result<Answers, String> {
    let seq = model.new_sequence().map_err(|e| e.to_string())?;
    let mut found = Answers { rows: Vec::with_capacity(tokens.len()), greedy: Vec::with_capacity(n_greedy) };
    let mut run = || {
        let logits = model.forward(&[Chunk { seq, tokens, logits: LogitsSelection::All }])?;
        for row in 0..logits.n_rows() {
            found.rows.push(logits.row(row)?.to_vec());
        }
        let mut next = best(&found.rows[found.rows.len() - 1]);
        for step in 0..n_greedy {
            found.greedy.push(next);
            if step + 1 < n_greedy {
                let logits =
                    model.forward(&[Chunk { seq, tokens: &[next.0], logits: LogitsSelection::Last }])?;
                next = best(logits.row(0)?);
            }
        }
        Ok(())
    };
    let ran: Result<(), engine::EngineError> = run();
    model.free(seq);
    ran.map_err(|e| e.to_string())?;
    // Sorting and `max` put NaN somewhere without a word.
    match found.rows.iter().flatten().any(|logit| logit.is_nan())
        || found.greedy.iter().any(|it| it.1.is_nan())
    {
        true => Err("a logit is NaN".into()),
        false => Ok(found),
    }
}

struct Answers {
    rows: Vec<Vec<f32>>,
    /// Ids and by how much they beat the second best.
    greedy: Vec<(u32, f32)>,
}

/// Best id, and by how much it beats the second.
fn best(logits: &[f32]) -> (u32, f32) {
    let id = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap();
    let others = logits.iter().enumerate().filter(|(i, _)| *i != id).map(|(_, &l)| l);
    (id as u32, logits[id] - others.fold(f32::MIN, f32::max))
}

/// Every logit the reference knows, top-1 by position and the greedy continuation, all within the tolerance; of a
/// mixture nearly all positions. `load` loads the model for that many tokens.
pub fn exactly(
    load: &dyn Fn(usize) -> Result<Model, String>,
    cases: &[Case],
    tolerance: f32,
    is_mixture: bool,
) -> Verdict {
    let (mut worst, mut n_agreeing, mut n_positions, mut first_wrong) = (0f32, 0u32, 0u32, None);
    for case in cases {
        // the last greedy token is not read
        let mut model = load(case.tokens.len() + case.greedy.len().saturating_sub(1))?;
        let found = answers(&mut model, &case.tokens, case.greedy.len())?;
        let n = case.tokens.len();
        if found.rows.len() != n || case.top.len() != n || case.greedy.is_empty() {
            return Err(format!("{} rows of logits for {n} tokens", found.rows.len()));
        }
        for (position, (row, top)) in found.rows.iter().zip(&case.top).enumerate() {
            let mut error = largest(top.iter().map(|&(id, logit)| difference(row[id as usize], logit)));
            if position + 1 == n {
                error = error.max(largest_difference(row, &case.last));
            }
            let is_clear = top[0].1 - top[1].1 > 2.0 * tolerance;
            let agrees = error <= tolerance && (!is_clear || best(row).0 == top[0].0);
            n_positions += 1;
            n_agreeing += u32::from(agrees);
            worst = worst.max(error);
            if !agrees && first_wrong.is_none() {
                first_wrong = Some(format!("position {position} of {n}: off by {error:.2e}"));
            }
        }
        greedy(&found.greedy, case, tolerance)?;
    }
    let share = f64::from(n_agreeing) / f64::from(n_positions);
    let least = if is_mixture { AGREEING } else { 1.0 };
    match first_wrong.filter(|_| share < least) {
        Some(wrong) => {
            Err(format!("{wrong}; largest error {worst:.2e}, {:.1} % of positions", 100.0 * share))
        }
        None if n_agreeing == n_positions => Ok(format!("largest error {worst:.1e}")),
        None => Ok(format!("largest error {worst:.1e}, {:.1} % of positions within", 100.0 * share)),
    }
}

/// The same ids, until a step where the two best are closer than rounding may decide.
fn greedy(found: &[(u32, f32)], case: &Case, tolerance: f32) -> Result<(), String> {
    for (step, (&(id, margin), &expected)) in found.iter().zip(&case.greedy).enumerate() {
        if id != expected {
            let margin = case.margins.get(step).copied().unwrap_or(margin);
            if margin > 2.0 * tolerance {
                let n = case.tokens.len();
                return Err(format!("{n} tokens, greedy step {step}: {id} for {expected}, margin {margin}"));
            }
            break;
        }
    }
    Ok(())
}

fn mean_error(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len(), "rows of different lengths");
    a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs())).sum::<f64>() / a.len() as f64
}

/// The mean error over all prompts' last logits, against llama.cpp's on the same file.
pub fn noise(model: &mut Model, exact: &[Case], theirs: &[Vec<f32>]) -> Verdict {
    let (mut ours_sum, mut theirs_sum) = (0.0, 0.0);
    for (case, theirs) in exact.iter().zip(theirs) {
        let found = answers(model, &case.tokens, 0)?;
        ours_sum += mean_error(&found.rows[found.rows.len() - 1], &case.last);
        theirs_sum += mean_error(theirs, &case.last);
    }
    let figure = format!("{:.2} of llama.cpp's error", ours_sum / theirs_sum);
    if ours_sum <= NOISE * theirs_sum { Ok(figure) } else { Err(figure) }
}

/// As `noise`, of a mixture: over every position, so that no single flip decides. The reference has each position's
/// best logits, llama.cpp's mean error is over all.
pub fn noise_of_mixture(model: &mut Model, exact: &[Case], theirs: &Theirs) -> Verdict {
    every_position(exact, theirs, |case| answers(model, &case.tokens, 0))
}

/// The same, of a model that is loaded for `n_ctx` tokens of each prompt.
pub fn noise_of_every_position(
    load: &dyn Fn(usize) -> Result<Model, String>,
    exact: &[Case],
    theirs: &Theirs,
    n_ctx: &dyn Fn(&Case) -> usize,
) -> Verdict {
    every_position(exact, theirs, |case| answers(&mut load(n_ctx(case))?, &case.tokens, 0))
}

fn every_position(
    exact: &[Case],
    theirs: &Theirs,
    mut answer: impl FnMut(&Case) -> Result<Answers, String>,
) -> Verdict {
    let (mut error, mut n_logits, mut n_same, mut n_positions) = (0.0, 0.0, 0.0, 0.0);
    for case in exact {
        let found = answer(case)?;
        for (row, top) in found.rows.iter().zip(&case.top) {
            error +=
                top.iter().map(|&(id, logit)| f64::from(difference(row[id as usize], logit))).sum::<f64>();
            n_logits += top.len() as f64;
            n_same += f64::from(best(row).0 == top[0].0);
            n_positions += 1.0;
        }
    }
    let (ratio, top_1) = (error / n_logits / theirs.mean, n_same / n_positions);
    let figure = format!(
        "{ratio:.2} of llama.cpp's error, best id at {:.1} % (its: {:.1} %)",
        100.0 * top_1,
        100.0 * theirs.top_1
    );
    if ratio <= NOISE && top_1 >= theirs.top_1 - FLIPS { Ok(figure) } else { Err(figure) }
}

/// For files without exact logits: the mean error against llama.cpp's own, quantised activations
/// included.
pub fn near(model: &mut Model, cases: &[Case], most: f64) -> Verdict {
    let mut worst = 0f64;
    for case in cases {
        let found = answers(model, &case.tokens, 0)?;
        let error = mean_error(&found.rows[found.rows.len() - 1], &case.last);
        worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
    }
    let figure = format!("mean error {worst:.3}");
    if worst <= most { Ok(figure) } else { Err(figure) }
}
