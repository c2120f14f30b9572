//! Verifies a model's files: hashes them and compares with what was recorded.

use std::path::{Path, PathBuf};

use session::{FileHashRow, ModelRow};

use crate::App;
use contract::protocol::WorkerRequest;
use contract::types::{AppEvent, FileVerified, ModelVerified, Trust};
use contract::{Error, Result};
use records::library_rows::HASH_MISMATCH;

/// Key under which a file's hash is recorded: its own path, whatever links lead to it.
pub(crate) fn key(path: &Path) -> String {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()).display().to_string()
}

impl App {
    /// Hashes all files of a model. What nothing is recorded of is recorded now.
    pub fn model_verify(&self, id: &str) -> Result<ModelVerified> {
        let entry = self.model_get(id)?;
        let Some(path) = entry.path else {
            return Err(Error::input(
                "model.built_in",
                "The built-in model is part of the program and has no file to verify.",
                "Verify the package of the program instead.",
            ));
        };
        let mut files = Vec::new();
        let mut trust: Option<Trust> = None;
        for path in model_files(&path)? {
            let key = key(&path);
            let hashed = hub::hash_file(&*self.ctx().io, &path, &mut |_, _| true)?;
            let Some((sha256, bytes)) = hashed else { return Err(Error::bug("a hash was stopped")) };
            let recorded = self.store().file_hash(&key)?;
            match &recorded {
                Some(row) => {
                    let of_row = serde_json::from_str(&row.trust).unwrap_or(Trust::Unknown);
                    // only as trusted as its weakest file
                    trust = Some(trust.map_or(of_row.clone(), |trust| weaker(trust, of_row)));
                }
                None => {
                    trust = Some(Trust::Unknown);
                    self.store().put_file_hash(&FileHashRow {
                        path: key,
                        bytes,
                        sha256: sha256.to_string(),
                        trust: serde_json::to_string(&Trust::Unknown).unwrap_or_default(),
                        at_ms: self.ctx().clock.now_utc_ms(),
                    })?;
                }
            }
            files.push(FileVerified {
                path: path.display().to_string(),
                bytes,
                sha256: sha256.to_string(),
                recorded: recorded.map(|row| row.sha256),
            });
        }
        let is_intact =
            |file: &FileVerified| file.recorded.as_ref().is_none_or(|recorded| *recorded == file.sha256);
        let intact = files.iter().all(is_intact);
        self.mark_mismatch(id, files.iter().find(|file| !is_intact(file)))?;
        Ok(ModelVerified { id: id.into(), trust: trust.unwrap_or(Trust::Unknown), files, intact })
    }

    /// A file that is not what was recorded of it is not loaded any more, until the user adds it again as it is, or it is
    /// what it was.
    fn mark_mismatch(&self, id: &str, wrong: Option<&FileVerified>) -> Result<()> {
        let row = self.store().models()?.into_iter().find(|row| row.id == id);
        let Some(row) = row else { return Ok(()) };
        let is_marked = row.problem.as_deref().is_some_and(|json| json.contains(HASH_MISMATCH));
        let problem = match wrong {
            Some(file) => {
                let recorded = file.recorded.as_deref().unwrap_or_default();
                let message = format!(
                    "{} is not the file that was verified before: its SHA-256 is {}, not {recorded}.",
                    file.path, file.sha256
                );
                let remedy = format!(
                    "Download it again. To use it as it is, unverified, add it again: nook models import \"{}\".",
                    file.path
                );
                let info = Error::input(HASH_MISMATCH, message, remedy).info;
                tracing::warn!(code = HASH_MISMATCH, "{}", info.message);
                self.services().audit_refusal(id, &info);
                Some(serde_json::to_string(&info).map_err(Error::bug)?)
            }
            None if is_marked => None,
            None => return Ok(()),
        };
        let row = ModelRow { problem, ..row };
        self.store().put_model(&row)?;
        self.ask(WorkerRequest::Unload { model: id.into() })?;
        let model = self.services().entry(row, &self.services().here());
        self.ctx().events.publish(AppEvent::ModelChanged { model });
        Ok(())
    }

    /// What is recorded of a model's files; they are unverified from now on.
    pub(crate) fn forget_hashes(&self, path: &Path) -> Result<()> {
        for path in model_files(&path.display().to_string())? {
            self.store().remove_file_hash(&key(&path))?;
        }
        Ok(())
    }
}

fn weaker(a: Trust, b: Trust) -> Trust {
    let rank = |trust: &Trust| match trust {
        Trust::Unknown => 0,
        Trust::Published => 1,
        Trust::Signed { .. } => 2,
    };
    if rank(&a) <= rank(&b) { a } else { b }
}

/// The files that a model consists of, whose names its container knows.
fn model_files(path: &str) -> Result<Vec<PathBuf>> {
    let path = Path::new(path);
    let file = weights::WeightFile::open(path)?;
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    let mut files: Vec<PathBuf> = file.parts().map(|part| folder.join(part.name)).collect();
    if files.len() == 1 && path.is_file() {
        files = vec![path.to_path_buf()];
    }
    Ok(files)
}
