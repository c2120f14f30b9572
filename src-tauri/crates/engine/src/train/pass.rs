//! One forward and backward pass over a batch of sequences, in f32. The backward pass follows from the same graph; no
//! family has code here.
//!
//! Guarantees: the numbers depend neither on the number of threads nor on what is kept in memory between the passes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use kernels::backends::BackendOptions;
use kernels::cpu::isa::IsaLevel;
use kernels::cpu::thread_pool::MAX_THREADS;
use kernels::ops::{Kernels, rope};
use kernels::{Graph, Interrupt, KernelError, Op, RopeShape, Tensor};

mod attention;
mod backward;
mod buffers;
mod forward;
mod gpu_choice;
mod gpu_product;
mod integer_matrix;
mod integer_product;
mod matrix;
mod peak;
mod product;
mod rows;
mod segments;
mod slopes;
#[cfg(test)]
mod tests;
mod workers;

use buffers::Buffers;
use forward::{RowsInWork, Values};
use gpu_product::GpuProducts;
use product::Products;
use segments::PassPlan;
use workers::Workers;

/// Rows whose logits are computed at a time.
const HEAD_ROWS: usize = 256;

/// The numbers of a trained matrix, row-major.
pub type Parameter = Vec<f32>;

/// Which parameter a matrix of the graph is: its row i is row `rows[i]` of the parameter.
#[derive(Clone, Debug)]
pub struct TrainedRows {
    /// index of the parameter
    pub parameter: usize,
    /// (rows of the matrix)
    pub rows: Arc<[usize]>,
}

/// What is kept between the forward and the backward pass. The numbers are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryUse {
    /// every operand that a gradient needs
    KeepAll,
    /// the input of each layer; the layer is computed again
    RecomputeLayers,
}

/// How products with frozen matrices are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProductPrecision {
    /// in float32
    Float32,
    /// in integers of 16 bits where a matrix is quantized and the processor is faster with them; else in float32
    #[default]
    Integer16,
}

/// How to run passes.
#[derive(Clone, Debug, Default)]
pub struct PassOptions {
    /// threads; None: all cores
    pub threads: Option<usize>,
    /// ends a pass between two nodes
    pub interrupt: Option<Interrupt>,
    /// of products with frozen matrices on the CPU
    pub precision: ProductPrecision,
    /// the GPU that computes products with frozen matrices
    pub gpu: Option<BackendOptions>,
}

/// Sequences side by side. Each starts at position 0 and sees itself only.
#[derive(Clone, Copy, Debug)]
pub struct TrainingBatch<'a> {
    /// (rows) token ids
    pub tokens: &'a [u32],
    /// (rows) the token whose probability after this row is trained, if any
    pub targets: &'a [Option<u32>],
    /// rows of each sequence, in order, without gaps
    pub sequences: &'a [Range<usize>],
}

/// Gradients to add to, and the factor on the sum of all losses.
pub struct GradientSums<'a> {
    /// one per parameter, of its shape
    pub sums: &'a mut [Parameter],
    /// factor on the loss
    pub scale: f32,
    /// what to keep
    pub memory: MemoryUse,
}

/// Runs passes over one graph.
pub struct TrainingPass {
    state: PassState,
}

/// A trained matrix of the graph.
struct TrainedMatrix {
    pub rows: TrainedRows,
    /// its present numbers
    pub values: Vec<f32>,
}

/// Small tensors of a node, decoded.
#[derive(Default)]
struct NodeWeights {
    /// of a norm, with its offset
    pub vector: Vec<f32>,
    pub bias: Vec<f32>,
}

/// Cosines and sines of every row.
struct Angles {
    rope: RopeShape,
    cos: Vec<f32>,
    sin: Vec<f32>,
    minus_sin: Vec<f32>,
}

impl Angles {
    pub fn row(&self, row: usize) -> (&[f32], &[f32]) {
        let n = self.rope.inv_freq.len();
        (&self.cos[row * n..(row + 1) * n], &self.sin[row * n..(row + 1) * n])
    }

    /// The transposed rotation.
    pub fn reverse_row(&self, row: usize) -> (&[f32], &[f32]) {
        let n = self.rope.inv_freq.len();
        (&self.cos[row * n..(row + 1) * n], &self.minus_sin[row * n..(row + 1) * n])
    }

    fn fill(&mut self, positions: &[u32]) {
        let n = self.rope.inv_freq.len();
        for numbers in [&mut self.cos, &mut self.sin] {
            numbers.resize(positions.len() * n, 0.0);
        }
        for (row, position) in positions.iter().enumerate() {
            let of = row * n..(row + 1) * n;
            rope::angles(&self.rope, [*position; 3], &mut self.cos[of.clone()], &mut self.sin[of]);
        }
        self.minus_sin = self.sin.iter().map(|sin| -sin).collect();
    }
}

