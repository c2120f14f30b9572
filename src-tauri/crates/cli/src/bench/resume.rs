//! `nook bench --test resume`: time to continue a long conversation after a restart, from checkpoints and by a new
//! prefill.
//!
//! Guarantees that the logits after the restart equal those before it bit for bit.

use std::path::PathBuf;
use std::sync::Arc;

use contract::Error;
use contract::Result;
use contract::protocol::Checkpoints;
use engine::{Chunk, LogitsSelection, Model, SequenceId, TokenId};
use inference::worker::checkpoint_store::{self, CheckpointDir, PendingCheckpoint};
use io::{Clock, RealClock, RealIo};
use serde::Serialize;

use super::speed::Bench;
use crate::{out, text};

/// Both times and their ratio. Times run from the prompt to the first new token's logits.
#[derive(Debug, Serialize)]
struct ResumeRow {
    /// `resume8192`
    test: String,
    /// Full prefill.
    fresh_s: f64,
    /// Finding, reading, verifying and restoring the checkpoint, plus the last token.
    resume_s: f64,
    /// Part of `resume_s` until the context is restored.
    restore_s: f64,
    ratio: f64,
    tokens: usize,
    computed_tokens: usize,
    files: usize,
    bytes: u64,
    /// Writing the checkpoint, including the sync to disk.
    store_s: f64,
}

/// Removes the checkpoint files when dropped.
struct RemovedOnDrop(CheckpointDir);

impl Drop for RemovedOnDrop {
    fn drop(&mut self) {
        for name in self.0.names().unwrap_or_default() {
            // Leftover files are harmless in the cache folder.
            let _ = self.0.remove(&name);
        }
    }
}

/// `again` loads the model like a restarted program does, into separate memory.
pub fn resume(bench: Bench, n: usize, cache: PathBuf, again: impl FnOnce() -> Result<Model>) -> Result<()> {
    let folder = cache.join("bench-contexts");
    let stored_files = RemovedOnDrop(CheckpointDir::new(&folder, Arc::new(RealIo)));
    let files = &stored_files.0;
    let (mut prompt, json) = (bench.tokens(0, n), bench.json);
    let mut model = bench.model;
    let clock = RealClock::new();

    let seq = model.new_sequence()?;
    let start = clock.monotonic();
    let expected = last_logits(&mut model, seq, &prompt)?;
    let fresh_s = (clock.monotonic() - start).as_secs_f64();

    let start = clock.monotonic();
    let mut due = PendingCheckpoint::of(&model, seq, (0, n));
    while due.store_one(&model, seq, files) {}
    let store_s = (clock.monotonic() - start).as_secs_f64();
    if let Some(error) = due.told.error {
        return Err(error);
    }
    let written: Vec<_> = due.told.written.iter().map(|file| file.bytes).collect();
    drop(model);

    let mut model = again()?;
    // warm-up: one-time setup of the device is not part of the cost of the context
    let warm = model.new_sequence()?;
    last_logits(&mut model, warm, &prompt[..1])?;
    model.free(warm);
    let next = (*prompt.last().unwrap_or(&0) + 1) % model.info().n_vocab as TokenId;
    prompt.push(next);
    let start = clock.monotonic();
    let mut checkpoints = Checkpoints::default();
    let found = checkpoint_store::find(&model, files, &prompt, &mut checkpoints);
    let restored = found
        .and_then(|found| checkpoint_store::restore(&mut model, files, &prompt, found, 1, &mut checkpoints));
    let Some(seq) = restored else {
        return Err(checkpoints.error.unwrap_or_else(|| Error::bug("what was stored was not found")));
    };
    let restore_s = (clock.monotonic() - start).as_secs_f64();
    let n_held = model.len(seq)?;
    last_logits(&mut model, seq, &prompt[n_held..])?;
    let resume_s = (clock.monotonic() - start).as_secs_f64();

    // compares at the position where both runs have logits
    let held = model.truncate(seq, n - 1)?;
    if last_logits(&mut model, seq, &prompt[held..n])? != expected {
        return Err(Error::bug("the logits after the restart differ from those before it"));
    }
    ResumeRow {
        test: format!("resume{n}"),
        fresh_s,
        resume_s,
        restore_s,
        ratio: fresh_s / resume_s.max(1e-9),
        tokens: n,
        computed_tokens: prompt.len() - n_held,
        files: written.len(),
        bytes: written.iter().sum(),
        store_s,
    }
    .show(json);
    Ok(())
}

/// Appends `tokens` to `seq` and returns the bits of the last logits.
fn last_logits(model: &mut Model, seq: SequenceId, tokens: &[TokenId]) -> Result<Vec<u32>> {
    let logits = model.forward(&[Chunk { seq, tokens, logits: LogitsSelection::Last }])?;
    Ok(logits.row(0)?.iter().map(|logit| logit.to_bits()).collect())
}

impl ResumeRow {
    fn show(&self, as_json: bool) {
        if as_json {
            return out::json(self);
        }
        let Self {
            test, fresh_s, resume_s, restore_s, ratio, store_s, files, bytes, computed_tokens, ..
        } = self;
        out::line(&format!(
            "{test:<12} first new token after {resume_s:.3} s ({restore_s:.3} s to restore the context, {computed_tokens} computed), full prefill after {fresh_s:.2} s: {ratio:.0} times faster"
        ));
        out::line(&format!(
            "             {files} files, {} in total, stored in {store_s:.2} s; the logits are bit-identical",
            text::bytes(*bytes)
        ));
    }
}
