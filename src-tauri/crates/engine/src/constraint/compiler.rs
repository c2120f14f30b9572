//! Compiles constraints for a model's vocabulary.

use ::constraint::{Compiler, TextForm, TokenText, Vocabulary, Whitespace};

use super::{ReasoningGate, ReplyConstraint};
use crate::TokenId;
use crate::error::Result;
use crate::tokenizer::Tokenizer;

/// Compiles constraints for one model. Creating it takes a moment, so it is kept with the model.
#[derive(Debug)]
pub struct ConstraintCompiler {
    compiler: Compiler,
    markup: Vec<TokenId>,
    n_vocab: usize,
    ends: Vec<TokenId>,
}

impl ConstraintCompiler {
    /// Prepares a vocabulary. `markup` are tokens that are no text, besides control tokens; `n_vocab` is the number of
    /// logits.
    ///
    /// Errors: `constraint.vocabulary`.
    pub fn new(tokenizer: &Tokenizer, markup: &[TokenId], n_vocab: usize) -> Result<Self> {
        let mut ends = Vec::new();
        let mut tokens = Vec::with_capacity(tokenizer.n_vocab());
        for id in (0..).take(tokenizer.n_vocab()) {
            if tokenizer.is_eog(id) {
                ends.push(id);
            }
            tokens.push(match tokenizer.is_eog(id) || markup.contains(&id) {
                true => TokenText::Markup(tokenizer.token_text(id).unwrap_or_default().to_owned()),
                false => tokenizer.constraint_text(id),
            });
        }
        let compiler = Compiler::new(Vocabulary::new(tokens, &ends), Whitespace::Bounded)?;
        Ok(Self { compiler, markup: markup.to_vec(), n_vocab, ends })
    }

    /// Returns whether it was prepared with this markup.
    pub fn has_markup(&self, markup: &[TokenId]) -> bool {
        self.markup == markup
    }

    /// Compiles a form that applies behind the reasoning.
    ///
    /// Errors: `constraint.invalid` with the reason, `constraint.too_large`.
    pub fn compile(&self, form: &TextForm, gate: ReasoningGate) -> Result<ReplyConstraint> {
        let form = self.compiler.compile(form)?;
        Ok(ReplyConstraint::new(gate, form, self.n_vocab, self.ends.clone()))
    }
}

/// Checks whole texts against a form, by their bytes alone: no model is needed.
#[derive(Debug)]
pub struct TextChecker {
    form: ::constraint::TokenConstraint,
    /// Of a JSON schema, with its properties in any order.
    unordered: Option<::constraint::TokenConstraint>,
}

impl TextChecker {
    /// Compiles a form.
    ///
    /// Errors: `constraint.invalid` with the reason, `constraint.too_large`.
    pub fn new(form: &TextForm) -> Result<Self> {
        let compiler = Compiler::new(Vocabulary::of_bytes(), Whitespace::Any)?;
        let unordered = match form {
            TextForm::JsonSchema(schema) => Some(compiler.compile_unordered(schema)?),
            TextForm::JsonObject | TextForm::Regex(_) | TextForm::Lark(_) | TextForm::Sequences(_) => None,
        };
        Ok(Self { form: compiler.compile(form)?, unordered })
    }

    /// Returns whether a text has the form. White space around it does not count, nor does the order of properties,
    /// although answers are generated in the schema's order.
    ///
    /// Errors: `constraint.stopped`.
    pub fn accepts(&self, text: &str) -> Result<bool> {
        let text = text.trim().as_bytes();
        if self.form.clone().accepts_text(text)? {
            return Ok(true);
        }
        match &self.unordered {
            Some(unordered) => Ok(unordered.clone().accepts_text(text)?),
            None => Ok(false),
        }
    }
}
