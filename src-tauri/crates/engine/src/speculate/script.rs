//! Answers with fixed tokens, for benchmarks: models with random weights can be measured, too.

use crate::TokenId;

/// What an answer consists of, whatever the model samples.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// Tokens that replace the first sampled ones.
    pub tokens: Vec<TokenId>,
    /// Percent of a draft block's drafts that are made right, the others wrong. The block computes them all the same.
    /// `None`: drafts stay as they are.
    pub right_drafts_percent: Option<u8>,
}

impl From<Vec<TokenId>> for Script {
    fn from(tokens: Vec<TokenId>) -> Self {
        Self { tokens, right_drafts_percent: None }
    }
}

impl Script {
    /// Returns what is drafted in place of `drafted` for token `at` of the answer, and how sure of it the block is.
    pub(crate) fn drafted(&self, at: usize, drafted: (TokenId, u8)) -> (TokenId, u8) {
        let (Some(percent), Some(&right)) = (self.right_drafts_percent, self.tokens.get(at)) else {
            return drafted;
        };
        // Another token of the vocabulary; the first two always exist.
        let wrong = TokenId::from(right == 0);
        (if is_right(at, percent) { right } else { wrong }, percent)
    }
}

/// Whether the draft for token `at` is right: the same each time, and as often as `percent` says.
fn is_right(at: usize, percent: u8) -> bool {
    // Weyl's sequence is spread evenly, but drafts are right or wrong by chance: its bits are mixed.
    let mut bits = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (bits >> 33) % 100 < u64::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_drafts_are_right_as_wanted() {
        let tokens: Vec<TokenId> = (0..10_000).map(|at| at % 7).collect();
        for percent in [0, 40, 70, 100] {
            let script = Script { tokens: tokens.clone(), right_drafts_percent: Some(percent) };
            let n_right =
                tokens.iter().enumerate().filter(|&(at, &token)| script.drafted(at, (9, 1)).0 == token);
            let n_right = n_right.count();
            assert!(n_right.abs_diff(usize::from(percent) * 100) < 150, "{n_right} at {percent} %");
        }
        let script = Script { tokens, right_drafts_percent: None };
        assert_eq!((script.drafted(0, (9, 1)), script.drafted(20_000, (9, 1))), ((9, 1), (9, 1)));
    }
}
