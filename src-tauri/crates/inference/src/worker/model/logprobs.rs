//! Inspects an answer token by token, with the model that wrote it, while that is idle.

use engine::logprobs::{TokenLogprobs, logprobs};
use engine::tokenizer::Tokenizer;

use super::LoadedModel;
use contract::protocol::{LogprobsRequest, Prompt, TokenAlternatives, TokenShare};
use contract::{Error, ErrorKind, Result};
use platform::calendar;

/// Candidates reported per token.
const N_LIKELIEST: usize = 8;
/// Longer answers are looked at up to here.
const MAX_TOKENS: usize = 4_096;

impl LoadedModel {
    pub fn logprobs(&mut self, request: &LogprobsRequest, now_ms: i64) -> Result<Vec<TokenAlternatives>> {
        let now = calendar::date_time(now_ms);
        if request.had.fingerprint != self.model.info().fingerprint {
            let message = "This answer was written by a model with a different vocabulary.";
            let remedy = "Choose the model that wrote it.";
            return Err(Error::new(ErrorKind::Conflict, "look.other_model", message, remedy));
        }
        let prompt = self.prepare(&Prompt::Chat(request.messages.clone()), &request.chat, &now)?.ids;
        let answer = &request.had.ids[..request.had.ids.len().min(MAX_TOKENS)];
        self.check_room(prompt.len() + answer.len())?;
        let number = self.next_number;
        self.next_number += 1;
        let sequence = self.contexts.take(&mut self.model, None, &prompt, Some(number));
        let seen = match sequence {
            Some(sequence) => logprobs(&mut self.model, sequence, &prompt, answer, N_LIKELIEST),
            None => return Err(busy()),
        };
        self.contexts.ended(&mut self.model, number, None);
        let tokenizer = self.model.tokenizer();
        Ok(seen?.into_iter().map(|seen| alternatives(seen, tokenizer, TokenBytes::Omitted)).collect())
    }
}

/// Whether tokens are reported with their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenBytes {
    Omitted,
    Included,
}

/// The engine's logprobs with the texts of the tokens.
pub fn alternatives(
    seen: TokenLogprobs,
    tokenizer: Option<&Tokenizer>,
    bytes: TokenBytes,
) -> TokenAlternatives {
    let share = |id: u32, logprob: f32| TokenShare {
        id,
        text: text_of(id, tokenizer),
        probability: logprob.exp(),
        logprob,
        bytes: match (bytes, tokenizer) {
            (TokenBytes::Included, Some(tokenizer)) => tokenizer.token_bytes(id),
            (TokenBytes::Included | TokenBytes::Omitted, _) => Vec::new(),
        },
    };
    TokenAlternatives {
        token: share(seen.id, seen.logprob),
        others: seen.top.into_iter().map(|(id, logprob)| share(id, logprob)).collect(),
    }
}

/// What a token is shown as: its text, of markup its name, of a part of a character a sign that it is one.
fn text_of(id: u32, tokenizer: Option<&Tokenizer>) -> String {
    let Some(tokenizer) = tokenizer else { return String::new() };
    let mut stream = tokenizer.stream();
    let mut text = stream.push(id).to_owned();
    text.push_str(stream.finish());
    match text.is_empty() {
        true => tokenizer.token_text(id).unwrap_or("\u{FFFD}").to_owned(),
        false => text,
    }
}

pub fn busy() -> Error {
    Error::new(ErrorKind::Conflict, "look.busy", "The model is busy answering.", "Try again when it is done.")
}

pub fn not_there() -> Error {
    Error::new(
        ErrorKind::Conflict,
        "look.not_loaded",
        "The model that wrote this answer is not loaded.",
        "Send it a message, then try again.",
    )
}
