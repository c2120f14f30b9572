//! Runs a graph over its devices, segment by segment. Each device plans its own nodes by row bucket
//! (1, 2, 4 … max_rows) over one arena. Guarantees: no heap allocation in `run` once a row bucket has been used.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::{Backend, ProgressFn};
use crate::batch::{Batch, StateSlots};
use crate::capacity::Capacity;
use crate::device_stats::{MonotonicClock, SubmissionStats};
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, KvLayerLayout, Retention, ValueId};
use crate::interrupt::Interrupt;
use crate::ops::kv_rows::requantized_page;
use crate::ops::top_k::TopKEntry;
use crate::plan::fuse::{Fusion, steps};
use crate::plan::layout::{MAX_REPLAY_ROWS, ValueLifetime, buckets, lay_out};
use crate::plan::segments::{Segment, runs_of};
use crate::profile::Observer;

mod draft;
mod lost_device;
mod replay;

use lost_device::LostDevice;

/// Bytes of activations that a CPU needs for batches of up to `capacity.max_rows`, partial results of attention
/// included.
pub fn arena_bytes(graph: &Graph, device: DeviceId, capacity: &Capacity) -> u64 {
    let all: Vec<_> = runs_of(graph, device).flat_map(|nodes| steps(graph, nodes, Fusion::Full)).collect();
    let lens = buckets(capacity.max_rows)
        .map(|rows| lay_out(graph, device, &all, rows, capacity, ValueLifetime::Needed).len);
    let values = lens.max().unwrap_or(0) as u64 * size_of::<f32>() as u64;
    values + crate::cpu::partial_bytes(graph, device, capacity.all_pages(Retention::All))
}

/// What a run returns of each row of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputSelection {
    /// whole rows
    Rows,
    /// the columns of the `k` largest numbers: see `ops::top_k`
    TopK(usize),
}

/// A graph with its devices and their memory, ready to run.
pub struct Executor {
    graph: Arc<Graph>,
    devices: Vec<Box<dyn Backend>>,
    /// all but the draft block
    segments: Vec<Segment>,
    capacity: Capacity,
    slots: StateSlots,
    n_outputs: usize,
    n_draft_outputs: usize,
    selection: OutputSelection,
    /// top-k entries of the last run; empty where whole rows were selected
    top_k: Vec<TopKEntry>,
}

impl Executor {
    /// Allocates everything: activations for `max_rows`, KV pages, states. Errors: fewer devices than the graph uses,
    /// zero capacity, no memory.
    pub fn new(
        graph: Graph,
        devices: Vec<Box<dyn Backend>>,
        capacity: Capacity,
    ) -> Result<Self, KernelError> {
        Self::with_lifetime(graph, devices, capacity, ValueLifetime::Needed)
    }

    /// As `new`, choosing which values stay readable after a run.
    pub fn with_lifetime(
        graph: Graph,
        devices: Vec<Box<dyn Backend>>,
        capacity: Capacity,
        lifetime: ValueLifetime,
    ) -> Result<Self, KernelError> {
        Self::prepared(graph, devices, capacity, lifetime, &mut |_| ())
    }

    /// As `new`; `progress` receives the bytes of weights uploaded to devices with dedicated memory so far.
    pub fn with_progress(
        graph: Graph,
        devices: Vec<Box<dyn Backend>>,
        capacity: Capacity,
        progress: ProgressFn,
    ) -> Result<Self, KernelError> {
        Self::prepared(graph, devices, capacity, ValueLifetime::Needed, progress)
    }

