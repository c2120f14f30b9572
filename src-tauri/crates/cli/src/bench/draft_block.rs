//! `nook bench --test draft-block`: an answer with the model's own draft block and without.
//!
//! The block drafts and costs what it costs. A script fixes the answer and how often drafts are right, because random
//! weights would never agree.

use contract::Result;
use engine::speculate::{DraftLength, DraftSource, Script, Speculation};

use super::scripted::{measure, zipf_text};
use super::speed::Bench;

const PROMPT_TOKENS: usize = 128;
const ANSWER_TOKENS: usize = 256;

/// Upper bound of prompt and answer together, in tokens.
pub const CONTEXT_TOKENS: usize = PROMPT_TOKENS + ANSWER_TOKENS + 1;

/// Measures with `right_percent` of the drafts right and at most `longest` tokens in each.
pub fn draft_block(bench: &mut Bench, longest: usize, right_percent: u8) -> Result<()> {
    let n_vocab = bench.model.info().n_vocab;
    let prompt = zipf_text(n_vocab, PROMPT_TOKENS, 1);
    let tokens = zipf_text(n_vocab, ANSWER_TOKENS, 2);
    let answer = Script { tokens, right_drafts_percent: Some(right_percent) };
    let speculation = Speculation { source: DraftSource::Block, length: DraftLength::Paying(longest) };
    measure(bench, format!("draft{right_percent}"), (&prompt, &answer), speculation)
}
