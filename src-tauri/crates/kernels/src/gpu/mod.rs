//! A graphics card as a backend: the same graph as on the CPU, by WGSL, on whatever card has a driver for Vulkan, Metal
//! or DirectX 12. Nothing is opened before a model asks for it.
//!
//! A step is a few writes of inputs, one encoder that goes through kernels made beforehand, one submission (more where
//! the work is long, so that the desktop gets its turn), and what is read from outside copied back. Pages of keys and
//! values lie as on the CPU.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use weights::TensorView;

mod buffers;
#[allow(unsafe_code)] // how much memory there is, which only the driver below wgpu tells
mod device;
mod features;
mod gated;
mod inputs;
mod kept;
mod matrices;
mod nodes;
#[allow(unsafe_code)] // shaders without what ends their loops by force
mod pipeline;
mod products;
mod program;
mod sequences;
mod shader;
mod values;

pub use device::{AdapterInfo, AdapterKind, Device, adapters, is_wanted};
pub use features::{Used, Uses};

use buffers::{Constants, floats_of};
use inputs::Inputs;
use kept::Kept;
use matrices::Matrices;
use program::{Dispatch, Maker};
use values::Values;

use crate::backend::{Backend, BackendKind, Retain};
use crate::check::{self, InUse};
use crate::error::KernelError;
use crate::fault::{FaultPlan, GpuFault};
use crate::graph::{DeviceId, Graph, Op, Retention, ValueId};
use crate::interrupt::Interrupt;
use crate::plan::fuse::{Fusion, Step, steps};
use crate::plan::{Batch, Capacity, runs_of};
use crate::profile::{Observer, Ran, Readable};
use crate::tensor::Tensor;

/// One card for one executor.
pub struct Gpu {
    gpu: Arc<Device>,
    state: Option<State>,
    faults: FaultPlan,
    /// its kernels were found right
    is_trusted: bool,
    interrupt: Option<Interrupt>,
}

/// What `prepare` makes for one graph.
struct State {
    graph: Arc<Graph>,
    values: Values,
    inputs: Inputs,
    kept: Kept,
    matrices: Matrices,
    uniforms: Constants,
    vectors: Constants,
    programs: Vec<Program>,
    retain: Retain,
}

/// A stretch of nodes.
struct Program {
    nodes: Range<usize>,
    dispatches: Vec<Dispatch>,
    /// which of them each step is
    steps: Vec<(Step, Range<usize>)>,
    /// values that are read from outside after it
    results: Vec<ValueId>,
    /// where they are brought to be mapped
    readable: wgpu::Buffer,
}

/// Multiplications in one submission: some 50 ms of a slow card, so that no watchdog fires and the desktop moves.
const SUBMITTED: u64 = 20_000_000_000;

impl Gpu {
    pub fn new(device: Arc<Device>) -> Self {
        Self::with_faults(device, FaultPlan::default())
    }

    /// With a fault that a test wants.
    pub fn with_faults(device: Arc<Device>, faults: FaultPlan) -> Self {
        Self { gpu: device, state: None, faults, is_trusted: false, interrupt: None }
    }

    /// Whether the kernels that a graph uses compute on this card what their specification says. Errors: the first that
    /// doesn't.
    pub fn check(&mut self, graph: &Graph) -> Result<(), KernelError> {
        let make =
            || -> Box<dyn Backend> { Box::new(Self { is_trusted: true, ..Self::new(self.gpu.clone()) }) };
        match check::wrong_on(&make, &InUse::of(graph), self.gpu.used().halves)? {
            None => self.is_trusted = true,
            Some(kernel) => return Err(self.gpu.error(GpuFault::Wrong, kernel)),
        }
        Ok(())
    }

    /// Before a submission: the fault that is due, as the card itself would have it.
    fn fail_as_planned(&self) -> Result<bool, KernelError> {
        match self.faults.next() {
            None => Ok(false),
            Some(GpuFault::Wrong) => Ok(true),
            Some(GpuFault::Lost) => {
                self.gpu.lose("a test wanted it");
                self.gpu.check().map(|()| false)
            }
            Some(fault) => Err(self.gpu.error(fault, "a test wanted it")),
        }
    }