    fn prepared(
        graph: Graph,
        mut devices: Vec<Box<dyn Backend>>,
        capacity: Capacity,
        lifetime: ValueLifetime,
        progress: ProgressFn,
    ) -> Result<Self, KernelError> {
        if devices.len() < graph.n_devices() {
            return Err(KernelError::mismatch("executor", "devices", graph.n_devices(), devices.len()));
        }
        if capacity.max_rows == 0 || capacity.max_outputs == 0 {
            return Err(KernelError::mismatch("executor", "capacity", "at least one row", 0));
        }
        let graph = Arc::new(graph);
        let mut n_before = 0u64;
        for (i, device) in devices.iter_mut().enumerate() {
            let mut n_own = 0;
            let mut progress = |n: u64| {
                n_own = n;
                progress(n_before + n);
            };
            device.prepare_with_progress(&graph, DeviceId(i), capacity, lifetime, &mut progress)?;
            n_before += n_own;
        }
        let segments = draft::without_draft(&graph);
        Ok(Self {
            graph,
            devices,
            segments,
            capacity,
            slots: StateSlots::new(&capacity),
            n_outputs: 0,
            n_draft_outputs: 0,
            selection: OutputSelection::Rows,
            top_k: Vec::new(),
        })
    }

    /// The graph that runs.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The capacity that was allocated.
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Frees all memory of the devices: weights, keys, values and states. Later calls fail with `GpuFault::Lost`.
    pub fn release(&mut self) {
        self.n_outputs = 0;
        self.top_k.clear();
        for device in &mut self.devices {
            *device = Box::new(LostDevice::replacing(device.as_ref()));
        }
    }

    /// Sets the interrupt that ends runs early; None: runs complete.
    pub fn set_interrupt(&mut self, interrupt: Option<&Interrupt>) {
        self.devices.iter_mut().for_each(|device| device.set_interrupt(interrupt.cloned()));
    }

    /// Switches per-step timing by device timestamps on or off; see `Backend::set_step_timing`. Errors: no memory.
    pub fn set_step_timing(&mut self, enabled: bool) -> Result<(), KernelError> {
        self.devices.iter_mut().try_for_each(|device| device.set_step_timing(enabled))
    }

    /// Selects what the following runs return of the output.
    pub fn select_output(&mut self, selection: OutputSelection) {
        if selection == self.selection {
            return;
        }
        let k = match selection {
            OutputSelection::Rows => None,
            OutputSelection::TopK(k) => Some(k),
        };
        let device = self.graph.value(self.graph.output()).device;
        self.devices[device.0].select_top_k(k);
        self.selection = selection;
        // the last run returned another selection
        self.n_outputs = 0;
        self.top_k.clear();
    }

    /// Starts counting submissions to devices and timing them with `clock`; None stops.
    pub fn measure_submissions(&mut self, clock: Option<&MonotonicClock>) {
        self.devices.iter_mut().for_each(|device| device.measure_submissions(clock.cloned()));
    }

    /// Returns the submission statistics of all devices since the last call, and resets them.
    pub fn take_submission_stats(&mut self) -> SubmissionStats {
        let stats = self.devices.iter_mut().map(|device| device.take_submission_stats());
        stats.fold(SubmissionStats::default(), |a, b| a + b)
    }

    /// A one-line description of each device: "cpu avx512, 8 threads".
    pub fn describe(&self) -> Vec<String> {
        self.devices.iter().map(|d| d.describe()).collect()
    }

    /// Runs the batch: writes its keys and values, and leaves the logits of `batch.outputs` in `output`.
    /// After an error the KV slots of the batch are undefined; other slots are untouched.
    pub fn run(&mut self, batch: &Batch) -> Result<(), KernelError> {
        self.run_observed(batch, None)
    }

