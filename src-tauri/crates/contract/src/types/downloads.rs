//! Types for getting models: hub search, a repository's files, and downloads.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::ErrorInfo;
use crate::CatalogOffer;

// ---- the hub ----

/// The order of search results on the hub.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum HubSort {
    /// Currently most popular.
    #[default]
    Trending,
    Downloads,
    Likes,
    /// Newest change first.
    Updated,
}

/// Searches the hub for models.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct HubSearchArgs {
    /// Words, `owner/name`, or the URL of a model's page. Empty: the most liked models.
    pub query: String,
    #[serde(default)]
    #[ts(optional = nullable)]
    pub sort: Option<HubSort>,
    /// `next` of the previous page.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub after: Option<String>,
}

/// A page of search results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct HubPage {
    /// The catalogue's models come first, on the first page. All of them can run here.
    pub models: Vec<HubModel>,
    /// Cursor of the next page.
    pub next: Option<String>,
    /// Why the hub could not be reached: only the catalogue's models are listed.
    pub offline: Option<ErrorInfo>,
}

/// The file format of a model on the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum HubFormat {
    Gguf,
    Safetensors,
}

/// Input that a model was trained on. We give it only text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Modality {
    Text,
    TextAndImages,
    TextAndSound,
    Anything,
}

/// A model repository on the hub.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct HubModel {
    /// `owner/name`
    pub repository: String,
    pub format: HubFormat,
    /// As in model files: `llama`, `gemma3` … Null: the hub doesn't say.
    pub architecture: Option<String>,
    #[ts(type = "number | null")]
    pub parameters: Option<u64>,
    /// In tokens.
    pub context_length: Option<u32>,
    pub licence: Option<String>,
    /// Languages that its page names: codes of two letters, or `multilingual`. Empty: it names none.
    pub languages: Vec<String>,
    pub modality: Modality,
    /// Of the last month.
    #[ts(type = "number | null")]
    pub downloads: Option<u64>,
    #[ts(type = "number | null")]
    pub likes: Option<u64>,
    #[ts(type = "number | null")]
    pub updated_ms: Option<i64>,
    /// Its licence must first be accepted on its page.
    pub gated: bool,
    /// Its page.
    pub url: String,
    /// It can run here. False only for one that was requested by name.
    pub runs: bool,
    /// Its catalogue entry.
    pub offer: Option<CatalogOffer>,
}

/// Lists the files of a repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct HubFilesArgs {
    /// `owner/name`, or an id of the catalogue.
    pub repository: String,
    /// Branch, tag or commit; absent: the newest.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub revision: Option<String>,
}

/// The model files of a repository at a revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct HubFiles {
    pub model: HubModel,
    /// The commit of the files.
    pub revision: String,
    /// Smallest first.
    pub files: Vec<HubFile>,
}

/// How much of a model's precision a file keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum QuantGroup {
    /// Three bits and fewer.
    Small,
    /// Four and five.
    Balanced,
    /// Six and more.
    Large,
}

/// A downloadable model: a file, or the parts of a split one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct HubFile {
    /// The (first) file in the repository. Names it to `download_start`.
    pub path: String,
    /// Number of its files.
    pub parts: u32,
    #[ts(type = "number")]
    pub bytes: u64,
    /// `Q4_K_M` …
    pub quantisation: Option<String>,
    pub group: QuantGroup,
    /// The catalogue's choice, or else the usual one.
    pub recommended: bool,
    pub trust: Trust,
    /// Id of its current or past download.
    pub download: Option<String>,
}

/// What vouches for a model's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Trust {
    /// Listed with a signature of a trusted key.
    Signed { key: String },
    /// Unsigned, but matches the SHA-256 that the hub publishes.
    Published,
    /// The hub publishes no hash.
    Unknown,
}

// ---- downloads ----

/// Starts a download.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct DownloadStartArgs {
    /// `owner/name`, or an id of the catalogue.
    pub repository: String,
    /// A `path` of `hub_files`; absent: the recommended one.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub path: Option<String>,
    /// Branch, tag or commit; absent: the newest.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub revision: Option<String>,
}

/// Cancels a download.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct DownloadCancelArgs {
    pub id: String,
    /// Keeps the partial file, and a later download resumes from it.
    pub keep_part: bool,
}

/// The state of a download.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum DownloadState {
    /// Waits for earlier ones.
    Queued,
    Downloading,
    /// Paused by the user, or because of `reason`, such as a full disk; then it resumes automatically.
    Paused {
        reason: Option<ErrorInfo>,
    },
    /// Resumes automatically.
    WaitingForNetwork {
        error: ErrorInfo,
    },
    /// Complete; its hash is being computed. `fraction` from 0 to 1.
    Verifying {
        fraction: f32,
    },
    /// Needs the user. The partial file is kept: `download_resume` continues from it.
    Failed {
        error: ErrorInfo,
    },
    /// In the library, under this id.
    Done {
        model: String,
    },
}

/// A download in the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Download {
    pub id: String,
    pub repository: String,
    /// The (first) file in the repository.
    pub path: String,
    /// Number of its files.
    pub parts: u32,
    /// Bytes received and written.
    #[ts(type = "number")]
    pub bytes: u64,
    #[ts(type = "number")]
    pub total: u64,
    /// Bytes transferred, including repeated ones.
    #[ts(type = "number")]
    pub fetched: u64,
    /// Bytes per second, over the last seconds.
    pub speed: f64,
    /// Estimated seconds left at that speed; null: unknown.
    pub eta_s: Option<f64>,
    pub state: DownloadState,
    /// Something the user should know though nothing failed, such as a file that the publisher
    /// changed, so that it restarted.
    pub notice: Option<ErrorInfo>,
    pub trust: Trust,
    #[ts(type = "number")]
    pub created_ms: i64,
}

// ---- hashes ----

/// The result of verifying a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ModelVerified {
    pub id: String,
    pub trust: Trust,
    pub files: Vec<FileVerified>,
    /// Every file is unchanged.
    pub intact: bool,
}

/// The result of verifying a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct FileVerified {
    pub path: String,
    #[ts(type = "number")]
    pub bytes: u64,
    /// As it is now.
    pub sha256: String,
    /// The recorded hash. Null: there was none, and it has been recorded now.
    pub recorded: Option<String>,
}
