//! The command line: commands, options, and which of them are built.

use std::net::IpAddr;
use std::path::PathBuf;

use app::AppConfig;
use app::Environment;
use app::LogTo;
use app::Overrides;
use clap::{Args, Parser, Subcommand};
use contract::GpuSpread;
use contract::KvAging;
use contract::NumaPolicy;
use contract::Result;
use contract::RopeScaling;
use contract::limits::Preset;
use contract::protocol::{Backend, CardPrecision, Kv, Speculate};
use inference::supervisor::WorkerPlacement;
use platform::DATA_DIR_VARIABLE;

use crate::text;

mod texts;
mod values;

pub use texts::{DetokenizeArgs, EmbedArgs, TextArgs, TokenizeArgs};
pub use values::{
    BackendArg, GpuLayers, GpuPrecisionArg, KvArg, NumaArg, PresetArg, SpeculateArg, SpreadArg, aging,
};

/// Inglenook in the terminal: language models on your own computer.
#[derive(Debug, Parser)]
#[command(name = "nook", version, about, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Options that every command takes.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Keep everything the program keeps under this folder [env: INGLENOOK_DATA_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where models are computed; `scalar` is the reference kernels
    #[arg(long, global = true, value_enum)]
    pub backend: Option<BackendArg>,
    /// Threads of the processor
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Bind threads to cores
    #[arg(long, global = true)]
    pub affinity: bool,
    /// Where threads run on a computer with several memories
    #[arg(long, global = true, value_enum)]
    pub numa: Option<NumaArg>,
    /// Precision of the context in memory
    #[arg(long, global = true, value_enum)]
    pub kv: Option<KvArg>,
    /// When old parts of a context go to q8_0: off, pressure, or after:N tokens [default: as the settings say]
    #[arg(long, global = true, value_name = "off|pressure|after:N", value_parser = aging)]
    pub kv_aging: Option<KvAging>,
    /// Tokens of context
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ctx: Option<u32>,
    /// See no further back than N tokens in layers that know positions by rotation: less memory, a changed model
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub kv_window: Option<u32>,
    /// Stretch positions beyond the trained context
    #[arg(long, global = true, value_name = "yarn:FACTOR")]
    pub rope_scaling: Option<String>,
    /// Layers on graphics cards, the others on the processor [default: as many as fit]
    #[arg(long, global = true, value_name = "N|all|auto")]
    pub gpu_layers: Option<GpuLayers>,
    /// What graphics cards make of the operands of products: floats, halves, or halves for their tensor cores
    #[arg(long, global = true, value_enum)]
    pub gpu_precision: Option<GpuPrecisionArg>,
    /// Which graphics cards, by number or a part of their name, as `nook devices` lists them
    #[arg(long, global = true, value_name = "CARD,…", value_delimiter = ',')]
    pub device: Vec<String>,
    /// What several graphics cards have: the whole model each, or some of its layers, shared out by their memory
    /// [default: the whole model where it fits]
    #[arg(long, global = true, value_enum)]
    pub gpu_spread: Option<SpreadArg>,
    /// Keep at most so many bytes of weights in memory, and read the rest from disk as it is needed; K, M, G follow
    /// the number [default: all, or what the machine has room for]
    #[arg(long, global = true, value_name = "BYTES", value_parser = text::parse_bytes)]
    pub resident: Option<u64>,
    /// Most bytes for weights, contexts, what is computed and the vocabulary together; K, M, G follow the number. What
    /// doesn't fit is refused [default: what is free]
    #[arg(long, global = true, value_name = "BYTES", value_parser = text::parse_bytes)]
    pub memory: Option<u64>,
    /// Load weights in this format (q4_k_m, auto …) and keep them for the next start
    #[arg(long, global = true, value_name = "DTYPE|auto")]
    pub quantize: Option<String>,
    /// A LoRA adapter to add to the model, at a share of its strength; several may be given
    #[arg(long, global = true, value_name = "F[:SCALE]")]
    pub lora: Vec<String>,
    /// A chat template in place of the one that the model carries
    #[arg(long, global = true, value_name = "F")]
    pub chat_template: Option<PathBuf>,
    /// Where the model's chat template can't be used, its family's takes its place
    #[arg(long, global = true)]
    pub template_fallback: bool,
    /// Guess tokens ahead, from the text so far or by a smaller model, and check several at once: the same answer, sooner
    #[arg(long, global = true, value_enum)]
    pub speculate: Option<SpeculateArg>,
    /// The smaller model that guesses: library id or path, of the same vocabulary
    #[arg(long, global = true, value_name = "M")]
    pub draft_model: Option<String>,
    /// Most tokens that are guessed ahead
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=48))]
    pub draft_max: Option<u32>,
    /// Limits by a name, whatever the settings say: `bounded` takes prompts of 2,048 tokens and 10,000 characters,
    /// and answers with 512 tokens in 30 seconds, 32 at once
    #[arg(long, global = true, value_enum)]
    pub preset: Option<PresetArg>,
    /// Print exactly one JSON value
    #[arg(long, global = true)]
    pub json: bool,
}

