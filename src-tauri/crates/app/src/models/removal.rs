//! Removing and restoring models: our own files go to a trash beside them, those of others are only
//! forgotten.

use std::path::{Path, PathBuf};

use session::ModelRow;

use crate::models::hub_client::CHUNK_LISTS;
use contract::protocol::WorkerRequest;
use contract::types::{AppEvent, Count, LibraryUse, ModelEntry, ModelSource, ModelUse, RemovedModel};
use contract::{Error, ErrorKind, Result};
use inference::convert::{self, on_load};

use crate::App;
use model_dirs::hf_cache;
use records::library_rows::source_of;
use records::model_reference::find_row;

/// In the folder of our own models.
const TRASH: &str = ".removed";

/// How long a removed model can be had back.
const KEPT_MS: i64 = 7 * 24 * 3600 * 1000;

impl App {
    /// Off the list. Files of our own can be had back for a week; files of others stay where they are.
    pub fn model_remove(&self, id: &str) -> Result<RemovedModel> {
        if id.contains('/')
            && self.ctx().backends.endpoints.model_entries()?.iter().any(|entry| entry.id == id)
        {
            return Err(Error::input(
                "model.remote",
                "This model is on another server and can't be removed here.",
                "Remove or turn off that server (nook endpoints rm ID).",
            ));
        }
        if id == contract::STARTER_ID {
            return Err(Error::new(
                ErrorKind::Conflict,
                "model.built_in",
                "The built-in model is part of Inglenook and can't be removed.",
                "It takes no additional disk space.",
            ));
        }
        if self.adapter_of(id).is_some() {
            return Err(Error::new(
                ErrorKind::Conflict,
                "model.tuned",
                "This model is the result of a fine-tuning run.",
                "Remove that run on the fine-tuning page.",
            ));
        }
        let rows = self.store().models()?;
        let Some(row) = find_row(&rows, id).cloned() else { return Err(self.unknown_model(id)) };
        let id = row.id.clone();
        let id = id.as_str();
        self.ask(WorkerRequest::Unload { model: id.into() })?;
        // What was made of it can be made again.
        on_load::forget(&*self.ctx().io, &self.dirs().data, &row.path);
        let now_ms = self.ctx().clock.now_utc_ms();
        let row = match self.owns(&row) {
            true => self.to_trash(row, now_ms)?,
            false => row,
        };
        let row = ModelRow { removed_ms: Some(now_ms), ..row };
        self.store().put_model(&row)?;
        self.ctx().events.publish(AppEvent::ModelRemoved { id: id.into() });
        Ok(self.removed(&row))
    }

    /// Back on the list, its files where they were. Errors: it was not removed, another file lies there now.
    pub fn model_restore(&self, id: &str) -> Result<ModelEntry> {
        let rows = self.store().all_models()?;
        let Some(row) = rows.into_iter().find(|row| row.id == id && row.removed_ms.is_some()) else {
            let message = format!("No removed model has the id \"{id}\".");
            return Err(Error::not_found(
                "model.not_removed",
                message,
                "Removed models can be restored for a week.",
            ));
        };
        let row = match row.was_at.clone() {
            Some(was_at) => self.bring_back(row, &was_at)?,
            None => row,
        };
        let row = ModelRow { removed_ms: None, was_at: None, ..row };
        self.store().put_model(&row)?;
        let entry = self.services().entry(row, &self.services().here());
        self.ctx().events.publish(AppEvent::ModelChanged { model: entry.clone() });
        Ok(entry)
    }

    /// The last one removed first.
    pub fn models_removed(&self) -> Result<Vec<RemovedModel>> {
        let mut rows = self.store().all_models()?;
        rows.retain(|row| row.removed_ms.is_some());
        rows.sort_by_key(|row| std::cmp::Reverse(row.removed_ms));
        Ok(rows.iter().map(|row| self.removed(row)).collect())
    }

