//! Loads a validated file as a model: family, spec, tensors, devices.

mod weight_upload;

use std::collections::VecDeque;
use std::sync::Arc;

use kernels::GpuSelector;
use kernels::backends::BackendOptions;
use kernels::cpu::isa::IsaLevel;
use kernels::{
    Backend, BackendKind, Capacity, CpuOptions, CpuPrecision, Executor, Interrupt, KvLayerLayout,
    KvPrecision, Precision, Retention,
};
use weights::{Container, WeightFile};

use super::assistant::{LoadedAssistant, check_answers};
use super::context::{RopeScaling, limit_windows, longest};
use super::gpu_fallback::{self, GpuFallback, GpuIncident};
use super::gpu_health::GpuHealth;
use super::image::ModelVision;
use super::large_pages::LargePagePromotion;
use super::memory_plan::{MemoryPlan, MemoryPlanInput};
use super::placement::{checked_placement, of_layers, placement};
use super::replica::{GatheredLogits, Replica};
use super::{DEFAULT_CTX, Devices, DraftBlockUse, LoadOptions, Model, ModelInfo, multi_gpu};
use crate::adapter::AdapterUpdate;
use crate::arch::{self, ContextFit, Family, LocatedTensor, TensorPart};
use crate::decoder;
use crate::error::{DAMAGED, EngineError, Result};
use crate::kv::cache::KvCache;
use crate::kv::checksum::xxh64;
use crate::kv::requantize::KvRequantize;
use crate::kv::size::{KvBytes, KvUnitBytes, check_precision};
use crate::kv::snapshot::CheckpointIdentity;
use crate::spec::{ASSISTANT_LAYERS, ModelSpec};
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;
use weight_upload::{PageInPolicy, WeightUpload};

/// Progress once the spec is checked, once the weights for a GPU are read, and once all weights are in place.
const CHECKED: f32 = 0.05;
const READ: f32 = 0.4;
const UPLOADED: f32 = 0.9;

/// Loads a model. If a GPU cannot take it, follows the fallback ladder down to the CPU.
pub(super) fn load(
    file: Arc<WeightFile>,
    requested: &LoadOptions,
    progress: &mut dyn FnMut(f32),
) -> Result<Model> {
    let health = requested.gpu_health.or_new();
    let (mut options, mut instead, mut gpu_incidents) = (requested.clone(), None, VecDeque::new());
    let wants_gpu = !matches!(requested.devices, Devices::Auto | Devices::Cpu | Devices::Scalar);
    if let Some(error) = health.disabled_error().filter(|_| wants_gpu) {
        (options.devices, instead) = (Devices::Cpu, Some(error));
    }
    let mut model = loop {
        match load_on(file.clone(), &options, progress) {
            Err(error) if error.code() == "model.memory" && can_omit_draft_block(&options) => {
                options.draft_block = DraftBlockUse::Off;
            }
            Err(error) if error.is_of_gpu() => {
                let spec = arch::spec(&file, arch::find(&file)?)?;
                if let Some(fallback) = multi_gpu::drop_part(&mut options, 0, spec.layers.len()) {
                    gpu_incidents.push_back(GpuIncident { error, fallback });
                    continue;
                }
                let fallback = gpu_fallback::next_fallback(&error, &mut options, requested, &health, &spec);
                if matches!(fallback, GpuFallback::Cpu | GpuFallback::CpuForSession) {
                    instead = Some(error);
                } else if fallback != GpuFallback::Reopened {
                    gpu_incidents.push_back(GpuIncident { error, fallback });
                }
            }
            loaded => break loaded?,
        }
    };
    model.info.fallback_error = instead;
    (model.source.requested, model.source.health) = (requested.clone(), health);
    model.source.gpu_incidents = gpu_incidents;
    model.add_replicas()?;
    Ok(model)
}

/// Returns whether a model that does not fit may do without its draft block.
fn can_omit_draft_block(options: &LoadOptions) -> bool {
    options.draft_block == DraftBlockUse::IfPossible
}

