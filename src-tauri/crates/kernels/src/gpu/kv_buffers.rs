//! Buffers for what sequences store on a GPU: pages of keys and values, and recurrent states, one buffer per layer.
//! Pages have the CPU's layout, so that they can be moved between devices. They are allocated up front; with
//! requantization they are allocated as they are used, of either format, since few pages are unquantized at a time.

use super::PreparedGpuGraph;
use super::device::Device;
use crate::batch::Batch;
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, KvLayerLayout, Retention};

/// The KV and state buffers of the layers of one device.
pub struct SequenceBuffers {
    pages: Vec<Option<LayerPages>>,
    states: Vec<Option<GpuLayerStates>>,
    /// passed through by copies within one buffer
    bounce: wgpu::Buffer,
}

/// The pages of one layer: those written token by token, followed by the requantized ones.
pub struct LayerPages {
    pub buffer: wgpu::Buffer,
    pub layout: KvLayerLayout,
    pub page_bytes: u64,
    /// number of pages written token by token; requantized pages have higher numbers
    pub n_exact: u32,
    /// pages of these that are allocated
    n_allocated: u32,
    /// None: the layer has no requantized pages
    pub requantized: Option<RequantizedPages>,
}

/// The requantized pages of a layer.
#[derive(Clone, Copy)]
pub struct RequantizedPages {
    pub page_bytes: u64,
    /// allocated pages
    n_allocated: u32,
    /// upper limit
    max: u32,
}

/// Smallest allocation in pages: eight checkpoint chunks.
const MIN_ALLOCATED_PAGES: u32 = 64;

/// The number of pages to allocate when `n` are allocated and `needed` are needed: at least half as many more.
fn grown(n: u32, needed: u32, max: u32) -> u32 {
    needed.max(n.saturating_add(n / 2)).max(MIN_ALLOCATED_PAGES).min(max)
}

/// Name of the buffers in error messages.
const KV_BUFFER_NAME: &str = "the context (KV cache)";

impl LayerPages {
    /// Byte offset of the first requantized page.
    pub fn first_requantized(&self) -> u64 {
        self.page_bytes * u64::from(self.n_allocated)
    }

    /// Byte offset and length of a page.
    pub fn span_of(&self, page: u32) -> (u64, u64) {
        match self.requantized {
            Some(RequantizedPages { page_bytes, .. }) if page >= self.n_exact => {
                (self.first_requantized() + u64::from(page - self.n_exact) * page_bytes, page_bytes)
            }
            Some(_) | None => (u64::from(page) * self.page_bytes, self.page_bytes),
        }
    }

    /// Whether memory is allocated for a page.
    fn is_allocated(&self, page: u32) -> bool {
        self.requantized.is_none_or(|requantized| match page.checked_sub(self.n_exact) {
            None => page < self.n_allocated,
            Some(at) => at < requantized.n_allocated,
        })
    }

    /// Moves the pages into a larger buffer with memory for `page` and some more. Nothing may stay bound to the old
    /// buffer. Errors: no memory; then nothing has changed.
    fn grow(&mut self, gpu: &Device, page: u32) -> Result<(), KernelError> {
        let Some(requantized) = self.requantized else { return Ok(()) };
        let (n_exact, n) = match page.checked_sub(self.n_exact) {
            None => {
                let n_exact = grown(self.n_allocated, page.saturating_add(1), self.n_exact);
                (n_exact, requantized.n_allocated)
            }
            Some(at) => {
                let n = grown(requantized.n_allocated, at.saturating_add(1), requantized.max);
                (self.n_allocated, n)
            }
        };
        let (from, to) = (self.first_requantized(), self.page_bytes * u64::from(n_exact));
        let buffer = gpu.storage(KV_BUFFER_NAME, to + u64::from(n) * requantized.page_bytes)?;
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let requantized_bytes = u64::from(requantized.n_allocated) * requantized.page_bytes;
        for (from, to, n_bytes) in [(0, 0, from), (from, to, requantized_bytes)] {
            if n_bytes > 0 {
                encoder.copy_buffer_to_buffer(&self.buffer, from, &buffer, to, n_bytes);
            }
        }
        gpu.queue.submit([encoder.finish()]);
        (self.buffer, self.n_allocated) = (buffer, n_exact);
        self.requantized = Some(RequantizedPages { n_allocated: n, ..requantized });
        // free the old buffer before the next layer allocates as much
        gpu.wait()
    }
}

/// The states of one recurrent layer.
pub struct GpuLayerStates {
    pub buffer: wgpu::Buffer,
    /// bytes per slot
    pub n_bytes: u64,
}

