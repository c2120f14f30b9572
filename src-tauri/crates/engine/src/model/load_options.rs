//! How to load a model: devices, memory limits, precision and context.

use std::fmt;
use std::sync::Arc;

use kernels::cpu::isa::IsaLevel;
use kernels::{
    BackendKind, CpuPrecision, FaultPlan, GpuCache, GpuSelector, KvDType, KvPrecision, LaneReduction,
    Precision, VerificationScope, WeightBudget,
};
use weights::WeightFile;

use super::{GpuHealth, RopeScaling};
use crate::arch::{self, Family};
use crate::error::Result;
use crate::kv::requantize::KvRequantize;
use crate::spec::{COMMON_TOKENS, DraftBlock, ModelSpec};

/// About ten states of a model with four billion parameters. Only what is used is allocated.
pub const DEFAULT_REWIND_BYTES: u64 = 512 << 20;

/// About fifty images of 256 embeddings of 2560 numbers.
pub const DEFAULT_IMAGE_BYTES: usize = 128 << 20;

/// Default context: enough for a long conversation, modest in memory.
pub const DEFAULT_CTX: usize = 8192;

/// Where layers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Devices {
    /// No preference: the CPU.
    Auto,
    /// The scalar reference kernels.
    Scalar,
    /// The CPU computes.
    Cpu,
    /// The first layers on a GPU (hardware or software), the others on the CPU. `None` puts all layers on the GPU.
    /// Falls back to the CPU if the GPU is missing or fails.
    Gpu {
        /// Layers on the GPU; `None`: as many as fit.
        layers: Option<usize>,
    },
    /// That many layers on each device, in order. Together all layers of the model.
    Split(Vec<(BackendKind, usize)>),
    /// All layers on each device: sequences are distributed, and the others continue if a GPU fails.
    Replicas(Vec<BackendKind>),
}

impl Devices {
    /// Returns whether a GPU computes some layers.
    pub fn has_gpu(&self) -> bool {
        match self {
            Self::Auto | Self::Scalar | Self::Cpu => false,
            Self::Gpu { .. } => true,
            Self::Split(parts) => parts.iter().any(|(kind, _)| *kind == BackendKind::Gpu),
            Self::Replicas(kinds) => kinds.contains(&BackendKind::Gpu),
        }
    }
}

/// How to load a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOptions {
    /// Devices that compute.
    pub devices: Devices,
    /// GPUs to use, in the order of the devices. Empty: any.
    pub gpus: Vec<GpuSelector>,
    /// Precision of GPU matrix multiplications. A GPU that lacks it or computes wrongly in it falls back, with a
    /// notice.
    pub gpu_precision: Precision,
    /// How GPU lanes exchange values. A GPU that computes wrongly with subgroups does without, with a notice.
    pub gpu_lane_reduction: LaneReduction,
    /// Known facts about GPUs, extended by what this load finds out.
    pub gpu_cache: GpuCache,
    /// Whether GPU kernels are verified.
    pub gpu_verification: VerificationScope,
    /// GPU faults to inject, for tests.
    pub faults: FaultPlan,
    /// GPU failures of this session.
    pub gpu_health: GpuHealth,
    /// CPU worker threads. `None`: as many as the process may use.
    pub threads: Option<usize>,
    /// How many of them work on a few tokens. `None`: all.
    pub few_threads: Option<usize>,
    /// CPU cores that the threads are bound to. Empty: unbound.
    pub cpus: Vec<usize>,
    /// Instruction set of the CPU kernels. `None`: the best available, or `INGLENOOK_ISA`.
    pub isa: Option<IsaLevel>,
    /// Bound on weights in memory at once; the rest is read from the file when needed. `None`: unbounded.
    pub resident: Option<WeightBudget>,
    /// Reads weights in small pages, even where the system has large ones for files.
    pub small_pages: bool,
    /// Moves weights to large pages after the first run. They are read faster there, but the system can no longer
    /// evict them like file pages.
    pub promote_large_pages: bool,
    /// Precision of keys and values.
    pub kv: KvPrecision,
    /// When old keys and values are requantized. `ModelInfo::kv_requantize` has what is in effect.
    pub kv_requantize: KvRequantize,
    /// Sliding window imposed on layers with rotary positions, in tokens. Changes the model: older tokens are lost to
    /// them. `None`: as trained.
    pub kv_window: Option<usize>,
    /// Context extension beyond the trained positions. May lower quality even below them. `None`: as trained.
    pub rope_scaling: Option<RopeScaling>,
    /// Bytes for rewind points, where windows or recurrent layers need them.
    pub rewind_bytes: u64,
    /// Maximum tokens per sequence, at most the model's. `None`: `DEFAULT_CTX`.
    pub ctx: Option<usize>,
    /// Maximum sequences alive at once.
    pub max_sequences: usize,
    /// Bytes for keys, values and states of all sequences. One context always fits. `None`: enough for all to be
    /// full.
    pub kv_bytes: Option<u64>,
    /// Bytes for weights, contexts, activations and vocabulary together. A model that cannot fit is refused. `None`:
    /// unbounded.
    pub memory: Option<u64>,
    /// Rows of one run; longer batches are split. `None`: what suits the devices, `DEFAULT_MAX_ROWS` on a CPU.
    pub max_rows: Option<usize>,
    /// File of the vision tower: the model's own where it is a safetensors repository, else its `mmproj-*.gguf`. `None`:
    /// the model takes no images.
    pub vision: Option<VisionFile>,
    /// Whether the file's draft block is loaded, so that the model can draft for itself.
    pub draft_block: DraftBlockUse,
    /// Tokens that a draft block may draft in any text, see `DraftBlock::limit_tokens`.
    pub common_tokens: usize,
    /// File of the assistant that drafts for the model. `None`: there is none.
    pub assistant: Option<AssistantFile>,
    /// Precision of a vision tower's products. With `CpuPrecision::I16` images are seen twice as fast.
    pub vision_precision: CpuPrecision,
    /// Bytes of embedded images to hold, so that the tower is not run again for them.
    pub image_bytes: usize,
}

