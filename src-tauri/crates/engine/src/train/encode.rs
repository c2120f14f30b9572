//! Chats as tokens by the model's own template, with the tokens of the assistant marked as learned.

use serde_json::{Map, Value, json};
use weights::WeightFile;

use super::data_file::{DataContent, is_learned_answer};
use super::trainer::TrainingExample;
use crate::arch::{self, built_in_template};
use crate::error::Result;
use crate::template::{ChatTemplate, RenderInput, RenderedPrompt};
use crate::tokenizer::{Special, TokenId, Tokenizer};

/// Tokenizer and template of a model.
pub struct ExampleEncoder {
    tokenizer: Tokenizer,
    template: ChatTemplate,
    /// A built-in template leaves the begin-of-text token to the vocabulary.
    adds_bos: bool,
    /// For templates that print the date.
    now: String,
}

impl ExampleEncoder {
    /// Reads tokenizer and template of a file. `now` is the local time for templates that print it.
    ///
    /// Errors: no tokenizer, `template.syntax`.
    pub fn open(file: &WeightFile, now: &str) -> Result<Self> {
        let tokenizer = Tokenizer::from_weights(file)?;
        let own = ChatTemplate::from_weights(file)?;
        let adds_bos = own.is_none();
        let template = match own {
            Some(template) => template,
            None => built_in_template(arch::find(file)?.gguf_name(), &tokenizer).1,
        };
        Ok(Self { tokenizer, template, adds_bos, now: now.to_owned() })
    }

    /// Returns the tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Returns the prompt of a conversation as the model sees it before it answers.
    ///
    /// Errors: `template.*`.
    pub fn prompt(&self, messages: &[Value]) -> Result<Vec<TokenId>> {
        let rendered = self.render(messages, true)?;
        Ok(self.encode(&rendered))
    }

    /// Returns the examples of one item. A chat is one example, or one per answer where the template shows earlier
    /// turns differently. A text is cut into pieces of `max_tokens`.
    ///
    /// Errors: `template.*`, or a reason in words.
    pub fn examples(
        &self,
        content: &DataContent,
        max_tokens: usize,
    ) -> std::result::Result<Vec<TrainingExample>, String> {
        match content {
            DataContent::Text(text) => Ok(self.text(text, max_tokens)),
            DataContent::Chat(messages) => self.chat(messages),
        }
    }

    fn text(&self, text: &str, max_tokens: usize) -> Vec<TrainingExample> {
        let ids = self.tokenizer.encode(text, Special::Plain);
        let n_special = self.tokenizer.add_special(Vec::new()).len();
        let piece = |ids: &[TokenId]| {
            let ids = self.tokenizer.add_special(ids.to_vec());
            TrainingExample { is_learned: vec![true; ids.len()], ids }
        };
        ids.chunks(max_tokens.saturating_sub(n_special).max(1)).map(piece).collect()
    }

    fn chat(&self, messages: &[Value]) -> std::result::Result<Vec<TrainingExample>, String> {
        let answers: Vec<usize> = (0..messages.len()).filter(|i| is_learned_answer(&messages[*i])).collect();
        let Some(last) = answers.last() else {
            return Err("it has no answer of the assistant".into());
        };
        let in_words = |error: crate::error::EngineError| error.to_string();
        let whole = self.render(&messages[..=*last], false).map_err(in_words)?;
        let mut spans = Vec::with_capacity(answers.len());
        for answer in &answers {
            let prompt = self.render(&messages[..*answer], true);
            let end = self.render(&messages[..=*answer], false);
            let (Ok(prompt), Ok(end)) = (prompt, end) else { break };
            let is_prefix = |part: &RenderedPrompt| whole.text.starts_with(&part.text);
            if !is_prefix(&prompt) || !is_prefix(&end) || prompt.text.len() >= end.text.len() {
                break;
            }
            spans.push((prompt, end));
        }
        if spans.len() == answers.len() {
            return Ok(vec![self.marked(&whole, &spans)]);
        }
        answers.iter().map(|answer| self.one_answer(&messages[..=*answer]).map_err(in_words)).collect()
    }

    /// The last message alone is learned.
    fn one_answer(&self, messages: &[Value]) -> Result<TrainingExample> {
        let whole = self.render(messages, false)?;
        let last = messages.len() - 1;
        if let Ok(prompt) = self.render(&messages[..last], true)
            && whole.text.starts_with(&prompt.text)
        {
            return Ok(self.marked(&whole, &[(prompt, whole.clone())]));
        }
        // What the template writes before an answer differs from what it shows afterwards: learn from the answer on.
        let content = whole.content_spans.iter().rfind(|span| span.message == Some(last) && span.is_content);
        let start = content.map_or(0, |span| span.range.start);
        let prompt = RenderedPrompt {
            text: whole.text[..start].to_owned(),
            content_spans: whole
                .content_spans
                .iter()
                .filter(|span| span.range.end <= start)
                .cloned()
                .collect(),
        };
        Ok(self.marked(&whole, &[(prompt, whole.clone())]))
    }

    /// Marks what stands between each prompt and the end of its answer, up to the token that ends the answer.
    fn marked(&self, whole: &RenderedPrompt, spans: &[(RenderedPrompt, RenderedPrompt)]) -> TrainingExample {
        let ids = self.encode(whole);
        let mut is_learned = vec![false; ids.len()];
        for (prompt, end) in spans {
            let start = common_prefix(&self.encode(prompt), &ids);
            let end = common_prefix(&self.encode(end), &ids);
            for i in start..end {
                is_learned[i] = true;
                if self.tokenizer.is_eog(ids[i]) {
                    break;
                }
            }
        }
        TrainingExample { ids, is_learned }
    }

    fn encode(&self, rendered: &RenderedPrompt) -> Vec<TokenId> {
        let ids = self.tokenizer.encode_rendered(rendered, &[]);
        let is_there = self.tokenizer.bos().is_some_and(|bos| ids.first() == Some(&bos));
        if self.adds_bos && !is_there { self.tokenizer.add_special(ids) } else { ids }
    }

    fn render(&self, messages: &[Value], before_answer: bool) -> Result<RenderedPrompt> {
        let kwargs = Map::from_iter([("add_generation_prompt".to_owned(), json!(before_answer))]);
        let name = |id: Option<TokenId>| id.and_then(|id| self.tokenizer.token_text(id)).unwrap_or_default();
        self.template.render(&RenderInput {
            messages,
            tools: &Value::Null,
            kwargs: &kwargs,
            bos_token: name(self.tokenizer.bos()),
            eos_token: name(self.tokenizer.eos()),
            now: Some(&self.now),
        })
    }
}

fn common_prefix(a: &[TokenId], b: &[TokenId]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
