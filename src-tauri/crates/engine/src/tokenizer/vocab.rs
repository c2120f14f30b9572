//! Vocabulary: texts and kinds of all tokens, and the lookup from text to token.
//!
//! All texts lie in one arena, and the lookup table holds only ids. Texts come from files and may be any bytes.

use super::TokenId;
use crate::error::{DAMAGED, EngineError, Result};

/// Kind of a token. The numbers are those of GGUF and SentencePiece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    Normal,
    Unknown,
    Control,
    /// Matched as a whole wherever its text occurs.
    UserDefined,
    Unused,
    /// One byte, written `<0x0A>`.
    Byte,
}

impl TokenKind {
    /// Maps undefined numbers to normal tokens: other programs load such files too.
    pub fn from_number(number: i64) -> Self {
        match number {
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => Self::Normal,
        }
    }

    /// Returns whether merging may produce this token.
    fn is_found_by_text(self) -> bool {
        match self {
            Self::Normal | Self::UserDefined => true,
            Self::Unknown | Self::Control | Self::Unused | Self::Byte => false,
        }
    }
}

/// How a token's text becomes bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoding {
    /// Every character encodes a byte, as in GPT-2.
    ByteLevel,
    /// `▁` encodes a space, `<0x0A>` a byte. With `strips_space`, a text loses its leading space.
    SentencePiece { strips_space: bool },
}

const EMPTY: u32 = u32::MAX;

/// All tokens of a model. An id is an index.
#[derive(Debug)]
pub struct Vocab {
    texts: Vec<u8>,
    /// End of each token's text in `texts`. (n_vocab)
    ends: Vec<u32>,
    kinds: Vec<TokenKind>,
    scores: Vec<f32>,
    /// Open addressing, with a power of two of slots: `EMPTY`, or an id and half of its text's hash. The hash rules
    /// out most colliding texts without reading them.
    slots: Vec<(u32, u32)>,
    /// Bytes of the longest text that lookup can return.
    longest: usize,
    /// Whether two tokens have equal texts, so that an id alone does not tell which one lookup returns.
    has_twins: bool,
    /// Tokens that stand for one byte: `EMPTY` where there is none. `None` if no byte has one.
    byte_ids: Option<Box<[TokenId; 256]>>,
    pub decoding: Decoding,
}