/// Everything that nodes need.
struct PassState {
    pub graph: Arc<Graph>,
    pub plan: PassPlan,
    pub products: Products,
    pub buffers: Buffers,
    /// (n_nodes)
    pub weights: Vec<NodeWeights>,
    /// by node
    pub trained: HashMap<usize, TrainedMatrix>,
    pub angles: Vec<Angles>,
    /// index into `angles`, by node
    pub angles_of: HashMap<usize, usize>,
    /// (rows) of the batch
    pub positions: Vec<u32>,
    interrupt: Option<Interrupt>,
}

impl TrainingPass {
    /// Prepares passes over a graph of one device. `trained` names the weights that are parameters.
    ///
    /// Errors: an operation without a gradient, threads or a GPU that do not start.
    pub fn new(
        graph: Arc<Graph>,
        trained: &HashMap<String, TrainedRows>,
        options: &PassOptions,
    ) -> Result<Self, KernelError> {
        let mut matrices = HashMap::new();
        for (i, node) in graph.nodes().iter().enumerate() {
            if let Op::MatMul { weight, .. } = &node.op
                && let Some(rows) = trained.get(weight.name())
            {
                matrices.insert(i, TrainedMatrix { rows: rows.clone(), values: Vec::new() });
            }
        }
        let plan = PassPlan::new(&graph, &|i| matrices.contains_key(&i))?;
        let (angles, angles_of) = angles(&graph);
        let available = || std::thread::available_parallelism().map_or(1, usize::from);
        let n_threads = options.threads.unwrap_or_else(available).clamp(1, MAX_THREADS);
        let kernels = Kernels::at(IsaLevel::from_env()?);
        let mut products = Products::new(Workers::new(n_threads)?, kernels, options.precision);
        if let Some(options) = &options.gpu {
            products.gpu = GpuProducts::open(options)?;
        }
        let state = PassState {
            weights: graph.nodes().iter().map(|node| node_weights(&node.op)).collect(),
            graph,
            plan,
            products,
            buffers: Buffers::default(),
            trained: matrices,
            angles,
            angles_of,
            positions: Vec::new(),
            interrupt: options.interrupt.clone(),
        };
        Ok(Self { state })
    }

    /// Returns the sum of the losses of all rows with a target. With `gradients` their gradients are added.
    ///
    /// Errors: ids beyond the vocabulary, interruption, a panic of a kernel.
    pub fn run(
        &mut self,
        batch: &TrainingBatch<'_>,
        parameters: &[Parameter],
        gradients: Option<GradientSums<'_>>,
    ) -> Result<f64, KernelError> {
        self.state.check(batch)?;
        self.state.begin(batch, parameters);
        self.state.run(batch, gradients)
    }

    /// Returns the bytes of values that a batch of `n_rows` keeps between the passes.
    pub fn kept_bytes(&self, n_rows: usize, memory: MemoryUse) -> u64 {
        let PassPlan { is_pinned, is_saved, .. } = &self.state.plan;
        let of = |v: usize| match memory {
            MemoryUse::KeepAll => is_pinned[v] || is_saved[v],
            MemoryUse::RecomputeLayers => is_pinned[v],
        };
        let values = self.state.graph.values().iter().enumerate();
        let floats: usize = values.filter(|(v, _)| of(*v)).map(|(_, value)| value.width * n_rows).sum();
        4 * floats as u64
    }
}

fn node_weights(op: &Op) -> NodeWeights {
    let decoded = |tensor: &Option<Tensor>| tensor.as_ref().map(Tensor::decode).unwrap_or_default();
    match op {
        Op::RmsNorm { weight, offset, width, .. } => {
            let weight = weight.as_ref().map_or_else(
                || vec![1.0; *width],
                |weight| weight.decode().iter().map(|x| x + offset).collect(),
            );
            NodeWeights { vector: weight, bias: Vec::new() }
        }
        Op::LayerNorm { weight, bias, .. } => {
            let vector = weight.decode();
            let bias = bias.as_ref().map_or_else(|| vec![0.0; vector.len()], Tensor::decode);
            NodeWeights { vector, bias }
        }
        Op::MatMul { bias, .. } => NodeWeights { vector: Vec::new(), bias: decoded(bias) },
        _ => NodeWeights::default(),
    }
}

fn has_same_angles(a: &RopeShape, b: &RopeShape) -> bool {
    a.inv_freq == b.inv_freq && a.axes == b.axes && a.mscale == b.mscale
}

