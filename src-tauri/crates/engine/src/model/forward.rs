//! Runs batches through the executors of a model's replicas, split into runs with their rows, pages and states.

use kernels::{Executor, Observer, OutputSelection, Retention, TopKEntry};

use super::batch_progress::BatchProgress;
use super::image::{coordinates_at, image_at};
use super::replica::{self, Replica, ReplicaFault};
use super::take_back::RunOfOne;
use super::{Chunk, Logits, MAX_BATCH_SEQUENCES, Model};
use crate::error::{EngineError, Result, guarded};
use crate::kv::cache::{CopyOnWrite, PageRequantization};
use crate::spec::ImagePositions;
use crate::tokenizer::Tokenizer;
use crate::vision::{CoordinateWalk, is_image_token};

impl Model {
    /// Runs the chunks: their tokens continue their sequences, and the selected logits are returned.
    ///
    /// Errors before anything changed: unknown or repeated sequence, unknown token, `request.context_full`. After a
    /// failed kernel, a panic or an interrupt, every sequence holds what it held before, or as much as `truncate` can
    /// return to.
    pub fn forward(&mut self, batch: &[Chunk<'_>]) -> Result<Logits<'_>> {
        self.check_generates()?;
        Ok(self.forward_all(batch, OutputSelection::Rows, None)?.0)
    }

    /// Runs as `forward` does, and calls `observer` after each step.
    pub fn forward_observed(&mut self, batch: &[Chunk<'_>], observer: Observer) -> Result<Logits<'_>> {
        self.check_generates()?;
        Ok(self.forward_all(batch, OutputSelection::Rows, Some(observer))?.0)
    }

    /// Switches step times to the device's own clock, where it has one.
    ///
    /// Errors: no memory.
    pub fn set_step_timing(&mut self, is_enabled: bool) -> Result<()> {
        Ok(self.replicas.iter_mut().try_for_each(|replica| replica.executor.set_step_timing(is_enabled))?)
    }

    /// Runs as `forward` does, for sampling: returns only the `n_top` most likely tokens of each row, or all. Also
    /// returns the tokenizer, which cannot be borrowed beside the logits.
    pub(crate) fn forward_to_draw(
        &mut self,
        batch: &[Chunk<'_>],
        n_top: Option<usize>,
        observer: Option<Observer>,
    ) -> Result<(Logits<'_>, Option<&Tokenizer>)> {
        self.check_generates()?;
        self.forward_all(batch, n_top.map_or(OutputSelection::Rows, OutputSelection::TopK), observer)
    }

    /// Runs as `forward` does, for any kind of output.
    pub(super) fn forward_all(
        &mut self,
        batch: &[Chunk<'_>],
        returned: OutputSelection,
        observer: Option<Observer>,
    ) -> Result<(Logits<'_>, Option<&Tokenizer>)> {
        self.forward_pair(batch, None, returned, observer)
    }

    /// Runs as `forward_all` does; tokens from position `second_text` on have token type 1.
    pub(super) fn forward_pair(
        &mut self,
        batch: &[Chunk<'_>],
        second_text: Option<usize>,
        returned: OutputSelection,
        mut observer: Option<Observer>,
    ) -> Result<(Logits<'_>, Option<&Tokenizer>)> {
        self.check(batch)?;
        self.last_run = None;
        let mut pass = BatchProgress::of(batch, &self.cache, second_text)?;
        self.gathered.clear();
        let ran = loop {
            self.replicas.iter_mut().for_each(|replica| replica.executor.select_output(returned));
            let fault = match guarded(|| Ok(self.run_all(&mut pass, &mut observer))) {
                Ok(Ok(ran)) => break ran,
                Ok(Err(fault)) => fault,
                Err(error) => ReplicaFault { at: 0, error },
            };
            if fault.error.is_of_gpu() {
                let back_to = pass.at(fault.at, &self.cache);
                // Ends on the CPU at the latest, which has no GPU errors.
                self.recover(fault.error, fault.at, &back_to)?;
                continue;
            }
            for (index, (chunk, &n_held)) in batch.iter().zip(&pass.n_before).enumerate() {
                match self.replicas.iter().any(|replica| replica.rows.has(index)) {
                    true => self.cache.revert(chunk.seq, n_held)?,
                    false => self.cache.truncate(chunk.seq, n_held)?,
                };
            }
            return Err(fault.error);
        };
        if let Some(large_page_promotion) = &mut self.large_page_promotion {
            large_page_promotion.begin();
        }
        let (data, likeliest, hidden): (&[f32], &[TopKEntry], &[f32]) = match ran {
            OutputLocation::Nothing => (&[], &[], &[]),
            OutputLocation::Once(at) => {
                let executor = &self.replicas[at].executor;
                (executor.output(), executor.top_k(), executor.hidden(pass.n_rows))
            }
            OutputLocation::Often => (&self.gathered.rows, &self.gathered.likeliest, &self.gathered.hidden),
        };
        let width = self.spec.output_width();
        let n_top = match returned {
            OutputSelection::Rows => None,
            OutputSelection::TopK(n) => Some(n.min(width)),
        };
        let d_model = self.spec.d_model;
        Ok((Logits { data, width, likeliest, n_top, hidden, d_model }, self.tokenizer.as_ref()))
    }

    fn check(&self, batch: &[Chunk<'_>]) -> Result<()> {
        if batch.len() > MAX_BATCH_SEQUENCES {
            return Err(EngineError::new(
                "request.batch_too_large",
                format!("{} sequences in one batch exceed the limit of {MAX_BATCH_SEQUENCES}", batch.len()),
                "Send fewer at once.",
            ));
        }
        for (i, chunk) in batch.iter().enumerate() {
            self.cache.check_fits(chunk.seq, chunk.tokens.len())?;
            self.check_tokens(chunk.tokens)?;
            self.check_images(chunk)?;
            if batch[..i].iter().any(|other| other.seq == chunk.seq) {
                return Err(EngineError::new(
                    "request.sequence_repeated",
                    format!("sequence {} appears twice in one batch", chunk.seq.0),
                    "Join its tokens into one chunk.",
                ));
            }
        }
        Ok(())
    }

    /// Splits the rest of the batch into runs. Replicas run at the same time.
    fn run_all(
        &mut self,
        pass: &mut BatchProgress<'_>,
        observer: &mut Option<Observer>,
    ) -> std::result::Result<OutputLocation, ReplicaFault> {
        self.replicas.iter_mut().for_each(|replica| replica.rows.clear());
        pass.begin(&self.cache).map_err(|error| ReplicaFault { at: 0, error })?;
        for (_, chunk) in pass.batch.iter().enumerate().filter(|(index, _)| !pass.is_taken(*index)) {
            self.replay_lost(chunk.seq)?;
        }
        let mut ran = OutputLocation::Nothing;
        loop {
            let (mut n_runs, mut last) = (0, 0);
            for at in 0..self.replicas.len() {
                if self.fill(pass, at)? {
                    (n_runs, last) = (n_runs + 1, at);
                }
            }
            if n_runs == 0 {
                return Ok(if pass.is_gathered { OutputLocation::Often } else { ran });
            }
            pass.is_gathered |= n_runs > 1 || !pass.is_all_taken();
            replica::run(&mut self.replicas, (n_runs, &self.cache), pass.batch, observer);
            let of_one = self.run_of_one(pass, n_runs, last);
            self.commit(pass)?;
            self.last_run = of_one;
            ran = OutputLocation::Once(last);
        }
    }

    /// Returns the run that replica `at` has just done, if it was the only one and of one sequence.
    fn run_of_one(&self, pass: &BatchProgress<'_>, n_runs: usize, at: usize) -> Option<RunOfOne> {
        let rows = &self.replicas[at].rows;
        let mut members = rows.members();
        let (Some((index, n_rows)), None, 1) = (members.next(), members.next(), n_runs) else { return None };
        let start = *rows.positions.first()? as usize;
        Some(RunOfOne { seq: pass.batch[index].seq, start, n_rows, replica: at })
    }

    /// Prepares the next run of a replica. Returns false if it has nothing to do.
    fn fill(&mut self, pass: &mut BatchProgress<'_>, at: usize) -> std::result::Result<bool, ReplicaFault> {
        self.take_rows(pass, at).map_err(|error| ReplicaFault { at, error })?;
        let Self { cache, replicas, .. } = self;
        for place in 0.. {
            let Some((index, n)) = replicas[at].rows.members().nth(place) else { break };
            let seq = pass.batch[index].seq;
            let requantized = cache.requantize_due(seq).map_err(|error| ReplicaFault { at, error })?;
            requantize_pages(replicas, &requantized)?;
            let copies = cache.reserve(seq, n);
            let copied = copies.and_then(|copies| make_copies(&mut replicas[at].executor, &copies));
            copied.map_err(|error| ReplicaFault { at, error })?;
        }
        Ok(!replicas[at].rows.tokens.is_empty())
    }

    /// Adds rows until the run is full, or a sequence must be requantized first.
    fn take_rows(&mut self, pass: &mut BatchProgress<'_>, at: usize) -> Result<()> {
        let Self { cache, replicas, vision, spec, .. } = self;
        let Replica { executor, rows, .. } = &mut replicas[at];
        let (images, whole) = (vision.as_ref().map(|vision| &vision.images), spec.reads_images_whole());
        let padding = vision.as_ref().map_or(0, |vision| vision.padding);
        let on_grid = vision.as_ref().filter(|vision| vision.positions() == ImagePositions::Grid).is_some();
        for (index, chunk) in pass.batch.iter().enumerate() {
            if cache.replica_of(chunk.seq)? != at {
                continue;
            }
            let mut walk = CoordinateWalk::default();
            while let Some(&token) = chunk.tokens.get(pass.n_taken[index]) {
                let (position, row) = (pass.n_before[index] + pass.n_taken[index], pass.output_row(index));
                // Requantization happens between runs: rows on either side see different pages.
                let found = match images.filter(|_| is_image_token(token)) {
                    Some(images) => image_at(images, cache, (chunk, pass.n_before[index]), position)?,
                    None => None,
                };
                // Rows that see later ones of their image are in one run with them.
                let n_joined = found.filter(|_| whole).map_or(1, |found| found.n_left());
                let ages = rows.has(index) && cache.requantizes_at(position);
                if ages || rows.is_full(executor.capacity(), n_joined, row.is_some()) {
                    return Ok(());
                }
                let kind = u32::from(position >= pass.second_text);
                rows.push((token, kind), position, index, row);
                if let Some(images) = images.filter(|_| on_grid) {
                    let coordinates =
                        coordinates_at(images, cache, (chunk, pass.n_before[index]), position, &mut walk)?;
                    rows.coordinates.push(coordinates);
                }
                if let (Some(found), Some(images)) = (found, images) {
                    let end = if whole { position + found.n_left() } else { 0 };
                    rows.give(images.row(found), end, padding);
                }
                pass.n_taken[index] += 1;
            }
        }
        Ok(())
    }

    /// Commits the finished rows to their sequences. Returns the first fault of a replica.
    fn commit(&mut self, pass: &BatchProgress<'_>) -> std::result::Result<(), ReplicaFault> {
        let Self { cache, replicas, gathered, .. } = self;
        let mut first = None;
        for (at, replica) in replicas.iter_mut().enumerate() {
            let mut failed = replica.failed.take();
            if failed.is_none() {
                let mut n_done = 0;
                for (index, n) in replica.rows.members() {
                    let tokens = &replica.rows.tokens[n_done..n_done + n];
                    if let Err(error) = cache.commit(pass.batch[index].seq, tokens) {
                        failed.get_or_insert(error);
                    }
                    n_done += n;
                }
                // A replica without rows still has the output of its last run.
                if pass.is_gathered && !replica.rows.tokens.is_empty() {
                    gathered.take(replica, pass.n_rows);
                }
                replica.rows.clear();
            }
            first = first.or(failed.map(|error| ReplicaFault { at, error }));
        }
        first.map_or(Ok(()), Err)
    }
}

/// Fills the requantized pages on every replica, since sequences on several may hold them.
pub(super) fn requantize_pages(
    replicas: &mut [Replica],
    requantized: &PageRequantization,
) -> std::result::Result<(), ReplicaFault> {
    for &(from, to) in &requantized.to_requantize {
        for (at, replica) in replicas.iter_mut().enumerate() {
            let filled = replica.executor.requantize_kv_page(from, to);
            filled.map_err(|error| ReplicaFault { at, error: error.into() })?;
        }
    }
    Ok(())
}

/// Copies shared pages and states before tokens are written.
pub(super) fn make_copies(executor: &mut Executor, copies: &CopyOnWrite) -> Result<()> {
    let CopyOnWrite { page, window_page, state } = *copies;
    if let Some((from, to)) = page {
        executor.copy_kv_page(Retention::All, from, to)?;
    }
    if let Some((from, to)) = window_page {
        executor.copy_kv_page(Retention::Window, from, to)?;
    }
    if let Some((from, to)) = state {
        executor.copy_state(from, to)?;
    }
    Ok(())
}

/// Where the logits of a batch are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputLocation {
    /// Nowhere: there were no tokens.
    Nothing,
    /// In the output of this replica's executor.
    Once(usize),
    /// Gathered from several runs.
    Often,
}
