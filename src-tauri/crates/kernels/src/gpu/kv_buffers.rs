//! What a card keeps of sequences: pages of keys and values, and recurrent states, a buffer for each layer. Pages lie
//! as on the CPU, so that whoever reads or moves them need not know where they were. They have their room from the
//! start; where contexts age it is made as pages come, of either kind, since few are exact at a time then.

use super::State;
use super::device::Device;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, KvLayerLayout, Retention};
use crate::plan::{Batch, Capacity};

/// Keys, values and states of the layers of one device.
pub struct Kept {
    pages: Vec<Option<Pages>>,
    states: Vec<Option<States>>,
    /// what goes from one place of a buffer to another passes through here
    between: wgpu::Buffer,
}

/// The pages of one layer: those that are written token by token, and behind them those that have aged.
pub struct Pages {
    pub buffer: wgpu::Buffer,
    pub layout: KvLayerLayout,
    pub page_bytes: u64,
    /// pages that may be written token by token: others have higher numbers
    pub n_exact: u32,
    /// that there is room for
    room: u32,
    /// None: the layer has none
    pub aged: Option<AgedPages>,
}

/// Those of a layer that have aged.
#[derive(Clone, Copy)]
pub struct AgedPages {
    pub page_bytes: u64,
    /// that there is room for
    n: u32,
    /// that there may be
    most: u32,
}

/// Pages of a kind that room is made for at least: those of eight stretches.
const FEWEST: u32 = 64;

/// Pages that room is made for where there is room for `n` and `wanted` are needed: half as many more, at least.
fn grown(n: u32, wanted: u32, most: u32) -> u32 {
    wanted.max(n.saturating_add(n / 2)).max(FEWEST).min(most)
}

const CONTEXT: &str = "the context (KV cache)";

impl Pages {
    /// Where aged pages begin. (bytes)
    pub fn first_aged(&self) -> u64 {
        self.page_bytes * u64::from(self.room)
    }

    /// Where a page begins, and its length. (bytes)
    pub fn place(&self, page: u32) -> (u64, u64) {
        match self.aged {
            Some(AgedPages { page_bytes, .. }) if page >= self.n_exact => {
                (self.first_aged() + u64::from(page - self.n_exact) * page_bytes, page_bytes)
            }
            Some(_) | None => (u64::from(page) * self.page_bytes, self.page_bytes),
        }
    }

    fn has_room(&self, page: u32) -> bool {
        self.aged.is_none_or(|aged| match page.checked_sub(self.n_exact) {
            None => page < self.room,
            Some(of_aged) => of_aged < aged.n,
        })
    }

    /// Room for a page that has none, and for some more: what is there moves into a larger buffer. Nothing may be bound
    /// to the old one any more. Errors: no memory, and all is as it was.
    fn make_room(&mut self, gpu: &Device, page: u32) -> Result<(), KernelError> {
        let Some(aged) = self.aged else { return Ok(()) };
        let (room, n) = match page.checked_sub(self.n_exact) {
            None => (grown(self.room, page.saturating_add(1), self.n_exact), aged.n),
            Some(of_aged) => (self.room, grown(aged.n, of_aged.saturating_add(1), aged.most)),
        };
        let (from, to) = (self.first_aged(), self.page_bytes * u64::from(room));
        let buffer = gpu.storage(CONTEXT, to + u64::from(n) * aged.page_bytes)?;
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let of_aged = u64::from(aged.n) * aged.page_bytes;
        for (from, to, n_bytes) in [(0, 0, from), (from, to, of_aged)] {
            if n_bytes > 0 {
                encoder.copy_buffer_to_buffer(&self.buffer, from, &buffer, to, n_bytes);
            }
        }
        gpu.queue.submit([encoder.finish()]);
        (self.buffer, self.room, self.aged) = (buffer, room, Some(AgedPages { n, ..aged }));
        // the old one is gone before the next layer asks for as much
        gpu.wait()
    }
}

/// The states of one recurrent layer.
pub struct States {
    pub buffer: wgpu::Buffer,
    /// of one slot
    pub n_bytes: u64,
}

impl Kept {
    pub fn new(
        gpu: &Device,
        graph: &Graph,
        device: DeviceId,
        capacity: &Capacity,
    ) -> Result<Self, KernelError> {
        let mut pages = Vec::with_capacity(graph.kv().layers.len());
        for (layout, at) in graph.kv().layers.iter().zip(graph.kv_devices()) {
            pages.push(match *at == device {
                true => Some(new_pages(gpu, *layout, capacity)?),
                false => None,
            });
        }
        let mut states = Vec::with_capacity(graph.kv().states.len());
        for (len, at) in graph.kv().states.iter().zip(graph.state_devices()) {
            let n_bytes = (len * size_of::<f32>()) as u64;
            states.push(match *at == device {
                true => {
                    let buffer = gpu.storage("recurrent states", n_bytes * capacity.n_states as u64)?;
                    Some(States { buffer, n_bytes })
                }
                false => None,
            });
        }
        let largest = pages.iter().flatten().map(|p| p.page_bytes);
        let largest = largest.chain(states.iter().flatten().map(|s| s.n_bytes)).max().unwrap_or(0);
        Ok(Self { pages, states, between: gpu.storage("copies", largest)? })
    }

