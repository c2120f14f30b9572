//! Sampling under a constraint.

use crate::TokenId;
use crate::constraint::ReplyConstraint;
use crate::error::{EngineError, Result};
use crate::sampler::SamplerChain;
use crate::tokenizer::Tokenizer;

/// Tokens that a constraint may refuse one by one at a position.
const MAX_REFUSALS: usize = 1024;

/// Draws until the constraint takes a token: some are refused only when they come.
pub(super) fn sample_constrained(
    constraint: &mut ReplyConstraint,
    chain: &mut SamplerChain,
    logits: &[f32],
    history: &[TokenId],
    tokenizer: Option<&Tokenizer>,
) -> Result<TokenId> {
    for _ in 0..MAX_REFUSALS {
        let drawn = chain.sample_masked(logits, constraint.mask()?, history).ok_or_else(nothing_left)?;
        let text = tokenizer.map_or_else(String::new, |tokenizer| tokenizer.decode(&[drawn]));
        if constraint.accept(drawn, &text)? {
            return Ok(drawn);
        }
        chain.take_back_draw();
    }
    Err(nothing_left())
}

pub(super) fn nothing_left() -> EngineError {
    EngineError::new(
        "constraint.dead_end",
        "no token is left that could come next",
        "Try again, ban fewer tokens, or simplify the constraint.",
    )
}
