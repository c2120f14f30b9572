//! What follows when a graphics card fails while it works: the weights go to a new device, to less of it, or to the CPU,
//! and what sequences held is read again there before it is needed next. Answers go on where they were.

use kernels::{Batch, Executor};

use super::forward::{make_copies, turn};
use super::gpu_fallback::{self, GpuFallback, GpuIncident};
use super::load::RebuiltReplicas;
use super::replica::{Replica, ReplicaFault};
use super::{LoadOptions, Model};
use crate::error::{EngineError, Result};
use crate::kv::cache::{KvCache, Replay, ReplayStep};
use crate::kv::evicted::EVICTED_TOKEN;
use crate::kv::sequence_id::SequenceId;
use crate::kv::size::KvBytes;

impl Model {
    /// Moves the model away from a card that failed with `error`: the replica `at` is left out where there are others.
    /// Afterwards every sequence is what it was, those of `back_to` without tokens beyond so many; they are read again as
    /// they are needed.
    ///
    /// Errors: what the CPU can't do either; it is tried again with the next batch.
    pub(super) fn recover(
        &mut self,
        error: EngineError,
        at: usize,
        back_to: &[(SequenceId, usize)],
    ) -> Result<()> {
        self.cache.mark_lost(at, back_to);
        if self.replicas.len() > 1 {
            self.drop_replica(at, error);
            return Ok(());
        }
        // A full card has no room for two. What it held of sequences is lost anyway.
        self.replicas[0].executor.release();
        let (mut error, mut told) = (error, Vec::<GpuIncident>::new());
        let (n_rows, kv_requantize) = (self.max_rows(), self.info.kv_requantize);
        let moved = loop {
            let source = &mut self.source;
            let mut options = LoadOptions { kv_requantize, ..source.options.clone() };
            // or fewer, where that was tried already
            options.max_rows = Some(options.max_rows.unwrap_or(n_rows).min(n_rows));
            let fallback =
                gpu_fallback::next(&error, &mut options, &source.requested, &source.health, &self.spec);
            // What was tried in vain needs no telling; the processor has all that a card was spared.
            let is_left = matches!(fallback, GpuFallback::Cpu | GpuFallback::CpuForSession);
            told.retain(|it| it.fallback != GpuFallback::Reopened && !is_left);
            told.push(GpuIncident { error: error.clone(), fallback });
            match self.move_to(options) {
                Err(again) if again.is_of_gpu() => error = again,
                moved => break moved,
            }
        };
        self.source.gpu_incidents.extend(told);
        moved
    }

    /// What went wrong with the card and wasn't asked for yet, though answers go on: the oldest first.
    pub fn take_gpu_incident(&mut self) -> Option<GpuIncident> {
        self.source.gpu_incidents.pop_front()
    }

    /// The same weights by other options. Sequences keep their places, in which nothing stands.
    fn move_to(&mut self, options: LoadOptions) -> Result<()> {
        let mut capacity = self.replicas[0].executor.capacity();
        let rows = options.max_rows.unwrap_or(self.cache.geometry().max_rows);
        if !self.spec.is_bidirectional() {
            capacity.max_rows = rows.min(self.cache.geometry().max_rows);
            capacity.max_outputs = capacity.max_outputs.min(capacity.max_rows);
        }
        self.source.options = options;
        let n_weight_bytes = self.info.n_weight_bytes;
        let RebuiltReplicas { executors, identity } =
            self.source.executors(&self.spec, capacity, n_weight_bytes, &self.info.fingerprint)?;
        self.replicas = executors.into_iter().map(Replica::new).collect();
        self.info.devices = self.describe();
        self.info.kv_bytes = KvBytes::of(self.graph().kv(), self.cache.geometry());
        self.info.kv_bytes_per_token = identity.bytes.page / kernels::PAGE_LEN as u64;
        self.info.kv_fixed_bytes = self.info.kv_bytes.fixed() / self.cache.geometry().max_sequences as u64;
        self.identity = identity;
        Ok(())
    }

    /// Reads a sequence again that was lost with a device; nothing happens to others.
    ///
    /// Errors: it has forgotten a part of its text, which can't be read again (`kv.forgotten`), or there is no room for
    /// what had aged (`kv.memory_full`): the sequence is empty then. Others, those of devices among them: it is lost as
    /// before.
    pub(super) fn replay_lost(&mut self, id: SequenceId) -> std::result::Result<(), ReplicaFault> {
        let at = self.cache.replica_of(id).unwrap_or(0);
        let own = |error| ReplicaFault { at, error };
        let Some(again) = self.cache.begin_replay(id).map_err(own)? else { return Ok(()) };
        let read = match again.tokens.iter().any(|token| *token >= EVICTED_TOKEN) {
            true => Err(own(forgotten())),
            false => self.replay_all(id, &again, at),
        };
        match read {
            Ok(()) => self.cache.finish_replay(id, &again).map_err(own),
            Err(fault) => {
                self.cache.abort_replay(id, again);
                if matches!(fault.error.code(), "kv.forgotten" | "kv.memory_full") {
                    self.cache.truncate(id, 0).map_err(own)?;
                }
                Err(fault)
            }
        }
    }

    fn replay_all(
        &mut self,
        id: SequenceId,
        again: &Replay,
        at: usize,
    ) -> std::result::Result<(), ReplicaFault> {
        let own = |error| ReplicaFault { at, error };
        let Self { cache, replicas, .. } = self;
        let most = replicas[at].executor.capacity().max_rows;
        while let Some(next) = cache.next_replay_step(id, again, most).map_err(own)? {
            turn(replicas, &next.turning)?;
            read_next(cache, &mut replicas[at].executor, (id, again), &next).map_err(own)?;
        }
        Ok(())
    }
}

/// A run of a sequence that is read again.
fn read_next(
    cache: &mut KvCache,
    executor: &mut Executor,
    (id, again): (SequenceId, &Replay),
    next: &ReplayStep,
) -> Result<()> {
    make_copies(executor, &next.copies)?;
    if next.n == 0 {
        return Ok(());
    }
    let start = cache.tokens(id)?.len();
    let positions: Vec<u32> = (start as u32..).take(next.n).collect();
    let window = cache.window_pages(id)?.table();
    let (window_tables, state) = (cache.geometry().window.map(|_| window), cache.state(id)?);
    executor.run(&Batch {
        tokens: &again.tokens[start..start + next.n],
        positions: &positions,
        sequence: &vec![0; next.n],
        page_tables: &[cache.pages(id)?],
        window_tables: window_tables.as_slice(),
        states: state.as_slice(),
        outputs: &[],
    })?;
    cache.commit_replay(id, again, next.n)
}

fn forgotten() -> EngineError {
    EngineError::new(
        "kv.forgotten",
        "the graphics card failed, and took with it a context of which the older part had been forgotten",
        "Ask again: the conversation is read anew.",
    )
}

#[cfg(test)]
mod tests;
