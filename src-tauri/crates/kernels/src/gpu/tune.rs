//! The search for the fastest shapes on a card: a little at a time, while nothing else is to be done.

use std::sync::Arc;
use std::time::Duration;

use weights::{DType, SharedBytes, TensorView};

use super::Gpu;
use super::device::Device;
use super::shapes::{Shapes, Subject};
use crate::backend::{Backend, Retain};
use crate::error::KernelError;
use crate::graph::{AttentionShape, DeviceId, Graph, GraphBuilder, KvDType, KvLayerLayout, KvLayout, Op};
use crate::known::Known;
use crate::ops::attention::CHUNK;
use crate::plan::{Batch, Capacity};
use crate::tensor::Tensor;

/// Bytes that are read to measure products of one row: more than caches hold.
const MEASURED_BYTES: usize = 96 << 20;
const N_MATRICES: usize = 8;
/// Elements of their rows: whole blocks of every format.
const K: usize = 4096;
/// Of products of many rows: those of a prompt's batch, of a matrix of a small model's layer.
const ROWS: usize = 256;
const SQUARE: usize = 2048;
/// Chunks of the contexts that attention goes over.
const CHUNKS: [usize; 3] = [2, 4, 8];
/// Runs of each shape; the best counts, since whatever disturbs only slows.
const RUNS: usize = 5;
/// On a slow card fewer, so that the step is soon over.
const ENOUGH: Duration = Duration::from_millis(100);
/// Share of the best time within which the first shape stays.
const AS_GOOD: f64 = 0.98;

/// What is left to be looked at.
#[derive(Default)]
pub(super) struct Tuner {
    subjects: Vec<Subject>,
    /// of the graph's first attention, if it has one
    attention: Option<(AttentionShape, KvLayerLayout)>,
    trying: Option<Trying>,
}

/// A subject's work in turn by each of its shapes.
struct Trying {
    gpu: Box<Gpu>,
    n_nodes: usize,
    subject: Subject,
    /// positions of the rows of each batch
    batches: Vec<Vec<u32>>,
    /// of each shape so far; None: the card can't have it
    times: Vec<Option<Duration>>,
}

impl Tuner {
    /// For subjects of a graph that nobody looked at on this card.
    pub fn new(graph: &Graph, known: &Known) -> Self {
        let is_new = |subject: &Subject| !known.tuned.contains_key(&subject.name());
        let attention = graph.nodes().iter().find_map(|node| match &node.op {
            Op::Attention { attention, .. } => Some((attention.clone(), graph.kv().layers[attention.layer])),
            _ => None,
        });
        let subjects = Subject::of(graph).into_iter().filter(is_new).collect();
        Self { subjects, attention, trying: None }
    }

    /// One shape of one subject. False: nothing is left.
    pub fn step(&mut self, device: &Arc<Device>, now: &dyn Fn() -> Duration) -> Result<bool, KernelError> {
        let mut trying = match self.trying.take() {
            Some(trying) => trying,
            None => match self.subjects.pop() {
                Some(subject) => self.begin(device, subject)?,
                None => return Ok(false),
            },
        };
        if trying.next(&device.limits, now)? {
            self.trying = Some(trying);
            return Ok(true);
        }
        let best = trying.subject.choices()[fastest(&trying.times)].to_owned();
        device.trust.note(|known| _ = known.tuned.insert(trying.subject.name(), best));
        Ok(!self.subjects.is_empty())
    }

    fn begin(&self, device: &Arc<Device>, subject: Subject) -> Result<Trying, KernelError> {
        let (graph, batches) = match (subject, &self.attention) {
            (Subject::OneRow(dtype), _) => {
                let n_out = MEASURED_BYTES / N_MATRICES / dtype.row_bytes(K);
                (products(dtype, N_MATRICES, [n_out, K])?, vec![vec![0]])
            }
            (Subject::ManyRows(dtype), _) => {
                (products(dtype, 1, [SQUARE, SQUARE])?, vec![(0..ROWS as u32).collect()])
            }
            (Subject::Attention, Some((shape, layout))) => {
                let last = |n: usize| vec![(n * CHUNK) as u32 - 1];
                (attention(shape, *layout)?, CHUNKS.map(last).into())
            }
            (Subject::Attention, None) => unreachable!("a graph with that subject has attention"),
        };
        let (graph, mut gpu) = (Arc::new(graph), Box::new(Gpu::unchecked(device.clone())));
        gpu.prepare(&graph, DeviceId(0), CAPACITY, Retain::Needed)?;
        Ok(Trying { gpu, n_nodes: graph.nodes().len(), subject, batches, times: Vec::new() })
    }
}

