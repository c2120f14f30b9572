//! What containers share when they describe a tokenizer, and how a tokenizer is built from it.

use std::sync::{Arc, OnceLock};

use super::added::{AddedToken, AddedTokens};
use super::vocab::{TokenKind, Vocab};
use super::{MergeModel, TokenId, Tokenizer};

/// Tokens with a role in the file. Ids that do not exist are dropped.
#[derive(Debug, Default)]
pub struct TokenRoles {
    pub bos: Option<TokenId>,
    pub eos: Option<TokenId>,
    /// Further tokens that end a reply.
    pub ends: Vec<TokenId>,
    pub before: Vec<TokenId>,
    pub after: Vec<TokenId>,
}

/// Tokens that end a turn, even if the file does not say so.
const END_NAMES: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<turn|>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<|eot|>",
    "<|end_of_text|>",
    "<｜end▁of▁sentence｜>",
];

/// Where one of these exists, `<|end|>` ends only one message of several.
const MESSAGES_ENDS: &[&str] = &["<|return|>", "<|flush|>"];

impl Tokenizer {
    pub(super) fn assemble(
        vocab: Vocab,
        merging: MergeModel,
        added: Vec<AddedToken>,
        roles: TokenRoles,
    ) -> Self {
        let exists = |id: &TokenId| (*id as usize) < vocab.len();
        let names = |id: TokenId| std::str::from_utf8(vocab.text(id)).unwrap_or_default();
        let mut eog: Vec<TokenId> = roles.eos.iter().chain(&roles.ends).copied().filter(exists).collect();
        let has_messages = added.iter().any(|a| MESSAGES_ENDS.contains(&a.text.as_str()));
        eog.extend(
            added.iter().filter(|a| a.is_control && END_NAMES.contains(&a.text.as_str())).map(|a| a.id),
        );
        eog.retain(|id| !(has_messages && names(*id) == "<|end|>"));
        eog.sort_unstable();
        eog.dedup();
        let [bos, eos] = [roles.bos, roles.eos].map(|id| id.filter(exists));
        let [before, after] = [roles.before, roles.after].map(|mut ids| {
            ids.retain(exists);
            ids
        });
        let added = AddedTokens::new(added.into_iter().filter(|a| exists(&a.id)).collect());
        let (char_pairs, notice) = (OnceLock::new(), None);
        Self { vocab: Arc::new(vocab), merging, added, bos, eos, eog, before, after, char_pairs, notice }
    }
}

/// Marks tokens that steer the model as control tokens where a careless conversion calls them normal.
pub fn mend_kinds(vocab: &mut Vocab, roles: &TokenRoles) {
    let named: Vec<TokenId> = vocab
        .ids()
        .filter(|(_, text, kind)| {
            matches!(kind, TokenKind::Normal | TokenKind::UserDefined)
                && END_NAMES.iter().any(|name| name.as_bytes() == *text)
        })
        .map(|(id, _, _)| id)
        .collect();
    let given = roles.bos.iter().chain(&roles.eos).chain(&roles.ends).copied();
    let mut changed = false;
    for id in given.chain(named) {
        let is_markup = vocab.text(id).starts_with(b"<") || vocab.text(id).starts_with(b"[");
        if matches!(vocab.kind(id), Some(TokenKind::Normal | TokenKind::UserDefined)) && is_markup {
            vocab.set_kind(id, TokenKind::Control);
            changed = true;
        }
    }
    if changed {
        vocab.reindex();
    }
}

/// Returns the tokens that are matched as a whole, by their kinds.
pub fn added_by_kind(vocab: &Vocab) -> Vec<AddedToken> {
    vocab
        .ids()
        .filter_map(|(id, text, kind)| {
            let is_control = match kind {
                TokenKind::Control | TokenKind::Unknown => true,
                TokenKind::UserDefined => false,
                TokenKind::Normal | TokenKind::Unused | TokenKind::Byte => return None,
            };
            Some(AddedToken::new(std::str::from_utf8(text).ok()?, id, is_control))
        })
        .collect()
}
