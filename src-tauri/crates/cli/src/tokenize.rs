//! `nook tokenize` and `nook detokenize`: text to token ids and back.

use contract::Error;
use contract::Result;
use engine::TokenId;
use engine::tokenizer::{Special, Tokenizer};
use serde_json::json;

use crate::args::{DetokenizeArgs, Global, TokenizeArgs};
use crate::{open_model, out};

pub fn tokenize(global: &Global, args: &TokenizeArgs) -> Result<()> {
    let tokenizer = open_model::tokenizer(&args.model, global)?;
    let special = if args.parse_special { Special::Parse } else { Special::Plain };
    let encode = |text: &str| -> Vec<TokenId> {
        let ids = tokenizer.encode(text, special);
        if args.add_special { tokenizer.add_special(ids) } else { ids }
    };
    let show = |ids: &[TokenId]| match global.json || args.input.jsonl.is_some() {
        true => out::json(&json!({ "ids": ids })),
        false => out::line(&ids.iter().map(TokenId::to_string).collect::<Vec<_>>().join(",")),
    };
    open_model::texts(&args.input)?.iter().for_each(|text| show(&encode(text)));
    Ok(())
}

pub fn detokenize(global: &Global, args: &DetokenizeArgs) -> Result<()> {
    let tokenizer = open_model::tokenizer(&args.model, global)?;
    let ids = open_model::ids(&args.ids)?;
    check(&tokenizer, &ids)?;
    let text = tokenizer.decode(&ids);
    if global.json {
        out::json(&json!({ "text": text }))
    } else {
        out::line(&text)
    }
    Ok(())
}

fn check(tokenizer: &Tokenizer, ids: &[TokenId]) -> Result<()> {
    let n = tokenizer.n_vocab();
    match ids.iter().find(|id| **id as usize >= n) {
        None => Ok(()),
        Some(id) => Err(Error::input(
            "request.token_unknown",
            format!("Token id {id} is outside the vocabulary of {n}."),
            "Use ids of this model's tokenizer.",
        )),
    }
}
