//! Resumes an answer: its existing tokens are read again exactly, as if just generated.

use engine::TokenId;
use engine::tokenizer::Tokenizer;

use super::active_turn::{ActiveTurn, Context};
use contract::protocol::{Ids, Step};
use contract::{Error, ErrorKind, Result};

/// The tokens to go on from: those that were kept, without an end and without half a character.
pub fn tokens(had: &Ids, fingerprint: &str, tokenizer: &Tokenizer) -> Result<Vec<TokenId>> {
    let known = had.ids.iter().all(|id| (*id as usize) < tokenizer.n_vocab());
    if had.fingerprint != fingerprint || !known {
        return Err(Error::new(
            ErrorKind::Conflict,
            "chat.cannot_continue",
            "This answer was started by a model with a different vocabulary, so it can't be continued exactly.",
            "Regenerate it instead.",
        ));
    }
    let mut ids = had.ids.clone();
    while ids.pop_if(|id| tokenizer.is_eog(*id)).is_some() {}
    while ends_in_half_a_character(&ids, tokenizer) {
        ids.pop();
    }
    Ok(ids)
}

/// As `tokens`, of an answer that may have none.
pub fn tokens_of(had: Option<&Ids>, fingerprint: &str, tokenizer: &Tokenizer) -> Result<Vec<TokenId>> {
    had.map_or(Ok(Vec::new()), |had| tokens(had, fingerprint, tokenizer))
}

fn ends_in_half_a_character(ids: &[TokenId], tokenizer: &Tokenizer) -> bool {
    let mut stream = tokenizer.stream();
    for id in ids {
        stream.push(*id);
    }
    !stream.finish().is_empty()
}

impl ActiveTurn {
    /// Reads what the answer has; the first step of its turn.
    pub fn read(&mut self, ids: Vec<TokenId>, tokenizer: &Tokenizer, fingerprint: &str) -> Step {
        let context = Context { tokenizer: Some(tokenizer), fingerprint, n_ctx: 0 };
        let mut stream = tokenizer.stream();
        let (mut text, mut reasoning) = (String::new(), String::new());
        for id in &ids {
            let piece = stream.push(*id).to_owned();
            let brought = self.token(*id, &piece, &context);
            text.push_str(&brought.text);
            reasoning.push_str(&brought.reasoning);
        }
        Step::Began { had: Ids { fingerprint: fingerprint.into(), ids }, text, reasoning }
    }
}
