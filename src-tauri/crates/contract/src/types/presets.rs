//! What crosses an edge about presets.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{CompactionStrategy, ConversationOptions};

/// What a conversation can be given of its own, under a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Preset {
    pub id: String,
    pub name: String,
    pub options: ConversationOptions,
    /// What becomes of conversations that are longer than the context. Absent: as the setting says.
    pub compression: Option<CompactionStrategy>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct PresetArgs {
    /// Absent: a new one is made.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub id: Option<String>,
    pub name: String,
    pub options: ConversationOptions,
    #[serde(default)]
    #[ts(optional = nullable)]
    pub compression: Option<CompactionStrategy>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct PresetExportArgs {
    pub id: String,
    /// The file to write; absent: the text alone is given.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub path: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ModelSettingArgs {
    /// Library id.
    pub id: String,
    pub key: String,
    /// Null: as the settings say for all models.
    #[ts(type = "unknown")]
    pub value: serde_json::Value,
}
