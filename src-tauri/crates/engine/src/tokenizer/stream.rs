//! Decodes token by token. It emits no half characters, and no U+FFFD for one that may still complete.

use std::sync::Arc;

use super::TokenId;
use super::vocab::{TokenKind, Vocab};

/// Decoder of one reply. Owns its data, so that it can outlive any borrow of the tokenizer.
#[derive(Debug, Clone)]
pub struct DetokenizeStream {
    vocab: Arc<Vocab>,
    /// Bytes of an incomplete character, at most three.
    pending: Vec<u8>,
    text: String,
}

impl DetokenizeStream {
    pub(super) fn new(vocab: Arc<Vocab>) -> Self {
        // capacity for the longest token, or U+FFFD for each of its bytes: no push allocates
        let longest = vocab.longest() + 4;
        Self { vocab, pending: Vec::with_capacity(longest), text: String::with_capacity(3 * longest) }
    }

    /// Returns the text that `id` completes: often one piece, sometimes empty. Valid until the next call.
    ///
    /// Control tokens have no text. A leading space stays, since the reply continues the text before it.
    pub fn push(&mut self, id: TokenId) -> &str {
        self.text.clear();
        if self.vocab.kind(id).is_some_and(|kind| kind != TokenKind::Control) {
            self.vocab.append_bytes(id, &mut self.pending);
            take_complete(&mut self.pending, &mut self.text);
        }
        &self.text
    }

    /// Returns the rest: an incomplete character becomes U+FFFD.
    pub fn finish(&mut self) -> &str {
        self.text.clear();
        if !self.pending.is_empty() {
            self.text.push(char::REPLACEMENT_CHARACTER);
            self.pending.clear();
        }
        &self.text
    }
}

/// Moves everything but an incomplete last character from `pending` to `text`. Invalid bytes become U+FFFD.
fn take_complete(pending: &mut Vec<u8>, text: &mut String) {
    let mut done = 0;
    while done < pending.len() {
        match std::str::from_utf8(&pending[done..]) {
            Ok(rest) => {
                text.push_str(rest);
                done = pending.len();
            }
            Err(error) => {
                let good = &pending[done..done + error.valid_up_to()];
                text.push_str(std::str::from_utf8(good).expect("checked by from_utf8"));
                done += error.valid_up_to();
                let Some(bad) = error.error_len() else { break };
                text.push(char::REPLACEMENT_CHARACTER);
                done += bad;
            }
        }
    }
    pending.drain(..done);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::vocab::Decoding;

    fn check(tokens: &[&[u8]], expected: &[&str], rest: &str) {
        let vocab = Vocab::new(
            tokens.iter().map(|text| (*text, TokenKind::UserDefined)),
            Vec::new(),
            Decoding::ByteLevel,
        );
        let mut stream = DetokenizeStream::new(Arc::new(vocab.expect("well-formed")));
        let shown: Vec<String> = (0..tokens.len() as TokenId).map(|id| stream.push(id).to_string()).collect();
        assert_eq!(shown, expected);
        assert_eq!(stream.finish(), rest);
        assert_eq!(stream.finish(), "");
    }

    #[test]
    fn f77_characters_wait_until_they_are_whole() {
        check(&[b"a", b"b"], &["a", "b"], "");
        check(&[b"\xf0\x9f", b"\x98", b"\x80!"], &["", "", "😀!"], "");
        check(&[b"a\xc3", b"\xa9"], &["a", "é"], "");
        check(&[b"\xe2\x82", b"x"], &["", "\u{fffd}x"], "");
        check(&[b"\xff", b"x"], &["\u{fffd}", "x"], "");
        check(&[b"a\xe2\x82"], &["a"], "\u{fffd}");
        check(&[b"\xff\xf0\x9f", b"\x98\x80"], &["\u{fffd}", "😀"], "");
    }

    #[test]
    fn unknown_ids_have_no_text() {
        let vocab =
            Vocab::new([(&b"a"[..], TokenKind::Control)].into_iter(), Vec::new(), Decoding::ByteLevel);
        let mut stream = DetokenizeStream::new(Arc::new(vocab.expect("well-formed")));
        assert_eq!((stream.push(0).to_string(), stream.push(7).to_string()), (String::new(), String::new()));
    }
}
