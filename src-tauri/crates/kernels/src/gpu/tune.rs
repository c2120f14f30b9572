//! Shapes of workgroups, and the search for the fastest on a card: a little at a time, while nothing else is to be done.
//! Every shape gives the same bits, so that it may change from one start to the next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use weights::{DType, SharedBytes, TensorView};

use super::Gpu;
use super::device::Device;
use crate::backend::{Backend, Retain};
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, GraphBuilder, KvDType, KvLayerLayout, KvLayout, Op};
use crate::known::Known;
use crate::matmul::packed::{Packing, packing};
use crate::matmul::strands::{Lanes, ONE_ROW};
use crate::plan::{Batch, Capacity};
use crate::tensor::Tensor;

/// A workgroup of the products of one row.
pub(super) struct Shape {
    pub name: &'static str,
    pub lanes: Lanes,
}

/// The first is taken where nothing is known.
pub(super) static SHAPES: [Shape; 3] = [
    Shape { name: "64 lanes", lanes: ONE_ROW },
    Shape { name: "128 lanes", lanes: Lanes { lanes: 128, ..ONE_ROW } },
    Shape { name: "256 lanes", lanes: Lanes { lanes: 256, ..ONE_ROW } },
];

impl Shape {
    /// Whether a card can have it.
    fn fits(&self, limits: &wgpu::Limits) -> bool {
        self.lanes.lanes
            <= limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x)
    }
}

/// Those in use, by how weights lie.
#[derive(Clone, Default)]
pub(super) struct Shapes(BTreeMap<&'static str, &'static Shape>);

impl Shapes {
    /// As they were found to be the fastest; a name that nobody knows any more counts for nothing.
    pub fn known(device: &Device, known: &Known, graph: &Graph) -> Self {
        let of = |dtype: DType| {
            let shape = SHAPES
                .iter()
                .find(|shape| known.tuned.get(&name(packing(dtype))).is_some_and(|n| n == shape.name));
            Some((packing(dtype).name, shape.filter(|shape| shape.fits(&device.limits))?))
        };
        Self(formats(graph).into_iter().filter_map(of).collect())
    }

    pub fn of(&self, packing: &Packing) -> &'static Shape {
        self.0.get(packing.name).copied().unwrap_or(&SHAPES[0])
    }
}

/// By which the shape of a product is kept.
fn name(packing: &Packing) -> String {
    format!("product of one row of {}", packing.name)
}

/// Formats of the matrices of a graph, one for each way of lying.
fn formats(graph: &Graph) -> Vec<DType> {
    let mut formats: Vec<DType> = Vec::new();
    for node in graph.nodes() {
        let Op::MatMul { weight, .. } = &node.op else { continue };
        if !formats.iter().any(|other| packing(*other).name == packing(weight.dtype()).name) {
            formats.push(weight.dtype());
        }
    }
    formats
}

/// Bytes that are read to measure a shape: more than caches hold.
const MEASURED_BYTES: usize = 96 << 20;
const N_MATRICES: usize = 8;
/// Elements of a row: whole blocks of every format.
const K: usize = 4096;
/// Runs of each shape; the best counts, since whatever disturbs only slows.
const RUNS: usize = 5;
/// Share of the best time within which the first shape stays.
const AS_GOOD: f64 = 0.98;

/// What is left to be looked at.
#[derive(Default)]
pub(super) struct Tuner {
    formats: Vec<DType>,
    /// products of the format in turn, on the card, and its shapes with their times so far
    trying: Option<Trying>,
}

struct Trying {
    gpu: Box<Gpu>,
    n_nodes: usize,
    packing: &'static Packing,
    times: Vec<Duration>,
}

impl Tuner {
    /// For formats of a graph that nobody looked at on this card.
    pub fn new(graph: &Graph, known: &Known) -> Self {
        let is_new = |dtype: &DType| !known.tuned.contains_key(&name(packing(*dtype)));
        Self { formats: formats(graph).into_iter().filter(is_new).collect(), trying: None }
    }

