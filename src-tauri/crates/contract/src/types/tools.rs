//! Tool servers, their tools, and the fate of calls.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::ErrorInfo;
use crate::Finding;

/// The state of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ToolRunState {
    /// Waits for the user's approval.
    Asking,
    Running,
    Done,
    /// The tool failed, or couldn't be reached.
    Failed,
    Denied,
    /// Stopped by the user, or by the end of the program.
    Stopped,
}

/// The run of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolRun {
    /// Id and name of its server; empty if no server has such a tool.
    pub server: String,
    pub server_name: String,
    /// The server's name for it.
    pub tool: String,
    pub state: ToolRunState,
    /// The result as the model sees it.
    pub result: String,
    /// Characters of the result that were left out.
    pub cut: u32,
    pub duration_ms: u32,
    /// Parts of the result that a reader may overlook.
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
    /// Started on demand.
    Idle,
    Starting,
    Ready,
    Failed {
        error: ErrorInfo,
    },
}

/// Whether the user is signed in to a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ToolSignInState {
    /// It demands no sign-in, as far as is known.
    #[default]
    None,
    Needed,
    /// The browser is open.
    Waiting,
    SignedIn,
}

/// Signs in to a tool server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ToolSignInArgs {
    /// Of the server.
    pub id: String,
    /// For authorization servers that don't register applications by themselves.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub client_id: Option<String>,
    /// Kept among the keys and never shown again.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub client_secret: Option<String>,
}

/// A sign-in that waits for the browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolSignInStart {
    /// To open in a browser on the computer that runs Inglenook.
    pub address: String,
}

/// A tool of a server, and its permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolInfo {
    /// The server's name for it.
    pub name: String,
    pub title: String,
    pub description: String,
    /// Whether the model is offered it.
    pub enabled: bool,
    /// It runs without asking.
    pub allowed: bool,
    /// According to its server.
    pub read_only: bool,
}

/// A tool server.
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
    pub sign_in: ToolSignInState,
    /// As last listed.
    pub tools: Vec<ToolInfo>,
    /// All its tools run without asking.
    pub allowed: bool,
    /// Requests to it leave this machine, as far as is known.
    pub leaves_machine: bool,
    /// The plugin that brought it.
    pub plugin: Option<String>,
}

/// Adds a tool server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ToolServerAddArgs {
    pub name: String,
    pub spec: ToolServerSpec,
}

/// Absent fields stay unchanged.
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
    /// An empty value of `env` or `headers` keeps the stored one.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub spec: Option<ToolServerSpec>,
}

/// Sets permissions of a server, or of one of its tools.
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
    /// Whether the model is offered it.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub enabled: Option<bool>,
}

/// The result of importing a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ToolServersImported {
    pub added: Vec<ToolServerInfo>,
    /// Why the others were refused.
    pub refused: Vec<ErrorInfo>,
}

/// The user's decision on a tool call.
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

/// Decides on a pending tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ToolDecideArgs {
    /// The answer with the call.
    pub message: String,
    /// Of the call.
    pub call: String,
    pub decision: ToolDecision,
}

/// A resource of a tool server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolResource {
    pub uri: String,
    pub name: String,
    pub description: String,
    /// MIME type such as `text/markdown`, if the server states it.
    pub kind: Option<String>,
    #[ts(type = "number | null")]
    pub bytes: Option<u64>,
}

/// Like `ToolResource`, with placeholders in braces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolResourceTemplate {
    /// Such as `note://{name}`.
    pub template: String,
    pub name: String,
    pub description: String,
    pub kind: Option<String>,
}

/// The resources of a tool server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolResources {
    pub resources: Vec<ToolResource>,
    pub templates: Vec<ToolResourceTemplate>,
}

/// Names a resource of a tool server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ToolResourceArgs {
    /// Of the server.
    pub id: String,
    pub uri: String,
}

/// A prompt template of a tool server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolPrompt {
    /// Identifier in requests.
    pub name: String,
    /// Display name.
    pub title: String,
    pub description: String,
    pub arguments: Vec<ToolPromptArgument>,
}

/// An argument that the caller has to supply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolPromptArgument {
    pub name: String,
    pub title: String,
    pub description: String,
    pub required: bool,
}

/// Fills in a prompt of a tool server.
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

/// A prompt's text, filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolPromptText {
    pub text: String,
}
