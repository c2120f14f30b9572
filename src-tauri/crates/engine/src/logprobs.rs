//! Token probabilities of an answer, and the most likely alternatives at each position.
//!
//! Probabilities are the model's own, before temperature and other sampling stages, unless a request asks for those after
//! them.

use crate::error::Result;
use crate::kv::sequence_id::SequenceId;
use crate::model::{Chunk, LogitsSelection, Model};
use crate::sampler::SamplerChain;
use crate::tokenizer::TokenId;

/// Logits per forward call: 8 MiB of float32.
const MAX_VALUES: usize = 2 << 20;

/// The probabilities that a request reports with each token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogprobsReport {
    /// Number of alternatives.
    pub n_top: usize,
    /// Where in sampling they are taken.
    pub stage: ProbabilityStage,
}

/// Where in sampling probabilities are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbabilityStage {
    /// The model's own.
    BeforeSampling,
    /// Those that the token was drawn by: removed candidates have none.
    AfterSampling,
}

/// Probability of one token of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprobs {
    /// The sampled token.
    pub id: TokenId,
    /// Its probability, 0 to 1.
    pub probability: f32,
    /// Natural logarithm of the probability.
    pub logprob: f32,
    /// Most likely tokens at its position with their logarithms, most likely first. May include the token itself.
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

/// Evaluates the last draw of `chain`. `id`: the token that stands there; one that was not drawn from the candidates is
/// certain.
pub(crate) fn after_sampling(chain: &SamplerChain, id: TokenId, n_top: usize) -> TokenLogprobs {
    let shares = chain.last_shares();
    let certain = [(id, 0.0)];
    let shares = match shares.iter().any(|(other, _)| *other == id) {
        true => &shares[..],
        false => &certain[..],
    };
    let logprob =
        shares.iter().find(|(other, _)| *other == id).map_or(f32::NEG_INFINITY, |(_, logprob)| *logprob);
    let top = shares.iter().copied().filter(|(_, logprob)| logprob.exp() > 0.0).take(n_top).collect();
    TokenLogprobs { id, probability: logprob.exp(), logprob, top }
}

/// Evaluates `logits` (n_vocab) at the position of token `id`.
pub(crate) fn at(logits: &[f32], id: TokenId, n_top: usize) -> TokenLogprobs {
    let largest = logits.iter().copied().fold(f32::MIN, f32::max);
    let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - f64::from(largest)).exp()).sum();
    let (largest, log_sum) = (f64::from(largest), sum.ln());
    let logprob = |id: TokenId| {
        let logit = logits.get(id as usize).copied();
        logit.map_or(f64::NEG_INFINITY, |logit| f64::from(logit) - largest - log_sum)
    };
    let n = n_top.min(logits.len());
    let mut ids: Vec<TokenId> = (0..).take(if n == 0 { 0 } else { logits.len() }).collect();
    // Most likely first, ties by lower id.
    let order = |a: &TokenId, b: &TokenId| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b));
    if n > 0 && n < ids.len() {
        ids.select_nth_unstable_by(n - 1, order);
    }
    ids.truncate(n);
    ids.sort_unstable_by(order);
    let top = ids.into_iter().map(|id| (id, logprob(id) as f32)).collect();
    TokenLogprobs { id, probability: logprob(id).exp() as f32, logprob: logprob(id) as f32, top }
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
        assert!((seen.logprob - (1.0_f32 / 7.0).ln()).abs() < 1e-6);
        assert!((seen.top[0].1 - (3.0_f32 / 7.0).ln()).abs() < 1e-6);
        // A probability that float32 does not hold.
        let seen = at(&[0.0, -500.0], 1, 0);
        assert_eq!((seen.probability, seen.logprob, seen.top.len()), (0.0, -500.0, 0));
    }

    #[test]
    fn probabilities_after_sampling_are_those_of_the_draw() {
        use crate::sampler::Sampling;

        // Probabilities 0.5, 0.3, 0.15, 0.05: the last two are removed.
        let logits: Vec<f32> = [0.15_f32, 0.5, 0.05, 0.3].iter().map(|p| p.ln()).collect();
        let sampling = Sampling {
            temperature: 1.0,
            top_k: 2,
            top_p: 1.0,
            min_p: 0.0,
            seed: Some(1),
            ..Sampling::default()
        };
        let mut chain = SamplerChain::new(&sampling, logits.len());
        let drawn = chain.sample(&logits, &[]).unwrap();
        let seen = after_sampling(&chain, drawn, 10);
        let expected = [(1, 0.625_f32), (3, 0.375)];
        assert_eq!(seen.top.len(), expected.len());
        for ((id, logprob), (expected_id, probability)) in seen.top.iter().zip(expected) {
            assert!(*id == expected_id && (logprob.exp() - probability).abs() < 1e-6, "{id}: {logprob}");
        }
        let own = expected.iter().find(|(id, _)| *id == drawn).unwrap().1;
        assert!((seen.probability - own).abs() < 1e-6);
        let forced = after_sampling(&chain, 2, 10);
        assert_eq!((forced.probability, forced.top), (1.0, vec![(2, 0.0)]));
        let mut greedy = SamplerChain::new(&Sampling { temperature: 0.0, ..sampling }, logits.len());
        assert_eq!(greedy.sample(&logits, &[]), Some(1));
        assert_eq!(after_sampling(&greedy, 1, 10).top, [(1, 0.0)]);
    }

    #[test]
    fn tokens_outside_the_vocabulary_have_no_probability() {
        let seen = at(&[1.0, 2.0], 9, 10);
        assert_eq!((seen.probability, seen.top.len()), (0.0, 2));
        assert!(at(&[1.0, 2.0], 0, 0).top.is_empty());
    }
}
