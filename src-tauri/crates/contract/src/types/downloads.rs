//! Getting models: what the hub has, its files, and downloads.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::ErrorInfo;
use crate::CatalogOffer;

// ---- the hub ----

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum HubSort {
    /// What is spoken of most right now.
    #[default]
    Trending,
    Downloads,
    Likes,
    /// Newest change first.
    Updated,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct HubSearchArgs {
    /// Words, `owner/name`, or the address of a model's page. Empty: what is liked most.
    pub query: String,
    #[serde(default)]
    #[ts(optional = nullable)]
    pub sort: Option<HubSort>,
    /// `next` of the page before.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub after: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct HubPage {
    /// Those of the catalogue first, on the first page. All of them can run here.
    pub models: Vec<HubModel>,
    /// For the page after this one.
    pub next: Option<String>,
    /// The hub could not be asked, and why: these are the catalogue's alone.
    pub offline: Option<ErrorInfo>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum HubFormat {
    Gguf,
    Safetensors,
}

/// What a model was trained to read. We give it text alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Modality {
    Text,
    TextAndImages,
    TextAndSound,
    Anything,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct HubModel {
    /// `owner/name`
    pub repository: String,
    pub format: HubFormat,
    /// As models name it: `llama`, `gemma3` … Null: the hub doesn't say.
    pub architecture: Option<String>,
    #[ts(type = "number | null")]
    pub parameters: Option<u64>,
    /// In tokens.
    pub context_length: Option<u32>,
    pub licence: Option<String>,
    pub modality: Modality,
    /// Of the last month.
    #[ts(type = "number | null")]
    pub downloads: Option<u64>,
    #[ts(type = "number | null")]
    pub likes: Option<u64>,
    #[ts(type = "number | null")]
    pub updated_ms: Option<i64>,
    /// Its licence has to be accepted on its page first.
    pub gated: bool,
    /// Its page.
    pub url: String,
    /// It can run here. False only for one that was asked for by its name.
    pub runs: bool,
    /// What the catalogue says of it.
    pub offer: Option<CatalogOffer>,
}

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct HubFiles {
    pub model: HubModel,
    /// The commit that they are of.
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

/// One model to fetch: a file, or the parts of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct HubFile {
    /// The (first) file in the repository. Names it to `download_start`.
    pub path: String,
    /// Files that it consists of.
    pub parts: u32,
    #[ts(type = "number")]
    pub bytes: u64,
    /// `Q4_K_M` …
    pub quantisation: Option<String>,
    pub group: QuantGroup,
    /// The catalogue's choice, or else the usual one.
    pub recommended: bool,
    pub trust: Trust,
    /// It is being fetched, or was: the download's id.
    pub download: Option<String>,
}

/// What vouches for a model's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Trust {
    /// A list with a signature of one of the trusted keys.
    Signed { key: String },
    /// Nobody's signature; the SHA-256 that the hub publishes.
    Published,
    /// The hub publishes no hash of it.
    Unknown,
}

// ---- downloads ----

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct DownloadCancelArgs {
    pub id: String,
    /// What has arrived stays on the disk, and a later download goes on from there.
    pub keep_part: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum DownloadState {
    /// Waits for those before it.
    Queued,
    Downloading,
    /// By the user, or because of `reason`, such as a full disk; then it goes on by itself once that has passed.
    Paused {
        reason: Option<ErrorInfo>,
    },
    /// Goes on by itself.
    WaitingForNetwork {
        error: ErrorInfo,
    },
    /// All is there; its hash is being computed. `fraction` from 0 to 1.
    Verifying {
        fraction: f32,
    },
    /// Needs the user. What has arrived is kept: `download_resume` tries again from there.
    Failed {
        error: ErrorInfo,
    },
    /// In the library, under this id.
    Done {
        model: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Download {
    pub id: String,
    pub repository: String,
    /// The (first) file in the repository.
    pub path: String,
    /// Files that it consists of.
    pub parts: u32,
    /// Arrived and written.
    #[ts(type = "number")]
    pub bytes: u64,
    #[ts(type = "number")]
    pub total: u64,
    /// Came over the network, what had to be fetched twice included.
    #[ts(type = "number")]
    pub fetched: u64,
    /// Bytes per second, of the last seconds.
    pub speed: f64,
    /// Seconds that it will take at that speed; null: nobody knows.
    pub eta_s: Option<f64>,
    pub state: DownloadState,
    /// Something the user should know though nothing failed: the publisher changed the file and it began anew …
    pub notice: Option<ErrorInfo>,
    pub trust: Trust,
    #[ts(type = "number")]
    pub created_ms: i64,
}

// ---- hashes ----

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ModelVerified {
    pub id: String,
    pub trust: Trust,
    pub files: Vec<FileVerified>,
    /// No file is different from what it was.
    pub intact: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct FileVerified {
    pub path: String,
    #[ts(type = "number")]
    pub bytes: u64,
    /// As it is now.
    pub sha256: String,
    /// As it was recorded. Null: nothing was, and it has been recorded now.
    pub recorded: Option<String>,
}
