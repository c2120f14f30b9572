//! A graphics card as a backend: the same graph as on the CPU, by WGSL, on whatever card has a driver for Vulkan, Metal
//! or DirectX 12. Nothing is opened before a model asks for it.
//!
//! A step is a few writes of inputs, one encoder that goes through kernels made beforehand, one submission (more where
//! the work is long, so that the desktop gets its turn), and what is read from outside copied back. Pages of keys and
//! values lie as on the CPU.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use weights::TensorView;

mod buffers;
mod cost;
#[allow(unsafe_code)] // how much memory there is, which only the driver below wgpu tells
mod device;
mod features;
mod gated;
mod inputs;
mod kept;
mod likeliest;
mod matrices;
mod nodes;
mod observed;
#[allow(unsafe_code)] // what a driver compiled before, and shaders without what ends their loops by force
mod pipeline;
mod products;
mod program;
mod results;
mod scope;
mod sequences;
mod shader;
mod shapes;
mod splits;
mod submissions;
mod timing;
mod trust;
mod tune;
mod values;

pub use device::{AdapterInfo, AdapterKind, Device, adapters, pick};
pub use features::{Used, Uses};

use buffers::Constants;
use inputs::Inputs;
use kept::Kept;
use likeliest::Likeliest;
use matrices::Matrices;
use program::{Dispatch, Maker};
use results::results;
use scope::Tried;
use shapes::Shapes;
use splits::Splits;
use submissions::name_of;
use timing::Timer;
use tune::Tuner;
use values::Values;

use crate::backend::{Backend, BackendKind, Retain, Told};
use crate::effort::{Effort, Now};
use crate::error::KernelError;
use crate::fault::{FaultPlan, GpuFault, Moment};
use crate::graph::{DeviceId, Graph, Retention, ValueId};
use crate::interrupt::Interrupt;
use crate::ops::likeliest::Likely;
use crate::plan::fuse::{Fusion, Step, steps};
use crate::plan::{Batch, Capacity, runs_of};
use crate::profile::{Observer, Readable};
use crate::tensor::Tensor;

/// One card for one executor.
pub struct Gpu {
    gpu: Arc<Device>,
    state: Option<State>,
    faults: FaultPlan,
    /// whether its kernels are checked before it is used: not while they are
    is_checked: bool,
    tuner: Tuner,
    interrupt: Option<Interrupt>,
    /// None: nobody asks for the effort
    now: Option<Now>,
    effort: Effort,
}

/// What `prepare` makes for one graph.
struct State {
    graph: Arc<Graph>,
    values: Values,
    inputs: Inputs,
    kept: Kept,
    splits: Splits,
    matrices: Matrices,
    uniforms: Constants,
    vectors: Constants,
    programs: Vec<Program>,
    /// where observers want its clock
    timer: Option<Timer>,
    shapes: Shapes,
    capacity: Capacity,
    retain: Retain,
    /// columns of the output that come back; None: all
    wanted: Option<usize>,
}

/// A stretch of nodes.
struct Program {
    nodes: Range<usize>,
    dispatches: Vec<Dispatch>,
    /// which of them each step is
    steps: Vec<(Step, Range<usize>)>,
    /// values that are read from outside after it, the graph's output last
    results: Vec<ValueId>,
    makes_output: bool,
    /// where they are brought to be mapped
    readable: wgpu::Buffer,
    /// selects from the graph's output, where that is among its values
    likeliest: Option<Likeliest>,
    /// what it was submitted for
    tried: Tried,
}

impl Program {
    /// The values that come back as they are; `selects`: how many columns of the output are selected instead.
    fn coming(&self, selects: Option<usize>) -> &[ValueId] {
        let is_less = selects.is_some() && self.makes_output;
        &self.results[..self.results.len() - usize::from(is_less)]
    }
}

impl Gpu {
    pub fn new(device: Arc<Device>) -> Self {
        Self::with_faults(device, FaultPlan::default())
    }

    /// With a fault that a test wants.
    pub fn with_faults(device: Arc<Device>, faults: FaultPlan) -> Self {
        device.plan(&faults);
        let (is_checked, tuner) = (device.trust.is_asked(), Tuner::default());
        let (now, effort) = (None, Effort::default());
        Self { is_checked, gpu: device, state: None, faults, tuner, interrupt: None, now, effort }
    }

