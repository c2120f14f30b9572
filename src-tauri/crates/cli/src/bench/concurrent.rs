//! `nook bench --test concurrent`: many conversations at once, for so long, against one after another: tokens a second
//! of all together, the longest wait for a next token, failures, and whether memory stays.

use std::time::Duration;

use api::{Error, Result, resident};
use engine::{GenEvent, Request, Sampling, Scheduler};
use io::Clock;
use serde::Serialize;

use super::speed::Bench;
use crate::out;

/// Conversations at once.
pub const TOGETHER: usize = 32;

/// Tokens of each question; questions differ, and some are long.
const PROMPT: usize = 48;
const LONG_PROMPT: usize = 384;
const LONG_EVERY: u64 = 8;

/// Tokens of each answer.
const ANSWER: usize = 96;

/// Tokens that a conversation of the benchmark needs.
pub const CONTEXT: usize = LONG_PROMPT + ANSWER + 1;

/// One after another goes on for this share of the time; it is as steady.
const ALONE_SHARE: u32 = 5;

/// Conversations one way, or the other.
#[derive(Debug, Serialize)]
struct Row {
    test: &'static str,
    conversations: usize,
    seconds: f64,
    answers: u64,
    failures: u64,
    tokens: u64,
    tok_s: f64,
    /// Between two tokens of one answer, while others begin and end.
    longest_gap_ms: f64,
    /// Of this process after its first tenth, and at the end.
    memory_mb: [Option<f64>; 2],
}

pub fn concurrent(bench: &mut Bench, seconds: u32) -> Result<()> {
    let alone = converse(bench, 1, Duration::from_secs(seconds.into()) / ALONE_SHARE)?;
    let together = converse(bench, TOGETHER, Duration::from_secs(seconds.into()))?;
    let times = together.tok_s / alone.tok_s.max(1e-9);
    let failures = alone.failures + together.failures;
    for row in [&alone, &together] {
        if bench.json {
            out::json(row);
        } else {
            out::line(&format!(
                "{:<3} at once {:>9.1} tok/s  longest gap {:>6.0} ms  {} answers, {} failures, memory {} MB",
                row.conversations,
                row.tok_s,
                row.longest_gap_ms,
                row.answers,
                row.failures,
                row.memory_mb[1].map_or_else(|| "?".into(), |mb| format!("{mb:.0}")),
            ));
        }
    }
    if !bench.json {
        out::line(&format!("together {times:.2} times as many tokens as one after another"));
    }
    match failures {
        0 => Ok(()),
        n => Err(Error::bug(format!("{n} answers failed"))),
    }
}

/// Always so many conversations, a new one where one ends, until the time is over and all have ended.
fn converse(bench: &mut Bench, n_together: usize, long: Duration) -> Result<Row> {
    let mut scheduler = Scheduler::new();
    let (mut next, mut answers, mut failures, mut tokens) = (0, 0, 0, 0);
    let mut last = [Duration::ZERO; TOGETHER];
    let mut names: Vec<u64> = Vec::with_capacity(n_together);
    let mut gap = Duration::ZERO;
    let mut early = None;
    let start = bench.clock.monotonic();
    loop {
        let now = bench.clock.monotonic();
        if early.is_none() && now - start >= long / 10 {
            early = resident::used_bytes();
        }
        while names.len() < n_together && now - start < long {
            names.push(next);
            scheduler.submit(request(bench, next))?;
            next += 1;
        }
        if names.is_empty() {
            break;
        }
        let before = bench.clock.monotonic();
        let mut ended = Vec::new();
        scheduler.step(&mut bench.model, &mut |id, event| match event {
            GenEvent::Prefill { .. } => {}
            GenEvent::Token { .. } => {
                let now = bench.clock.monotonic();
                let at = &mut last[id as usize % TOGETHER];
                if *at > Duration::ZERO {
                    gap = gap.max(now - *at);
                }
                *at = now;
                tokens += 1;
            }
            GenEvent::Done(_) => ended.push((id, false)),
            GenEvent::Failed(_) => ended.push((id, true)),
        });
        scheduler.took((bench.clock.monotonic() - before).as_secs_f32());
        for (id, has_failed) in ended {
            names.retain(|name| *name != id);
            // the place is the next one's
            last[id as usize % TOGETHER] = Duration::ZERO;
            answers += 1;
            failures += u64::from(has_failed);
        }
    }
    let seconds = (bench.clock.monotonic() - start).as_secs_f64();
    let mb = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / 1e6);
    Ok(Row {
        test: "concurrent",
        conversations: n_together,
        seconds,
        answers,
        failures,
        tokens,
        tok_s: tokens as f64 / seconds.max(1e-9),
        longest_gap_ms: gap.as_secs_f64() * 1e3,
        memory_mb: [mb(early), mb(resident::used_bytes())],
    })
}

fn request(bench: &Bench, id: u64) -> Request {
    let n = if id % LONG_EVERY == LONG_EVERY - 1 { LONG_PROMPT } else { PROMPT };
    // each conversation begins elsewhere in the same tokens
    let skipped = (id % 64) as usize;
    Request {
        id,
        prompt: bench.tokens(skipped, n),
        sequence: None,
        sampling: Sampling { temperature: 0.0, ..Sampling::default() },
        max_tokens: Some(ANSWER),
        stop: Vec::new(),
        ignore_eos: true,
        marks: Vec::new(),
        budget: None,
        speculation: None,
        script: Vec::new(),
        resumed: Vec::new(),
    }
}
