//! What changes from step to step, brought to the card before it: rows, page tables, angles. `plan/batch.wgsl` reads
//! it.

use super::buffers::bytes_of;
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

/// The buffers of a step's inputs.
pub struct Inputs {
    pub step: wgpu::Buffer,
    pub rows: wgpu::Buffer,
    pub angles: wgpu::Buffer,
    /// of the batch, as words; kept so that a step allocates nothing new
    words: Vec<u32>,
    tables: Vec<AngleTable>,
    /// for each node its table; unused where it rotates nothing
    table_of: Vec<usize>,
}

struct AngleTable {
    rope: RopeShape,
    /// where it begins, in pairs of cosine and sine
    first: usize,
}

impl Inputs {
    pub fn new(
        gpu: &Device,
        graph: &Graph,
        device: DeviceId,
        capacity: &Capacity,
    ) -> Result<Self, KernelError> {
        let (tables, table_of, n_angles) = angle_tables(graph, device, capacity.max_rows);
        let uniform = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
        // forks share pages: tables may be longer than the pages are many, and then there is more room made
        let n_words = N_SECTIONS * capacity.max_rows.max(capacity.max_outputs)
            + 2 * (capacity.n_pages + capacity.n_window_pages);
        Ok(Self {
            step: gpu.buffer("step", 16, uniform)?,
            rows: gpu.storage("rows", (n_words * 4) as u64)?,
            angles: gpu.storage("angles", (n_angles * 8) as u64)?,
            words: Vec::new(),
            tables,
            table_of,
        })
    }

    /// Where the angles of a node begin.
    pub fn first_angle(&self, node: usize) -> u32 {
        self.tables[self.table_of[node]].first as u32
    }

    /// Sends what a batch needs. Whether `rows` is another buffer than before.
    pub fn begin(&mut self, gpu: &Device, batch: &Batch) -> Result<bool, KernelError> {
        let stride = batch.n_rows().max(batch.outputs.len());
        self.fill(batch, stride);
        let grown = (self.words.len() * 4) as u64 > self.rows.size();
        if grown {
            self.rows = gpu.storage("rows", (self.words.len().next_power_of_two() * 4) as u64)?;
        }
        gpu.queue.write_buffer(&self.rows, 0, &bytes_of(&self.words));
        let step = [batch.n_rows() as u32, batch.outputs.len() as u32, stride as u32, n_chunks(batch)];
        gpu.queue.write_buffer(&self.step, 0, &bytes_of(&step));
        self.send_angles(gpu, batch);
        Ok(grown)
    }

    fn fill(&mut self, batch: &Batch, stride: usize) {
        let words = &mut self.words;
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
            let mut starts = Vec::with_capacity(of_sequences.len());
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
        for (word, end) in words[ENDS * stride..].iter_mut().zip(batch.ends()) {
            *word = end as u32;
        }
        words[5 * stride..5 * stride + batch.outputs.len()].copy_from_slice(batch.outputs);
    }

    fn send_angles(&self, gpu: &Device, batch: &Batch) {
        for table in &self.tables {
            let n = table.rope.n_rot / 2;
            let (mut cos, mut sin) = (vec![0.0; n], vec![0.0; n]);
            let mut words = Vec::with_capacity(batch.n_rows() * n * 2);
            for position in batch.positions {
                rope::angles(&table.rope, *position, &mut cos, &mut sin);
                words.extend(cos.iter().zip(&sin).flat_map(|(c, s)| [c.to_bits(), s.to_bits()]));
            }
            gpu.queue.write_buffer(&self.angles, (table.first * 8) as u64, &bytes_of(&words));
        }
    }
}

/// One table for each distinct rotation, which table each node has, and how many angles there are in all.
fn angle_tables(graph: &Graph, device: DeviceId, max_rows: usize) -> (Vec<AngleTable>, Vec<usize>, usize) {
    let mut tables: Vec<AngleTable> = Vec::new();
    let mut table_of = vec![usize::MAX; graph.nodes().len()];
    let mut n = 0;
    for (i, node) in graph.nodes().iter().enumerate().filter(|(_, node)| node.device == device) {
        let Op::Rope { rope, .. } = &node.op else { continue };
        let same = |t: &AngleTable| t.rope.inv_freq == rope.inv_freq && t.rope.mscale == rope.mscale;
        table_of[i] = tables.iter().position(same).unwrap_or_else(|| {
            tables.push(AngleTable { rope: rope.clone(), first: n });
            n += max_rows * rope.n_rot / 2;
            tables.len() - 1
        });
    }
    (tables, table_of, n)
}
