//! Searches files that are too long for the model for passages that answer a question.

use session::PassageIndex;

use crate::nearness::joined;
use crate::passage_hit::{PassageHit, SearchedFile};
use contract::Result;
use contract::types::AttachmentKind;
use documents::chunking::cut;
use documents::sha256;

/// The files that were searched last, ready to be searched again: drafts ask with every word.
#[derive(Default)]
pub struct SearchCache {
    ready: Option<IndexedFiles>,
}

struct IndexedFiles {
    /// Texts and kinds of the files, in order.
    key: Vec<(String, AttachmentKind)>,
    passages: Vec<PassageHit>,
    index: PassageIndex,
    is_stored: bool,
}

fn key_of(files: &[SearchedFile]) -> Vec<(String, AttachmentKind)> {
    files.iter().map(|file| (file.sha256.clone(), file.kind)).collect()
}

impl SearchCache {
    /// Name of the stored index of these files: others have another.
    pub fn index_key(files: &[SearchedFile]) -> String {
        let lines = files.iter().map(|file| format!("{} {}\n", file.sha256, file.kind.name()));
        format!("words {}", sha256(lines.collect::<String>()))
    }

    /// Whether these files can be searched without being read again.
    pub fn is_ready(&self, files: &[SearchedFile]) -> bool {
        self.ready.as_ref().is_some_and(|ready| ready.key == key_of(files))
    }

    /// All passages of `files`. `stored`: their index as it was stored; one that does not fit them is made again.
    pub fn passages(&mut self, files: &[SearchedFile], stored: Option<&[u8]>) -> Result<Vec<PassageHit>> {
        Ok(self.ready(files, stored)?.passages.clone())
    }

    /// The index of `files` to be stored. None: it was read from what is stored, or other files were searched since.
    pub fn index_to_store(&mut self, files: &[SearchedFile]) -> Result<Option<Vec<u8>>> {
        match &mut self.ready {
            Some(ready) if !ready.is_stored && ready.key == key_of(files) => {
                ready.is_stored = true;
                Ok(Some(ready.index.to_bytes()?))
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Passages of `files`, the best first, at most `most`; `near` are those that are near to the question by what they
    /// mean. A new file of which nothing matches is shown from its beginning: `begins` of its passages.
    pub fn find(
        &mut self,
        files: &[SearchedFile],
        question: &str,
        near: &[usize],
        [most, begins]: [usize; 2],
    ) -> Result<Vec<PassageHit>> {
        let ready = self.ready(files, None)?;
        let by_words: Vec<usize> = ready.index.rank(question, most)?.into_iter().map(|(at, _)| at).collect();
        let ranked = joined([&by_words, near], most);
        let mut found: Vec<PassageHit> =
            ranked.into_iter().filter_map(|at| ready.passages.get(at).cloned()).collect();
        for (file, _) in files.iter().enumerate().filter(|(_, it)| it.is_new) {
            if !found.iter().any(|it| it.file == file) {
                found.extend(ready.passages.iter().filter(|it| it.file == file).take(begins).cloned());
            }
        }
        Ok(found)
    }

    /// Nothing is kept any more.
    pub fn forget(&mut self) {
        self.ready = None;
    }

    fn ready(&mut self, files: &[SearchedFile], stored: Option<&[u8]>) -> Result<&IndexedFiles> {
        let key = key_of(files);
        let kept = self.ready.take().filter(|ready| ready.key == key);
        let ready = match kept {
            Some(ready) => ready,
            None => {
                let of_file = |(file, searched): (usize, &SearchedFile)| {
                    let passages = cut(&searched.text, searched.kind == AttachmentKind::Pdf);
                    passages.into_iter().map(move |passage| PassageHit { file, passage })
                };
                let passages: Vec<PassageHit> = files.iter().enumerate().flat_map(of_file).collect();
                let stored = stored.and_then(|bytes| PassageIndex::from_bytes(bytes).ok());
                let stored = stored.filter(|index| index.n_passages().is_ok_and(|n| n == passages.len()));
                let is_stored = stored.is_some();
                let texts = passages.iter().map(|it| &files[it.file].text[it.passage.range.clone()]);
                let index = match stored {
                    Some(index) => index,
                    None => PassageIndex::new(texts)?,
                };
                IndexedFiles { key, passages, index, is_stored }
            }
        };
        Ok(self.ready.insert(ready))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(id: &str, text: &str, is_new: bool) -> SearchedFile {
        SearchedFile {
            id: id.into(),
            name: format!("{id}.txt"),
            kind: AttachmentKind::Text,
            sha256: documents::sha256(text),
            text: text.into(),
            is_new,
            from_project: false,
        }
    }

    #[test]
    fn passages_come_from_the_files_that_have_them() {
        let paragraph =
            |n: usize| format!("Entry {n} tells of nothing much at all. {}\n\n", "Filler words. ".repeat(60));
        let mut long: String = (0..40).map(paragraph).collect();
        long.push_str("The lighthouse keeper's name is Maren.\n\n");
        long.extend((40..80).map(paragraph));
        let files = [file("a", &long, true), file("b", "Short and of no use.", false)];
        let mut searching = SearchCache::default();
        let found = searching.find(&files, "What is the lighthouse keeper called?", &[], [8, 3]).unwrap();
        let first = &found[0];
        assert!(files[0].text[first.passage.range.clone()].contains("Maren"), "{first:?}");
        let begin = searching.find(&files, "Zusammenfassung?", &[], [8, 3]).unwrap();
        assert_eq!(begin.len(), 3, "an old file without a match is left alone");
        assert_eq!(begin[0].passage.range.start, 0);
        let near = searching.find(&files, "lighthouse", &[3], [8, 3]).unwrap();
        let starts: Vec<usize> = near.iter().map(|it| it.passage.range.start).collect();
        let third = searching.passages(&files, None).unwrap()[3].passage.range.start;
        assert_eq!(starts, [first.passage.range.start, third], "by words, and by meaning");
        let stored = searching.index_to_store(&files).unwrap().unwrap();
        assert_eq!(searching.index_to_store(&files).unwrap(), None, "once");
        searching.forget();
        for bytes in [&stored[..], b"damaged"] {
            searching.passages(&files, Some(bytes)).unwrap();
            assert_eq!(searching.find(&files, "lighthouse", &[], [8, 3]).unwrap()[0], *first);
            assert_eq!(searching.index_to_store(&files).unwrap().is_none(), bytes == stored, "made again");
            assert!(searching.is_ready(&files) && !searching.is_ready(&files[..1]));
            searching.forget();
        }
        assert_ne!(SearchCache::index_key(&files), SearchCache::index_key(&files[..1]));
        assert_eq!(searching.find(&files, "lighthouse", &[], [8, 3]).unwrap()[0], *first);
    }
}