fn load_on(file: Arc<WeightFile>, options: &LoadOptions, progress: &mut dyn FnMut(f32)) -> Result<Model> {
    progress(0.0);
    let family = arch::find(&file)?;
    let (mut spec, assistant) = requested_spec(&file, family, options)?;
    let vision = ModelVision::load(&mut spec, (&file, family), options)?;
    spec.draft = options.draft(&file, family, &spec)?;
    let placed = arch::tensors(&file, family, &spec)?;
    let (placed, assistant) = LoadedAssistant::place(assistant, placed);
    progress(CHECKED);
    let (placement, kinds) = checked_placement(&options.devices, &spec)?;
    let (n_weight_bytes, n_parameters) = bytes_and_parameters(&placed);
    let devices = backends(&kinds, options)?;
    let until = if kinds.contains(&BackendKind::Gpu) { READ } else { UPLOADED };
    let mut upload = WeightUpload::new(&placed, &devices, (n_weight_bytes, until), progress);
    upload.reading = PageInPolicy::of(&file, options);
    let build = || decoder::build(&spec, &placement, options.kv, &mut upload);
    let (text_assets, graph) = in_parallel(|| TextAssets::read(&file, &spec), build);
    let (TextAssets { tokenizer, template }, graph) = (text_assets?, graph?);
    let (n_ctx, longest) = context_lengths(&spec, options);
    let plan_input = MemoryPlanInput {
        graph: &graph,
        spec: &spec,
        options,
        requantize: requantize(&spec, options),
        n_ctx,
        n_weight_bytes,
        devices: &devices,
        tower: vision.as_ref().map(ModelVision::bytes).unwrap_or_default(),
    };
    let MemoryPlan { geometry, capacity } = plan_input.plan()?;
    let report = &mut |n| progress(until + share(n, n_weight_bytes) * (UPLOADED - until));
    let executor = Executor::with_progress(graph, devices, capacity, report)?;
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
        kv_requantize: geometry.requantize.when,
        devices: executor.describe(),
        fallback_error: None,
    };
    progress(1.0);
    Ok(Model {
        spec,
        info,
        tokenizer,
        template,
        replicas: vec![Replica::new(executor)],
        cache: KvCache::new(geometry),
        identity,
        large_page_promotion: may_move(options, &kinds).then(|| LargePagePromotion::of(file.clone())),
        source: LoadSource::new(file, family, options.clone(), placed),
        interrupt: Interrupt::default(),
        gathered: GatheredLogits::default(),
        last_run: None,
        vision,
        assistant,
    })
}

/// Returns the tokens that a sequence may have, and those that it could have at most.
fn context_lengths(spec: &ModelSpec, options: &LoadOptions) -> (usize, usize) {
    let longest = longest(spec, options.rope_scaling);
    (options.ctx.unwrap_or(DEFAULT_CTX).clamp(1, longest), longest)
}

/// Returns the bytes of all tensors, and how many numbers the model has without its assistant.
fn bytes_and_parameters(tensors: &[LocatedTensor]) -> (u64, u64) {
    let parts = || tensors.iter().flat_map(|tensor| &tensor.parts);
    let own = tensors.iter().filter(|tensor| tensor.layer < Some(ASSISTANT_LAYERS));
    let n_parameters = |part: &TensorPart| part.shape.iter().map(|&n| n as u64).product::<u64>();
    (
        parts().map(|part| part.data.len() as u64).sum(),
        own.flat_map(|tensor| &tensor.parts).map(n_parameters).sum(),
    )
}

/// When old keys and values are requantized. Never where later rows change what earlier ones see.
fn requantize(spec: &ModelSpec, options: &LoadOptions) -> KvRequantize {
    let is_fixed = spec.is_bidirectional() || spec.reads_images_whole();
    if is_fixed { KvRequantize::Off } else { options.kv_requantize }
}

/// Reads the spec of a file, with the assistant, context, window and precision that the options ask for.
fn requested_spec(
    file: &WeightFile,
    family: Family,
    options: &LoadOptions,
) -> Result<(ModelSpec, Option<LoadedAssistant>)> {
    check_answers(file, family)?;
    let n_ctx = options.ctx.unwrap_or(DEFAULT_CTX);
    let fit = ContextFit { n_ctx, rope_factor: options.rope_scaling.map(RopeScaling::factor) };
    let mut spec = arch::spec_for(file, family, fit)?;
    let read = |file| LoadedAssistant::read(file, &mut spec, fit);
    let assistant = options.assistant.as_ref().map(read).transpose()?;
    if let Some(window) = options.kv_window {
        limit_windows(&mut spec, window)?;
    }
    check_precision(&decoder::kv_layout(&spec, options.kv))?;
    Ok((spec, assistant))
}

