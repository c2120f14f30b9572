//! How well a model foretells a text, and how far two models differ over it.
//!
//! Method: the text goes by in windows of `n_ctx` tokens (what the model wants before a text, such as BOS, comes
//! first in each and counts), each beginning half a window after the last. Every token is scored exactly once: in
//! the first window all of them, in the others those that no window had before, so that they have at least half a
//! window before them. Perplexity is e to the mean of −ln p. The divergence at a position is
//! KL(reference ‖ model) = Σ p_ref · (ln p_ref − ln p_model), in nats. ScoreSums are in float64.

use serde::{Deserialize, Serialize};

use crate::TokenId;
use crate::error::{EngineError, Result};
use crate::model::{Chunk, LogitsSelection, Model};
use crate::tokenizer::Special;

/// Logits that are looked at at once: 32 MiB of float32.
const MAX_VALUES: usize = 8 << 20;

/// A window shorter than this tells nothing.
const MIN_WINDOW: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    pub perplexity: f64,
    /// Tokens that were scored.
    pub tokens: usize,
    pub windows: usize,
    /// Tokens of a window.
    pub n_ctx: usize,
}

/// What a model is beside a reference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The reference's own.
    pub perplexity: f64,
    /// Nats, over all scored positions.
    pub mean_kl: f64,
    pub max_kl: f64,
    /// Share of positions where both find the same token likeliest.
    pub top1_agreement: f64,
}

/// The text as this model reads it. Errors: no tokenizer, or fewer than two tokens.
pub fn encode(model: &Model, text: &str, special: Special) -> Result<Vec<TokenId>> {
    let tokenizer = model.tokenizer().ok_or_else(|| {
        EngineError::new(
            "tokenizer.missing",
            "the model has no tokenizer",
            "Put its tokenizer.json beside its weights.",
        )
    })?;
    let ids = tokenizer.encode(text, special);
    match ids.len() {
        0 | 1 => Err(EngineError::new(
            "perplexity.too_short",
            format!("the text has {} tokens; at least 2 are needed", ids.len()),
            "Give a longer text; some thousand words tell most.",
        )),
        _ => Ok(ids),
    }
}

/// Measures over windows of `n_ctx` tokens. `progress` is told tokens done and in all; false ends the work.
/// Errors: a window too small or larger than the models' contexts, different vocabularies, a failed kernel.
pub fn measure(
    model: &mut Model,
    mut reference: Option<&mut Model>,
    ids: &[TokenId],
    n_ctx: usize,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<(Quality, Option<Difference>)> {
    let before = model.tokenizer().map_or_else(Vec::new, |tokenizer| before(&tokenizer.add_special(vec![])));
    check(model, reference.as_deref(), n_ctx, before.len())?;
    let body = n_ctx - before.len();
    // without anything before it the first token cannot be foretold
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
    let difference = reference.map(|_| Difference {
        perplexity: (sums.reference_nll / n).exp(),
        mean_kl: sums.kl / n,
        max_kl: sums.max_kl,
        top1_agreement: sums.n_agreed as f64 / n,
    });
    Ok((Quality { perplexity, tokens: sums.n, windows, n_ctx }, difference))
}

/// What a model wants before a text: its BOS. An EOS behind it belongs to whole texts.
fn before(around: &[TokenId]) -> Vec<TokenId> {
    around.first().into_iter().copied().collect()
}

fn check(model: &Model, reference: Option<&Model>, n_ctx: usize, n_before: usize) -> Result<()> {
    let room = reference.map_or(model.n_ctx(), |reference| reference.n_ctx().min(model.n_ctx()));
    if n_ctx < MIN_WINDOW + n_before || n_ctx > room {
        return Err(EngineError::new(
            "perplexity.window",
            format!("a window of {n_ctx} tokens; from {MIN_WINDOW} to the context of {room} are possible"),
            "Give another --ctx.",
        ));
    }
    let (ours, theirs) = (model.info().n_vocab, reference.map(|reference| reference.info().n_vocab));
    if theirs.is_some_and(|theirs| theirs != ours) {
        return Err(EngineError::new(
            "perplexity.vocabularies",
            format!("the models have vocabularies of {ours} and {} tokens", theirs.unwrap_or(0)),
            "Compare models that have the same tokenizer.",
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

/// One window; its tokens from index `from` on are scored.
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
    /// The logits before a token, and a reference's. (n_vocab)
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
        // rounding may take a divergence of nothing below nothing
        let kl = kl.max(0.0);
        self.kl += kl;
        self.max_kl = self.max_kl.max(kl);
        self.n_agreed += usize::from(largest(logits) == largest(reference));
    }
}

/// ln Σ exp(x)
fn log_sum_exp(values: &[f32]) -> f64 {
    let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = values.iter().map(|&value| f64::from(value - most).exp()).sum();
    f64::from(most) + sum.ln()
}

/// Index of the largest; among equals the first.
fn largest(values: &[f32]) -> usize {
    let better = |best: usize, at: usize| if values[at] > values[best] { at } else { best };
    (1..values.len()).fold(0, better)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_definitions() {
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