    fn prepared(&self) -> &State {
        self.state.as_ref().expect("the executor prepares a backend before it reads from it")
    }

    fn prepared_mut(&mut self) -> &mut State {
        self.state.as_mut().expect("the executor prepares a backend before it runs it")
    }
}

impl State {
    fn new(
        gpu: &Arc<Device>,
        graph: &Arc<Graph>,
        device: DeviceId,
        capacity: Capacity,
        retain: Retain,
    ) -> Result<Self, KernelError> {
        let all: Vec<Step> =
            runs_of(graph, device).flat_map(|nodes| steps(graph, nodes, Fusion::Full)).collect();
        let mut state = Self {
            graph: graph.clone(),
            values: Values::new(gpu, graph, device, &all, &capacity, retain)?,
            inputs: Inputs::new(gpu, graph, device, &capacity)?,
            kept: Kept::new(gpu, graph, device, &capacity)?,
            matrices: Matrices::default(),
            uniforms: Constants::new(gpu, wgpu::BufferUsages::UNIFORM),
            vectors: Constants::new(gpu, wgpu::BufferUsages::STORAGE),
            programs: Vec::new(),
            retain,
        };
        for nodes in runs_of(graph, device) {
            state.program(gpu, nodes)?;
        }
        Ok(state)
    }

    /// The index of the program of a stretch of nodes; made when first asked for.
    fn program(&mut self, gpu: &Arc<Device>, nodes: Range<usize>) -> Result<usize, KernelError> {
        if let Some(at) = self.programs.iter().position(|program| program.nodes == nodes) {
            return Ok(at);
        }
        let mut maker = Maker {
            gpu,
            graph: &self.graph,
            values: &self.values,
            inputs: &self.inputs,
            kept: &self.kept,
            matrices: &mut self.matrices,
            uniforms: &mut self.uniforms,
            vectors: &mut self.vectors,
            made: Vec::new(),
            grouped: None,
        };
        let mut made = Vec::new();
        for step in steps(&self.graph, nodes.clone(), Fusion::Full) {
            let first = maker.made.len();
            maker.step(&step)?;
            made.push((step, first..maker.made.len()));
        }
        let dispatches = maker.made;
        gpu.check()?;
        let results = results(&self.graph, nodes.clone(), self.retain);
        let n_bytes = results.iter().map(|value| self.values.buffer(*value).size()).sum();
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let readable = gpu.buffer("results", n_bytes, usage)?;
        self.programs.push(Program { nodes, dispatches, steps: made, results, readable });
        Ok(self.programs.len() - 1)
    }

    /// Encodes kernels, and submits all but the last of them. What is left to submit.
    fn encode(gpu: &Device, dispatches: &[Dispatch], batch: &Batch) -> wgpu::CommandEncoder {
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut rest = dispatches;
        while !rest.is_empty() {
            let mut cost = 0;
            let fits = |dispatch: &&Dispatch| {
                let before = cost;
                cost += dispatch.cost_of(batch);
                before == 0 || cost <= SUBMITTED
            };
            let n = rest.iter().take_while(fits).count();
            let (now, later) = rest.split_at(n);
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            for dispatch in now {
                let (pipeline, [x, y, z]) = dispatch.of(batch);
                if x * y * z > 0 {
                    pass.set_pipeline(&pipeline.compute);
                    pass.set_bind_group(0, &dispatch.bound, &[]);
                    pass.dispatch_workgroups(x, y, z);
                }
            }
            drop(pass);
            rest = later;
            if !rest.is_empty() {
                gpu.queue.submit([encoder.finish()]);
                encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            }
        }
        encoder
    }

