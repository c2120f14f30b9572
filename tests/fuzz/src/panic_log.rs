//! Prints each place of a panic once, and lets the panic go on: what the code under test contains is no finding.

use std::backtrace::Backtrace;
use std::collections::HashSet;
use std::panic;
use std::sync::{Mutex, PoisonError};

/// Replaces libFuzzer's hook, which would end the process at panics that are contained.
pub fn report_panics() {
    let seen = Mutex::new(HashSet::new());
    panic::set_hook(Box::new(move |info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        if seen.lock().unwrap_or_else(PoisonError::into_inner).insert(place) {
            eprintln!("PANIC: {info}\n{}", Backtrace::force_capture());
        }
    }));
}
