//! Runs a graph over its devices. A graph is cut into segments, one per stretch of nodes on one device, joined by
//! explicit copies; each device plans its own nodes by row bucket (1, 2, 4 … max_rows) over one arena.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::{Backend, Retain, Told};
use crate::effort::{Effort, Now};
use crate::error::KernelError;
use crate::gone::Gone;
use crate::graph::{DeviceId, Graph, KvLayerLayout, Op, Retention, ValueId};
use crate::interrupt::Interrupt;
use crate::ops::kv_rows::aged_page;
use crate::ops::likeliest::Likely;
use crate::profile::Observer;

mod batch;
pub(crate) mod fuse;
pub(crate) mod layout;
mod norm_rotate;
pub(crate) mod resident;
mod rotate;
mod sandwich;
mod states;

pub use batch::Batch;
use states::SlotUses;

/// What an executor reserves room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// KV pages of `PAGE_LEN` tokens, shared by all sequences, of the layers that keep everything
    pub n_pages: usize,
    /// pages of the same layers that hold their positions in fewer bits, numbered after those: see `KvLayerLayout::aged`
    pub n_aged_pages: usize,
    /// the same of the layers with a window
    pub n_window_pages: usize,
    /// most tokens in one batch
    pub max_rows: usize,
    /// most rows of logits from one batch: an output row costs n_vocab floats
    pub max_outputs: usize,
    /// slots of recurrent states; each holds one sequence's, of all layers
    pub n_states: usize,
}

impl Capacity {
    /// Pages that sequences have of the layers of one kind, aged or not.
    pub fn all_pages(&self, retention: Retention) -> usize {
        match retention {
            Retention::All => self.n_pages + self.n_aged_pages,
            Retention::Window => self.n_window_pages,
        }
    }

    /// Those that are written token by token.
    pub fn pages(&self, retention: Retention) -> usize {
        match retention {
            Retention::All => self.n_pages,
            Retention::Window => self.n_window_pages,
        }
    }
}

/// Bytes that the values of a device take in batches of up to `capacity.max_rows`, as the executor will lay them out,
/// and those of attention that threads share.
pub fn arena_bytes(graph: &Graph, device: DeviceId, capacity: &Capacity) -> u64 {
    let all: Vec<_> =
        runs_of(graph, device).flat_map(|nodes| fuse::steps(graph, nodes, fuse::Fusion::Full)).collect();
    let lens = layout::buckets(capacity.max_rows)
        .map(|rows| layout::lay_out(graph, device, &all, rows, capacity, Retain::Needed).len);
    let values = lens.max().unwrap_or(0) as u64 * size_of::<f32>() as u64;
    values + crate::cpu::partial_bytes(graph, device, capacity.all_pages(Retention::All))
}

/// The smallest bucket that holds `n` rows.
pub(crate) fn bucket(n: usize, max: usize) -> usize {
    n.next_power_of_two().min(max)
}

/// A stretch of the graph on one device.
#[derive(Clone, Debug, PartialEq)]
enum Segment {
    Run { device: DeviceId, nodes: Range<usize> },
    Copy { from: DeviceId, to: DeviceId, x: ValueId, output: ValueId },
}

/// What of each row of the output comes back from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// all of it
    Rows,
    /// the columns of so many of its largest numbers: see `ops::likeliest`
    Likeliest(usize),
}

/// A graph, its devices and their memory: ready to run.
pub struct Executor {
    graph: Arc<Graph>,
    devices: Vec<Box<dyn Backend>>,
    segments: Vec<Segment>,
    capacity: Capacity,
    slots: SlotUses,
    n_outputs: usize,
    /// what of the output is asked for
    returned: Returned,
    /// of the last run, if they were
    likeliest: Vec<Likely>,
}

impl Executor {
    /// Allocates everything: activations for `max_rows`, KV pages. Errors: fewer devices than the graph uses,
    /// zero capacity, no memory.
    pub fn new(
        graph: Graph,
        devices: Vec<Box<dyn Backend>>,
        capacity: Capacity,
    ) -> Result<Self, KernelError> {
        Self::with_retain(graph, devices, capacity, Retain::Needed)
    }

    /// As `new`, with a say in which values stay readable.
    pub fn with_retain(
        graph: Graph,
        devices: Vec<Box<dyn Backend>>,
        capacity: Capacity,
        retain: Retain,
    ) -> Result<Self, KernelError> {
        Self::prepared(graph, devices, capacity, retain, &mut |_| ())
    }

    /// As `new`; `told` hears how many bytes of weights are in devices' own memory so far.
    pub fn telling(
        graph: Graph,
        devices: Vec<Box<dyn Backend>>,
        capacity: Capacity,
        told: Told,
    ) -> Result<Self, KernelError> {
        Self::prepared(graph, devices, capacity, Retain::Needed, told)
    }

