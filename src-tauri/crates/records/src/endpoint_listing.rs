//! The models of an endpoint: those that its server listed last, and those that the user typed.

use contract::types::{
    EndpointHealth, EndpointInfo, EndpointModel, ModelEntry, ModelSource, ModelState, RemoteInfo, ServerKind,
};
use contract::{Error, Result};
use serde::{Deserialize, Serialize};
use session::EndpointRow;

/// Most model names that are typed for one server, and the longest.
const MAX_TYPED_MODELS: usize = 100;
const MAX_MODEL_CHARS: usize = 200;

/// What a server listed when it was last asked.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EndpointListing {
    /// The program that answers there.
    pub server: ServerKind,
    /// Models that it listed.
    pub models: Vec<EndpointModel>,
    /// Names that the user typed.
    #[serde(default)]
    pub typed: Vec<String>,
}

impl EndpointListing {
    /// Reads what is kept in a row. JSON that can't be read any more is as if nothing had been listed.
    pub fn of(row: &EndpointRow) -> Self {
        serde_json::from_str(&row.models).unwrap_or_default()
    }

    /// The listed models, then the typed ones.
    pub fn all(&self) -> Vec<EndpointModel> {
        let is_new = |id: &&String| self.models.iter().all(|model| model.id != **id);
        let typed = self.typed.iter().filter(is_new);
        let typed = typed.map(|id| EndpointModel { id: id.clone(), context_length: 0 });
        self.models.iter().cloned().chain(typed).collect()
    }
}

/// The library entry of a model, with all endpoints of that name that have it. `infos`: all that are switched on.
pub fn model_entry(id: String, model: &EndpointModel, infos: &[EndpointInfo], name: &str) -> ModelEntry {
    let has = |info: &&EndpointInfo| info.name == name && info.models.iter().any(|it| it.id == model.id);
    let having: Vec<&EndpointInfo> = infos.iter().filter(has).collect();
    let down = having.iter().map(|info| match &info.health {
        EndpointHealth::Down { error } => Some(error.clone()),
        EndpointHealth::Unknown | EndpointHealth::Up => None,
    });
    let down: Option<Vec<_>> = down.collect();
    let state = match down.and_then(|errors| errors.into_iter().next()) {
        Some(error) => ModelState::Unusable { error },
        None => ModelState::Ready,
    };
    let leaves_machine = having.iter().any(|info| info.leaves_machine);
    let hosts: Vec<String> = having.iter().map(|info| info.host.clone()).collect();
    let places = hosts.join(", ");
    let mut note = match leaves_machine {
        true => format!("Your messages leave this computer and go to {places}."),
        false => format!("Answers come from another program on this computer ({places})."),
    };
    let is_readable = having.iter().any(|info| info.is_readable);
    if is_readable {
        note.push_str(" The connection is not encrypted (HTTP).");
    }
    let lengths = having.iter().flat_map(|info| &info.models).filter(|it| it.id == model.id);
    let context_length = lengths.map(|it| it.context_length).filter(|&n| n > 0).min().unwrap_or(0);
    ModelEntry {
        id,
        name: model.id.clone(),
        source: ModelSource::Remote,
        path: None,
        bytes: 0,
        architecture: String::new(),
        parameters: 0,
        dtype: String::new(),
        context_length,
        state,
        remote: Some(RemoteInfo { endpoint: name.into(), hosts, leaves_machine, is_readable, note }),
        files: 0,
        disk_bytes: 0,
        fit: None,
        embeds: false,
        only_drafts: false,
        skills: None,
    }
}

/// Names of models as the user typed them, without repetitions.
pub fn checked_models(names: Option<Vec<String>>) -> Result<Vec<String>> {
    let mut checked: Vec<String> = Vec::new();
    for name in names.unwrap_or_default() {
        let name = name.trim();
        if name.chars().count() > MAX_MODEL_CHARS || name.chars().any(char::is_control) {
            let message = format!(
                "\"{}\" is not a valid model name.",
                name.chars().take(MAX_MODEL_CHARS).collect::<String>()
            );
            return Err(Error::input(
                "endpoint.model",
                message,
                "Enter the name as the server's operator gives it.",
            ));
        }
        if !name.is_empty() && !checked.iter().any(|it| it == name) {
            checked.push(name.into());
        }
    }
    if checked.len() > MAX_TYPED_MODELS {
        let message = format!("A server can have at most {MAX_TYPED_MODELS} typed model names.");
        return Err(Error::input("endpoint.model", message, "Enter only the models that you use."));
    }
    Ok(checked)
}
