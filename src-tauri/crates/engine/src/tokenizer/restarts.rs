//! Where encoding may restart in the middle of a text, judged by the steps before merging.
//!
//! Never guesses: only steps that look no further than their surroundings allow a restart. A regular expression from a
//! file may count from the beginning of the text, and a replacement may join what a restart separates.

use tokenizers::normalizers::replace::Replace;
use tokenizers::pre_tokenizers::split::SplitPattern;
use tokenizers::tokenizer::SplitDelimiterBehavior;
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper};

use super::pre::{DIGIT, GPT_2, NamedPreTokenizer, RestartPoints};
use super::vocab::Decoding;

/// Judges the steps of a `tokenizer.json`.
pub fn restart_points(
    normalizer: Option<&NormalizerWrapper>,
    pre_tokenizer: Option<&PreTokenizerWrapper>,
    decoding: Decoding,
) -> RestartPoints {
    match decoding {
        Decoding::ByteLevel
            if normalizers(normalizer).iter().all(|it| matches!(it, NormalizerWrapper::NFC(_)))
                && pre_tokenizer.and_then(patterns).is_some_and(|it| NamedPreTokenizer::splits_by(&it)) =>
        {
            RestartPoints::AtPieces
        }
        Decoding::SentencePiece { .. }
            if only_marks_spaces(normalizer) && pre_tokenizer.is_none_or(splits_at_one_char) =>
        {
            RestartPoints::BetweenUnpairedChars
        }
        Decoding::ByteLevel | Decoding::SentencePiece { .. } => RestartPoints::Never,
    }
}

/// Returns the steps of a normalizer, those of sequences each by itself.
fn normalizers(normalizer: Option<&NormalizerWrapper>) -> Vec<&NormalizerWrapper> {
    match normalizer {
        Some(NormalizerWrapper::Sequence(steps)) => {
            steps.as_ref().iter().flat_map(|step| normalizers(Some(step))).collect()
        }
        other => other.into_iter().collect(),
    }
}

fn pre_tokenizers(pre_tokenizer: &PreTokenizerWrapper) -> Vec<&PreTokenizerWrapper> {
    match pre_tokenizer {
        PreTokenizerWrapper::Sequence(steps) => steps.as_ref().iter().flat_map(pre_tokenizers).collect(),
        other => vec![other],
    }
}

/// Returns the patterns by which these steps split a text; `None` if they do anything else.
fn patterns(pre_tokenizer: &PreTokenizerWrapper) -> Option<Vec<&str>> {
    let steps = pre_tokenizers(pre_tokenizer);
    let mut patterns = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            PreTokenizerWrapper::Split(split) => match (&split.pattern, split.behavior, split.invert) {
                (SplitPattern::Regex(pattern), SplitDelimiterBehavior::Isolated, false)
                | (SplitPattern::Regex(pattern), SplitDelimiterBehavior::Removed, true) => {
                    patterns.push(pattern.as_str());
                }
                _ => return None,
            },
            PreTokenizerWrapper::Digits(digits) => {
                patterns.push(if digits.individual_digits { DIGIT } else { r"\p{N}+" });
            }
            // Later steps would see bytes instead of characters, and could split inside of one.
            PreTokenizerWrapper::ByteLevel(bytes) if !bytes.add_prefix_space && at + 1 == steps.len() => {
                patterns.extend(bytes.use_regex.then_some(GPT_2));
            }
            _ => return None,
        }
    }
    Some(patterns)
}

/// Returns whether a normalizer writes `▁` for every space and changes nothing else.
fn only_marks_spaces(normalizer: Option<&NormalizerWrapper>) -> bool {
    let Ok(marks_spaces) = Replace::new(" ", "▁") else { return false };
    let steps = normalizers(normalizer);
    matches!(steps[..], [NormalizerWrapper::Replace(step)] if *step == marks_spaces)
}

/// Returns whether all boundaries are beside one certain character.
fn splits_at_one_char(pre_tokenizer: &PreTokenizerWrapper) -> bool {
    pre_tokenizers(pre_tokenizer).iter().all(|step| match step {
        PreTokenizerWrapper::Split(split) => match &split.pattern {
            SplitPattern::String(text) => text.chars().count() == 1,
            SplitPattern::Regex(_) => false,
        },
        _ => false,
    })
}

#[cfg(test)]
mod tests;
