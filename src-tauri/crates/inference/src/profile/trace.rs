//! Steps on a timeline, for Perfetto (ui.perfetto.dev) and chrome://tracing: Chrome's "Trace Event
//! Format", complete events in microseconds.

use std::collections::HashMap;
use std::time::Duration;

use kernels::StepProfile;
use serde_json::{Value, json};

/// Who worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Line {
    Runs,
    Processor,
    Gpu,
}

impl Line {
    const ALL: [Self; 3] = [Self::Runs, Self::Processor, Self::Gpu];

    fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Processor => "processor",
            Self::Gpu => "GPU",
        }
    }
}

/// Events of all runs, one after another.
#[derive(Debug)]
pub struct Trace {
    events: Vec<Event>,
    /// names of steps and of what they do, each once
    words: Vec<String>,
    known: HashMap<String, u32>,
    /// events that are kept
    most: usize,
    n_left_out: u64,
    /// Start of the section whose events follow: each section has a separate clock.
    began: Duration,
    /// of that clock
    origin: Duration,
    /// When the last event ended.
    ended: Duration,
}

#[derive(Debug)]
struct Event {
    line: Line,
    /// of `words`
    name: u32,
    kind: &'static str,
    /// of `words`; None: a run
    what: Option<u32>,
    bytes: u64,
    ops: u64,
    start: Duration,
    end: Duration,
}

impl Trace {
    /// Keeps at most `most` events; later ones are only counted.
    pub fn of(most: usize) -> Self {
        Self {
            events: Vec::new(),
            words: Vec::new(),
            known: HashMap::new(),
            most,
            n_left_out: 0,
            began: Duration::ZERO,
            origin: Duration::ZERO,
            ended: Duration::ZERO,
        }
    }

    /// Another part follows, by another clock.
    pub fn next(self) -> Self {
        Self { began: self.ended, origin: Duration::ZERO, ..self }
    }

    /// Makes the clock's times relative to `origin`.
    pub fn since(self, origin: Duration) -> Self {
        Self { origin, ..self }
    }

    /// Events that came when there was no room left.
    pub fn n_left_out(&self) -> u64 {
        self.n_left_out
    }

    /// A run of some tokens, everything included.
    pub fn run(&mut self, name: &str, start: Duration, end: Duration) {
        let Some(name) = self.room_for(name) else { return };
        let (line, kind, what) = (Line::Runs, "run", None);
        self.push(Event { line, name, kind, what, bytes: 0, ops: 0, start, end });
    }

    pub fn step(&mut self, line: Line, ran: &StepProfile, start: Duration, end: Duration) {
        let Some(name) = self.room_for(ran.name()) else { return };
        let (what, cost) = (self.word(&ran.label()), ran.cost());
        let (kind, what) = (ran.operation(), Some(what));
        self.push(Event { line, name, kind, what, bytes: cost.bytes, ops: cost.ops, start, end });
    }

    fn room_for(&mut self, name: &str) -> Option<u32> {
        if self.events.len() < self.most {
            return Some(self.word(name));
        }
        self.n_left_out += 1;
        None
    }

    fn push(&mut self, event: Event) {
        let at = |time: Duration| self.began + time.saturating_sub(self.origin);
        let (start, end) = (at(event.start), at(event.end));
        self.ended = self.ended.max(end);
        self.events.push(Event { start, end, ..event });
    }

    fn word(&mut self, text: &str) -> u32 {
        if let Some(at) = self.known.get(text) {
            return *at;
        }
        let at = u32::try_from(self.words.len()).expect("fewer than 2^32 names fit into memory");
        self.known.insert(text.to_owned(), at);
        self.words.push(text.to_owned());
        at
    }

    /// One value of JSON: a file's whole content.
    pub fn to_json(&self) -> String {
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        let named = |line: Line| {
            let name = json!({ "name": line.name() });
            json!({ "name": "thread_name", "ph": "M", "pid": 1, "tid": line as u32, "args": name })
        };
        let told = |event: &Event| {
            let args = match event.what {
                None => json!({}),
                Some(what) => {
                    let what = &self.words[what as usize];
                    json!({ "what": what, "bytes": event.bytes, "ops": event.ops })
                }
            };
            json!({
                "name": self.words[event.name as usize], "cat": event.kind, "ph": "X", "pid": 1,
                "tid": event.line as u32, "ts": micros(event.start),
                "dur": micros(event.end.saturating_sub(event.start)), "args": args,
            })
        };
        let events: Vec<Value> =
            Line::ALL.into_iter().map(named).chain(self.events.iter().map(told)).collect();
        json!({ "traceEvents": events, "displayTimeUnit": "ms" }).to_string()
    }
}
