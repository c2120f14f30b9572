//! Perplexity of a model on a text, and the divergence between two models.
//!
//! Method: windows of `n_ctx` tokens, each half a window after the last. Tokens that the model requires before a
//! text, such as BOS, come first in each and count towards `n_ctx`. Every token is scored once: the first window
//! scores all of its tokens, later ones those that are new, so that these have at least half a window before them.
//!
//! Perplexity is exp of the mean of −ln p. The divergence at a position is KL(reference ‖ model) = Σ p_ref · (ln
//! p_ref − ln p_model), in nats. Sums are in float64.

use serde::{Deserialize, Serialize};

use crate::TokenId;
use crate::error::{EngineError, Result};
use crate::model::{Chunk, LogitsSelection, Model};
use crate::tokenizer::Special;

/// Logits per forward call: 32 MiB of float32.
const MAX_VALUES: usize = 8 << 20;

/// Shorter windows are meaningless.
const MIN_WINDOW: usize = 8;

/// Perplexity of a model on a text.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PerplexityScore {
    /// exp of the mean negative log-likelihood of a scored token.
    pub perplexity: f64,
    /// Scored tokens.
    pub tokens: usize,
    /// Windows that the text was divided into.
    pub windows: usize,
    /// Tokens per window.
    pub n_ctx: usize,
}

/// Comparison with a reference model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Divergence {
    /// Perplexity of the reference.
    pub perplexity: f64,
    /// In nats, over all scored positions.
    pub mean_kl: f64,
    /// Largest divergence at a position, in nats.
    pub max_kl: f64,
    /// Share of positions with the same most likely token.
    pub top1_agreement: f64,
}

/// Encodes the text.
///
/// Errors: `tokenizer.missing`, `perplexity.too_short`.
pub fn encode(model: &Model, text: &str, special: Special) -> Result<Vec<TokenId>> {
    let tokenizer = model.tokenizer().ok_or_else(|| {
        EngineError::new(
            "tokenizer.missing",
            "the model has no tokenizer",
            "Put its tokenizer.json beside the weights.",
        )
    })?;
    let ids = tokenizer.encode(text, special);
    match ids.len() {
        0 | 1 => Err(EngineError::new(
            "perplexity.too_short",
            format!("the text has {} tokens; at least 2 are needed", ids.len()),
            "Use a longer text, ideally of a few thousand words.",
        )),
        _ => Ok(ids),
    }
}

