//! Imports models from elsewhere into the library: left in place, copied, or moved. Whatever
//! interrupts an import, the original data survives. A copy becomes visible completely or not at
//! all. A moved file leaves its old location only once it opens at the new one.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use io::IoError;
use session::ModelRow;

use crate::App;
use contract::protocol::{Facts, Location};
use contract::types::{AppEvent, ImportArgs, ImportHow, ImportProgress, ModelEntry, ModelSource};
use contract::{Error, ErrorKind, Result};
use records::library_rows::source_name;

/// A copy in the making, in the folder of our own models.
const UNFINISHED: &str = ".importing-";

/// Left free on the disk after a copy.
const HEADROOM: u64 = 256 << 20;

/// Between two events.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// Read and written at once.
const AT_ONCE: usize = 1 << 20;

impl App {
    /// Adds a model that lies elsewhere. Tells how far it is by events.
    pub fn model_import(&self, args: &ImportArgs) -> Result<ModelEntry> {
        match args.how {
            ImportHow::Link => self.model_add(&args.path),
            ImportHow::Copy | ImportHow::Move => {
                let outcome = self.bring(&args.path, args.how);
                self.services().models.cancelled_imports().remove(&args.path);
                if let Err(error) = &outcome {
                    self.tell_import(&args.path, (0, 0), Some(error));
                }
                outcome
            }
        }
    }

    /// Ends an import; what was copied so far goes. One that has ended is none of its business.
    pub fn model_import_cancel(&self, path: &str) -> Result<()> {
        self.services().models.cancelled_imports().insert(path.to_owned());
        Ok(())
    }

    fn bring(&self, asked: &str, how: ImportHow) -> Result<ModelEntry> {
        let named = asked.trim();
        let source = model_dirs::under_its_name(Path::new(named))
            .map_err(|error| IoError::new("open", Path::new(named), error))?;
        let text = source.to_str().map(str::to_owned).ok_or_else(|| not_unicode(&source))?;
        if how == ImportHow::Move && self.is_others(&source) {
            let message = format!("{} belongs to another program.", source.display());
            let remedy = "Use it in place (takes no space) or copy it.";
            return Err(Error::new(ErrorKind::Conflict, "import.others", message, remedy));
        }
        if source.starts_with(self.own_models()) {
            return self.model_add(&text);
        }
        let facts = self.inspect(Location::Path(text))?;
        let files = model_dirs::files_of(&source);
        let total: u64 = files.iter().filter_map(|file| Some(std::fs::metadata(file).ok()?.len())).sum();
        let own = self.own_models();
        self.ctx().io.create_dir_all(&own)?;
        let unfinished = own.join(format!("{UNFINISHED}{}", self.store().new_id()));
        self.ctx().io.create_dir_all(&unfinished)?;
        let brought = self
            .fill(asked, &files, &unfinished, how, total)
            .and_then(|()| self.accept(&source, &unfinished, &facts));
        let path = brought.inspect_err(|_| self.discard(&unfinished))?;
        let entry = self.model_add(&path)?;
        let entry = self.own(&entry.id, &own)?;
        if how == ImportHow::Move {
            self.leave(&files);
        }
        self.tell_import(asked, (total, total), None);
        Ok(entry)
    }

    /// In a folder of another program.
    fn is_others(&self, path: &Path) -> bool {
        self.running
            .model_roots
            .iter()
            .any(|root| root.path.canonicalize().is_ok_and(|root| path.starts_with(root)))
    }

    /// All files of a model into a folder: linked there where the disk is the same and they are to be moved, else copied.
    fn fill(&self, asked: &str, files: &[PathBuf], folder: &Path, how: ImportHow, total: u64) -> Result<()> {
        let mut done = 0;
        let mut told: Option<Duration> = None;
        let mut is_room_checked = false;
        for file in files {
            let to = folder.join(file.file_name().unwrap_or_default());
            if how == ImportHow::Move && !file.is_symlink() && self.ctx().io.link(file, &to).is_ok() {
                done += self.ctx().io.len(&to)?;
                continue;
            }
            if !std::mem::replace(&mut is_room_checked, true) {
                check_room(folder, total - done)?;
            }
            let mut source = io::open_regular_file(file)?;
            let mut buffer = vec![0; AT_ONCE];
            self.ctx()
                .io
                .write_stream(&to, &mut |out: &mut dyn Write| {
                    loop {
                        let n = source.read(&mut buffer)?;
                        if n == 0 {
                            return Ok(());
                        }
                        out.write_all(&buffer[..n])?;
                        done += n as u64;
                        let now = self.ctx().clock.monotonic();
                        if told.is_none_or(|told| now >= told + TELL_EVERY) {
                            told = Some(now);
                            // the last step is reported when the model is in the library
                            self.tell_import(asked, (done.min(total.saturating_sub(1)), total), None);
                        }
                        if self.services().models.cancelled_imports().contains(asked) {
                            return Err(std::io::Error::from(std::io::ErrorKind::Interrupted));
                        }
                    }
                })
                .map_err(|error| match error.io_kind() {
                    std::io::ErrorKind::Interrupted => stopped(),
                    _ => error.into(),
                })?;
        }
        Ok(())
    }

