//! Progress of a long task, on the last line of the terminal.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::out;

/// Returns a callback that shows `done` of `total` in percent on the terminal. The callback returns false after Ctrl+C.
pub fn percent(what: &str, stop: &Arc<AtomicBool>) -> impl FnMut(u64, u64) -> bool {
    let is_terminal = std::io::stderr().is_terminal();
    let (mut last_percent, what, stop) = (u64::MAX, what.to_owned(), Arc::clone(stop));
    move |done, total| {
        let percent = done.saturating_mul(100) / total.max(1);
        if is_terminal && percent != last_percent {
            last_percent = percent;
            out::hint(&format!("\r{what} {percent} %{}", if percent == 100 { "\n" } else { "" }));
        }
        !stop.load(Ordering::Relaxed)
    }
}
