//! Answers that a script fixes, with speculative decoding and without, so that models with random weights can be measured,
//! too. Everything else is real: drafts are verified and rolled back, and the sampler runs.

use contract::{Error, Result};
use engine::speculate::{Script, Speculation};
use engine::{GenEvent, GenerationStats, Request, Sampling, Scheduler, SequenceId, TokenId};
use io::Clock;
use serde::Serialize;

use super::speed::{Bench, Spread};
use crate::out;

/// Length of the first, uncounted answer of each kind.
const WARM_UP_TOKENS: usize = 100;

/// Both speeds and their ratio.
#[derive(Debug, Serialize)]
struct SpeculationRow {
    test: String,
    /// Tokens of the prompt.
    depth: usize,
    /// With speculative decoding.
    tok_s: Spread,
    plain_tok_s: Spread,
    ratio: f64,
    tokens: usize,
    /// Drafted tokens of one answer that were checked; `accepted` of them were right.
    drafted: usize,
    accepted: usize,
    runs: usize,
}

/// Result of one answer.
struct ScriptedRun {
    /// From the first token to the last.
    seconds: f64,
    done: GenerationStats,
    /// Runs of the model after the first token.
    n_steps: usize,
}

/// Measures an answer with speculation and without, by turns, and shows both.
pub fn measure(
    bench: &mut Bench,
    test: String,
    (prompt, answer): (&[TokenId], &Script),
    speculation: Speculation,
) -> Result<()> {
    let seq = bench.model.new_sequence()?;
    let mut scheduler = Scheduler::new();
    let (mut plain, mut speculative, mut last) = (Vec::new(), Vec::new(), None);
    for repetition in 0..=bench.repeat {
        for speculation in [None, Some(speculation)] {
            let mut script = answer.clone();
            if repetition == 0 {
                script.tokens.truncate(WARM_UP_TOKENS);
            }
            let answered = run(bench, &mut scheduler, request(prompt, script, seq, speculation))?;
            let tok_s = (answer.tokens.len() - 1) as f64 / answered.seconds.max(1e-9);
            match speculation {
                _ if repetition == 0 => {}
                None => plain.push(tok_s),
                Some(_) => speculative.push(tok_s),
            }
            last = Some(answered);
        }
    }
    bench.model.free(seq);
    let Some(ScriptedRun { done, n_steps, .. }) = last else { return Ok(()) };
    let (tok_s, plain_tok_s) = (Spread::of(speculative), Spread::of(plain));
    let row = SpeculationRow {
        test,
        depth: prompt.len(),
        tok_s,
        plain_tok_s,
        ratio: tok_s.median / plain_tok_s.median,
        tokens: answer.tokens.len(),
        drafted: done.n_drafted,
        accepted: done.n_accepted,
        runs: n_steps,
    };
    row.show(bench.json);
    Ok(())
}

impl SpeculationRow {
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

/// A request for an answer of these tokens.
fn request(
    prompt: &[TokenId],
    script: Script,
    sequence: SequenceId,
    speculation: Option<Speculation>,
) -> Request {
    Request {
        id: 0,
        prompt: prompt.to_vec(),
        sequence: Some(sequence),
        sampling: Sampling { seed: Some(1), ..Sampling::default() },
        max_tokens: Some(script.tokens.len()),
        stop: Vec::new(),
        ignore_eos: true,
        markup_tokens: Vec::new(),
        budget: None,
        speculation,
        script,
        constraint: None,
        logprobs: None,
        resumed: Vec::new(),
    }
}

/// Runs one answer; its time is from the first token to the last.
fn run(bench: &mut Bench, scheduler: &mut Scheduler, request: Request) -> Result<ScriptedRun> {
    let Bench { model, clock, .. } = bench;
    scheduler.submit(request)?;
    let (mut first, mut last, mut ended, mut n_steps) = (None, None, None, 0);
    while ended.is_none() {
        let start = clock.monotonic();
        let has_begun = first.is_some();
        scheduler.step(model, &mut |_, event| match event {
            GenEvent::Prefill { .. } => {}
            GenEvent::Token { .. } => {
                let now = clock.monotonic();
                first.get_or_insert(now);
                last = Some(now);
            }
            GenEvent::Done(done) => ended = Some(Ok(done)),
            GenEvent::Failed(error) => ended = Some(Err(error)),
        });
        scheduler.record_step((clock.monotonic() - start).as_secs_f32());
        n_steps += usize::from(has_begun);
    }
    let done = ended.transpose()?.ok_or_else(|| Error::bug("an answer without an end"))?;
    let seconds = last.zip(first).map_or(0.0, |(last, first)| (last - first).as_secs_f64());
    Ok(ScriptedRun { seconds, done, n_steps })
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
