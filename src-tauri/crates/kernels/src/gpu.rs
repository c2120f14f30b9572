//! The GPU backend: the same graph as on the CPU, as WGSL, on any GPU with a driver for Vulkan, Metal or DirectX 12.
//! Nothing is opened before a model needs it. Pages of keys and values have the same layout as on the CPU.
//!
//! A run writes its inputs, encodes and submits the kernels compiled beforehand, and copies back the values that are read
//! from outside. Long work is split into several submissions, so that the desktop stays responsive.

use std::borrow::Cow;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use weights::TensorView;

#[allow(unsafe_code)] // the memory size, which only the driver below wgpu reports
mod adapter;
mod ahead;
mod buffers;
mod context;
mod cost;
#[allow(unsafe_code)] // experimental features of wgpu
mod device;
mod error_scope;
mod features;
mod gated;
mod inputs;
mod kernel_check;
mod kernel_shapes;
mod kv_buffers;
mod matmul;
mod matrices;
mod nodes;
mod observed_run;
#[allow(unsafe_code)] // saved pipelines, and shaders without forced loop bounds
mod pipeline;
mod products;
mod program;
mod readback;
mod sequence_ops;
mod shader;
mod split_kv;
mod streams;
mod submissions;
mod timing;
mod top_k;
mod tune;
mod values;

pub use adapter::{AdapterInfo, AdapterKind, adapters, pick};
pub use context::GpuContext;
pub use features::{GpuFeatures, GpuOptions};
pub use products::GpuProducts;

use ahead::EncodedAhead;
use buffers::Constants;
use error_scope::SeenBatchKinds;
use inputs::InputBuffer;
use kernel_shapes::KernelShapes;
use kv_buffers::SequenceBuffers;
use matrices::MatrixStore;
use program::{Dispatch, ProgramBuilder};
use readback::results;
use split_kv::SplitKv;
use submissions::name_of;
use timing::StepTimer;
use top_k::TopKSelector;
use tune::Tuner;
use values::ValueBuffers;

use crate::backend::{Backend, BackendKind, ProgressFn};
use crate::batch::Batch;
use crate::capacity::Capacity;
use crate::device_stats::{MonotonicClock, SubmissionStats};
use crate::error::KernelError;
use crate::fault::FaultPlan;
use crate::graph::{DeviceId, Graph, Retention, ValueId};
use crate::interrupt::Interrupt;
use crate::ops::top_k::TopKEntry;
use crate::plan::fuse::{Fusion, steps};
use crate::plan::layout::ValueLifetime;
use crate::plan::segments::runs_of;
use crate::plan::step::Step;
use crate::profile::{Observer, ReadValue};
use crate::tensor::Tensor;

/// Rows of a prompt that GPUs with cooperative matrices compute at a time: fewer leave large ones partly idle. These GPUs
/// are fast enough that a cancellation still waits only briefly.
const PROMPT_ROWS: usize = 512;

/// Polls a future to completion. The native backends of wgpu answer at once, so there is nothing to wait for.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::yield_now();
    }
}

/// One GPU for one executor.
pub struct Gpu {
    context: Arc<GpuContext>,
    prepared: Option<PreparedGpuGraph>,
    faults: FaultPlan,
    /// whether kernels are verified before use; off while they are being verified
    is_verified: bool,
    tuner: Tuner,
    interrupt: Option<Interrupt>,
    /// None: submissions are not measured
    clock: Option<MonotonicClock>,
    stats: SubmissionStats,
}

/// What `prepare` allocates and compiles for one graph.
struct PreparedGpuGraph {
    graph: Arc<Graph>,
    values: ValueBuffers,
    inputs: InputBuffer,
    sequences: SequenceBuffers,
    split_kv: SplitKv,
    matrices: MatrixStore,
    uniforms: Constants,
    vectors: Constants,
    programs: Vec<Program>,
    /// present while steps are timed by the GPU's clock
    timer: Option<StepTimer>,
    shapes: KernelShapes,
    capacity: Capacity,
    lifetime: ValueLifetime,
    /// columns of the output to return; None: whole rows
    selected_k: Option<usize>,
}

