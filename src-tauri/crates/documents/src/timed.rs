//! Runs a reader on a separate thread, within a time. A panic of a parser ends only the reading.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::extract_error::ExtractError;

/// How long a reader waits.
pub const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// Of the thread that reads: the parser of PDF goes a hundred levels down.
const STACK_BYTES: usize = 16 << 20;

/// The outcome of `read`, which ends soon after its flag is set. `damaged` is the error after a panic.
pub fn run<T, F>(time: Duration, damaged: fn() -> ExtractError, read: F) -> Result<T, ExtractError>
where
    T: Send + 'static,
    F: FnOnce(&AtomicBool) -> Result<T, ExtractError> + Send + 'static,
{
    // One outcome, so that a reader whose caller gave up ends at once.
    let (send, done) = mpsc::sync_channel(1);
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    let thread =
        std::thread::Builder::new().name("document".into()).stack_size(STACK_BYTES).spawn(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| read(&told)));
            // the caller may have given up
            let _ = send.send(outcome.unwrap_or_else(|_| Err(damaged())));
        });
    if thread.is_err() {
        return Err(ExtractError::new(
            "the system could not start a thread to read it",
            "Close other programs and try again.",
        ));
    }
    let outcome = done.recv_timeout(time);
    // the rest has no reader
    stop.store(true, Ordering::Relaxed);
    match outcome {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Timeout) => Err(too_slow(time)),
        Err(RecvTimeoutError::Disconnected) => Err(damaged()),
    }
}

fn too_slow(time: Duration) -> ExtractError {
    ExtractError::new(
        format!("reading it took longer than {} seconds", time.as_secs()),
        "Attach part of it, or save its text as a file and attach that.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_and_slow_readers_are_errors() {
        let damaged = || ExtractError::new("damaged", "Repair it.");
        let why = |outcome: Result<(), ExtractError>| outcome.unwrap_err().why;
        assert_eq!(why(run(READ_TIMEOUT, damaged, |_| panic!("a parser's fault"))), "damaged");
        let waits = |stop: &AtomicBool| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Ok(())
        };
        assert!(why(run(Duration::ZERO, damaged, waits)).contains("took longer than 0 seconds"));
        assert_eq!(run(READ_TIMEOUT, damaged, |_| Ok(7)), Ok(7));
    }
}
