//! Edge types of plugins.

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
    /// For people: each name, with its command or address.
    pub servers: Vec<String>,
    pub presets: Vec<String>,
    pub templates: Vec<String>,
    pub models: Vec<String>,
    pub enabled: bool,
    /// Its manifest has changed since it was switched on.
    pub changed: bool,
    /// Why it can't be read.
    pub error: Option<ErrorInfo>,
}

/// Switches a plugin on or off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct PluginSwitchArgs {
    /// Of its folder.
    pub name: String,
    pub enabled: bool,
}
