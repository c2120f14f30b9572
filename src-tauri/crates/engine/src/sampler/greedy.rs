//! Takes the most likely token, ties by lower id.

use super::{Candidate, by_likelihood};
use crate::tokenizer::TokenId;

pub fn likeliest(candidates: &[Candidate]) -> Option<TokenId> {
    candidates.iter().min_by(|a, b| by_likelihood(a, b)).map(|c| c.id)
}
