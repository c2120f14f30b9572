//! The interface of a device that runs part of a graph. `Scalar`, `Cpu` and `Gpu` implement it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use weights::TensorView;

use crate::batch::Batch;
use crate::capacity::Capacity;
use crate::device_stats::{MonotonicClock, SubmissionStats};
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, Retention, ValueId};
use crate::interrupt::Interrupt;
use crate::ops::top_k::{self, TopKEntry};
use crate::plan::layout::ValueLifetime;
use crate::profile::Observer;
use crate::tensor::Tensor;

/// Kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// the specification: f32 activations, one thread
    Scalar,
    /// thread pool and SIMD
    Cpu,
    /// a GPU, through wgpu
    Gpu,
}

/// Receives the number of bytes done so far.
pub type ProgressFn<'a> = &'a mut dyn FnMut(u64);

/// One device with all its memory for one executor: plans, activations, and the KV pages of its layers.
///
/// Order of calls: `upload` at any time; `prepare` once; then `begin` for each batch, followed by `write`, `run` and
/// `read` as the segments of the graph require. All methods but `prepare` may rely on what `Executor` checked.
pub trait Backend: Send {
    /// The kind of device.
    fn kind(&self) -> BackendKind;

    /// A one-line description: "cpu avx512, 8 threads".
    fn describe(&self) -> String;

    /// Brings weights to this device (a CPU borrows them). Errors: a dtype without codec.
    fn upload(&self, view: &TensorView) -> Result<Tensor, KernelError>;

    /// Allocates memory for the nodes and KV layers of `graph` that belong to `device`.
    fn prepare(
        &mut self,
        graph: &Arc<Graph>,
        device: DeviceId,
        capacity: Capacity,
        lifetime: ValueLifetime,
    ) -> Result<(), KernelError>;

    /// As `prepare`. A device with dedicated memory reports the bytes of weights it has uploaded.
    fn prepare_with_progress(
        &mut self,
        graph: &Arc<Graph>,
        device: DeviceId,
        capacity: Capacity,
        lifetime: ValueLifetime,
        _progress: ProgressFn,
    ) -> Result<(), KernelError> {
        self.prepare(graph, device, capacity, lifetime)
    }

    /// Selects the plan for the batch's row bucket. Allocates only when the bucket is new.
    fn begin(&mut self, batch: &Batch) -> Result<(), KernelError>;

    /// Runs `nodes`: indices into the graph, all of this device, none of them a `Copy`.
    fn run(
        &mut self,
        nodes: Range<usize>,
        batch: &Batch,
        observer: Option<Observer>,
    ) -> Result<(), KernelError>;

    /// Whether `replay_states` is implemented.
    fn replays_states(&self) -> bool {
        false
    }

    /// Runs the recurrent ones of `nodes` again, for the first rows of the last run. Without `begin`: the values are where
    /// that run left them.
    fn replay_states(&mut self, _nodes: Range<usize>, _batch: &Batch) -> Result<(), KernelError> {
        Ok(())
    }

    /// Sets the interrupt that ends runs between two steps with `KernelError::Interrupted`. None: runs complete.
    /// A device that receives its work as a whole may ignore it.
    fn set_interrupt(&mut self, _interrupt: Option<Interrupt>) {}

    /// Switches per-step timing between device timestamps (reported after the run, without queries) and host timing
    /// (reported as each step ends). A device without timestamps ignores it. Errors: no memory.
    fn set_step_timing(&mut self, _enabled: bool) -> Result<(), KernelError> {
        Ok(())
    }

    /// The first `n_rows` rows of a value of this device: (n_rows, width)
    fn read(&self, value: ValueId, n_rows: usize) -> &[f32];

    /// Starts counting submissions and timing them with `clock`; None stops. A CPU submits nothing.
    fn measure_submissions(&mut self, _clock: Option<MonotonicClock>) {}

    /// Returns the submission statistics since the last call, and resets them.
    fn take_submission_stats(&mut self) -> SubmissionStats {
        SubmissionStats::default()
    }

    /// Limits what the following runs return of the graph's output: the `k` largest columns through `top_k`, or with
    /// None whole rows through `read`. A device that shares the CPU's memory may ignore it.
    fn select_top_k(&mut self, _k: Option<usize>) {}

    /// Appends to `out`, for each of the first `n_rows` rows of the graph's output, its `k` largest columns in the order
    /// of `ops::top_k`. The output is a value of this device with `n_columns`; `k` is as selected before the run.
    fn top_k(
        &self,
        output: ValueId,
        (n_rows, n_columns): (usize, usize),
        k: usize,
        out: &mut Vec<TopKEntry>,
    ) {
        top_k::of_rows(self.read(output, n_rows), n_columns, k, out);
    }

    /// Overwrites the first rows of a value of this device: `data` (n_rows, width)
    fn write(&mut self, value: ValueId, data: &[f32]);

    /// Bytes of one layer of one page, keys then values, in the layout of `ops::kv_write`. Errors: a lost device.
    fn kv_page(&self, layer: usize, page: u32) -> Result<Cow<'_, [u8]>, KernelError>;

    /// Returns the memory of a page to the system where possible, for layers that retain all positions.
    fn release_kv_page(&mut self, _page: u32) {}

    /// Overwrites one layer of one page; `bytes` is as long as what `kv_page` returns.
    fn write_kv_page(&mut self, layer: usize, page: u32, bytes: &[u8]) -> Result<(), KernelError>;

    /// Copies one page to another, in all layers of this device with this retention.
    fn copy_kv_page(&mut self, retention: Retention, from: u32, to: u32) -> Result<(), KernelError>;

    /// The rows of a run with which it computes prompts fastest. None: any number will do.
    fn preferred_rows(&self) -> Option<usize> {
        None
    }

    /// Continues the search for faster kernel shapes, for about a tenth of a second; `now` is a monotonic clock.
    /// Returns whether anything is left to search. Results apply from the next `prepare` on.
    fn tune(&mut self, _now: &dyn Fn() -> Duration) -> Result<bool, KernelError> {
        Ok(false)
    }

    /// Bytes of the state of one recurrent layer in one slot.
    fn state(&self, layer: usize, slot: u32) -> Result<Cow<'_, [u8]>, KernelError>;

    /// Overwrites the state of one layer; `bytes` is as long as what `state` returns.
    fn write_state(&mut self, layer: usize, slot: u32, bytes: &[u8]) -> Result<(), KernelError>;

    /// Copies one slot to another, in all recurrent layers of this device.
    fn copy_state(&mut self, from: u32, to: u32) -> Result<(), KernelError>;
}
