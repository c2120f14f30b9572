//! The models of an endpoint: those that its server listed last, and those that the user typed.

use contract::types::{EndpointModel, ServerKind};
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
