//! Getting models: what a hub has, and its files, fetched so that what ends in the library is what was published.
//!
//! Speaks the protocol of the Hugging Face hub and of mirrors of it. Guarantees that nothing is placed whose hash is
//! not the published one, that an interrupted download goes on where it was, that a token is sent to the hub's own host
//! alone, and that nothing goes out before its gate was asked. Knows nothing of engines, the database or the types that cross an edge.
#![forbid(unsafe_code)]

mod address;
mod cache_layout;
mod client;
mod download;
mod error;
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
pub use client::{Client, ClientOptions};
pub use download::{Download, DownloadEnd, PlacedFile, TransferOptions};
pub use error::{HubError, Result};
pub use files::{ModelFiles, QuantGroup, items};
pub use gate::{Gate, Permit, Purpose};
pub use progress::{DownloadProgress, Phase};
pub use rate_limit::RateLimiter;
pub use retry::retry_after;
pub use search::{RepositoryInfo, SearchPage, SearchQuery, SearchSort};
pub use sha::{Hash, hash_file};
pub use signature::{MANIFEST, Manifest, ManifestFile, SIGNATURE_ENDING, TrustedKeys};
pub use token::{token_file, token_variable};
pub use tree::{RemoteFile, RepositoryTree};