    /// Gives the folder its name, once what lies in it is the model that was meant. The model's path there.
    fn accept(&self, source: &Path, unfinished: &Path, facts: &Facts) -> Result<String> {
        let at = |folder: &Path| match source.is_dir() {
            true => folder.to_owned(),
            false => folder.join(source.file_name().unwrap_or_default()),
        };
        let copy = at(unfinished);
        let found = inference::guarded(|| {
            inference::model_file::glance(&Location::Path(copy.to_string_lossy().into_owned()))
        })?;
        if (found.fingerprint, found.disk_bytes) != (facts.fingerprint.clone(), facts.disk_bytes) {
            let message = format!("{} changed while it was being read.", source.display());
            return Err(Error::input(
                "import.changed",
                message,
                "Import it again when no other program writes to it.",
            ));
        }
        let name = match source.is_dir() {
            true => model_dirs::name_of(source),
            false => source.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        };
        let own = self.own_models();
        let numbered = (1..).map(|n: u32| if n == 1 { name.clone() } else { format!("{name}-{n}") });
        let folder = numbered.map(|name| own.join(name)).find(|path| !path.exists());
        let folder = folder.expect("there are more numbers than folders");
        self.ctx().io.rename(unfinished, &folder)?;
        let path = at(&folder);
        path.to_str().map(str::to_owned).ok_or_else(|| not_unicode(&path))
    }

    /// The entry is of our own files, below `root`.
    pub(crate) fn own(&self, id: &str, root: &Path) -> Result<ModelEntry> {
        let rows = self.store().models()?;
        if let Some(row) = rows.into_iter().find(|row| row.id == id) {
            let root = root.to_str().map(str::to_owned);
            let row = ModelRow { source: source_name(ModelSource::Owned), root, ..row };
            self.store().put_model(&row)?;
            let model = self.services().entry(row, &self.services().here());
            self.ctx().events.publish(AppEvent::ModelChanged { model });
        }
        self.model_get(id)
    }

    /// Removes the originals of a move. A file that can't be removed is reported: it then exists
    /// twice, and nothing is lost.
    fn leave(&self, files: &[PathBuf]) {
        for file in files {
            if let Err(error) = self.ctx().io.remove_file(file) {
                let message =
                    format!("The model was imported, but its old file could not be removed: {error}.");
                self.ctx()
                    .events
                    .notice(Error::input("import.old_stays", message, "Delete that file yourself.").info);
            }
        }
    }

    fn discard(&self, folder: &Path) {
        for file in self.ctx().io.list(folder).unwrap_or_default() {
            if let Err(error) = self.ctx().io.remove_file(&file) {
                tracing::warn!("{error}");
            }
        }
        if let Err(error) = self.ctx().io.remove_folder(folder) {
            tracing::warn!("{error}");
        }
    }

    /// At the start, where no other process is at it: what an interrupted import left. Files that were to be moved are
    /// still at their old place too.
    pub(crate) fn tidy_imports(&self) {
        if !self.store().is_alone() {
            return;
        }
        let entries = self.ctx().io.list(&self.own_models()).unwrap_or_default();
        entries
            .iter()
            .filter(|path| model_dirs::name_of(path).starts_with(UNFINISHED))
            .for_each(|path| self.discard(path));
    }

    fn tell_import(&self, path: &str, (done_bytes, total_bytes): (u64, u64), error: Option<&Error>) {
        let error = error.map(|error| error.info.clone());
        let progress = ImportProgress { path: path.to_owned(), done_bytes, total_bytes, error };
        self.ctx().events.publish(AppEvent::ModelImport { progress });
    }
}

/// Error `import.no_space`. If the free space is unknown, the copy is tried.
fn check_room(folder: &Path, bytes: u64) -> Result<()> {
    let Some(free) = inference::convert::free_bytes(folder) else { return Ok(()) };
    let needed = bytes.saturating_add(HEADROOM);
    if needed <= free {
        return Ok(());
    }
    let message =
        format!("The copy needs {bytes} bytes plus {HEADROOM} to spare, but the disk has only {free} free.");
    let remedy = "Free up space, or use the model in place, which needs none.";
    Err(Error::new(ErrorKind::Limit, "import.no_space", message, remedy))
}

fn stopped() -> Error {
    Error::new(
        ErrorKind::Conflict,
        "import.stopped",
        "The import was canceled.",
        "No files were left behind.",
    )
}

fn not_unicode(path: &Path) -> Error {
    let message = format!("The path {} is not valid Unicode.", path.display());
    Error::input("model.path_not_unicode", message, "Rename the file or its folder.")
}
