//! From a validated file to a model that answers: family, spec, tensors, devices.

use std::collections::VecDeque;
use std::sync::Arc;

use kernels::backends::{BackendOptions, Card};
use kernels::cpu::isa::IsaLevel;
use kernels::{
    Backend, BackendKind, Capacity, CpuOptions, DeviceId, Executor, Interrupt, KvDType, Precision, Retention,
    Tensor,
};
use weights::{Advice, Container, WeightFile};

use super::context::{RopeScaling, longest, narrow};
use super::health::CardHealth;
use super::relief::{self, CardTrouble, Relief};
use super::replica::{Gathered, Replica};
use super::room::{Asked, Room};
use super::settle::Settling;
use super::{DEFAULT_CTX, Devices, LoadOptions, Model, ModelInfo, several};
use crate::adapter::Addition;
use crate::arch::{self, Family, Fit, Placed};
use crate::decoder::{self, LowRank, Placement, Weights};
use crate::error::{DAMAGED, EngineError, Result};
use crate::kv::aging::Aging;
use crate::kv::cache::KvCache;
use crate::kv::checksum::xxh64;
use crate::kv::size::{KvBytes, PieceBytes, check_precision};
use crate::kv::snapshot::Identity;
use crate::spec::{ModelSpec, Role};
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;

/// Share of the progress that is done when the spec stands, when all weights are read that go to a card after that, and
/// when all are where they belong.
const CHECKED: f32 = 0.05;
const READ: f32 = 0.4;
const UPLOADED: f32 = 0.9;

/// Where a graphics card is asked for and can't take the model, less is asked of it; where it isn't there, or can't take
/// that either, the CPU stands in.
pub(super) fn load(
    file: Arc<WeightFile>,
    asked: &LoadOptions,
    progress: &mut dyn FnMut(f32),
) -> Result<Model> {
    let health = asked.card_health.or_own();
    let (mut options, mut instead, mut troubles) = (asked.clone(), None, VecDeque::new());
    let wants_card = !matches!(asked.devices, Devices::Auto | Devices::Cpu | Devices::Scalar);
    if let Some(error) = health.given_up().filter(|_| wants_card) {
        (options.devices, instead) = (Devices::Cpu, Some(error));
    }
    let mut model = loop {
        match load_on(file.clone(), &options, progress) {
            Err(error) if error.is_of_gpu() => {
                let spec = arch::spec(&file, arch::find(&file)?)?;
                if let Some(relief) = several::without(&mut options, 0, spec.layers.len()) {
                    troubles.push_back(CardTrouble { error, relief });
                    continue;
                }
                let relief = relief::next(&error, &mut options, asked, &health, &spec);
                if matches!(relief, Relief::Cpu | Relief::CpuForSession) {
                    instead = Some(error);
                } else if relief != Relief::Anew {
                    troubles.push_back(CardTrouble { error, relief });
                }
            }
            loaded => break loaded?,
        }
    };
    model.info.instead = instead;
    (model.source.asked, model.source.health) = (asked.clone(), health);
    model.source.troubles = troubles;
    model.add_replicas()?;
    Ok(model)
}

