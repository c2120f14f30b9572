//! Small vocabularies: each rule by itself, and hostile files.

use weights::write::{GgufWriter, OwnedValue};
use weights::{SharedBytes, WeightFile};

use super::*;
use crate::error::Result as EngineResult;

const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER: i32 = 4;
const BYTE: i32 = 6;

/// Metadata of a vocabulary, freely changed.
struct VocabWriter(GgufWriter);

impl VocabWriter {
    fn new(model: &str, tokens: &[(&str, f32, i32)]) -> Self {
        let mut writer = GgufWriter::new();
        let strings = tokens.iter().map(|(text, _, _)| (*text).to_owned()).collect();
        let scores = tokens.iter().map(|(_, score, _)| *score).collect();
        let kinds = tokens.iter().map(|(_, _, kind)| *kind).collect();
        writer.set("general.architecture", OwnedValue::Str("llama".into()));
        let mut this = Self(writer);
        this.set("model", OwnedValue::Str(model.into()));
        this.set("tokens", OwnedValue::Strs(strings));
        this.set("scores", OwnedValue::F32s(scores));
        this.set("token_type", OwnedValue::I32s(kinds));
        this
    }

    fn set(&mut self, key: &str, value: OwnedValue) -> &mut Self {
        self.0.set(&format!("tokenizer.ggml.{key}"), value);
        self
    }

    fn merges(&mut self, merges: &[&str]) -> &mut Self {
        self.set("merges", OwnedValue::Strs(merges.iter().map(|m| (*m).to_owned()).collect()))
    }

    fn build(&self) -> EngineResult<Tokenizer> {
        let bytes: &'static [u8] = self.0.to_bytes().leak();
        let file = WeightFile::from_bytes("made up", SharedBytes::from_static(bytes)).expect("a sound file");
        Tokenizer::from_weights(&file)
    }
}

fn spm() -> VocabWriter {
    let mut tokens: Vec<(String, f32, i32)> = vec![
        ("<unk>".into(), 0.0, UNKNOWN),
        ("<s>".into(), 0.0, CONTROL),
        ("</s>".into(), 0.0, CONTROL),
        ("▁".into(), -9.0, NORMAL),
        ("a".into(), -9.0, NORMAL),
        ("b".into(), -9.0, NORMAL),
        ("ab".into(), -1.0, NORMAL),
        ("▁a".into(), -2.0, NORMAL),
        ("▁ab".into(), -3.0, NORMAL),
        ("\n\n".into(), 0.0, USER),
    ];
    tokens.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 0.0, BYTE)));
    let tokens: Vec<_> = tokens.iter().map(|(text, score, kind)| (text.as_str(), *score, *kind)).collect();
    let mut source = VocabWriter::new("llama", &tokens);
    source.set("bos_token_id", OwnedValue::U32(1)).set("eos_token_id", OwnedValue::U32(2));
    source
}

fn bpe() -> VocabWriter {
    let tokens = [
        ("a", 0.0, NORMAL),
        ("b", 0.0, NORMAL),
        ("c", 0.0, NORMAL),
        ("ab", 0.0, NORMAL),
        ("bc", 0.0, NORMAL),
        ("abc", 0.0, NORMAL),
        ("Ġ", 0.0, NORMAL),
        ("<|im_start|>", 0.0, CONTROL),
        ("<|im_end|>", 0.0, CONTROL),
        ("<think>", 0.0, USER),
    ];
    let mut source = VocabWriter::new("gpt2", &tokens);
    source.set("pre", OwnedValue::Str("gpt-2".into())).merges(&["b c", "a b", "a bc"]);
    source
}

fn check(tokenizer: &Tokenizer, text: &str, special: Special, expected: &[TokenId]) {
    assert_eq!(tokenizer.encode(text, special), expected, "{text:?}");
}

