//! Trains the classifier: one linear support vector machine per class with squared hinge loss. The method is dual
//! coordinate descent (Hsieh et al., "A dual coordinate descent method for large-scale linear SVM", 2008).
//!
//! The same inputs give the same weights: nothing depends on time, threads or a random seed.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::Language;
use crate::articles;
use crate::classifier::{Classifier, MAGIC, Verdict};
use crate::features::{HASH_SEED, IDF_STEPS, N_BUCKETS, N_FEATURES, TextFeatures, hash, read};
use crate::questions::{self, OUT_OF_SCOPE, SMALL_TALK};
use crate::words::{Synonyms, fold, phrases};

/// How much a wrong side of the margin costs beside large weights.
const COST: f32 = 2.0;
/// Passes over the samples. Most of them look only at samples that still change something.
const N_PASSES: usize = 24;
/// Distance between passes over all samples.
const WHOLE_PASS_EVERY: usize = 6;
/// Samples whose gradient is larger, and that the weights ignore, wait for the next whole pass.
const IDLE_GRADIENT: f32 = 0.1;
/// Weights that are kept, largest first: fewer change the answers of the cross-validation.
const MAX_ENTRIES: usize = 800_000;

/// A question with its class.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The question.
    pub text: String,
    /// Index of the article; then out of scope, then small talk.
    pub class: usize,
}

/// The class of an article's id or of a block without article: `out-of-scope`, `small-talk`. `None` for other names.
pub fn class_of(language: Language, id: &str) -> Option<usize> {
    let topics = articles::of(language);
    let ids = topics.iter().flat_map(|topic| &topic.articles).map(|it| it.id.as_str());
    let names = [OUT_OF_SCOPE, SMALL_TALK];
    ids.chain(names).position(|it| it == id)
}

/// All questions of a language: titles and other wordings of the articles, and `docs/guide/questions`.
///
/// # Panics
/// If a block of questions names no article, which a test rules out.
pub fn samples(language: Language) -> Vec<Sample> {
    let mut samples = Vec::new();
    let articles = articles::of(language).into_iter().flat_map(|topic| topic.articles);
    for (class, article) in articles.enumerate() {
        let texts = std::iter::once(article.title).chain(article.phrasings);
        samples.extend(texts.map(|text| Sample { text, class }));
    }
    for block in questions::of(language) {
        let class = class_of(language, block.id).unwrap_or_else(|| {
            panic!("docs/guide/questions/{}.txt: no article {}", language.code(), block.id)
        });
        samples.extend(block.questions.iter().map(|text| Sample { text: (*text).to_owned(), class }));
    }
    samples.extend(other_subjects(language));
    samples
}

/// Words of other subjects that mean nothing in the application, as questions out of scope.
fn other_subjects(language: Language) -> Vec<Sample> {
    let class = class_of(language, OUT_OF_SCOPE).expect("there is a class for it");
    let known: BTreeSet<String> = phrases(articles::synonyms(language)).map(fold).collect();
    let words: BTreeSet<&str> = phrases(articles::other_subjects(language)).collect();
    let words = words.into_iter().filter(|word| !known.contains(&fold(word)));
    words.map(|word| Sample { text: word.to_owned(), class }).collect()
}

/// A hash of everything that the weights of a language depend on.
pub fn inputs(language: Language) -> u64 {
    let files = [articles::synonyms(language), articles::other_subjects(language), DEVELOPMENT_SET];
    let start = files.iter().fold(hash(HASH_SEED, MAGIC), |sum, file| hash(sum, file.as_bytes()));
    samples(language).iter().fold(start, |sum, sample| {
        hash(hash(sum, &sample.class.to_le_bytes()), format!("{}\n", sample.text).as_bytes())
    })
}

/// Share of the development set's questions out of scope that the threshold declines.
const DECLINED_SHARE: f32 = 0.96;
/// Lowest and highest threshold: the development set is small, and its questions out of scope are easy.
const THRESHOLDS: RangeInclusive<f32> = -0.7..=-0.1;

/// The file of weights for a language. Its threshold for what is out of scope is chosen with the development set.
pub fn train(language: Language) -> Vec<u8> {
    let mut file = train_on(language, &samples(language));
    let classifier = Classifier::parse(language, Synonyms::of(language), &file);
    let classifier = classifier.expect("what was just written can be read");
    let outside = class_of(language, OUT_OF_SCOPE);
    let questions = questions_of_set(language, DEVELOPMENT_SET);
    let questions = questions.iter().filter(|it| Some(it.class) == outside);
    let threshold =
        threshold_of(questions.filter_map(|it| classifier.outside(&it.text)).collect(), &THRESHOLDS);
    file[THRESHOLD_AT..THRESHOLD_AT + 4].copy_from_slice(&threshold.to_le_bytes());
    file
}