    /// As `run`, calling `observer` after each step.
    pub fn run_observed(&mut self, batch: &Batch, mut observer: Option<Observer>) -> Result<(), KernelError> {
        self.n_outputs = 0;
        self.n_draft_outputs = 0;
        self.top_k.clear();
        batch.check(&self.graph, &self.capacity, &mut self.slots)?;
        for device in &mut self.devices {
            device.begin(batch)?;
        }
        for segment in &self.segments {
            match segment {
                Segment::Run { device, nodes } => {
                    // a match, since Option<&mut dyn> can't be reborrowed with a shorter lifetime otherwise
                    let observer: Option<Observer> = match &mut observer {
                        Some(f) => Some(&mut **f),
                        None => None,
                    };
                    self.devices[device.0].run(nodes.clone(), batch, observer)?;
                }
                Segment::Copy { from, to, x, output } => {
                    let n_rows = batch.rows(self.graph.value(*x).rows);
                    let [from, to] = self
                        .devices
                        .get_disjoint_mut([from.0, to.0])
                        .expect("a copy joins two different devices of the executor");
                    to.write(*output, from.read(*x, n_rows));
                }
            }
        }
        match self.selection {
            OutputSelection::Rows => self.n_outputs = batch.outputs.len(),
            OutputSelection::TopK(k) => {
                let output = self.graph.output();
                let value = self.graph.value(output);
                let shape = (batch.outputs.len(), value.width);
                self.devices[value.device.0].top_k(output, shape, k, &mut self.top_k);
            }
        }
        Ok(())
    }

    /// Continues the search for faster kernel shapes; see `Backend::tune`. Returns whether anything is left to search.
    pub fn tune(&mut self, now: &dyn Fn() -> Duration) -> Result<bool, KernelError> {
        for device in &mut self.devices {
            if device.tune(now)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// (outputs of the last successful run, width of the graph's output); empty unless whole rows were selected.
    pub fn output(&self) -> &[f32] {
        self.value(self.graph.output(), self.n_outputs)
    }

    /// Of each output of the last successful run, the selected columns, largest first: min(k, width) of them. Empty
    /// where whole rows were selected.
    pub fn top_k(&self) -> &[TopKEntry] {
        &self.top_k
    }

    /// (n_rows, width) of a value that is still readable: any with `ValueLifetime::All`, else only the output.
    pub fn value(&self, value: ValueId, n_rows: usize) -> &[f32] {
        self.devices[self.graph.value(value).device.0].read(value, n_rows)
    }

    /// Bytes of one layer of one page: keys, then values.
    pub fn kv_page(&self, layer: usize, page: u32) -> Result<Cow<'_, [u8]>, KernelError> {
        let device = self.kv_device(layer, page)?;
        self.devices[device].kv_page(layer, page)
    }

    /// Restores what `kv_page` returned.
    pub fn write_kv_page(&mut self, layer: usize, page: u32, bytes: &[u8]) -> Result<(), KernelError> {
        let device = self.kv_device(layer, page)?;
        let expected = self.kv_layout(layer, page).page_bytes();
        if bytes.len() != expected {
            return Err(KernelError::KvPage { what: "bytes", found: bytes.len(), expected });
        }
        self.devices[device].write_kv_page(layer, page, bytes)
    }

    /// Copies page `from` to page `to` in all layers with this retention: copy on write for forks.
    pub fn copy_kv_page(&mut self, retention: Retention, from: u32, to: u32) -> Result<(), KernelError> {
        for page in [from, to] {
            check_below(page, self.capacity.pages(retention))?;
        }
        for device in &mut self.devices {
            device.copy_kv_page(retention, from, to)?;
        }
        Ok(())
    }

    /// The layout of a layer's keys and values in that page.
    pub fn kv_layout(&self, layer: usize, page: u32) -> KvLayerLayout {
        let layout = self.graph.kv().layers[layer];
        match layout.retention() {
            Retention::All if page as usize >= self.capacity.n_pages => {
                layout.requantized().unwrap_or(layout)
            }
            Retention::All | Retention::Window => layout,
        }
    }

    /// Requantizes page `from` into the requantized page `to`, in all layers that retain all positions.
    pub fn requantize_kv_page(&mut self, from: u32, to: u32) -> Result<(), KernelError> {
        check_below(from, self.capacity.n_pages)?;
        if (to as usize) < self.capacity.n_pages {
            let expected = self.capacity.n_pages;
            return Err(KernelError::KvPage { what: "requantized page", found: to as usize, expected });
        }
        for layer in 0..self.graph.kv().layers.len() {
            let layout = self.graph.kv().layers[layer];
            match layout.retention() {
                Retention::All => {
                    let requantized = requantized_page(layout, &self.kv_page(layer, from)?);
                    self.write_kv_page(layer, to, &requantized)?;
                }
                Retention::Window => {}
            }
        }
        Ok(())
    }

    /// Returns the memory of an unused page of the layers that retain all positions to the system, where possible.
    pub fn release_kv_page(&mut self, page: u32) -> Result<(), KernelError> {
        check_below(page, self.capacity.n_pages)?;
        self.devices.iter_mut().for_each(|device| device.release_kv_page(page));
        Ok(())
    }

    /// The recurrent state of a sequence as bytes, layer after layer. Empty if the graph has none.
    pub fn state(&self, slot: u32) -> Result<Vec<u8>, KernelError> {
        self.check_slot(slot)?;
        let mut bytes = Vec::new();
        for (layer, device) in self.graph.state_devices().iter().enumerate() {
            bytes.extend_from_slice(&self.devices[device.0].state(layer, slot)?);
        }
        Ok(bytes)
    }

    /// One recurrent state of a sequence as bytes: that of index `state`.
    pub fn one_state(&self, state: usize, slot: u32) -> Result<Cow<'_, [u8]>, KernelError> {
        self.check_slot(slot)?;
        let Some(device) = self.graph.state_devices().get(state) else {
            let expected = self.graph.state_devices().len();
            return Err(KernelError::KvPage { what: "recurrent state", found: state, expected });
        };
        self.devices[device.0].state(state, slot)
    }