    fn prepared(
        graph: Graph,
        mut devices: Vec<Box<dyn Backend>>,
        capacity: Capacity,
        retain: Retain,
        told: Told,
    ) -> Result<Self, KernelError> {
        if devices.len() < graph.n_devices() {
            return Err(Graph::mismatch("executor", "devices", graph.n_devices(), devices.len()));
        }
        if capacity.max_rows == 0 || capacity.max_outputs == 0 {
            return Err(Graph::mismatch("executor", "capacity", "at least one row", 0));
        }
        let graph = Arc::new(graph);
        let mut n_before = 0u64;
        for (i, device) in devices.iter_mut().enumerate() {
            let mut n_own = 0;
            let mut told = |n: u64| {
                n_own = n;
                told(n_before + n);
            };
            device.prepare_telling(&graph, DeviceId(i), capacity, retain, &mut told)?;
            n_before += n_own;
        }
        let segments = segments(&graph);
        Ok(Self {
            graph,
            devices,
            segments,
            capacity,
            slots: SlotUses::new(&capacity),
            n_outputs: 0,
            returned: Returned::Rows,
            likeliest: Vec::new(),
        })
    }

    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// The devices let go of all that they have, for whoever needs the room: weights, keys and values. What they are asked
    /// for afterwards is refused as that of a lost card.
    pub fn let_go(&mut self) {
        self.n_outputs = 0;
        self.likeliest.clear();
        for device in &mut self.devices {
            *device = Box::new(Gone::of(device.as_ref()));
        }
    }

    /// Runs may be given up from here on; None: they may not.
    pub fn interrupt_by(&mut self, interrupt: Option<&Interrupt>) {
        self.devices.iter_mut().for_each(|device| device.interrupt_by(interrupt.cloned()));
    }

    /// Observers are told when each step ran by the device's own clock, where it has one. Errors: no memory.
    pub fn time_steps(&mut self, wanted: bool) -> Result<(), KernelError> {
        self.devices.iter_mut().try_for_each(|device| device.time_steps(wanted))
    }

    /// What of the output runs bring back from here on.
    pub fn bring_back(&mut self, returned: Returned) {
        if returned == self.returned {
            return;
        }
        let k = match returned {
            Returned::Rows => None,
            Returned::Likeliest(k) => Some(k),
        };
        let device = self.graph.value(self.graph.output()).device;
        self.devices[device.0].want_likeliest(k);
        self.returned = returned;
        // what the last run brought back was something else
        self.n_outputs = 0;
        self.likeliest.clear();
    }

    /// What devices are told is counted and timed by this clock from here on; None: no more.
    pub fn measure_by(&mut self, now: Option<&Now>) {
        self.devices.iter_mut().for_each(|device| device.measure_by(now.cloned()));
    }

    /// What all devices were told since this was last asked.
    pub fn effort(&mut self) -> Effort {
        self.devices.iter_mut().map(|device| device.effort()).fold(Effort::default(), |a, b| a + b)
    }

    /// "cpu avx512, 8 threads" for each device.
    pub fn describe(&self) -> Vec<String> {
        self.devices.iter().map(|d| d.describe()).collect()
    }

    /// Computes the batch: writes its keys and values, leaves the logits of `batch.outputs` in `output`.
    /// After an error the KV slots of the batch hold anything; other slots are untouched.
    pub fn run(&mut self, batch: &Batch) -> Result<(), KernelError> {
        self.run_observed(batch, None)
    }

