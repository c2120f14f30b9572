//! Ranks passages by meaning: by the angle between their vectors and the question's, if the user
//! has chosen an embedding model. Without one, or if it fails, only words count, and the user is
//! notified once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::passage_hit::{PassageHit, SearchedFile};
use crate::App;
use contract::protocol::EmbedAs;
use contract::types::{AttachmentKind, ErrorInfo};
use contract::{Error, ErrorKind, Result};

/// Passages of one file that get vectors: some hundred and fifty pages. More would keep a question waiting too long: a
/// model of 300 million parameters takes a second or so for each on two cores.
const MAX_PASSAGES: usize = 512;

/// Vectors that are kept, in bytes: those of dozens of such files.
const MAX_KEPT: usize = 64 << 20;

/// A model that failed is not tried again with every letter of a draft.
const AGAIN: Duration = Duration::from_secs(60);

/// A long question is about its first words. Bytes.
const MAX_QUESTION: usize = 1500;

/// Passages that one question can be near to: more have little to do with it.
const MAX_NEAR: usize = 16;

/// How far the nearest passages stand out from all, in standard deviations. Every passage has some angle to every
/// question: without this one that no file has to do with would be given passages all the same.
const STANDS_OUT: f32 = 2.0;

type Vectors = Arc<[Vec<f32>]>;

/// Vectors of the passages that were searched last.
#[derive(Default)]
pub(crate) struct EmbeddingIndex {
    /// Whose vectors these are.
    model: String,
    /// By the text and how it is cut, oldest first.
    kept: VecDeque<((String, AttachmentKind), Vectors)>,
    /// Why only words counted, as last reported to the user.
    told: Option<ErrorInfo>,
    /// When it failed.
    failed: Option<Duration>,
}

impl EmbeddingIndex {
    fn of(&mut self, model: &str) -> &mut Self {
        if self.model != model {
            *self = Self { model: model.to_owned(), ..Self::default() };
        }
        self
    }

    fn get(&self, key: &(String, AttachmentKind)) -> Option<Vectors> {
        self.kept.iter().find(|(kept, _)| kept == key).map(|(_, vectors)| Arc::clone(vectors))
    }

    fn keep(&mut self, key: (String, AttachmentKind), vectors: Vectors) {
        self.kept.push_back((key, vectors));
        let bytes =
            |(_, vectors): &(_, Vectors)| vectors.iter().map(|it| size_of_val(it.as_slice())).sum::<usize>();
        while self.kept.len() > 1 && self.kept.iter().map(bytes).sum::<usize>() > MAX_KEPT {
            self.kept.pop_front();
        }
    }
}

impl App {
    /// Indexes of the passages near to a question, nearest first. Empty if there are none, no model
    /// is chosen, or it can't be used; the last is reported to the user.
    pub(super) fn near(
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
        let asked = self.embed(&index.model, EmbedAs::Question, &[asked.to_owned()])?;
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
        let vectors: Vectors = self.embed(&index.model, EmbedAs::Passage, &texts)?.vectors.into();
        index.keep(key, Arc::clone(&vectors));
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

/// Of vectors of length 1.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Those that stand out, the nearest first; of equals the first.
fn nearest(mut angles: Vec<(usize, f32)>) -> Vec<usize> {
    let n = angles.len().max(1) as f32;
    let mean = angles.iter().map(|(_, x)| x).sum::<f32>() / n;
    let deviation = (angles.iter().map(|(_, x)| (x - mean) * (x - mean)).sum::<f32>() / n).sqrt();
    angles.retain(|(_, x)| deviation > f32::EPSILON && *x >= mean + STANDS_OUT * deviation);
    angles.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    angles.into_iter().take(MAX_NEAR).map(|(at, _)| at).collect()
}

/// The weight of first places over later ones, as in Cormack, Clarke and Büttcher 2009.
const RANK_OFFSET: f64 = 60.0;

/// Reciprocal rank fusion: what several lists have in front comes first; of equals the one that the first list has.
pub fn joined(lists: [&[usize]; 2], most: usize) -> Vec<usize> {
    let mut scores: HashMap<usize, f64> = HashMap::new();
    let mut order: Vec<usize> = Vec::new();
    for list in lists {
        for (rank, &at) in list.iter().enumerate() {
            let score = scores.entry(at).or_insert_with(|| {
                order.push(at);
                0.0
            });
            *score += 1.0 / (RANK_OFFSET + rank as f64 + 1.0);
        }
    }
    order.sort_by(|a, b| scores[b].total_cmp(&scores[a]));
    order.truncate(most);
    order
}

fn too_long(name: &str) -> Error {
    Error::new(
        ErrorKind::Limit,
        "attachment.too_long_to_embed",
        format!("{name} has more than {MAX_PASSAGES} passages, too many for vectors."),
        "Attach only the part you need, so that it can be searched by meaning too.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_joined_by_rank() {
        let check = |words: &[usize], near: &[usize], expected: &[usize]| {
            assert_eq!(joined([words, near], 4), expected, "{words:?} and {near:?}");
        };
        check(&[], &[], &[]);
        check(&[3, 1, 2], &[], &[3, 1, 2]);
        check(&[], &[7, 5], &[7, 5]);
        check(&[1, 2], &[3, 4], &[1, 3, 2, 4]);
        check(&[1, 2, 3], &[3, 9], &[3, 1, 2, 9]);
        check(&[1, 2, 3, 4, 5], &[5], &[5, 1, 2, 3]);
    }

    #[test]
    fn near_is_what_stands_out() {
        let all = |xs: &[f32]| nearest(xs.iter().copied().enumerate().collect());
        assert_eq!(all(&[]), [0; 0]);
        assert_eq!(all(&[0.5; 9]), [0; 0], "nothing is nearer than the others");
        let mut xs = vec![0.2; 40];
        (xs[7], xs[30], xs[31]) = (0.8, 0.9, 0.21);
        assert_eq!(all(&xs), [30, 7]);
    }
}
