//! `nook bench --sustained`: speed by minute, to show thermal and power throttling.

use std::time::Duration;

use contract::Result;
use engine::{Chunk, LogitsSelection, SequenceId};
use io::Clock;
use serde::Serialize;

use super::speed::Bench;
use crate::out;

/// Length of one answer in tokens; each starts with an empty context.
pub const TURN_TOKENS: usize = 256;

const MINUTE: Duration = Duration::from_secs(60);

/// One minute, or the rest of the time.
#[derive(Debug, Serialize)]
struct SustainedRow {
    test: &'static str,
    /// Counted from 1.
    minute: u32,
    seconds: f64,
    tokens: u64,
    tok_s: f64,
    /// Share of the first minute's speed, from 0.
    kept: f64,
}

pub fn sustained(bench: &mut Bench, seconds: u32) -> Result<()> {
    let seq = bench.model.new_sequence()?;
    answer(bench, seq, Duration::ZERO)?; // warm-up
    let until = bench.clock.monotonic() + Duration::from_secs(seconds.into());
    let (mut minute, mut first) = (1, None);
    let mut start = bench.clock.monotonic();
    while start < until {
        let end = (start + MINUTE).min(until);
        let mut tokens = 0;
        while bench.clock.monotonic() < end {
            tokens += answer(bench, seq, end)?;
        }
        let now = bench.clock.monotonic();
        let seconds = (now - start).as_secs_f64();
        let tok_s = tokens as f64 / seconds.max(1e-9);
        let kept = tok_s / *first.get_or_insert(tok_s);
        let row = SustainedRow { test: "sustained", minute, seconds, tokens, tok_s, kept };
        if bench.json {
            out::json(&row);
        } else {
            let percent = kept * 100.0;
            out::line(&format!("minute {minute:<4} {tok_s:>9.2} tok/s  {percent:>6.1} % of the first"));
        }
        (minute, start) = (minute + 1, now);
    }
    bench.model.free(seq);
    Ok(())
}

/// Decodes until the answer or the time ends. Returns the number of tokens, at least 1.
fn answer(bench: &mut Bench, seq: SequenceId, end: Duration) -> Result<u64> {
    let mut n_done = 0;
    for token in bench.tokens(0, TURN_TOKENS) {
        bench.model.forward(&[Chunk { seq, tokens: &[token], logits: LogitsSelection::Last }])?;
        n_done += 1;
        if bench.clock.monotonic() >= end {
            break;
        }
    }
    bench.model.truncate(seq, 0)?;
    Ok(n_done)
}
