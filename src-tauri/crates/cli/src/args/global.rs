//! Options that every command takes, and the application settings they override.

use std::path::PathBuf;

use app::AppConfig;
use app::Environment;
use app::LogTo;
use app::Overrides;
use clap::Args;
use contract::GpuSpread;
use contract::KvAging;
use contract::NumaPolicy;
use contract::Result;
use contract::RopeScaling;
use contract::limits::LimitPreset;
use contract::protocol::{Backend, GpuPrecision, Kv, Speculate};
use inference::supervisor::{WorkerPlacement, WorkerProgram};
use platform::DATA_DIR_VARIABLE;

use super::values::{
    BackendArg, GpuLayers, GpuPrecisionArg, NumaArg, PresetArg, SpeculateArg, SpreadArg, aging, kv,
};
use crate::text;

/// Options that every command takes.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Store all data of the program in this folder [env: INGLENOOK_DATA_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Device for computation; `scalar` uses the reference kernels
    #[arg(long, global = true, value_enum)]
    pub backend: Option<BackendArg>,
    /// Number of CPU threads
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Pin threads to CPU cores (CPU affinity)
    #[arg(long, global = true)]
    pub affinity: bool,
    /// Placement of threads on NUMA computers
    #[arg(long, global = true, value_enum)]
    pub numa: Option<NumaArg>,
    /// Precision of the KV cache: f32, f16, q8_0 or q4_0, or one for keys and one for values such as q8_0/q4_0
    #[arg(long, global = true, value_name = "KEYS[/VALUES]", value_parser = kv)]
    pub kv: Option<Kv>,
    /// When to convert older parts of the KV cache to q8_0: off, pressure, or after:N tokens [default: as in the
    /// settings]
    #[arg(long, global = true, value_name = "off|pressure|after:N", value_parser = aging)]
    pub kv_aging: Option<KvAging>,
    /// Context length in tokens
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ctx: Option<u32>,
    /// Sliding window of N tokens in layers with RoPE: uses less memory but changes the model
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub kv_window: Option<u32>,
    /// RoPE scaling beyond the trained context
    #[arg(long, global = true, value_name = "yarn:FACTOR")]
    pub rope_scaling: Option<String>,
    /// Layers to compute on GPUs, the rest on the CPU [default: as many as fit]
    #[arg(long, global = true, value_name = "N|all|auto")]
    pub gpu_layers: Option<GpuLayers>,
    /// Precision of GPU matrix multiplications: 32-bit, 16-bit, or prompts in 16-bit on tensor cores, which is automatic
    /// where a GPU has them
    #[arg(long, global = true, value_enum)]
    pub gpu_precision: Option<GpuPrecisionArg>,
    /// GPUs to use, by number or part of the name as listed by `nook devices`
    #[arg(long, global = true, value_name = "CARD,…", value_delimiter = ',')]
    pub device: Vec<String>,
    /// With several GPUs: put the whole model on each, or split its layers by memory [default: the whole model
    /// where it fits]
    #[arg(long, global = true, value_enum)]
    pub gpu_spread: Option<SpreadArg>,
    /// Maximum bytes of weights in memory; the rest is read from disk when needed. Suffixes K, M, G [default: as
    /// much as fits]
    #[arg(long, global = true, value_name = "BYTES", value_parser = text::parse_bytes)]
    pub resident: Option<u64>,
    /// Maximum bytes for weights, contexts, activations and vocabulary together; larger models are rejected.
    /// Suffixes K, M, G [default: free memory]
    #[arg(long, global = true, value_name = "BYTES", value_parser = text::parse_bytes)]
    pub memory: Option<u64>,
    /// Quantize weights to this format while loading (q4_k_m, auto …) and cache them for the next start
    #[arg(long, global = true, value_name = "DTYPE|auto")]
    pub quantize: Option<String>,
    /// LoRA adapter to apply to the model, with an optional scale; may be repeated
    #[arg(long, global = true, value_name = "F[:SCALE]")]
    pub lora: Vec<String>,
    /// Chat template to use instead of the model's own
    #[arg(long, global = true, value_name = "F")]
    pub chat_template: Option<PathBuf>,
    /// Use the template of the model family if the model's own can't be used
    #[arg(long, global = true)]
    pub template_fallback: bool,
    /// Speculative decoding: predict tokens from the text or with a draft model. Same answer, faster
    #[arg(long, global = true, value_enum)]
    pub speculate: Option<SpeculateArg>,
    /// Draft model for speculative decoding: library id or path; needs the same vocabulary
    #[arg(long, global = true, value_name = "M")]
    pub draft_model: Option<String>,
    /// Maximum number of tokens to predict at once
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=48))]
    pub draft_max: Option<u32>,
    /// Named limits that override the settings. `bounded`: prompts up to 2,048 tokens and 10,000 characters,
    /// answers up to 512 tokens and 30 seconds, 32 at a time
    #[arg(long, global = true, value_enum)]
    pub preset: Option<PresetArg>,
    /// Print exactly one JSON value
    #[arg(long, global = true)]
    pub json: bool,
}

