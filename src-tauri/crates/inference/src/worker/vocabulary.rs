//! Answers questions about a model's vocabulary: texts to tokens and back, prompts of messages, prompts with a gap.

use contract::protocol::{
    ChatOptions, GapText, Prompt, PromptMessage, PromptPart, SpecialTokens, TokenPiece, VocabularyAnswer,
    VocabularyDescription, VocabularyQuery,
};
use contract::{Error, Result};
use engine::TokenId;
use engine::tokenizer::Special;

use super::count::Counter;

/// Name of the repository and of the file with the gap, which a request does not give.
const REPOSITORY_NAME: &str = "project\n";
const FILE_NAME: &str = "filename\n";

/// Stands before other files where the model has no token for that.
const SNIPPET: &str = "\n\n--- snippet ---\n\n";

impl Counter {
    /// `now` as templates want it.
    pub fn answer(&self, query: &VocabularyQuery, now: &str) -> Result<VocabularyAnswer> {
        match query {
            VocabularyQuery::Tokenize { parts, add, parse_special } => {
                let ids = self.tokenize(parts, *parse_special)?;
                Ok(self.pieces(&match add {
                    SpecialTokens::Without => ids,
                    SpecialTokens::Before => self.with_beginning(ids),
                    SpecialTokens::Around => self.tokenizer.add_special(ids),
                }))
            }
            VocabularyQuery::Detokenize { ids } => {
                self.check(ids)?;
                Ok(VocabularyAnswer::Text(self.tokenizer.decode(ids)))
            }
            VocabularyQuery::Render { messages, chat } => self.render(messages, chat, now),
            VocabularyQuery::FillIn(gap) => Ok(self.pieces(&self.fill_in(gap)?)),
            VocabularyQuery::Describe => Ok(VocabularyAnswer::Description(self.describe())),
        }
    }

    fn tokenize(&self, parts: &[PromptPart], parse_special: bool) -> Result<Vec<TokenId>> {
        let special = if parse_special { Special::Parse } else { Special::Plain };
        let mut all = Vec::new();
        for part in parts {
            match part {
                PromptPart::Text(text) => all.extend(self.tokenizer.encode(text, special)),
                PromptPart::Ids(ids) => {
                    self.check(ids)?;
                    all.extend_from_slice(ids);
                }
            }
        }
        Ok(all)
    }

    fn check(&self, ids: &[TokenId]) -> Result<()> {
        let n = self.tokenizer.n_vocab();
        match ids.iter().find(|id| **id as usize >= n) {
            None => Ok(()),
            Some(id) => Err(Error::input(
                "request.token_unknown",
                format!("Token id {id} is outside the vocabulary of {n}."),
                "Use ids of this model's tokenizer.",
            )),
        }
    }

    fn pieces(&self, ids: &[TokenId]) -> VocabularyAnswer {
        let piece = |id: &TokenId| TokenPiece { id: *id, bytes: self.tokenizer.token_bytes(*id) };
        VocabularyAnswer::Tokens(ids.iter().map(piece).collect())
    }

    fn render(&self, messages: &[PromptMessage], chat: &ChatOptions, now: &str) -> Result<VocabularyAnswer> {
        let prepared = self.vocabulary(now).prepare(&Prompt::Chat(messages.to_vec()), chat)?;
        Ok(VocabularyAnswer::Text(prepared.text))
    }

    /// Prefix, suffix, and then the place where the answer begins; other files come first.
    fn fill_in(&self, gap: &GapText) -> Result<Vec<TokenId>> {
        let (Some(prefix), Some(suffix), Some(middle)) = (self.gap.prefix, self.gap.suffix, self.gap.middle)
        else {
            return Err(Error::input(
                "model.no_fill_in",
                format!("{} has no fill-in-the-middle tokens.", self.reference.id),
                "Choose a model that was trained to fill gaps, such as Qwen2.5-Coder.",
            ));
        };
        let encode = |text: &str| self.tokenizer.encode(text, Special::Plain);
        let mut ids = Vec::new();
        if let Some(repository) = self.gap.repository.filter(|_| !gap.files.is_empty()) {
            ids.push(repository);
            ids.extend(encode(REPOSITORY_NAME));
        }
        for (name, text) in &gap.files {
            match self.gap.file {
                Some(file) => {
                    ids.push(file);
                    ids.extend(encode(&format!("{name}\n")));
                }
                None => ids.extend(encode(SNIPPET)),
            }
            ids.extend(encode(text));
        }
        if let Some(file) = self.gap.file.filter(|_| !gap.files.is_empty()) {
            ids.push(file);
            ids.extend(encode(FILE_NAME));
        }
        ids.push(prefix);
        ids.extend(encode(&gap.prefix));
        ids.push(suffix);
        ids.extend(encode(&gap.suffix));
        ids.push(middle);
        Ok(self.with_beginning(ids))
    }

    /// With the BOS that the model wants before a text that goes on. A prompt that has one gets no second.
    fn with_beginning(&self, mut ids: Vec<TokenId>) -> Vec<TokenId> {
        match (self.tokenizer.bos(), self.tokenizer.add_special(Vec::new()).first()) {
            (Some(bos), Some(first)) if bos == *first && ids.first() != Some(&bos) => ids.insert(0, bos),
            _ => {}
        }
        ids
    }

    fn describe(&self) -> VocabularyDescription {
        let text = |id: Option<TokenId>| {
            id.and_then(|id| self.tokenizer.token_text(id)).unwrap_or_default().to_owned()
        };
        let template = match &self.template {
            Ok(Some(template)) => template.source().to_owned(),
            // A template that doesn't compile is no template in use.
            Ok(None) | Err(_) => {
                engine::arch::built_in_template(self.architecture, &self.tokenizer).1.source().to_owned()
            }
        };
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        VocabularyDescription {
            n_vocab: clamp(self.tokenizer.n_vocab()),
            bos: text(self.tokenizer.bos()),
            eos: text(self.tokenizer.eos()),
            template,
            context_length: clamp(self.context_length),
        }
    }
}
