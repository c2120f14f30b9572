//! Batches of sequences through the executors of a model's replicas: cut into runs, each with its rows, pages and states.

use kernels::{Executor, Observer, OutputSelection, Retention, TopKEntry};

use super::batch_progress::BatchProgress;
use super::replica::{self, Replica, ReplicaFault};
use super::{Chunk, Logits, MAX_BATCH_SEQUENCES, Model};
use crate::error::{EngineError, Result, guarded};
use crate::kv::cache::{CopyOnWrite, PageRequantization};
use crate::tokenizer::Tokenizer;

impl Model {
    /// Runs the chunks: their tokens continue their sequences, and the wanted logits come back.
    ///
    /// Errors: unknown or repeated sequence, unknown token, no room (`request.context_full`): nothing has changed. A
    /// failed kernel, a panic, or a run that was given up: every sequence holds what it held before, or of it as much as `truncate` can go back to.
    pub fn forward(&mut self, batch: &[Chunk<'_>]) -> Result<Logits<'_>> {
        self.answers()?;
        Ok(self.forward_all(batch, OutputSelection::Rows, None)?.0)
    }

    /// As `forward`, telling `observer` of each step after it ran.
    pub fn forward_observed(&mut self, batch: &[Chunk<'_>], observer: Observer) -> Result<Logits<'_>> {
        self.answers()?;
        Ok(self.forward_all(batch, OutputSelection::Rows, Some(observer))?.0)
    }

    /// From here on observers are told of steps by the clock of the device, where it has one. Error: no memory.
    pub fn set_step_timing(&mut self, enabled: bool) -> Result<()> {
        Ok(self.replicas.iter_mut().try_for_each(|replica| replica.executor.set_step_timing(enabled))?)
    }

    /// As `forward`, to draw tokens from: of each wanted row only the `n_top` come back, or all. With the
    /// tokenizer beside the borrowed logits.
    pub(crate) fn forward_to_draw(
        &mut self,
        batch: &[Chunk<'_>],
        n_top: Option<usize>,
        observer: Option<Observer>,
    ) -> Result<(Logits<'_>, Option<&Tokenizer>)> {
        self.answers()?;
        self.forward_all(batch, n_top.map_or(OutputSelection::Rows, OutputSelection::TopK), observer)
    }

    /// As `forward`, whatever the model's output is.
    pub(super) fn forward_all(
        &mut self,
        batch: &[Chunk<'_>],
        returned: OutputSelection,
        mut observer: Option<Observer>,
    ) -> Result<(Logits<'_>, Option<&Tokenizer>)> {
        self.check(batch)?;
        let mut pass = BatchProgress::of(batch, &self.cache)?;
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
                // ends on the CPU at last, which has no such errors
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
        let (data, likeliest): (&[f32], &[TopKEntry]) = match ran {
            OutputLocation::Nothing => (&[], &[]),
            OutputLocation::Once(at) => {
                let executor = &self.replicas[at].executor;
                (executor.output(), executor.top_k())
            }
            OutputLocation::Often => (&self.gathered.rows, &self.gathered.likeliest),
        };
        let width = self.spec.output_width();
        let n_top = match returned {
            OutputSelection::Rows => None,
            OutputSelection::TopK(n) => Some(n.min(width)),
        };
        Ok((Logits { data, width, likeliest, n_top }, self.tokenizer.as_ref()))
    }

    fn check(&self, batch: &[Chunk<'_>]) -> Result<()> {
        if batch.len() > MAX_BATCH_SEQUENCES {
            return Err(EngineError::new(
                "request.batch_too_large",
                format!("{} sequences in one batch, at most {MAX_BATCH_SEQUENCES} fit", batch.len()),
                "Send fewer at once.",
            ));
        }
        for (i, chunk) in batch.iter().enumerate() {
            self.cache.check_fits(chunk.seq, chunk.tokens.len())?;
            self.check_tokens(chunk.tokens)?;
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

    /// Cuts what is left of the batch into runs, of each replica those of its sequences; replicas run at the same time.
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
            self.commit(pass)?;
            ran = OutputLocation::Once(last);
        }
    }

    /// Rows for the next run of a replica, and room for them. False: it has nothing to do.
    fn fill(&mut self, pass: &mut BatchProgress<'_>, at: usize) -> std::result::Result<bool, ReplicaFault> {
        self.take_rows(pass, at).map_err(|error| ReplicaFault { at, error })?;
        let Self { cache, replicas, .. } = self;
        for place in 0.. {
            let Some((index, n)) = replicas[at].rows.members().nth(place) else { break };
            let seq = pass.batch[index].seq;
            let aged = cache.requantize_due(seq).map_err(|error| ReplicaFault { at, error })?;
            turn(replicas, &aged)?;
            let copies = cache.reserve(seq, n);
            let copied = copies.and_then(|copies| make_copies(&mut replicas[at].executor, &copies));
            copied.map_err(|error| ReplicaFault { at, error })?;
        }
        Ok(!replicas[at].rows.tokens.is_empty())
    }

    /// Tokens of its sequences, until its run is full or one has to wait for what ages before it.
    fn take_rows(&mut self, pass: &mut BatchProgress<'_>, at: usize) -> Result<()> {
        let Self { cache, replicas, .. } = self;
        let Replica { executor, rows, .. } = &mut replicas[at];
        for (index, chunk) in pass.batch.iter().enumerate() {
            if cache.replica_of(chunk.seq)? != at {
                continue;
            }
            while let Some(&token) = chunk.tokens.get(pass.n_taken[index]) {
                let (position, row) = (pass.n_before[index] + pass.n_taken[index], pass.wanted(index));
                // what ages does so between runs: rows on either side see other pages
                let ages = rows.has(index) && cache.requantizes_at(position);
                if ages || rows.is_full(executor.capacity(), row.is_some()) {
                    return Ok(());
                }
                rows.push(token, position, index, row);
                pass.n_taken[index] += 1;
            }
        }
        Ok(())
    }

    /// What ran belongs to its sequences from here on. The first fault of a replica.
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
                // of one that had no rows the last run's output is there still
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

/// Fills the pages that have aged: on every replica, since sequences on several may hold them.
pub(super) fn turn(
    replicas: &mut [Replica],
    aged: &PageRequantization,
) -> std::result::Result<(), ReplicaFault> {
    for &(from, to) in &aged.to_requantize {
        for (at, replica) in replicas.iter_mut().enumerate() {
            let filled = replica.executor.requantize_kv_page(from, to);
            filled.map_err(|error| ReplicaFault { at, error: error.into() })?;
        }
    }
    Ok(())
}

/// Before tokens are written: what others hold too is copied.
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

/// How a batch went through, and with that where its logits are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputLocation {
    /// There were no tokens.
    Nothing,
    /// The logits are the output of a replica's executor.
    Once(usize),
    /// The logits of all runs were gathered.
    Often,
}