/// The highest threshold that declines `DECLINED_SHARE` of these scores. A score at the threshold itself is answered.
fn threshold_of(mut scores: Vec<f32>, range: &RangeInclusive<f32>) -> f32 {
    scores.sort_by(|a, b| b.total_cmp(a));
    let n_declined = (scores.len() as f32 * DECLINED_SHARE) as usize;
    let last_declined = n_declined.checked_sub(1).and_then(|n| scores.get(n));
    let threshold = last_declined.map_or(DEFAULT_THRESHOLD, |score| score.next_down());
    threshold.clamp(*range.start(), *range.end())
}

/// Where the threshold lies in a file of weights, and its value before it is chosen.
const THRESHOLD_AT: usize = MAGIC.len() + 8;
const DEFAULT_THRESHOLD: f32 = -0.4;

/// Questions that are not learned: they choose the threshold and measure what was learned.
pub const DEVELOPMENT_SET: &str = include_str!("../examples/development.tsv");

/// The questions of a language in a file such as `examples/development.tsv`: language, ids of articles or `-`, question.
/// One with several right articles counts as a question of the first.
///
/// # Panics
/// If an id is no article's.
pub fn questions_of_set(language: Language, lines: &str) -> Vec<Sample> {
    let sample = |line: &str| {
        let [code, ids, question] = line.split('\t').collect::<Vec<_>>()[..] else { return None };
        let id = ids.split(',').next().filter(|_| code == language.code())?;
        let class = class_of(language, if id == "-" { OUT_OF_SCOPE } else { id });
        Some(Sample { text: question.to_owned(), class: class.unwrap_or_else(|| panic!("no article {id}")) })
    };
    lines.lines().filter_map(sample).collect()
}

/// The file of weights that some samples give.
pub fn train_on(language: Language, samples: &[Sample]) -> Vec<u8> {
    let synonyms = Synonyms::of(language);
    let texts: Vec<_> = samples.iter().map(|sample| read(language, &synonyms, &sample.text)).collect();
    let idf = inverse_frequencies(&texts);
    let vectors: Vec<_> = texts.into_iter().map(|text| text.vector(&idf)).collect();
    let n_classes = samples.iter().map(|sample| sample.class + 1).max().unwrap_or(0);
    let train = |is_in_class: &dyn Fn(usize) -> bool| {
        let signs: Vec<f32> =
            samples.iter().map(|it| if is_in_class(it.class) { 1.0 } else { -1.0 }).collect();
        train_class(&vectors, &signs)
    };
    let mut machines: Vec<Vec<f32>> = (0..n_classes).map(|class| train(&|it| it == class)).collect();
    // The last two classes are what is out of scope and small talk.
    machines.push(train(&|it| it + 2 >= n_classes));
    write(inputs(language), &machines, &idf)
}

/// Right answers among questions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HeldOutScore {
    /// Questions that are answered as they should be.
    pub n_right: usize,
    /// All questions.
    pub n_questions: usize,
}

/// How questions are answered with some weights: those of articles, and those out of scope.
///
/// # Panics
/// If the weights are not as `train` makes them.
pub fn answers_held_out(language: Language, weights: &[u8], held_out: &[Sample]) -> [HeldOutScore; 2] {
    let synonyms = Synonyms::of(language);
    let classifier = Classifier::parse(language, synonyms, weights);
    let classifier = classifier.expect("weights of the language");
    let n_articles = articles::of(language).iter().map(|topic| topic.articles.len()).sum::<usize>();
    let mut scores = [HeldOutScore::default(); 2];
    for sample in held_out {
        let is_right = match classifier.classify(&sample.text) {
            Verdict::Article { best, .. } => best.article == sample.class,
            Verdict::SmallTalk | Verdict::OutOfScope => sample.class >= n_articles,
        };
        let score = &mut scores[usize::from(sample.class >= n_articles)];
        score.n_right += usize::from(is_right);
        score.n_questions += 1;
    }
    scores
}

/// Fewest samples of a feature that is known. What occurs once says nothing about other questions.
const MIN_SAMPLES: u32 = 2;

/// Per bucket; 0 where too few samples have it.
fn inverse_frequencies(samples: &[TextFeatures]) -> Vec<u8> {
    let mut n_with = vec![0u32; N_BUCKETS];
    samples.iter().flat_map(|it| &it.counts).for_each(|(bucket, _)| n_with[*bucket] += 1);
    let total = samples.len() as f32;
    let idf = |n: u32| match n {
        0..MIN_SAMPLES => 0,
        n => ((((1.0 + total) / (1.0 + n as f32)).ln() + 1.0) * IDF_STEPS).round() as u8,
    };
    n_with.into_iter().map(idf).collect()
}

