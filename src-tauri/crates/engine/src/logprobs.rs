//! Token probabilities of an answer, and the most likely alternatives at each position.
//!
//! Probabilities are the model's own, before temperature and other sampling stages.

use crate::error::Result;
use crate::kv::sequence_id::SequenceId;
use crate::model::{Chunk, LogitsSelection, Model};
use crate::tokenizer::TokenId;

/// Logits per forward call: 8 MiB of float32.
const MAX_VALUES: usize = 2 << 20;

/// Probability of one token of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprobs {
    /// The sampled token.
    pub id: TokenId,
    /// Its probability before sampling, 0 to 1.
    pub probability: f32,
    /// Most likely tokens at its position, most likely first. May include the token itself.
    pub top: Vec<(TokenId, f32)>,
}

/// Computes the probability of each token of `answer` after `prompt`, whose beginning `sequence` may hold. Afterwards
/// it holds both, except for the last token.
///
/// Errors: `request.context_full`, a failed kernel.
pub fn logprobs(
    model: &mut Model,
    sequence: SequenceId,
    prompt: &[TokenId],
    answer: &[TokenId],
    n_top: usize,
) -> Result<Vec<TokenLogprobs>> {
    let Some((last, before)) = prompt.split_last() else { return Ok(Vec::new()) };
    let n_common = model.tokens(sequence)?.iter().zip(before).take_while(|(a, b)| a == b).count();
    let n_held = model.truncate(sequence, n_common)?;
    model.forward(&[Chunk { seq: sequence, tokens: &before[n_held..], logits: LogitsSelection::None }])?;
    let mut read = Vec::with_capacity(answer.len());
    read.push(*last);
    read.extend(answer.iter().take(answer.len().saturating_sub(1)));
    let rows_at_once = (MAX_VALUES / model.info().n_vocab).max(1);
    let mut seen = Vec::with_capacity(answer.len());
    for tokens in read.chunks(rows_at_once) {
        let logits = model.forward(&[Chunk { seq: sequence, tokens, logits: LogitsSelection::All }])?;
        for row in 0..tokens.len().min(answer.len() - seen.len()) {
            seen.push(at(logits.row(row)?, answer[seen.len()], n_top));
        }
    }
    Ok(seen)
}

/// Evaluates `logits` (n_vocab) at the position of token `id`.
fn at(logits: &[f32], id: TokenId, n_top: usize) -> TokenLogprobs {
    let largest = logits.iter().copied().fold(f32::MIN, f32::max);
    let weight = |logit: f32| f64::from(logit - largest).exp();
    let sum: f64 = logits.iter().map(|&logit| weight(logit)).sum();
    let probability = |id: TokenId| {
        let logit = logits.get(id as usize).copied();
        logit.map_or(0.0, |logit| (weight(logit) / sum) as f32)
    };
    let mut ids: Vec<TokenId> = (0..).take(logits.len()).collect();
    let n = n_top.min(ids.len());
    // Most likely first, ties by lower id.
    let order = |a: &TokenId, b: &TokenId| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b));
    if n > 0 && n < ids.len() {
        ids.select_nth_unstable_by(n - 1, order);
    }
    ids.truncate(n);
    ids.sort_unstable_by(order);
    let top = ids.into_iter().map(|id| (id, probability(id))).collect();
    TokenLogprobs { id, probability: probability(id), top }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_the_logits() {
        let logits = [0.0, 3.0_f32.ln(), f32::MIN, 3.0_f32.ln()];
        let seen = at(&logits, 0, 3);
        assert!((seen.probability - 1.0 / 7.0).abs() < 1e-6);
        assert_eq!(seen.top.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 3, 0]);
        assert!((seen.top[0].1 - 3.0 / 7.0).abs() < 1e-6);
    }

    #[test]
    fn tokens_outside_the_vocabulary_have_no_probability() {
        let seen = at(&[1.0, 2.0], 9, 10);
        assert_eq!((seen.probability, seen.top.len()), (0.0, 2));
        assert!(at(&[1.0, 2.0], 0, 0).top.is_empty());
    }
}