/// Whether a model is loaded with its draft block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DraftBlockUse {
    /// Without.
    #[default]
    Off,
    /// With it, if the file has one and memory suffices.
    IfPossible,
    /// With it. A file without one is refused.
    Required,
}

impl LoadOptions {
    /// Reads the structure of a file's draft block, if it is to be loaded.
    ///
    /// Errors: `model.no_draft_block`, `model.hyperparameter`.
    pub(super) fn draft(
        &self,
        file: &WeightFile,
        family: Family,
        spec: &ModelSpec,
    ) -> Result<Option<DraftBlock>> {
        let mut draft = self.draft_block.read(file, family, spec)?;
        draft.iter_mut().for_each(|draft| draft.limit_tokens(self.common_tokens, spec));
        Ok(draft)
    }
}

impl DraftBlockUse {
    /// Reads the structure of a file's draft block, if it is to be loaded.
    ///
    /// Errors: `model.no_draft_block`, `model.hyperparameter`.
    fn read(self, file: &WeightFile, family: Family, spec: &ModelSpec) -> Result<Option<DraftBlock>> {
        match self {
            Self::Off => Ok(None),
            Self::IfPossible => arch::draft_block(file, family, spec),
            Self::Required => arch::required_draft_block(file, family, spec).map(Some),
        }
    }
}

macro_rules! opened_files {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone)]
            pub struct $name(pub Arc<WeightFile>);

            impl PartialEq for $name {
                fn eq(&self, other: &Self) -> bool {
                    Arc::ptr_eq(&self.0, &other.0)
                }
            }

            impl Eq for $name {}

            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.debug_tuple(stringify!($name)).field(&self.0.path()).finish()
                }
            }
        )*
    };
}

opened_files! {
    /// An opened file of a vision tower.
    VisionFile;
    /// An opened file of an assistant, for which `arch::is_assistant` is true.
    AssistantFile;
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            devices: Devices::Auto,
            gpus: Vec::new(),
            gpu_precision: Precision::default(),
            gpu_lane_reduction: LaneReduction::default(),
            gpu_cache: GpuCache::default(),
            gpu_verification: VerificationScope::default(),
            faults: FaultPlan::default(),
            gpu_health: GpuHealth::default(),
            threads: None,
            few_threads: None,
            cpus: Vec::new(),
            isa: None,
            resident: None,
            small_pages: false,
            promote_large_pages: false,
            kv: KvDType::F16.both(),
            kv_requantize: KvRequantize::Off,
            kv_window: None,
            rope_scaling: None,
            rewind_bytes: DEFAULT_REWIND_BYTES,
            ctx: None,
            max_sequences: 4,
            kv_bytes: None,
            memory: None,
            max_rows: None,
            vision: None,
            draft_block: DraftBlockUse::Off,
            common_tokens: COMMON_TOKENS,
            assistant: None,
            vision_precision: CpuPrecision::default(),
            image_bytes: DEFAULT_IMAGE_BYTES,
        }
    }
}
