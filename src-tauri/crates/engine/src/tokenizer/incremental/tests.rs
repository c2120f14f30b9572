//! Random texts, randomly edited: after each edit the ids equal those of the whole text.

use weights::write::{GgufWriter, OwnedValue};
use weights::{SharedBytes, WeightFile};

use super::super::pre::NamedPreTokenizer;
use super::*;
use crate::tokenizer::Special;

/// Parts of texts: ends of words, numbers, lines, and characters that join with the one before them.
const PARTS: &[&str] = &[
    "a", "b", "ab", "aba", " ", "  ", " a", " b", "\n", "\n\n", "\r\n", "\t", "1", "23", "4567", "!", "?!",
    ".", "'s", "'", "é", "e\u{301}", "你", "好", "한", "ᄀ", "\u{1161}", "X", "Ab", "<t>", "<t", ">", "▁",
    "😀", "\u{a0}", "\u{3000}",
];

struct TestRandom(u64);

impl TestRandom {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }

    fn text(&mut self, n_parts: usize) -> String {
        (0..n_parts).map(|_| PARTS[self.below(PARTS.len())]).collect()
    }

    fn boundary(&mut self, text: &str) -> usize {
        text.floor_char_boundary(self.below(text.len() + 1))
    }
}

/// Every byte, and tokens of two and three of those characters, so that every piece boundary shows in the ids.
fn byte_level(pre: &str) -> Tokenizer {
    let symbols = ["a", "b", "Ġ", "Ċ", "1", "2", "!", "'", "s", "X"];
    let alphabet = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
    let mut tokens: Vec<String> = alphabet.into_iter().map(|c| c.to_string()).collect();
    tokens.sort();
    let mut merges = Vec::new();
    let pairs: Vec<String> =
        symbols.iter().flat_map(|a| symbols.iter().map(move |b| format!("{a}{b}"))).collect();
    for (a, b) in symbols.iter().flat_map(|a| symbols.iter().map(move |b| (a, b))) {
        merges.push(format!("{a} {b}"));
    }
    for pair in &pairs {
        for symbol in symbols {
            merges.push(format!("{pair} {symbol}"));
            tokens.push(format!("{pair}{symbol}"));
        }
    }
    tokens.extend(pairs);
    let n = tokens.len();
    tokens.push("<t>".into());
    let kinds = (0..=n).map(|at| if at < n { 1 } else { 4 }).collect();
    build("gpt2", Some(pre), tokens, kinds, None, Some(merges))
}

fn sentencepiece(prefix: bool) -> Tokenizer {
    let mut tokens: Vec<(String, i32, f32)> =
        vec![("<unk>".into(), 2, 0.0), ("<t>".into(), 4, 0.0), ("\n\n".into(), 4, 0.0)];
    for text in
        ["a", "b", "▁", "ab", "▁a", "▁b", "ba", "aba", "▁▁", "1", "23", "!", "你好", "▁ab", "\n", "b!"]
    {
        tokens.push((text.into(), 1, -(tokens.len() as f32)));
    }
    tokens.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 6, 0.0)));
    let scores = tokens.iter().map(|(_, _, score)| *score).collect();
    let kinds = tokens.iter().map(|(_, kind, _)| *kind).collect();
    let texts = tokens.into_iter().map(|(text, _, _)| text).collect();
    let model = if prefix { "llama" } else { "t5" };
    build(model, None, texts, kinds, Some(scores), None)
}

fn build(
    model: &str,
    pre: Option<&str>,
    tokens: Vec<String>,
    kinds: Vec<i32>,
    scores: Option<Vec<f32>>,
    merges: Option<Vec<String>>,
) -> Tokenizer {
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", OwnedValue::Str("llama".into()));
    writer.set("tokenizer.ggml.model", OwnedValue::Str(model.into()));
    writer.set("tokenizer.ggml.tokens", OwnedValue::Strs(tokens));
    writer.set("tokenizer.ggml.token_type", OwnedValue::I32s(kinds));
    pre.map(|pre| writer.set("tokenizer.ggml.pre", OwnedValue::Str(pre.into())));
    scores.map(|scores| writer.set("tokenizer.ggml.scores", OwnedValue::F32s(scores)));
    merges.map(|merges| writer.set("tokenizer.ggml.merges", OwnedValue::Strs(merges)));
    let file = WeightFile::from_bytes("made up", SharedBytes::from_vec(writer.to_bytes())).expect("sound");
    Tokenizer::from_weights(&file).expect("a tokenizer")
}

