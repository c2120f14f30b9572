//! The model library: the starter, and files that stay where the user has them.

use std::path::Path;
use std::sync::mpsc;

use session::ModelRow;

use crate::chat::Responder;
use crate::error::{Error, Result};
use crate::starter;
use crate::types::{AppEvent, ErrorInfo, ModelEntry, ModelSource, ModelState};
use crate::worker::protocol::{Facts, Loaded, Location, ModelRef, WorkerRequest};
use crate::{App, Shared, State, quantized};

/// Longest id made from a file name.
const MAX_ID_CHARS: usize = 64;

impl App {
    /// The starter first, then files in the order in which they were added.
    pub fn models_list(&self) -> Result<Vec<ModelEntry>> {
        self.shared().model_entries()
    }

    pub fn model_get(&self, id: &str) -> Result<ModelEntry> {
        let found = self.models_list()?.into_iter().find(|entry| entry.id == id);
        found.ok_or_else(|| self.unknown_model(id))
    }

    /// Adds a GGUF file or a safetensors folder after checking it wholly. A path that is there already is
    /// checked again and keeps its id.
    pub fn model_add(&self, path: &str) -> Result<ModelEntry> {
        let path = path.trim();
        if path.is_empty() {
            return Err(Error::input("model.no_path", "No file was named.", "Give the path of a GGUF file."));
        }
        let absolute =
            std::fs::canonicalize(path).map_err(|error| io::IoError::new("open", Path::new(path), error))?;
        let Some(text) = absolute.to_str().map(str::to_owned) else {
            let message = format!("The path {} is not written in Unicode.", absolute.display());
            return Err(Error::input("model.path_not_unicode", message, "Rename the file or its folder."));
        };
        let facts = self.inspect(Location::Path(text.clone()))?;
        let rows = self.shared().state().session.models()?;
        let id = match rows.iter().find(|row| row.path == text) {
            Some(row) => row.id.clone(),
            None => unique(&id_of(&absolute), &rows),
        };
        let row = ModelRow {
            id,
            name: facts.name,
            path: text,
            bytes: i64::try_from(facts.bytes).unwrap_or(i64::MAX),
            architecture: facts.architecture,
            parameters: i64::try_from(facts.parameters).unwrap_or(i64::MAX),
            dtype: facts.dtype,
            context_length: facts.context_length,
            added_ms: self.shared().clock.now_utc_ms(),
        };
        self.shared().state().session.put_model(&row)?;
        let entry = self.shared().entry(row);
        self.shared().tell(AppEvent::ModelChanged { model: entry.clone() });
        Ok(entry)
    }

    /// Forgets an entry; its file stays.
    pub fn model_remove(&self, id: &str) -> Result<()> {
        if id == starter::ID {
            return Err(Error::input(
                "model.built_in",
                "The starter model is part of the program and can't be removed.",
                "It takes no space beside the program.",
            ));
        }
        let rows = self.shared().state().session.models()?;
        let path = rows.into_iter().find(|row| row.id == id).map(|row| row.path);
        if !self.shared().state().session.remove_model(id)? {
            return Err(self.unknown_model(id));
        }
        if let Some(path) = path {
            quantized::forget(&*self.shared().io, &self.dirs().data, &path);
        }
        self.ask(WorkerRequest::Unload { model: id.into() })?;
        self.shared().tell(AppEvent::ModelRemoved { id: id.into() });
        Ok(())
    }

    /// Who answers under a name: a library id, or a path.
    pub fn responder(&self, model: &str) -> Result<Responder> {
        if model == starter::ID {
            return Ok(Responder::Local(ModelRef { id: model.into(), location: Location::BuiltIn }));
        }
        if model.starts_with("http://") || model.starts_with("https://") {
            return Ok(Responder::Remote { name: model.into() });
        }
        let row = self.shared().state().session.models()?.into_iter().find(|row| row.id == model);
        let path = match row {
            Some(row) => row.path,
            None if Path::new(model).exists() => model.to_owned(),
            None => return Err(self.unknown_model(model)),
        };
        Ok(Responder::Local(ModelRef { id: model.into(), location: Location::Path(path) }))
    }

    fn unknown_model(&self, id: &str) -> Error {
        let rows = self.shared().state().session.models().unwrap_or_default();
        let ids: Vec<_> =
            std::iter::once(starter::ID).chain(rows.iter().map(|row| row.id.as_str())).collect();
        Error::not_found(
            "model.unknown",
            format!("There is no model \"{id}\" in the library, and no file of that name."),
            format!("These are there: {}. Add a GGUF file to have more.", ids.join(", ")),
        )
    }

