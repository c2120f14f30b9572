//! Finds the article of a question: a linear classifier over hashed words and pieces of words, with classes for small
//! talk and for what is out of scope. `train.rs` makes its weights, `weights/*.bin`, at `make guide`.
//!
//! Weights lie by bucket, so that a question reads only the weights of the features it has.

use crate::Language;
use crate::features::{N_BUCKETS, N_FEATURES, read};
use crate::words::Synonyms;

/// Begins every file of weights. Its last digit is the version of the format and of the features.
pub const MAGIC: &[u8; 8] = b"GUIDE-04";

/// A second article this close to the first may be meant instead.
const CLOSE_MARGIN: f32 = 0.25;
/// Turns margins to shares of one.
const SHARPNESS: f32 = 4.0;
/// Classes after those of the articles: out of scope, small talk, and the two together.
const N_OTHER_CLASSES: usize = 3;
/// How much the class of both counts beside the difference of the others. It knows what questions about the application
/// have in common, so that one with few known words is not declined.
const OUTSIDE_WEIGHT: f32 = 0.3;

/// Weights of one language.
pub struct Classifier {
    language: Language,
    synonyms: Synonyms,
    /// A message is out of scope where `outside` is larger.
    max_outside: f32,
    scale: f32,
    /// Per class: the articles in their order, what is out of scope, small talk, and the last two together.
    biases: Vec<f32>,
    idf: Vec<u8>,
    /// Where each bucket's entries begin, and the end of the last.
    starts: Vec<u32>,
    /// Class and weight.
    entries: Vec<(u8, i8)>,
}

/// An article and how well it suits the question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Index of the article.
    pub article: usize,
    /// Share among all classes, from 0 to 1.
    pub score: f32,
}

/// What a question is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// An article, and another one that may be meant.
    Article {
        /// The best article.
        best: Hit,
        /// Index of the other one.
        other: Option<usize>,
    },
    /// A greeting, thanks and the like.
    SmallTalk,
    /// Nothing that the guide knows.
    OutOfScope,
}

impl Classifier {
    /// Reads the weights that were trained for a language; `None` if they are not as `train.rs` writes them.
    pub fn parse(language: Language, synonyms: Synonyms, weights: &[u8]) -> Option<Self> {
        let mut reader = WeightReader { rest: weights };
        if reader.take(MAGIC.len())? != MAGIC {
            return None;
        }
        let _inputs = reader.take(8)?;
        let max_outside = reader.f32()?;
        let scale = reader.f32()?;
        let n_classes = usize::from(reader.take(1)?[0]);
        let biases = (0..n_classes).map(|_| reader.f32()).collect::<Option<Vec<_>>>()?;
        let idf = reader.take(N_BUCKETS)?.to_vec();
        let mut starts = Vec::with_capacity(N_FEATURES + 1);
        let mut n_entries = 0;
        for count in reader.take(N_FEATURES)? {
            starts.push(n_entries);
            n_entries += u32::from(*count);
        }
        starts.push(n_entries);
        let entries = reader.take(n_entries as usize * 2)?.chunks_exact(2);
        let entries: Vec<_> = entries.map(|entry| (entry[0], entry[1].cast_signed())).collect();
        let is_class = |class: u8| usize::from(class) < n_classes;
        let is_whole = reader.rest.is_empty() && entries.iter().all(|(class, _)| is_class(*class));
        (is_whole && n_classes > N_OTHER_CLASSES).then_some(Self {
            language,
            synonyms,
            max_outside,
            scale,
            biases,
            idf,
            starts,
            entries,
        })
    }

    /// Margins of the classes. `None`: the question has no feature that was ever seen.
    fn margins(&self, question: &str) -> Option<Vec<f32>> {
        let vector = read(self.language, &self.synonyms, question).vector(&self.idf);
        if vector.is_empty() {
            return None;
        }
        let mut sums = vec![0f32; self.biases.len()];
        for (bucket, value) in vector {
            let entries = self.starts[bucket] as usize..self.starts[bucket + 1] as usize;
            for (class, weight) in &self.entries[entries] {
                sums[usize::from(*class)] += value * f32::from(*weight);
            }
        }
        Some(sums.iter().zip(&self.biases).map(|(sum, bias)| sum * self.scale + bias).collect())
    }

