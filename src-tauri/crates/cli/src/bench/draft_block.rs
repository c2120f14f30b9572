//! `nook bench --test draft-block`: an answer with the model's own draft block and without.
//!
//! The block drafts and costs what it costs. A script fixes the answer and how often drafts are right, because random
//! weights would never agree.

use contract::Result;
use engine::Scheduler;
use engine::speculate::{DraftLength, DraftSource, Script, Speculation};
use serde::Serialize;

use super::editing::zipf_text;
use super::scripted::{request, run};
use super::speed::{Bench, Spread};
use crate::out;

const PROMPT_TOKENS: usize = 128;
const ANSWER_TOKENS: usize = 256;

/// Upper bound of prompt and answer together, in tokens.
pub const CONTEXT_TOKENS: usize = PROMPT_TOKENS + ANSWER_TOKENS + 1;

/// Both speeds and their ratio.
#[derive(Debug, Serialize)]
struct DraftBlockRow {
    test: String,
    /// With the draft block.
    tok_s: Spread,
    plain_tok_s: Spread,
    /// Median of the ratios of neighboring answers.
    ratio: f64,
    tokens: usize,
    /// Tokens of one answer that were drafted and checked; `accepted` of them were right.
    drafted: usize,
    accepted: usize,
    runs: usize,
}

/// Measures with `right_percent` of the drafts right and at most `longest` tokens in each.
pub fn draft_block(bench: &mut Bench, longest: usize, right_percent: u8) -> Result<()> {
    let n_vocab = bench.model.info().n_vocab;
    let prompt = zipf_text(n_vocab, PROMPT_TOKENS, 1);
    let tokens = zipf_text(n_vocab, ANSWER_TOKENS, 2);
    let drafting = Speculation { source: DraftSource::Block, length: DraftLength::Paying(longest) };
    let seq = bench.model.new_sequence()?;
    let mut scheduler = Scheduler::new();
    let (mut plain, mut drafted, mut last) = (Vec::new(), Vec::new(), None);
    // The first answers are not counted: run costs are learned from them.
    for repetition in 0..=bench.repeat {
        for speculation in [None, Some(drafting)] {
            let script = Script { tokens: tokens.clone(), right_drafts_percent: Some(right_percent) };
            let answered = run(bench, &mut scheduler, request(&prompt, script, seq, speculation))?;
            let tok_s = (tokens.len() - 1) as f64 / answered.seconds.max(1e-9);
            match speculation {
                _ if repetition == 0 => {}
                None => plain.push(tok_s),
                Some(_) => drafted.push(tok_s),
            }
            last = Some(answered);
        }
    }
    bench.model.free(seq);
    let Some(last) = last else { return Ok(()) };
    let ratios = plain.iter().zip(&drafted).map(|(plain, drafted)| drafted / plain).collect();
    let row = DraftBlockRow {
        test: format!("draft{right_percent}"),
        tok_s: Spread::of(drafted),
        plain_tok_s: Spread::of(plain),
        ratio: Spread::of(ratios).median,
        tokens: tokens.len(),
        drafted: last.done.n_drafted,
        accepted: last.done.n_accepted,
        runs: last.n_steps,
    };
    row.show(bench.json);
    Ok(())
}

impl DraftBlockRow {
    fn show(&self, as_json: bool) {
        if as_json {
            return out::json(self);
        }
        let Self { test, tok_s, plain_tok_s, ratio, tokens, drafted, accepted, runs } = self;
        out::line(&format!(
            "{test:<8} draft block {:>9.2} tok/s  ({:.2} to {:.2})  plain {:.2}  ({:.2} to {:.2})  ratio {ratio:.2}",
            tok_s.median, tok_s.min, tok_s.max, plain_tok_s.median, plain_tok_s.min, plain_tok_s.max
        ));
        out::line(&format!(
            "         {accepted} of {drafted} checked drafts right; {tokens} tokens in {runs} runs"
        ));
    }
}
