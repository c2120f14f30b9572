//! Passages by meaning: vectors that were computed, and which of them stand out for a question.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use contract::types::{AttachmentKind, ErrorInfo};

/// Vectors that are kept, in bytes: those of dozens of long files.
const MAX_KEPT: usize = 64 << 20;

/// Passages that one question can be near to: more have little to do with it.
const MAX_NEAR: usize = 16;

/// How far the nearest passages stand out from all, in standard deviations. Every passage has some angle to every
/// question: without this one that no file has to do with would be given passages all the same.
const STANDS_OUT: f32 = 2.0;

/// Vectors of the passages of a file, in order.
pub type Vectors = Arc<[Vec<f32>]>;

/// Whose vectors: the SHA-256 of the text, and how it is cut.
pub type VectorKey = (String, AttachmentKind);

/// Vectors of the passages that were searched last.
#[derive(Default)]
pub struct EmbeddingIndex {
    /// Whose vectors these are.
    model: String,
    /// By the text and how it is cut, oldest first.
    kept: VecDeque<(VectorKey, Vectors)>,
    /// Why only words counted, as last reported to the user.
    pub told: Option<ErrorInfo>,
    /// When the model failed.
    pub failed: Option<Duration>,
    /// Files whose vectors were computed and may have to be stored.
    computed: Vec<VectorKey>,
}

/// Name of the stored vectors of a file for a model.
pub fn vectors_key(model: &str, key: &VectorKey) -> String {
    format!("vectors {} {} {model}", key.0, key.1.name())
}

/// Vectors as bytes: their length, then their values, all little-endian.
pub fn vectors_to_bytes(vectors: &[Vec<f32>]) -> Vec<u8> {
    let n_values = vectors.first().map_or(0, |vector| u32::try_from(vector.len()).unwrap_or(u32::MAX));
    let values = vectors.iter().flatten().flat_map(|value| value.to_le_bytes());
    n_values.to_le_bytes().into_iter().chain(values).collect()
}

/// The vectors of bytes that `vectors_to_bytes` made: `n_passages` of them. None: they are not.
pub fn vectors_from_bytes(bytes: &[u8], n_passages: usize) -> Option<Vectors> {
    let (n_values, values) = bytes.split_first_chunk::<4>()?;
    let n_values = u32::from_le_bytes(*n_values) as usize;
    let (values, rest) = values.as_chunks::<4>();
    if n_values == 0 || !rest.is_empty() || Some(values.len()) != n_values.checked_mul(n_passages) {
        return None;
    }
    let vector = |values: &[[u8; 4]]| values.iter().map(|value| f32::from_le_bytes(*value)).collect();
    Some(values.chunks(n_values).map(vector).collect())
}

impl EmbeddingIndex {
    /// The index for a model: empty if it was another one's.
    pub fn of(&mut self, model: &str) -> &mut Self {
        if self.model != model {
            *self = Self { model: model.to_owned(), ..Self::default() };
        }
        self
    }

    /// The model whose vectors these are.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Vectors of a file, if they are here.
    pub fn get(&self, key: &VectorKey) -> Option<Vectors> {
        self.kept.iter().find(|(kept, _)| kept == key).map(|(_, vectors)| Arc::clone(vectors))
    }

    /// Keeps vectors that were just computed.
    pub fn keep_computed(&mut self, key: VectorKey, vectors: Vectors) {
        self.computed.push(key.clone());
        self.keep(key, vectors);
    }

    /// What was computed since the last call.
    pub fn take_computed(&mut self) -> Vec<(VectorKey, Vectors)> {
        let computed = std::mem::take(&mut self.computed);
        computed.into_iter().filter_map(|key| Some((key.clone(), self.get(&key)?))).collect()
    }

    /// Keeps the vectors of a file. The oldest give way.
    pub fn keep(&mut self, key: VectorKey, vectors: Vectors) {
        self.kept.push_back((key, vectors));
        let bytes = |(_, vectors): &(VectorKey, Vectors)| {
            vectors.iter().map(|it| size_of_val(it.as_slice())).sum::<usize>()
        };
        while self.kept.len() > 1 && self.kept.iter().map(bytes).sum::<usize>() > MAX_KEPT {
            self.kept.pop_front();
        }
    }
}

/// The cosine of two vectors of length 1.
pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Those that stand out, the nearest first; of equals the first.
pub fn nearest(mut angles: Vec<(usize, f32)>) -> Vec<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_back_from_their_bytes() {
        let vectors = [vec![1.0, -0.5, 0.25], vec![0.0, f32::MIN_POSITIVE, 3.0]];
        let bytes = vectors_to_bytes(&vectors);
        assert_eq!(vectors_from_bytes(&bytes, 2).as_deref(), Some(&vectors[..]));
        for (bytes, n) in [(&bytes[..], 3), (&bytes[..25], 2), (&bytes[..3], 2), (&[0; 4], 0)] {
            assert_eq!(vectors_from_bytes(bytes, n), None, "{} bytes, {n}", bytes.len());
        }
    }

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