    /// Removed models go for good; how many.
    pub fn models_purge(&self) -> Result<Count> {
        self.purge(i64::MAX)
    }

    /// What each model takes on disk.
    pub fn library_use(&self) -> Result<LibraryUse> {
        let (io, data) = (&*self.ctx().io, &self.dirs().data);
        let made = on_load::kept_bytes(io, data);
        let rows = self.store().all_models()?;
        let of = |row: &ModelRow| model_dirs::disk_bytes(Path::new(&row.path));
        let removed_bytes = rows.iter().filter(|row| row.was_at.is_some()).map(of).sum();
        let here = rows.iter().filter(|row| row.removed_ms.is_none());
        let mut models: Vec<ModelUse> = here
            .map(|row| ModelUse {
                id: row.id.clone(),
                source: source_of(&row.source),
                disk_bytes: of(row),
                made_bytes: made.get(&row.path).copied().unwrap_or(0),
            })
            .collect();
        models.sort_by_key(|model| std::cmp::Reverse(model.disk_bytes + model.made_bytes));
        let owned = models.iter().filter(|model| model.source == ModelSource::Owned);
        let owned_bytes = owned.map(|model| model.disk_bytes).sum::<u64>() + removed_bytes;
        Ok(LibraryUse { models, owned_bytes, removed_bytes, free_bytes: convert::free_bytes(data) })
    }

    /// At the start: what was removed long ago goes for good.
    pub(crate) fn tidy_models(&self) -> Result<()> {
        let before = self.ctx().clock.now_utc_ms().saturating_sub(KEPT_MS);
        let Count { count } = self.purge(before)?;
        if count > 0 {
            tracing::info!(count, "models that were removed long ago are gone for good");
        }
        Ok(())
    }

    /// Those removed before that moment. One that was found in a folder of others stays hidden: it would come back with
    /// the next look.
    fn purge(&self, before_ms: i64) -> Result<Count> {
        let rows = self.store().all_models()?;
        let mut count = 0;
        for row in rows.iter().filter(|row| row.removed_ms.is_some_and(|ms| ms < before_ms)) {
            if let Some(was_at) = &row.was_at {
                self.delete(Path::new(&row.path))?;
                self.forget_chunks(Path::new(was_at))?;
            } else if row.root.is_some() {
                continue;
            }
            self.store().remove_model(&row.id)?;
            count += 1;
        }
        Ok(Count { count })
    }

    /// Whether we may delete it: in our own folder, or put into the hub's cache by us, whatever the
    /// row says.
    fn owns(&self, row: &ModelRow) -> bool {
        let path = Path::new(&row.path);
        let is_ours = path.starts_with(self.own_models()) || hf_cache::is_cached(path);
        source_of(&row.source) == ModelSource::Owned && is_ours
    }

    fn removed(&self, row: &ModelRow) -> RemovedModel {
        let is_ours = row.was_at.is_some();
        RemovedModel {
            id: row.id.clone(),
            name: row.name.clone(),
            removed_ms: row.removed_ms.unwrap_or(0),
            disk_bytes: if is_ours { model_dirs::disk_bytes(Path::new(&row.path)) } else { 0 },
        }
    }

    fn to_trash(&self, row: ModelRow, now_ms: i64) -> Result<ModelRow> {
        let from = PathBuf::from(&row.path);
        if !from.exists() {
            return Ok(row);
        }
        if hf_cache::is_cached(&from) && !from.starts_with(self.own_models()) {
            let to = hf_cache::take_out(&*self.ctx().io, &from, &format!("{}-{now_ms}", row.id))?;
            let path = to.to_str().map(str::to_owned);
            let path =
                path.ok_or_else(|| Error::bug(format!("{} was Unicode and no longer is", to.display())))?;
            return Ok(ModelRow { was_at: Some(row.path), path, ..row });
        }
        let folder = self.own_models().join(TRASH).join(format!("{}-{now_ms}", row.id));
        let to = self.move_files(&from, &folder)?;
        Ok(ModelRow { was_at: Some(row.path), path: to, ..row })
    }

