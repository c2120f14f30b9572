//! Tokenizers: `tokenizer.json` with the files beside it, or a SentencePiece model, each with a text to encode.

use engine::tokenizer::{IncrementalEncoder, Special, Tokenizer};
use test_support::TempDir;

use crate::FuzzTarget;
use crate::sections::Sections;

/// Reads tokenizers and encodes texts with them.
pub static TOKENIZER: FuzzTarget = FuzzTarget { name: "tokenizer", read, max_bytes: 128 << 20 };

const SIDE_FILES: &[&str] = &["tokenizer_config.json", "generation_config.json"];

/// Longer texts find no more.
const MAX_TEXT_BYTES: usize = 4096;

fn read(input: &[u8]) {
    let folder = TempDir::new();
    let write = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("the temporary folder can be written");
        path
    };
    let sections = Sections::of(input);
    for (name, content) in sections.named().filter(|(name, _)| SIDE_FILES.contains(name)) {
        write(name, content);
    }
    let path = match (sections.get("tokenizer.model"), sections.get("tokenizer.json")) {
        (Some(model), _) => write("tokenizer.model", model),
        (None, Some(json)) => write("tokenizer.json", json),
        (None, None) => write("tokenizer.json", input),
    };
    if let Ok(tokenizer) = Tokenizer::from_path(&path) {
        let text = sections.text("text").unwrap_or_else(|| "Hello world <s> 12".into());
        check_tokenizer(&tokenizer, &text);
    }
}

/// Checks that ids are of the vocabulary, that encoding piece by piece gives the same, and that all ids have bytes.
pub fn check_tokenizer(tokenizer: &Tokenizer, text: &str) {
    let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
    let ids = tokenizer.encode(text, Special::Parse);
    for id in &ids {
        assert!((*id as usize) < tokenizer.n_vocab(), "id {id} of {}", tokenizer.n_vocab());
        tokenizer.token_bytes(*id);
    }
    tokenizer.decode(&ids);
    let mut stream = tokenizer.stream();
    for id in &ids {
        stream.push(*id);
    }
    stream.finish();
    let plain = tokenizer.encode(text, Special::Plain);
    let mut encoder = IncrementalEncoder::new();
    for quarter in 1..4 {
        encoder.encode(tokenizer, &text[..text.floor_char_boundary(text.len() * quarter / 4)]);
    }
    assert_eq!(encoder.encode(tokenizer, text), plain, "encoding {text:?} piece by piece");
}
