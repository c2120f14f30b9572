//! A model on several devices at once: where its sequences are, and what becomes of them when a device fails.

use kernels::{BackendKind, Executor, Graph, MonotonicClock, Retention, SubmissionStats};

use super::gpu_fallback::{GpuFallback, GpuIncident};
use super::replica::Replica;
use super::{Devices, LoadOptions, Model};
use crate::error::{EngineError, Result};
use crate::kv::sequence_id::SequenceId;

/// Tokens that are copied from one device to another rather than left where more is to be done: copying more takes
/// longer than a busy device makes an answer wait.
const MAX_COPIED_TOKENS: usize = 2048;

impl Model {
    /// Devices that each have the whole model.
    pub fn n_replicas(&self) -> usize {
        self.replicas.len()
    }

    /// What devices are told is counted and timed by this clock from here on; None: no more.
    pub fn measure_submissions(&mut self, now: Option<&MonotonicClock>) {
        self.replicas.iter_mut().for_each(|replica| replica.executor.measure_submissions(now));
    }

    /// What devices were told since this was last asked: of those that don't compute by themselves.
    pub fn effort(&mut self) -> SubmissionStats {
        self.efforts().into_iter().fold(SubmissionStats::default(), |a, b| a + b)
    }

    /// The same of each replica.
    pub fn efforts(&mut self) -> Vec<SubmissionStats> {
        self.replicas.iter_mut().map(|replica| replica.executor.take_submission_stats()).collect()
    }

    /// Which of them computes a sequence, counted from 0.
    pub fn replica_of(&self, seq: SequenceId) -> usize {
        self.cache.replica_of(seq).unwrap_or(0)
    }

    /// The sequence is computed by replica `to` from here on. False: it stays where it is; what it holds is too much to
    /// be copied, or can't be.
    pub(crate) fn move_to_replica(&mut self, seq: SequenceId, to: usize) -> bool {
        let Ok(from) = self.cache.replica_of(seq) else { return false };
        let n_held = self.cache.tokens(seq).map_or(0, <[_]>::len);
        let is_bare = n_held == 0 || self.cache.is_lost(seq);
        let may_copy = n_held <= MAX_COPIED_TOKENS && self.has_complete_chunks();
        // a device that fails says so in the next run
        if from != to && !is_bare && !(may_copy && self.copy(seq, from, to).is_ok()) {
            return false;
        }
        self.cache.set_replica(seq, to);
        true
    }

    /// The bytes of a sequence's pages, which have the same numbers everywhere.
    fn copy(&mut self, seq: SequenceId, from: usize, to: usize) -> Result<()> {
        let Self { cache, replicas, .. } = self;
        let [from, to] =
            replicas.get_disjoint_mut([from, to]).expect("two different replicas of those there are");
        let n_layers = from.executor.graph().kv().layers.len();
        for layer in 0..n_layers {
            debug_assert!(from.executor.graph().kv().layers[layer].retention() == Retention::All);
            for &page in cache.pages(seq)? {
                let bytes = from.executor.kv_page(layer, page)?;
                to.executor.write_kv_page(layer, page, &bytes)?;
            }
        }
        Ok(())
    }

    /// A replica failed with `error`, and what it had is lost: the others go on with its sequences.
    pub(super) fn drop_replica(&mut self, at: usize, error: EngineError) {
        self.cache.remove_replica(at);
        self.replicas.remove(at);
        self.info.devices = self.describe();
        let fallback = without(&mut self.source.options, at, self.spec.layers.len());
        let fallback = fallback.expect("the options name as many replicas as there are");
        self.source.gpu_incidents.push_back(GpuIncident { error, fallback });
    }

    /// After the first, the others that the options name. A card that can't have the model is left out, which is told.
    ///
    /// Errors: of other devices.
    pub(super) fn add_replicas(&mut self) -> Result<()> {
        let n_layers = self.spec.layers.len();
        let sizes = (self.replicas[0].executor.capacity(), self.info.n_weight_bytes);
        while self.replicas.len() < n_replicas(&self.source.options) {
            let at = self.replicas.len();
            let options = alone(&self.source.options, at, n_layers);
            match self.source.executor(&options, &self.spec, sizes, &self.info.fingerprint) {
                Ok((executor, _)) => self.replicas.push(Replica::new(executor)),
                Err(error) if error.is_of_gpu() => {
                    let fallback = without(&mut self.source.options, at, n_layers);
                    let gpu_incidents = &mut self.source.gpu_incidents;
                    gpu_incidents.extend(fallback.map(|fallback| GpuIncident { error, fallback }));
                }
                Err(error) => return Err(error),
            }
        }
        self.cache.set_n_replicas(self.replicas.len());
        self.info.devices = self.describe();
        Ok(())
    }

    /// Names of all devices, of each replica in turn.
    pub(super) fn describe(&self) -> Vec<String> {
        self.replicas.iter().flat_map(|replica| replica.executor.describe()).collect()
    }

    /// The same on all replicas but for the weights' place.
    pub(crate) fn graph(&self) -> &Graph {
        self.replicas[0].executor.graph()
    }

    /// Where a sequence is.
    pub(super) fn executor(&self, seq: SequenceId) -> Result<&Executor> {
        Ok(&self.replicas[self.cache.replica_of(seq)?].executor)
    }
}

/// Devices that each are to have the whole model.
pub(super) fn n_replicas(options: &LoadOptions) -> usize {
    match &options.devices {
        Devices::Replicas(kinds) => kinds.len().max(1),
        Devices::Auto | Devices::Scalar | Devices::Cpu | Devices::Gpu { .. } | Devices::Split(_) => 1,
    }
}

/// As one replica is loaded.
pub(super) fn alone(options: &LoadOptions, at: usize, n_layers: usize) -> LoadOptions {
    let mut options = options.clone();
    let Devices::Replicas(kinds) = &options.devices else { return options };
    let card = kinds[..at].iter().filter(|kind| **kind == BackendKind::Gpu).count();
    let devices = Devices::Split(vec![(kinds[at], n_layers)]);
    // the last one that is named is meant for all that follow
    let card = options.gpus.get(card).or(options.gpus.last()).cloned();
    options.gpus = card.into_iter().collect();
    options.devices = devices;
    options
}

/// All layers on those devices that are left when one of several is left out. None: it is the only one.
pub(super) fn without(options: &mut LoadOptions, at: usize, n_layers: usize) -> Option<GpuFallback> {
    let n = n_replicas(options);
    if n < 2 {
        return None;
    }
    let Devices::Replicas(kinds) = &mut options.devices else { return None };
    let card = kinds[..at].iter().filter(|kind| **kind == BackendKind::Gpu).count();
    let is_card = kinds.remove(at) == BackendKind::Gpu;
    if is_card && card < options.gpus.len() && options.gpus.len() > 1 {
        options.gpus.remove(card);
    }
    if let [kind] = kinds[..] {
        options.devices = Devices::Split(vec![(kind, n_layers)]);
    }
    Some(GpuFallback::OtherReplicas(n - 1))
}

#[cfg(test)]
mod tests;
