//! Compiles the constraint of a request for the model's vocabulary.

use engine::TokenId;
use engine::constraint::{ConstraintCompiler, ReasoningGate, ReplyConstraint};
use engine::reply::call_form;

use super::LoadedModel;
use contract::protocol::{Constraint, GenerateRequest};
use contract::{Error, ErrorKind, Result};
use prompt::render::{PreparedPrompt, no_vocabulary};

impl LoadedModel {
    /// The request's constraint, behind what the answer `had`.
    pub(super) fn constrain(
        &mut self,
        request: &GenerateRequest,
        prepared: &mut PreparedPrompt,
        had: &[TokenId],
    ) -> Result<Option<ReplyConstraint>> {
        let Some(constraint) = &request.constraint else { return Ok(None) };
        let tokenizer = self.model.tokenizer().ok_or_else(|| no_vocabulary(&self.reference.id))?;
        let (form, gate) = match crate::constraints::text_form(constraint) {
            Some(form) => (form, prepared.gate.clone()),
            None => {
                let Constraint::ToolCall { name } = constraint else {
                    return Err(Error::bug("a constraint without a form"));
                };
                let (text, tools) = (&prepared.text, &request.chat.tools);
                let form = call_form(&prepared.format, text, tools, name.as_deref(), tokenizer)?;
                let gate = match prepared.format.has_messages() {
                    // The form has the reasoning in it.
                    true => ReasoningGate::none(),
                    false => prepared.gate.clone(),
                };
                prepared.format = std::mem::take(&mut prepared.format).with_forced_calls();
                (form, gate)
            }
        };
        let markup = prepared.format.markup_tokens();
        if !self.constraints.as_ref().is_some_and(|it| it.has_markup(markup)) {
            let n_vocab = self.model.info().n_vocab;
            self.constraints = Some(ConstraintCompiler::new(tokenizer, markup, n_vocab)?);
        }
        let Some(compiler) = &self.constraints else { return Ok(None) };
        let mut compiled = compiler.compile(&form, gate)?;
        for &token in had {
            if !compiled.accept_forced(token, &tokenizer.decode(&[token]))? {
                return Err(cannot_continue());
            }
        }
        Ok(Some(compiled))
    }
}

fn cannot_continue() -> Error {
    Error::new(
        ErrorKind::Conflict,
        "constraint.cannot_continue",
        "This answer doesn't have the form that is demanded, so it can't be continued in it.",
        "Regenerate it instead.",
    )
}