/// Returns whether weights may move to large pages: only the CPU reads them there.
fn may_move(options: &LoadOptions, kinds: &[BackendKind]) -> bool {
    let is_wanted = options.promote_large_pages && options.resident.is_none() && !options.small_pages;
    is_wanted && kinds.contains(&BackendKind::Cpu)
}

/// Where the weights of a loaded model come from.
pub(super) struct LoadSource {
    pub file: Arc<WeightFile>,
    pub family: Family,
    pub options: LoadOptions,
    pub placed: Vec<LocatedTensor>,
    /// Updates of the adapters in use.
    pub adapter_updates: Vec<AdapterUpdate>,
    /// Options as the user gave them. `options` may demand less of a GPU that failed.
    pub requested: LoadOptions,
    pub health: GpuHealth,
    /// GPU incidents that nothing has fetched yet.
    pub gpu_incidents: VecDeque<GpuIncident>,
}

/// Executors of all replicas, and the checkpoint identity on their devices.
pub(super) struct RebuiltReplicas {
    /// One per replica.
    pub executors: Vec<Executor>,
    pub identity: CheckpointIdentity,
}

impl LoadSource {
    fn new(file: Arc<WeightFile>, family: Family, options: LoadOptions, placed: Vec<LocatedTensor>) -> Self {
        let (adapter_updates, requested) = (Vec::new(), options.clone());
        let (health, gpu_incidents) = (GpuHealth::default(), VecDeque::new());
        Self { file, family, options, placed, adapter_updates, requested, health, gpu_incidents }
    }

    /// Builds the executors of all replicas on the devices of the options.
    pub fn executors(
        &self,
        spec: &ModelSpec,
        capacity: Capacity,
        n_weight_bytes: u64,
        fingerprint: &str,
    ) -> Result<RebuiltReplicas> {
        let n_layers = spec.layers.len();
        let (mut executors, mut identity) = (Vec::new(), None);
        for at in 0..multi_gpu::n_replicas(&self.options) {
            let options = multi_gpu::options_of_part(&self.options, at, n_layers);
            let (executor, own) = self.executor(&options, spec, (capacity, n_weight_bytes), fingerprint)?;
            executors.push(executor);
            identity.get_or_insert(own);
        }
        let identity = identity.expect("a model has at least one replica");
        Ok(RebuiltReplicas { executors, identity })
    }

    /// Builds the executor of one replica on the devices that `options` name.
    pub fn executor(
        &self,
        options: &LoadOptions,
        spec: &ModelSpec,
        (capacity, n_weight_bytes): (Capacity, u64),
        fingerprint: &str,
    ) -> Result<(Executor, CheckpointIdentity)> {
        let Self { placed, adapter_updates, .. } = self;
        let (placement, kinds) = placement(&options.devices, spec)?;
        let devices = backends(&kinds, options)?;
        let progress = &mut |_| {};
        let mut upload = WeightUpload::new(placed, &devices, (n_weight_bytes, UPLOADED), progress);
        upload.adapter_updates = adapter_updates;
        let graph = decoder::build(spec, &placement, options.kv, &mut upload)?;
        let executor = Executor::new(graph, devices, capacity)?;
        let identity = identity(fingerprint, spec, &of_layers(&placement, &kinds), options, &executor)?;
        Ok((executor, identity))
    }
}

impl Model {
    /// Rebuilds graph, plans and cache with other adapter updates. All sequences end. On error nothing has changed.
    pub(super) fn rebuild(&mut self, adapter_updates: &[AdapterUpdate], fingerprint: String) -> Result<()> {
        let before = std::mem::replace(&mut self.source.adapter_updates, adapter_updates.to_vec());
        let (capacity, n_weight_bytes) = (self.replicas[0].executor.capacity(), self.info.n_weight_bytes);
        let moved = self.source.executors(&self.spec, capacity, n_weight_bytes, &fingerprint);
        if moved.is_err() {
            self.source.adapter_updates = before;
        }
        let RebuiltReplicas { executors, identity } = moved?;
        self.identity = identity;
        self.info.fingerprint = fingerprint;
        self.replicas = executors.into_iter().map(Replica::new).collect();
        self.cache.clear();
        self.gathered = GatheredLogits::default();
        Ok(())
    }
}