    /// The pages of a layer of this device.
    pub fn pages(&self, layer: usize) -> &Pages {
        self.pages[layer].as_ref().expect("the executor asks the device that a layer is on")
    }

    pub fn states(&self, layer: usize) -> &States {
        self.states[layer].as_ref().expect("the executor asks the device that a layer is on")
    }

    /// A page of a layer as bytes.
    pub fn read_page(&self, gpu: &Device, layer: usize, page: u32) -> Result<Vec<u8>, KernelError> {
        let pages = self.pages(layer);
        let (at, n_bytes) = pages.place(page);
        match pages.has_room(page) {
            true => gpu.read_back(&pages.buffer, at, n_bytes),
            // nothing was ever written there
            false => Ok(vec![0; n_bytes as usize]),
        }
    }

    fn pages_mut(&mut self, layer: usize) -> &mut Pages {
        self.pages[layer].as_mut().expect("the executor asks the device that a layer is on")
    }

    /// Whether a page has its room in all layers that have it.
    fn has_room(&self, page: u32) -> bool {
        let mut pages = self.pages.iter().flatten().filter(|p| p.layout.retention() == Retention::All);
        pages.all(|pages| pages.has_room(page))
    }

    /// The last page of a batch's tables that is written token by token. None: there is none, or all have their room.
    fn lacks(&self, batch: &Batch) -> Option<u32> {
        let ages = self.pages.iter().flatten().find(|pages| pages.aged.is_some())?;
        let pages = batch.page_tables.iter().copied().flatten().copied();
        pages.filter(|page| *page < ages.n_exact).max().filter(|page| !self.has_room(*page))
    }

    /// All layers of a kind of one page into another, which has its room.
    pub fn copy_page(&self, gpu: &Device, retention: Retention, from: u32, to: u32) {
        let pages = self.pages.iter().flatten().filter(|p| p.layout.retention() == retention);
        // only what is written is ever copied
        self.copy(gpu, pages.map(|p| (&p.buffer, p.page_bytes)), from, to);
    }

    /// The states of all layers of one slot into another.
    pub fn copy_states(&self, gpu: &Device, from: u32, to: u32) {
        self.copy(gpu, self.states.iter().flatten().map(|s| (&s.buffer, s.n_bytes)), from, to);
    }

    fn copy<'a>(
        &self,
        gpu: &Device,
        buffers: impl Iterator<Item = (&'a wgpu::Buffer, u64)>,
        from: u32,
        to: u32,
    ) {
        if from == to {
            return;
        }
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for (buffer, n_bytes) in buffers {
            encoder.copy_buffer_to_buffer(buffer, u64::from(from) * n_bytes, &self.between, 0, n_bytes);
            encoder.copy_buffer_to_buffer(&self.between, 0, buffer, u64::from(to) * n_bytes, n_bytes);
        }
        gpu.queue.submit([encoder.finish()]);
    }
}

impl State {
    /// Room for what a batch writes.
    pub(super) fn make_room_for(&mut self, gpu: &Device, batch: &Batch) -> Result<(), KernelError> {
        self.kept.lacks(batch).map_or(Ok(()), |page| self.make_room(gpu, page))
    }

    /// Room for a page in all layers that keep everything, where it has none yet.
    pub(super) fn make_room(&mut self, gpu: &Device, page: u32) -> Result<(), KernelError> {
        for pages in self.kept.pages.iter_mut().flatten().filter(|pages| !pages.has_room(page)) {
            // they are bound to the buffer that goes
            self.programs.clear();
            pages.make_room(gpu, page)?;
        }
        Ok(())
    }

    /// A page of a layer, for which room is made where it has none yet.
    pub(super) fn write_page(
        &mut self,
        gpu: &Device,
        layer: usize,
        page: u32,
        bytes: &[u8],
    ) -> Result<(), KernelError> {
        if !self.kept.pages(layer).has_room(page) {
            // they are bound to the buffer that goes
            self.programs.clear();
            self.kept.pages_mut(layer).make_room(gpu, page)?;
        }
        let pages = self.kept.pages(layer);
        gpu.queue.write_buffer(&pages.buffer, pages.place(page).0, bytes);
        gpu.check()
    }
}

fn new_pages(gpu: &Device, layout: KvLayerLayout, capacity: &Capacity) -> Result<Pages, KernelError> {
    let page_bytes = layout.page_bytes() as u64;
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let n_exact = count(capacity.pages(layout.retention()));
    let aged = layout.aged().filter(|_| capacity.n_aged_pages > 0).map(|layout| AgedPages {
        page_bytes: layout.page_bytes() as u64,
        n: 0,
        most: count(capacity.n_aged_pages),
    });
    let room = if aged.is_some() { n_exact.min(FEWEST) } else { n_exact };
    let buffer = gpu.storage(CONTEXT, page_bytes.saturating_mul(u64::from(room)))?;
    Ok(Pages { buffer, layout, page_bytes, n_exact, room, aged })
}
