//! The model library: the starter, and files that stay where the user has them.

use std::path::Path;
use std::sync::mpsc;

use engine::capabilities::ModelCapabilities;
use engine::memory_estimate::MemoryEstimate;
use session::ModelRow;

use crate::chat::Responder;
use crate::error::{Error, Result};
use crate::estimate::Here;
use crate::starter;
use crate::types::{AppEvent, ErrorInfo, ModelEntry, ModelSkills, ModelSource, ModelState, Thinking};
use crate::worker::protocol::{Facts, Loaded, Location, ModelRef, WorkerRequest};
use crate::{App, Shared, State, places};

/// Longest id made from a file name.
const MAX_ID_CHARS: usize = 64;

impl App {
    /// The starter first, then files in the order in which they were added, then models of other servers.
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
            return Err(Error::input("model.no_path", "No file was given.", "Give the path of a GGUF file."));
        }
        let absolute = places::under_its_name(Path::new(path))
            .map_err(|error| io::IoError::new("open", Path::new(path), error))?;
        let Some(text) = absolute.to_str().map(str::to_owned) else {
            let message = format!("The path {} is not valid Unicode.", absolute.display());
            return Err(Error::input("model.path_not_unicode", message, "Rename the file or its folder."));
        };
        let facts = self.inspect(Location::Path(text.clone()))?;
        // one that was removed is among them: it is back with its id
        let rows = self.shared().state().session.all_models()?;
        let known = rows.iter().find(|row| row.path == text).cloned();
        let new = || ModelRow {
            id: unique_id(&title(&absolute), &rows),
            added_ms: self.shared().clock.now_utc_ms(),
            source: source_name(self.source_at(&absolute)),
            ..ModelRow::default()
        };
        let ModelRow { id, added_ms, source, root, .. } = known.unwrap_or_else(new);
        let disk_bytes = i64::try_from(places::disk_bytes(&absolute)).unwrap_or(i64::MAX);
        let stamp = places::stamp(&absolute);
        let row = ModelRow { id, path: text, added_ms, source, root, disk_bytes, stamp, ..row_of(facts) };
        self.shared().state().session.put_model(&row)?;
        let entry = self.shared().entry(row, &self.shared().here());
        self.shared().tell(AppEvent::ModelChanged { model: entry.clone() });
        Ok(entry)
    }

    /// A file in our own folder is ours.
    fn source_at(&self, path: &Path) -> ModelSource {
        if path.starts_with(self.own_models()) { ModelSource::Owned } else { ModelSource::File }
    }

    /// Who answers under a name: a library id, or a path.
    pub fn responder(&self, model: &str) -> Result<Responder> {
        if model == starter::ID {
            return Ok(Responder::Local(ModelRef { id: model.into(), location: Location::BuiltIn }));
        }
        let row = self.shared().state().session.models()?.into_iter().find(|row| row.id == model);
        if row.is_none()
            && let Some(reference) = self.remote_model(model)?
        {
            return Ok(Responder::Remote(reference));
        }
        let path = match row {
            Some(row) => row.path,
            None if Path::new(model).exists() => model.to_owned(),
            None => return Err(self.unknown_model(model)),
        };
        Ok(Responder::Local(ModelRef { id: model.into(), location: Location::Path(path) }))
    }

    pub(crate) fn unknown_model(&self, id: &str) -> Error {
        let rows = self.shared().state().session.models().unwrap_or_default();
        let ids: Vec<_> =
            std::iter::once(starter::ID).chain(rows.iter().map(|row| row.id.as_str())).collect();
        Error::not_found(
            "model.unknown",
            format!("There is no model \"{id}\" in the library, and no file with that name."),
            format!("Available models: {}. Add a GGUF file, or download more models.", ids.join(", ")),
        )
    }

    /// Has the worker open a file and say what it is.
    pub(crate) fn inspect(&self, location: Location) -> Result<Facts> {
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
        let here = self.here();
        let mut entries = vec![self.starter_entry(&here)?];
        entries.extend(rows.into_iter().map(|row| self.entry(row, &here)));
        entries.extend(self.remote_entries()?);
        Ok(entries)
    }

    fn starter_entry(&self, here: &Here) -> Result<ModelEntry> {
        let known = self.state().starter.clone();
        let facts = match known {
            Some(facts) => facts,
            // Ours, and whole: a glance from here is enough, so that the list never waits for an answer.
            None => {
                let facts = crate::worker::glance(&Location::BuiltIn)?;
                self.state().starter = Some(facts.clone());
                facts
            }
        };
        let sizes = serde_json::to_string(&facts.sizes).ok();
        let (state, fit) = {
            let state = self.state();
            (state.model_state(starter::ID), state.entry_fit(starter::ID, sizes.as_deref(), here))
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
            state,
            files: 1,
            disk_bytes: 0,
            fit,
            remote: None,
            embeds: false,
            skills: Some(skills_of(facts.skills)),
        })
    }

    pub(crate) fn entry(&self, row: ModelRow, here: &Here) -> ModelEntry {
        let is_there = self.io.exists(Path::new(&row.path)).unwrap_or(false);
        let problem = row.problem.as_deref().and_then(|json| serde_json::from_str(json).ok());
        let state = match (is_there, problem) {
            (false, _) => ModelState::Unusable { error: gone(&row) },
            (true, Some(error)) => ModelState::Unusable { error },
            (true, None) => self.state().model_state(&row.id),
        };
        let fit = self.state().entry_fit(&row.id, row.sizes.as_deref(), here);
        ModelEntry {
            id: row.id,
            name: row.name,
            source: source_of(&row.source),
            path: Some(row.path),
            bytes: u64::try_from(row.bytes).unwrap_or(0),
            architecture: row.architecture,
            parameters: u64::try_from(row.parameters).unwrap_or(0),
            dtype: row.dtype,
            context_length: row.context_length,
            state,
            files: row.files,
            disk_bytes: u64::try_from(row.disk_bytes).unwrap_or(0),
            fit,
            remote: None,
            embeds: row.sizes.as_deref().is_some_and(embeds),
            // What another version kept otherwise is as if nobody had looked.
            skills: row.skills.as_deref().and_then(|json| serde_json::from_str(json).ok()),
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

/// An entry of a file that has been looked at; `id`, `path` and `added_ms` are the caller's.
pub(crate) fn row_of(facts: Facts) -> ModelRow {
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    ModelRow {
        name: facts.name,
        bytes: signed(facts.bytes),
        architecture: facts.architecture,
        parameters: signed(facts.parameters),
        dtype: facts.dtype,
        context_length: facts.context_length,
        source: source_name(ModelSource::File),
        files: facts.files,
        disk_bytes: signed(facts.disk_bytes),
        fingerprint: facts.fingerprint,
        sizes: serde_json::to_string(&facts.sizes).ok(),
        skills: serde_json::to_string(&skills_of(facts.skills)).ok(),
        ..ModelRow::default()
    }
}

fn skills_of(skills: ModelCapabilities) -> ModelSkills {
    let thinking = match skills.thinking {
        engine::capabilities::Thinking::Never => Thinking::Never,
        engine::capabilities::Thinking::Always => Thinking::Always,
        engine::capabilities::Thinking::Switched => Thinking::Switched,
        engine::capabilities::Thinking::Graded => Thinking::Graded,
    };
    ModelSkills { tools: skills.tools, thinking }
}

/// By what is kept of a model's sizes.
fn embeds(sizes: &str) -> bool {
    serde_json::from_str(sizes).is_ok_and(|sizes: MemoryEstimate| sizes.embeds)
}

/// As it is kept.
pub(crate) fn source_name(source: ModelSource) -> String {
    serde_json::to_value(source).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// What another version kept counts as a file that the user has.
pub(crate) fn source_of(name: &str) -> ModelSource {
    serde_json::from_value(name.into()).unwrap_or(ModelSource::File)
}

fn gone(row: &ModelRow) -> ErrorInfo {
    let root = row.root.as_deref().filter(|root| !Path::new(root).exists());
    let (message, remedy) = match root {
        Some(root) => (
            format!("The folder {root} is missing, and with it {}.", row.path),
            "Connect the drive, or remove the model from the list.",
        ),
        None => (
            format!("The file {} no longer exists.", row.path),
            "Put it back or connect its drive. If it moved, remove the model from the list and add the file again.",
        ),
    };
    Error::not_found("model.file_gone", message, remedy).info
}

/// What a file or folder is called, without an ending.
fn title(path: &Path) -> String {
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// A name in lower case, with `-` for what is no letter, digit or dot.
fn id_of(title: &str) -> String {
    let name = title.to_lowercase();
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

/// An id that no entry has, removed ones counted.
pub(crate) fn unique_id(title: &str, rows: &[ModelRow]) -> String {
    let id = id_of(title);
    let id = id.as_str();
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
            assert_eq!(id_of(&title(Path::new(path))), expected);
        }
        assert_eq!(unique_id("Starter", &[]), "starter-2");
    }
}