    /// For what a card is checked or measured with.
    fn unchecked(device: Arc<Device>) -> Self {
        Self { is_checked: false, ..Self::new(device) }
    }

    /// Zero where nobody asks for the effort.
    fn now(&self) -> Duration {
        self.now.as_ref().map_or(Duration::ZERO, |now| now())
    }

    /// Before a submission: the fault that is due, as the card itself would have it.
    fn fail_as_planned(&self) -> Result<bool, KernelError> {
        match self.faults.next(Moment::Submission) {
            None => Ok(false),
            Some(GpuFault::Wrong) => Ok(true),
            Some(GpuFault::Lost) => {
                self.gpu.lose("a test wanted it");
                self.gpu.check().map(|()| false)
            }
            Some(fault) => Err(self.gpu.error(fault, "a test wanted it")),
        }
    }

    /// Other shapes from here on.
    fn take_shapes(&mut self, shapes: Shapes) {
        let state = self.prepared_mut();
        state.shapes = shapes;
        state.programs.clear();
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
        told: Told,
    ) -> Result<Self, KernelError> {
        let all: Vec<Step> =
            runs_of(graph, device).flat_map(|nodes| steps(graph, nodes, Fusion::Card(retain))).collect();
        let mut state = Self {
            graph: graph.clone(),
            values: Values::new(gpu, graph, device, &all, &capacity, retain)?,
            inputs: Inputs::new(gpu, graph, device, &capacity)?,
            kept: Kept::new(gpu, graph, device, &capacity)?,
            splits: Splits::new(gpu, graph, device, &capacity)?,
            matrices: Matrices::default(),
            uniforms: Constants::new(gpu, wgpu::BufferUsages::UNIFORM),
            vectors: Constants::new(gpu, wgpu::BufferUsages::STORAGE),
            programs: Vec::new(),
            timer: None,
            shapes: Shapes::known(gpu, &gpu.trust.known(), graph),
            capacity,
            retain,
            wanted: None,
        };
        for nodes in runs_of(graph, device) {
            state.program(gpu, nodes, told)?;
        }
        Ok(state)
    }

