//! Scans all folders for models and reads them in place: those of other programs, those that the
//! user added, our own. A file is listed once, whatever links lead to it. A damaged one is listed
//! with its reason, and models on a detached drive stay listed. Files unchanged since the last scan
//! are not opened.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use session::ModelRow;

use crate::App;
use contract::protocol::Location;
use contract::types::{AppEvent, ErrorInfo, ModelFolder, ModelSource, Scan};
use contract::{Error, Result};
use inference::vision_file;
use model_dirs::ModelRoot;
use records::library_rows::{count_found_in, has_all_skills, row_of, source_name, stored_skills, unique_id};

/// Other programs' files that lie beside models that we run.
const NOT_OURS: [&str; 2] = ["model.architecture_unknown", "model.config_missing"];

impl App {
    /// Scans all folders; additions, changes and removals are also sent as events.
    pub fn models_scan(&self) -> Result<Scan> {
        let _alone = self.services().models.scanning.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let known = self.store().all_models()?;
        let mut seen = ListedModels::of(&known);
        let mut folders = Vec::new();
        for root in self.roots()? {
            let (text, source) = (root.path.display().to_string(), root.source);
            let found = match model_dirs::candidates(&root) {
                Ok(found) => found,
                // A missing folder of another program is no error.
                Err(_) if source != ModelSource::Folder => continue,
                Err(error) => {
                    let models = count_found_in(&known, &text);
                    folders.push(ModelFolder {
                        path: text.clone(),
                        source,
                        models,
                        error: Some(away(&text, &error)),
                    });
                    continue;
                }
            };
            self.take(&root, &found, &known, &mut seen)?;
            let rows = self.store().models()?;
            folders.push(ModelFolder {
                models: count_found_in(&rows, &text),
                path: text,
                source,
                error: None,
            });
        }
        self.complete_named()?;
        Ok(Scan { folders, models: self.models_list()? })
    }

    /// Files that the user named lie in no folder that is looked through: what an earlier version did not ask of them is
    /// asked now. One that has changed since waits for its loading.
    fn complete_named(&self) -> Result<()> {
        let rows = self.store().models()?.into_iter();
        for row in rows.filter(|row| row.root.is_none() && row.problem.is_none() && !has_skills(row)) {
            let path = Path::new(&row.path);
            if row.stamp.is_empty() || model_dirs::stamp(path) != row.stamp {
                continue;
            }
            let Ok(facts) =
                inference::guarded(|| inference::model_file::glance(&Location::Path(row.path.clone())))
            else {
                continue;
            };
            let row = ModelRow { skills: row_of(facts).skills, ..row };
            self.store().put_model(&row)?;
            let model = self.services().entry(row, &self.services().here());
            self.ctx().events.publish(AppEvent::ModelChanged { model });
        }
        Ok(())
    }

    /// Folders that are looked through, without looking.
    pub fn model_folders(&self) -> Result<Vec<ModelFolder>> {
        let rows = self.store().models()?;
        let folder = |ModelRoot { path, source }: ModelRoot| {
            let text = path.display().to_string();
            let error = std::fs::read_dir(&path).err().map(|error| away(&text, &error));
            (error.is_none() || source == ModelSource::Folder).then(|| ModelFolder {
                models: count_found_in(&rows, &text),
                path: text,
                source,
                error,
            })
        };
        Ok(self.roots()?.into_iter().filter_map(folder).collect())
    }

    /// Models in it are listed from now on; nothing is copied.
    pub fn model_folder_add(&self, path: &str) -> Result<Scan> {
        let absolute = std::fs::canonicalize(path.trim())
            .map_err(|error| io::IoError::new("open", Path::new(path), error))?;
        let Some(text) = absolute.to_str().filter(|_| absolute.is_dir()) else {
            let message = format!("{} is not a folder.", absolute.display());
            return Err(Error::input(
                "library.no_folder",
                message,
                "Choose a folder that contains models. Add single files directly.",
            ));
        };
        self.store().add_model_folder(text)?;
        self.models_scan()
    }

    /// Its models leave the list; nothing on disk changes.
    pub fn model_folder_remove(&self, path: &str) -> Result<()> {
        if !self.store().remove_model_folder(path)? {
            let message = format!("{path} is not one of the added folders.");
            return Err(Error::not_found("library.no_folder", message, "See `nook models folders`."));
        }
        let rows = self.store().all_models()?;
        rows.iter().filter(|row| row.root.as_deref() == Some(path)).try_for_each(|row| self.drop_row(&row.id))
    }

    /// In the order of precedence: of one file in several places the first is shown.
    fn roots(&self) -> Result<Vec<ModelRoot>> {
        let own = ModelRoot { path: self.own_models(), source: ModelSource::Owned };
        let added = self.store().model_folders()?;
        let added =
            added.into_iter().map(|path| ModelRoot { path: path.into(), source: ModelSource::Folder });
        let others = if self.shows_other_programs()? { self.running.model_roots.clone() } else { Vec::new() };
        Ok(std::iter::once(own).chain(added).chain(others).collect())
    }

    /// Where copies and downloads of our own lie.
    pub(crate) fn own_models(&self) -> PathBuf {
        self.dirs().data.join("models")
    }

