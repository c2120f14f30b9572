//! Profile of a test as JSON lines or a table: time, bytes and arithmetic of each operation.

use inference::profile::{Operation, Phase, Profile, Sums};
use serde::Serialize;

use crate::{out, text};

/// One operation of a test.
#[derive(Debug, Serialize)]
struct ProfileRow {
    profile: String,
    depth: usize,
    op: &'static str,
    what: String,
    /// In one repetition of the test.
    calls: f64,
    /// In one repetition of the test.
    ms: f64,
    /// Share of the test's time, from 0 to 1.
    share: f64,
    us_per_call: f64,
    bytes_per_call: u64,
    gb_s: f64,
    ops_per_call: u64,
    gops: f64,
}

/// A profiled test and how to report it.
pub struct ProfileReport<'a> {
    pub test: &'a str,
    pub depth: usize,
    pub n_repetitions: u32,
    pub phase: Phase,
}

impl ProfileReport<'_> {
    /// Prints JSON lines or a table, the slowest operation first.
    pub fn show(&self, profile: &Profile, as_json: bool) {
        let n = f64::from(self.n_repetitions.max(1));
        let total = profile.total(self.phase).as_secs_f64().max(1e-9);
        let row = |Operation { op, what, sums: Sums { calls, time, cost }, .. }| {
            let seconds = time.as_secs_f64().max(1e-9);
            ProfileRow {
                profile: self.test.to_owned(),
                depth: self.depth,
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
        let rows: Vec<ProfileRow> = profile.operations(self.phase).into_iter().map(row).collect();
        match as_json {
            true => rows.iter().for_each(out::json),
            false => out::text(&table(&rows)),
        }
    }
}

fn table(rows: &[ProfileRow]) -> String {
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
