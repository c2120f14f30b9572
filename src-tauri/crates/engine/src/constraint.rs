//! Constraints of replies: the text behind the reasoning has a given form.
//!
//! The mask is applied before any sampler stage. Drafted tokens that the form does not permit are cut off.

mod compiler;
mod reasoning_gate;

pub use ::constraint::{TextForm, TextPart};
use ::constraint::{TokenConstraint, Verdict};

pub use compiler::{ConstraintCompiler, TextChecker};
pub use reasoning_gate::ReasoningGate;

use crate::TokenId;
use crate::error::{EngineError, Result};

/// Converts a grammar in llama.cpp's GBNF to Lark.
///
/// Errors: `constraint.invalid` with line and column.
pub fn lark_of_gbnf(grammar: &str) -> Result<String> {
    Ok(::constraint::lark_of_gbnf(grammar)?)
}

/// The constraint of one reply.
#[derive(Debug, Clone)]
pub struct ReplyConstraint {
    gate: ReasoningGate,
    form: TokenConstraint,
    /// Every token but those that end a reply, a bit for each.
    unended: Vec<u32>,
    /// The mask of the next token.
    mask: Vec<u32>,
    /// The tokens that end the reply, sorted.
    ends: Vec<TokenId>,
}

impl From<::constraint::ConstraintError> for EngineError {
    fn from(error: ::constraint::ConstraintError) -> Self {
        Self::new(error.code(), error.to_string(), error.remedy())
    }
}

impl ReplyConstraint {
    fn new(gate: ReasoningGate, form: TokenConstraint, n_tokens: usize, ends: Vec<TokenId>) -> Self {
        let mut unended = vec![u32::MAX; n_tokens.div_ceil(32)];
        ends.iter().for_each(|&end| set_bit(&mut unended, end, false));
        Self { gate, form, unended, mask: Vec::new(), ends }
    }

    /// Returns the tokens that may come next, a bit for each, lowest first.
    ///
    /// Errors: `constraint.stopped`, `constraint.dead_end`.
    pub fn mask(&mut self) -> Result<&[u32]> {
        if self.gate.is_reasoning() {
            return Ok(&self.unended);
        }
        self.mask.clear();
        self.mask.extend_from_slice(self.form.mask()?);
        if let Some(open) = self.gate.may_open() {
            set_bit(&mut self.mask, open, true);
        }
        Ok(&self.mask)
    }

    /// Takes the next token; `text` is its text with control tokens written out. False: it may not come next, and the
    /// mask no longer has it.
    ///
    /// Errors: `constraint.stopped`.
    pub fn accept(&mut self, token: TokenId, text: &str) -> Result<bool> {
        if self.gate.is_reasoning() {
            if self.ends.binary_search(&token).is_ok() {
                return Ok(false);
            }
            self.gate.observe(text);
            return Ok(true);
        }
        if self.gate.may_open() == Some(token) {
            self.gate.open();
            return Ok(true);
        }
        let is_accepted = self.form.accept(token)? == Verdict::Accepted;
        if is_accepted {
            self.gate.close();
        }
        Ok(is_accepted)
    }

    /// Takes a token that was not sampled, such as the end of a reasoning budget. White space behind the reasoning is
    /// no part of the form.
    ///
    /// Errors: as `accept`.
    pub fn accept_forced(&mut self, token: TokenId, text: &str) -> Result<bool> {
        let is_behind_reasoning = !self.gate.is_reasoning() && text.trim().is_empty();
        Ok(self.accept(token, text)? || is_behind_reasoning)
    }

    /// Returns how many drafted tokens the form permits, one after the other. What follows reasoning that a draft
    /// ends is not looked at.
    ///
    /// Errors: `constraint.stopped`.
    pub fn n_permitted(&mut self, draft: &[TokenId]) -> Result<usize> {
        let opens = |first: &TokenId| self.gate.may_open() == Some(*first);
        if self.gate.is_reasoning() || draft.first().is_none_or(opens) {
            return Ok(draft.len());
        }
        Ok(self.form.n_permitted(draft)?)
    }

    /// Returns whether the form is complete and nothing but the end can follow.
    pub fn is_over(&self) -> bool {
        !self.gate.is_reasoning() && self.form.is_over()
    }

    /// Returns whether the vocabulary has a token that ends a reply.
    pub fn has_end(&self) -> bool {
        !self.ends.is_empty()
    }
}

fn set_bit(mask: &mut [u32], token: TokenId, is_set: bool) {
    if let Some(word) = mask.get_mut(token as usize / 32) {
        let bit = 1 << (token % 32);
        *word = if is_set { *word | bit } else { *word & !bit };
    }
}
