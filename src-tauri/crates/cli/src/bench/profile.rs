//! Where the time of a test goes: time, bytes and arithmetic of each operation, steps of all layers that do the same
//! taken together. The clock is read between steps, outside of them; of a graphics card it is the card's own, and
//! nothing is waited for between steps.

use std::collections::HashMap;
use std::time::Duration;

use io::Clock;
use kernels::{Cost, Ran};
use serde::Serialize;

use super::trace::{Line, Trace};
use crate::{out, text};

/// One operation of a test.
#[derive(Debug, Serialize)]
struct Row {
    profile: String,
    depth: usize,
    op: &'static str,
    what: String,
    /// In one repetition of the test.
    calls: f64,
    /// In one repetition of the test.
    ms: f64,
    /// Of the test's time, between 0 and 1.
    share: f64,
    us_per_call: f64,
    bytes_per_call: u64,
    gb_s: f64,
    ops_per_call: u64,
    gops: f64,
}

/// Steps that do the same.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    calls: u64,
    time: Duration,
    cost: Cost,
}

/// Gathers over repetitions.
pub struct Profile<'a> {
    clock: &'a dyn Clock,
    steps: HashMap<(&'static str, String), Sums>,
    /// When the run began.
    began: Duration,
    /// When the last step ended, or was told of.
    last: Duration,
    /// When the steps began that a card tells of at their end.
    of_card: Duration,
    total: Duration,
    /// Of these runs, if that is wanted.
    pub trace: Option<Trace>,
}

impl<'a> Profile<'a> {
    pub fn new(clock: &'a dyn Clock) -> Self {
        let now = clock.monotonic();
        let (steps, total) = (HashMap::new(), Duration::ZERO);
        Self { clock, steps, began: now, last: now, of_card: now, total, trace: None }
    }

    /// A run begins after something that isn't counted.
    pub fn begin(&mut self) {
        self.began = self.clock.monotonic();
        (self.last, self.of_card) = (self.began, self.began);
    }

    /// A step has run since the last one, or since `begin`; or it is one of several that a card ran since then.
    pub fn ran(&mut self, ran: &Ran) {
        let now = self.clock.monotonic();
        self.total += now - self.last;
        let (line, start, end) = match ran.span() {
            None => (Line::Processor, self.last, now),
            Some(span) => {
                if span.start.is_zero() {
                    self.of_card = self.last;
                }
                (Line::Card, self.of_card + span.start, self.of_card + span.end)
            }
        };
        let sums = self.steps.entry((ran.operation(), ran.what())).or_default();
        let cost = sums.cost + ran.cost();
        *sums = Sums { calls: sums.calls + 1, time: sums.time + (end - start), cost };
        if let Some(trace) = &mut self.trace {
            trace.step(line, ran, start, end);
        }
        self.last = self.clock.monotonic();
    }

    /// The run is done: what came after the last step is nobody's.
    pub fn end(&mut self, test: &str) {
        let now = self.clock.monotonic();
        self.total += now - self.last;
        if let Some(trace) = &mut self.trace {
            trace.run(test, self.began, now);
        }
    }

    /// Rows of JSON, or a table; the operation that took longest comes first.
    pub fn show(self, test: &str, depth: usize, n_repetitions: u32, as_json: bool) {
        let n = f64::from(n_repetitions.max(1));
        let total = self.total.as_secs_f64().max(1e-9);
        let counted: Duration = self.steps.values().map(|sums| sums.time).sum();
        let rest = Sums { calls: 1, time: self.total.saturating_sub(counted), cost: Cost::default() };
        let steps = self.steps.into_iter().chain([(("rest", "between steps".to_owned()), rest)]);
        let row = |((op, what), Sums { calls, time, cost })| {
            let seconds = time.as_secs_f64().max(1e-9);
            Row {
                profile: test.to_owned(),
                depth,
                op,
                what,
                calls: calls as f64 / n,
                ms: seconds * 1e3 / n,
                share: seconds / total,
                us_per_call: seconds * 1e6 / calls as f64,
                bytes_per_call: cost.bytes / calls,
                gb_s: cost.bytes as f64 / seconds / 1e9,
                ops_per_call: cost.ops / calls,
                gops: cost.ops as f64 / seconds / 1e9,
            }
        };
        let mut rows: Vec<Row> = steps.map(row).collect();
        rows.sort_by(|a, b| b.ms.total_cmp(&a.ms).then_with(|| a.what.cmp(&b.what)));
        match as_json {
            true => rows.iter().for_each(out::json),
            false => out::text(&table(&rows)),
        }
    }
}

fn table(rows: &[Row]) -> String {
    let titles = ["op", "", "calls", "ms", "share", "µs/call", "KB/call", "GB/s", "GOPS"];
    let mut cells = vec![titles.map(str::to_owned).to_vec()];
    for row in rows {
        let some = |value: f64, text: String| if value > 0.0 { text } else { "–".to_owned() };
        cells.push(vec![
            row.op.to_owned(),
            row.what.clone(),
            format!("{:.0}", row.calls),
            format!("{:.3}", row.ms),
            format!("{:.1} %", row.share * 100.0),
            format!("{:.1}", row.us_per_call),
            some(row.gb_s, format!("{:.1}", row.bytes_per_call as f64 / 1e3)),
            some(row.gb_s, format!("{:.1}", row.gb_s)),
            some(row.gops, format!("{:.1}", row.gops)),
        ]);
    }
    text::table(&cells)
}