/// Weights per feature, then the bias.
fn train_class(samples: &[Vec<(usize, f32)>], signs: &[f32]) -> Vec<f32> {
    let mut weights = vec![0f32; N_FEATURES + 1];
    let mut duals = vec![0f32; samples.len()];
    let mut is_idle = vec![false; samples.len()];
    // A sample's squared length is 1, and its constant feature adds 1.
    let (slack, curvature) = (0.5 / COST, 2.0 + 0.5 / COST);
    let mut order: Vec<usize> = (0..samples.len()).collect();
    for pass in 0..N_PASSES {
        if pass % WHOLE_PASS_EVERY == 0 {
            is_idle.fill(false);
        }
        shuffle(&mut order, pass as u64 + 1);
        for &n in order.iter().filter(|&&n| !is_idle[n]).collect::<Vec<_>>() {
            let margin: f32 = samples[n].iter().map(|(bucket, value)| weights[*bucket] * value).sum();
            let gradient = signs[n] * (margin + weights[N_FEATURES]) - 1.0 + slack * duals[n];
            if duals[n] == 0.0 && gradient >= 0.0 {
                is_idle[n] = gradient > IDLE_GRADIENT;
                continue;
            }
            let dual = (duals[n] - gradient / curvature).max(0.0);
            let step = (dual - duals[n]) * signs[n];
            duals[n] = dual;
            samples[n].iter().for_each(|(bucket, value)| weights[*bucket] += step * value);
            weights[N_FEATURES] += step;
        }
    }
    weights
}

/// A permutation that depends on the seed alone (xorshift).
fn shuffle(order: &mut [usize], seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for n in (1..order.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(n, (state % (n as u64 + 1)) as usize);
    }
}

/// The format that `Classifier::parse` reads.
fn write(inputs: u64, machines: &[Vec<f32>], idf: &[u8]) -> Vec<u8> {
    let mut sizes: Vec<f32> =
        machines.iter().flat_map(|weights| &weights[..N_FEATURES]).map(|weight| weight.abs()).collect();
    sizes.sort_unstable_by(|a, b| b.total_cmp(a));
    let largest = sizes.first().copied().unwrap_or(0.0).max(f32::MIN_POSITIVE);
    let smallest = sizes.get(MAX_ENTRIES).copied().unwrap_or(0.0);
    let scale = largest / f32::from(i8::MAX);
    let mut file = MAGIC.to_vec();
    file.extend(inputs.to_le_bytes());
    file.extend(DEFAULT_THRESHOLD.to_le_bytes());
    file.extend(scale.to_le_bytes());
    file.push(u8::try_from(machines.len()).expect("the guide has fewer than 255 articles"));
    file.extend(machines.iter().flat_map(|weights| weights[N_FEATURES].to_le_bytes()));
    file.extend(idf);
    let (mut n_of_bucket, mut entries) = (Vec::with_capacity(N_FEATURES), Vec::new());
    for bucket in 0..N_FEATURES {
        let before = entries.len();
        for (class, weights) in machines.iter().enumerate() {
            let rounded = (weights[bucket] / scale).round() as i8;
            if weights[bucket].abs() > smallest && rounded != 0 {
                entries.push([class as u8, rounded.cast_unsigned()]);
            }
        }
        n_of_bucket.push((entries.len() - before) as u8);
    }
    file.extend(n_of_bucket);
    file.extend(entries.into_iter().flatten());
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learned_is_found_again() {
        let sample = |text: &str, class| Sample { text: text.into(), class };
        let samples = [
            sample("how do I print", 0),
            sample("print on paper", 0),
            sample("printing on paper", 0),
            sample("delete a chat", 1),
            sample("throw the chat away", 1),
            sample("throw away all chats", 1),
            sample("the weather in Rome", 2),
            sample("weather tomorrow", 2),
            sample("hello", 3),
            sample("hello there", 3),
        ];
        let file = train_on(Language::English, &samples);
        let classifier = Classifier::parse(Language::English, Synonyms::of(Language::English), &file);
        let classifier = classifier.expect("whole");
        let article = |question: &str| match classifier.classify(question) {
            Verdict::Article { best, .. } => Some(best.article),
            Verdict::SmallTalk | Verdict::OutOfScope => None,
        };
        assert_eq!(article("printing paper"), Some(0));
        assert_eq!(article("throw away chats"), Some(1));
        assert_eq!(classifier.classify("weather"), Verdict::OutOfScope);
        assert_eq!(classifier.classify("hello"), Verdict::SmallTalk);
        assert_eq!(classifier.classify("zzz 999"), Verdict::OutOfScope);
        assert_eq!(train_on(Language::English, &samples), file, "the same inputs give the same weights");
    }

    #[test]
    fn a_threshold_is_just_below_the_last_score_that_it_declines() {
        // 96 % of 25 scores are 24: the highest 24 are declined, the last is answered.
        let scores: Vec<f32> = (0..25).map(|n| if n == 7 { -0.6 } else { -0.4 }).collect();
        let threshold = threshold_of(scores, &THRESHOLDS);
        assert!((-0.400_001..-0.4).contains(&threshold), "{threshold}");
        assert_eq!(threshold_of(vec![0.9; 25], &THRESHOLDS), -0.1);
        assert_eq!(threshold_of(Vec::new(), &THRESHOLDS), DEFAULT_THRESHOLD);
    }

    #[test]
    fn a_shuffle_is_a_permutation() {
        let mut order: Vec<usize> = (0..50).collect();
        shuffle(&mut order, 3);
        assert_ne!(order, (0..50).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
    }
}
