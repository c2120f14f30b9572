//! The command line: commands and their options.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub mod global;
pub mod texts;
pub mod values;

pub use global::Global;
pub use texts::{DetokenizeArgs, EmbedArgs, RerankArgs, TokenizeArgs};

/// Inglenook in the terminal: language models on your own computer.
#[derive(Debug, Parser)]
#[command(name = "nook", version, about, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Chat with a model
    Chat(ChatArgs),
    /// Answer a single prompt
    Run(Box<RunArgs>),
    /// Convert text to token ids
    Tokenize(TokenizeArgs),
    /// Convert token ids to text
    Detokenize(DetokenizeArgs),
    /// Render messages with a model's chat template
    Render(RenderArgs),
    /// Check which JSON texts a JSON schema accepts, by the constraint of `run --schema`
    Schema(crate::schema::SchemaArgs),
    /// Compute text embeddings with an embedding model
    Embed(EmbedArgs),
    /// Score how well passages answer a query, with a reranker
    Rerank(RerankArgs),
    /// Show a model's predictions for the next token
    Logits(LogitsArgs),
    /// Show how a model that sees takes an image: its tokens, pixel values and embeddings
    Vision(crate::vision::VisionArgs),
    /// Show the contents of a model file
    Inspect(InspectArgs),
    /// List the CPU and GPUs of this computer
    Devices(crate::devices::DevicesArgs),
    /// Measure prefill and decode speed
    Bench(crate::bench::BenchArgs),
    /// Manage the model library
    Models(ModelsArgs),
    /// Manage other servers with an OpenAI-compatible API; their models are named NAME/MODEL
    Endpoints(crate::endpoints::EndpointsArgs),
    /// Manage tool servers (MCP)
    Tools(crate::tools::ToolsArgs),
    /// Manage plugins: folders with tool servers, presets, templates and model offers
    Plugins(crate::tools::PluginsArgs),
    /// List every network connection: time, destination, purpose and bytes
    Connections(crate::endpoints::ConnectionsFlags),
    /// Answer a question about Inglenook from the user guide, without a model
    Guide(crate::guide::GuideArgs),
    /// Manage saved chats
    Sessions(crate::sessions::SessionsArgs),
    /// Back up chats, trash and settings to one file
    Backup(crate::sessions::FileArgs),
    /// Restore what is missing from a backup; existing data doesn't change
    Restore(crate::sessions::FileArgs),
    /// Show and change settings
    Settings(SettingsArgs),
    /// Start the web interface and an OpenAI-compatible API
    Serve(ServeArgs),
    /// Convert a model to a GGUF file in another format
    Convert(crate::convert::ConvertArgs),
    /// Measure the perplexity of a model on a text
    Perplexity(crate::perplexity::PerplexityArgs),
    /// Fine-tune a model with chats of yours: makes a LoRA adapter
    Tune(Box<crate::tune::TuneArgs>),
    /// Serve models and saved chats to other programs over the Model Context Protocol
    Mcp(crate::mcp::McpArgs),
    /// Show what running servers are doing, and what is in the data folder
    Stats(crate::stats::StatsArgs),
    /// Answer many requests from a JSONL file; an interrupted batch continues where it stopped
    Batch(crate::batch::BatchArgs),
    /// Start a coding agent that uses a model of this computer
    Launch(crate::launch::LaunchArgs),
    /// Print a script that completes commands and options in a shell
    Completions(crate::shell_files::CompletionsArgs),
    /// Write manual pages
    Man(crate::shell_files::ManArgs),
    /// Manage API keys of other programs
    Keys(crate::keys::KeysArgs),
    /// Check the audit log
    Audit(crate::keys::AuditArgs),
}