fn load_on(file: Arc<WeightFile>, options: &LoadOptions, progress: &mut dyn FnMut(f32)) -> Result<Model> {
    progress(0.0);
    let family = arch::find(&file)?;
    let n_ctx = options.ctx.unwrap_or(DEFAULT_CTX);
    let fit = Fit { n_ctx, stretch: options.rope_scaling.map(RopeScaling::factor) };
    let mut spec = arch::spec_for(&file, family, fit)?;
    if let Some(window) = options.kv_window {
        narrow(&mut spec, window)?;
    }
    check_precision(&decoder::kv_layout(&spec, options.kv))?;
    let placed = arch::tensors(&file, family, &spec)?;
    progress(CHECKED);
    let (placement, kinds) = placement(&options.devices, spec.layers.len())?;
    let parts = || placed.iter().flat_map(|p| &p.parts);
    let n_weight_bytes = parts().map(|part| part.data.len() as u64).sum();
    let n_parameters = parts().map(|part| part.shape.iter().map(|&n| n as u64).product::<u64>()).sum();
    let devices = backends(&kinds, options)?;
    let until = if kinds.contains(&BackendKind::Gpu) { READ } else { UPLOADED };
    let mut upload = Upload::new(&placed, &devices, (n_weight_bytes, until), progress);
    upload.reading = Reading::of(&file, options);
    let (words, graph) = meanwhile(
        || Words::read(&file, &spec),
        || decoder::build(&spec, &placement, options.kv, &mut upload),
    );
    let (Words { tokenizer, template }, graph) = (words?, graph?);
    let longest = longest(&spec, options.rope_scaling);
    let n_ctx = n_ctx.clamp(1, longest);
    let aging = if spec.looks_ahead() { Aging::Off } else { options.kv_aging };
    let n_devices = devices.len();
    let asked = Asked { graph: &graph, n_devices, spec: &spec, options, aging, n_ctx, n_weight_bytes };
    let Room { geometry, capacity } = asked.room()?;
    let told = &mut |n| progress(until + share(n, n_weight_bytes) * (UPLOADED - until));
    let executor = Executor::telling(graph, devices, capacity, told)?;
    let fingerprint = file.fingerprint();
    let identity = identity(&fingerprint, &spec, &of_layers(&placement, &kinds), options, &executor)?;
    let kv_bytes = KvBytes::of(executor.graph().kv(), &geometry);
    let info = ModelInfo {
        fingerprint,
        architecture: spec.architecture,
        n_parameters,
        n_weight_bytes,
        n_vocab: spec.n_vocab,
        n_layers: spec.layers.len(),
        d_model: spec.d_model,
        context_length: longest,
        n_ctx,
        kv_bytes_per_token: identity.bytes.page / kernels::PAGE_LEN as u64,
        kv_fixed_bytes: kv_bytes.fixed() / geometry.max_sequences as u64,
        kv_bytes,
        kv_aging: geometry.ages.when,
        devices: executor.describe(),
        instead: None,
    };
    let settling = may_move(options, &kinds).then(|| Settling::of(file.clone()));
    let source = Source::new(file, family, options.clone(), placed);
    progress(1.0);
    Ok(Model {
        spec,
        info,
        tokenizer,
        template,
        replicas: vec![Replica::new(executor)],
        cache: KvCache::new(geometry),
        identity,
        source,
        settling,
        interrupt: Interrupt::default(),
        gathered: Gathered::default(),
    })
}

/// Whether weights may go to large pages: only the CPU reads them there.
fn may_move(options: &LoadOptions, kinds: &[BackendKind]) -> bool {
    let is_wanted = options.settle && options.resident.is_none() && !options.small_pages;
    is_wanted && kinds.contains(&BackendKind::Cpu)
}

/// What the weights of a loaded model came from.
pub(super) struct Source {
    pub file: Arc<WeightFile>,
    pub family: Family,
    pub options: LoadOptions,
    pub placed: Vec<Placed>,
    /// of adapters
    pub additions: Vec<Addition>,
    /// as the user wanted it; `options` ask less of a card that failed
    pub asked: LoadOptions,
    pub health: CardHealth,
    /// what nobody has asked for yet
    pub troubles: VecDeque<CardTrouble>,
}

/// A model's weights on devices of their own, with what its checkpoints are known by there.
pub(super) struct Moved {
    /// of each replica
    pub executors: Vec<Executor>,
    pub identity: Identity,
}

impl Source {
    fn new(file: Arc<WeightFile>, family: Family, options: LoadOptions, placed: Vec<Placed>) -> Self {
        let (additions, asked) = (Vec::new(), options.clone());
        let (health, troubles) = (CardHealth::default(), VecDeque::new());
        Self { file, family, options, placed, additions, asked, health, troubles }
    }