    /// One root: new and changed files become entries, those that are gone from it leave.
    fn take(
        &self,
        root: &ModelRoot,
        found: &[PathBuf],
        known: &[ModelRow],
        seen: &mut ListedModels,
    ) -> Result<()> {
        let root_text = root.path.display().to_string();
        let mut there = HashSet::new();
        for path in found {
            // a name that is no Unicode can't be kept or shown
            let Some(text) = path.to_str() else { continue };
            there.insert(text);
            let row = known.iter().find(|row| row.path == text);
            let stamp = model_dirs::stamp(path);
            if row.is_some_and(|row| row.removed_ms.is_some() || is_known(row, &stamp)) {
                continue;
            }
            if row.is_none() && !seen.is_new_place(path) {
                continue;
            }
            let looked = inference::guarded(|| inference::model_file::glance(&Location::Path(text.into())));
            let mut looked = match looked {
                Ok(facts) if row.is_none() && !seen.is_new_content(&facts.fingerprint, facts.bytes) => {
                    continue;
                }
                Ok(facts) => row_of(facts),
                Err(error) if root.source != ModelSource::Folder && NOT_OURS.contains(&error.code()) => {
                    continue;
                }
                Err(error) => damaged(path, &error),
            };
            if path.is_dir() || looked.name.is_empty() {
                looked.name = title(path);
            }
            looked.path = text.to_owned();
            looked.stamp = stamp;
            let disk_bytes = model_dirs::disk_bytes(path);
            looked.disk_bytes = i64::try_from(disk_bytes).unwrap_or(i64::MAX);
            self.keep_found(looked, row, root, &root_text)?;
        }
        for row in
            known.iter().filter(|row| row.root.as_deref() == Some(&root_text) && row.removed_ms.is_none())
        {
            if !there.contains(row.path.as_str()) && !Path::new(&row.path).exists() {
                self.drop_row(&row.id)?;
            }
        }
        Ok(())
    }

    fn keep_found(
        &self,
        looked: ModelRow,
        row: Option<&ModelRow>,
        root: &ModelRoot,
        root_text: &str,
    ) -> Result<()> {
        let row = match row {
            // the user's own naming of it, and its place in the list, stay
            Some(row) => ModelRow {
                id: row.id.clone(),
                added_ms: row.added_ms,
                source: row.source.clone(),
                root: row.root.clone(),
                ..looked
            },
            None => {
                let all = self.store().all_models()?;
                ModelRow {
                    id: unique_id(&title(Path::new(&looked.path)), &all),
                    added_ms: self.ctx().clock.now_utc_ms(),
                    source: source_name(root.source),
                    root: Some(root_text.to_owned()),
                    ..looked
                }
            }
        };
        self.store().put_model(&row)?;
        let model = self.services().entry(row, &self.services().here());
        self.ctx().events.publish(AppEvent::ModelChanged { model });
        Ok(())
    }

    /// Out of the list; its file is not touched.
    pub(crate) fn drop_row(&self, id: &str) -> Result<()> {
        self.store().remove_model(id)?;
        self.ctx().events.publish(AppEvent::ModelRemoved { id: id.into() });
        Ok(())
    }
}

/// What has been listed already.
struct ListedModels {
    places: HashSet<PathBuf>,
    /// Fingerprint and bytes of weights.
    contents: HashSet<(String, u64)>,
}

impl ListedModels {
    fn of(rows: &[ModelRow]) -> Self {
        let real = |row: &ModelRow| std::fs::canonicalize(&row.path).ok();
        let content = |row: &ModelRow| {
            let is_there = !row.fingerprint.is_empty() && Path::new(&row.path).exists();
            is_there.then(|| (row.fingerprint.clone(), u64::try_from(row.bytes).unwrap_or(0)))
        };
        Self {
            places: rows.iter().filter_map(real).collect(),
            contents: rows.iter().filter_map(content).collect(),
        }
    }

    /// By the file's real place: links lead to one.
    fn is_new_place(&mut self, path: &Path) -> bool {
        std::fs::canonicalize(path).is_ok_and(|real| self.places.insert(real))
    }

    /// Copies of one file are one model.
    fn is_new_content(&mut self, fingerprint: &str, bytes: u64) -> bool {
        self.contents.insert((fingerprint.to_owned(), bytes))
    }
}

/// Whether all is known of a file that has this stamp now. What an earlier version looked at lacks what a model can do.
fn is_known(row: &ModelRow, stamp: &str) -> bool {
    row.stamp == stamp && !stamp.is_empty() && (has_skills(row) || row.problem.is_some())
}

/// Whether it is known what a model can do, also since a vision tower has come or gone beside it.
fn has_skills(row: &ModelRow) -> bool {
    let is_gguf = row.path.to_ascii_lowercase().ends_with(".gguf");
    has_all_skills(row)
        && stored_skills(row).is_some_and(|skills| {
            !is_gguf || skills.images == vision_file::has_tower_beside(Path::new(&row.path))
        })
}

/// A file's own name; for a folder of the hub's cache that of its repository.
fn title(path: &Path) -> String {
    let of_hub = path.ancestors().map(model_dirs::name_of).find_map(|name| {
        let (_, repository) = name.strip_prefix("models--")?.rsplit_once("--")?;
        Some(repository.to_owned())
    });
    match of_hub.filter(|_| path.is_dir()) {
        Some(repository) => repository,
        None if path.is_dir() => model_dirs::name_of(path),
        None => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    }
}

/// Lists an unusable file as an entry, so that the user sees why it is missing.
fn damaged(path: &Path, error: &Error) -> ModelRow {
    ModelRow {
        name: title(path),
        problem: serde_json::to_string(&error.info).ok(),
        files: u32::try_from(model_dirs::files_of(path).len()).unwrap_or(u32::MAX),
        ..ModelRow::default()
    }
}

fn away(path: &str, error: &std::io::Error) -> ErrorInfo {
    let message = format!("The folder {path} can't be read: {error}.");
    let remedy = "Connect its drive, or remove the folder from the list. Models found there stay listed.";
    Error::input("library.folder_gone", message, remedy).info
}
