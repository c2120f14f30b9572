//! A question as a sparse vector: its words, neighbouring words and pieces of words, hashed.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::Language;
use crate::words::{Synonyms, arabic_root, fold, runs, stem};

/// Size of the vectors. Twice as many change no answer of the cross-validation.
pub const N_BUCKETS: usize = 65_536;
/// The buckets, and the share of unknown words.
pub const N_FEATURES: usize = N_BUCKETS + 1;

/// Lengths of pieces of words, in characters, with the marks for the word's ends.
const PIECE_CHARS: RangeInclusive<usize> = 3..=5;
/// The same in Japanese, where words are not spaced and characters say more.
const UNSPACED_PIECE_CHARS: RangeInclusive<usize> = 1..=3;
/// Weight of a word, and of what it means, beside a piece or a pair.
const WORD_WEIGHT: f32 = 2.0;
/// Words at most this far apart are pairs, in either order.
const PAIR_DISTANCE: usize = 3;

/// Weight of a meaning, which new words share with known ones. Larger weights make long questions be answered by one
/// frequent meaning.
const MEANING_WEIGHT: f32 = 0.7;
/// Shortest word that counts as unknown.
const MIN_UNKNOWN_CHARS: usize = 3;

/// What a text consists of.
#[derive(Debug, Default, PartialEq)]
pub struct TextFeatures {
    /// Buckets with the weight of their features in the text, by bucket.
    pub counts: Vec<(usize, f32)>,
    /// Buckets of the words that may be unknown.
    pub words: Vec<usize>,
}

/// Reads the features of a text.
pub fn read(language: Language, synonyms: &Synonyms, text: &str) -> TextFeatures {
    let folded = fold(text);
    let words = runs(&folded);
    let mut features = Features::default();
    match language {
        Language::Japanese => unspaced(&folded, &words, synonyms, &mut features),
        Language::English | Language::German | Language::Arabic => {
            spaced(language, &words, synonyms, &mut features)
        }
    }
    TextFeatures { words: std::mem::take(&mut features.words), counts: features.weights() }
}

/// Steps of an inverse document frequency, per unit.
pub const IDF_STEPS: f32 = 25.0;
/// Weight of the share of unknown words.
const UNKNOWN_WEIGHT: f32 = 6.0;

impl TextFeatures {
    /// The text as a vector of length 1: features by how rare they are. Empty if all are unknown. `idf` is 0 for unknown
    /// features.
    pub fn vector(self, idf: &[u8]) -> Vec<(usize, f32)> {
        let n_unknown = self.words.iter().filter(|&&word| idf[word] == 0).count();
        let mut vector: Vec<_> = self
            .counts
            .into_iter()
            .map(|(bucket, n)| (bucket, n * f32::from(idf[bucket]) / IDF_STEPS))
            .filter(|(_, value)| *value > 0.0)
            .collect();
        if vector.is_empty() {
            return vector;
        }
        if n_unknown > 0 {
            vector.push((N_BUCKETS, UNKNOWN_WEIGHT * n_unknown as f32 / self.words.len() as f32));
        }
        let length = vector.iter().map(|(_, value)| value * value).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|(_, value)| *value /= length);
        vector
    }
}

/// Features of a text by their buckets.
#[derive(Default)]
struct Features {
    buckets: Vec<(usize, f32)>,
    words: Vec<usize>,
}

impl Features {
    fn add(&mut self, kind: char, feature: &str, weight: f32) {
        self.buckets.push((bucket(kind, feature), weight));
    }

    fn add_word(&mut self, word: &str) {
        self.add('w', word, WORD_WEIGHT);
        if word.chars().count() >= MIN_UNKNOWN_CHARS {
            self.words.push(bucket('w', word));
        }
    }

    /// An Arabic word is known in any form.
    fn add_word_with_root(&mut self, word: &str, root: &str) {
        self.add('w', word, WORD_WEIGHT);
        self.add('r', root, WORD_WEIGHT);
        if word.chars().count() >= MIN_UNKNOWN_CHARS {
            self.words.push(bucket('r', root));
        }
    }

    /// Frequent features of a text count less than in proportion.
    fn weights(mut self) -> Vec<(usize, f32)> {
        self.buckets.sort_by_key(|(bucket, _)| *bucket);
        let groups = self.buckets.chunk_by(|(a, _), (b, _)| a == b);
        groups.map(|group| (group[0].0, group[0].1 * (1.0 + (group.len() as f32).ln()))).collect()
    }
}

