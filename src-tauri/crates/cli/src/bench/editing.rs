//! `nook bench --test editing`: an answer that repeats most of its prompt, with speculative decoding and without.
//!
//! A script fixes the answer, so models with random weights can be measured too. Everything else is real: drafts come
//! from prompt lookup, are verified and rolled back, and the sampler runs.

use contract::Result;
use engine::speculate::{DraftLength, DraftSource, Speculation};
use engine::{Scheduler, TokenId};
use serde::Serialize;

use super::scripted::{ScriptedRun, request, run};
use super::speed::{Bench, Spread};
use crate::out;

/// Length of the edited text.
pub const TEXT_TOKENS: usize = 1000;

/// Distance between two edits.
const EDIT_INTERVAL_TOKENS: usize = 80;

/// Length of the first, uncounted answer of each kind.
const WARM_UP_TOKENS: usize = 100;

/// Upper bound of prompt and answer together, in tokens.
pub const CONTEXT_TOKENS: usize = 2 * TEXT_TOKENS + 4 * (TEXT_TOKENS / EDIT_INTERVAL_TOKENS) + 1;

/// Both speeds and their ratio.
#[derive(Debug, Serialize)]
struct EditingRow {
    /// `edit1000`: the answer repeats a prompt of 1,000 tokens with changes
    test: String,
    depth: usize,
    /// With speculative decoding.
    tok_s: Spread,
    plain_tok_s: Spread,
    ratio: f64,
    tokens: usize,
    /// Drafted tokens of one answer; `accepted` of them were right.
    drafted: usize,
    accepted: usize,
    runs: usize,
}

pub fn editing(bench: &mut Bench, longest: usize) -> Result<()> {
    let text = zipf_text(bench.model.info().n_vocab, TEXT_TOKENS, 1);
    let answer = edited(&text);
    let guessing = Speculation { source: DraftSource::Lookup, length: DraftLength::Paying(longest) };
    let seq = bench.model.new_sequence()?;
    let mut scheduler = Scheduler::new();
    let (mut plain, mut guessed, mut last) = (Vec::new(), Vec::new(), None);
    for repetition in 0..=bench.repeat {
        for speculation in [None, Some(guessing)] {
            let n_tokens = if repetition == 0 { WARM_UP_TOKENS.min(answer.len()) } else { answer.len() };
            let asked = request(&text, answer[..n_tokens].to_vec().into(), seq, speculation);
            let answered = run(bench, &mut scheduler, asked)?;
            let tok_s = (answer.len() - 1) as f64 / answered.seconds.max(1e-9);
            match speculation {
                _ if repetition == 0 => {}
                None => plain.push(tok_s),
                Some(_) => guessed.push(tok_s),
            }
            last = Some(answered);
        }
    }
    bench.model.free(seq);
    let Some(ScriptedRun { done, n_steps, .. }) = last else { return Ok(()) };
    let (tok_s, plain_tok_s) = (Spread::of(guessed), Spread::of(plain));
    let row = EditingRow {
        test: format!("edit{TEXT_TOKENS}"),
        depth: TEXT_TOKENS,
        tok_s,
        plain_tok_s,
        ratio: tok_s.median / plain_tok_s.median,
        tokens: answer.len(),
        drafted: done.n_drafted,
        accepted: done.n_accepted,
        runs: n_steps,
    };
    row.show(bench.json);
    Ok(())
}

impl EditingRow {
    fn show(&self, as_json: bool) {
        if as_json {
            return out::json(self);
        }
        let Self { test, tok_s, plain_tok_s, ratio, tokens, drafted, accepted, runs, .. } = self;
        let Spread { median, min, max } = tok_s;
        out::line(&format!(
            "{test:<8} speculative {median:>9.2} tok/s  ({min:.2} to {max:.2})  plain {:.2}  ratio {ratio:.2}",
            plain_tok_s.median
        ));
        out::line(&format!(
            "         {accepted} of {drafted} drafted tokens accepted; {tokens} tokens in {runs} runs"
        ));
    }
}

/// Ids with the frequencies of words (Zipf), so that short matches are often coincidences.
pub fn zipf_text(n_vocab: usize, n_tokens: usize, seed: u64) -> Vec<TokenId> {
    let mut state = seed;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    // the frequency of the nth word falls as 1/n
    let n_words = n_vocab.min(2000) as f64;
    (0..n_tokens).map(|_| n_words.powf(uniform()) as TokenId - 1).collect()
}

/// The text with one to three tokens replaced, inserted or deleted in turn.
fn edited(text: &[TokenId]) -> Vec<TokenId> {
    let mut answer = Vec::with_capacity(CONTEXT_TOKENS - TEXT_TOKENS);
    for (at, part) in text.chunks(EDIT_INTERVAL_TOKENS).enumerate() {
        let n = 1 + at / 3 % 3;
        let new = (0..n).map(|i| text[(at * 97 + i * 31 + 7) % text.len()]);
        match at % 3 {
            0 => answer.extend(new.chain(part.iter().skip(n).copied())),
            1 => answer.extend(new.chain(part.iter().copied())),
            _ => answer.extend(part.iter().skip(n)),
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_repeats_most_of_the_text() {
        for n_vocab in [300, 128_256] {
            let text = zipf_text(n_vocab, TEXT_TOKENS, 1);
            let answer = edited(&text);
            assert!(text.iter().all(|&id| (id as usize) < n_vocab));
            assert_eq!(text.len(), TEXT_TOKENS);
            assert!(answer.len() + TEXT_TOKENS < CONTEXT_TOKENS && answer.len() > TEXT_TOKENS * 95 / 100);
            let again: usize =
                answer.windows(8).filter(|&part| text.windows(8).any(|other| other == part)).count();
            assert!((answer.len() * 8 / 10..answer.len() * 95 / 100).contains(&again), "{again}");
        }
    }
}
