//! Searches for the fastest kernel shapes on a GPU, a little at a time while the application is idle.

use std::sync::Arc;
use std::time::Duration;

use weights::{DType, SharedBytes, TensorView};

use super::Gpu;
use super::context::GpuContext;
use super::kernel_shapes::{KernelShapes, TuningSubject};
use crate::backend::Backend;
use crate::batch::{Batch, GivenRows};
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::gpu_cache::GpuFacts;
use crate::graph::{AttentionShape, DeviceId, Graph, GraphBuilder, KvDType, KvLayerLayout, KvLayout, Op};
use crate::ops::attention::CHUNK;
use crate::plan::layout::ValueLifetime;
use crate::tensor::Tensor;

/// Bytes read to measure multiplications of one row: more than caches hold.
const MEASURED_BYTES: usize = 96 << 20;
const N_MATRICES: usize = 8;
/// Row length in elements: whole blocks of every format.
const K: usize = 4096;
/// Rows of a multiplication of many rows: a batch of a prompt.
const N_ROWS: usize = 256;
/// Side of its matrix, as in a small model.
const MATRIX_SIDE: usize = 2048;
/// Context lengths for attention, in chunks.
const CONTEXT_CHUNKS: [usize; 3] = [2, 4, 8];
/// Runs per shape. The fastest counts, since disturbances only slow a run down.
const N_RUNS: usize = 5;
/// Time after which a slow GPU makes no further runs.
const MAX_MEASURING_TIME: Duration = Duration::from_millis(100);
/// A shape counts as fastest if this share of its time is within the best time. Prefers the default on near ties.
const TIE_RATIO: f64 = 0.98;

/// The subjects still to be tuned.
#[derive(Default)]
pub(super) struct Tuner {
    subjects: Vec<TuningSubject>,
    /// the graph's first attention, if any
    attention: Option<(AttentionShape, KvLayerLayout)>,
    trial: Option<Trial>,
}

/// The measurement of a subject's shapes, one after another.
struct Trial {
    gpu: Box<Gpu>,
    n_nodes: usize,
    subject: TuningSubject,
    /// positions of the rows of each batch
    batches: Vec<Vec<u32>>,
    /// of the shapes measured so far; None: not supported by the GPU
    times: Vec<Option<Duration>>,
}

impl Tuner {
    /// A search over the subjects of a graph that have not been tuned on this GPU.
    pub fn new(graph: &Graph, facts: &GpuFacts) -> Self {
        let is_new = |subject: &TuningSubject| !facts.tuned_shapes.contains_key(&subject.name());
        let attention = graph.nodes().iter().find_map(|node| match &node.op {
            Op::Attention { attention, .. } => Some((attention.clone(), graph.kv().layers[attention.layer])),
            _ => None,
        });
        let subjects = TuningSubject::of(graph).into_iter().filter(is_new).collect();
        Self { subjects, attention, trial: None }
    }

    /// Measures one shape of one subject. Returns whether any are left.
    pub fn step(
        &mut self,
        context: &Arc<GpuContext>,
        now: &dyn Fn() -> Duration,
    ) -> Result<bool, KernelError> {
        let mut trial = match self.trial.take() {
            Some(trial) => trial,
            None => match self.subjects.pop() {
                Some(subject) => self.begin(context, subject)?,
                None => return Ok(false),
            },
        };
        if trial.measure_next(&context.device.limits, now)? {
            self.trial = Some(trial);
            return Ok(true);
        }
        let best = trial.subject.choices()[fastest(&trial.times)].to_owned();
        context.verification.update(|facts| _ = facts.tuned_shapes.insert(trial.subject.name(), best));
        Ok(!self.subjects.is_empty())
    }