    /// The weights on the devices that the options name.
    pub fn executors(
        &self,
        spec: &ModelSpec,
        capacity: Capacity,
        n_weight_bytes: u64,
        fingerprint: &str,
    ) -> Result<Moved> {
        let n_layers = spec.layers.len();
        let (mut executors, mut identity) = (Vec::new(), None);
        for at in 0..several::n_replicas(&self.options) {
            let options = several::alone(&self.options, at, n_layers);
            let (executor, own) = self.executor(&options, spec, (capacity, n_weight_bytes), fingerprint)?;
            executors.push(executor);
            identity.get_or_insert(own);
        }
        let identity = identity.expect("a model has at least one replica");
        Ok(Moved { executors, identity })
    }

    /// The same on those of one replica, which `options` name.
    pub fn executor(
        &self,
        options: &LoadOptions,
        spec: &ModelSpec,
        (capacity, n_weight_bytes): (Capacity, u64),
        fingerprint: &str,
    ) -> Result<(Executor, Identity)> {
        let Self { placed, additions, .. } = self;
        let (placement, kinds) = placement(&options.devices, spec.layers.len())?;
        let devices = backends(&kinds, options)?;
        let progress = &mut |_| {};
        let mut upload = Upload::new(placed, &devices, (n_weight_bytes, UPLOADED), progress);
        upload.additions = additions;
        let graph = decoder::build(spec, &placement, options.kv, &mut upload)?;
        let executor = Executor::new(graph, devices, capacity)?;
        let identity = identity(fingerprint, spec, &of_layers(&placement, &kinds), options, &executor)?;
        Ok((executor, identity))
    }
}

impl Model {
    /// The same weights with other additions: graph, plans and cache are made anew, no sequence survives. Error:
    /// nothing has changed.
    pub(super) fn rebuild(&mut self, additions: &[Addition], fingerprint: String) -> Result<()> {
        let before = std::mem::replace(&mut self.source.additions, additions.to_vec());
        let (capacity, n_weight_bytes) = (self.replicas[0].executor.capacity(), self.info.n_weight_bytes);
        let moved = self.source.executors(&self.spec, capacity, n_weight_bytes, &fingerprint);
        if moved.is_err() {
            self.source.additions = before;
        }
        let Moved { executors, identity } = moved?;
        self.identity = identity;
        self.info.fingerprint = fingerprint;
        self.replicas = executors.into_iter().map(Replica::new).collect();
        self.cache.clear();
        self.gathered = Gathered::default();
        Ok(())
    }
}

/// What is read of a file beside its weights.
struct Words {
    tokenizer: Option<Tokenizer>,
    template: Result<Option<ChatTemplate>>,
}

impl Words {
    fn read(file: &WeightFile, spec: &ModelSpec) -> Result<Self> {
        Ok(Self { tokenizer: tokenizer(file, spec)?, template: ChatTemplate::from_weights(file) })
    }
}

/// Both at once: reading a vocabulary keeps one core busy about as long as paging in the weights does another. The
/// second stays on this thread.
fn meanwhile<A: Send, B>(one: impl Fn() -> A + Sync, other: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("vocabulary".into()).spawn_scoped(scope, &one);
        let done = other();
        let first = match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => one(), // no thread to be had: one after the other
        };
        (first, done)
    })
}

/// The vocabulary of the file. A GGUF has one, of the same size as the embedding; safetensors may lack it, or
/// pad the embedding.
fn tokenizer(file: &WeightFile, spec: &ModelSpec) -> Result<Option<Tokenizer>> {
    match file.container() {
        Container::Safetensors if !has_tokenizer(file) => Ok(None),
        Container::Safetensors => Ok(Some(Tokenizer::from_weights(file)?)),
        Container::Gguf { .. } => {
            let tokenizer = Tokenizer::from_weights(file)?;
            if tokenizer.n_vocab() != spec.n_vocab {
                let message = format!(
                    "tokenizer.ggml.tokens has {} entries, token_embd.weight {} rows",
                    tokenizer.n_vocab(),
                    spec.n_vocab
                );
                return Err(EngineError::new("model.vocab_mismatch", message, DAMAGED));
            }
            Ok(Some(tokenizer))
        }
    }
}

fn has_tokenizer(file: &WeightFile) -> bool {
    ["tokenizer.json", "tokenizer.model"].iter().any(|name| file.side_file(name).is_some())
}