impl Global {
    /// Options that are not built yet are refused, whatever the command.
    pub fn check(&self) -> Result<()> {
        self.quantize.as_deref().map_or(Ok(()), inference::convert::on_load::check)?;
        Ok(())
    }

    /// Whether a flag says what computes.
    fn names_backend(&self) -> bool {
        self.backend.is_some() || self.gpu_layers.is_some() || !self.device.is_empty()
    }

    /// Layers on graphics cards, or names of some, mean that they compute.
    pub fn backend(&self) -> Backend {
        let means_cards = self.gpu_layers.is_some() || !self.device.is_empty();
        match self.backend {
            None | Some(BackendArg::Auto) if means_cards => Backend::Gpu,
            None | Some(BackendArg::Auto) => Backend::Auto,
            Some(BackendArg::Cpu) => Backend::Cpu,
            Some(BackendArg::Gpu) => Backend::Gpu,
            Some(BackendArg::Scalar) => Backend::Scalar,
        }
    }

    pub fn rope_scaling(&self) -> Result<Option<RopeScaling>> {
        Ok(self.rope_scaling.as_deref().map(inference::parse_rope_scaling).transpose()?)
    }

    pub fn app_config(&self) -> Result<AppConfig> {
        Ok(AppConfig {
            data_dir: self
                .data_dir
                .clone()
                .or_else(|| std::env::var_os(DATA_DIR_VARIABLE).map(PathBuf::from)),
            overrides: Overrides {
                backend: self.names_backend().then(|| self.backend()),
                gpu_layers: self.gpu_layers.and_then(|GpuLayers(n)| n),
                gpu_precision: self.gpu_precision.map(CardPrecision::from),
                gpu_devices: self.device.clone(),
                gpu_spread: self.gpu_spread.map(GpuSpread::from),
                gpu_fault: None,
                threads: self.threads.map(|n| n as usize),
                affinity: self.affinity.then_some(true),
                numa: self.numa.map(NumaPolicy::from),
                kv: self.kv.map(Kv::from),
                kv_aging: self.kv_aging,
                context: self.ctx.map(|n| n as usize),
                kv_window: self.kv_window.map(|n| n as usize),
                rope_scaling: self.rope_scaling()?,
                resident: self.resident,
                quantize: self.quantize.clone(),
                lora: self.lora.clone(),
                template: self.chat_template.as_deref().map(app::template_file).transpose()?,
                template_fallback: self.template_fallback,
                speculate: self.speculate.map(Speculate::from),
                draft_model: self.draft_model.clone(),
                draft_max: self.draft_max.map(|n| n as usize),
                preset: self.preset.map(Preset::from),
                memory: self.memory,
            },
            log: LogTo::StderrAndFile,
            worker: WorkerPlacement::Thread,
            hub: app::HubAccess::read(&|name| std::env::var(name).ok()),
            environment: Environment(|name| std::env::var(name).ok()),
            others: others(),
            keychain: app::has_keychain(&|name| std::env::var(name).ok()),
        })
    }
}

