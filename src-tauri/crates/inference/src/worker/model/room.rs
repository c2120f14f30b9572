//! Whether a prompt fits into a model's context. What doesn't is refused with its numbers.

use compaction::Strategy;
use contract::protocol::{GenerateRequest, Prompt};
use contract::{Error, ErrorKind, Result};
use prompt::render::Vocabulary;

use super::LoadedModel;

impl LoadedModel {
    /// Refuses what is far too long before it is rendered and read: that would take seconds.
    pub(super) fn refuse_overlong(&self, vocabulary: &Vocabulary, request: &GenerateRequest) -> Result<()> {
        let Prompt::Chat(messages) = &request.prompt else { return Ok(()) };
        let shown = match request.compression.as_ref().map(|it| it.strategy) {
            None => messages.as_slice(),
            // It is shortened token by token.
            Some(Strategy::Attention) => return Ok(()),
            // The last question is shown in any case.
            Some(Strategy::Window | Strategy::Summary) => {
                let last = messages.iter().rposition(|message| message.role == "user");
                &messages[last.unwrap_or(messages.len())..]
            }
        };
        match vocabulary.estimate_overlong(shown, self.model.info().n_ctx) {
            Some(n_about) => self.no_room(&format!("about {n_about}")),
            None => Ok(()),
        }
    }

    /// Nothing is cut silently: a prompt that doesn't fit is refused with its numbers.
    pub(super) fn check_room(&self, n_prompt: usize) -> Result<()> {
        match n_prompt <= self.model.info().n_ctx {
            true => Ok(()),
            false => self.no_room(&n_prompt.to_string()),
        }
    }

    fn no_room(&self, n_prompt: &str) -> Result<()> {
        let info = self.model.info();
        let remedy = if info.context_length > info.n_ctx {
            format!(
                "Increase the context length in the settings (this model supports up to {}), compact the chat, or start a new one.",
                info.context_length
            )
        } else {
            "Compact the chat, start a new one, or choose a model with a longer context.".into()
        };
        let message = format!("This chat needs {n_prompt} tokens, but the context has {}.", info.n_ctx);
        Err(Error::new(ErrorKind::Limit, "request.context_full", message, remedy))
    }
}
