//! Where the values of a graph lie on a card. Each has a buffer of its own for as long as it lives, so that what a
//! kernel reads and what it writes never share one; buffers are used again by values whose lives don't meet.

use super::buffers::bytes_of;
use super::device::Device;
use crate::backend::Retain;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, Rows, ValueId};
use crate::plan::Capacity;
use crate::plan::fuse::Step;
use crate::plan::layout::lives;
use crate::profile::Readable;

/// The values of one device.
pub struct Values {
    buffers: Vec<wgpu::Buffer>,
    /// (n_values) which buffer; None: on another device
    buffer_of: Vec<Option<usize>>,
    /// (n_values) what was read back of those that are read from outside
    mirrors: Vec<Vec<f32>>,
    /// (n_values)
    widths: Vec<usize>,
}

struct Slot {
    n_bytes: u64,
    /// the last step that needs it
    taken_to: usize,
}

impl Values {
    pub fn new(
        gpu: &Device,
        graph: &Graph,
        device: DeviceId,
        steps: &[Step],
        capacity: &Capacity,
        retain: Retain,
    ) -> Result<Self, KernelError> {
        let lives = lives(graph, device, steps, retain);
        let mut order: Vec<usize> = (0..lives.len()).filter(|v| lives[*v].is_some()).collect();
        order.sort_by_key(|v| lives[*v].map_or(0, |life| life.from));
        let mut slots: Vec<Slot> = Vec::new();
        let mut buffer_of = vec![None; lives.len()];
        for v in order {
            let Some(life) = lives[v] else { continue };
            let value = graph.values()[v];
            let rows = match value.rows {
                Rows::Tokens => capacity.max_rows,
                Rows::Outputs => capacity.max_rows.min(capacity.max_outputs),
            };
            let n_bytes = (rows * value.width * size_of::<f32>()) as u64;
            let free = slots.iter().enumerate().filter(|(_, slot)| slot.taken_to < life.from);
            let nearest = free.min_by_key(|(_, slot)| slot.n_bytes.abs_diff(n_bytes)).map(|(i, _)| i);
            // the first slot may be reused from the step after the one that last read it
            let at = nearest.unwrap_or_else(|| {
                slots.push(Slot { n_bytes: 0, taken_to: 0 });
                slots.len() - 1
            });
            slots[at] = Slot { n_bytes: slots[at].n_bytes.max(n_bytes), taken_to: life.to };
            buffer_of[v] = Some(at);
        }
        let buffers =
            slots.iter().map(|slot| gpu.storage("activations", slot.n_bytes)).collect::<Result<_, _>>()?;
        let widths = graph.values().iter().map(|value| value.width).collect();
        Ok(Self { buffers, mirrors: vec![Vec::new(); buffer_of.len()], buffer_of, widths })
    }

    pub fn buffer(&self, value: ValueId) -> &wgpu::Buffer {
        let at = self.buffer_of[value.index()].expect("nodes of a device use values of that device");
        &self.buffers[at]
    }

    /// All of it that was last read back.
    pub fn read_all(&self, value: ValueId) -> &[f32] {
        &self.mirrors[value.index()]
    }

    pub fn mirror_of(&mut self, value: ValueId) -> &mut [f32] {
        &mut self.mirrors[value.index()]
    }

    /// Room for what is read back.
    pub fn mirror(&mut self, value: ValueId, len: usize) -> &mut [f32] {
        let mirror = &mut self.mirrors[value.index()];
        mirror.resize(len, 0.0);
        mirror
    }

    pub fn write(&mut self, gpu: &Device, value: ValueId, data: &[f32]) {
        let words: Vec<u32> = data.iter().map(|x| x.to_bits()).collect();
        gpu.queue.write_buffer(self.buffer(value), 0, &bytes_of(&words));
        self.mirror(value, data.len()).copy_from_slice(data);
    }
}

impl Readable for Values {
    fn read(&self, value: ValueId, n_rows: usize) -> &[f32] {
        let mirror = &self.mirrors[value.index()];
        &mirror[..n_rows * self.widths[value.index()]]
    }
}
