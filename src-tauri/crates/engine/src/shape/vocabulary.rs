//! A made-up byte-level vocabulary of any size, with merges that build each entry.

use weights::write::{GgufWriter, OwnedValue};

/// Control tokens at the end of the vocabulary, as in Llama 3.
const CONTROL: [&str; 3] = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"];

/// GGUF token types.
const NORMAL: i32 = 1;
const CONTROL_TYPE: i32 = 3;

const TEMPLATE: &str =
    "{% for m in messages %}{{ m.role }}: {{ m.content }}<|eot_id|>{% endfor %}assistant: ";

/// Adds the metadata of a vocabulary with `n_vocab` entries. Panics if it cannot hold all bytes and control tokens.
pub(super) fn write(n_vocab: usize, writer: &mut GgufWriter) {
    assert!(n_vocab >= 256 + CONTROL.len(), "a vocabulary of {n_vocab} tokens cannot hold every byte");
    let n_text = n_vocab - CONTROL.len();
    let mut tokens: Vec<String> = (0..=255).map(|byte| char_of(byte).to_string()).collect();
    let mut merges = Vec::new();
    // Each entry in turn, followed by each byte.
    for parent in 0.. {
        for byte in 0..256 {
            if tokens.len() == n_text {
                break;
            }
            merges.push(format!("{} {}", tokens[parent], tokens[byte]));
            tokens.push(format!("{}{}", tokens[parent], tokens[byte]));
        }
        if tokens.len() == n_text {
            break;
        }
    }
    let mut types = vec![NORMAL; n_text];
    tokens.extend(CONTROL.map(str::to_owned));
    types.extend([CONTROL_TYPE; CONTROL.len()]);
    let id = |index: usize| OwnedValue::U32((n_text + index) as u32);
    writer.set("tokenizer.ggml.model", OwnedValue::Str("gpt2".into()));
    writer.set("tokenizer.ggml.pre", OwnedValue::Str("llama-bpe".into()));
    writer.set("tokenizer.ggml.tokens", OwnedValue::Strs(tokens));
    writer.set("tokenizer.ggml.token_type", OwnedValue::I32s(types));
    writer.set("tokenizer.ggml.merges", OwnedValue::Strs(merges));
    writer.set("tokenizer.ggml.bos_token_id", id(0));
    writer.set("tokenizer.ggml.eos_token_id", id(2));
    writer.set("tokenizer.chat_template", OwnedValue::Str(TEMPLATE.into()));
}

/// Returns the character that stands for a byte in byte-level vocabularies.
fn char_of(byte: u8) -> char {
    match byte {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte),
        0..=0x20 => char::from_u32(0x100 + u32::from(byte)).expect("a printable character"),
        0x7F..=0xA0 => char::from_u32(0x121 + u32::from(byte - 0x7F)).expect("a printable character"),
        0xAD => '\u{143}',
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::char_of;

    #[test]
    fn bytes_have_distinct_characters() {
        let all: HashSet<char> = (0..=255).map(char_of).collect();
        assert_eq!(all.len(), 256);
        assert_eq!([char_of(b' '), char_of(b'\n'), char_of(0xA0), char_of(0xAD)], ['Ġ', 'Ċ', 'ł', 'Ń']);
    }
}