fn check(name: &str, tokenizer: &Tokenizer, seed: u64) {
    let mut random = TestRandom(seed);
    let mut encoder = IncrementalEncoder::new();
    let mut text = random.text(400);
    for round in 0..60 {
        assert_eq!(
            encoder.encode(tokenizer, &text),
            tokenizer.encode(&text, Special::Plain),
            "{name}, {round}: {text:?}"
        );
        match random.below(5) {
            // Typing and deleting at the end, the most frequent edits.
            0 | 1 => text.push_str(PARTS[random.below(PARTS.len())]),
            2 => _ = text.pop(),
            3 => {
                let at = random.boundary(&text);
                text.insert_str(at, PARTS[random.below(PARTS.len())]);
            }
            _ => {
                let (a, b) = (random.boundary(&text), random.boundary(&text));
                let n_parts = random.below(30);
                let by = random.text(n_parts);
                text.replace_range(
                    a.min(b)..a.max(b).min(text.floor_char_boundary(a.min(b) + 60)).max(a.min(b)),
                    &by,
                );
            }
        }
    }
}

#[test]
fn every_edit_gives_the_ids_of_the_whole_text() {
    for name in NamedPreTokenizer::names() {
        check(name, &byte_level(name), 1);
    }
    for prefix in [true, false] {
        let tokenizer = sentencepiece(prefix);
        (0..12).for_each(|seed| check(if prefix { "llama" } else { "t5" }, &tokenizer, seed));
    }
}

#[test]
fn rendered_prompts_change_too() {
    let tokenizer = byte_level("llama-bpe");
    let mut random = TestRandom(7);
    let mut encoder = IncrementalEncoder::new();
    let known_ids: Vec<TokenId> = vec![3, 4, 5];
    for round in 0..80 {
        let n_parts = random.below(80);
        let parts: Vec<String> = (0..6).map(|_| random.text(n_parts)).collect();
        let (mut text, mut spans, mut ranges) = (String::new(), Vec::new(), Vec::new());
        for (at, part) in parts.iter().enumerate() {
            text.push_str("<t>\n");
            let range = text.len()..text.len() + part.len();
            text.push_str(part);
            if !range.is_empty() {
                spans.push(ContentSpan { message: Some(at), range: range.clone(), is_content: true });
                if at % 3 == 1 {
                    ranges.push(range);
                }
            }
        }
        let known: Vec<KnownIds> = ranges.iter().map(|range| KnownIds { range, ids: &known_ids }).collect();
        let mut rendered = RenderedPrompt { text, content_spans: spans };
        for _ in 0..4 {
            let expected = tokenizer.encode_rendered(&rendered, &known);
            assert_eq!(encoder.encode_rendered(&tokenizer, &rendered, &known), expected, "{round}");
            // The last message grows.
            let more = PARTS[random.below(PARTS.len())];
            if let Some(last) = rendered.content_spans.last_mut().filter(|span| span.message == Some(5)) {
                rendered.text.push_str(more);
                last.range.end += more.len();
            }
        }
    }
}

#[test]
fn typing_costs_little() {
    for (name, tokenizer) in [("llama-bpe", byte_level("llama-bpe")), ("llama", sentencepiece(true))] {
        let mut text = "ab aba b1 23 ab! ".repeat(4000);
        let mut encoder = IncrementalEncoder::new();
        encoder.encode(&tokenizer, &text);
        let before = encoder.n_encoded();
        for at in 0..50 {
            text.push_str(PARTS[at % PARTS.len()]);
            encoder.encode(&tokenizer, &text);
            text.insert(100, 'b');
            encoder.encode(&tokenizer, &text);
        }
        let per_change = (encoder.n_encoded() - before) / 100;
        assert!(per_change < 4 * WINDOW, "{name}: {per_change} bytes");
    }
}
