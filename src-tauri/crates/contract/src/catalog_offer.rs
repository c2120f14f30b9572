//! A model that the catalogue offers for download.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What a model was trained for besides chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "Capability")]
pub enum ModelStrength {
    /// Reasoning before the answer.
    Thinking,
    /// Tool calls.
    Tools,
    /// Programming.
    Code,
    /// Looking at images.
    Images,
}

/// A catalogue entry. Sizes and hashes come from the hub when a file is downloaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(rename = "Offer")]
pub struct CatalogOffer {
    /// Id in the catalogue.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Model family.
    pub family: String,
    /// As in the file's `general.architecture`.
    pub architecture: String,
    /// `OWNER/NAME` on the hub.
    pub repository: String,
    /// Pattern of the files' names; several matches are the parts of a split GGUF.
    pub files: String,
    /// Name of the licence.
    pub licence: String,
    /// What it is good at, for people.
    pub good_at: String,
    /// What it was trained for besides chat.
    pub capabilities: Vec<ModelStrength>,
    /// Languages that its maker names: codes of two letters, or `multilingual`. Empty: unknown.
    #[serde(default)]
    pub languages: Vec<String>,
    /// SHA-256 of its files, if listed: others are refused if the catalogue is signed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<String>>")]
    pub sha256: Vec<String>,
    /// The trusted key that signed its catalogue. Null: unsigned.
    #[serde(skip_deserializing, default)]
    pub signed_by: Option<String>,
}

impl CatalogOffer {
    /// Whether every word of a query occurs in its texts.
    pub fn holds(&self, query: &str) -> bool {
        let Self { id, name, family, repository, good_at, .. } = self;
        let text = format!("{id} {name} {family} {repository} {good_at}").to_lowercase();
        query.split_whitespace().all(|word| text.contains(&word.to_lowercase()))
    }
}