#[derive(Debug, Args)]
pub struct ChatArgs {
    /// Library id or path [default: the default model from the settings]
    #[arg(long)]
    pub model: Option<String>,
    /// Continue a saved chat
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Neither keep what you type for the next start nor offer what was kept
    #[arg(long)]
    pub no_history: bool,
    #[command(flatten)]
    pub approval: crate::tools::ToolFlags,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Library id or path [default: the default model from the settings]
    #[arg(long)]
    pub model: Option<String>,
    #[command(flatten)]
    pub prompt: PromptArgs,
    /// Text, office, EPUB, HTML, code, CSV or PDF file to attach; long files are searched for matching passages. May be repeated
    #[arg(long, value_name = "F", conflicts_with_all = ["raw", "messages", "ids"])]
    pub file: Vec<PathBuf>,
    /// Image for the model to see: PNG, JPEG, WebP, GIF, BMP, TIFF, or a PDF for its first 20 pages. May be repeated
    #[arg(long, value_name = "F", conflicts_with_all = ["raw", "ids"])]
    pub image: Vec<PathBuf>,
    /// Tokens that an image may take, in models that see any size: low (about 256), balanced (about 1,024) or full [default: full,
    /// or what the messages say]
    #[arg(long, value_name = "D", value_parser = ["low", "balanced", "full"])]
    pub detail: Option<String>,
    /// GGUF file with the vision tower [default: the model's own, or the mmproj file beside it]
    #[arg(long, value_name = "F")]
    pub mmproj: Option<PathBuf>,
    /// Use the prompt as is, without a chat template
    #[arg(long)]
    pub raw: bool,
    /// Maximum number of tokens in the answer
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<usize>,
    #[command(flatten)]
    pub sampling: SamplingFlags,
    /// Text that ends the answer; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,
    /// Continue past the end-of-text token
    #[arg(long)]
    pub ignore_eos: bool,
    /// Think before answering, for models that can turn thinking on and off
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"])]
    pub thinking: Option<String>,
    /// Reasoning effort, for models with effort levels
    #[arg(long, value_name = "low|medium|high", value_parser = ["low", "medium", "high"])]
    pub reasoning_effort: Option<String>,
    /// Maximum number of tokens for thinking
    #[arg(long, value_name = "N")]
    pub reasoning_budget: Option<usize>,
    /// Offer the tools of all enabled tool servers and continue with their results
    #[arg(long, conflicts_with_all = ["raw", "ids"])]
    pub tools: bool,
    #[command(flatten)]
    pub approval: crate::tools::ToolFlags,
    /// JSON schema that the answer must follow
    #[arg(long, value_name = "F")]
    pub schema: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PromptArgs {
    /// Text of the prompt
    #[arg(value_name = "PROMPT")]
    pub text: Option<String>,
    /// Text of the prompt, also one that begins with a hyphen
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// File with the prompt; - reads standard input
    #[arg(long, value_name = "F")]
    pub prompt_file: Option<PathBuf>,
    /// JSON file: a list of messages, or {"messages", "tools", "kwargs"}. Parts {"type": "image"} take the images of
    /// --image in order, or have a "path"
    #[arg(long, value_name = "F.json")]
    pub messages: Option<PathBuf>,
    /// Token ids, such as 1,2,3
    #[arg(long, value_name = "IDS")]
    pub ids: Option<String>,
}

#[derive(Debug, Args)]
pub struct SamplingFlags {
    /// Sampling temperature; 0 always picks the most likely token
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub temperature: Option<f64>,
    /// Sample only from the N most likely tokens
    #[arg(long, value_name = "N")]
    pub top_k: Option<u32>,
    /// Sample only from the most likely tokens that add up to this probability
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub top_p: Option<f64>,
    /// Minimum probability of a token, relative to the most likely one
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub min_p: Option<f64>,
    /// Penalty for repeated tokens; 1 turns it off
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub repeat_penalty: Option<f64>,
    /// The same seed and prompt give the same answer
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub samplers: SamplerFlags,
}

/// DRY and XTC, as llama.cpp names them.
#[derive(Debug, Args)]
pub struct SamplerFlags {
    /// DRY: penalty for going on with a repetition; 0 turns it off
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub dry_multiplier: Option<f64>,
    /// DRY: growth of the penalty with each repeated token [default: 1.75]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub dry_base: Option<f64>,
    /// DRY: longest repetition without a penalty, in tokens [default: 2]
    #[arg(long, value_name = "N")]
    pub dry_allowed_length: Option<u32>,
    /// DRY: recent tokens to search; -1 searches all, 0 turns it off [default: -1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub dry_penalty_last_n: Option<i32>,
    /// DRY: text that ends a repetition; may be repeated [default: line break, colon, double quote, asterisk]
    #[arg(long, value_name = "TEXT")]
    pub dry_sequence_breaker: Vec<String>,
    /// XTC: how often the most likely tokens are left out, from 0 to 1; 0 turns it off
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub xtc_probability: Option<f64>,
    /// XTC: probability from which a token counts as likely [default: 0.1]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub xtc_threshold: Option<f64>,
}

#[derive(Debug, Args)]
pub struct RenderArgs {
    #[command(flatten)]
    pub source: TemplateArgs,
    /// File with one {"messages":…,"tools":…,"kwargs":…,"now":…} per line; - reads standard input
    #[arg(long, value_name = "F")]
    pub jsonl: PathBuf,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct TemplateArgs {
    /// Library id or path of the model whose template to use
    #[arg(long)]
    pub model: Option<String>,
    /// Template file
    #[arg(long, value_name = "F")]
    pub template: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct LogitsArgs {
    /// Library id or path
    #[arg(long)]
    pub model: String,
    /// Token ids, such as 1,2,3
    #[arg(long, value_name = "IDS")]
    pub ids: String,
    /// Show all positions, not only the last
    #[arg(long)]
    pub all: bool,
    /// Show only the K most likely tokens
    #[arg(long, value_name = "K")]
    pub top: Option<usize>,
    /// Show N chained drafts of the model's own draft block after each position
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=48))]
    pub mtp: Option<u8>,
    /// Image that fills the next image tokens among the ids; may be repeated
    #[arg(long, value_name = "F")]
    pub image: Vec<PathBuf>,
    /// GGUF file with the vision tower [default: the model's own, or the mmproj file beside it]
    #[arg(long, value_name = "F")]
    pub mmproj: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Library id or path
    pub model: String,
    /// Show a single tensor
    #[arg(long, value_name = "NAME")]
    pub tensor: Option<String>,
    /// Print its values as float32
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
    /// List all local models: built in, added, downloaded, and those of other programs
    List,
    /// Add a model file to the library without copying it
    Add { path: String },
    /// Import a model: a GGUF file, the first part of a split one, or a safetensors folder
    Import(ImportFlags),
    /// Remove a model from the library. Inglenook's own files can be restored for a week; other files are kept
    Rm {
        id: String,
        /// Delete this and all previously removed models permanently
        #[arg(long)]
        purge: bool,
    },
    /// Restore a removed model; without an id, list removed models
    Undo { id: Option<String> },
    /// Check whether a model fits this computer: library id, path or catalog id; without one, the whole catalog
    Fit { model: Option<String> },
    /// List the scanned folders; a path adds one
    Folders {
        path: Option<String>,
        /// Stop scanning this folder
        #[arg(long, requires = "path")]
        rm: bool,
    },
    /// Show the disk space used by models
    Usage,
    /// Search the catalog and Hugging Face; OWNER/NAME lists its files
    Search {
        query: Vec<String>,
        /// Search only the built-in catalog, without network access
        #[arg(long)]
        offline: bool,
        #[arg(long, value_enum, default_value_t)]
        sort: crate::pull::SortBy,
    },
    /// Download a model: catalog id, OWNER/NAME, OWNER/NAME:FILE, OWNER/NAME:Q4_K_M, or page URL
    Pull { what: String },
    /// Verify a model's files against the hashes recorded at download
    Verify { id: String },
    /// Show where the Hugging Face access token is stored; it is needed for models with a license to accept
    Token {
        /// Read a token from standard input and save it
        #[arg(long, conflicts_with = "rm")]
        stdin: bool,
        /// Remove the saved token
        #[arg(long)]
        rm: bool,
    },
}

#[derive(Debug, Args)]
pub struct ImportFlags {
    pub path: String,
    /// Use the file in place (default)
    #[arg(long, conflicts_with_all = ["copy", "move_"])]
    pub link: bool,
    /// Copy it to Inglenook's folder
    #[arg(long, conflicts_with = "move_")]
    pub copy: bool,
    /// Move it to Inglenook's folder
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
    /// List all settings
    List,
    /// Print the value of a setting
    Get { key: String },
    /// Change a setting; the value is JSON or text
    Set {
        key: String,
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port to listen on; 0 picks a free one
    #[arg(long, default_value_t = server::DEFAULT_PORT)]
    pub port: u16,
    #[command(flatten)]
    pub key: crate::server_key::ServerKeyFlags,
    #[command(flatten)]
    pub sources: crate::source_flags::SourceFlags,
}
