//! Servers that answer in place of this machine, and the models that they have.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::ErrorInfo;

/// What a server is, by what it calls itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ServerKind {
    Inglenook,
    Vllm,
    Sglang,
    LlamaCpp,
    Ollama,
    OpenAi,
    #[default]
    Other,
}

impl ServerKind {
    pub const ALL: [Self; 7] =
        [Self::Inglenook, Self::Vllm, Self::Sglang, Self::LlamaCpp, Self::Ollama, Self::OpenAi, Self::Other];
}

/// How a server's key is found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EndpointKey {
    /// It wants none.
    #[default]
    None,
    /// In an environment variable of this name.
    Environment { variable: String },
    /// Encrypted, in the data folder.
    Kept,
    /// In the system's keychain.
    Keychain,
}

/// Where a key that is given is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum KeyPlace {
    /// The system's.
    Keychain,
    /// Encrypted, in the data folder.
    File,
}

/// Where the hub's token is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum TokenPlace {
    /// `HF_TOKEN`: it counts before all others.
    Environment,
    /// Given here, in the system's keychain.
    Keychain,
    /// Given here, encrypted in the data folder.
    File,
    /// Where the hub's own tools keep it.
    HubFile,
}

/// Who the hub is told that we are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct HubToken {
    /// Absent: nobody.
    pub place: Option<TokenPlace>,
    /// Where one that is given would be kept.
    pub keeps: KeyPlace,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct HubTokenArgs {
    /// Empty: the one that was given here is forgotten.
    pub token: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct EndpointModel {
    /// As its server calls it.
    pub id: String,
    /// Tokens; 0: the server doesn't say.
    pub context_length: u32,
}

/// Whether a server answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum EndpointHealth {
    /// It has not been asked since the program began.
    Unknown,
    Up,
    /// It did not; others of its name are asked meanwhile.
    Down {
        error: ErrorInfo,
    },
}

/// A server that answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct EndpointInfo {
    pub id: String,
    /// Several may share one; its models are called `name/model`.
    pub name: String,
    /// Base address, such as `http://192.168.1.20:8000/v1`.
    pub url: String,
    /// For people: the host, with its port where it isn't the usual one.
    pub host: String,
    /// What is asked of it leaves this machine.
    pub leaves_machine: bool,
    /// What goes there can be read on its way.
    pub is_readable: bool,
    pub key: EndpointKey,
    pub enabled: bool,
    pub server: ServerKind,
    /// As they were listed last.
    pub models: Vec<EndpointModel>,
    pub health: EndpointHealth,
}

/// What a model of another server is, beside what every model is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct RemoteInfo {
    /// The endpoints' name.
    pub endpoint: String,
    pub hosts: Vec<String>,
    pub leaves_machine: bool,
    /// A sentence for people: where their words go.
    pub note: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct EndpointAddArgs {
    pub name: String,
    pub url: String,
    /// A key to be kept.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub key: Option<String>,
    /// The environment variable that holds it instead.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub key_variable: Option<String>,
}

/// What is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct EndpointUpdateArgs {
    pub id: String,
    #[serde(default)]
    #[ts(optional = nullable)]
    pub name: Option<String>,
    #[serde(default)]
    #[ts(optional = nullable)]
    pub url: Option<String>,
    /// A key to be kept; empty: none any more.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub key: Option<String>,
    #[serde(default)]
    #[ts(optional = nullable)]
    pub key_variable: Option<String>,
    #[serde(default)]
    #[ts(optional = nullable)]
    pub enabled: Option<bool>,
}