impl Vocab {
    /// Creates a vocabulary from texts and kinds by id. `scores` is empty or has one per token.
    pub fn new<'a>(
        tokens: impl Iterator<Item = (&'a [u8], TokenKind)>,
        scores: Vec<f32>,
        decoding: Decoding,
    ) -> Result<Self> {
        let (n_tokens, _) = tokens.size_hint();
        let (mut texts, mut ends, mut kinds) =
            (Vec::new(), Vec::with_capacity(n_tokens), Vec::with_capacity(n_tokens));
        for (text, kind) in tokens {
            texts.extend_from_slice(text);
            let end = u32::try_from(texts.len()).ok().filter(|_| ends.len() < EMPTY as usize - 1);
            ends.push(end.ok_or_else(|| broken("the vocabulary is larger than 4 GiB"))?);
            kinds.push(kind);
        }
        if ends.is_empty() {
            return Err(broken("the vocabulary is empty"));
        }
        if !scores.is_empty() && scores.len() != ends.len() {
            return Err(broken(format!("{} tokens but {} scores", ends.len(), scores.len())));
        }
        let n_slots = (ends.len() * 2).next_power_of_two();
        let slots = vec![(EMPTY, 0); n_slots];
        let (longest, has_twins, byte_ids) = (0, false, None);
        let mut vocab = Self { texts, ends, kinds, scores, slots, longest, has_twins, byte_ids, decoding };
        (0..vocab.len() as TokenId).for_each(|id| vocab.index(id));
        vocab.byte_ids = vocab.find_bytes();
        Ok(vocab)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns a token's text as stored in the file; empty for an id that does not exist.
    pub fn text(&self, id: TokenId) -> &[u8] {
        let at = id as usize;
        let Some(&end) = self.ends.get(at) else { return &[] };
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.texts[start as usize..end as usize]
    }

    pub fn kind(&self, id: TokenId) -> Option<TokenKind> {
        self.kinds.get(id as usize).copied()
    }

    pub fn score(&self, id: TokenId) -> f32 {
        self.scores.get(id as usize).copied().unwrap_or(0.0)
    }

    /// Returns whether a token's score can be compared and added. Damaged files hold others.
    pub fn has_finite_score(&self, id: TokenId) -> bool {
        self.score(id).is_finite()
    }

    pub fn ids(&self) -> impl Iterator<Item = (TokenId, &[u8], TokenKind)> {
        self.kinds.iter().zip(0..).map(|(kind, id)| (id, self.text(id), *kind))
    }

    /// Finds the token with exactly this text. Only normal and user-defined tokens are found.
    pub fn find(&self, text: &[u8]) -> Option<TokenId> {
        if text.is_empty() || text.len() > self.longest {
            return None;
        }
        let mask = self.slots.len() - 1;
        let (mut at, tag) = place(text, mask);
        loop {
            match self.slots[at] {
                (EMPTY, _) => return None,
                (id, other) if other == tag && self.text(id) == text => return Some(id),
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// As `find`, faster if the token is `near` or the one after it.
    pub fn find_near(&self, text: &[u8], near: TokenId) -> Option<TokenId> {
        let is_it = |id: &TokenId| {
            self.kind(*id).is_some_and(TokenKind::is_found_by_text)
                && self.text(*id) == text
                && !text.is_empty()
        };
        let nearby = [near, near.saturating_add(1)].into_iter().find(is_it).filter(|_| !self.has_twins);
        nearby.or_else(|| self.find(text))
    }

    /// Returns the bytes of the longest text that lookup can return.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Finds a token of any kind with this text. Slow: for the few names that a loader looks up.
    pub fn find_any(&self, text: &str) -> Option<TokenId> {
        self.find(text.as_bytes())
            .or_else(|| self.ids().find(|(_, t, _)| *t == text.as_bytes()).map(|(id, _, _)| id))
    }

    /// Returns whether characters without a token can be written as bytes. Some bytes may have no token.
    pub fn has_byte_ids(&self) -> bool {
        self.byte_ids.is_some()
    }

    /// Returns the token of a byte: `<0x0A>`, or the token of this one character where that is missing.
    pub fn byte_id(&self, byte: u8) -> Option<TokenId> {
        self.byte_ids.as_ref().map(|ids| ids[byte as usize]).filter(|id| *id != EMPTY)
    }

    /// Appends a character without a token as byte tokens. A byte without one becomes `unknown`.
    ///
    /// Returns false and appends nothing if there are no byte tokens at all.
    pub fn fall_back(&self, bytes: &[u8], unknown: Option<TokenId>, out: &mut Vec<TokenId>) -> bool {
        if self.has_byte_ids() {
            out.extend(bytes.iter().filter_map(|byte| self.byte_id(*byte).or(unknown)));
        }
        self.has_byte_ids()
    }

    /// Changes a token's kind. Until [`Vocab::reindex`], lookup uses the old one.
    pub fn set_kind(&mut self, id: TokenId, kind: TokenKind) {
        if let Some(slot) = self.kinds.get_mut(id as usize) {
            *slot = kind;
        }
    }

    /// Rebuilds the lookup table with the current kinds.
    pub fn reindex(&mut self) {
        self.slots.fill((EMPTY, 0));
        (self.longest, self.has_twins) = (0, false);
        (0..self.len() as TokenId).for_each(|id| self.index(id));
        self.byte_ids = self.find_bytes();
    }

    /// Appends the bytes that a token encodes.
    pub fn append_bytes(&self, id: TokenId, out: &mut Vec<u8>) {
        let text = self.text(id);
        let kind = self.kind(id).unwrap_or(TokenKind::Unused);
        match (self.decoding, kind) {
            (Decoding::ByteLevel, TokenKind::Normal) => append_byte_level(text, out),
            (Decoding::SentencePiece { .. }, TokenKind::Byte) => match parse_byte(text) {
                Some(byte) => out.push(byte),
                None => out.extend_from_slice(text),
            },
            (Decoding::SentencePiece { .. }, TokenKind::Normal | TokenKind::UserDefined) => {
                append_spaced(text, out)
            }
            _ => out.extend_from_slice(text),
        }
    }

    /// Adds a token to the lookup table. Of tokens with equal texts, the lower id is found.
    fn index(&mut self, id: TokenId) {
        let text = self.text(id);
        if text.is_empty() || !self.kinds[id as usize].is_found_by_text() {
            return;
        }
        let mask = self.slots.len() - 1;
        let ((mut at, tag), n) = (place(text, mask), text.len());
        while let (other, other_tag) = self.slots[at]
            && other != EMPTY
        {
            if other_tag == tag && self.text(other) == self.text(id) {
                self.has_twins = true;
                return;
            }
            at = (at + 1) & mask;
        }
        self.slots[at] = (id, tag);
        self.longest = self.longest.max(n);
    }

    /// Vocabularies may lack the byte token of a character that is a token itself: Gemma's has a tab and no `<0x09>`.
    fn find_bytes(&self) -> Option<Box<[TokenId; 256]>> {
        let mut found = Box::new([EMPTY; 256]);
        for (id, text, _) in self.ids().filter(|(_, _, kind)| *kind == TokenKind::Byte) {
            if let Some(byte) = parse_byte(text) {
                found[byte as usize] = id;
            }
        }
        if found.iter().all(|id| *id == EMPTY) {
            return None;
        }
        for byte in 0..0x80u8 {
            if found[byte as usize] == EMPTY {
                found[byte as usize] = self.find(&[byte]).unwrap_or(EMPTY);
            }
        }
        Some(found)
    }
}

pub(super) fn broken(message: impl Into<String>) -> EngineError {
    EngineError::new("tokenizer.broken", message, DAMAGED)
}

/// Hashes eight bytes per step. Collisions only cost time, and these texts are not crafted to collide.
fn hash(text: &[u8]) -> u64 {
    let mut hash = text.len() as u64;
    for chunk in text.chunks(8) {
        let mut word = [0u8; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = mix(hash, u64::from_le_bytes(word));
    }
    hash
}

/// Returns the first slot to probe, and half of the hash.
fn place(text: &[u8], mask: usize) -> (usize, u32) {
    let hash = hash(text);
    ((hash ^ (hash >> 32)) as usize & mask, (hash >> 32) as u32)
}

pub(super) fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Parses `<0x0A>` as 10.
pub fn parse_byte(text: &[u8]) -> Option<u8> {
    let hex = text.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    let hex = std::str::from_utf8(hex).ok().filter(|h| h.len() == 2 && !h.starts_with('+'))?;
    u8::from_str_radix(hex, 16).ok()
}

fn append_spaced(text: &[u8], out: &mut Vec<u8>) {
    const SPACE: &[u8] = "▁".as_bytes();
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        if let Some(tail) = rest.strip_prefix(SPACE) {
            out.push(b' ');
            rest = tail;
        } else {
            out.push(first);
            rest = tail;
        }
    }
}

/// Returns the byte of a character in GPT-2's alphabet. Printable bytes are themselves; the others are U+0100
/// onwards, in order.
fn byte_of(c: char) -> Option<u8> {
    const PRINTABLE: [(u32, u32); 3] = [(0x21, 0x7e), (0xa1, 0xac), (0xae, 0xff)];
    let code = c as u32;
    if PRINTABLE.iter().any(|(from, to)| (*from..=*to).contains(&code)) {
        return u8::try_from(code).ok();
    }
    match code.checked_sub(0x100)? {
        n @ 0..=0x20 => Some(n as u8),
        n @ 0x21..=0x42 => Some((n - 0x21) as u8 + 0x7f),
        0x43 => Some(0xad),
        _ => None,
    }
}

/// Appends the bytes of a text in that alphabet. Other characters, and text that is not UTF-8, stay unchanged.
fn append_byte_level(text: &[u8], out: &mut Vec<u8>) {
    let Ok(text) = std::str::from_utf8(text) else { return out.extend_from_slice(text) };
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocab(tokens: &[(&str, TokenKind)], decoding: Decoding) -> Vocab {
        let tokens = tokens.iter().map(|(text, kind)| (text.as_bytes(), *kind));
        Vocab::new(tokens, Vec::new(), decoding).expect("well-formed")
    }

    #[test]
    fn lookup_returns_mergeable_tokens_only() {
        let v = vocab(
            &[
                ("a", TokenKind::Normal),
                ("<s>", TokenKind::Control),
                ("a", TokenKind::Normal),
                ("é", TokenKind::UserDefined),
            ],
            Decoding::ByteLevel,
        );
        let check = |text: &str, expected: Option<TokenId>| assert_eq!(v.find(text.as_bytes()), expected);
        check("a", Some(0));
        check("<s>", None);
        check("é", Some(3));
        check("", None);
        check("b", None);
        assert_eq!(v.find_near(b"a", 2), Some(0), "the lower of two ids, whatever the hint");
        assert_eq!(v.find_near("é".as_bytes(), 2), Some(3));
        assert_eq!(
            (v.find_near(b"<s>", 1), v.find_near(b"", 9), v.find_near(b"a", u32::MAX)),
            (None, None, Some(0))
        );
        assert_eq!(v.find_any("<s>"), Some(1));
        assert_eq!(v.text(4_000_000_000), b"");
    }

    #[test]
    fn the_byte_alphabet_matches_the_tokenizers_crate() {
        let mut bytes: Vec<u8> = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet()
            .into_iter()
            .map(|c| byte_of(c).expect("every character of the alphabet is a byte"))
            .collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!(
            (byte_of('Ġ'), byte_of('Ċ'), byte_of('a'), byte_of('…')),
            (Some(32), Some(10), Some(97), None)
        );
    }

    #[test]
    fn tokens_become_bytes() {
        let check = |decoding, text: &str, kind, expected: &[u8]| {
            let mut out = Vec::new();
            vocab(&[(text, kind)], decoding).append_bytes(0, &mut out);
            assert_eq!(out, expected, "{text}");
        };
        let spm = Decoding::SentencePiece { strips_space: true };
        check(Decoding::ByteLevel, "Ġhi", TokenKind::Normal, b" hi");
        check(Decoding::ByteLevel, "Ġhi", TokenKind::Control, "Ġhi".as_bytes());
        check(Decoding::ByteLevel, "Ã", TokenKind::Normal, &[0xc3]);
        check(spm, "▁hi▁", TokenKind::Normal, b" hi ");
        check(spm, "<0x0A>", TokenKind::Byte, b"\n");
        check(spm, "<0x0A>", TokenKind::Normal, b"<0x0A>");
        check(spm, "<0xZZ>", TokenKind::Byte, b"<0xZZ>");
    }

    #[test]
    fn hostile_vocabularies_are_errors_or_harmless() {
        assert!(Vocab::new(std::iter::empty(), Vec::new(), Decoding::ByteLevel).is_err());
        let one = || [(&b"\xff\xfe"[..], TokenKind::from_number(99))].into_iter();
        assert!(Vocab::new(one(), vec![0.0, 1.0], Decoding::ByteLevel).is_err());
        let odd = Vocab::new(one(), vec![f32::NAN], Decoding::ByteLevel).expect("tolerated");
        assert_eq!(odd.find(b"\xff\xfe"), Some(0));
    }
}
