//! What a card keeps of sequences: pages of keys and values, and recurrent states, a buffer for each layer. Pages lie
//! as on the CPU, so that whoever reads or moves them need not know where they were.

use super::device::Device;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, KvLayerLayout, Retention};
use crate::plan::Capacity;

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
    /// pages that are written token by token: others have higher numbers
    pub n_exact: u32,
    /// of a page that has aged; None: the layer has none
    pub aged_page_bytes: Option<u64>,
}

impl Pages {
    /// Where aged pages begin. (bytes)
    pub fn first_aged(&self) -> u64 {
        self.page_bytes * u64::from(self.n_exact)
    }

    /// Where a page begins, and its length. (bytes)
    pub fn place(&self, page: u32) -> (u64, u64) {
        match self.aged_page_bytes {
            Some(n_bytes) if page >= self.n_exact => {
                (self.first_aged() + u64::from(page - self.n_exact) * n_bytes, n_bytes)
            }
            Some(_) | None => (u64::from(page) * self.page_bytes, self.page_bytes),
        }
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

    /// All layers of a kind of one page into another.
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

fn new_pages(gpu: &Device, layout: KvLayerLayout, capacity: &Capacity) -> Result<Pages, KernelError> {
    let page_bytes = layout.page_bytes() as u64;
    let n_exact = capacity.pages(layout.retention());
    let aged = layout.aged().filter(|_| capacity.n_aged_pages > 0);
    let aged_page_bytes = aged.map(|layout| layout.page_bytes() as u64);
    let aged_bytes = aged_page_bytes.unwrap_or(0).saturating_mul(capacity.n_aged_pages as u64);
    let n_bytes = page_bytes.saturating_mul(n_exact as u64).saturating_add(aged_bytes);
    let buffer = gpu.storage("the context (KV cache)", n_bytes)?;
    let n_exact = u32::try_from(n_exact).unwrap_or(u32::MAX);
    Ok(Pages { buffer, layout, page_bytes, n_exact, aged_page_bytes })
}