impl SequenceBuffers {
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
                    Some(GpuLayerStates { buffer, n_bytes })
                }
                false => None,
            });
        }
        let largest = pages.iter().flatten().map(|p| p.page_bytes);
        let largest = largest.chain(states.iter().flatten().map(|s| s.n_bytes)).max().unwrap_or(0);
        Ok(Self { pages, states, bounce: gpu.storage("copies", largest)? })
    }

    /// The pages of a layer of this device.
    pub fn pages(&self, layer: usize) -> &LayerPages {
        self.pages[layer].as_ref().expect("the executor asks the device that a layer is on")
    }

    /// The states of a recurrent layer of this device.
    pub fn states(&self, layer: usize) -> &GpuLayerStates {
        self.states[layer].as_ref().expect("the executor asks the device that a layer is on")
    }

    /// The bytes of one layer of a page.
    pub fn read_page(&self, gpu: &Device, layer: usize, page: u32) -> Result<Vec<u8>, KernelError> {
        let pages = self.pages(layer);
        let (at, n_bytes) = pages.span_of(page);
        match pages.is_allocated(page) {
            true => gpu.read_back(&pages.buffer, at, n_bytes),
            // never written
            false => Ok(vec![0; n_bytes as usize]),
        }
    }

    fn pages_mut(&mut self, layer: usize) -> &mut LayerPages {
        self.pages[layer].as_mut().expect("the executor asks the device that a layer is on")
    }

    /// Whether a page is allocated in all layers that retain all positions.
    fn is_allocated(&self, page: u32) -> bool {
        let mut pages = self.pages.iter().flatten().filter(|p| p.layout.retention() == Retention::All);
        pages.all(|pages| pages.is_allocated(page))
    }

    /// The last page that the batch writes token by token, if it is not allocated yet.
    fn unallocated_page(&self, batch: &Batch) -> Option<u32> {
        let growing = self.pages.iter().flatten().find(|pages| pages.requantized.is_some())?;
        let pages = batch.page_tables.iter().copied().flatten().copied();
        pages.filter(|page| *page < growing.n_exact).max().filter(|page| !self.is_allocated(*page))
    }

    /// Copies one page to another, which must be allocated, in all layers with this retention.
    pub fn copy_page(&self, gpu: &Device, retention: Retention, from: u32, to: u32) {
        let pages = self.pages.iter().flatten().filter(|p| p.layout.retention() == retention);
        // requantized pages are read-only, hence never copied
        self.copy(gpu, pages.map(|p| (&p.buffer, p.page_bytes)), from, to);
    }

    /// Copies one slot to another in all recurrent layers.
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
            encoder.copy_buffer_to_buffer(buffer, u64::from(from) * n_bytes, &self.bounce, 0, n_bytes);
            encoder.copy_buffer_to_buffer(&self.bounce, 0, buffer, u64::from(to) * n_bytes, n_bytes);
        }
        gpu.queue.submit([encoder.finish()]);
    }
}

impl PreparedGpuGraph {
    /// Allocates the pages that a batch writes.
    pub(super) fn allocate_pages_of(&mut self, gpu: &Device, batch: &Batch) -> Result<(), KernelError> {
        self.sequences.unallocated_page(batch).map_or(Ok(()), |page| self.allocate_page(gpu, page))
    }

    /// Allocates a page in all layers that retain all positions.
    pub(super) fn allocate_page(&mut self, gpu: &Device, page: u32) -> Result<(), KernelError> {
        for pages in self.sequences.pages.iter_mut().flatten().filter(|pages| !pages.is_allocated(page)) {
            // programs are bound to the buffer that is replaced
            self.programs.clear();
            pages.grow(gpu, page)?;
        }
        Ok(())
    }

    /// Writes one layer of a page, which is allocated first if necessary.
    pub(super) fn write_page(
        &mut self,
        gpu: &Device,
        layer: usize,
        page: u32,
        bytes: &[u8],
    ) -> Result<(), KernelError> {
        if !self.sequences.pages(layer).is_allocated(page) {
            // programs are bound to the buffer that is replaced
            self.programs.clear();
            self.sequences.pages_mut(layer).grow(gpu, page)?;
        }
        let pages = self.sequences.pages(layer);
        gpu.queue.write_buffer(&pages.buffer, pages.span_of(page).0, bytes);
        gpu.check()
    }
}

fn new_pages(gpu: &Device, layout: KvLayerLayout, capacity: &Capacity) -> Result<LayerPages, KernelError> {
    let page_bytes = layout.page_bytes() as u64;
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let n_exact = count(capacity.pages(layout.retention()));
    let requantized = layout.requantized().filter(|_| capacity.n_requantized_pages > 0);
    let requantized = requantized.map(|layout| RequantizedPages {
        page_bytes: layout.page_bytes() as u64,
        n_allocated: 0,
        max: count(capacity.n_requantized_pages),
    });
    let n_allocated = if requantized.is_some() { n_exact.min(MIN_ALLOCATED_PAGES) } else { n_exact };
    let buffer = gpu.storage(KV_BUFFER_NAME, page_bytes.saturating_mul(u64::from(n_allocated)))?;
    Ok(LayerPages { buffer, layout, page_bytes, n_exact, n_allocated, requantized })
}
