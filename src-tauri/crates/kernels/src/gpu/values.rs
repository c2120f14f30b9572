//! Assigns the values of a graph to GPU buffers. A value has a buffer to itself during its live range, so that no kernel
//! reads and writes one buffer; values whose ranges do not overlap reuse buffers.

use super::buffers::bytes_of;
use super::device::Device;
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, Rows, ValueId};
use crate::plan::layout::{ValueLifetime, live_ranges};
use crate::plan::step::Step;
use crate::profile::ReadValue;

/// The values of one device.
pub struct ValueBuffers {
    buffers: Vec<wgpu::Buffer>,
    /// (n_values) index of the buffer; None: on another device
    buffer_of: Vec<Option<usize>>,
    /// (n_values) main-memory copy of values that were read back
    mirrors: Vec<Vec<f32>>,
    /// (n_values)
    widths: Vec<usize>,
}

/// A buffer while it is being assigned.
struct BufferSlot {
    n_bytes: u64,
    /// last step that uses it
    used_until: usize,
}

impl ValueBuffers {
    pub fn new(
        gpu: &Device,
        graph: &Graph,
        device: DeviceId,
        steps: &[Step],
        capacity: &Capacity,
        lifetime: ValueLifetime,
    ) -> Result<Self, KernelError> {
        let ranges = live_ranges(graph, device, steps, lifetime);
        let mut order: Vec<usize> = (0..ranges.len()).filter(|v| ranges[*v].is_some()).collect();
        order.sort_by_key(|v| ranges[*v].map_or(0, |range| range.from));
        let mut slots: Vec<BufferSlot> = Vec::new();
        let mut buffer_of = vec![None; ranges.len()];
        for v in order {
            let Some(range) = ranges[v] else { continue };
            let value = graph.values()[v];
            let rows = match value.rows {
                Rows::Tokens => capacity.max_rows,
                Rows::Outputs => capacity.max_rows.min(capacity.max_outputs),
            };
            let n_bytes = (rows * value.width * size_of::<f32>()) as u64;
            let free = slots.iter().enumerate().filter(|(_, slot)| slot.used_until < range.from);
            let nearest = free.min_by_key(|(_, slot)| slot.n_bytes.abs_diff(n_bytes)).map(|(i, _)| i);
            let at = nearest.unwrap_or_else(|| {
                slots.push(BufferSlot { n_bytes: 0, used_until: 0 });
                slots.len() - 1
            });
            slots[at] = BufferSlot { n_bytes: slots[at].n_bytes.max(n_bytes), used_until: range.to };
            buffer_of[v] = Some(at);
        }
        let buffers =
            slots.iter().map(|slot| gpu.storage("activations", slot.n_bytes)).collect::<Result<_, _>>()?;
        let widths = graph.values().iter().map(|value| value.width).collect();
        Ok(Self { buffers, mirrors: vec![Vec::new(); buffer_of.len()], buffer_of, widths })
    }

    /// The buffer of a value.
    pub fn buffer(&self, value: ValueId) -> &wgpu::Buffer {
        let at = self.buffer_of[value.index()].expect("nodes of a device use values of that device");
        &self.buffers[at]
    }

    /// Everything that was last read back of a value.
    pub fn read_all(&self, value: ValueId) -> &[f32] {
        &self.mirrors[value.index()]
    }

    /// As `read_all`, mutable.
    pub fn mirror_of(&mut self, value: ValueId) -> &mut [f32] {
        &mut self.mirrors[value.index()]
    }

    /// Memory for `len` floats that are read back of a value.
    pub fn mirror(&mut self, value: ValueId, len: usize) -> &mut [f32] {
        let mirror = &mut self.mirrors[value.index()];
        mirror.resize(len, 0.0);
        mirror
    }

    /// Overwrites the first rows of a value.
    pub fn write(&mut self, gpu: &Device, value: ValueId, data: &[f32]) {
        let words: Vec<u32> = data.iter().map(|x| x.to_bits()).collect();
        gpu.queue.write_buffer(self.buffer(value), 0, &bytes_of(&words));
        self.mirror(value, data.len()).copy_from_slice(data);
    }
}

impl ReadValue for ValueBuffers {
    fn read(&self, value: ValueId, n_rows: usize) -> &[f32] {
        let mirror = &self.mirrors[value.index()];
        &mirror[..n_rows * self.widths[value.index()]]
    }
}