    fn bring_back(&self, row: ModelRow, was_at: &str) -> Result<ModelRow> {
        let to = Path::new(was_at);
        if to.exists() {
            let message = format!("There is now another file at {was_at}.");
            let remedy = "Move that file, then restore the model again.";
            return Err(Error::new(ErrorKind::Conflict, "model.place_taken", message, remedy));
        }
        if hf_cache::is_cached(to) && !to.starts_with(self.own_models()) {
            hf_cache::put_back(&*self.ctx().io, Path::new(&row.path), to)?;
            return Ok(ModelRow { path: was_at.to_owned(), ..row });
        }
        let folder = to.parent().unwrap_or(Path::new("")).to_owned();
        let path = self.move_files(Path::new(&row.path), &folder)?;
        Ok(ModelRow { path, ..row })
    }

    /// All files of a model into a folder on the same disk; the model's path there. A folder that is empty then goes.
    fn move_files(&self, from: &Path, folder: &Path) -> Result<String> {
        let io = &self.ctx().io;
        io.create_dir_all(folder)?;
        let to = folder.join(from.file_name().unwrap_or_default());
        match from.is_dir() {
            true => io.rename(from, &to)?,
            false => {
                let towers = lone_towers(from);
                for file in model_dirs::files_of(from).iter().filter(|file| file.exists()) {
                    io.rename(file, &folder.join(file.file_name().unwrap_or_default()))?;
                }
                for tower in towers {
                    let to = folder.join(tower.file_name().unwrap_or_default());
                    match to.exists() {
                        // Fetched again with another model meanwhile.
                        true => io.remove_file(&tower)?,
                        false => io.rename(&tower, &to)?,
                    }
                }
            }
        }
        self.sweep(from.parent());
        let text = to.to_str().map(str::to_owned);
        text.ok_or_else(|| Error::bug(format!("{} was Unicode and no longer is", to.display())))
    }

    /// All files of a model for good.
    pub(crate) fn delete(&self, path: &Path) -> Result<()> {
        let io = &self.ctx().io;
        if hf_cache::is_cached(path) && !path.starts_with(self.own_models()) {
            return hf_cache::delete(&**io, path);
        }
        let towers = lone_towers(path);
        for file in model_dirs::files_of(path).iter().filter(|file| file.exists()).chain(&towers) {
            io.remove_file(file)?;
        }
        if path.is_dir() {
            self.sweep(Some(path));
        }
        self.sweep(path.parent());
        Ok(())
    }

    /// The hashes of the chunks of files that were downloaded to this place.
    fn forget_chunks(&self, path: &Path) -> Result<()> {
        let lists = self.dirs().data.join(CHUNK_LISTS);
        for file in model_dirs::files_of(path) {
            if let Some(row) = self.store().file_hash(&crate::models::verify::key(&file))? {
                hub::remove_chunk_list(&*self.ctx().io, &lists, &row.sha256);
            }
        }
        Ok(())
    }

    /// Removes a folder within ours that has become empty, and those above it.
    fn sweep(&self, folder: Option<&Path>) {
        let own = self.own_models();
        let mut at = folder;
        while let Some(folder) = at.filter(|folder| folder.starts_with(&own) && *folder != own) {
            // one that still holds something stays
            if self.ctx().io.remove_folder(folder).is_err() {
                return;
            }
            at = folder.parent();
        }
    }
}

/// The vision towers in the folder of a GGUF that no other model there could need. One that is still being fetched counts.
fn lone_towers(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        return Vec::new();
    }
    let own = model_dirs::files_of(path);
    let name = |file: &Path| file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let entries = path.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let files = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let others = files.filter(|file| name(file).contains(".gguf") && !own.contains(file));
    let (towers, models): (Vec<_>, Vec<_>) = others.partition(|file| hub::is_vision_tower(&name(file)));
    if models.is_empty() { towers } else { Vec::new() }
}
