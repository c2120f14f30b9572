//! One answer with options that differ from its conversation's. The chat's own settings stay
//! unchanged, and the answer records the options that it was made with.

use crate::turns::turn_plan::NextAnswer;
use contract::Responder;
use contract::Result;
use contract::types::{ConversationOptions, OneOffOptions};
use prompt::answer_options::{check_thinking, set_thinking};

use crate::App;

impl App {
    /// Like `next`, with one-off options over the conversation's options. Errors name the value
    /// that is out of range.
    pub(crate) fn next_one_off(
        &self,
        model: &str,
        responder: Responder,
        options: ConversationOptions,
        once: OneOffOptions,
    ) -> Result<NextAnswer> {
        check_thinking(once.thinking.as_deref(), once.effort.as_deref())?;
        let options = ConversationOptions {
            temperature: once.temperature.or(options.temperature),
            top_p: once.top_p.or(options.top_p),
            seed: once.seed.or(options.seed),
            ..options
        };
        let mut next = self.next(model, responder, &options)?;
        let kwargs = &mut next.request.chat.kwargs;
        set_thinking(kwargs, once.thinking.as_deref(), once.effort.as_deref());
        next.one_off = (once != OneOffOptions::default()).then_some(once);
        Ok(next)
    }
}
