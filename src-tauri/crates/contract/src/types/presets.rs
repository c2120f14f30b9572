//! Edge types of presets.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{CompactionStrategy, ConversationOptions};

/// Conversation options saved under a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Preset {
    pub id: String,
    pub name: String,
    pub options: ConversationOptions,
    /// Strategy for conversations longer than the context. Absent: as the setting says.
    pub compression: Option<CompactionStrategy>,
}

/// Creates or changes a preset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct PresetArgs {
    /// Absent: creates a new one.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub id: Option<String>,
    pub name: String,
    pub options: ConversationOptions,
    #[serde(default)]
    #[ts(optional = nullable)]
    pub compression: Option<CompactionStrategy>,
}

/// Exports a preset, as text or to a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct PresetExportArgs {
    pub id: String,
    /// The file to write; absent: only the text is returned.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub path: Option<String>,
}

/// Sets a per-model setting.
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
