//! A model on several devices: where sequences live, and what happens to them when a device fails.

use kernels::{BackendKind, Executor, Graph, MonotonicClock, Retention, SubmissionStats};

use super::gpu_fallback::{GpuFallback, GpuIncident};
use super::replica::Replica;
use super::{Devices, LoadOptions, Model};
use crate::error::{EngineError, Result};
use crate::kv::sequence_id::SequenceId;

/// Longest sequence that is copied to a less busy device. Copying more takes longer than waiting for the busy one.
const MAX_COPIED_TOKENS: usize = 2048;

impl Model {
    /// Returns the number of devices that hold the whole model.
    pub fn n_replicas(&self) -> usize {
        self.replicas.len()
    }

    /// Counts and times submissions by this clock, or stops doing so.
    pub fn measure_submissions(&mut self, now: Option<&MonotonicClock>) {
        self.replicas.iter_mut().for_each(|replica| replica.executor.measure_submissions(now));
    }

    /// Returns the submission statistics since the last call, of devices that do not compute synchronously.
    pub fn submission_stats(&mut self) -> SubmissionStats {
        self.submission_stats_by_replica().into_iter().fold(SubmissionStats::default(), |a, b| a + b)
    }

    /// Returns the submission statistics of each replica.
    pub fn submission_stats_by_replica(&mut self) -> Vec<SubmissionStats> {
        self.replicas.iter_mut().map(|replica| replica.executor.take_submission_stats()).collect()
    }

    /// Returns the replica that computes a sequence, counted from 0.
    pub fn replica_of(&self, seq: SequenceId) -> usize {
        self.cache.replica_of(seq).unwrap_or(0)
    }

    /// Moves a sequence to another replica. Returns false if it stays because its content is too large to copy, or
    /// cannot be copied.
    pub(crate) fn move_to_replica(&mut self, seq: SequenceId, to: usize) -> bool {
        let Ok(from) = self.cache.replica_of(seq) else { return false };
        let n_held = self.cache.tokens(seq).map_or(0, <[_]>::len);
        let is_bare = n_held == 0 || self.cache.is_lost(seq);
        let may_copy = n_held <= MAX_COPIED_TOKENS && self.has_complete_chunks();
        // A device that fails here reports it in the next run.
        if from != to && !is_bare && !(may_copy && self.copy(seq, from, to).is_ok()) {
            return false;
        }
        self.cache.set_replica(seq, to);
        true
    }

    /// Copies the pages of a sequence. They have the same numbers everywhere.
    fn copy(&mut self, seq: SequenceId, from: usize, to: usize) -> Result<()> {
        let Self { cache, replicas, .. } = self;
        let [from, to] = replicas.get_disjoint_mut([from, to]).expect("two different existing replicas");
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

    /// Drops a replica that failed with `error`. Its content is lost; the others continue its sequences.
    pub(super) fn drop_replica(&mut self, at: usize, error: EngineError) {
        self.cache.remove_replica(at);
        self.replicas.remove(at);
        self.info.devices = self.describe();
        let fallback = drop_part(&mut self.source.options, at, self.spec.layers.len());
        let fallback = fallback.expect("the options name every replica");
        self.source.gpu_incidents.push_back(GpuIncident { error, fallback });
    }

    /// Loads the replicas after the first. A GPU that cannot hold the model is left out and recorded as an incident.
    ///
    /// Errors: of other devices.
    pub(super) fn add_replicas(&mut self) -> Result<()> {
        let n_layers = self.spec.layers.len();
        let sizes = (self.replicas[0].executor.capacity(), self.info.n_weight_bytes);
        while self.replicas.len() < n_replicas(&self.source.options) {
            let at = self.replicas.len();
            let options = options_of_part(&self.source.options, at, n_layers);
            match self.source.executor(&options, &self.spec, sizes, &self.info.fingerprint) {
                Ok((executor, _)) => self.replicas.push(Replica::new(executor)),
                Err(error) if error.is_of_gpu() => {
                    let fallback = drop_part(&mut self.source.options, at, n_layers);
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

    /// Returns the names of all devices, replica by replica.
    pub(super) fn describe(&self) -> Vec<String> {
        self.replicas.iter().flat_map(|replica| replica.executor.describe()).collect()
    }

    /// Returns the graph. It differs between replicas only in where the weights are.
    pub(crate) fn graph(&self) -> &Graph {
        self.replicas[0].executor.graph()
    }

    /// Returns the executor of a sequence.
    pub(super) fn executor(&self, seq: SequenceId) -> Result<&Executor> {
        Ok(&self.replicas[self.cache.replica_of(seq)?].executor)
    }
}

/// Returns how many devices shall hold the whole model.
pub(super) fn n_replicas(options: &LoadOptions) -> usize {
    match &options.devices {
        Devices::Replicas(kinds) => kinds.len().max(1),
        Devices::Auto | Devices::Scalar | Devices::Cpu | Devices::Gpu { .. } | Devices::Split(_) => 1,
    }
}

/// Returns the load options of one replica.
pub(super) fn options_of_part(options: &LoadOptions, at: usize, n_layers: usize) -> LoadOptions {
    let mut options = options.clone();
    let Devices::Replicas(kinds) = &options.devices else { return options };
    let gpu_index = kinds[..at].iter().filter(|kind| **kind == BackendKind::Gpu).count();
    let devices = Devices::Split(vec![(kinds[at], n_layers)]);
    // The last named GPU applies to all that follow.
    let gpu = options.gpus.get(gpu_index).or(options.gpus.last()).cloned();
    options.gpus = gpu.into_iter().collect();
    options.devices = devices;
    options
}

/// Removes one of several devices from the options. Returns `None` if it is the only one.
pub(super) fn drop_part(options: &mut LoadOptions, at: usize, n_layers: usize) -> Option<GpuFallback> {
    let n = n_replicas(options);
    if n < 2 {
        return None;
    }
    let Devices::Replicas(kinds) = &mut options.devices else { return None };
    let gpu_index = kinds[..at].iter().filter(|kind| **kind == BackendKind::Gpu).count();
    let is_gpu = kinds.remove(at) == BackendKind::Gpu;
    if is_gpu && gpu_index < options.gpus.len() && options.gpus.len() > 1 {
        options.gpus.remove(gpu_index);
    }
    if let [kind] = kinds[..] {
        options.devices = Devices::Split(vec![(kind, n_layers)]);
    }
    Some(GpuFallback::OtherReplicas(n - 1))
}

#[cfg(test)]
mod tests;
