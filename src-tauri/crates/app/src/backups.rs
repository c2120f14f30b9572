//! The rolling backup: a thread that wakes at intervals, checks whether a backup is due, and makes
//! it alongside running writers. It also runs on exit, so that no day of use goes without one.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::context::Context;
use contract::{Error, Result};

/// How often it looks. Backups themselves are made once a day.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

/// Runs until the other end of the channel is dropped.
pub(crate) fn run(ctx: &Context, copying: &Mutex<()>, end: &Receiver<()>) {
    let mut has_complained = false;
    loop {
        if let Err(error) = make_if_due(ctx, copying)
            && !std::mem::replace(&mut has_complained, true)
        {
            let message = format!("The daily backup failed: {}", error.message());
            ctx.events.notice(Error::new(error.kind, error.info.code, message, error.info.remedy).info);
        }
        match end.recv_timeout(LOOK_EVERY) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if let Err(error) = make_if_due(ctx, copying) {
        tracing::warn!(code = error.code(), "no backup was made: {error}");
    }
}

fn make_if_due(ctx: &Context, copying: &Mutex<()>) -> Result<()> {
    let _alone = copying.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let due = ctx.store.lock().backup_due(&*ctx.io)?;
    if let Some(due) = due {
        let path = due.make(&*ctx.io)?;
        tracing::info!(path = %path.display(), "backed up");
    }
    Ok(())
}
