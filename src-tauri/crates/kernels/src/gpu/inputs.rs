//! The per-batch inputs of all kernels in one buffer: rows, page tables, rotation angles. `batch.wgsl` declares them.

use super::buffers::BufferSpan;
use super::device::Device;
use super::split_kv::n_chunks;
use crate::batch::Batch;
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, Op, PAGE_LEN, Retention, RopeShape};
use crate::ops::rope;

/// Sections of `rows` before the page tables, in the order of `batch.wgsl`.
pub const TOKENS: u32 = 0;
pub const POSITIONS: u32 = 1;
pub const PAGES: u32 = 2;
pub const WINDOW_PAGES: u32 = 3;
pub const TABLES: u32 = 6;
pub const WINDOW_TABLES: u32 = 7;
const ENDS: usize = 8;
pub const KINDS: u32 = 9;
const GIVEN: usize = 10;
const IMAGE_ENDS: usize = 11;
const N_SECTIONS: usize = 12;

/// Bytes before `rows`: the step, padded to the largest binding alignment.
const HEADER_BYTES: u64 = 256;
/// Words of the step, as in `batch.wgsl`.
const STEP_WORDS: usize = 8;

/// The inputs of a batch, uploaded in one write. Scratch memory is reused, so that a run does not allocate.
pub struct InputBuffer {
    buffer: wgpu::Buffer,
    /// scratch: sections, page tables, angles
    words: Vec<u32>,
    bytes: Vec<u8>,
    /// scratch: start of each sequence's page table in `words`
    starts: Vec<u32>,
    /// scratch: number of positions of each sequence
    ends: Vec<u32>,
    /// scratch: cosines and sines of one position
    angles: [Vec<f32>; 2],
    tables: Vec<GpuRopeAngles>,
    /// (n_nodes) index of the rotation's table; unused for other nodes
    table_of: Vec<usize>,
}

struct GpuRopeAngles {
    rope: RopeShape,
    /// (cos, sin) pairs of a row before this table
    first: usize,
}

impl InputBuffer {
    pub fn new(
        gpu: &Device,
        graph: &Graph,
        device: DeviceId,
        capacity: &Capacity,
    ) -> Result<Self, KernelError> {
        let (tables, table_of, n_angles) = angle_tables(graph, device);
        // since forks share pages, tables may exceed the number of pages; then `begin` grows the buffer
        let n_words = N_SECTIONS * capacity.max_rows.max(capacity.max_outputs)
            + 2 * (capacity.n_pages + capacity.n_window_pages)
            + 2 * capacity.max_rows * n_angles;
        let max_angles = tables.iter().map(|table| table.rope.n_rot / 2).max().unwrap_or(0);
        Ok(Self {
            buffer: allocate(gpu, n_words)?,
            words: Vec::new(),
            bytes: Vec::new(),
            starts: Vec::new(),
            ends: Vec::new(),
            angles: [vec![0.0; max_angles], vec![0.0; max_angles]],
            tables,
            table_of,
        })
    }

    /// The binding of the step.
    pub fn step(&self) -> BufferSpan {
        BufferSpan { buffer: self.buffer.clone(), offset: 0, n_bytes: (STEP_WORDS * size_of::<u32>()) as u64 }
    }

    /// The binding of the rows.
    pub fn rows(&self) -> BufferSpan {
        BufferSpan {
            buffer: self.buffer.clone(),
            offset: HEADER_BYTES,
            n_bytes: self.buffer.size() - HEADER_BYTES,
        }
    }

    /// The first angle of a rotation node among those of a row.
    pub fn first_angle(&self, node: usize) -> u32 {
        self.tables[self.table_of[node]].first as u32
    }

