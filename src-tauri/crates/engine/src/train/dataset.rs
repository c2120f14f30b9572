//! Examples that can be learned from, those that cannot with the reason, and a part that is held out.

use std::collections::HashMap;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::data_file::{DataContent, DataItem};
use super::encode::ExampleEncoder;
use super::trainer::TrainingExample;
use crate::error::{EngineError, Result};
use crate::kv::checksum::xxh64;

/// An item that is not learned from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedItem {
    /// Line where it starts, from 1.
    pub line: usize,
    /// Why, as a clause.
    pub reason: String,
}

/// An example with what it was made of.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledExample {
    /// Its tokens.
    pub tokens: TrainingExample,
    /// Line where it starts, from 1.
    pub line: usize,
    /// What the file holds there.
    pub content: DataContent,
}

/// Everything to train on.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// To learn from, in the order of the file.
    pub train: Vec<LabelledExample>,
    /// Never learned from.
    pub held_out: Vec<LabelledExample>,
    /// Left out.
    pub skipped: Vec<SkippedItem>,
}

/// One of this many examples is held out.
const HELD_OUT_SHARE: usize = 10;
/// Most examples that are held out: they are measured again and again.
const MAX_HELD_OUT: usize = 64;

impl Dataset {
    /// Encodes items. `seed` determines which are held out. Examples longer than `max_tokens`, repeated ones and ones
    /// without an answer are skipped.
    ///
    /// Errors: `tune.no_examples`, with the first reasons.
    pub fn new(items: Vec<DataItem>, encoder: &ExampleEncoder, max_tokens: usize, seed: u64) -> Result<Self> {
        let (mut all, mut skipped) = (Vec::new(), Vec::new());
        let mut seen: HashMap<Vec<u32>, usize> = HashMap::new();
        for DataItem { line, content } in items {
            let examples = content.and_then(|content| Ok((encoder.examples(&content, max_tokens)?, content)));
            match examples {
                Err(reason) => skipped.push(SkippedItem { line, reason }),
                Ok((examples, content)) => {
                    for tokens in examples {
                        match refusal(&tokens, max_tokens, seen.get(&tokens.ids)) {
                            Some(reason) => skipped.push(SkippedItem { line, reason }),
                            None => {
                                seen.insert(tokens.ids.clone(), line);
                                all.push(LabelledExample { tokens, line, content: content.clone() });
                            }
                        }
                    }
                }
            }
        }
        if all.is_empty() {
            return Err(no_examples(&skipped));
        }
        let (train, held_out) = split(all, seed);
        Ok(Self { train, held_out, skipped })
    }

    /// Returns a hash of everything that is learned or measured.
    pub fn fingerprint(&self) -> u64 {
        let mut bytes = Vec::new();
        for example in self.train.iter().chain(&self.held_out) {
            bytes.extend((example.tokens.ids.len() as u64).to_le_bytes());
            bytes.extend(example.tokens.ids.iter().flat_map(|id| id.to_le_bytes()));
            bytes.extend(example.tokens.is_learned.iter().map(|is_learned| u8::from(*is_learned)));
        }
        xxh64(&bytes)
    }
}

fn refusal(tokens: &TrainingExample, max_tokens: usize, earlier: Option<&usize>) -> Option<String> {
    if tokens.n_learned() == 0 {
        return Some("it has nothing to learn".into());
    }
    if tokens.ids.len() > max_tokens {
        return Some(format!("it has {} tokens, more than {max_tokens}", tokens.ids.len()));
    }
    earlier.map(|line| format!("it repeats line {line}"))
}

/// Reasons that an error names.
const SHOWN_REASONS: usize = 3;

fn no_examples(skipped: &[SkippedItem]) -> EngineError {
    let reasons: Vec<String> =
        skipped.iter().take(SHOWN_REASONS).map(|it| format!("line {}: {}", it.line, it.reason)).collect();
    let message = match reasons.is_empty() {
        true => "the data holds no example".to_owned(),
        false => format!("no example of the data can be used: {}", reasons.join("; ")),
    };
    EngineError::new(
        "tune.no_examples",
        message,
        concat!(
            "Write one chat per line, such as ",
            r#"{"messages":[{"role":"user","content":"…"},{"role":"assistant","content":"…"}]}."#
        ),
    )
}

/// Holds some out, at least one if there are two.
fn split(all: Vec<LabelledExample>, seed: u64) -> (Vec<LabelledExample>, Vec<LabelledExample>) {
    let n = match all.len() {
        1 => 0,
        n => (n / HELD_OUT_SHARE).clamp(1, MAX_HELD_OUT),
    };
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.shuffle(&mut StdRng::seed_from_u64(seed));
    let is_held_out = |i: usize| order[..n].contains(&i);
    let (held_out, train): (Vec<_>, Vec<_>) = all.into_iter().enumerate().partition(|(i, _)| is_held_out(*i));
    let without_index = |part: Vec<(usize, LabelledExample)>| part.into_iter().map(|(_, it)| it).collect();
    (without_index(train), without_index(held_out))
}