    /// Has the worker open a file and say what it is.
    fn inspect(&self, location: Location) -> Result<Facts> {
        let (send, answer) = mpsc::channel();
        let request = {
            let mut state = self.shared().state();
            state.n_asked += 1;
            let request = state.n_asked;
            state.inspections.insert(request, send);
            request
        };
        self.ask(WorkerRequest::Inspect { request, location })?;
        answer.recv().map_err(|_| Error::bug("the worker ended while it looked at the file"))?
    }
}

impl Shared {
    pub(crate) fn model_entries(&self) -> Result<Vec<ModelEntry>> {
        let rows = self.state().session.models()?;
        let mut entries = vec![self.starter_entry()?];
        entries.extend(rows.into_iter().map(|row| self.entry(row)));
        Ok(entries)
    }

    fn starter_entry(&self) -> Result<ModelEntry> {
        let known = self.state().starter.clone();
        let facts = match known {
            Some(facts) => facts,
            // Ours, small and in memory: looked at here, so that the list never waits for an answer.
            None => {
                let facts = crate::worker::inspect(&Location::BuiltIn)?;
                self.state().starter = Some(facts.clone());
                facts
            }
        };
        Ok(ModelEntry {
            id: starter::ID.into(),
            name: facts.name,
            source: ModelSource::BuiltIn,
            path: None,
            bytes: facts.bytes,
            architecture: facts.architecture,
            parameters: facts.parameters,
            dtype: facts.dtype,
            context_length: facts.context_length,
            state: self.state().model_state(starter::ID),
        })
    }

    fn entry(&self, row: ModelRow) -> ModelEntry {
        let is_there = self.io.exists(Path::new(&row.path)).unwrap_or(false);
        let state = match is_there {
            true => self.state().model_state(&row.id),
            false => ModelState::Unusable { error: gone(&row.path) },
        };
        ModelEntry {
            id: row.id,
            name: row.name,
            source: ModelSource::File,
            path: Some(row.path),
            bytes: u64::try_from(row.bytes).unwrap_or(0),
            architecture: row.architecture,
            parameters: u64::try_from(row.parameters).unwrap_or(0),
            dtype: row.dtype,
            context_length: row.context_length,
            state,
        }
    }
}

impl State {
    pub(crate) fn model_state(&self, id: &str) -> ModelState {
        match self.models.get(id) {
            Some(Loaded::Loading { fraction }) => ModelState::Loading { fraction: *fraction },
            Some(Loaded::Ready) => ModelState::Ready,
            Some(Loaded::Failed { error }) => ModelState::Unusable { error: error.info.clone() },
            Some(Loaded::Unloaded) | None => ModelState::Unloaded,
        }
    }
}

fn gone(path: &str) -> ErrorInfo {
    ErrorInfo {
        code: "model.file_gone".into(),
        message: format!("The file {path} is not there any more."),
        remedy: "Put it back or connect its drive; or remove the entry and add the file from its new place."
            .into(),
    }
}

/// A file's name without its ending, in lower case, with `-` for what is no letter, digit or dot.
fn id_of(path: &Path) -> String {
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    let name = name.unwrap_or_default().to_string_lossy().to_lowercase();
    let mut id = String::new();
    for c in name.chars().take(MAX_ID_CHARS) {
        match c {
            c if c.is_alphanumeric() || c == '.' || c == '_' => id.push(c),
            _ if id.ends_with('-') || id.is_empty() => {}
            _ => id.push('-'),
        }
    }
    let id = id.trim_matches(['-', '.']).to_owned();
    if id.is_empty() { "model".into() } else { id }
}

fn unique(id: &str, rows: &[ModelRow]) -> String {
    let is_taken = |id: &str| id == starter::ID || rows.iter().any(|row| row.id == id);
    if !is_taken(id) {
        return id.to_owned();
    }
    let numbered = (2..).map(|n: u32| format!("{id}-{n}"));
    numbered.into_iter().find(|id| !is_taken(id)).expect("there are more numbers than rows")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_from_file_names() {
        let cases = [
            ("/m/SmolLM3-3B-Q4_K_M.gguf", "smollm3-3b-q4_k_m"),
            ("/m/My Model (final).gguf", "my-model-final"),
            ("/m/---.gguf", "model"),
            ("/m/Größe 日本.gguf", "größe-日本"),
        ];
        for (path, expected) in cases {
            assert_eq!(id_of(Path::new(path)), expected);
        }
        assert_eq!(unique("starter", &[]), "starter-2");
    }
}