    /// The index of the program of a stretch of nodes; made when first asked for.
    fn program(&mut self, gpu: &Arc<Device>, nodes: Range<usize>, told: Told) -> Result<usize, KernelError> {
        if let Some(at) = self.programs.iter().position(|program| program.nodes == nodes) {
            return Ok(at);
        }
        let mut maker = Maker {
            gpu,
            graph: &self.graph,
            values: &self.values,
            inputs: &self.inputs,
            kept: &self.kept,
            shapes: &self.shapes,
            splits: &self.splits,
            matrices: &mut self.matrices,
            uniforms: &mut self.uniforms,
            vectors: &mut self.vectors,
            capacity: &self.capacity,
            made: Vec::new(),
            grouped: None,
        };
        let mut made = Vec::new();
        for step in steps(&self.graph, nodes.clone(), Fusion::Card(self.retain)) {
            let first = maker.made.len();
            gpu.scoped(|| name_of(&self.graph, &step), || maker.step(&step))??;
            told(maker.matrices.n_bytes());
            made.push((step, first..maker.made.len()));
        }
        let output = self.graph.output();
        let makes_output = nodes.clone().any(|i| self.graph.nodes()[i].output == Some(output));
        let likeliest = match (self.retain, makes_output) {
            (Retain::Needed, true) => {
                let make = || Likeliest::new(&mut maker, output, &self.capacity);
                Some(gpu.scoped(|| "the likeliest of the output".into(), make)??)
            }
            (Retain::Needed, false) | (Retain::All, _) => None,
        };
        let dispatches = maker.made;
        let mut results = results(&self.graph, nodes.clone(), self.retain);
        results.sort_by_key(|value| *value == output);
        let n_bytes = results.iter().map(|value| self.values.buffer(*value).size()).sum();
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let readable = gpu.buffer("results", n_bytes, usage)?;
        let (steps, tried) = (made, Tried::default());
        self.programs.push(Program {
            nodes,
            dispatches,
            steps,
            results,
            makes_output,
            readable,
            likeliest,
            tried,
        });
        Ok(self.programs.len() - 1)
    }
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
        self.prepare_telling(graph, device, capacity, retain, &mut |_| ())
    }

    fn prepare_telling(
        &mut self,
        graph: &Arc<Graph>,
        device: DeviceId,
        capacity: Capacity,
        retain: Retain,
        told: Told,
    ) -> Result<(), KernelError> {
        self.state = None;
        if self.is_checked {
            self.check(graph)?;
        }
        self.state = Some(State::new(&self.gpu, graph, device, capacity, retain, told)?);
        self.gpu.keep_pipelines();
        if self.is_checked {
            self.tuner = Tuner::new(graph, &self.gpu.trust.known());
        }
        Ok(())
    }

    fn tune(&mut self, now: &dyn Fn() -> Duration) -> Result<bool, KernelError> {
        self.tuner.step(&self.gpu, now)
    }

    fn begin(&mut self, batch: &Batch) -> Result<(), KernelError> {
        let (gpu, start) = (self.gpu.clone(), self.now());
        let state = self.prepared_mut();
        state.make_room_for(&gpu, batch)?;
        if state.inputs.begin(&gpu, batch, state.wanted.unwrap_or(0))? {
            // what was bound is not there any more
            state.programs.clear();
        }
        self.effort.time += self.now().saturating_sub(start);
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
        let start = self.now();
        let n_bytes = self.prepared_mut().start(&gpu, nodes.clone(), batch, observer)?;
        if self.now.is_some() {
            let time = self.now().saturating_sub(start);
            let n_kernels = self.prepared_mut().n_kernels(&gpu, nodes.clone(), batch)?;
            self.effort = self.effort + Effort { n_runs: 1, n_kernels, time };
        }
        let state = self.prepared_mut();
        state.fetch(&gpu, nodes.clone(), batch, n_bytes)?;
        if is_spoilt {
            state.spoil(nodes.clone());
        }
        state.check_output(&gpu, nodes)
    }

    /// What has been submitted can't be taken back: only the next run is given up.
    fn interrupt_by(&mut self, interrupt: Option<Interrupt>) {
        self.interrupt = interrupt;
    }

    fn time_steps(&mut self, wanted: bool) -> Result<(), KernelError> {
        let timer = if wanted { Timer::new(&self.gpu)? } else { None };
        self.prepared_mut().timer = timer;
        Ok(())
    }

    fn read(&self, value: ValueId, n_rows: usize) -> &[f32] {
        self.prepared().values.read(value, n_rows)
    }

    fn measure_by(&mut self, now: Option<Now>) {
        self.now = now;
    }

    fn effort(&mut self) -> Effort {
        std::mem::take(&mut self.effort)
    }

    fn want_likeliest(&mut self, k: Option<usize>) {
        self.prepared_mut().wanted = k;
    }

    fn likeliest(
        &self,
        output: ValueId,
        (n_rows, n_columns): (usize, usize),
        k: usize,
        out: &mut Vec<Likely>,
    ) {
        self.prepared().likeliest(output, (n_rows, n_columns), k, out);
    }

    fn write(&mut self, value: ValueId, data: &[f32]) {
        let gpu = self.gpu.clone();
        self.prepared_mut().values.write(&gpu, value, data);
    }

    fn kv_page(&self, layer: usize, page: u32) -> Result<Cow<'_, [u8]>, KernelError> {
        Ok(Cow::Owned(self.prepared().kept.read_page(&self.gpu, layer, page)?))
    }

    fn kv_write_page(&mut self, layer: usize, page: u32, bytes: &[u8]) -> Result<(), KernelError> {
        let gpu = self.gpu.clone();
        self.prepared_mut().write_page(&gpu, layer, page, bytes)
    }

    fn kv_copy_page(&mut self, retention: Retention, from: u32, to: u32) -> Result<(), KernelError> {
        let gpu = self.gpu.clone();
        let state = self.prepared_mut();
        match retention {
            Retention::All => state.make_room(&gpu, from.max(to))?,
            Retention::Window => {}
        }
        state.kept.copy_page(&gpu, retention, from, to);
        gpu.check()
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
