//! Unigram: the most likely segmentation of a text, found by Viterbi over token scores.
//!
//! A character without a token costs more than the rarest token. It becomes byte tokens if the vocabulary has them. A
//! token whose score is no finite number is never used.

use super::TokenId;
use super::vocab::{TokenKind, Vocab};

/// Distance of an uncovered character's score from the lowest score, as in SentencePiece.
const UNKNOWN_PENALTY: f64 = 10.0;

#[derive(Debug, Clone, Copy)]
pub struct Unigram {
    pub unknown: Option<TokenId>,
    /// Score of a character without a token.
    unknown_score: f64,
}

/// Best segmentation up to a position in the text.
#[derive(Clone, Copy)]
struct LatticeStep {
    score: f64,
    from: usize,
    /// `None`: one character without a token.
    id: Option<TokenId>,
}

impl Unigram {
    pub fn new(vocab: &Vocab, unknown: Option<TokenId>) -> Self {
        let normal = vocab.ids().filter(|(_, _, kind)| *kind == TokenKind::Normal);
        let scored = normal.filter(|(id, _, _)| vocab.has_finite_score(*id));
        let min_score = scored.map(|(id, _, _)| f64::from(vocab.score(id)));
        Self { unknown, unknown_score: min_score.fold(0.0, f64::min) - UNKNOWN_PENALTY }
    }

    /// Appends the tokens of `text`, whose spaces are already `▁`.
    pub fn encode(&self, vocab: &Vocab, text: &str, out: &mut Vec<TokenId>) {
        let mut best: Vec<Option<LatticeStep>> = vec![None; text.len() + 1]; // [t] byte at which a segmentation ends
        best[0] = Some(LatticeStep { score: 0.0, from: 0, id: None });
        let mut reach = 0; // end of the farthest token so far
        for (start, c) in text.char_indices() {
            let Some(step) = &mut best[start] else { continue };
            if start == reach {
                // All segmentations meet here: what came before decides nothing, and neither does its rounding.
                step.score = 0.0;
            }
            let score = step.score;
            let mut has_single = false;
            let ends = text[start..].char_indices().map(|(at, c)| start + at + c.len_utf8());
            for end in ends.take_while(|end| end - start <= vocab.longest()) {
                let Some(id) =
                    vocab.find(&text.as_bytes()[start..end]).filter(|id| vocab.has_finite_score(*id))
                else {
                    continue;
                };
                has_single |= end - start == c.len_utf8();
                reach = reach.max(end);
                let way =
                    LatticeStep { score: score + f64::from(vocab.score(id)), from: start, id: Some(id) };
                offer(&mut best[end], way);
            }
            reach = reach.max(start + c.len_utf8());
            if !has_single {
                let way = LatticeStep { score: score + self.unknown_score, from: start, id: None };
                offer(&mut best[start + c.len_utf8()], way);
            }
        }
        let mut path = Vec::new();
        let mut at = text.len();
        while at > 0 {
            let Some(step) = best[at] else { break };
            path.push((step, at));
            at = step.from;
        }
        let mut after_unknown = false;
        for (step, end) in path.into_iter().rev() {
            let bytes = &text.as_bytes()[step.from..end];
            match step.id {
                Some(id) => out.push(id),
                None if vocab.fall_back(bytes, self.unknown, out) => {}
                None if !after_unknown => out.extend(self.unknown),
                None => {}
            }
            after_unknown = step.id.is_none();
        }
    }
}

fn offer(place: &mut Option<LatticeStep>, way: LatticeStep) {
    if place.is_none_or(|best| way.score > best.score) {
        *place = Some(way);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::vocab::Decoding;

    fn check(tokens: &[(&str, f32, TokenKind)], text: &str, expected: &[TokenId]) {
        let scores = tokens.iter().map(|(_, score, _)| *score).collect();
        let kinds = tokens.iter().map(|(text, _, kind)| (text.as_bytes(), *kind));
        let decoding = Decoding::SentencePiece { strips_space: true };
        let vocab = Vocab::new(kinds, scores, decoding).expect("well-formed");
        let mut ids = Vec::new();
        Unigram::new(&vocab, Some(0)).encode(&vocab, text, &mut ids);
        assert_eq!(ids, expected, "{text}");
    }

    #[test]
    fn the_most_likely_segmentation_wins() {
        let tokens = [
            ("<unk>", 0.0, TokenKind::Unknown),
            ("</s>", 0.0, TokenKind::Control),
            ("a", -2.0, TokenKind::Normal),
            ("b", -2.0, TokenKind::Normal),
            ("ab", -3.0, TokenKind::Normal),
            ("abc", -9.0, TokenKind::Normal),
            ("c", -5.0, TokenKind::Normal),
            ("odd", f32::NAN, TokenKind::Normal),
        ];
        check(&tokens, "ab", &[4]);
        check(&tokens, "abc", &[4, 6]);
        check(&tokens, "ba", &[3, 2]);
        check(&tokens, "aéüb", &[2, 0, 3]);
        check(&tokens, "</s>", &[0]);
        check(&tokens, "", &[]);
    }

    /// Agrees with the Viterbi search of the `tokenizers` crate.
    #[test]
    fn segmentations_match_the_tokenizers_crate() {
        use tokenizers::Model;
        let mut state = 7_u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for _ in 0..40 {
            let mut pieces = vec![("<unk>".to_string(), 0.0_f64)];
            for at in 0..35 {
                let n = if at < 5 { 1 } else { below(3) + 2 };
                // Every character has a token, so that none is unknown.
                let letter = |n: u64| ['a', 'b', 'é', '▁', '好'][n as usize];
                let text: String = (0..n).map(|_| letter(if n == 1 { at } else { below(5) })).collect();
                if !pieces.iter().any(|(known, _)| *known == text) {
                    // Eighths, so that sums are exact in both.
                    pieces.push((text, -(below(64) as f64) / 8.0 - 1.0));
                }
            }
            let theirs =
                tokenizers::models::unigram::Unigram::from(pieces.clone(), Some(0), false).expect("sound");
            let kinds = pieces.iter().enumerate();
            let kinds = kinds.map(|(at, (text, _))| {
                (text.as_bytes(), if at == 0 { TokenKind::Unknown } else { TokenKind::Normal })
            });
            let scores = pieces.iter().map(|(_, score)| *score as f32).collect();
            let vocab =
                Vocab::new(kinds, scores, Decoding::SentencePiece { strips_space: true }).expect("sound");
            let ours = Unigram::new(&vocab, Some(0));
            for _ in 0..20 {
                let text: String =
                    (0..below(20)).map(|_| ['a', 'b', 'é', '▁', '好'][below(5) as usize]).collect();
                let mut ids = Vec::new();
                ours.encode(&vocab, &text, &mut ids);
                let score = |ids: &[TokenId]| ids.iter().map(|id| f64::from(vocab.score(*id))).sum::<f64>();
                let expected: Vec<TokenId> =
                    theirs.tokenize(&text).expect("splits").iter().map(|it| it.id).collect();
                // Either of two equally likely segmentations may be chosen.
                assert!(!ids.contains(&0), "{text}: {ids:?}");
                assert_eq!(score(&ids), score(&expected), "{text}: {ids:?} for {expected:?}");
            }
        }
    }
}