/// What is read from the file beside its weights.
struct TextAssets {
    tokenizer: Option<Tokenizer>,
    template: Result<Option<ChatTemplate>>,
}

impl TextAssets {
    fn read(file: &WeightFile, spec: &ModelSpec) -> Result<Self> {
        Ok(Self { tokenizer: tokenizer(file, spec)?, template: ChatTemplate::from_weights(file) })
    }
}

/// Runs both at once: reading a vocabulary takes about as long as paging in the weights. The second runs on this
/// thread.
fn in_parallel<A: Send, B>(first: impl Fn() -> A + Sync, second: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("vocabulary".into()).spawn_scoped(scope, &first);
        let b = second();
        let a = match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => first(), // without a thread: one after the other
        };
        (a, b)
    })
}

/// Reads the tokenizer. A GGUF has one of the embedding's size; safetensors may lack it or pad the embedding.
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

/// Opens a device of each kind. GPUs are taken in the order in which they are named.
fn backends(kinds: &[BackendKind], options: &LoadOptions) -> Result<Vec<Box<dyn Backend>>> {
    let LoadOptions {
        threads,
        few_threads,
        isa,
        cpus,
        resident,
        gpus,
        faults,
        gpu_cache,
        gpu_verification,
        ..
    } = options;
    let (precision, lane_reduction) = (options.gpu_precision, options.gpu_lane_reduction);
    let (threads, few_threads, level, cpus) = (*threads, *few_threads, *isa, cpus.clone());
    let cpu =
        CpuOptions { threads, few_threads, cpus, level, resident: *resident, precision: CpuPrecision::F32 };
    let mut gpus = gpus.iter();
    let mut gpu = GpuSelector::Any;
    let open = |&kind: &BackendKind| {
        if kind == BackendKind::Gpu {
            gpu = gpus.next().unwrap_or(&gpu).clone();
        }
        let (cpu, gpu, faults, gpu_cache) = (cpu.clone(), gpu.clone(), faults.clone(), gpu_cache.clone());
        let verification = *gpu_verification;
        let options = BackendOptions { cpu, gpu, precision, lane_reduction, faults, gpu_cache, verification };
        Ok(kernels::backends::open(kind, &options)?)
    };
    kinds.iter().map(open).collect()
}

fn identity(
    fingerprint: &str,
    spec: &ModelSpec,
    layer_kinds: &[BackendKind],
    options: &LoadOptions,
    executor: &Executor,
) -> Result<CheckpointIdentity> {
    // Rounding depends on the instruction set.
    let level = match options.isa {
        _ if !layer_kinds.contains(&BackendKind::Cpu) => None,
        Some(level) => Some(level),
        None => Some(IsaLevel::from_env()?),
    };
    let mut backends = format!("{layer_kinds:?} {level:?}");
    let precision = options.gpu_precision.in_use();
    if precision != Precision::F32 && layer_kinds.contains(&BackendKind::Gpu) {
        backends += precision.name();
    }
    let layers = &executor.graph().kv().layers;
    let mut bytes = KvUnitBytes { page: 0, window_page: 0, ..KvUnitBytes::of(executor.graph().kv()) };
    for layout in layers {
        let n_bytes = layout.page_bytes() as u64;
        match layout.retention() {
            Retention::All => bytes.page += n_bytes,
            Retention::Window => bytes.window_page += n_bytes,
        }
    }
    // An assistant adds nothing to what is stored.
    let spec = ModelSpec { assistance: None, ..spec.clone() };
    let precisions: Vec<String> = layers.iter().map(stored_form).collect();
    Ok(CheckpointIdentity {
        model: xxh64(fingerprint.as_bytes()),
        spec: xxh64(format!("{spec:?}").as_bytes()),
        backends: xxh64(backends.as_bytes()),
        kv: xxh64(format!("[{}]", precisions.join(", ")).as_bytes()),
        bytes,
    })
}

/// How a layer stores keys and values: formats, and whether they are rotated, which quantized ones are.
fn stored_form(layout: &KvLayerLayout) -> String {
    let KvPrecision { keys, values } = layout.precision;
    let rotated = if keys.is_quantized() || values.is_quantized() { " rotated" } else { "" };
    format!("{}{rotated}", layout.precision)
}

fn share(n_done: u64, n_all: u64) -> f32 {
    (n_done as f32 / n_all.max(1) as f32).min(1.0)
}
