//! Steps on a line of time, as files that Perfetto (ui.perfetto.dev) and chrome://tracing open: the "Trace Event Format"
//! of Chrome, complete events in microseconds.

use std::path::Path;
use std::time::Duration;

use api::Result;
use io::{Io, RealIo};
use kernels::Ran;
use serde_json::{Value, json};

/// Who worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    Runs,
    Processor,
    Card,
}

impl Line {
    const ALL: [Self; 3] = [Self::Runs, Self::Processor, Self::Card];

    fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Processor => "processor",
            Self::Card => "graphics card",
        }
    }
}

/// Events of all tests, one after another.
#[derive(Debug, Default)]
pub struct Trace {
    events: Vec<Value>,
    /// When the test began whose events come now: each has a clock of its own.
    began: Duration,
    /// When the last event ended.
    ended: Duration,
}

impl Trace {
    /// Another test follows.
    pub fn next(self) -> Self {
        Self { began: self.ended, ..self }
    }

    /// A run of some tokens, everything included.
    pub fn run(&mut self, test: &str, start: Duration, end: Duration) {
        self.event(Line::Runs, test, "run", (start, end), json!({}));
    }

    pub fn step(&mut self, line: Line, ran: &Ran, start: Duration, end: Duration) {
        let cost = ran.cost();
        let more = json!({ "what": ran.what(), "bytes": cost.bytes, "ops": cost.ops });
        self.event(line, ran.name(), ran.operation(), (start, end), more);
    }

    fn event(&mut self, line: Line, name: &str, kind: &str, (start, end): (Duration, Duration), more: Value) {
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        let (start, end) = (self.began + start, self.began + end);
        self.ended = self.ended.max(end);
        let took = micros(end.saturating_sub(start));
        self.events.push(json!({
            "name": name, "cat": kind, "ph": "X", "pid": 1, "tid": line as u32,
            "ts": micros(start), "dur": took, "args": more,
        }));
    }

    /// Errors: the file can't be written.
    pub fn save(self, path: &Path) -> Result<()> {
        let named = |line: Line| {
            let name = json!({ "name": line.name() });
            json!({ "name": "thread_name", "ph": "M", "pid": 1, "tid": line as u32, "args": name })
        };
        let events: Vec<Value> = Line::ALL.into_iter().map(named).chain(self.events).collect();
        let whole = json!({ "traceEvents": events, "displayTimeUnit": "ms" });
        Ok(RealIo.write_atomic(path, whole.to_string().as_bytes())?)
    }
}
