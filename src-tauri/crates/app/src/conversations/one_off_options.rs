//! One answer with options that differ from its conversation's. The chat's own settings stay
//! unchanged, and the answer records the options that it was made with.

use serde_json::json;

use crate::turns::turn_plan::NextAnswer;
use contract::Responder;
use contract::Result;
use contract::settings;
use contract::types::{ConversationOptions, OneOffOptions};

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
        let told = [("thinking", once.thinking.as_deref()), ("reasoning_effort", once.effort.as_deref())];
        for (key, value) in told.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            settings::find(key)?.check(&json!(value))?;
        }
        let options = ConversationOptions {
            temperature: once.temperature.or(options.temperature),
            top_p: once.top_p.or(options.top_p),
            seed: once.seed.or(options.seed),
            ..options
        };
        let mut next = self.next(model, responder, &options)?;
        let kwargs = &mut next.request.chat.kwargs;
        match once.thinking.as_deref() {
            Some("on") => _ = kwargs.insert("enable_thinking".into(), json!(true)),
            Some("off") => _ = kwargs.insert("enable_thinking".into(), json!(false)),
            Some(_) => _ = kwargs.remove("enable_thinking"),
            None => {}
        }
        match once.effort.as_deref() {
            Some("model") => _ = kwargs.remove("reasoning_effort"),
            Some(effort) => _ = kwargs.insert("reasoning_effort".into(), json!(effort)),
            None => {}
        }
        next.one_off = (once != OneOffOptions::default()).then_some(once);
        Ok(next)
    }
}