    /// Restores what `state` returned.
    pub fn write_state(&mut self, slot: u32, bytes: &[u8]) -> Result<(), KernelError> {
        self.check_slot(slot)?;
        let expected = self.graph.kv().states.iter().sum::<usize>() * size_of::<f32>();
        if bytes.len() != expected {
            return Err(KernelError::KvPage { what: "bytes of a state", found: bytes.len(), expected });
        }
        let mut rest = bytes;
        for (layer, device) in self.graph.state_devices().iter().enumerate() {
            let (part, left) = rest.split_at(self.graph.kv().states[layer] * size_of::<f32>());
            self.devices[device.0].write_state(layer, slot, part)?;
            rest = left;
        }
        Ok(())
    }

    /// Copies one slot to another in all recurrent layers: for forks, and to keep a state for later.
    pub fn copy_state(&mut self, from: u32, to: u32) -> Result<(), KernelError> {
        for slot in [from, to] {
            self.check_slot(slot)?;
        }
        for device in &mut self.devices {
            device.copy_state(from, to)?;
        }
        Ok(())
    }

    fn check_slot(&self, slot: u32) -> Result<(), KernelError> {
        if slot as usize >= self.capacity.n_states {
            let expected = self.capacity.n_states;
            return Err(KernelError::KvPage {
                what: "slot of a recurrent state",
                found: slot as usize,
                expected,
            });
        }
        Ok(())
    }

    fn kv_device(&self, layer: usize, page: u32) -> Result<usize, KernelError> {
        let (Some(device), Some(layout)) =
            (self.graph.kv_devices().get(layer), self.graph.kv().layers.get(layer))
        else {
            let expected = self.graph.kv_devices().len();
            return Err(KernelError::KvPage { what: "layer", found: layer, expected });
        };
        check_below(page, self.capacity.all_pages(layout.retention()))?;
        Ok(device.0)
    }
}

fn check_below(page: u32, expected: usize) -> Result<(), KernelError> {
    match (page as usize) < expected {
        true => Ok(()),
        false => Err(KernelError::KvPage { what: "page", found: page as usize, expected }),
    }
}