/// The device of each layer, and the kind of each device; of replicas those of the first.
fn placement(devices: &Devices, n_layers: usize) -> Result<(Placement, Vec<BackendKind>)> {
    match devices {
        Devices::Scalar => Ok((Placement::single(n_layers), vec![BackendKind::Scalar])),
        Devices::Auto | Devices::Cpu => Ok((Placement::single(n_layers), vec![BackendKind::Cpu])),
        Devices::Gpu { layers } => {
            let on_card = layers.unwrap_or(n_layers).min(n_layers);
            let parts = [(BackendKind::Gpu, on_card), (BackendKind::Cpu, n_layers - on_card)];
            let parts = parts.into_iter().filter(|(_, n)| *n > 0).collect();
            placement(&Devices::Split(parts), n_layers)
        }
        Devices::Replicas(kinds) => {
            let first = kinds.first().map(|kind| (*kind, n_layers));
            placement(&Devices::Split(first.into_iter().collect()), n_layers)
        }
        Devices::Split(parts) => {
            let n_given = parts.iter().try_fold(0usize, |sum, (_, n)| sum.checked_add(*n));
            if n_given != Some(n_layers) || parts.iter().any(|(_, n)| *n == 0) {
                return Err(EngineError::new(
                    "model.split",
                    format!("the devices take {parts:?}, the model has {n_layers} layers"),
                    "Give every device at least one layer, and all layers together.",
                ));
            }
            let layers = parts.iter().enumerate();
            let layers = layers.flat_map(|(i, (_, n))| std::iter::repeat_n(DeviceId(i), *n)).collect();
            Ok((Placement { layers }, parts.iter().map(|(kind, _)| *kind).collect()))
        }
    }
}

/// A device of each kind; cards in the order in which they are named.
fn backends(kinds: &[BackendKind], options: &LoadOptions) -> Result<Vec<Box<dyn Backend>>> {
    let LoadOptions { threads, few_threads, isa, cpus, resident, cards, faults, known, check, .. } = options;
    let (precision, sharing) = (options.card_precision, options.card_sharing);
    let (threads, few_threads, level, cpus) = (*threads, *few_threads, *isa, cpus.clone());
    let cpu = CpuOptions { threads, few_threads, cpus, level, resident: *resident };
    let mut cards = cards.iter();
    let mut card = Card::Any;
    let open = |&kind: &BackendKind| {
        if kind == BackendKind::Gpu {
            card = cards.next().unwrap_or(&card).clone();
        }
        let (cpu, faults, known) = (cpu.clone(), faults.clone(), known.clone());
        let card = card.clone();
        let options = BackendOptions { cpu, card, precision, sharing, faults, known, check: *check };
        Ok(kernels::backends::open(kind, &options)?)
    };
    kinds.iter().map(open).collect()
}

/// What computes each layer.
fn of_layers(placement: &Placement, kinds: &[BackendKind]) -> Vec<BackendKind> {
    placement.layers.iter().map(|device| kinds[device.0]).collect()
}

fn identity(
    fingerprint: &str,
    spec: &ModelSpec,
    layer_kinds: &[BackendKind],
    options: &LoadOptions,
    executor: &Executor,
) -> Result<Identity> {
    // roundings are those of an instruction set
    let level = match options.isa {
        _ if !layer_kinds.contains(&BackendKind::Cpu) => None,
        Some(level) => Some(level),
        None => Some(IsaLevel::from_env()?),
    };
    let mut backends = format!("{layer_kinds:?} {level:?}");
    let precision = options.card_precision.in_use();
    if precision != Precision::F32 && layer_kinds.contains(&BackendKind::Gpu) {
        backends += precision.name();
    }
    let layers = &executor.graph().kv().layers;
    let mut bytes = PieceBytes { page: 0, window_page: 0, ..PieceBytes::of(executor.graph().kv()) };
    for layout in layers {
        let n_bytes = layout.page_bytes() as u64;
        match layout.retention() {
            Retention::All => bytes.page += n_bytes,
            Retention::Window => bytes.window_page += n_bytes,
        }
    }
    let precisions: Vec<KvDType> = layers.iter().map(|layout| layout.dtype).collect();
    Ok(Identity {
        model: xxh64(fingerprint.as_bytes()),
        spec: xxh64(format!("{spec:?}").as_bytes()),
        backends: xxh64(backends.as_bytes()),
        kv: xxh64(format!("{precisions:?}").as_bytes()),
        bytes,
    })
}