#[test]
fn sentencepiece_merges_by_score_and_falls_back_to_bytes() {
    let tokenizer = spm().build().expect("builds");
    let byte = |byte: u8| 10 + TokenId::from(byte);
    check(&tokenizer, "", Special::Plain, &[]);
    check(&tokenizer, "ab", Special::Plain, &[8]);
    check(&tokenizer, " ab", Special::Plain, &[3, 8]);
    check(&tokenizer, "ba", Special::Plain, &[3, 5, 4]);
    check(&tokenizer, "é", Special::Plain, &[3, byte(0xc3), byte(0xa9)]);
    check(&tokenizer, "<s>a", Special::Parse, &[1, 7]);
    assert!(!tokenizer.encode("<s>", Special::Plain).contains(&1));
    assert!(!tokenizer.encode("<0x41>", Special::Parse).contains(&byte(0x41)));
    check(&tokenizer, "a\n\na", Special::Plain, &[7, 9, 7]);
    assert_eq!(tokenizer.add_special(vec![8]), [1, 8]);
    assert_eq!((tokenizer.bos(), tokenizer.eos(), tokenizer.is_eog(2)), (Some(1), Some(2), true));
    assert_eq!(tokenizer.decode(&[8, 8]), "ab ab");
    assert_eq!(tokenizer.decode(&[3, byte(0xc3), byte(0xa9)]), "é");
    assert_eq!(tokenizer.decode(&[byte(0xc3)]), "\u{fffd}");
}

#[test]
fn sentencepiece_without_prefix_or_bytes() {
    let mut source = spm();
    source.set("add_space_prefix", OwnedValue::Bool(false));
    let tokenizer = source.build().expect("builds");
    check(&tokenizer, "ab", Special::Plain, &[6]);
    check(&tokenizer, " ab", Special::Plain, &[8]);
    assert_eq!(tokenizer.decode(&[8]), " ab");
    let tokens = [("<unk>", 0.0, UNKNOWN), ("a", 0.0, NORMAL), ("▁", 0.0, NORMAL)];
    let bare = VocabWriter::new("llama", &tokens).build().expect("builds");
    check(&bare, "aéé", Special::Plain, &[2, 1, 0]);
}

#[test]
fn bpe_merges_by_rank() {
    let tokenizer = bpe().build().expect("builds");
    check(&tokenizer, "abc", Special::Plain, &[5]);
    check(&tokenizer, "abcab", Special::Plain, &[5, 3]);
    check(&tokenizer, "ab c", Special::Plain, &[3, 6, 2]);
    check(&tokenizer, "<|im_end|>", Special::Parse, &[8]);
    // Bytes without a token leave nothing.
    check(&tokenizer, "<|im_end|>a", Special::Plain, &[0]);
    check(&tokenizer, "a<think>b", Special::Plain, &[0, 9, 1]);
    assert_eq!(tokenizer.decode(&[3, 6, 8]), "ab <|im_end|>");
    assert!(tokenizer.is_eog(8) && !tokenizer.is_eog(7));
    assert_eq!(tokenizer.stream().push(8), "");
}

#[test]
fn steering_tokens_are_plain_in_contents_only() {
    let tokenizer = bpe().build().expect("builds");
    let text = "<|im_start|>a<think><|im_end|>b<think><|im_end|>";
    let typed = "a<think><|im_end|>b";
    let at = text.find(typed).expect("it is there");
    let span = ContentSpan { message: Some(0), range: at..at + typed.len(), is_content: true };
    let rendered = RenderedPrompt { text: text.into(), content_spans: vec![span] };
    assert_eq!(tokenizer.encode_rendered(&rendered, &[]), [7, 0, 1, 9, 8]);
    let range = at..at + typed.len();
    let known = [KnownIds { range: &range, ids: &[2, 2] }];
    assert_eq!(tokenizer.encode_rendered(&rendered, &known), [7, 2, 2, 9, 8]);
    // Out of order or outside the text: encoded like the rest.
    let (far, half) = (at..text.len() + 5, 0..1);
    let known = [KnownIds { range: &far, ids: &[2] }, KnownIds { range: &half, ids: &[1] }];
    let ids = tokenizer.encode_rendered(&rendered, &known);
    assert_eq!(ids[0], 1, "{ids:?}");
}