/// The compiled form of a range of nodes.
struct Program {
    nodes: Range<usize>,
    dispatches: Vec<Dispatch>,
    /// each step with the range of its dispatches
    steps: Vec<(Step, Range<usize>)>,
    /// values that are read from outside, the graph's output last
    results: Vec<ValueId>,
    computes_output: bool,
    /// mappable buffer that the results are copied to
    staging: wgpu::Buffer,
    /// selects from the graph's output, if this program computes it
    top_k: Option<TopKSelector>,
    /// kinds of batches that it was submitted for
    seen: SeenBatchKinds,
    /// commands for the next token
    ahead: Option<EncodedAhead>,
}

impl Program {
    /// The values copied back in full. `selects`: how many columns of the output are selected instead of whole rows.
    fn whole_results(&self, selects: Option<usize>) -> &[ValueId] {
        let skips_output = selects.is_some() && self.computes_output;
        &self.results[..self.results.len() - usize::from(skips_output)]
    }
}

impl Gpu {
    /// A backend on this GPU.
    pub fn new(context: Arc<GpuContext>) -> Self {
        Self::with_faults(context, FaultPlan::default())
    }

    /// A backend into which a test injects faults.
    pub fn with_faults(context: Arc<GpuContext>, faults: FaultPlan) -> Self {
        context.device.set_fault_plan(&faults);
        let (is_verified, tuner) = (context.verification.is_enabled(), Tuner::default());
        let (clock, stats) = (None, SubmissionStats::default());
        Self { is_verified, context, prepared: None, faults, tuner, interrupt: None, clock, stats }
    }

    /// A backend that verifies or measures kernels itself.
    fn unverified(context: Arc<GpuContext>) -> Self {
        Self { is_verified: false, ..Self::new(context) }
    }

    /// Zero unless submissions are measured.
    fn now(&self) -> Duration {
        self.clock.as_ref().map_or(Duration::ZERO, |now| now())
    }

    /// Compiles the graph again with other kernel shapes.
    fn set_shapes(&mut self, shapes: KernelShapes) {
        let prepared = self.prepared_mut();
        prepared.shapes = shapes;
        prepared.programs.clear();
    }

    fn prepared(&self) -> &PreparedGpuGraph {
        self.prepared.as_ref().expect("the executor prepares a backend before it reads from it")
    }

    fn prepared_mut(&mut self) -> &mut PreparedGpuGraph {
        self.prepared.as_mut().expect("the executor prepares a backend before it runs it")
    }
}

impl PreparedGpuGraph {
    fn new(
        context: &GpuContext,
        graph: &Arc<Graph>,
        device: DeviceId,
        capacity: Capacity,
        lifetime: ValueLifetime,
        progress: ProgressFn,
    ) -> Result<Self, KernelError> {
        let gpu = &context.device;
        let all: Vec<Step> =
            runs_of(graph, device).flat_map(|nodes| steps(graph, nodes, Fusion::Gpu(lifetime))).collect();
        let mut prepared = Self {
            graph: graph.clone(),
            values: ValueBuffers::new(gpu, graph, device, &all, &capacity, lifetime)?,
            inputs: InputBuffer::new(gpu, graph, device, &capacity)?,
            sequences: SequenceBuffers::new(gpu, graph, device, &capacity)?,
            split_kv: SplitKv::new(gpu, graph, device, &capacity)?,
            matrices: MatrixStore::default(),
            uniforms: Constants::new(gpu, wgpu::BufferUsages::UNIFORM),
            vectors: Constants::new(gpu, wgpu::BufferUsages::STORAGE),
            programs: Vec::new(),
            timer: None,
            shapes: KernelShapes::tuned(gpu, &context.verification.facts(), graph),
            capacity,
            lifetime,
            selected_k: None,
        };
        for nodes in runs_of(graph, device) {
            prepared.program(context, nodes, progress)?;
        }
        Ok(prepared)
    }