    /// Step by step, each waited for: `observe` hears of it when it is done, and sees the queries of attention.
    fn run_observed(
        &mut self,
        gpu: &Device,
        at: usize,
        batch: &Batch,
        observe: Observer,
    ) -> Result<(), KernelError> {
        for (step, range) in &self.programs[at].steps {
            let encoder = Self::encode(gpu, &self.programs[at].dispatches[range.clone()], batch);
            gpu.queue.submit([encoder.finish()]);
            gpu.wait()?;
            if let Step::Node(i) = step
                && let Op::Attention { q, .. } = &self.graph.nodes()[*i].op
            {
                let n_bytes = self.n_bytes(*q, batch);
                let bytes = gpu.read_back(self.values.buffer(*q), 0, n_bytes)?;
                floats_of(&bytes, self.values.mirror(*q, n_bytes as usize / size_of::<f32>()));
            }
            observe(&Ran { graph: &self.graph, batch, step, values: &self.values });
        }
        Ok(())
    }

    /// Submits what is left of a program together with the way back of its results. Their bytes.
    fn submit(&self, gpu: &Device, mut encoder: wgpu::CommandEncoder, at: usize, batch: &Batch) -> u64 {
        let (program, mut at) = (&self.programs[at], 0);
        for value in &program.results {
            let n_bytes = self.n_bytes(*value, batch);
            encoder.copy_buffer_to_buffer(self.values.buffer(*value), 0, &program.readable, at, n_bytes);
            at += n_bytes;
        }
        gpu.queue.submit([encoder.finish()]);
        at
    }

    /// Results that are no numbers, as a broken kernel may leave them.
    fn spoil(&mut self, nodes: Range<usize>) {
        for value in results(&self.graph, nodes, self.retain) {
            self.values.mirror_of(value).fill(f32::NAN);
        }
    }

    /// Logits that are no numbers are the card's fault, or the weights': the processor will tell which.
    fn check_output(&self, gpu: &Device, nodes: Range<usize>) -> Result<(), KernelError> {
        let output = self.graph.output();
        let is_here = nodes.into_iter().any(|i| self.graph.nodes()[i].output == Some(output));
        match is_here && self.values.read_all(output).iter().any(|x| x.is_nan()) {
            true => Err(gpu.error(GpuFault::Wrong, "its results are not numbers")),
            false => Ok(()),
        }
    }

    fn n_bytes(&self, value: ValueId, batch: &Batch) -> u64 {
        let value = self.graph.value(value);
        (batch.rows(value.rows) * value.width * size_of::<f32>()) as u64
    }

    fn run(
        &mut self,
        gpu: &Arc<Device>,
        nodes: Range<usize>,
        batch: &Batch,
        observer: Option<Observer>,
    ) -> Result<(), KernelError> {
        let at = self.program(gpu, nodes)?;
        let left = match observer {
            Some(observe) => {
                self.run_observed(gpu, at, batch, observe)?;
                Self::encode(gpu, &[], batch)
            }
            None => Self::encode(gpu, &self.programs[at].dispatches, batch),
        };
        let n_bytes = self.submit(gpu, left, at, batch);
        if n_bytes == 0 {
            return gpu.check();
        }
        let Self { programs, values, graph, .. } = self;
        let program = &programs[at];
        gpu.mapped(&program.readable, n_bytes, &mut |mapped| {
            let mut rest = mapped;
            for id in &program.results {
                let value = graph.value(*id);
                let len = batch.rows(value.rows) * value.width;
                let (bytes, others) = rest.split_at(len * size_of::<f32>());
                floats_of(bytes, values.mirror(*id, len));
                rest = others;
            }
        })
    }
}

/// What others read after a stretch of nodes: the output, what goes to another device, or all.
fn results(graph: &Graph, nodes: Range<usize>, retain: Retain) -> Vec<ValueId> {
    let copied = |value: ValueId| {
        let copies = |op: &Op| matches!(op, Op::Copy { x } if *x == value);
        graph.nodes().iter().any(|node| copies(&node.op))
    };
    let is_read = |value: &ValueId| match retain {
        Retain::All => true,
        Retain::Needed => *value == graph.output() || copied(*value),
    };
    nodes.filter_map(|i| graph.nodes()[i].output).filter(is_read).collect()
}

impl Backend for Gpu {
    fn kind(&self) -> BackendKind {
        BackendKind::Gpu
    }

