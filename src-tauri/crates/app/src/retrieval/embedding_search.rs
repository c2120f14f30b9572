//! Ranks passages by meaning: by the angle between their vectors and the question's, if the user
//! has chosen an embedding model. Without one, or if it fails, only words count, and the user is
//! notified once.

use std::sync::Arc;
use std::time::Duration;

use crate::App;
use contract::protocol::EmbedAs;
use contract::types::ErrorInfo;
use contract::{Error, ErrorKind, Result};
use file_search::{EmbeddingIndex, PassageHit, SearchedFile, Vectors, cosine, nearest};

/// Passages of one file that get vectors: some hundred and fifty pages. More would keep a question waiting too long: a
/// model of 300 million parameters takes a second or so for each on two cores.
const MAX_PASSAGES: usize = 512;

/// A model that failed is not tried again with every letter of a draft.
const AGAIN: Duration = Duration::from_secs(60);

/// A long question is about its first words. Bytes.
const MAX_QUESTION: usize = 1500;

impl App {
    /// Indexes of the passages near to a question, nearest first. Empty if there are none, no model
    /// is chosen, or it can't be used; the last is reported to the user.
    pub(super) fn near_now(
        &self,
        files: &[SearchedFile],
        passages: &[PassageHit],
        question: &str,
    ) -> Result<Vec<usize>> {
        let Some(model) = self.embedding_model()? else { return Ok(Vec::new()) };
        if question.trim().is_empty() || passages.is_empty() {
            return Ok(Vec::new());
        }
        let mut index = self.services().attachments.embedding_index();
        let (index, now) = (index.of(&model), self.ctx().clock.monotonic());
        if index.failed.is_some_and(|failed| now < failed + AGAIN) {
            return Ok(Vec::new());
        }
        index.failed = None;
        match self.ranked(index, files, passages, question) {
            Ok((near, left_out)) => {
                self.by_words(index, left_out);
                Ok(near)
            }
            Err(error) => {
                index.failed = Some(now);
                self.by_words(index, Some(error));
                Ok(Vec::new())
            }
        }
    }

    /// The nearest passages, and why some had no part in it.
    fn ranked(
        &self,
        index: &mut EmbeddingIndex,
        files: &[SearchedFile],
        passages: &[PassageHit],
        question: &str,
    ) -> Result<(Vec<usize>, Option<Error>)> {
        let asked = &question[..question.floor_char_boundary(MAX_QUESTION)];
        let asked = self.embed(index.model(), EmbedAs::Question, &[asked.to_owned()])?;
        let Some(asked) = asked.vectors.first() else {
            return Err(Error::bug("a question without a vector"));
        };
        let (mut angles, mut left_out) = (Vec::new(), None);
        for (n, file) in files.iter().enumerate() {
            let of_file: Vec<usize> = (0..passages.len()).filter(|at| passages[*at].file == n).collect();
            if of_file.len() > MAX_PASSAGES {
                left_out = Some(too_long(&file.name));
                continue;
            }
            let vectors = self.vectors(index, file, of_file.iter().map(|at| &passages[*at]))?;
            angles.extend(of_file.into_iter().zip(vectors.iter().map(|vector| cosine(asked, vector))));
        }
        Ok((nearest(angles), left_out))
    }

    fn vectors<'a>(
        &self,
        index: &mut EmbeddingIndex,
        file: &SearchedFile,
        passages: impl Iterator<Item = &'a PassageHit>,
    ) -> Result<Vectors> {
        let key = (file.sha256.clone(), file.kind);
        if let Some(vectors) = index.get(&key) {
            return Ok(vectors);
        }
        let texts: Vec<String> = passages.map(|it| file.text[it.passage.range.clone()].to_owned()).collect();
        let vectors: Vectors = self.embed(index.model(), EmbedAs::Passage, &texts)?.vectors.into();
        index.keep_computed(key, Arc::clone(&vectors));
        Ok(vectors)
    }

    /// Says what it was that words alone counted for; the same thing once.
    fn by_words(&self, index: &mut EmbeddingIndex, cause: Option<Error>) {
        let told = cause.map(|cause| ErrorInfo {
            message: format!("Files are searched by words only, not by meaning. {}", cause.message()),
            ..cause.info
        });
        if told != index.told
            && let Some(told) = &told
        {
            self.ctx().events.notice(told.clone());
        }
        index.told = told;
    }
}

fn too_long(name: &str) -> Error {
    Error::new(
        ErrorKind::Limit,
        "attachment.too_long_to_embed",
        format!("{name} has more than {MAX_PASSAGES} passages, too many for vectors."),
        "Attach only the part you need, so that it can be searched by meaning too.",
    )
}
