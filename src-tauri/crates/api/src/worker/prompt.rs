//! Messages to prompt ids: the model's chat template, or a plain form for models that carry none.

use engine::TokenId;
use engine::template::{ChatTemplate, RenderInput};
use engine::tokenizer::{KnownIds, Special, Tokenizer};
use serde_json::{Map, Value, json};

use super::protocol::{Prompt, PromptMessage};
use crate::error::{Error, Result};

/// For models with the markup in their vocabulary but no template in their file.
const CHATML: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
                      {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// For models that were never taught to chat: they go on with the text.
const PLAIN: &str =
    "{% for message in messages %}{{ message.content }}{% if not loop.last %}\n{% endif %}{% endfor %}";

/// A prompt ready for the model.
pub struct Prepared {
    pub ids: Vec<TokenId>,
    /// The text they stand for: tells whether the answer begins inside a reasoning block.
    pub text: String,
}

/// What belongs to the model.
pub struct Vocabulary<'a> {
    pub tokenizer: &'a Tokenizer,
    pub template: Option<&'a ChatTemplate>,
    pub fingerprint: &'a str,
    /// `2026-01-15T12:00:00`.
    pub now: &'a str,
}

impl Vocabulary<'_> {
    pub fn prepare(&self, prompt: &Prompt) -> Result<Prepared> {
        match prompt {
            Prompt::Chat(messages) => self.chat(messages),
            Prompt::Raw(text) => {
                let ids = self.with_bos(self.tokenizer.encode(text, Special::Parse));
                Ok(Prepared { ids, text: text.clone() })
            }
            Prompt::Ids(ids) => Ok(Prepared { ids: ids.clone(), text: String::new() }),
        }
    }

    fn chat(&self, messages: &[PromptMessage]) -> Result<Prepared> {
        let values: Vec<Value> = messages.iter().map(value).collect();
        let kwargs = Map::from_iter([("add_generation_prompt".to_owned(), json!(true))]);
        let name = |id: Option<TokenId>| id.and_then(|id| self.tokenizer.token_text(id)).unwrap_or_default();
        let input = RenderInput {
            messages: &values,
            tools: &Value::Null,
            kwargs: &kwargs,
            bos_token: name(self.tokenizer.bos()),
            eos_token: name(self.tokenizer.eos()),
            now: Some(self.now),
        };
        let rendered = match self.template {
            Some(template) => template.render(&input)?,
            None => ChatTemplate::from_source(self.fallback())?.render(&input)?,
        };
        let known: Vec<KnownIds> = rendered
            .content_spans
            .iter()
            .filter(|span| span.is_content)
            .filter_map(|span| {
                let ids =
                    self.logged(messages.get(span.message?)?, rendered.text.get(span.range.clone())?)?;
                Some(KnownIds { range: &span.range, ids })
            })
            .collect();
        let ids = self.tokenizer.encode_rendered(&rendered, &known);
        // A template says itself whether the text begins with BOS.
        let ids = if self.template.is_some() { ids } else { self.with_bos(ids) };
        Ok(Prepared { ids, text: rendered.text })
    }

    /// The ids that this model generated for a message, if they spell the text that the template made of it.
    fn logged<'m>(&self, message: &'m PromptMessage, text: &str) -> Option<&'m [TokenId]> {
        let log = message.logs.iter().find(|log| log.fingerprint == self.fingerprint)?;
        let in_vocabulary = log.ids.iter().all(|id| (*id as usize) < self.tokenizer.n_vocab());
        (in_vocabulary && self.tokenizer.decode(&log.ids) == text).then_some(log.ids.as_slice())
    }

    fn fallback(&self) -> &'static str {
        let knows = |markup: &str| self.tokenizer.encode(markup, Special::Parse).len() == 1;
        if knows("<|im_start|>") && knows("<|im_end|>") { CHATML } else { PLAIN }
    }

    /// With the BOS that the model wants before a text. Not its EOS: the text goes on.
    fn with_bos(&self, mut ids: Vec<TokenId>) -> Vec<TokenId> {
        let around = self.tokenizer.add_special(Vec::new());
        if let (Some(bos), Some(first)) = (self.tokenizer.bos(), around.first())
            && bos == *first
            && ids.first() != Some(&bos)
        {
            ids.insert(0, bos);
        }
        ids
    }
}

fn value(message: &PromptMessage) -> Value {
    let mut value = json!({ "role": message.role, "content": message.content });
    if !message.reasoning.is_empty() {
        value["reasoning_content"] = json!(message.reasoning);
    }
    value
}

/// The error for a file without vocabulary.
pub fn no_vocabulary(model: &str) -> Error {
    Error::input(
        "model.no_tokenizer",
        format!("The model {model} carries no vocabulary, so it can't read text."),
        "Open the folder that holds tokenizer.json beside the weights, or a GGUF file.",
    )
}