    /// As `run`, telling `observer` of each step after it ran.
    pub fn run_observed(&mut self, batch: &Batch, mut observer: Option<Observer>) -> Result<(), KernelError> {
        self.n_outputs = 0;
        self.likeliest.clear();
        batch.check(&self.graph, &self.capacity, &mut self.slots)?;
        for device in &mut self.devices {
            device.begin(batch)?;
        }
        for segment in &self.segments {
            match segment {
                Segment::Run { device, nodes } => {
                    // spelled out: a reborrow of an Option<&mut dyn> with a shorter life
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
        match self.returned {
            Returned::Rows => self.n_outputs = batch.outputs.len(),
            Returned::Likeliest(k) => {
                let output = self.graph.output();
                let value = self.graph.value(output);
                let shape = (batch.outputs.len(), value.width);
                self.devices[value.device.0].likeliest(output, shape, k, &mut self.likeliest);
            }
        }
        Ok(())
    }

    /// Looks a little further for faster shapes of kernels; see `Backend::tune`. False: nothing is left to look for.
    pub fn tune(&mut self, now: &dyn Fn() -> Duration) -> Result<bool, KernelError> {
        for device in &mut self.devices {
            if device.tune(now)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// (outputs of the last successful run, width of the graph's output); none where something else was wanted of it
    pub fn output(&self) -> &[f32] {
        self.value(self.graph.output(), self.n_outputs)
    }

    /// Of each output of the last successful run the columns that were wanted, largest first: as many as were asked for,
    /// or as there are. None where whole rows were wanted.
    pub fn likeliest(&self) -> &[Likely] {
        &self.likeliest
    }

    /// (n_rows, width) of any value that is still kept: all with `Retain::All`, else the output only.
    pub fn value(&self, value: ValueId, n_rows: usize) -> &[f32] {
        self.devices[self.graph.value(value).device.0].read(value, n_rows)
    }

    /// Bytes of one layer of one page: keys, then values.
    pub fn kv_page(&self, layer: usize, page: u32) -> Result<Cow<'_, [u8]>, KernelError> {
        let device = self.kv_device(layer, page)?;
        self.devices[device].kv_page(layer, page)
    }

    /// Restores what `kv_page` returned.
    pub fn kv_write_page(&mut self, layer: usize, page: u32, bytes: &[u8]) -> Result<(), KernelError> {
        let device = self.kv_device(layer, page)?;
        let expected = self.kv_layout(layer, page).page_bytes();
        if bytes.len() != expected {
            return Err(KernelError::KvPage { what: "bytes", found: bytes.len(), expected });
        }
        self.devices[device].kv_write_page(layer, page, bytes)
    }

    /// All layers of a kind of page `from` into page `to`: copy on write for forks.
    pub fn kv_copy_page(&mut self, retention: Retention, from: u32, to: u32) -> Result<(), KernelError> {
        for page in [from, to] {
            check_below(page, self.capacity.pages(retention))?;
        }
        for device in &mut self.devices {
            device.kv_copy_page(retention, from, to)?;
        }
        Ok(())
    }

    /// How a layer's keys and values lie in that page.
    pub fn kv_layout(&self, layer: usize, page: u32) -> KvLayerLayout {
        let layout = self.graph.kv().layers[layer];
        match layout.retention() {
            Retention::All if page as usize >= self.capacity.n_pages => layout.aged().unwrap_or(layout),
            Retention::All | Retention::Window => layout,
        }
    }

    /// What page `from` holds of the layers that keep everything goes to the aged page `to`, in fewer bits.
    pub fn kv_age_page(&mut self, from: u32, to: u32) -> Result<(), KernelError> {
        check_below(from, self.capacity.n_pages)?;
        if (to as usize) < self.capacity.n_pages {
            let expected = self.capacity.n_pages;
            return Err(KernelError::KvPage { what: "aged page", found: to as usize, expected });
        }
        for layer in 0..self.graph.kv().layers.len() {
            let layout = self.graph.kv().layers[layer];
            match layout.retention() {
                Retention::All => {
                    let aged = aged_page(layout, &self.kv_page(layer, from)?);
                    self.kv_write_page(layer, to, &aged)?;
                }
                Retention::Window => {}
            }
        }
        Ok(())
    }

    /// Nobody needs what page `page` of the layers that keep everything holds: its memory may go back to the system.
    pub fn kv_let_go(&mut self, page: u32) -> Result<(), KernelError> {
        check_below(page, self.capacity.n_pages)?;
        self.devices.iter_mut().for_each(|device| device.kv_let_go(page));
        Ok(())
    }

    /// A sequence's recurrent state, of every layer in turn, as bytes. Empty where the graph has none.
    pub fn state(&self, slot: u32) -> Result<Vec<u8>, KernelError> {
        self.check_slot(slot)?;
        let mut bytes = Vec::new();
        for (layer, device) in self.graph.state_devices().iter().enumerate() {
            bytes.extend_from_slice(&self.devices[device.0].state(layer, slot)?);
        }
        Ok(bytes)
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

    /// All layers of one slot into another: for forks, and to keep a state that will be needed again.
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

/// The stretches of nodes of one device, in order: what `Backend::run` will be asked for.
pub(crate) fn runs_of(graph: &Graph, of: DeviceId) -> impl Iterator<Item = Range<usize>> {
    segments(graph).into_iter().filter_map(move |segment| match segment {
        Segment::Run { device, nodes } => (device == of).then_some(nodes),
        Segment::Copy { .. } => None,
    })
}

/// Cuts the nodes wherever the device changes and at each copy.
fn segments(graph: &Graph) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    for (i, node) in graph.nodes().iter().enumerate() {
        if let (Op::Copy { x }, Some(output)) = (&node.op, node.output) {
            let from = graph.value(*x).device;
            segments.push(Segment::Copy { from, to: node.device, x: *x, output });
            continue;
        }
        match segments.last_mut() {
            Some(Segment::Run { device, nodes }) if *device == node.device => nodes.end = i + 1,
            _ => segments.push(Segment::Run { device: node.device, nodes: i..i + 1 }),
        }
    }
    segments
}
