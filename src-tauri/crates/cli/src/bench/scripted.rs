//! Answers that a script fixes, so that models with random weights can be measured, too. Everything else is real: drafts are
//! verified and rolled back, and the sampler runs.

use contract::{Error, Result};
use engine::speculate::{Script, Speculation};
use engine::{GenEvent, GenerationStats, Request, Sampling, Scheduler, SequenceId, TokenId};
use io::Clock;

use super::speed::Bench;

/// Result of one answer.
pub struct ScriptedRun {
    /// From the first token to the last.
    pub seconds: f64,
    pub done: GenerationStats,
    /// Runs of the model after the first token.
    pub n_steps: usize,
}

/// A request for an answer of these tokens.
pub fn request(
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
pub fn run(bench: &mut Bench, scheduler: &mut Scheduler, request: Request) -> Result<ScriptedRun> {
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