fn spaced(language: Language, words: &[&str], synonyms: &Synonyms, features: &mut Features) {
    for word in words {
        pieces(&format!(" {word} "), PIECE_CHARS, |piece| features.add('p', piece, 1.0));
    }
    let stems: Vec<String> = words.iter().map(|word| stem(language, word)).collect();
    for (word, stem) in words.iter().zip(&stems) {
        match arabic_root(word).filter(|_| language == Language::Arabic) {
            Some(root) => features.add_word_with_root(stem, &root),
            None => features.add_word(stem),
        }
    }
    let by_word = synonyms.meanings_by_word(language, &stems);
    let meanings: BTreeSet<&str> = by_word.iter().flatten().copied().collect();
    add_meanings(&meanings.into_iter().collect::<Vec<_>>(), features);
    let first: Vec<&str> =
        by_word.iter().zip(&stems).map(|(it, stem)| it.first().copied().unwrap_or(stem)).collect();
    for (n, meaning) in first.iter().enumerate() {
        for other in first.iter().skip(n + 1).take(PAIR_DISTANCE) {
            features.add('k', &pair(meaning, other), 1.0);
        }
    }
    if stems.is_empty() {
        return;
    }
    let ends = || std::iter::once("");
    let with_ends: Vec<&str> = ends().chain(stems.iter().map(String::as_str)).chain(ends()).collect();
    with_ends.windows(2).for_each(|two| features.add('2', &two.join(" "), 1.0));
}

/// Words are not told apart by spaces: runs of one script count as words, and synonyms are looked for anywhere.
fn unspaced(folded: &str, words: &[&str], synonyms: &Synonyms, features: &mut Features) {
    let text = format!(" {} ", words.join(" "));
    let is_particle = |piece: &str| piece.chars().all(|c| c == ' ' || matches!(c, '\u{3040}'..='\u{309f}'));
    pieces(&text, UNSPACED_PIECE_CHARS, |piece| {
        if piece.chars().nth(1).is_some() || !is_particle(piece) {
            features.add('p', piece, 1.0);
        }
    });
    script_runs(&text).into_iter().for_each(|run| features.add_word(run));
    add_meanings(&synonyms.meanings_in(folded), features);
}

/// Meanings, and pairs of them wherever they stand.
fn add_meanings(meanings: &[&str], features: &mut Features) {
    for (n, meaning) in meanings.iter().enumerate() {
        features.add('s', meaning, MEANING_WEIGHT);
        meanings[..n].iter().for_each(|other| features.add('c', &pair(meaning, other), 1.0));
    }
}

/// Runs of katakana, of kanji, and of Latin letters and digits.
fn script_runs(text: &str) -> Vec<&str> {
    let script = |c: char| match c {
        '\u{30a0}'..='\u{30ff}' => Some(0),
        '\u{3400}'..='\u{9fff}' => Some(1),
        _ if c.is_ascii_alphanumeric() => Some(2),
        _ => None,
    };
    let mut runs = Vec::new();
    let mut from = 0;
    for (at, c) in text.char_indices() {
        let before = text[..at].chars().next_back().and_then(script);
        if script(c) != before {
            if before.is_some() {
                runs.push(&text[from..at]);
            }
            from = at;
        }
    }
    if text.chars().next_back().and_then(script).is_some() {
        runs.push(&text[from..]);
    }
    runs
}

fn pair(a: &str, b: &str) -> String {
    let (first, second) = if a <= b { (a, b) } else { (b, a) };
    format!("{first} {second}")
}

/// All pieces of these lengths, in characters.
fn pieces(text: &str, lengths: RangeInclusive<usize>, mut add: impl FnMut(&str)) {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    for length in lengths {
        ends.windows(length + 1).for_each(|window| add(&text[window[0]..window[length]]));
    }
}

/// FNV-1a.
pub fn hash(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Start of a hash.
pub const HASH_SEED: u64 = 0xcbf2_9ce4_8422_2325;

fn bucket(kind: char, feature: &str) -> usize {
    let hash = hash(hash(HASH_SEED, &[kind as u8]), feature.as_bytes());
    // The low bits of FNV are weak.
    ((hash ^ (hash >> 32)) % N_BUCKETS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_feature_counts_by_its_logarithm() {
        let features = Features { buckets: vec![(7, 2.0), (3, 1.0), (7, 2.0)], words: Vec::new() };
        assert_eq!(features.weights(), [(3, 1.0), (7, 2.0 * (1.0 + 2f32.ln()))]);
    }

    #[test]
    fn texts_that_differ_in_marks_and_case_are_the_same() {
        let read = |text| super::read(Language::English, &Synonyms::default(), text);
        assert_eq!(read("Print a chat?"), read("  print  A chat"));
        assert_eq!(read("?!"), TextFeatures::default());
        // Pieces: 12 of " print ", 1 of " a ", 9 of " chat "; then 3 words, 3 pairs in either order, 4 with the ends.
        assert_eq!(read("print a chat").counts.len(), 12 + 1 + 9 + 3 + 3 + 4);
    }

    #[test]
    fn japanese_is_read_by_its_scripts() {
        assert_eq!(script_runs(" GPUで モデルを動かす "), ["GPU", "モデル", "動"]);
        let synonyms = Synonyms::parse(Language::Japanese, "削除: 消す, 消し\n");
        assert_eq!(synonyms.meanings_in("チャットを消したい"), ["削除"]);
    }
}