/// The first of the times that are about the best. Without times: the first.
fn fastest(times: &[Option<Duration>]) -> usize {
    let best = times.iter().flatten().min().copied().unwrap_or_default();
    times.iter().position(|time| time.is_some_and(|time| time.mul_f64(AS_GOOD) <= best)).unwrap_or(0)
}

impl Trying {
    /// Measures the next shape. False: there is none.
    fn next(&mut self, limits: &wgpu::Limits, now: &dyn Fn() -> Duration) -> Result<bool, KernelError> {
        let choice = self.times.len();
        if choice == self.subject.choices().len() {
            return Ok(false);
        }
        if !self.subject.fits(choice, limits) {
            self.times.push(None);
            return Ok(true);
        }
        self.gpu.take_shapes(Shapes::only(self.subject, choice));
        // the first run makes the kernels
        self.run(now)?;
        let (mut best, mut all) = (Duration::MAX, Duration::ZERO);
        for _ in 0..RUNS {
            let took = self.run(now)?;
            (best, all) = (best.min(took), all.saturating_add(took));
            if all > ENOUGH {
                break;
            }
        }
        self.times.push(Some(best));
        Ok(true)
    }

    /// All batches once.
    fn run(&mut self, now: &dyn Fn() -> Duration) -> Result<Duration, KernelError> {
        let pages: Vec<u32> = (0..CAPACITY.n_pages as u32).collect();
        let mut all = Duration::ZERO;
        for positions in &self.batches {
            let (tokens, zeros) = (vec![1; positions.len()], vec![0; positions.len()]);
            let batch = Batch {
                tokens: &tokens,
                positions,
                sequence: &zeros,
                page_tables: &[&pages],
                window_tables: &[],
                states: &[],
                outputs: &[0],
            };
            self.gpu.begin(&batch)?;
            let start = now();
            self.gpu.run(0..self.n_nodes, &batch, None)?;
            all = all.saturating_add(now().saturating_sub(start));
        }
        Ok(all)
    }
}

const CAPACITY: Capacity = Capacity {
    n_pages: CHUNKS[CHUNKS.len() - 1] * CHUNK / crate::graph::PAGE_LEN,
    n_window_pages: 0,
    n_aged_pages: 0,
    max_rows: ROWS,
    max_outputs: 1,
    n_states: 0,
};

/// Matrices of a format, one behind another, whose weights are all nothing: that takes as long as any others.
fn products(dtype: DType, n: usize, [n_out, k]: [usize; 2]) -> Result<Graph, KernelError> {
    let layer = KvLayerLayout { n_kv_heads: 1, head_dim: 32, dtype: KvDType::F16, window: None };
    let mut b = GraphBuilder::new(KvLayout::uniform(0, layer))?;
    let x = b.embed("embedding", &zeros(DType::F32, 2, k)?, 1.0)?;
    let mut last = x;
    for _ in 0..n {
        last = b.matmul("product", x, &zeros(dtype, n_out, k)?, None)?;
    }
    let last = b.output_rows("rows of the output", last)?;
    b.finish(last)
}

/// Attention of a model, over a context of nothing.
fn attention(shape: &AttentionShape, layout: KvLayerLayout) -> Result<Graph, KernelError> {
    let layout = KvLayerLayout { window: None, ..layout };
    let mut b = GraphBuilder::new(KvLayout::uniform(1, layout))?;
    let mut rows = |name, n_heads| b.embed(name, &zeros(DType::F32, 2, n_heads * shape.head_dim)?, 1.0);
    let q = rows("queries", shape.n_heads)?;
    let k = rows("keys and values", shape.n_kv_heads)?;
    b.kv_write("writing of keys and values", k, k, 0)?;
    let shape = AttentionShape { layer: 0, window: None, ..shape.clone() };
    let last = b.attention("attention", q, shape)?;
    let last = b.output_rows("rows of the output", last)?;
    b.finish(last)
}

fn zeros(dtype: DType, n_rows: usize, k: usize) -> Result<Tensor, KernelError> {
    let data = SharedBytes::from_vec(vec![0; n_rows * dtype.row_bytes(k)]);
    Tensor::host(&TensorView { name: "tuning", dtype, shape: &[n_rows, k], data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_fastest_is_taken() {
        let of = |times: &[u64]| {
            // none: zero milliseconds
            let times: Vec<Option<Duration>> = times
                .iter()
                .map(|ms| Some(Duration::from_millis(*ms)).filter(|time| !time.is_zero()))
                .collect();
            fastest(&times)
        };
        assert_eq!(
            [of(&[]), of(&[5]), of(&[100, 99, 101]), of(&[100, 90, 80]), of(&[90, 80, 79]), of(&[0, 80, 70])],
            [0, 0, 0, 2, 1, 2]
        );
    }
}
