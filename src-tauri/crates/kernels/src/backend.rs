//! What a device must offer to run its part of a graph. `Scalar`, `Cpu` and `Gpu` implement it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use weights::TensorView;

use crate::effort::{Effort, Now};
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, Retention, ValueId};
use crate::interrupt::Interrupt;
use crate::ops::likeliest::{self, Likely};
use crate::plan::{Batch, Capacity};
use crate::profile::Observer;
use crate::tensor::Tensor;

/// The kinds of device there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// the specification: f32 activations, one thread
    Scalar,
    /// worker team and SIMD
    Cpu,
    /// a graphics card
    Gpu,
}

/// Whether values may share memory once nothing reads them any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retain {
    /// only the output and values that other devices read stay readable after a run
    Needed,
    /// every value stays readable: for `compare`
    All,
}

/// Hears how many bytes are done.
pub type Told<'a> = &'a mut dyn FnMut(u64);

/// One device with everything it keeps for one executor: plans, activations, and the KV pages of its layers.
///
/// Order of calls: `upload` any time; `prepare` once; then for each batch `begin`, and `write`, `run`, `read` as the
/// segments of the graph ask. Methods other than `prepare` may assume what `Executor` checked (batch in range).
pub trait Backend: Send {
    fn kind(&self) -> BackendKind;

    /// "cpu avx512, 8 threads"
    fn describe(&self) -> String;

    /// Weights onto this device (a CPU borrows them). Errors: a dtype without codec.
    fn upload(&self, view: &TensorView) -> Result<Tensor, KernelError>;

    /// Allocates for the nodes and KV layers of `graph` that belong to `device`.
    fn prepare(
        &mut self,
        graph: &Arc<Graph>,
        device: DeviceId,
        capacity: Capacity,
        retain: Retain,
    ) -> Result<(), KernelError>;

    /// The same; a device with memory of its own tells how many bytes of weights it has brought there so far.
    fn prepare_telling(
        &mut self,
        graph: &Arc<Graph>,
        device: DeviceId,
        capacity: Capacity,
        retain: Retain,
        _told: Told,
    ) -> Result<(), KernelError> {
        self.prepare(graph, device, capacity, retain)
    }

    /// Chooses the plan for the batch's row bucket; may allocate only when the bucket is new.
    fn begin(&mut self, batch: &Batch) -> Result<(), KernelError>;

    /// Runs `nodes` (indices into the graph, all of this device, no `Copy` among them).
    fn run(
        &mut self,
        nodes: Range<usize>,
        batch: &Batch,
        observer: Option<Observer>,
    ) -> Result<(), KernelError>;

    /// From here on a run ends with `KernelError::Interrupted` between two of its steps when that is asked for; None: it
    /// ends with its last step. A device that takes its work as a whole may ignore it.
    fn interrupt_by(&mut self, _interrupt: Option<Interrupt>) {}

    /// From here on observers are told when each step ran by the device's own clock, after the whole run, and see no
    /// queries; or again as each step ends. A device without such a clock ignores it. Errors: no memory.
    fn time_steps(&mut self, _wanted: bool) -> Result<(), KernelError> {
        Ok(())
    }

    /// The first `n_rows` rows of a value that lives here: (n_rows, width)
    fn read(&self, value: ValueId, n_rows: usize) -> &[f32];

    /// From here on what the device is told is counted and timed by this clock; None: no more. A device that computes
    /// itself is told nothing.
    fn measure_by(&mut self, _now: Option<Now>) {}

    /// What it was told since this was last asked.
    fn effort(&mut self) -> Effort {
        Effort::default()
    }

    /// From here on only so many of the largest columns of the graph's output are asked for, by `likeliest`; None: all,
    /// by `read`. A device whose memory is the machine's may ignore it.
    fn want_likeliest(&mut self, _k: Option<usize>) {}

    /// Of each of the first `n_rows` rows of the graph's output, which lives here and has `n_columns`, the `k` largest
    /// columns, as `ops::likeliest` orders them: added to `out`. `k` is what was wanted when it ran.
    fn likeliest(
        &self,
        output: ValueId,
        (n_rows, n_columns): (usize, usize),
        k: usize,
        out: &mut Vec<Likely>,
    ) {
        likeliest::of_rows(self.read(output, n_rows), n_columns, k, out);
    }

    /// Sets the first rows of a value that lives here: `data` (n_rows, width)
    fn write(&mut self, value: ValueId, data: &[f32]);

    /// Bytes of one layer of one page, keys then values, as `ops::kv_write` lays them out. Errors: a lost device.
    fn kv_page(&self, layer: usize, page: u32) -> Result<Cow<'_, [u8]>, KernelError>;

    /// The memory of a page of layers that keep everything may go back to the system, where there is a way.
    fn kv_let_go(&mut self, _page: u32) {}

    /// Replaces them; `bytes` has the length that `kv_page` returns.
    fn kv_write_page(&mut self, layer: usize, page: u32, bytes: &[u8]) -> Result<(), KernelError>;

    /// Copies all layers of a kind on this device from one page to another.
    fn kv_copy_page(&mut self, retention: Retention, from: u32, to: u32) -> Result<(), KernelError>;

    /// Looks a little further for faster shapes of kernels, for about a tenth of a second at most; `now` is a monotonic
    /// clock. False: nothing is left to look for. What is found counts from the next `prepare` on.
    fn tune(&mut self, _now: &dyn Fn() -> Duration) -> Result<bool, KernelError> {
        Ok(false)
    }

    /// Bytes of one recurrent layer's state in one slot.
    fn state(&self, layer: usize, slot: u32) -> Result<Cow<'_, [u8]>, KernelError>;

    /// Replaces them; `bytes` has the length that `state` returns.
    fn write_state(&mut self, layer: usize, slot: u32, bytes: &[u8]) -> Result<(), KernelError>;

    /// Copies the states of all layers of this device from one slot to another.
    fn copy_state(&mut self, from: u32, to: u32) -> Result<(), KernelError>;
}
