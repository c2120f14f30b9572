//! The CPU backend: a thread pool, kernels of one instruction-set level, quantized activations.
//! Runs the fused steps of `plan::fuse`. Small steps run on the calling thread, as waking the pool would cost
//! more.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use weights::TensorView;

pub mod allocator;
pub mod arena;
mod attention;
pub mod disjoint_slices;
mod experts;
mod integer_products;
pub mod isa;
pub mod kv;
mod matmul_jobs;
mod matmul_operands;
pub mod memory;
pub mod memory_nodes;
mod pager;
mod precision;
mod quantized_activations;
mod recurrent;
mod rows;
pub mod states;
pub mod thread_pool;

use attention::CpuAttention;
pub(crate) use attention::partial_bytes;
pub use attention::shared_attention_bytes;
use experts::ExpertMatMulJobs;
use isa::IsaLevel;
use matmul_jobs::MatMulJobs;
use memory::HostMemory;
use pager::Pager;
pub use pager::WeightBudget;
pub use precision::CpuPrecision;
use thread_pool::ThreadPool;

use crate::backend::{Backend, BackendKind};
use crate::batch::Batch;
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, Op, Retention, ValueId};
use crate::interrupt::Interrupt;
use crate::ops::Kernels;
use crate::plan::fuse::Fusion;
use crate::plan::layout::ValueLifetime;
use crate::plan::step::Step;
use crate::profile::{Observer, StepProfile};
use crate::tensor::Tensor;

/// Options of a CPU backend. The default uses the whole machine.
#[derive(Clone, Debug, Default)]
pub struct CpuOptions {
    /// Threads in all, including the caller's. `None`: as many as the process may use.
    pub threads: Option<usize>,
    /// Threads for batches of a few tokens. These wait for memory, so that more threads than saturate it only
    /// use power. `None`: all.
    pub few_threads: Option<usize>,
    /// Processors to bind threads to, in order, if the system supports it. The first is left free for the
    /// caller, which is not bound. Empty: the system places threads.
    pub cpus: Vec<usize>,
    /// Instruction-set level. `None`: `INGLENOOK_ISA`, otherwise the highest level present.
    pub level: Option<IsaLevel>,
    /// Memory budget for weights; the rest is read from disk when needed. `None`: unlimited.
    pub resident: Option<WeightBudget>,
    /// Precision of products of unquantized numbers.
    pub precision: CpuPrecision,
}

/// Backend on all cores of this machine, or on as many as the options say.
pub struct Cpu {
    kernels: Kernels,
    pool: ThreadPool,
    few_threads: usize,
    resident: Option<WeightBudget>,
    precision: CpuPrecision,
    interrupt: Option<Interrupt>,
    state: Option<CpuGraphState>,
}

/// What `prepare` builds for one graph.
struct CpuGraphState {
    memory: HostMemory,
    products: MatMulJobs,
    experts: ExpertMatMulJobs,
    attend: CpuAttention,
    /// Present if not all weights may stay in memory.
    pager: Option<Pager>,
}

/// What a step needs besides its operands.
struct StepContext<'a> {
    kernels: &'a Kernels,
    pool: &'a mut ThreadPool,
    memory: &'a mut HostMemory,
    batch: &'a Batch<'a>,
}

impl Cpu {
    /// Starts the worker threads. Errors: a level this processor lacks, threads that do not start.
    pub fn new(options: CpuOptions) -> Result<Self, KernelError> {
        let level = match options.level {
            Some(level) => IsaLevel::select(Some(level.name()))?,
            None => IsaLevel::from_env()?,
        };
        let available =
            || std::thread::available_parallelism().map_or(1, usize::from).min(thread_pool::MAX_THREADS);
        let pool = ThreadPool::with_affinity(options.threads.unwrap_or_else(available), &options.cpus)?;
        let few_threads = options.few_threads.unwrap_or(usize::MAX).clamp(1, pool.n_threads());
        Ok(Self {
            kernels: Kernels::at(level),
            pool,
            few_threads,
            resident: options.resident,
            precision: options.precision,
            interrupt: None,
            state: None,
        })
    }

    /// Takes arbitrary kernels, for tests that need wrong ones.
    #[cfg(test)]
    pub(crate) fn with_kernels(kernels: Kernels, n_threads: usize) -> Result<Self, KernelError> {
        Ok(Self {
            kernels,
            pool: ThreadPool::new(n_threads)?,
            few_threads: n_threads,
            resident: None,
            precision: CpuPrecision::F32,
            interrupt: None,
            state: None,
        })
    }

    /// Returns the instruction-set level.
    pub fn level(&self) -> IsaLevel {
        self.kernels.level
    }

    /// Returns the number of threads, including the caller's.
    pub fn n_threads(&self) -> usize {
        self.pool.n_threads()
    }

    fn prepared(&self) -> &CpuGraphState {
        self.state.as_ref().expect("the executor prepares a backend before it reads from it")
    }

