//! What crosses an edge about plugins.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::ErrorInfo;

/// A plugin, and what it brings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct PluginInfo {
    /// The name of its folder.
    pub folder: String,
    pub name: String,
    pub version: String,
    pub description: String,
    /// For people: the name of each, and what is started or asked.
    pub servers: Vec<String>,
    pub presets: Vec<String>,
    pub templates: Vec<String>,
    pub models: Vec<String>,
    pub enabled: bool,
    /// Its manifest is another one than when it was switched on.
    pub changed: bool,
    /// Why it can't be read.
    pub error: Option<ErrorInfo>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct PluginSwitchArgs {
    /// Of its folder.
    pub name: String,
    pub enabled: bool,
}
