//! Servers that answer in place of this machine, and their models.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::ErrorInfo;

/// The kind of server, detected by its own name.
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
    /// Every kind, in display order.
    pub const ALL: [Self; 7] =
        [Self::Inglenook, Self::Vllm, Self::Sglang, Self::LlamaCpp, Self::Ollama, Self::OpenAi, Self::Other];
}

/// How a server's key is found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EndpointKey {
    /// None needed.
    #[default]
    None,
    /// In an environment variable of this name.
    Environment { variable: String },
    /// Encrypted, in the data folder.
    #[serde(rename = "kept")]
    File,
    /// In the system's keychain.
    Keychain,
}

/// Where a given key is stored.
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
    /// `HF_TOKEN`: takes precedence.
    Environment,
    /// Entered here, in the system's keychain.
    Keychain,
    /// Entered here, encrypted in the data folder.
    File,
    /// The file of the hub's own tools.
    HubFile,
}

/// The identity that the hub sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct HubToken {
    /// Absent: anonymous.
    pub place: Option<TokenPlace>,
    /// Where a new token would be stored.
    pub keeps: KeyPlace,
}

/// Stores the hub token.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct HubTokenArgs {
    /// Empty: removes the stored token.
    pub token: String,
}

/// A model that an endpoint lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct EndpointModel {
    /// The server's name for it.
    pub id: String,
    /// Tokens; 0: unknown.
    pub context_length: u32,
}

/// The health of an endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum EndpointHealth {
    /// Not requested since the program started.
    Unknown,
    Up,
    /// It failed; others of its name are used meanwhile.
    Down {
        error: ErrorInfo,
    },
}

/// A remote model server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct EndpointInfo {
    pub id: String,
    /// Several may share one; its models are called `name/model`.
    pub name: String,
    /// Base address, such as `http://192.168.1.20:8000/v1`.
    pub url: String,
    /// For people: the host, with its port where it isn't the usual one.
    pub host: String,
    /// Requests to it leave this machine.
    pub leaves_machine: bool,
    /// Its traffic is unencrypted.
    pub is_readable: bool,
    pub key: EndpointKey,
    pub enabled: bool,
    pub server: ServerKind,
    /// As last listed, and as typed.
    pub models: Vec<EndpointModel>,
    /// Model names that the user typed, since the server lists none.
    pub typed_models: Vec<String>,
    pub health: EndpointHealth,
}

/// What a remote model has beyond the common fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct RemoteInfo {
    /// The endpoints' name.
    pub endpoint: String,
    pub hosts: Vec<String>,
    pub leaves_machine: bool,
    /// A connection to one of them is not encrypted.
    pub is_readable: bool,
    /// A sentence for people: where their text is sent.
    pub note: String,
}

/// Adds an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct EndpointAddArgs {
    pub name: String,
    pub url: String,
    /// A key to store.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub key: Option<String>,
    /// The environment variable that holds the key instead.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub key_variable: Option<String>,
    /// Names of models, for a server that lists none.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub models: Option<Vec<String>>,
}

/// Absent fields stay unchanged.
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
    /// A key to store; empty: removes it.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub key: Option<String>,
    #[serde(default)]
    #[ts(optional = nullable)]
    pub key_variable: Option<String>,
    #[serde(default)]
    #[ts(optional = nullable)]
    pub enabled: Option<bool>,
    /// Replaces the typed names of models.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub models: Option<Vec<String>>,
}