/// One table for all rotations by the same angles.
fn angles(graph: &Graph) -> (Vec<Angles>, HashMap<usize, usize>) {
    let (mut all, mut of_node): (Vec<Angles>, _) = (Vec::new(), HashMap::new());
    for (i, node) in graph.nodes().iter().enumerate() {
        let Op::Rope { rope, .. } = &node.op else { continue };
        let found = all.iter().position(|angles| has_same_angles(&angles.rope, rope));
        let index = found.unwrap_or_else(|| {
            all.push(Angles { rope: rope.clone(), cos: Vec::new(), sin: Vec::new(), minus_sin: Vec::new() });
            all.len() - 1
        });
        of_node.insert(i, index);
    }
    (all, of_node)
}

impl PassState {
    fn check(&self, batch: &TrainingBatch<'_>) -> Result<(), KernelError> {
        let n = batch.tokens.len();
        let fail = |what, found, limit| Err(KernelError::Batch { what, found, limit });
        let ends = batch.sequences.iter().try_fold(0, |end, sequence| {
            (end == sequence.start && sequence.start < sequence.end).then_some(sequence.end)
        });
        if n == 0 || ends != Some(n) {
            return fail("rows of the sequences", ends.unwrap_or(0), n);
        }
        if batch.targets.len() != n {
            return fail("targets", batch.targets.len(), n);
        }
        let limit = self.graph.n_vocab_in().min(self.graph.value(self.graph.output()).width);
        let ids = batch.tokens.iter().chain(batch.targets.iter().flatten());
        match ids.copied().max().filter(|id| *id as usize >= limit) {
            Some(id) => fail("token id", id as usize, limit),
            None => Ok(()),
        }
    }

    fn begin(&mut self, batch: &TrainingBatch<'_>, parameters: &[Parameter]) {
        if batch.tokens.len() > self.positions.len() {
            // Buffers of a smaller batch are too small, and would stay beside the new ones.
            self.buffers = Buffers::default();
        }
        self.positions = batch.sequences.iter().flat_map(|rows| 0..rows.len() as u32).collect();
        self.angles.iter_mut().for_each(|angles| angles.fill(&self.positions));
        for (i, matrix) in &mut self.trained {
            let Op::MatMul { weight, .. } = &self.graph.nodes()[*i].op else { continue };
            let (n, parameter) = (weight.n_cols(), &parameters[matrix.rows.parameter]);
            matrix.values.clear();
            for row in matrix.rows.rows.iter() {
                matrix.values.extend_from_slice(&parameter[row * n..(row + 1) * n]);
            }
        }
    }

    fn run(
        &mut self,
        batch: &TrainingBatch<'_>,
        mut gradients: Option<GradientSums<'_>>,
    ) -> Result<f64, KernelError> {
        let rows = RowsInWork { batch, n_rows: batch.tokens.len() };
        let mut values: Values = vec![Vec::new(); self.graph.values().len()];
        let keeps_all = gradients.as_ref().is_some_and(|g| g.memory == MemoryUse::KeepAll);
        let segments = self.plan.segments.clone();
        for segment in &segments {
            self.forward_segment(segment.clone(), &mut values, &rows, keeps_all)?;
        }
        let mut flow: Values = vec![Vec::new(); self.graph.values().len()];
        let loss = self.head(&values, &mut flow, gradients.as_mut(), batch)?;
        let Some(GradientSums { sums, .. }) = gradients else { return Ok(loss) };
        for segment in segments.iter().rev() {
            if !keeps_all {
                self.forward_segment(segment.clone(), &mut values, &rows, true)?;
            }
            for i in segment.clone().rev() {
                self.check_interrupt()?;
                self.backward_node(i, &values, &mut flow, sums, &rows)?;
            }
            for output in segment.clone().filter_map(|i| self.graph.nodes()[i].output) {
                self.buffers.give(std::mem::take(&mut values[output.index()]));
                self.buffers.give(std::mem::take(&mut flow[output.index()]));
            }
        }
        Ok(loss)
    }

    fn check_interrupt(&self) -> Result<(), KernelError> {
        match self.interrupt.as_ref().is_some_and(Interrupt::is_requested) {
            true => Err(KernelError::Interrupted),
            false => Ok(()),
        }
    }

    /// Computes a segment. Values are freed after their last use unless a later segment, or with `saves` the backward
    /// pass, needs them.
    fn forward_segment(
        &mut self,
        segment: Range<usize>,
        values: &mut Values,
        rows: &RowsInWork<'_>,
        saves: bool,
    ) -> Result<(), KernelError> {
        let graph = self.graph.clone();
        for i in segment.clone() {
            self.check_interrupt()?;
            let node = &graph.nodes()[i];
            let exists = node.output.is_some_and(|v| !values[v.index()].is_empty());
            if !exists {
                self.forward_node(i, values, rows)?;
            }
            let mut inputs = self.plan.inputs(&node.op);
            if let Some(product) = self.plan.product_of_sum.get(&i) {
                inputs.extend(self.plan.inputs(&graph.nodes()[*product].op));
            }
            for v in inputs {
                let v = v.index();
                let is_needed = self.plan.is_pinned[v] || (saves && self.plan.is_saved[v]);
                if self.plan.last_use[v] == i && !is_needed {
                    self.buffers.give(std::mem::take(&mut values[v]));
                }
            }
        }
        Ok(())
    }

