//! Prefill and decode speed of a model at a given context depth.

use std::sync::Arc;

use contract::Result;
use engine::{Chunk, LogitsSelection, Model, MonotonicClock, SequenceId, SubmissionStats, TokenId};
use inference::profile::{Phase, Profile, Trace};
use io::{Clock, RealClock};
use platform::memory;
use serde::Serialize;

use super::profile::ProfileReport;
use crate::{out, text};

/// Result of one test.
#[derive(Debug, Serialize)]
struct SpeedRow {
    /// `pp512` is a prefill of 512 tokens, `tg128` a decode of 128.
    test: String,
    depth: usize,
    tok_s: Spread,
    /// Bytes of weights, keys and values read from memory per token.
    bytes_per_token: u64,
    gb_s: f64,
    /// Bytes of the full context.
    context_bytes: u64,
    /// Peak memory of the process after a repetition, including mapped weights.
    resident_bytes: Option<u64>,
}

/// Median and limits of repeated measurements: of speeds, or of times.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// Summarizes at least one measurement.
    pub fn of(mut measured: Vec<f64>) -> Self {
        measured.sort_by(f64::total_cmp);
        let middle = measured.len() / 2;
        let median = match measured.len() % 2 {
            0 => (measured[middle - 1] + measured[middle]) / 2.0,
            _ => measured[middle],
        };
        Self { median, min: measured[0], max: measured[measured.len() - 1] }
    }
}

impl SpeedRow {
    fn show(&self, as_json: bool) {
        if as_json {
            return out::json(self);
        }
        let Self { test, depth, tok_s, gb_s, resident_bytes, .. } = self;
        let Spread { median, min, max } = tok_s;
        let held = resident_bytes.map_or(String::new(), |n| format!("  in {}", text::bytes(n)));
        out::line(&format!(
            "{test:<8} depth {depth:<7} {median:>9.2} tok/s  ({min:.2} to {max:.2})  {gb_s:>6.2} GB/s{held}"
        ));
    }
}

/// GPU submissions of one run of a test.
#[derive(Debug, Serialize)]
struct SubmissionRow {
    effort: String,
    depth: usize,
    kernels_per_run: u64,
    /// CPU time for uploads, encoding and submission.
    encoding_ms: f64,
}

impl SubmissionRow {
    fn show(&self, as_json: bool) {
        if as_json {
            return out::json(self);
        }
        let Self { kernels_per_run, encoding_ms, .. } = self;
        out::line(&format!("  {kernels_per_run} kernels per run, encoded in {encoding_ms:.3} ms"));
    }
}

/// A loaded model and the options of its measurement.
pub struct Bench {
    pub model: Model,
    /// Bytes of weights that one token reads.
    pub weight_bytes: u64,
    pub clock: RealClock,
    pub repeat: u32,
    pub copied_depth: bool,
    pub profile: bool,
    /// Records the first profiled repetition of each test.
    pub trace: Option<Trace>,
    pub json: bool,
}

/// Tokens that are run repeatedly from the same depth.
struct SpeedTest {
    name: String,
    depth: usize,
    tokens: Vec<TokenId>,
    /// Tokens per forward pass: the whole prompt, or one.
    at_once: usize,
}

impl SpeedTest {
    fn phase(&self) -> Phase {
        if self.at_once > 1 { Phase::Reading } else { Phase::Writing }
    }
}

/// Number of computed tokens if the rest of the depth is copied.
const MAX_COMPUTED_TOKENS: usize = 1024;

impl Bench {
    /// Measures a prompt of `n` tokens after `depth` others.
    pub fn prefill(&mut self, n: usize, depth: usize) -> Result<()> {
        let n_passes = n.div_ceil(self.model.max_rows()) as u64;
        let bytes = self.weight_bytes * n_passes / n as u64;
        self.test(
            &SpeedTest { name: format!("pp{n}"), depth, tokens: self.tokens(depth, n), at_once: n },
            bytes,
        )
    }

    /// Measures the decode of `n` tokens.
    pub fn decode(&mut self, n: usize, depth: usize) -> Result<()> {
        let context = self.model.kv_bytes_at(depth + n / 2) + self.model.info().kv_fixed_bytes;
        let bytes = self.weight_bytes + context;
        self.test(
            &SpeedTest { name: format!("tg{n}"), depth, tokens: self.tokens(depth, n), at_once: 1 },
            bytes,
        )
    }

