//! Indexes of a project's files that are stored with the project: words, and vectors of the embedding model.
//!
//! The store is never taken while an index is locked.

use contract::Result;
use file_search::{PassageHit, SearchCache, SearchedFile, vectors_from_bytes, vectors_key, vectors_to_bytes};

use crate::App;

impl App {
    /// All passages of files that are about to be searched. The index of a project's files is read, or made and stored.
    pub(super) fn passages(&self, project: Option<&str>, files: &[SearchedFile]) -> Result<Vec<PassageHit>> {
        let cache = || self.services().attachments.search_cache();
        let project = project.filter(|_| files.iter().all(|file| file.from_project));
        let Some(folder) = project.filter(|_| !files.is_empty() && !cache().is_ready(files)) else {
            return cache().passages(files, None);
        };
        let key = SearchCache::index_key(files);
        let stored = self.store().search_index(folder, &key)?;
        let (passages, index) = {
            let mut cache = cache();
            (cache.passages(files, stored.as_deref())?, cache.index_to_store(files)?)
        };
        if let Some(index) = index {
            self.store().put_search_index(folder, &key, &index)?;
        }
        Ok(passages)
    }

    /// As `near_now`; the vectors of a project's files are read, or computed and stored.
    pub(super) fn near(
        &self,
        project: Option<&str>,
        files: &[SearchedFile],
        passages: &[PassageHit],
        question: &str,
    ) -> Result<Vec<usize>> {
        let (Some(folder), Some(model)) = (project, self.embedding_model()?) else {
            return self.near_now(files, passages, question);
        };
        let index = || self.services().attachments.embedding_index();
        for (n, file) in files.iter().enumerate().filter(|(_, file)| file.from_project) {
            let key = (file.sha256.clone(), file.kind);
            if index().of(&model).get(&key).is_some() {
                continue;
            }
            let n_passages = passages.iter().filter(|it| it.file == n).count();
            let stored = self.store().search_index(folder, &vectors_key(&model, &key))?;
            if let Some(vectors) = stored.and_then(|bytes| vectors_from_bytes(&bytes, n_passages)) {
                index().of(&model).keep(key, vectors);
            }
        }
        let near = self.near_now(files, passages, question)?;
        let computed = index().of(&model).take_computed();
        let is_stored = |sha256: &str| files.iter().any(|file| file.from_project && file.sha256 == *sha256);
        for (key, vectors) in computed.into_iter().filter(|(key, _)| is_stored(&key.0)) {
            self.store().put_search_index(folder, &vectors_key(&model, &key), &vectors_to_bytes(&vectors))?;
        }
        Ok(near)
    }
}
