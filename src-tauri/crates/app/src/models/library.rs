//! The model library: the starter, and files that stay where the user has them.

use std::path::Path;

use contract::protocol::{Location, ModelRef, WorkerRequest};
use contract::types::{AppEvent, ErrorInfo, ModelEntry, ModelSource, ModelState};
use contract::{Error, ModelFacts, Responder, Result, STARTER_ID};
use inference::estimate::MachineFacts as Machine;
use records::library_rows::{self, hash_mismatch, row_of, skills_of, source_name, unique_id};
use records::model_reference::find_row;
use session::ModelRow;

use crate::App;
use crate::Services;

impl App {
    /// The starter first, then files in the order in which they were added, results of fine-tuning, and models of other
    /// servers.
    pub fn models_list(&self) -> Result<Vec<ModelEntry>> {
        self.services().model_entries()
    }

    pub fn model_get(&self, id: &str) -> Result<ModelEntry> {
        // Every request asks for one: the others are described only where that is needed.
        if let Some(entry) = self.services().own_entry(id)? {
            return Ok(entry);
        }
        let entries = self.models_list()?;
        let is_known = entries.iter().any(|entry| entry.id == id);
        let row =
            if is_known { None } else { find_row(&self.store().models()?, id).map(|row| row.id.clone()) };
        let id = row.as_deref().unwrap_or(id);
        entries.into_iter().find(|entry| entry.id == id).ok_or_else(|| self.unknown_model(id))
    }

    /// Adds a GGUF file or a safetensors folder after checking it wholly. A path that is there already is
    /// checked again and keeps its id.
    pub fn model_add(&self, path: &str) -> Result<ModelEntry> {
        let path = path.trim();
        if path.is_empty() {
            return Err(Error::input("model.no_path", "No file was given.", "Give the path of a GGUF file."));
        }
        let absolute = model_dirs::under_its_name(Path::new(path))
            .map_err(|error| io::IoError::new("open", Path::new(path), error))?;
        let Some(text) = absolute.to_str().map(str::to_owned) else {
            let message = format!("The path {} is not valid Unicode.", absolute.display());
            return Err(Error::input("model.path_not_unicode", message, "Rename the file or its folder."));
        };
        let facts = self.inspect(Location::Path(text.clone()))?;
        // one that was removed is among them: it is back with its id
        let rows = self.store().all_models()?;
        let known = rows.iter().find(|row| row.path == text).cloned();
        let new = || ModelRow {
            id: unique_id(&title(&absolute), &rows),
            added_ms: self.ctx().clock.now_utc_ms(),
            source: source_name(self.source_at(&absolute)),
            ..ModelRow::default()
        };
        if known.as_ref().is_some_and(|row| hash_mismatch(row).is_some()) {
            self.forget_hashes(&absolute)?;
        }
        let ModelRow { id, added_ms, source, root, .. } = known.unwrap_or_else(new);
        let disk_bytes = i64::try_from(model_dirs::disk_bytes(&absolute)).unwrap_or(i64::MAX);
        let stamp = model_dirs::stamp(&absolute);
        let row = ModelRow { id, path: text, added_ms, source, root, disk_bytes, stamp, ..row_of(facts) };
        self.store().put_model(&row)?;
        let entry = self.services().entry(row, &self.services().here());
        self.ctx().events.publish(AppEvent::ModelChanged { model: entry.clone() });
        Ok(entry)
    }

    /// A file in our own folder is ours.
    fn source_at(&self, path: &Path) -> ModelSource {
        if path.starts_with(self.own_models()) { ModelSource::Owned } else { ModelSource::File }
    }

    /// Who answers under a name: a library id, one with the name of a fine-tuning run, or a path.
    pub fn responder(&self, model: &str) -> Result<Responder> {
        if model == STARTER_ID {
            return Ok(Responder::Local(ModelRef { id: model.into(), location: Location::BuiltIn }));
        }
        if let Some(tuned) = self.tuned_model(model)? {
            return Ok(tuned);
        }
        let rows = self.store().models()?;
        let row = rows.iter().find(|row| row.id == model);
        if row.is_none()
            && let Some(reference) = self.remote_model(model)?
        {
            return Ok(Responder::Remote(reference));
        }
        let (id, path) = match row {
            Some(row) => (row.id.as_str(), row.path.clone()),
            None if Path::new(model).exists() => (model, model.to_owned()),
            None => {
                let row = find_row(&rows, model).ok_or_else(|| self.unknown_model(model))?;
                (row.id.as_str(), row.path.clone())
            }
        };
        Ok(Responder::Local(ModelRef { id: id.into(), location: Location::Path(path) }))
    }

    /// Who answers next under a name. A file that was replaced since it was looked at is looked at again, with a notice.
    ///
    /// Errors: `model.hash_mismatch` for a file that was found to differ from what its publisher lists.
    pub(crate) fn current_responder(&self, model: &str) -> Result<Responder> {
        let row = self.store().models()?.into_iter().find(|row| row.id == model);
        if let Some(row) = row {
            if let Some(error) = hash_mismatch(&row) {
                return Err(error.into());
            }
            self.recheck_replaced(row)?;
        }
        self.responder(model)
    }