#[test]
fn hostile_vocabularies_are_clear_errors_or_harmless() {
    let refused = |source: &VocabWriter, code: &str| {
        let error = source.build().expect_err(code);
        assert_eq!(error.code(), code, "{error}");
        assert!(!error.to_string().is_empty() && !error.remedy().is_empty());
    };
    refused(&VocabWriter::new("llama", &[]), "tokenizer.broken");
    refused(&VocabWriter::new("wordpiece", &[("a", 0.0, NORMAL)]), "tokenizer.unsupported");
    refused(bpe().set("pre", OwnedValue::Str("nonesuch".into())), "tokenizer.unknown_pre");
    refused(bpe().set("scores", OwnedValue::F32s(vec![0.0])), "tokenizer.broken");
    refused(bpe().set("token_type", OwnedValue::I32s(vec![1])), "tokenizer.broken");
    refused(bpe().set("tokens", OwnedValue::U32(1)), "weights.key_invalid");
    refused(bpe().set("bos_token_id", OwnedValue::Str("a".into())), "weights.key_invalid");
    refused(bpe().set("model", OwnedValue::U32(1)), "weights.key_invalid");

    let harmless = |source: &mut VocabWriter| {
        let tokenizer = source.build().expect("tolerated");
        let ids = tokenizer.encode("abc <|im_end|> \u{0} é", Special::Parse);
        tokenizer.decode(&ids);
        assert_eq!((tokenizer.bos(), tokenizer.decode(&[4_000_000_000])), (None, String::new()));
    };
    harmless(bpe().merges(&["x y", "ab", "", " ", "a  b", "abc abc"]));
    harmless(bpe().set("bos_token_id", OwnedValue::U32(4_000_000_000)));
    harmless(bpe().set("token_type", OwnedValue::I32s(vec![99; 10])));
    harmless(&mut VocabWriter::new("gpt2", &[("", 0.0, CONTROL), ("", 0.0, NORMAL), ("", f32::NAN, USER)]));
    harmless(&mut VocabWriter::new(
        "llama",
        &[("ab", f32::NAN, NORMAL), ("a", f32::NAN, NORMAL), ("b", f32::INFINITY, BYTE)],
    ));
}

#[test]
fn a_damaged_sentencepiece_model_is_an_error() {
    let piece = b"\x0a\x0d\x0a\x01a\x15\x00\x00\x80\xbf\x18\x01";
    for cut in 0..piece.len() {
        // With any outcome, it must terminate.
        let _ = Tokenizer::from_sentencepiece(&piece[..cut]);
    }
    for bytes in
        [&b""[..], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x0a\xff\xff\xff\xff\x0f", b"{}"]
    {
        assert!(Tokenizer::from_sentencepiece(bytes).is_err(), "{bytes:?}");
    }
}

#[test]
fn a_damaged_tokenizer_json_is_an_error() {
    let cases = [
        "",
        "[]",
        "{}",
        r#"{"model": {"type": "WordPiece", "vocab": {"a": 0}}}"#,
        r#"{"model": {"type": "BPE", "vocab": {}, "merges": []}}"#,
        r#"{"model": {"type": "BPE", "vocab": {"a": 4000000000}, "merges": []}}"#,
        r#"{"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}"#,
        r#"{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]}}"#,
        r#"{"model": {"type": "Unigram", "vocab": [], "unk_id": 7}}"#,
        r#"{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": false}}"#,
    ];
    for json in cases {
        let error = Tokenizer::from_json(json.as_bytes(), Default::default()).expect_err(json);
        assert!(error.code().starts_with("tokenizer."), "{json}: {error}");
    }
}
