//! Finds the article of a question: cosine similarity of weighted words and letter triples with each known phrasing.
//!
//! Vectors are kept by feature (an inverted index), so that a question reads only what it shares words with.

use std::collections::{HashMap, HashSet};

use crate::Language;
use crate::article::Article;
use crate::words::{Synonyms, words};

/// Weight of two neighbouring words beside that of a single word.
const PAIR_WEIGHT: f32 = 0.5;
/// Weight of all letter triples of a word together, beside that of the word. They find typing errors and compounds.
const TRIPLES_WEIGHT: f32 = 0.6;
/// Share of the best phrasing in an article's score; the rest is for the article's words as a whole.
const BEST_PHRASING_SHARE: f32 = 0.3;
/// Weight of a word of the body beside one of the title or a phrasing, in the article as a whole.
const BODY_WEIGHT: f32 = 0.5;

/// The index of all articles in one language.
pub struct Index {
    language: Language,
    synonyms: Synonyms,
    features: HashMap<String, Feature>,
    /// Rarity of a feature that no article has.
    unknown_idf: f32,
    /// The article of each phrasing.
    phrasing_article: Vec<usize>,
    n_articles: usize,
}

/// A word, a pair of words or a letter triple, and where it occurs.
#[derive(Default)]
struct Feature {
    /// Rarity among the articles.
    idf: f32,
    /// Phrasings that have it, with its share of their vector.
    in_phrasings: Vec<(u32, f32)>,
    /// Articles that have it, with its share of the article's vector.
    in_articles: Vec<(u32, f32)>,
}

/// An article and its similarity to the question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Index of the article.
    pub article: usize,
    /// Cosine similarity, from 0 to 1.
    pub score: f32,
}

/// Features with their weights.
type Weights = HashMap<String, f32>;

impl Index {
    /// Indexes titles, phrasings and texts.
    pub fn new(language: Language, articles: &[Article], synonyms: &str) -> Self {
        let synonyms = Synonyms::parse(language, synonyms);
        let read = |text: &str| features(&words(language, &synonyms, text));
        let of_articles: Vec<(Vec<Weights>, Weights)> = articles
            .iter()
            .map(|article| {
                let questions = std::iter::once(&article.title).chain(&article.phrasings);
                (questions.map(|text| read(text)).collect(), read(&article.body))
            })
            .collect();
        let mut index = Self {
            language,
            synonyms,
            features: inverse_frequencies(&of_articles),
            unknown_idf: idf(1, articles.len()),
            phrasing_article: Vec::new(),
            n_articles: articles.len(),
        };
        for (n, (questions, body)) in of_articles.into_iter().enumerate() {
            let mut whole: Weights = body.into_iter().map(|(f, weight)| (f, weight * BODY_WEIGHT)).collect();
            for question in questions {
                for (feature, weight) in &question {
                    *whole.entry(feature.clone()).or_default() += weight;
                }
                let phrasing = index.phrasing_article.len() as u32;
                index.phrasing_article.push(n);
                index.add(&question, |feature, share| feature.in_phrasings.push((phrasing, share)));
            }
            // Frequent words of an article count less than in proportion.
            whole.values_mut().for_each(|weight| *weight = weight.sqrt());
            index.add(&whole, |feature, share| feature.in_articles.push((n as u32, share)));
        }
        index
    }

    fn add(&mut self, weights: &Weights, mut to: impl FnMut(&mut Feature, f32)) {
        for (name, share) in self.normalized(weights) {
            if let Some(feature) = self.features.get_mut(&name) {
                to(feature, share);
            }
        }
    }

    /// Articles that share words with the question, most similar first, at most `limit`.
    pub fn rank(&self, question: &str, limit: usize) -> Vec<Hit> {
        let weights = features(&words(self.language, &self.synonyms, question));
        let mut phrasings = vec![0f32; self.phrasing_article.len()];
        let mut wholes = vec![0f32; self.n_articles];
        for (name, share) in self.normalized(&weights) {
            let Some(feature) = self.features.get(&name) else { continue };
            for &(n, weight) in &feature.in_phrasings {
                phrasings[n as usize] += share * weight;
            }
            for &(n, weight) in &feature.in_articles {
                wholes[n as usize] += share * weight;
            }
        }
        let mut best = vec![0f32; self.n_articles];
        for (score, &article) in phrasings.iter().zip(&self.phrasing_article) {
            best[article] = best[article].max(*score);
        }
        let score =
            |(best, whole): (&f32, &f32)| best * BEST_PHRASING_SHARE + whole * (1.0 - BEST_PHRASING_SHARE);
        let scores = best.iter().zip(&wholes).map(score);
        let hits = scores.enumerate().map(|(article, score)| Hit { article, score });
        let mut hits: Vec<_> = hits.filter(|hit| hit.score > 0.0).collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        hits.truncate(limit);
        hits
    }

    /// The score from which an article answers the question: a higher one declines more questions that are out of scope,
    /// and more that are not. Chosen with `examples/questions.tsv`.
    pub fn threshold(&self) -> f32 {
        match self.language {
            Language::English => 0.22,
            Language::German | Language::Arabic => 0.2,
            Language::Japanese => 0.16,
        }
    }

    /// The weights by rarity, as a vector of length 1.
    fn normalized(&self, weights: &Weights) -> Vec<(String, f32)> {
        // A pair or triple that no article has says nothing; such a word says that the question is about something else.
        let rarity = |name: &str| match self.features.get(name) {
            Some(feature) => feature.idf,
            None if name.starts_with(TRIPLE_MARK) || name.contains(' ') => 0.0,
            None => self.unknown_idf,
        };
        let mut vector: Vec<_> =
            weights.iter().map(|(name, weight)| (name.clone(), weight * rarity(name))).collect();
        let length = vector.iter().map(|(_, weight)| weight * weight).sum::<f32>().sqrt();
        if length > 0.0 {
            vector.iter_mut().for_each(|(_, weight)| *weight /= length);
        }
        vector
    }
}

/// Distinguishes a letter triple from a word of three letters.
const TRIPLE_MARK: char = '~';

/// Words, pairs of neighbouring words and letter triples, with their weights.
fn features(words: &[String]) -> Weights {
    let mut weights = Weights::new();
    for word in words {
        weights.insert(word.clone(), 1.0);
        if word.chars().count() < 3 {
            continue;
        }
        let padded: Vec<char> = format!("^{word}$").chars().collect();
        let weight = TRIPLES_WEIGHT / ((padded.len() - 2) as f32).sqrt();
        for triple in padded.windows(3) {
            weights.insert(std::iter::once(TRIPLE_MARK).chain(triple.iter().copied()).collect(), weight);
        }
    }
    for pair in words.windows(2) {
        weights.insert(pair.join(" "), PAIR_WEIGHT);
    }
    weights
}

/// Every feature with its rarity, by the number of articles that have it.
fn inverse_frequencies(articles: &[(Vec<Weights>, Weights)]) -> HashMap<String, Feature> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for (questions, body) in articles {
        let all = questions.iter().chain([body]).flat_map(|weights| weights.keys().map(String::as_str));
        for name in all.collect::<HashSet<_>>() {
            *counts.entry(name).or_default() += 1;
        }
    }
    let rare = |count| Feature { idf: idf(count, articles.len()), ..Feature::default() };
    counts.into_iter().map(|(name, count)| (name.to_owned(), rare(count))).collect()
}

/// Inverse document frequency of a feature that `count` of `total` articles have; at least 0.
fn idf(count: usize, total: usize) -> f32 {
    ((total as f32 + 1.0) / (count as f32 + 0.5)).ln().max(0.0)
}
