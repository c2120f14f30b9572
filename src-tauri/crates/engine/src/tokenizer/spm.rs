//! SentencePiece BPE: neighbors merge by the score of the result. Characters without a token become bytes.

use super::TokenId;
use super::merge::{MergeScratch, NONE};
use super::vocab::Vocab;

/// Tokens of a character that is neither in the vocabulary nor written as bytes.
#[derive(Debug, Clone, Copy)]
pub struct Spm {
    pub unknown: Option<TokenId>,
}

impl Spm {
    /// Appends the tokens of `text`, whose spaces are already `▁`.
    pub fn encode(&self, vocab: &Vocab, text: &str, scratch: &mut MergeScratch, out: &mut Vec<TokenId>) {
        scratch.clear();
        for (start, c) in text.char_indices() {
            let end = start + c.len_utf8();
            let id = vocab.find(&text.as_bytes()[start..end]).unwrap_or(NONE);
            scratch.push(start as u32, end as u32, id);
        }
        scratch.merge(|left, right| {
            let id = vocab.find(&text.as_bytes()[left.start as usize..right.end as usize])?;
            Some((rank(vocab.score(id)), id))
        });
        let mut after_unknown = false;
        for symbol in scratch.symbols() {
            if symbol.id != NONE {
                out.push(symbol.id);
                after_unknown = false;
                continue;
            }
            let bytes = &text.as_bytes()[symbol.start as usize..symbol.end as usize];
            if vocab.fall_back(bytes, self.unknown, out) {
                after_unknown = false;
            } else if let Some(unknown) = self.unknown.filter(|_| !after_unknown) {
                out.push(unknown);
                after_unknown = true;
            }
        }
    }
}

/// Maps a higher score to a smaller rank.
fn rank(score: f32) -> u32 {
    let bits = score.to_bits();
    let ordered = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
    !ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_scores() {
        let scores = [f32::INFINITY, 3.0, 0.5, 0.0, -0.5, -1e9, f32::NEG_INFINITY];
        assert!(scores.windows(2).all(|pair| rank(pair[0]) < rank(pair[1])));
    }
}
