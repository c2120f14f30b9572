//! What changes from step to step, brought to the card before it: rows, page tables, angles. `plan/batch.wgsl` reads
//! it.

use super::buffers::Span;
use super::device::Device;
use super::splits::n_chunks;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, Op, PAGE_LEN, Retention, RopeShape};
use crate::ops::rope;
use crate::plan::{Batch, Capacity};

/// Sections of `rows` before the page tables, in the order of `plan/batch.wgsl`.
pub const TOKENS: u32 = 0;
pub const POSITIONS: u32 = 1;
pub const PAGES: u32 = 2;
pub const WINDOW_PAGES: u32 = 3;
pub const TABLES: u32 = 6;
pub const WINDOW_TABLES: u32 = 7;
const ENDS: usize = 8;
const N_SECTIONS: usize = 9;
/// Stands where every row has a zero.
pub const NO_SECTION: u32 = u32::MAX;

/// Bytes before `rows`: those of the step, and what a binding is aligned to at most.
const HEAD: u64 = 256;
/// Of the step itself. `plan/batch.wgsl` has it.
const STEP_WORDS: usize = 8;

/// One buffer of all that changes, sent at once.
pub struct Inputs {
    buffer: wgpu::Buffer,
    /// of the batch: sections, page tables, angles; kept, as is all below, so that a step allocates nothing new
    words: Vec<u32>,
    bytes: Vec<u8>,
    /// by sequence, where its table begins, and how many positions it has
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// cosines and sines of one position
    turns: [Vec<f32>; 2],
    tables: Vec<AngleTable>,
    /// for each node its table; unused where it rotates nothing
    table_of: Vec<usize>,
}

struct AngleTable {
    rope: RopeShape,
    /// pairs of cosine and sine that a row has before it
    first: usize,
}

impl Inputs {
    pub fn new(
        gpu: &Device,
        graph: &Graph,
        device: DeviceId,
        capacity: &Capacity,
    ) -> Result<Self, KernelError> {
        let (tables, table_of, n_angles) = angle_tables(graph, device);
        // forks share pages: tables may be longer than the pages are many, and then there is more room made
        let n_words = N_SECTIONS * capacity.max_rows.max(capacity.max_outputs)
            + 2 * (capacity.n_pages + capacity.n_window_pages)
            + 2 * capacity.max_rows * n_angles;
        let most = tables.iter().map(|table| table.rope.n_rot / 2).max().unwrap_or(0);
        Ok(Self {
            buffer: room(gpu, n_words)?,
            words: Vec::new(),
            bytes: Vec::new(),
            starts: Vec::new(),
            ends: Vec::new(),
            turns: [vec![0.0; most], vec![0.0; most]],
            tables,
            table_of,
        })
    }

    pub fn step(&self) -> Span {
        Span { buffer: self.buffer.clone(), offset: 0, n_bytes: (STEP_WORDS * size_of::<u32>()) as u64 }
    }

    pub fn rows(&self) -> Span {
        Span { buffer: self.buffer.clone(), offset: HEAD, n_bytes: self.buffer.size() - HEAD }
    }

    /// Where the angles of a node begin among those of a row.
    pub fn first_angle(&self, node: usize) -> u32 {
        self.tables[self.table_of[node]].first as u32
    }

    /// Sends what a batch needs, of whose output `n_wanted` columns are selected. Whether it went into another buffer
    /// than before.
    pub fn begin(&mut self, gpu: &Device, batch: &Batch, n_wanted: usize) -> Result<bool, KernelError> {
        let stride = batch.n_rows().max(batch.outputs.len());
        self.fill(batch, stride);
        let first_angle = self.words.len();
        self.add_angles(batch);
        let grown = HEAD + (self.words.len() * size_of::<u32>()) as u64 > self.buffer.size();
        if grown {
            self.buffer = room(gpu, self.words.len().next_power_of_two())?;
        }
        let [n_tokens, n_outputs] = [batch.n_rows(), batch.outputs.len()].map(|n| n as u32);
        let [stride, first_angle, n_wanted] = [stride, first_angle, n_wanted].map(|n| n as u32);
        let step = [n_tokens, n_outputs, stride, n_chunks(batch), first_angle, n_wanted];
        let Self { bytes, words, .. } = self;
        bytes.clear();
        bytes.extend(step.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(HEAD as usize, 0);
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
        let Self { words, turns: [cos, sin], tables, .. } = self;
        for table in tables {
            let n = table.rope.n_rot / 2;
            let (cos, sin) = (&mut cos[..n], &mut sin[..n]);
            for position in batch.positions {
                rope::angles(&table.rope, *position, cos, sin);
                words.extend(cos.iter().zip(&*sin).flat_map(|(c, s)| [c.to_bits(), s.to_bits()]));
            }
        }
    }
}

/// For so many words after the head.
fn room(gpu: &Device, n_words: usize) -> Result<wgpu::Buffer, KernelError> {
    let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
    gpu.buffer("inputs", HEAD + (n_words.max(1) * size_of::<u32>()) as u64, usage)
}

/// One table for each distinct rotation, which table each node has, and how many angles a row has in all.
fn angle_tables(graph: &Graph, device: DeviceId) -> (Vec<AngleTable>, Vec<usize>, usize) {
    let mut tables: Vec<AngleTable> = Vec::new();
    let mut table_of = vec![usize::MAX; graph.nodes().len()];
    let mut n = 0;
    for (i, node) in graph.nodes().iter().enumerate().filter(|(_, node)| node.device == device) {
        let Op::Rope { rope, .. } = &node.op else { continue };
        let same = |t: &AngleTable| t.rope.inv_freq == rope.inv_freq && t.rope.mscale == rope.mscale;
        table_of[i] = tables.iter().position(same).unwrap_or_else(|| {
            tables.push(AngleTable { rope: rope.clone(), first: n });
            n += rope.n_rot / 2;
            tables.len() - 1
        });
    }
    (tables, table_of, n)
}
