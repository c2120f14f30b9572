//! A model that the catalogue offers for download.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What a model was trained for beside talking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "Capability")]
pub enum ModelStrength {
    Thinking,
    Tools,
    Code,
}

/// A model on offer. Sizes and hashes are not here: the hub says them when a file is fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(rename = "Offer")]
pub struct CatalogOffer {
    pub id: String,
    pub name: String,
    pub family: String,
    /// As in the file's `general.architecture`.
    pub architecture: String,
    /// `OWNER/NAME` on the hub.
    pub repository: String,
    /// Pattern of the files' names; several matches are the parts of a split GGUF.
    pub files: String,
    pub licence: String,
    pub good_at: String,
    pub capabilities: Vec<ModelStrength>,
    /// Of its files, where the list says so: others are refused if the list is signed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<String>>")]
    pub sha256: Vec<String>,
    /// The trusted key that signed the list it stands in. Null: nobody did.
    #[serde(skip_deserializing, default)]
    pub signed_by: Option<String>,
}

impl CatalogOffer {
    /// Whether every word of a query stands in what is said of it.
    pub fn holds(&self, query: &str) -> bool {
        let Self { id, name, family, repository, good_at, .. } = self;
        let text = format!("{id} {name} {family} {repository} {good_at}").to_lowercase();
        query.split_whitespace().all(|word| text.contains(&word.to_lowercase()))
    }
}