    fn n_articles(&self) -> usize {
        self.biases.len() - N_OTHER_CLASSES
    }

    /// Articles by how well they suit the question, best first, at most `limit`.
    pub fn rank(&self, question: &str, limit: usize) -> Vec<Hit> {
        let Some(margins) = self.margins(question) else { return Vec::new() };
        ranked(&margins, self.n_articles(), limit)
    }

    /// How far the question is from all articles: the higher, the farther. `None`: it has no feature that was ever seen.
    pub fn outside(&self, question: &str) -> Option<f32> {
        Some(self.outside_of(&self.margins(question)?))
    }

    fn outside_of(&self, margins: &[f32]) -> f32 {
        let (articles, others) = margins.split_at(self.n_articles());
        highest(&others[..N_OTHER_CLASSES - 1]) - highest(articles) + OUTSIDE_WEIGHT * others[2]
    }

    /// What the question is about.
    pub fn classify(&self, question: &str) -> Verdict {
        let Some(margins) = self.margins(question) else { return Verdict::OutOfScope };
        let (articles, others) = margins.split_at(self.n_articles());
        if self.outside_of(&margins) > self.max_outside {
            let is_small_talk = others[1] >= others[0] && others[1] >= highest(articles);
            return if is_small_talk { Verdict::SmallTalk } else { Verdict::OutOfScope };
        }
        let hits = ranked(&margins, articles.len(), 2);
        let Some(best) = hits.first().copied() else { return Verdict::OutOfScope };
        let is_close = |hit: &&Hit| articles[hit.article] >= articles[best.article] - CLOSE_MARGIN;
        Verdict::Article { best, other: hits.get(1).filter(is_close).map(|hit| hit.article) }
    }
}

fn highest(margins: &[f32]) -> f32 {
    margins.iter().copied().fold(f32::MIN, f32::max)
}

fn ranked(margins: &[f32], n_articles: usize, limit: usize) -> Vec<Hit> {
    let margins = &margins[..n_articles + N_OTHER_CLASSES - 1];
    let highest = highest(margins);
    let powers: Vec<f32> = margins.iter().map(|margin| ((margin - highest) * SHARPNESS).exp()).collect();
    let total: f32 = powers.iter().sum();
    let shares = powers.into_iter().take(n_articles).enumerate();
    let mut hits: Vec<_> = shares.map(|(article, power)| Hit { article, score: power / total }).collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    hits.truncate(limit);
    hits
}

/// Bytes that have not been read yet.
struct WeightReader<'a> {
    rest: &'a [u8],
}

impl<'a> WeightReader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(taken)
    }

    fn f32(&mut self) -> Option<f32> {
        self.take(4)?.try_into().ok().map(f32::from_le_bytes)
    }
}

/// The weights of a language.
pub fn weights(language: Language) -> &'static [u8] {
    match language {
        Language::English => include_bytes!("../weights/en.bin"),
        Language::German => include_bytes!("../weights/de.bin"),
        Language::Japanese => include_bytes!("../weights/ja.bin"),
        Language::Arabic => include_bytes!("../weights/ar.bin"),
    }
}

/// The hash of what the weights of a file were trained on.
#[cfg(test)]
pub fn inputs_of(weights: &[u8]) -> Option<u64> {
    weights.get(MAGIC.len()..MAGIC.len() + 8)?.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train;

    /// The largest file of weights that the repository takes.
    const MAX_BYTES: usize = 1_800_000;

    #[test]
    fn weights_are_small_and_current() {
        for language in Language::ALL {
            let weights = weights(language);
            assert!(weights.len() <= MAX_BYTES, "{}: {} bytes", language.code(), weights.len());
            assert_eq!(
                inputs_of(weights),
                Some(train::inputs(language)),
                "{}: run `make guide`",
                language.code()
            );
        }
    }

    #[test]
    fn weights_that_are_cut_or_longer_are_refused() {
        let whole = weights(Language::German);
        let parse = |bytes: &[u8]| Classifier::parse(Language::German, Synonyms::default(), bytes).is_some();
        assert!(parse(whole));
        for n in [0, 8, 20, 400, N_BUCKETS, whole.len() - 1] {
            assert!(!parse(&whole[..n]), "{n} bytes");
        }
        assert!(!parse(&[whole, &[0]].concat()));
    }
}