    /// The index of the program for a range of nodes, compiled on first use.
    fn program(
        &mut self,
        context: &GpuContext,
        nodes: Range<usize>,
        progress: ProgressFn,
    ) -> Result<usize, KernelError> {
        if let Some(at) = self.programs.iter().position(|program| program.nodes == nodes) {
            return Ok(at);
        }
        let gpu = &context.device;
        let mut builder = ProgramBuilder {
            gpu,
            pipelines: &context.pipelines,
            graph: &self.graph,
            values: &self.values,
            inputs: &self.inputs,
            sequences: &self.sequences,
            shapes: &self.shapes,
            split_kv: &self.split_kv,
            matrices: &mut self.matrices,
            uniforms: &mut self.uniforms,
            vectors: &mut self.vectors,
            capacity: &self.capacity,
            dispatches: Vec::new(),
            grouped: Vec::new(),
        };
        let mut compiled = Vec::new();
        for step in steps(&self.graph, nodes.clone(), Fusion::Gpu(self.lifetime)) {
            let first = builder.dispatches.len();
            gpu.scoped(|| name_of(&self.graph, &step), || builder.step(&step))??;
            progress(builder.matrices.n_bytes());
            compiled.push((step, first..builder.dispatches.len()));
        }
        let output = self.graph.output();
        let computes_output = nodes.clone().any(|i| self.graph.nodes()[i].output == Some(output));
        let top_k = match (self.lifetime, computes_output) {
            (ValueLifetime::Needed, true) => {
                let compile = || TopKSelector::new(&mut builder, output, &self.capacity);
                Some(gpu.scoped(|| "top-k of the output".into(), compile)??)
            }
            (ValueLifetime::Needed, false) | (ValueLifetime::All, _) => None,
        };
        let dispatches = builder.dispatches;
        let mut results = results(&self.graph, nodes.clone(), self.lifetime);
        results.sort_by_key(|value| *value == output);
        let n_bytes = results.iter().map(|value| self.values.buffer(*value).size()).sum();
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = gpu.buffer("results", n_bytes, usage)?;
        let (steps, seen) = (compiled, SeenBatchKinds::default());
        self.programs.push(Program {
            nodes,
            dispatches,
            steps,
            results,
            computes_output,
            staging,
            top_k,
            seen,
            ahead: None,
        });
        Ok(self.programs.len() - 1)
    }
}

impl Backend for Gpu {
    fn kind(&self) -> BackendKind {
        BackendKind::Gpu
    }

    fn describe(&self) -> String {
        let info = self.context.info();
        let facts = [vec![info.api.as_str()], self.context.features().names()].concat();
        format!("{} ({})", info.name, facts.join(", "))
    }