    /// Measures after one warm-up repetition, then repeats for the profile if requested.
    fn test(&mut self, test: &SpeedTest, bytes_per_token: u64) -> Result<()> {
        let seq = self.model.new_sequence()?;
        self.deepen(seq, test.depth)?;
        let (mut speeds, mut resident_bytes) = (Vec::new(), None);
        for repetition in 0..=self.repeat {
            let start = self.clock.monotonic();
            self.once(seq, test, None)?;
            if repetition > 0 {
                let seconds = (self.clock.monotonic() - start).as_secs_f64();
                speeds.push(test.tokens.len() as f64 / seconds.max(1e-9));
            }
            resident_bytes = resident_bytes.max(memory::used_bytes());
            self.rewind(seq, test.depth)?;
        }
        let tok_s = Spread::of(speeds);
        let gb_s = tok_s.median * bytes_per_token as f64 / 1e9;
        let context_bytes = self.model.info().kv_bytes.live();
        let (name, depth) = (test.name.clone(), test.depth);
        SpeedRow { test: name, depth, tok_s, bytes_per_token, gb_s, context_bytes, resident_bytes }
            .show(self.json);
        if self.profile {
            let clock = RealClock::new();
            let mut profile = Profile::traced(self.trace.take().map(Trace::next));
            self.model.set_step_timing(true)?;
            for _ in 0..self.repeat {
                self.once(seq, test, Some((&clock, &mut profile)))?;
                // the trace holds one repetition
                self.trace = self.trace.take().or(profile.trace.take());
                self.rewind(seq, depth)?;
            }
            self.model.set_step_timing(false)?;
            let (name, n_repetitions) = (&test.name, self.repeat);
            let report = ProfileReport { test: name, depth, n_repetitions, phase: test.phase() };
            report.show(&profile, self.json);
            self.report_submissions(seq, test)?;
        }
        self.model.free(seq);
        Ok(())
    }

    /// Runs all tokens of a test once.
    fn once(
        &mut self,
        seq: SequenceId,
        test: &SpeedTest,
        mut profile: Option<(&RealClock, &mut Profile)>,
    ) -> Result<()> {
        for tokens in test.tokens.chunks(test.at_once) {
            let chunk = [Chunk { seq, tokens, logits: LogitsSelection::Last }];
            match &mut profile {
                None => self.model.forward(&chunk)?,
                Some((clock, profile)) => {
                    profile.begin(*clock);
                    let logits = self.model.forward_observed(&chunk, &mut |ran| profile.ran(*clock, ran))?;
                    profile.end(*clock, &test.name, test.phase());
                    logits
                }
            };
        }
        Ok(())
    }

    /// Reports GPU submissions per run and the time to encode them. Prints nothing without a GPU.
    fn report_submissions(&mut self, seq: SequenceId, test: &SpeedTest) -> Result<()> {
        let clock = RealClock::new();
        self.model.measure_submissions(Some(&(Arc::new(move || clock.monotonic()) as MonotonicClock)));
        for _ in 0..self.repeat {
            self.once(seq, test, None)?;
            self.rewind(seq, test.depth)?;
        }
        self.model.measure_submissions(None);
        let SubmissionStats { n_runs, n_kernels, time } = self.model.submission_stats();
        if n_runs == 0 {
            return Ok(());
        }
        let encoding_ms = time.as_secs_f64() * 1e3 / n_runs as f64;
        let (effort, depth) = (test.name.clone(), test.depth);
        let row = SubmissionRow { effort, depth, kernels_per_run: n_kernels / n_runs, encoding_ms };
        row.show(self.json);
        Ok(())
    }

    /// Rewinds the sequence to the depth of the test.
    fn rewind(&mut self, seq: SequenceId, depth: usize) -> Result<()> {
        if self.model.truncate(seq, depth)? < depth {
            self.model.truncate(seq, 0)?;
            self.deepen(seq, depth)?;
        }
        Ok(())
    }

    /// Fills an empty sequence with `depth` tokens and saves a rewind point.
    fn deepen(&mut self, seq: SequenceId, depth: usize) -> Result<()> {
        let n_computed = if self.copied_depth { depth.min(MAX_COMPUTED_TOKENS) } else { depth };
        let before = self.tokens(0, n_computed);
        self.model.forward(&[Chunk { seq, tokens: &before, logits: LogitsSelection::None }])?;
        if n_computed < depth {
            self.model.fill_with_copies(seq, depth)?;
        }
        Ok(self.model.save_rewind_point(seq)?)
    }

    /// `n` pseudo-random but reproducible ids.
    pub fn tokens(&self, from: usize, n: usize) -> Vec<TokenId> {
        let n_vocab = self.model.info().n_vocab as u64;
        let id = |at: usize| ((at as u64 * 7919 + 17) % n_vocab) as TokenId;
        (from..from + n).map(id).collect()
    }
}