    fn prepared_mut(&mut self) -> &mut CpuGraphState {
        self.state.as_mut().expect("the executor prepares a backend before it runs it")
    }
}

impl Backend for Cpu {
    fn kind(&self) -> BackendKind {
        BackendKind::Cpu
    }

    fn describe(&self) -> String {
        let n = self.pool.n_threads();
        format!("cpu {}, {n} thread{}", self.kernels.level, if n == 1 { "" } else { "s" })
    }

    fn upload(&self, view: &TensorView) -> Result<Tensor, KernelError> {
        Tensor::host(view)
    }

    fn prepare(
        &mut self,
        graph: &Arc<Graph>,
        device: DeviceId,
        capacity: Capacity,
        lifetime: ValueLifetime,
    ) -> Result<(), KernelError> {
        let n_threads = self.pool.n_threads();
        let level = (self.kernels.level, self.precision);
        self.state = Some(CpuGraphState {
            memory: HostMemory::new(graph, device, capacity, lifetime, Fusion::Full)?,
            products: MatMulJobs::new(graph, device, &capacity, lifetime, level, n_threads)?,
            experts: ExpertMatMulJobs::new(graph, device, &capacity, self.kernels.level, n_threads)?,
            attend: CpuAttention::new(graph, device, &capacity, level, n_threads)?,
            pager: self.resident.map(|limit| Pager::new(graph, device, limit)),
        });
        Ok(())
    }

    fn begin(&mut self, batch: &Batch) -> Result<(), KernelError> {
        self.prepared_mut().memory.begin(batch);
        Ok(())
    }

    fn run(
        &mut self,
        nodes: Range<usize>,
        batch: &Batch,
        mut observer: Option<Observer>,
    ) -> Result<(), KernelError> {
        let state = self.state.as_mut().expect("the executor prepares a backend before it runs it");
        let few = batch.n_rows() <= quantized_activations::MAX_MEMORY_BOUND_TOKENS;
        self.pool.set_max_threads(if few { self.few_threads } else { self.pool.n_threads() });
        let steps = state.memory.program(nodes);
        let graph = state.memory.graph.clone();
        for step in &*steps {
            if self.interrupt.as_ref().is_some_and(Interrupt::is_requested) {
                return Err(KernelError::Interrupted);
            }
            let last = step.last();
            if let Some(pager) = &mut state.pager {
                pager.before_step(step);
            }
            run_step(&self.kernels, &mut self.pool, state, batch, &graph, step).map_err(|message| {
                KernelError::Panicked { node: graph.nodes()[last].name.clone(), message }
            })?;
            if let Some(pager) = &mut state.pager {
                pager.after_step(step, &graph, &state.memory.values);
            }
            if let Some(observe) = &mut observer {
                observe(&StepProfile {
                    graph: &graph,
                    batch,
                    step,
                    values: &state.memory.values,
                    span: None,
                });
            }
        }
        Ok(())
    }

    fn replays_states(&self) -> bool {
        true
    }

    fn replay_states(&mut self, nodes: Range<usize>, batch: &Batch) -> Result<(), KernelError> {
        let state = self.state.as_mut().expect("the executor prepares a backend before it runs it");
        let steps = state.memory.program(nodes);
        let graph = state.memory.graph.clone();
        for step in &*steps {
            let node = &graph.nodes()[step.last()];
            if node.op.is_recurrent() {
                run_step(&self.kernels, &mut self.pool, state, batch, &graph, step)
                    .map_err(|message| KernelError::Panicked { node: node.name.clone(), message })?;
            }
        }
        Ok(())
    }

    fn set_interrupt(&mut self, interrupt: Option<Interrupt>) {
        self.interrupt = interrupt;
    }

    fn read(&self, value: ValueId, n_rows: usize) -> &[f32] {
        self.prepared().memory.values.read(value, n_rows)
    }

    fn write(&mut self, value: ValueId, data: &[f32]) {
        self.prepared_mut().memory.values.write(value, data);
    }

    fn kv_page(&self, layer: usize, page: u32) -> Result<Cow<'_, [u8]>, KernelError> {
        Ok(Cow::Borrowed(self.prepared().memory.kv.page(layer, page)))
    }

    fn write_kv_page(&mut self, layer: usize, page: u32, bytes: &[u8]) -> Result<(), KernelError> {
        self.prepared_mut().memory.kv.page_mut(layer, page).copy_from_slice(bytes);
        Ok(())
    }

    fn release_kv_page(&mut self, page: u32) {
        self.prepared_mut().memory.kv.release_page(page);
    }

    fn copy_kv_page(&mut self, retention: Retention, from: u32, to: u32) -> Result<(), KernelError> {
        self.prepared_mut().memory.kv.copy_page(retention, from, to);
        Ok(())
    }

    fn state(&self, layer: usize, slot: u32) -> Result<Cow<'_, [u8]>, KernelError> {
        Ok(Cow::Borrowed(self.prepared().memory.states.bytes(layer, slot)))
    }

    fn write_state(&mut self, layer: usize, slot: u32, bytes: &[u8]) -> Result<(), KernelError> {
        self.prepared_mut().memory.states.bytes_mut(layer, slot).copy_from_slice(bytes);
        Ok(())
    }

    fn copy_state(&mut self, from: u32, to: u32) -> Result<(), KernelError> {
        self.prepared_mut().memory.states.copy(from, to);
        Ok(())
    }
}

