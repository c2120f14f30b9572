//! Model downloads from the Hugging Face hub and its mirrors: search, file lists, verified and resumable fetching.
//!
//! A file enters the library only with its published hash, and interrupted downloads resume. The token goes to the hub's
//! own host alone, and every request passes the gate first.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod address;
mod cache_layout;
mod client;
mod download;
mod error;
mod file_choice;
mod files;
mod gate;
mod http_error;
mod progress;
mod rate_limit;
mod resolve;
mod retry;
mod search;
mod sha;
mod signature;
mod token;
mod tree;
mod url;

pub use address::{ModelAddress, Repository};
pub use cache_layout::{Layout, ModelDir};
pub use client::{Client, ClientOptions, HUGGING_FACE};
pub use download::{Download, DownloadEnd, PlacedFile, TransferOptions, remove_chunk_list};
pub use error::{HubError, Result};
pub use file_choice::{find_file, is_latest};
pub use files::{ModelFiles, QuantGroup, downloadable_models, is_vision_tower};
pub use gate::{Gate, Permit, Purpose};
pub use progress::{DownloadProgress, Phase};
pub use rate_limit::RateLimiter;
pub use retry::retry_after;
pub use search::{RepositoryInfo, SearchPage, SearchQuery, SearchSort};
pub use sha::{Hash, hash_file};
pub use signature::{MANIFEST, Manifest, ManifestFile, SIGNATURE_ENDING, TrustedKeys};
pub use token::{token_file, token_variable};
pub use tree::{RemoteFile, RepositoryTree};