    /// Computes the loss, some rows at a time, and with `gradients` the gradient of the head's input into `flow`.
    fn head(
        &mut self,
        values: &Values,
        flow: &mut Values,
        mut gradients: Option<&mut GradientSums<'_>>,
        batch: &TrainingBatch<'_>,
    ) -> Result<f64, KernelError> {
        let (input, output) = (self.plan.head_input, self.graph.output());
        let width = self.graph.value(input).width;
        let trained: Vec<(usize, u32)> =
            batch.targets.iter().enumerate().filter_map(|(row, target)| Some((row, (*target)?))).collect();
        let mut dx = match gradients {
            Some(_) => self.buffers.take_zeroed(batch.tokens.len() * width),
            None => Vec::new(),
        };
        let mut loss = 0.0;
        for part in trained.chunks(HEAD_ROWS) {
            let rows = RowsInWork { batch, n_rows: part.len() };
            let selected = self.head_forward(&values[input.index()], part, &rows)?;
            let mut values = selected;
            let scale = gradients.as_ref().map_or(1.0, |g| g.scale);
            let n_vocab = self.graph.value(output).width;
            let losses = self.cross_entropy(&mut values[output.index()], n_vocab, part, scale)?;
            loss += losses.iter().sum::<f64>();
            if let Some(GradientSums { sums, .. }) = &mut gradients {
                let gradient = self.head_backward(&mut values, sums, &rows)?;
                for ((row, _), gradient) in part.iter().zip(gradient.chunks_exact(width)) {
                    dx[row * width..(row + 1) * width].copy_from_slice(gradient);
                }
                self.buffers.give(gradient);
            }
            values.into_iter().for_each(|value| self.buffers.give(value));
        }
        flow[input.index()] = dx;
        Ok(loss)
    }

    /// Computes the nodes of the head for some rows.
    fn head_forward(
        &mut self,
        x: &[f32],
        part: &[(usize, u32)],
        rows: &RowsInWork<'_>,
    ) -> Result<Values, KernelError> {
        let (graph, head) = (self.graph.clone(), self.plan.head.clone());
        let mut values: Values = vec![Vec::new(); graph.values().len()];
        for i in head {
            self.check_interrupt()?;
            match (&graph.nodes()[i].op, graph.nodes()[i].output) {
                (Op::OutputRows { .. }, Some(output)) => {
                    let width = graph.value(output).width;
                    let mut selected = self.buffers.take(part.len() * width);
                    for ((row, _), out) in part.iter().zip(selected.chunks_exact_mut(width)) {
                        out.copy_from_slice(&x[row * width..(row + 1) * width]);
                    }
                    values[output.index()] = selected;
                }
                _ => self.forward_node(i, &mut values, rows)?,
            }
        }
        Ok(values)
    }

    /// Overwrites logits by their gradients; returns the losses.
    fn cross_entropy(
        &mut self,
        logits: &mut [f32],
        n_vocab: usize,
        part: &[(usize, u32)],
        scale: f32,
    ) -> Result<Vec<f64>, KernelError> {
        let mut losses = vec![0.0; part.len()];
        let rows: Vec<_> = logits.chunks_exact_mut(n_vocab).zip(&mut losses).collect();
        let mut rows: Vec<_> = rows.into_iter().zip(part).collect();
        let cross_entropy = self.products.kernels.cross_entropy;
        self.products.workers.chunks(&mut rows, 1, &|_, rows| {
            for ((logits, loss), (_, target)) in rows {
                **loss = cross_entropy(logits, *target as usize, scale);
            }
        })?;
        Ok(losses)
    }

    /// Returns the gradient of the selected rows. The output's gradient stands in place of the output.
    fn head_backward(
        &mut self,
        values: &mut Values,
        sums: &mut [Parameter],
        rows: &RowsInWork<'_>,
    ) -> Result<Vec<f32>, KernelError> {
        let head = self.plan.head.clone();
        let mut flow: Values = vec![Vec::new(); self.graph.values().len()];
        let output = self.graph.output().index();
        flow[output] = std::mem::take(&mut values[output]);
        for i in head.clone().skip(1).rev() {
            self.backward_node(i, values, &mut flow, sums, rows)?;
        }
        let selected = self.graph.nodes()[head.start].output.map_or(output, |v| v.index());
        Ok(std::mem::take(&mut flow[selected]))
    }
}
