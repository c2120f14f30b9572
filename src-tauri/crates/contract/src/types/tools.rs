//! Servers of tools, the tools they have, and what becomes of calls.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::ErrorInfo;
use crate::Finding;

/// What has become of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ToolRunState {
    /// Waits for the user's leave.
    Asking,
    Running,
    Done,
    /// The tool failed, or couldn't be reached.
    Failed,
    Denied,
    /// By the user, or the program ended while it ran.
    Stopped,
}

/// A call of one of our tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolRun {
    /// Id and name of its server; empty where no server has such a tool.
    pub server: String,
    pub server_name: String,
    /// As its server calls it.
    pub tool: String,
    pub state: ToolRunState,
    /// As the model is told.
    pub result: String,
    /// Characters of the result that were left out.
    pub cut: u32,
    pub duration_ms: u32,
    /// What in the result a reader may not notice.
    pub findings: Vec<Finding>,
    /// The limit of rounds is reached: the user is asked whatever was allowed before.
    pub at_limit: bool,
}

/// How a server of tools is reached, in the form that many programs share (`mcpServers`): by a command, or by an
/// address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct ToolServerSpec {
    #[ts(optional = nullable)]
    pub command: Option<String>,
    #[ts(optional, as = "Option<Vec<String>>")]
    pub args: Vec<String>,
    /// For the command. Values are kept encrypted and never shown again.
    #[ts(optional, as = "Option<BTreeMap<String, String>>")]
    pub env: BTreeMap<String, String>,
    #[ts(optional = nullable)]
    pub cwd: Option<String>,
    #[ts(optional = nullable)]
    pub url: Option<String>,
    /// For the address. As `env`.
    #[ts(optional, as = "Option<BTreeMap<String, String>>")]
    pub headers: BTreeMap<String, String>,
}

/// Whether a server's tools can be called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ToolServerState {
    /// It is started when it is needed.
    Idle,
    Starting,
    Ready,
    Failed {
        error: ErrorInfo,
    },
}

/// Which tools of a server are called without asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolInfo {
    /// As its server calls it.
    pub name: String,
    pub title: String,
    pub description: String,
    /// The model is told of it.
    pub enabled: bool,
    /// It runs without asking.
    pub allowed: bool,
    /// By what its server says.
    pub read_only: bool,
}

/// A server of tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ToolServerInfo {
    pub id: String,
    pub name: String,
    /// The command line or the address, for people.
    pub place: String,
    /// Values of `env` and `headers` are empty: they are kept encrypted.
    pub spec: ToolServerSpec,
    pub enabled: bool,
    pub state: ToolServerState,
    /// As they were listed last.
    pub tools: Vec<ToolInfo>,
    /// All its tools run without asking.
    pub allowed: bool,
    /// What is asked of it leaves this machine, as far as is known.
    pub leaves_machine: bool,
    /// The plugin that brought it.
    pub plugin: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ToolServerAddArgs {
    pub name: String,
    pub spec: ToolServerSpec,
}

/// What is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ToolServerUpdateArgs {
    pub id: String,
    #[serde(default)]
    #[ts(optional = nullable)]
    pub name: Option<String>,
    #[serde(default)]
    #[ts(optional = nullable)]
    pub enabled: Option<bool>,
    /// An empty value of `env` or `headers` stays as it is kept.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub spec: Option<ToolServerSpec>,
}

/// Of a server as a whole, or of one of its tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ToolPermitArgs {
    pub id: String,
    /// Absent: all of them.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub tool: Option<String>,
    /// It runs without asking.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub allowed: Option<bool>,
    /// The model is told of it.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub enabled: Option<bool>,
}

/// What a pasted configuration became.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ToolServersImported {
    pub added: Vec<ToolServerInfo>,
    /// Why others were not.
    pub refused: Vec<ErrorInfo>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ToolDecision {
    AllowOnce,
    /// This tool, from now on.
    AllowTool,
    /// All tools of its server, from now on.
    AllowServer,
    Deny,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ToolDecideArgs {
    /// The answer with the call.
    pub message: String,
    /// Of the call.
    pub call: String,
    pub decision: ToolDecision,
}

/// Something that a server offers to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolResource {
    pub uri: String,
    pub name: String,
    pub description: String,
    /// Such as `text/markdown`, where its server says so.
    pub kind: Option<String>,
    #[ts(type = "number | null")]
    pub bytes: Option<u64>,
}

/// As `ToolResource`, where the words in braces are the reader's to fill in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolResourceTemplate {
    /// Such as `note://{name}`.
    pub template: String,
    pub name: String,
    pub description: String,
    pub kind: Option<String>,
}

/// All that a server offers to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolResources {
    pub resources: Vec<ToolResource>,
    pub templates: Vec<ToolResourceTemplate>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ToolResourceArgs {
    /// Of the server.
    pub id: String,
    pub uri: String,
}

/// A question that a server has words for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolPrompt {
    /// What it is asked for by.
    pub name: String,
    /// What people call it.
    pub title: String,
    pub description: String,
    pub arguments: Vec<ToolPromptArgument>,
}

/// Something that whoever asks has to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolPromptArgument {
    pub name: String,
    pub title: String,
    pub description: String,
    pub required: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ToolPromptArgs {
    /// Of the server.
    pub id: String,
    pub name: String,
    /// By name.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolPromptText {
    pub text: String,
}
