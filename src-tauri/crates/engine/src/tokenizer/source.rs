//! What containers share when they describe a tokenizer, and how a tokenizer is built from it.

use std::sync::{Arc, OnceLock};

use super::added::{AddedToken, AddedTokens};
use super::vocab::{Decoding, TokenKind, Vocab, parse_byte};
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

/// Texts that begin, end or stand in for a sequence. Where one of a group is a control token, all are: Phi-3's files
/// call `</s>` an ordinary added token. In Gemma's `<s>` and `</s>` are HTML, and both are ordinary.
const SEQUENCE_MARKS: &[&[&str]] = &[&["<s>", "</s>"], &["<bos>", "<eos>"], &["[BOS]", "[EOS]"]];

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

/// Byte tokens of a vocabulary that must be there before they are taken for what they look like.
const MIN_BYTE_TOKENS: usize = 200;

/// Gives tokens the kinds that a careless conversion left out: those that steer the model are control tokens, and
/// `<0x0A>` is a byte where SentencePiece writes so.
pub fn mend_kinds(vocab: &mut Vocab, roles: &TokenRoles) {
    mend_bytes(vocab);
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
    for id in given.chain(named).chain(misnamed_marks(vocab)) {
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

/// Returns sequence marks that are ordinary tokens though others of their group are control tokens.
pub fn misnamed_marks(vocab: &Vocab) -> Vec<TokenId> {
    let mut found: Vec<Vec<(TokenId, TokenKind)>> = vec![Vec::new(); SEQUENCE_MARKS.len()];
    for (id, text, kind) in vocab.ids() {
        let group = SEQUENCE_MARKS.iter().position(|group| group.iter().any(|mark| mark.as_bytes() == text));
        group.into_iter().for_each(|group| found[group].push((id, kind)));
    }
    found.retain(|group| group.iter().any(|(_, kind)| *kind == TokenKind::Control));
    let marks = found.into_iter().flatten().filter(|(_, kind)| *kind != TokenKind::Control);
    marks.map(|(id, _)| id).collect()
}

/// Files without token types call the bytes of SentencePiece normal.
fn mend_bytes(vocab: &mut Vocab) {
    let is_byte = |text: &[u8], kind| kind == TokenKind::Normal && parse_byte(text).is_some();
    let is_spaced = matches!(vocab.decoding, Decoding::SentencePiece { .. });
    if vocab.has_byte_ids() || !is_spaced {
        return;
    }
    let bytes: Vec<TokenId> =
        vocab.ids().filter(|(_, text, kind)| is_byte(text, *kind)).map(|(id, _, _)| id).collect();
    if bytes.len() >= MIN_BYTE_TOKENS {
        bytes.into_iter().for_each(|id| vocab.set_kind(id, TokenKind::Byte));
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
