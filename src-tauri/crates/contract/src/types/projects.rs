//! Projects: folders that new conversations begin in with instructions, files, a preset and a model.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Attachment, CompactionStrategy, ConversationOptions};

/// A folder whose new conversations begin with what it says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Project {
    /// The folder.
    pub folder: String,
    /// The folder's name.
    pub name: String,
    /// System prompt of new conversations; empty: none.
    pub instructions: String,
    /// The preset that new conversations begin with.
    pub preset: Option<String>,
    /// Library id of the model of new conversations.
    pub model: Option<String>,
    /// Whether prompts of new conversations have the notes of the memory page. Null: as the setting `memory` says.
    pub memory: Option<bool>,
    /// Go with the first message of new conversations.
    pub files: Vec<Attachment>,
    /// Options of new conversations: those of the preset, with the instructions.
    pub options: ConversationOptions,
    /// Strategy of the preset for conversations longer than the context.
    pub compression: Option<CompactionStrategy>,
}

/// Makes a folder a project, or changes what it says. Its files stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ProjectArgs {
    /// The folder.
    pub folder: String,
    #[serde(default)]
    #[ts(optional, as = "Option<String>")]
    pub instructions: String,
    /// The preset that new conversations begin with; absent: none.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub preset: Option<String>,
    /// Library id of the model of new conversations; absent: the default model.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub model: Option<String>,
    /// Whether prompts of new conversations have the notes of the memory page; absent: as the setting `memory` says.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub memory: Option<bool>,
}

/// Adds a file's bytes to a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ProjectFileArgs {
    pub folder: String,
    pub name: String,
    /// The file's bytes.
    pub base64: String,
}

/// Adds a file of this machine to a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ProjectPathArgs {
    pub folder: String,
    pub path: String,
}

/// What a prompt has from the project that its conversation began in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ProjectShare {
    pub folder: String,
    pub name: String,
    /// Tokens of its instructions; 0: the conversation has others.
    pub instructions: u32,
    /// Tokens of its files; part of those of all files.
    pub files: u32,
}