    /// Uploads nothing until the graph is known, since the matrices of experts are stored together.
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
        self.prepare_with_progress(graph, device, capacity, lifetime, &mut |_| ())
    }

    fn prepare_with_progress(
        &mut self,
        graph: &Arc<Graph>,
        device: DeviceId,
        capacity: Capacity,
        lifetime: ValueLifetime,
        progress: ProgressFn,
    ) -> Result<(), KernelError> {
        self.prepared = None;
        if self.is_verified {
            self.verify(graph)?;
        }
        let prepared = PreparedGpuGraph::new(&self.context, graph, device, capacity, lifetime, progress)?;
        self.prepared = Some(prepared);
        self.context.cache_pipelines();
        if self.is_verified {
            self.tuner = Tuner::new(graph, &self.context.verification.facts());
        }
        Ok(())
    }

    fn preferred_rows(&self) -> Option<usize> {
        self.context.features().matrices.then_some(PROMPT_ROWS)
    }

    fn tune(&mut self, now: &dyn Fn() -> Duration) -> Result<bool, KernelError> {
        self.tuner.step(&self.context, now)
    }

    fn begin(&mut self, batch: &Batch) -> Result<(), KernelError> {
        let (context, start) = (self.context.clone(), self.now());
        let (gpu, prepared) = (&context.device, self.prepared_mut());
        prepared.allocate_pages_of(gpu, batch)?;
        if prepared.inputs.begin(gpu, batch, prepared.selected_k.unwrap_or(0))? {
            // programs are bound to the buffer that was replaced
            prepared.programs.clear();
        }
        self.stats.time += self.now().saturating_sub(start);
        gpu.check()
    }

    fn run(
        &mut self,
        nodes: Range<usize>,
        batch: &Batch,
        observer: Option<Observer>,
    ) -> Result<(), KernelError> {
        if self.interrupt.as_ref().is_some_and(Interrupt::is_requested) {
            return Err(KernelError::Interrupted);
        }
        let (context, is_spoiled) =
            (self.context.clone(), self.context.device.fail_submission(&self.faults)?);
        let (start, is_observed) = (self.now(), observer.is_some());
        let n_bytes = self.prepared_mut().start(&context, nodes.clone(), batch, observer)?;
        if self.clock.is_some() {
            let time = self.now().saturating_sub(start);
            let n_kernels = self.prepared_mut().n_kernels(&context, nodes.clone(), batch)?;
            self.stats = self.stats + SubmissionStats { n_runs: 1, n_kernels, time };
        }
        let (gpu, prepared) = (&context.device, self.prepared_mut());
        if !is_observed {
            let at = prepared.program(&context, nodes.clone(), &mut |_| ())?;
            prepared.encode_ahead(gpu, at, batch);
        }
        prepared.fetch(gpu, nodes.clone(), batch, n_bytes)?;
        if is_spoiled {
            prepared.spoil(nodes.clone());
        }
        prepared.check_output(gpu, nodes)
    }

    /// Takes effect at the next run: submitted work can't be taken back.
    fn set_interrupt(&mut self, interrupt: Option<Interrupt>) {
        self.interrupt = interrupt;
    }

    fn set_step_timing(&mut self, enabled: bool) -> Result<(), KernelError> {
        let timer = if enabled { StepTimer::new(&self.context.device)? } else { None };
        self.prepared_mut().timer = timer;
        Ok(())
    }

    fn read(&self, value: ValueId, n_rows: usize) -> &[f32] {
        self.prepared().values.read(value, n_rows)
    }

    fn measure_submissions(&mut self, clock: Option<MonotonicClock>) {
        self.clock = clock;
    }

    fn take_submission_stats(&mut self) -> SubmissionStats {
        std::mem::take(&mut self.stats)
    }

    fn select_top_k(&mut self, k: Option<usize>) {
        self.prepared_mut().selected_k = k;
    }

    fn top_k(
        &self,
        output: ValueId,
        (n_rows, n_columns): (usize, usize),
        k: usize,
        out: &mut Vec<TopKEntry>,
    ) {
        self.prepared().top_k(output, (n_rows, n_columns), k, out);
    }

    fn write(&mut self, value: ValueId, data: &[f32]) {
        let context = self.context.clone();
        self.prepared_mut().values.write(&context.device, value, data);
    }

    fn kv_page(&self, layer: usize, page: u32) -> Result<Cow<'_, [u8]>, KernelError> {
        Ok(Cow::Owned(self.prepared().sequences.read_page(&self.context.device, layer, page)?))
    }

    fn write_kv_page(&mut self, layer: usize, page: u32, bytes: &[u8]) -> Result<(), KernelError> {
        let context = self.context.clone();
        self.prepared_mut().write_page(&context.device, layer, page, bytes)
    }

    fn copy_kv_page(&mut self, retention: Retention, from: u32, to: u32) -> Result<(), KernelError> {
        let context = self.context.clone();
        let (gpu, prepared) = (&context.device, self.prepared_mut());
        match retention {
            Retention::All => prepared.allocate_page(gpu, from.max(to))?,
            Retention::Window => {}
        }
        prepared.sequences.copy_page(gpu, retention, from, to);
        gpu.check()
    }

    fn state(&self, layer: usize, slot: u32) -> Result<Cow<'_, [u8]>, KernelError> {
        let states = self.prepared().sequences.states(layer);
        let at = u64::from(slot) * states.n_bytes;
        Ok(Cow::Owned(self.context.device.read_back(&states.buffer, at, states.n_bytes)?))
    }

    fn write_state(&mut self, layer: usize, slot: u32, bytes: &[u8]) -> Result<(), KernelError> {
        let states = self.prepared().sequences.states(layer);
        let gpu = &self.context.device;
        gpu.queue.write_buffer(&states.buffer, u64::from(slot) * states.n_bytes, bytes);
        gpu.check()
    }

    fn copy_state(&mut self, from: u32, to: u32) -> Result<(), KernelError> {
        let gpu = &self.context.device;
        self.prepared().sequences.copy_states(gpu, from, to);
        gpu.check()
    }
}