    fn begin(&self, context: &Arc<GpuContext>, subject: TuningSubject) -> Result<Trial, KernelError> {
        let (graph, batches) = match (subject, &self.attention) {
            (TuningSubject::OneRow(dtype), _) => {
                let n_out = MEASURED_BYTES / N_MATRICES / dtype.row_bytes(K);
                (matmuls(dtype, N_MATRICES, [n_out, K])?, vec![vec![0]])
            }
            (TuningSubject::ManyRows(dtype), _) => {
                (matmuls(dtype, 1, [MATRIX_SIDE, MATRIX_SIDE])?, vec![(0..N_ROWS as u32).collect()])
            }
            (TuningSubject::Attention, Some((shape, layout))) => {
                let last = |n: usize| vec![(n * CHUNK) as u32 - 1];
                (attention(shape, *layout)?, CONTEXT_CHUNKS.map(last).into())
            }
            (TuningSubject::Attention, None) => unreachable!("a graph with that subject has attention"),
        };
        let (graph, mut gpu) = (Arc::new(graph), Box::new(Gpu::unverified(context.clone())));
        gpu.prepare(&graph, DeviceId(0), CAPACITY, ValueLifetime::Needed)?;
        Ok(Trial { gpu, n_nodes: graph.nodes().len(), subject, batches, times: Vec::new() })
    }
}

/// The index of the first time that is nearly the best; 0 without times.
fn fastest(times: &[Option<Duration>]) -> usize {
    let best = times.iter().flatten().min().copied().unwrap_or_default();
    times.iter().position(|time| time.is_some_and(|time| time.mul_f64(TIE_RATIO) <= best)).unwrap_or(0)
}

impl Trial {
    /// Measures the next shape. Returns false if there is none.
    fn measure_next(
        &mut self,
        limits: &wgpu::Limits,
        now: &dyn Fn() -> Duration,
    ) -> Result<bool, KernelError> {
        let choice = self.times.len();
        if choice == self.subject.choices().len() {
            return Ok(false);
        }
        if !self.subject.fits(choice, limits) {
            self.times.push(None);
            return Ok(true);
        }
        self.gpu.set_shapes(KernelShapes::only(self.subject, choice));
        // the first run compiles the kernels
        self.run(now)?;
        let (mut best, mut all) = (Duration::MAX, Duration::ZERO);
        for _ in 0..N_RUNS {
            let took = self.run(now)?;
            (best, all) = (best.min(took), all.saturating_add(took));
            if all > MAX_MEASURING_TIME {
                break;
            }
        }
        self.times.push(Some(best));
        Ok(true)
    }

    /// Runs all batches once and returns the time.
    fn run(&mut self, now: &dyn Fn() -> Duration) -> Result<Duration, KernelError> {
        let pages: Vec<u32> = (0..CAPACITY.n_pages as u32).collect();
        let mut all = Duration::ZERO;
        for positions in &self.batches {
            let (tokens, zeros) = (vec![1; positions.len()], vec![0; positions.len()]);
            let batch = Batch {
                tokens: &tokens,
                positions,
                kinds: &[],
                given: GivenRows::NONE,
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
    n_pages: CONTEXT_CHUNKS[CONTEXT_CHUNKS.len() - 1] * CHUNK / crate::graph::PAGE_LEN,
    n_window_pages: 0,
    n_requantized_pages: 0,
    max_rows: N_ROWS,
    max_outputs: 1,
    n_states: 0,
};

/// Multiplications with `n` matrices of zeros of one format; the values do not affect the time.
fn matmuls(dtype: DType, n: usize, [n_out, k]: [usize; 2]) -> Result<Graph, KernelError> {
    let layer = KvLayerLayout { n_kv_heads: 1, head_dim: 32, precision: KvDType::F16.both(), window: None };
    let mut b = GraphBuilder::new(KvLayout::uniform(0, layer))?;
    let x = b.embed("embedding", &zeros(DType::F32, 2, k)?, 1.0)?;
    let mut last = x;
    for _ in 0..n {
        last = b.matmul("product", x, &zeros(dtype, n_out, k)?, None)?;
    }
    let last = b.output_rows("rows of the output", last)?;
    b.finish(last)
}

/// Attention of a model over a context of zeros.
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
    fn the_first_of_nearly_equal_times_wins() {
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