    /// One shape of one format. False: nothing is left.
    pub fn step(&mut self, device: &Arc<Device>, now: &dyn Fn() -> Duration) -> Result<bool, KernelError> {
        let mut trying = match self.trying.take() {
            Some(trying) => trying,
            None => match self.formats.pop() {
                Some(dtype) => Trying::new(device, dtype)?,
                None => return Ok(false),
            },
        };
        if trying.next(&device.limits, now)? {
            self.trying = Some(trying);
            return Ok(true);
        }
        let best = fastest(&trying.times);
        device.trust.note(|known| _ = known.tuned.insert(name(trying.packing), SHAPES[best].name.to_owned()));
        Ok(!self.formats.is_empty())
    }
}

/// The first of the times that are about the best. Without times: the first.
fn fastest(times: &[Duration]) -> usize {
    let best = times.iter().min().copied().unwrap_or_default();
    times.iter().position(|time| time.mul_f64(AS_GOOD) <= best).unwrap_or(0)
}

impl Trying {
    fn new(device: &Arc<Device>, dtype: DType) -> Result<Self, KernelError> {
        let graph = Arc::new(products(dtype)?);
        let mut gpu = Box::new(Gpu::unchecked(device.clone()));
        gpu.prepare(&graph, DeviceId(0), CAPACITY, Retain::Needed)?;
        let n_nodes = graph.nodes().len();
        Ok(Self { gpu, n_nodes, packing: packing(dtype), times: Vec::new() })
    }

    /// Measures the next shape. False: there is none.
    fn next(&mut self, limits: &wgpu::Limits, now: &dyn Fn() -> Duration) -> Result<bool, KernelError> {
        let Some(shape) = SHAPES.get(self.times.len()).filter(|shape| shape.fits(limits)) else {
            return Ok(false);
        };
        self.gpu.take_shapes(Shapes([(self.packing.name, shape)].into()));
        let batch = Batch {
            tokens: &[1],
            positions: &[0],
            sequence: &[0],
            page_tables: &[&[0]],
            window_tables: &[],
            states: &[],
            outputs: &[0],
        };
        self.gpu.begin(&batch)?;
        let mut best = Duration::MAX;
        // the first run makes the kernel
        for run in 0..=RUNS {
            let start = now();
            self.gpu.run(0..self.n_nodes, &batch, None)?;
            let took = now().saturating_sub(start);
            best = if run == 0 { best } else { best.min(took) };
        }
        self.times.push(best);
        Ok(true)
    }
}

const CAPACITY: Capacity =
    Capacity { n_pages: 1, n_window_pages: 0, n_aged_pages: 0, max_rows: 1, max_outputs: 1, n_states: 0 };

/// Matrices of a format, one behind another, whose weights are all nothing: that takes as long as any others.
fn products(dtype: DType) -> Result<Graph, KernelError> {
    let layer = KvLayerLayout { n_kv_heads: 1, head_dim: 32, dtype: KvDType::F16, window: None };
    let mut b = GraphBuilder::new(KvLayout::uniform(0, layer))?;
    let table = zeros(DType::F32, 2, K)?;
    let x = b.embed("embedding", &table, 1.0)?;
    let n_out = MEASURED_BYTES / N_MATRICES / dtype.row_bytes(K);
    let mut last = x;
    for _ in 0..N_MATRICES {
        last = b.matmul("product", x, &zeros(dtype, n_out, K)?, None)?;
    }
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
            let times: Vec<Duration> = times.iter().map(|ms| Duration::from_millis(*ms)).collect();
            fastest(&times)
        };
        assert_eq!(
            [of(&[]), of(&[5]), of(&[100, 99, 101]), of(&[100, 90, 80]), of(&[90, 80, 79])],
            [0, 0, 0, 2, 1]
        );
    }

    #[test]
    fn shapes_are_told_apart() {
        for (i, shape) in SHAPES.iter().enumerate() {
            let is_other = |other: &Shape| other.name != shape.name && other.lanes != shape.lanes;
            assert!(SHAPES[..i].iter().all(is_other));
        }
    }
}