/// Folders where other programs keep models.
fn others() -> Vec<app::models::model_dirs::ModelRoot> {
    app::models::model_dirs::known(std::env::home_dir().as_deref(), &|name| {
        std::env::var_os(name).map(PathBuf::from)
    })
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Talk with a model
    Chat(ChatArgs),
    /// Answer one prompt
    Run(Box<RunArgs>),
    /// Text to token ids
    Tokenize(TokenizeArgs),
    /// Token ids to text
    Detokenize(DetokenizeArgs),
    /// Messages to the prompt that a model's chat template makes of them
    Render(RenderArgs),
    /// Vectors of texts, by a model that is made for it: where their meaning lies among that of others
    Embed(EmbedArgs),
    /// What a model expects after given tokens
    Logits(LogitsArgs),
    /// What is in a model file
    Inspect(InspectArgs),
    /// What this computer can compute with
    Devices(crate::devices::DevicesArgs),
    /// Measure prefill and decode speed
    Bench(crate::bench::BenchArgs),
    /// The model library
    Models(ModelsArgs),
    /// Other servers that answer: their models are called NAME/MODEL
    Endpoints(crate::endpoints::EndpointsArgs),
    /// Servers that have tools for models
    Tools(crate::tools::ToolsArgs),
    /// Folders with servers of tools, presets, templates, models on offer
    Plugins(crate::tools::PluginsArgs),
    /// Every connection that was made: when, where to, what for, how many bytes
    Connections(crate::endpoints::ConnectionsFlags),
    /// Saved conversations
    Sessions(crate::sessions::SessionsArgs),
    /// Everything in one file: conversations, the trash, settings
    Backup(crate::sessions::FileArgs),
    /// Add what a backup has and this folder lacks; nothing that is there changes
    Restore(crate::sessions::FileArgs),
    /// Settings
    Settings(SettingsArgs),
    /// Serve the window's page and an OpenAI-compatible API
    Serve(ServeArgs),
    /// Make a GGUF file of another format from a model
    Convert(crate::convert::ConvertArgs),
    /// Measure how well a model foretells a text
    Perplexity(crate::perplexity::PerplexityArgs),
    /// Serve tools by the Model Context Protocol (not built yet)
    Mcp(Rest),
    /// What the program is doing (not built yet)
    Stats(Rest),
    /// Answer many prompts (not built yet)
    Batch(Rest),
    /// Verify the audit log (not built yet)
    Audit(Rest),
}

/// Whatever follows a command that is not built.
#[derive(Debug, Args)]
pub struct Rest {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub rest: Vec<String>,
}