impl Global {
    /// Rejects invalid values before any command runs.
    pub fn check(&self) -> Result<()> {
        self.quantize.as_deref().map_or(Ok(()), inference::convert::on_load::check)?;
        Ok(())
    }

    /// Whether a flag chooses the compute device.
    fn has_backend_flag(&self) -> bool {
        self.backend.is_some() || self.gpu_layers.is_some() || !self.device.is_empty()
    }

    /// The chosen backend. `--gpu-layers` and `--device` imply the GPU.
    pub fn backend(&self) -> Backend {
        let implies_gpu = self.gpu_layers.is_some() || !self.device.is_empty();
        match self.backend {
            None | Some(BackendArg::Auto) if implies_gpu => Backend::Gpu,
            None | Some(BackendArg::Auto) => Backend::Auto,
            Some(BackendArg::Cpu) => Backend::Cpu,
            Some(BackendArg::Gpu) => Backend::Gpu,
            Some(BackendArg::Scalar) => Backend::Scalar,
        }
    }

    pub fn rope_scaling(&self) -> Result<Option<RopeScaling>> {
        self.rope_scaling.as_deref().map(inference::parse_rope_scaling).transpose()
    }

    /// As `app_config`, with models in a process of their own: a damaged file or driver ends an answer, not the
    /// program.
    pub fn app_config_apart(&self) -> Result<AppConfig> {
        let worker = WorkerPlacement::Process(WorkerProgram::this()?);
        Ok(AppConfig { worker, ..self.app_config()? })
    }

    pub fn app_config(&self) -> Result<AppConfig> {
        Ok(AppConfig {
            data_dir: self
                .data_dir
                .clone()
                .or_else(|| std::env::var_os(DATA_DIR_VARIABLE).map(PathBuf::from)),
            overrides: Overrides {
                backend: self.has_backend_flag().then(|| self.backend()),
                gpu_layers: self.gpu_layers.and_then(|GpuLayers(n)| n),
                gpu_precision: self.gpu_precision.map(GpuPrecision::from),
                gpu_devices: self.device.clone(),
                gpu_spread: self.gpu_spread.map(GpuSpread::from),
                gpu_fault: None,
                threads: self.threads.map(|n| n as usize),
                affinity: self.affinity.then_some(true),
                numa: self.numa.map(NumaPolicy::from),
                kv: self.kv,
                kv_aging: self.kv_aging,
                context: self.ctx.map(|n| n as usize),
                kv_window: self.kv_window.map(|n| n as usize),
                rope_scaling: self.rope_scaling()?,
                resident: self.resident,
                quantize: self.quantize.clone(),
                lora: self.lora.clone(),
                mmproj: None,
                template: self.chat_template.as_deref().map(app::template_file).transpose()?,
                template_fallback: self.template_fallback,
                speculate: self.speculate.map(Speculate::from),
                draft_model: self.draft_model.clone(),
                draft_max: self.draft_max.map(|n| n as usize),
                preset: self.preset.map(LimitPreset::from),
                memory: self.memory,
            },
            log: LogTo::StderrAndFile,
            worker: WorkerPlacement::Thread,
            hub: app::HubAccess::read(&|name| std::env::var(name).ok()),
            environment: Environment(|name| std::env::var(name).ok()),
            others: other_model_dirs(),
            keychain: app::has_keychain(&|name| std::env::var(name).ok()),
            interface: app::Interface::Terminal,
        })
    }
}

/// Model folders of other programs.
fn other_model_dirs() -> Vec<app::models::model_dirs::ModelRoot> {
    app::models::model_dirs::known(std::env::home_dir().as_deref(), &|name| {
        std::env::var_os(name).map(PathBuf::from)
    })
}