fn share(n_done: u64, n_all: u64) -> f32 {
    (n_done as f32 / n_all.max(1) as f32).min(1.0)
}

/// Brings tensors to their devices as the decoder asks for them, and says how far it is.
struct Upload<'a> {
    placed: &'a [Placed],
    additions: &'a [Addition],
    devices: &'a [Box<dyn Backend>],
    reading: Reading,
    n_weight_bytes: u64,
    n_done: u64,
    /// the share of the progress that is done at the end
    until: f32,
    progress: &'a mut dyn FnMut(f32),
}

/// When weights are read from the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// They don't all fit into memory, or are there.
    WhenNeeded,
    /// The system was asked for large pages: it reads as much at once by itself.
    Now,
    NowAndAhead,
}

impl Reading {
    fn of(file: &WeightFile, options: &LoadOptions) -> Self {
        match options.resident {
            Some(_) => {
                // What another start left in large pages would come as large as that, far beyond what is asked for.
                file.advise(Advice::Forget);
                Self::WhenNeeded
            }
            None if !options.small_pages && file.advise(Advice::Often) => Self::Now,
            None => Self::NowAndAhead,
        }
    }
}

impl<'a> Upload<'a> {
    fn new(
        placed: &'a [Placed],
        devices: &'a [Box<dyn Backend>],
        (n_weight_bytes, until): (u64, f32),
        progress: &'a mut dyn FnMut(f32),
    ) -> Self {
        let (additions, reading) = (&[][..], Reading::WhenNeeded);
        Self { placed, additions, devices, reading, n_weight_bytes, n_done: 0, until, progress }
    }
}

impl Weights for Upload<'_> {
    fn get(&mut self, role: Role, layer: Option<usize>, device: DeviceId) -> Result<Tensor> {
        let [tensor] = <[Tensor; 1]>::try_from(self.experts(role, layer, device)?)
            .expect("only matrices of experts have several parts");
        Ok(tensor)
    }

    fn experts(&mut self, role: Role, layer: Option<usize>, device: DeviceId) -> Result<Vec<Tensor>> {
        let found = self.placed.iter().find(|p| p.role == role && p.layer == layer);
        let Placed { parts, .. } = found.expect("the spec lists every tensor that the decoder asks for");
        let mut tensors = Vec::with_capacity(parts.len());
        for part in parts {
            match self.reading {
                Reading::WhenNeeded => {}
                Reading::Now => fault_in(&part.data),
                Reading::NowAndAhead => {
                    part.data.advise(Advice::Soon);
                    fault_in(&part.data);
                }
            }
            self.n_done += part.data.len() as u64;
            tensors.push(self.devices[device.0].upload(&part.view())?);
        }
        let share = share(self.n_done, self.n_weight_bytes);
        (self.progress)(CHECKED + share * (self.until - CHECKED));
        Ok(tensors)
    }

    fn adapters(&mut self, role: Role, layer: Option<usize>, device: DeviceId) -> Result<Vec<LowRank>> {
        let device = &self.devices[device.0];
        let mine = self.additions.iter().filter(|added| added.role == role && added.layer == layer);
        let upload = |Addition { a, b, scale, .. }: &Addition| {
            Ok(LowRank { a: device.upload(&a.view())?, b: device.upload(&b.view())?, scale: *scale })
        };
        mine.map(upload).collect()
    }
}

/// Touches the pages, so that the disk is read here, where progress shows, and in order. What is in memory already
/// is mapped 64 KiB at a touch by the systems we know; what isn't is read ahead of us.
fn fault_in(bytes: &[u8]) {
    const AROUND: usize = 64 << 10;
    let sum = bytes.iter().step_by(AROUND).fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    std::hint::black_box(sum);
}