#[derive(Debug, Args)]
pub struct ChatArgs {
    /// Library id or path; the default model of the settings otherwise
    #[arg(long)]
    pub model: Option<String>,
    /// Go on with a saved conversation
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    #[command(flatten)]
    pub leave: crate::tools::ToolFlags,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Library id or path
    #[arg(long)]
    pub model: String,
    #[command(flatten)]
    pub prompt: PromptArgs,
    /// A text, code, CSV or PDF file to ask about, whole if it fits, else what matches; several may be given
    #[arg(long, value_name = "F", conflicts_with_all = ["raw", "messages", "ids"])]
    pub file: Vec<PathBuf>,
    /// No chat template: the prompt as it stands
    #[arg(long)]
    pub raw: bool,
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<usize>,
    #[command(flatten)]
    pub sampling: SamplingFlags,
    /// A text that ends the answer; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,
    /// Go on past the end of the answer
    #[arg(long)]
    pub ignore_eos: bool,
    /// Think before answering, for models that can do either
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"])]
    pub thinking: Option<String>,
    /// How long to think, for models that know degrees of it
    #[arg(long, value_name = "low|medium|high", value_parser = ["low", "medium", "high"])]
    pub reasoning_effort: Option<String>,
    /// Most tokens of thinking
    #[arg(long, value_name = "N")]
    pub reasoning_budget: Option<usize>,
    /// Offer the tools of the servers that are switched on, and go on with what they bring
    #[arg(long, conflicts_with_all = ["raw", "ids"])]
    pub tools: bool,
    #[command(flatten)]
    pub leave: crate::tools::ToolFlags,
    /// JSON schema that the answer must follow
    #[arg(long, value_name = "F")]
    pub schema: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PromptArgs {
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    #[arg(long, value_name = "F")]
    pub prompt_file: Option<PathBuf>,
    /// JSON: a list of messages, or {"messages", "tools", "kwargs"}
    #[arg(long, value_name = "F.json")]
    pub messages: Option<PathBuf>,
    /// Token ids, such as 1,2,3
    #[arg(long, value_name = "IDS")]
    pub ids: Option<String>,
}

#[derive(Debug, Args)]
pub struct SamplingFlags {
    /// 0 always takes the likeliest token
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub temperature: Option<f64>,
    #[arg(long, value_name = "N")]
    pub top_k: Option<u32>,
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub top_p: Option<f64>,
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub min_p: Option<f64>,
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub repeat_penalty: Option<f64>,
    /// The same seed draws the same answer
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
}

#[derive(Debug, Args)]
pub struct RenderArgs {
    #[command(flatten)]
    pub source: TemplateArgs,
    /// Lines {"messages":…,"tools":…,"kwargs":…,"now":…}; - is standard input
    #[arg(long, value_name = "F")]
    pub jsonl: PathBuf,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct TemplateArgs {
    #[arg(long)]
    pub model: Option<String>,
    #[arg(long, value_name = "F")]
    pub template: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct LogitsArgs {
    #[arg(long)]
    pub model: String,
    /// Token ids, such as 1,2,3
    #[arg(long, value_name = "IDS")]
    pub ids: String,
    /// After every position, not only the last
    #[arg(long)]
    pub all: bool,
    /// Only the K largest
    #[arg(long, value_name = "K")]
    pub top: Option<usize>,
}

#[derive(Debug, Args)]
pub struct InspectArgs {
    pub model: String,
    /// One tensor
    #[arg(long, value_name = "NAME")]
    pub tensor: Option<String>,
    /// Its values as float32
    #[arg(long, requires = "tensor")]
    pub values: bool,
}

#[derive(Debug, Args)]
pub struct ModelsArgs {
    #[command(subcommand)]
    pub verb: ModelsVerb,
}

#[derive(Debug, Subcommand)]
pub enum ModelsVerb {
    /// What is here: the starter, files that were added, models of other programs, read where they are
    List,
    /// Add a file to the library; it stays where it is
    Add { path: String },
    /// Bring a model into the library: a GGUF file, the first of a split one, or a folder of safetensors
    Import(ImportFlags),
    /// Take a model off the list; files of our own can be had back for a week, files of others stay where they are
    Rm {
        id: String,
        /// Remove for good what was removed before, this one too
        #[arg(long)]
        purge: bool,
    },
    /// Have a removed model back; without an id, list those there are
    Undo { id: Option<String> },
    /// Whether a model runs here: a library id, a path, or an id of the catalogue; without one, the whole catalogue
    Fit { model: Option<String> },
    /// Folders that are looked through; a path adds it
    Folders {
        path: Option<String>,
        /// Take it off the list
        #[arg(long, requires = "path")]
        rm: bool,
    },
    /// What models take on disk
    Usage,
    /// What the catalogue and the hub have; OWNER/NAME lists its files
    Search {
        query: Vec<String>,
        /// Ask nobody: the catalogue alone
        #[arg(long)]
        offline: bool,
        #[arg(long, value_enum, default_value_t)]
        sort: crate::pull::SortBy,
    },
    /// Fetch a model: an id of the catalogue, OWNER/NAME, OWNER/NAME:FILE, or its page's address
    Pull { what: String },
    /// Hash a model's files and compare with what was recorded when they came
    Verify { id: String },
    /// Where the hub's token is found, which says who you are for models with a licence to accept
    Token {
        /// Read one from standard input and keep it
        #[arg(long, conflicts_with = "rm")]
        stdin: bool,
        /// Forget the one that was given here
        #[arg(long)]
        rm: bool,
    },
}

#[derive(Debug, Args)]
pub struct ImportFlags {
    pub path: String,
    /// It stays where it is (the default)
    #[arg(long, conflicts_with_all = ["copy", "move_"])]
    pub link: bool,
    /// A copy in the program's own folder
    #[arg(long, conflicts_with = "move_")]
    pub copy: bool,
    /// Into the program's own folder, away from where it was
    #[arg(long = "move")]
    pub move_: bool,
}

#[derive(Debug, Args)]
pub struct SettingsArgs {
    #[command(subcommand)]
    pub verb: SettingsVerb,
}

#[derive(Debug, Subcommand)]
pub enum SettingsVerb {
    List,
    Get {
        key: String,
    },
    Set {
        key: String,
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    #[arg(long, default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// 0 picks a free one
    #[arg(long, default_value_t = server::DEFAULT_PORT)]
    pub port: u16,
    /// What clients must send; the one kept in the data folder otherwise
    #[arg(long, value_name = "K")]
    pub api_key: Option<String>,
}
