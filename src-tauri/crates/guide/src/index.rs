//! Finds the article of a question: cosine similarity of weighted words and letter triples with each known phrasing.

use std::collections::{HashMap, HashSet};

use crate::Language;
use crate::article::Article;
use crate::words::{Synonyms, words};

/// Weight of two neighbouring words beside that of a single word.
const PAIR_WEIGHT: f32 = 0.5;
/// Weight of all letter triples of a word together, beside that of the word. They find typing errors and compounds.
const TRIPLES_WEIGHT: f32 = 0.6;
/// Share of the best phrasing in an article's score; the rest is for the article's words as a whole.
const BEST_PHRASING_SHARE: f32 = 0.75;
/// Weight of a word of the body beside one of the title or a phrasing, in the article as a whole.
const BODY_WEIGHT: f32 = 0.25;

/// The index of all articles in one language.
pub struct Index {
    language: Language,
    synonyms: Synonyms,
    /// Rarity of each feature among the articles.
    idf: HashMap<String, f32>,
    /// Rarity of a feature that no article has.
    unknown_idf: f32,
    phrasings: Vec<IndexedPhrasing>,
    /// One vector per article, of all its words.
    wholes: Vec<Vector>,
}

/// One way to ask for an article.
struct IndexedPhrasing {
    article: usize,
    vector: Vector,
}

/// An article and its similarity to the question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Index of the article.
    pub article: usize,
    /// Cosine similarity, from 0 to 1.
    pub score: f32,
}

/// Features with their weights, of length 1.
type Vector = HashMap<String, f32>;

impl Index {
    /// Indexes titles, phrasings and texts.
    pub fn new(language: Language, articles: &[Article], synonyms: &str) -> Self {
        let synonyms = Synonyms::parse(language, synonyms);
        let mut of_articles = Vec::new();
        for article in articles {
            let questions = std::iter::once(&article.title).chain(&article.phrasings);
            let questions: Vec<_> = questions.map(|text| features(&words(language, &synonyms, text))).collect();
            of_articles.push((questions, features(&words(language, &synonyms, &article.body))));
        }
        let (idf, unknown_idf) = inverse_frequencies(&of_articles);
        let weigh = |counts: &HashMap<String, f32>| normalized(counts, &idf, unknown_idf);
        let mut phrasings = Vec::new();
        let mut wholes = Vec::new();
        for (n, (questions, body)) in of_articles.iter().enumerate() {
            let mut whole: HashMap<String, f32> = body.iter().map(|(f, w)| (f.clone(), w * BODY_WEIGHT)).collect();
            for question in questions {
                phrasings.push(IndexedPhrasing { article: n, vector: weigh(question) });
                for (feature, weight) in question {
                    *whole.entry(feature.clone()).or_default() += weight;
                }
            }
            // Frequent words of an article count less than in proportion.
            whole.values_mut().for_each(|weight| *weight = weight.sqrt());
            wholes.push(weigh(&whole));
        }
        Self { language, synonyms, idf, unknown_idf, phrasings, wholes }
    }

    /// Articles by their similarity to the question, best first, at most `limit`.
    pub fn rank(&self, question: &str, limit: usize) -> Vec<Hit> {
        let counts = features(&words(self.language, &self.synonyms, question));
        let question = normalized(&counts, &self.idf, self.unknown_idf);
        let mut best = vec![0f32; self.wholes.len()];
        for phrasing in &self.phrasings {
            let score = dot(&question, &phrasing.vector);
            best[phrasing.article] = best[phrasing.article].max(score);
        }
        let scores = best.iter().zip(&self.wholes).map(|(best, whole)| {
            best * BEST_PHRASING_SHARE + dot(&question, whole) * (1.0 - BEST_PHRASING_SHARE)
        });
        let mut hits: Vec<_> = scores.enumerate().map(|(article, score)| Hit { article, score }).collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        hits.truncate(limit);
        hits
    }

    /// The score from which an article answers the question.
    pub fn threshold(&self) -> f32 {
        match self.language {
            Language::English => 0.45,
            Language::German | Language::Arabic => 0.42,
            Language::Japanese => 0.35,
        }
    }
}

/// Words, pairs of neighbouring words and letter triples, with their weights.
fn features(words: &[String]) -> HashMap<String, f32> {
    let mut counts: HashMap<String, f32> = HashMap::new();
    for word in words {
        counts.insert(word.clone(), 1.0);
        let padded: Vec<char> = format!("^{word}$").chars().collect();
        let triples: Vec<_> = padded.windows(3).collect();
        if word.chars().count() < 3 {
            continue;
        }
        let weight = TRIPLES_WEIGHT / (triples.len() as f32).sqrt();
        for triple in &triples {
            let triple: String = std::iter::once('~').chain(triple.iter().copied()).collect();
            counts.insert(triple, weight);
        }
    }
    for pair in words.windows(2) {
        counts.insert(pair.join(" "), PAIR_WEIGHT);
    }
    counts
}

/// Rarity of each feature by the number of articles that have it, and that of an unknown feature.
fn inverse_frequencies(articles: &[(Vec<HashMap<String, f32>>, HashMap<String, f32>)]) -> (HashMap<String, f32>, f32) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for (questions, body) in articles {
        let of_article: HashSet<&str> = questions.iter().chain([body]).flat_map(|it| it.keys().map(String::as_str)).collect();
        for feature in of_article {
            *counts.entry(feature).or_default() += 1;
        }
    }
    let total = articles.len() as f32;
    let idf = |count: usize| ((total + 1.0) / (count as f32 + 0.5)).ln();
    (counts.into_iter().map(|(feature, count)| (feature.to_owned(), idf(count))).collect(), idf(1))
}

fn normalized(counts: &HashMap<String, f32>, idf: &HashMap<String, f32>, unknown_idf: f32) -> Vector {
    // A pair or triple that no article has says nothing; a word that none has says that the question is another one.
    let weight_of = |feature: &str| match idf.get(feature) {
        Some(&idf) => idf.max(0.0),
        None if feature.starts_with('~') || feature.contains(' ') => 0.0,
        None => unknown_idf,
    };
    let mut vector: Vector = counts.iter().map(|(f, weight)| (f.clone(), weight * weight_of(f))).collect();
    let length = vector.values().map(|weight| weight * weight).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.values_mut().for_each(|weight| *weight /= length);
    }
    vector
}

fn dot(a: &Vector, b: &Vector) -> f32 {
    a.iter().filter_map(|(feature, weight)| Some(weight * b.get(feature)?)).sum()
}
