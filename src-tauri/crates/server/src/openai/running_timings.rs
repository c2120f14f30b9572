//! Times of an answer while it is written, in llama.cpp's form.

use std::time::Duration;

use io::{Clock, RealClock};
use serde_json::{Value, json};

/// A clock that starts with the answer.
pub struct AnswerClock {
    clock: RealClock,
    timings: RunningTimings,
}

impl AnswerClock {
    pub fn start() -> Self {
        let clock = RealClock::new();
        let timings = RunningTimings { started: clock.monotonic(), ..RunningTimings::default() };
        Self { clock, timings }
    }

    /// Notes how much of the prompt was read.
    pub fn note_prompt(&mut self, done: u32, total: u32) {
        self.timings.note_prompt(done, total);
    }

    /// Notes `n` tokens of the answer and returns the times so far.
    pub fn note_tokens(&mut self, n: usize) -> Value {
        self.timings.note_tokens(n, self.clock.monotonic())
    }
}

#[derive(Debug, Default)]
struct RunningTimings {
    started: Duration,
    first_token: Option<Duration>,
    /// Tokens of the prompt that were cached, once it is known.
    n_cached: Option<u32>,
    n_prompt: u32,
    n_predicted: usize,
}

impl RunningTimings {
    fn note_prompt(&mut self, done: u32, total: u32) {
        self.n_cached.get_or_insert(done);
        self.n_prompt = total;
    }

    fn note_tokens(&mut self, n: usize, now: Duration) -> Value {
        let first = *self.first_token.get_or_insert(now);
        self.n_predicted += n;
        let n_cached = self.n_cached.unwrap_or(0);
        let n_read = self.n_prompt.saturating_sub(n_cached);
        let prompt = first.saturating_sub(self.started);
        let predicted = now.saturating_sub(first);
        let rate = |n: f64, time: Duration| if time.is_zero() { 0.0 } else { n / time.as_secs_f64() };
        // The first token belongs to the prompt's time.
        let n_after_first = self.n_predicted.saturating_sub(1) as f64;
        json!({
            "cache_n": n_cached,
            "prompt_n": n_read,
            "prompt_ms": prompt.as_secs_f64() * 1000.0,
            "prompt_per_second": rate(f64::from(n_read), prompt),
            "predicted_n": self.n_predicted,
            "predicted_ms": predicted.as_secs_f64() * 1000.0,
            "predicted_per_second": rate(n_after_first, predicted),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_ends_with_the_first_token() {
        let mut timings = RunningTimings { started: Duration::from_secs(1), ..RunningTimings::default() };
        timings.note_prompt(10, 30);
        timings.note_prompt(30, 30);
        let first = timings.note_tokens(1, Duration::from_secs(3));
        assert_eq!(
            (&first["cache_n"], &first["prompt_n"], &first["prompt_ms"]),
            (&json!(10), &json!(20), &json!(2000.0))
        );
        assert_eq!(
            (&first["prompt_per_second"], &first["predicted_per_second"]),
            (&json!(10.0), &json!(0.0))
        );
        let later = timings.note_tokens(4, Duration::from_secs(4));
        assert_eq!((&later["predicted_n"], &later["predicted_per_second"]), (&json!(5), &json!(4.0)));
    }
}