/// Runs one step over all rows of the batch. Errors: the message of a panic inside a kernel.
fn run_step(
    kernels: &Kernels,
    pool: &mut ThreadPool,
    state: &mut CpuGraphState,
    batch: &Batch,
    graph: &Graph,
    step: &Step,
) -> Result<(), String> {
    let CpuGraphState { memory, products, experts, attend, .. } = state;
    let cx = &mut StepContext { kernels, pool, memory, batch };
    let i = match step {
        Step::Node(i) => *i,
        Step::AddNorm { before: None, add, norm } => return rows::add_norm(cx, graph, *add, *norm),
        // fused on GPUs only
        Step::AddNorm { before: Some(_), .. } | Step::RopeKvWrite { .. } => {
            let mut nodes = step.nodes().into_iter();
            return nodes.try_for_each(|i| run_step(kernels, pool, state, batch, graph, &Step::Node(i)));
        }
        Step::MatMuls { nodes, glu } => return products.run(cx, graph, nodes, *glu),
        Step::ExpertMatMuls { nodes, glu } => return experts.run(cx, graph, nodes, *glu),
    };
    let node = &graph.nodes()[i];
    let Some(out) = node.output else {
        let Op::KvWrite { k, v, layer } = &node.op else {
            unreachable!("every operation except KvWrite has an output");
        };
        return rows::write_kv(cx, *k, *v, *layer);
    };
    match &node.op {
        Op::Embed { table, scale, by } => rows::embed(cx, table, *scale, *by, out),
        Op::Given { start, .. } => rows::given(cx, *start, out),
        Op::ReplaceGiven { x, start } => rows::replace_given(cx, *x, *start, out),
        Op::RmsNorm { x, eps, .. } => rows::norm(cx, i, *x, *eps, out),
        Op::LayerNorm { x, eps, width, .. } => rows::layer_norm(cx, i, *x, (*eps, *width), out),
        Op::MatMul { .. } => products.run(cx, graph, &[i], None),
        Op::Rope { x, rope } => rows::rotate(cx, i, *x, rope, out),
        Op::PositionScale { x, beta, original_context } => {
            rows::position_scale(cx, *x, *beta, *original_context, out)
        }
        Op::Attention { q, attention } => attend.run(cx, *q, attention, out),
        Op::Add { a, b } => rows::add(cx, *a, *b, out),
        Op::Scale { x, factor } => rows::scale(cx, *x, *factor, out),
        Op::Softcap { x, cap } => rows::softcap(cx, *x, *cap, out),
        Op::Clamp { x, low, high } => rows::clamp(cx, *x, (*low, *high), out),
        Op::Hadamard { x, width } => rows::hadamard(cx, *x, *width, out),
        Op::Activate { x, act } => rows::activate(cx, *x, *act, out),
        Op::Glu { gate, up, act } => rows::glu(cx, *gate, *up, *act, out),
        Op::RowGate { gate, x } => rows::row_gate(cx, *gate, *x, out),
        Op::ScaleColumns { x, factors } => rows::scale_columns(cx, *x, factors, out),
        Op::Columns { x, columns } => rows::columns(cx, *x, *columns, out),
        Op::JoinColumns { a, b, n_groups } => rows::join_columns(cx, [*a, *b], *n_groups, out),
        Op::Mix { base, x, factors, width } => rows::mix(cx, [*base, *x], factors, *width, out),
        Op::MatchRms { x, of, least } => rows::match_rms(cx, [*x, *of], *least, out),
        Op::GaussianTopK { x, deviations } => rows::gaussian_top_k(cx, *x, *deviations, out),
        Op::MoeRoute { logits, routing } => rows::route(cx, *logits, routing, out),
        Op::RouteAll { .. } => rows::route_all(cx, out),
        Op::ExpertMatMul { .. } => experts.run(cx, graph, &[i], None),
        Op::ExpertSum { x, route } => rows::expert_sum(cx, *x, *route, out),
        Op::ShortConv { x, conv } => recurrent::convolve(cx, i, *x, conv, out),
        Op::DeltaNet { qkv, beta, alpha, delta } => recurrent::advance(cx, [*qkv, *beta, *alpha], delta, out),
        Op::Ssm { xbc, dt, ssm } => recurrent::advance_ssm(cx, [*xbc, *dt], ssm, out),
        Op::OutputRows { x } => rows::output_rows(cx, *x, out),
        Op::MergeRows { x, n, merge } => rows::merge_rows(cx, *x, (*n, *merge), out),
        Op::KvWrite { .. } | Op::Copy { .. } => {
            unreachable!("KvWrite has no output, and the executor does copies")
        }
    }
}
