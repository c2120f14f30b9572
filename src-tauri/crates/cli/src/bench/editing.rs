//! `nook bench --test editing`: an answer that repeats most of its prompt, with speculative decoding and without.
//!
//! A script fixes the answer. Drafts come from prompt lookup.

use contract::Result;
use engine::TokenId;
use engine::speculate::{DraftLength, DraftSource, Script, Speculation};

use super::scripted::{measure, zipf_text};
use super::speed::Bench;

/// Length of the edited text.
pub const TEXT_TOKENS: usize = 1000;

/// Distance between two edits.
const EDIT_INTERVAL_TOKENS: usize = 80;

/// Upper bound of prompt and answer together, in tokens.
pub const CONTEXT_TOKENS: usize = 2 * TEXT_TOKENS + 4 * (TEXT_TOKENS / EDIT_INTERVAL_TOKENS) + 1;

/// Measures with at most `longest` tokens in a draft.
pub fn editing(bench: &mut Bench, longest: usize) -> Result<()> {
    let text = zipf_text(bench.model.info().n_vocab, TEXT_TOKENS, 1);
    let answer = Script::from(edited(&text));
    let speculation = Speculation { source: DraftSource::Lookup, length: DraftLength::Paying(longest) };
    measure(bench, format!("edit{TEXT_TOKENS}"), (&text, &answer), speculation)
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