    fn describe(&self) -> String {
        let info = self.gpu.info();
        let facts = [vec![info.api.as_str()], self.gpu.used().names()].concat();
        format!("{} ({})", info.name, facts.join(", "))
    }

    /// Stays where it is until the graph is known: experts lie together.
    fn upload(&self, view: &TensorView) -> Result<Tensor, KernelError> {
        Tensor::host(view)
    }

    fn prepare(
        &mut self,
        graph: &Arc<Graph>,
        device: DeviceId,
        capacity: Capacity,
        retain: Retain,
    ) -> Result<(), KernelError> {
        self.state = None;
        if self.gpu.info().kind.is_hardware() && !self.is_trusted {
            self.check(graph)?;
        }
        self.state = Some(State::new(&self.gpu, graph, device, capacity, retain)?);
        Ok(())
    }

    fn begin(&mut self, batch: &Batch) -> Result<(), KernelError> {
        let gpu = self.gpu.clone();
        let state = self.prepared_mut();
        if state.inputs.begin(&gpu, batch)? {
            // what was bound is not there any more
            state.programs.clear();
        }
        gpu.check()
    }

    fn run(
        &mut self,
        nodes: Range<usize>,
        batch: &Batch,
        observer: Option<Observer>,
    ) -> Result<(), KernelError> {
        if self.interrupt.as_ref().is_some_and(Interrupt::is_asked) {
            return Err(KernelError::Interrupted);
        }
        let (gpu, is_spoilt) = (self.gpu.clone(), self.fail_as_planned()?);
        let state = self.prepared_mut();
        state.run(&gpu, nodes.clone(), batch, observer)?;
        if is_spoilt {
            state.spoil(nodes.clone());
        }
        state.check_output(&gpu, nodes)
    }

    /// What has been submitted can't be taken back: only the next run is given up.
    fn interrupt_by(&mut self, interrupt: Option<Interrupt>) {
        self.interrupt = interrupt;
    }

    fn read(&self, value: ValueId, n_rows: usize) -> &[f32] {
        self.prepared().values.read(value, n_rows)
    }

    fn write(&mut self, value: ValueId, data: &[f32]) {
        let gpu = self.gpu.clone();
        self.prepared_mut().values.write(&gpu, value, data);
    }

    fn kv_page(&self, layer: usize, page: u32) -> Result<Cow<'_, [u8]>, KernelError> {
        let pages = self.prepared().kept.pages(layer);
        let at = u64::from(page) * pages.page_bytes;
        Ok(Cow::Owned(self.gpu.read_back(&pages.buffer, at, pages.page_bytes)?))
    }

    fn kv_write_page(&mut self, layer: usize, page: u32, bytes: &[u8]) -> Result<(), KernelError> {
        let pages = self.prepared().kept.pages(layer);
        self.gpu.queue.write_buffer(&pages.buffer, u64::from(page) * pages.page_bytes, bytes);
        self.gpu.check()
    }

    fn kv_copy_page(&mut self, retention: Retention, from: u32, to: u32) -> Result<(), KernelError> {
        self.prepared().kept.copy_page(&self.gpu, retention, from, to);
        self.gpu.check()
    }

    fn state(&self, layer: usize, slot: u32) -> Result<Cow<'_, [u8]>, KernelError> {
        let states = self.prepared().kept.states(layer);
        let at = u64::from(slot) * states.n_bytes;
        Ok(Cow::Owned(self.gpu.read_back(&states.buffer, at, states.n_bytes)?))
    }

    fn write_state(&mut self, layer: usize, slot: u32, bytes: &[u8]) -> Result<(), KernelError> {
        let states = self.prepared().kept.states(layer);
        self.gpu.queue.write_buffer(&states.buffer, u64::from(slot) * states.n_bytes, bytes);
        self.gpu.check()
    }

    fn copy_state(&mut self, from: u32, to: u32) -> Result<(), KernelError> {
        self.prepared().kept.copy_states(&self.gpu, from, to);
        self.gpu.check()
    }
}