    /// Uploads the inputs of a batch; `n_selected` columns of its output are selected. Returns whether the buffer was
    /// replaced by a larger one.
    pub fn begin(&mut self, gpu: &Device, batch: &Batch, n_selected: usize) -> Result<bool, KernelError> {
        let stride = batch.n_rows().max(batch.outputs.len());
        self.fill(batch, stride);
        let first_angle = self.words.len();
        self.add_angles(batch);
        let given = self.words.len();
        self.words.extend(batch.given.values.iter().map(|value| value.to_bits()));
        let grown = HEADER_BYTES + (self.words.len() * size_of::<u32>()) as u64 > self.buffer.size();
        if grown {
            self.buffer = allocate(gpu, self.words.len().next_power_of_two())?;
        }
        let [n_tokens, n_outputs] = [batch.n_rows(), batch.outputs.len()].map(|n| n as u32);
        let [stride, first_angle, n_selected, given] =
            [stride, first_angle, n_selected, given].map(|n| n as u32);
        let step = [n_tokens, n_outputs, stride, n_chunks(batch), first_angle, n_selected, given];
        let Self { bytes, words, .. } = self;
        bytes.clear();
        bytes.extend(step.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(HEADER_BYTES as usize, 0);
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        gpu.queue.write_buffer(&self.buffer, 0, &self.bytes);
        Ok(grown)
    }

    fn fill(&mut self, batch: &Batch, stride: usize) {
        let Self { words, starts, .. } = self;
        words.clear();
        words.resize(N_SECTIONS * stride, 0);
        words[..batch.n_rows()].copy_from_slice(batch.tokens);
        words[stride..stride + batch.n_rows()].copy_from_slice(batch.positions);
        let kinds = KINDS as usize * stride;
        words[kinds..kinds + batch.kinds.len()].copy_from_slice(batch.kinds);
        for (retention, pages, tables) in
            [(Retention::All, PAGES, TABLES), (Retention::Window, WINDOW_PAGES, WINDOW_TABLES)]
        {
            let of_sequences = match retention {
                Retention::All => batch.page_tables,
                Retention::Window => batch.window_tables,
            };
            starts.clear();
            for table in of_sequences {
                starts.push(words.len() as u32);
                words.extend_from_slice(table);
            }
            for row in 0..batch.n_rows() {
                let Some(start) = starts.get(batch.sequence[row] as usize) else { continue };
                let page = *start as usize + batch.positions[row] as usize / PAGE_LEN;
                words[tables as usize * stride + row] = *start;
                words[pages as usize * stride + row] = words.get(page).copied().unwrap_or(0);
            }
        }
        if !batch.states.is_empty() {
            (0..batch.n_rows()).for_each(|row| words[4 * stride + row] = batch.state(row));
        }
        words[5 * stride..5 * stride + batch.outputs.len()].copy_from_slice(batch.outputs);
        words[IMAGE_ENDS * stride..][..batch.given.image_ends.len()].copy_from_slice(batch.given.image_ends);
        for (number, row) in (1..).zip(batch.given.rows) {
            words[GIVEN * stride + *row as usize] = number;
        }
        self.fill_ends(batch, stride);
    }

    fn fill_ends(&mut self, batch: &Batch, stride: usize) {
        let Self { words, ends, .. } = self;
        ends.clear();
        ends.resize(batch.page_tables.len(), 0);
        for (position, sequence) in batch.positions.iter().zip(batch.sequence) {
            let end = &mut ends[*sequence as usize];
            *end = (position + 1).max(*end);
        }
        for (word, sequence) in words[ENDS * stride..].iter_mut().zip(batch.sequence) {
            *word = ends[*sequence as usize];
        }
    }

    fn add_angles(&mut self, batch: &Batch) {
        let Self { words, angles: [cos, sin], tables, .. } = self;
        for table in tables {
            let n = table.rope.n_rot / 2;
            let (cos, sin) = (&mut cos[..n], &mut sin[..n]);
            for row in 0..batch.n_rows() {
                rope::angles(&table.rope, batch.coordinates(row), cos, sin);
                words.extend(cos.iter().zip(&*sin).flat_map(|(c, s)| [c.to_bits(), s.to_bits()]));
            }
        }
    }
}

/// Allocates the buffer for `n_words` after the header.
fn allocate(gpu: &Device, n_words: usize) -> Result<wgpu::Buffer, KernelError> {
    let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
    gpu.buffer("inputs", HEADER_BYTES + (n_words.max(1) * size_of::<u32>()) as u64, usage)
}

/// One table per distinct rotation, the table of each node, and the number of angles per row.
fn angle_tables(graph: &Graph, device: DeviceId) -> (Vec<GpuRopeAngles>, Vec<usize>, usize) {
    let mut tables: Vec<GpuRopeAngles> = Vec::new();
    let mut table_of = vec![usize::MAX; graph.nodes().len()];
    let mut n = 0;
    for (i, node) in graph.nodes().iter().enumerate().filter(|(_, node)| node.device == device) {
        let Op::Rope { rope, .. } = &node.op else { continue };
        let same = |t: &GpuRopeAngles| rope.has_angles_of(&t.rope);
        table_of[i] = tables.iter().position(same).unwrap_or_else(|| {
            tables.push(GpuRopeAngles { rope: rope.clone(), first: n });
            n += rope.n_rot / 2;
            tables.len() - 1
        });
    }
    (tables, table_of, n)
}
