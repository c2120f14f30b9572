//! `nook bench --test concurrent`: many conversations at once for a given time, compared with one after another.
//!
//! Reports tokens per second with and without prefill, the longest gap between tokens, failures and memory growth.

use std::collections::BTreeMap;
use std::time::Duration;

use contract::Error;
use contract::Result;
use engine::speculate::Script;
use engine::{GenEvent, Request, Sampling, Scheduler};
use io::Clock;
use platform::memory;
use serde::Serialize;

use super::speed::Bench;
use crate::out;

/// Number of simultaneous conversations.
pub const N_TOGETHER: usize = 32;

/// Length of the questions; every `LONG_EVERY`th is long.
const PROMPT_TOKENS: usize = 48;
const LONG_PROMPT_TOKENS: usize = 384;
const LONG_EVERY: u64 = 8;

/// Length of each answer.
const ANSWER_TOKENS: usize = 96;

/// Context of one conversation, in tokens.
pub const CONTEXT_TOKENS: usize = LONG_PROMPT_TOKENS + ANSWER_TOKENS + 1;

/// Divisor of the time for the sequential baseline, whose speed varies less.
const ALONE_SHARE: u32 = 5;

/// Result with one number of simultaneous conversations.
#[derive(Debug, Serialize)]
struct ConcurrentRow {
    test: &'static str,
    conversations: usize,
    seconds: f64,
    answers: u64,
    failures: u64,
    /// Generated tokens, without prompts.
    tokens: u64,
    prompt_tokens: u64,
    /// Over the whole run, with prompts, start and the final drain.
    tok_s: f64,
    /// Only over steps in which every conversation decodes.
    decode_tok_s: f64,
    decode_seconds: f64,
    /// Longest time between two tokens of one answer.
    longest_gap_ms: f64,
    /// Peak memory of this process in the second and the last tenth of the run.
    memory_mb: [Option<f64>; 2],
}

pub fn concurrent(bench: &mut Bench, seconds: u32) -> Result<()> {
    let alone = converse(bench, 1, Duration::from_secs(seconds.into()) / ALONE_SHARE)?;
    let together = converse(bench, N_TOGETHER, Duration::from_secs(seconds.into()))?;
    let failures = alone.failures + together.failures;
    for row in [&alone, &together] {
        if bench.json {
            out::json(row);
            continue;
        }
        let [early, late] = row.memory_mb.map(|mb| mb.map_or_else(|| "?".into(), |mb| format!("{mb:.0}")));
        out::line(&format!(
            "{:<3} at once {:>9.1} tok/s decode  {:>9.1} with prompts  longest gap {:>6.0} ms  {} answers, {} failures, \
             memory {early} then {late} MB",
            row.conversations, row.decode_tok_s, row.tok_s, row.longest_gap_ms, row.answers, row.failures,
        ));
    }
    if !bench.json {
        let times = |of: fn(&ConcurrentRow) -> f64| of(&together) / of(&alone).max(1e-9);
        out::line(&format!(
            "together {:.2} times the speed of one after another, {:.2} with prompts",
            times(|row| row.decode_tok_s),
            times(|row| row.tok_s)
        ));
    }
    match failures {
        0 => Ok(()),
        n => Err(Error::bug(format!("{n} answers failed"))),
    }
}

/// Counters of a run.
#[derive(Default)]
struct RunCounts {
    answers: u64,
    failures: u64,
    tokens: u64,
    prompt_tokens: u64,
    decoded: u64,
    decoding: Duration,
    gap: Duration,
    memory: [Option<u64>; 2],
}

impl RunCounts {
    /// Samples memory after an answer, `now` after the start of a run that lasts `long`.
    fn sample_memory(&mut self, now: Duration, long: Duration) {
        let phase = match now.as_secs_f64() / long.as_secs_f64() {
            0.1..0.2 => 0,
            0.9..1.0 => 1,
            _ => return,
        };
        self.memory[phase] = self.memory[phase].max(memory::used_bytes());
    }
}

/// Keeps `n_together` conversations running until the time is over, then drains them.
fn converse(bench: &mut Bench, n_together: usize, long: Duration) -> Result<ConcurrentRow> {
    let mut scheduler = Scheduler::new();
    let mut counts = RunCounts::default();
    let mut next = 0;
    // time of the last token of each running conversation
    let mut last: BTreeMap<u64, Option<Duration>> = BTreeMap::new();
    let start = bench.clock.monotonic();
    loop {
        let before = bench.clock.monotonic();
        let goes_on = before - start < long;
        while last.len() < n_together && goes_on {
            last.insert(next, None);
            scheduler.submit(request(bench, next))?;
            next += 1;
        }
        if last.is_empty() {
            break;
        }
        let (mut ended, mut sampled, mut reads) = (Vec::new(), 0, false);
        let clock = &bench.clock;
        scheduler.step(&mut bench.model, &mut |id, event| match event {
            GenEvent::Prefill { .. } => reads = true,
            GenEvent::Token { .. } => {
                let now = clock.monotonic();
                if let Some(at) = last.insert(id, Some(now)).flatten() {
                    counts.gap = counts.gap.max(now - at);
                }
                sampled += 1;
            }
            GenEvent::Done(done) => ended.push((id, done.n_prompt as u64, 0)),
            GenEvent::Failed(_) => ended.push((id, 0, 1)),
        });
        let now = bench.clock.monotonic();
        scheduler.record_step((now - before).as_secs_f32());
        counts.tokens += sampled;
        if !reads && sampled == n_together as u64 {
            counts.decoded += sampled;
            counts.decoding += now - before;
        }
        for (id, n_prompt, n_failed) in ended {
            last.remove(&id);
            counts.answers += 1;
            counts.prompt_tokens += n_prompt;
            counts.failures += n_failed;
            if goes_on {
                counts.sample_memory(now - start, long);
            }
        }
    }
    Ok(row(n_together, (bench.clock.monotonic() - start).as_secs_f64(), &counts))
}

fn row(conversations: usize, seconds: f64, counts: &RunCounts) -> ConcurrentRow {
    let RunCounts { answers, failures, tokens, prompt_tokens, decoded, decoding, gap, memory } = *counts;
    let decode_seconds = decoding.as_secs_f64();
    ConcurrentRow {
        test: "concurrent",
        conversations,
        seconds,
        answers,
        failures,
        tokens,
        prompt_tokens,
        tok_s: tokens as f64 / seconds.max(1e-9),
        decode_tok_s: decoded as f64 / decode_seconds.max(1e-9),
        decode_seconds,
        longest_gap_ms: gap.as_secs_f64() * 1e3,
        memory_mb: memory.map(|bytes| bytes.map(|bytes| bytes as f64 / 1e6)),
    }
}

fn request(bench: &Bench, id: u64) -> Request {
    let n = if id % LONG_EVERY == LONG_EVERY - 1 { LONG_PROMPT_TOKENS } else { PROMPT_TOKENS };
    // each conversation starts at another offset into the same tokens
    let skipped = (id % 64) as usize;
    Request {
        id,
        prompt: bench.tokens(skipped, n),
        sequence: None,
        sampling: Sampling { temperature: 0.0, ..Sampling::default() },
        max_tokens: Some(ANSWER_TOKENS),
        stop: Vec::new(),
        ignore_eos: true,
        markup_tokens: Vec::new(),
        budget: None,
        speculation: None,
        script: Script::default(),
        constraint: None,
        logprobs: None,
        resumed: Vec::new(),
    }
}