    fn recheck_replaced(&self, row: ModelRow) -> Result<()> {
        let path = Path::new(&row.path);
        let stamp = model_dirs::stamp(path);
        if stamp.is_empty() || row.stamp.is_empty() || stamp == row.stamp {
            return Ok(());
        }
        // What can't be read is explained when it is loaded.
        let looked = inference::guarded(|| inference::model_file::glance(&Location::Path(row.path.clone())));
        let Ok(facts) = looked else { return Ok(()) };
        let is_other = !row.fingerprint.is_empty() && facts.fingerprint != row.fingerprint;
        let disk_bytes = i64::try_from(model_dirs::disk_bytes(path)).unwrap_or(i64::MAX);
        let ModelRow { id, path, added_ms, source, root, .. } = row;
        let row =
            ModelRow { id: id.clone(), path, added_ms, source, root, disk_bytes, stamp, ..row_of(facts) };
        let (name, path) = (row.name.clone(), row.path.clone());
        self.store().put_model(&row)?;
        let model = self.services().entry(row, &self.services().here());
        self.ctx().events.publish(AppEvent::ModelChanged { model });
        if is_other {
            self.ask(WorkerRequest::Unload { model: id })?;
            self.ctx().events.notice(
                Error::input(
                    "model.replaced",
                    format!("The file of {name} was replaced by another one: {path}."),
                    "Your chats continue with the new file and are read again from their beginning.",
                )
                .info,
            );
        }
        Ok(())
    }

    pub(crate) fn unknown_model(&self, id: &str) -> Error {
        let rows = self.store().models().unwrap_or_default();
        if let Some(address) = hub::ModelAddress::parse(id) {
            let repository = &address.repository;
            return Error::not_found(
                "model.unknown",
                format!("There is no model \"{id}\" in the library, and no file with that name."),
                format!(
                    "If you mean {repository} on Hugging Face, download it first (nook models pull {id})."
                ),
            );
        }
        let ids: Vec<_> = std::iter::once(STARTER_ID).chain(rows.iter().map(|row| row.id.as_str())).collect();
        Error::not_found(
            "model.unknown",
            format!("There is no model \"{id}\" in the library, and no file with that name."),
            format!("Available models: {}. Add a GGUF file, or download more models.", ids.join(", ")),
        )
    }

    /// Has the worker open a file and say what it is.
    pub(crate) fn inspect(&self, location: Location) -> Result<ModelFacts> {
        let backends = &self.ctx().backends;
        backends.replies.call(&backends.replies.facts, |request| {
            backends.ask(WorkerRequest::Inspect { request, location })
        })?
    }
}

impl Services {
    pub(crate) fn model_entries(&self) -> Result<Vec<ModelEntry>> {
        let rows = self.store().models()?;
        let here = self.here();
        let mut entries = vec![self.starter_entry(&here)?];
        entries.extend(rows.into_iter().map(|row| self.entry(row, &here)));
        entries.extend(self.tuned_entries(&entries)?);
        entries.extend(self.ctx.backends.endpoints.model_entries()?);
        Ok(entries)
    }

    /// Describes the starter or a file of the library, by its id.
    fn own_entry(&self, id: &str) -> Result<Option<ModelEntry>> {
        if id == STARTER_ID {
            return self.starter_entry(&self.here()).map(Some);
        }
        let row = self.store().models()?.into_iter().find(|row| row.id == id);
        Ok(row.map(|row| self.entry(row, &self.here())))
    }

    fn starter_entry(&self, here: &Machine) -> Result<ModelEntry> {
        let facts = match self.models.starter.get() {
            Some(facts) => facts.clone(),
            // Ours, and whole: reading its header is enough, so that the list never waits for an answer.
            None => {
                let facts = inference::model_file::glance(&Location::BuiltIn)?;
                self.models.starter.get_or_init(|| facts).clone()
            }
        };
        let capabilities = serde_json::to_string(&facts.sizes).ok();
        let (state, fit) =
            (self.models.state(STARTER_ID), self.entry_fit(STARTER_ID, capabilities.as_deref(), here));
        let skills = skills_of(&facts);
        Ok(ModelEntry {
            id: STARTER_ID.into(),
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
            only_drafts: false,
            skills: Some(skills),
        })
    }

    pub(crate) fn entry(&self, row: ModelRow, here: &Machine) -> ModelEntry {
        let is_there = self.ctx.io.exists(Path::new(&row.path)).unwrap_or(false);
        let problem = row.problem.as_deref().and_then(|json| serde_json::from_str(json).ok());
        let state = match (is_there, problem) {
            (false, _) => ModelState::Unusable { error: gone(&row) },
            (true, Some(error)) => ModelState::Unusable { error },
            (true, None) => self.models.state(&row.id),
        };
        // An assistant takes memory only beside the model that it drafts for.
        let sizes = row.sizes.as_deref().filter(|_| !library_rows::only_drafts(&row));
        let fit = self.entry_fit(&row.id, sizes, here);
        library_rows::entry(row, state, fit)
    }
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