/// Measures over windows of `n_ctx` tokens. `progress` receives tokens done and in total; returning false stops.
///
/// Errors: `perplexity.window`, `perplexity.vocabularies`, `perplexity.interrupted`, a failed kernel.
pub fn measure(
    model: &mut Model,
    mut reference: Option<&mut Model>,
    ids: &[TokenId],
    n_ctx: usize,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<(PerplexityScore, Option<Divergence>)> {
    let before = model.tokenizer().map_or_else(Vec::new, |tokenizer| before(&tokenizer.add_special(vec![])));
    check(model, reference.as_deref(), n_ctx, before.len())?;
    let body = n_ctx - before.len();
    // Without a token before it the first one cannot be predicted.
    let first = usize::from(before.is_empty());
    let (mut start, mut scored, mut windows) = (0, first, 0);
    let mut sums = ScoreSums::default();
    while scored < ids.len() {
        let end = (start + body).min(ids.len());
        let window: Vec<TokenId> = before.iter().chain(&ids[start..end]).copied().collect();
        let from = before.len() + scored - start;
        self::window(model, reference.as_deref_mut(), &window, from, &mut sums)?;
        (scored, windows) = (end, windows + 1);
        start += body / 2;
        if !progress(scored as u64, ids.len() as u64) {
            return Err(EngineError::new("perplexity.interrupted", "the measurement was stopped", ""));
        }
    }
    let n = sums.n as f64;
    let perplexity = (sums.nll / n).exp();
    let difference = reference.map(|_| Divergence {
        perplexity: (sums.reference_nll / n).exp(),
        mean_kl: sums.kl / n,
        max_kl: sums.max_kl,
        top1_agreement: sums.n_agreed as f64 / n,
    });
    Ok((PerplexityScore { perplexity, tokens: sums.n, windows, n_ctx }, difference))
}

/// Returns what precedes each window: BOS. A trailing EOS belongs to whole texts.
fn before(around: &[TokenId]) -> Vec<TokenId> {
    around.first().into_iter().copied().collect()
}

fn check(model: &Model, reference: Option<&Model>, n_ctx: usize, n_before: usize) -> Result<()> {
    let max_ctx = reference.map_or(model.n_ctx(), |reference| reference.n_ctx().min(model.n_ctx()));
    if n_ctx < MIN_WINDOW + n_before || n_ctx > max_ctx {
        return Err(EngineError::new(
            "perplexity.window",
            format!("a window of {n_ctx} tokens is not between {MIN_WINDOW} and the context of {max_ctx}"),
            "Use another --ctx.",
        ));
    }
    let (ours, theirs) = (model.info().n_vocab, reference.map(|reference| reference.info().n_vocab));
    if theirs.is_some_and(|theirs| theirs != ours) {
        return Err(EngineError::new(
            "perplexity.vocabularies",
            format!("the models have vocabularies of {ours} and {} tokens", theirs.unwrap_or(0)),
            "Compare models with the same tokenizer.",
        ));
    }
    Ok(())
}

#[derive(Default)]
struct ScoreSums {
    n: usize,
    nll: f64,
    reference_nll: f64,
    kl: f64,
    max_kl: f64,
    n_agreed: usize,
}

/// Runs one window and scores its tokens from index `from` on.
fn window(
    model: &mut Model,
    mut reference: Option<&mut Model>,
    window: &[TokenId],
    from: usize,
    sums: &mut ScoreSums,
) -> Result<()> {
    let sequence = model.new_sequence()?;
    let theirs = reference.as_deref_mut().map(Model::new_sequence).transpose()?;
    let (unscored, rest) = window[..window.len() - 1].split_at(from - 1);
    model.forward(&[Chunk { seq: sequence, tokens: unscored, logits: LogitsSelection::None }])?;
    if let (Some(reference), Some(seq)) = (reference.as_deref_mut(), theirs) {
        reference.forward(&[Chunk { seq, tokens: unscored, logits: LogitsSelection::None }])?;
    }
    let rows_at_once = (MAX_VALUES / model.info().n_vocab).max(1);
    let mut next = &window[from..];
    for tokens in rest.chunks(rows_at_once) {
        let rows = model.forward(&[Chunk { seq: sequence, tokens, logits: LogitsSelection::All }])?;
        let chunk = theirs.map(|seq| Chunk { seq, tokens, logits: LogitsSelection::All });
        let others = match (reference.as_deref_mut(), chunk) {
            (Some(reference), Some(chunk)) => Some(reference.forward(&[chunk])?),
            (None, _) | (_, None) => None,
        };
        for (row, &token) in next[..tokens.len()].iter().enumerate() {
            let other = others.as_ref().map(|others| others.row(row)).transpose()?;
            sums.add(rows.row(row)?, other, token as usize);
        }
        next = &next[tokens.len()..];
    }
    model.free(sequence);
    if let (Some(reference), Some(seq)) = (reference, theirs) {
        reference.free(seq);
    }
    Ok(())
}

impl ScoreSums {
    /// Adds the logits before a token, and a reference's. (n_vocab)
    fn add(&mut self, logits: &[f32], reference: Option<&[f32]>, token: usize) {
        let total = log_sum_exp(logits);
        self.n += 1;
        self.nll += total - f64::from(logits[token]);
        let Some(reference) = reference else { return };
        let reference_total = log_sum_exp(reference);
        self.reference_nll += reference_total - f64::from(reference[token]);
        let kl: f64 = logits
            .iter()
            .zip(reference)
            .map(|(&ours, &theirs)| {
                let (ours, theirs) = (f64::from(ours) - total, f64::from(theirs) - reference_total);
                theirs.exp() * (theirs - ours)
            })
            .sum();
        // Rounding may make a divergence of zero negative.
        let kl = kl.max(0.0);
        self.kl += kl;
        self.max_kl = self.max_kl.max(kl);
        self.n_agreed += usize::from(largest(logits) == largest(reference));
    }
}

/// ln Σ exp(x)
fn log_sum_exp(values: &[f32]) -> f64 {
    let max = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = values.iter().map(|&value| f64::from(value - max).exp()).sum();
    f64::from(max) + sum.ln()
}

/// Returns the index of the largest value, the first of equals.
fn largest(values: &[f32]) -> usize {
    let better = |best: usize, at: usize| if values[at] > values[best] { at } else { best };
    (1..values.len()).fold(0, better)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_follow_the_definitions() {
        let mut sums = ScoreSums::default();
        // p = (1/4, 3/4) beside q = (1/2, 1/2)
        let (ours, theirs) = ([0.0, 3f32.ln()], [7.0, 7.0]);
        sums.add(&ours, Some(&theirs), 1);
        assert!((sums.nll - (4f64 / 3.0).ln()).abs() < 1e-6);
        assert!((sums.reference_nll - 2f64.ln()).abs() < 1e-6);
        let expected = 0.5 * (0.5f64 / 0.25).ln() + 0.5 * (0.5f64 / 0.75).ln();
        assert!((sums.kl - expected).abs() < 1e-6 && sums.max_kl == sums.kl);
        assert_eq!((sums.n, sums.n_agreed), (1, 0));
        sums.add(&ours, Some(&ours), 0);
        assert!(sums.kl - expected < 1e-6 && sums.n_agreed == 1);
    }
}
