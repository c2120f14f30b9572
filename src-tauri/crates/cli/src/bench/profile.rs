//! Where the time of a test goes: time, bytes and arithmetic of each operation, steps of all layers that do the same
//! taken together. The clock is read between steps, outside of them.

use std::collections::HashMap;
use std::time::Duration;

use io::Clock;
use kernels::{Cost, Ran};
use serde::Serialize;

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
    /// When the last step ended.
    last: Duration,
    total: Duration,
}

impl<'a> Profile<'a> {
    pub fn new(clock: &'a dyn Clock) -> Self {
        Self { clock, steps: HashMap::new(), last: clock.monotonic(), total: Duration::ZERO }
    }

    /// Work goes on after something that isn't counted.
    pub fn resume(&mut self) {
        self.last = self.clock.monotonic();
    }

    /// A step has run since the last one, or since `resume`.
    pub fn ran(&mut self, ran: &Ran) {
        let time = self.clock.monotonic() - self.last;
        self.total += time;
        let sums = self.steps.entry((ran.operation(), ran.what())).or_default();
        let cost = sums.cost + ran.cost();
        *sums = Sums { calls: sums.calls + 1, time: sums.time + time, cost };
        self.resume();
    }

    /// Work is done, or pauses: what came after the last step is nobody's.
    pub fn pause(&mut self) {
        self.total += self.clock.monotonic() - self.last;
        self.resume();
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
