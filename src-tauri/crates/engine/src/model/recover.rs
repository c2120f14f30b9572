//! Recovery from a GPU failure during a run: weights move to a new device, to a part of it, or to the CPU.
//!
//! Lost sequences are replayed before their next use, so answers continue where they were.

use kernels::{Batch, Executor, GivenRows};

use super::forward::{make_copies, requantize_pages};
use super::gpu_fallback::{self, GpuFallback, GpuIncident};
use super::load::RebuiltReplicas;
use super::replica::{Replica, ReplicaFault};
use super::{LoadOptions, Model};
use crate::error::{EngineError, Result};
use crate::kv::cache::{KvCache, Replay, ReplayStep};
use crate::kv::evicted::EVICTED_TOKEN;
use crate::kv::sequence_id::SequenceId;
use crate::kv::size::KvBytes;
use crate::vision::is_image_token;

impl Model {
    /// Moves the model away from a GPU that failed with `error`, or drops replica `at` if there are others.
    /// Afterwards every sequence has its tokens, those in `back_to` only up to the given position; they are replayed
    /// on demand.
    ///
    /// Errors: what the CPU cannot do either. The next batch tries again.
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
        // A full GPU has no memory for two copies, and the sequences on it are lost anyway.
        self.replicas[0].executor.release();
        let (mut error, mut incidents) = (error, Vec::<GpuIncident>::new());
        let (n_rows, kv_requantize) = (self.max_rows(), self.info.kv_requantize);
        let moved = loop {
            let source = &mut self.source;
            let mut options = LoadOptions { kv_requantize, ..source.options.clone() };
            // Or fewer, if that was tried before.
            options.max_rows = Some(options.max_rows.unwrap_or(n_rows).min(n_rows));
            let fallback = gpu_fallback::next_fallback(
                &error,
                &mut options,
                &source.requested,
                &source.health,
                &self.spec,
            );
            // Failed attempts are not reported. The CPU gets back everything that the GPU was spared.
            let is_left = matches!(fallback, GpuFallback::Cpu | GpuFallback::CpuForSession);
            incidents.retain(|it| it.fallback != GpuFallback::Reopened && !is_left);
            incidents.push(GpuIncident { error: error.clone(), fallback });
            match self.move_to(options) {
                Err(next) if next.is_of_gpu() => error = next,
                moved => break moved,
            }
        };
        self.source.gpu_incidents.extend(incidents);
        moved
    }

    /// Returns the oldest GPU incident that has not been fetched yet.
    pub fn take_gpu_incident(&mut self) -> Option<GpuIncident> {
        self.source.gpu_incidents.pop_front()
    }

    /// Rebuilds the executors by other options. Sequences keep their pages, which then hold nothing.
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

    /// Replays a sequence that was lost with a device. Other sequences are unaffected.
    ///
    /// Errors: `kv.forgotten` if evicted tokens or images cannot be replayed and `kv.memory_full` for requantized chunks leave
    /// the sequence empty. After others it is lost as before.
    pub(super) fn replay_lost(&mut self, id: SequenceId) -> std::result::Result<(), ReplicaFault> {
        let at = self.cache.replica_of(id).unwrap_or(0);
        let on_replica = |error| ReplicaFault { at, error };
        let Some(replay) = self.cache.begin_replay(id).map_err(on_replica)? else { return Ok(()) };
        let read = match replay.tokens.iter().any(|token| *token >= EVICTED_TOKEN || is_image_token(*token)) {
            true => Err(on_replica(forgotten())),
            false => self.replay_all(id, &replay, at),
        };
        match read {
            Ok(()) => self.cache.finish_replay(id, &replay).map_err(on_replica),
            Err(fault) => {
                self.cache.abort_replay(id, replay);
                if matches!(fault.error.code(), "kv.forgotten" | "kv.memory_full") {
                    self.cache.truncate(id, 0).map_err(on_replica)?;
                }
                Err(fault)
            }
        }
    }

    fn replay_all(
        &mut self,
        id: SequenceId,
        replay: &Replay,
        at: usize,
    ) -> std::result::Result<(), ReplicaFault> {
        let on_replica = |error| ReplicaFault { at, error };
        let Self { cache, replicas, .. } = self;
        let max_rows = replicas[at].executor.capacity().max_rows;
        while let Some(next) = cache.next_replay_step(id, replay, max_rows).map_err(on_replica)? {
            requantize_pages(replicas, &next.requantization)?;
            read_next(cache, &mut replicas[at].executor, (id, replay), &next).map_err(on_replica)?;
        }
        Ok(())
    }
}

/// Runs one step of a replay.
fn read_next(
    cache: &mut KvCache,
    executor: &mut Executor,
    (id, replay): (SequenceId, &Replay),
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
        tokens: &replay.tokens[start..start + next.n],
        positions: &positions,
        kinds: &[],
        given: GivenRows::NONE,
        sequence: &vec![0; next.n],
        page_tables: &[cache.pages(id)?],
        window_tables: window_tables.as_slice(),
        states: state.as_slice(),
        outputs: &[],
    })?;
    cache.commit_replay(id, replay, next.n)
}

fn forgotten() -> EngineError {
    EngineError::new(
        "kv.forgotten",
        "the GPU failed, and a context with images or with an evicted older part was lost with it",
        "Ask again: the conversation is then recomputed.",
    )
}

#[cfg(test)]
mod tests;
