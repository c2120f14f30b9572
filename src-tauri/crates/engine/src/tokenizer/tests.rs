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
fn f06_hostile_vocabularies_are_clear_errors_or_harmless() {
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
    harmless(bpe().merges(&["b c", "a b", "a bc", "x y", "ab"]));
    harmless(bpe().set("bos_token_id", OwnedValue::U32(4_000_000_000)));
    harmless(bpe().set("token_type", OwnedValue::I32s(vec![99; 10])));
    harmless(&mut VocabWriter::new("gpt2", &[("", 0.0, CONTROL), ("", 0.0, NORMAL), ("", f32::NAN, USER)]));
    harmless(&mut VocabWriter::new(
        "llama",
        &[("ab", f32::NAN, NORMAL), ("a", f32::NAN, NORMAL), ("b", f32::INFINITY, BYTE)],
    ));
}

#[test]
fn the_list_that_is_missing_or_wrong_is_named() {
    let refused = |source: &VocabWriter, code: &str, name: &str| {
        let error = source.build().expect_err(name);
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(name) && !error.remedy().is_empty(), "{error}");
    };
    let merges = "tokenizer.ggml.merges";
    refused(bpe().merges(&[]), "tokenizer.merges_missing", merges);
    let mut none = VocabWriter::new("gpt2", &[("a", 0.0, NORMAL), ("b", 0.0, NORMAL), ("ab", 0.0, NORMAL)]);
    refused(&none, "tokenizer.merges_missing", merges);
    refused(none.set("model", OwnedValue::Str("gemma4".into())), "tokenizer.merges_missing", merges);
    refused(bpe().set("merges", OwnedValue::Str("a b".into())), "weights.key_invalid", merges);
    refused(bpe().set("merges", OwnedValue::U32s(vec![1, 2])), "weights.key_invalid", merges);
    refused(bpe().merges(&["x y", "ab", "", " ", "a  b", "abc abc"]), "tokenizer.broken", merges);
    refused(bpe().merges(&["bc", "ab", "abc"]), "tokenizer.broken", merges);
    refused(bpe().set("scores", OwnedValue::F32s(vec![0.0])), "tokenizer.broken", "tokenizer.ggml.scores");
    refused(
        bpe().set("token_type", OwnedValue::I32s(vec![1])),
        "tokenizer.broken",
        "tokenizer.ggml.token_type",
    );
    refused(
        bpe().set("pre", OwnedValue::Str("nonesuch".into())),
        "tokenizer.unknown_pre",
        "tokenizer.ggml.pre",
    );
    refused(spm().set("scores", OwnedValue::F32s(vec![])), "tokenizer.broken", "tokenizer.ggml.scores");
    refused(spm().set("tokens", OwnedValue::Strs(vec![])), "tokenizer.broken", "tokenizer.ggml.scores");

    // Characters alone have nothing to merge.
    let letters =
        VocabWriter::new("gpt2", &[("a", 0.0, NORMAL), ("é", 0.0, NORMAL), ("<|end|>", 0.0, CONTROL)]);
    check(&letters.build().expect("needs no merges"), "aa", Special::Plain, &[0, 0]);

    let json = |merges: &str| {
        let text = format!(
            r#"{{"model": {{"type": "BPE", "vocab": {{"a": 0, "b": 1, "ab": 2}}, "merges": {merges}}}}}"#
        );
        Tokenizer::from_json(text.as_bytes(), Default::default()).map(|it| it.encode("ab", Special::Plain))
    };
    assert_eq!(json(r#"["a b"]"#).expect("sound"), [2]);
    assert_eq!(json("[]").expect_err("none").code(), "tokenizer.merges_missing");
    assert_eq!(json(r#"["ab"]"#).expect_err("no pair").code(), "tokenizer.broken");
    assert_eq!(json(r#"[["x", "y"]]"#).expect_err("no tokens").code(), "tokenizer.broken");
}

/// As Gemma's: a tab is a token, and its byte has none.
fn gemma_like_json(missing: &[u8]) -> String {
    let mut vocab = vec![("<unk>".to_owned(), 0), ("a".into(), 1), ("\t".into(), 2)];
    for byte in (0..=255).filter(|byte| !missing.contains(byte)) {
        vocab.push((format!("<0x{byte:02X}>"), vocab.len() as u32));
    }
    let vocab: std::collections::BTreeMap<_, _> = vocab.into_iter().collect();
    serde_json::json!({
        "added_tokens": [{"id": 0, "content": "<unk>", "special": true, "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false}],
        "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "vocab": vocab, "merges": [], "unk_token": "<unk>", "fuse_unk": true,
            "byte_fallback": true, "ignore_merges": false}
    })
    .to_string()
}

#[test]
fn bytes_that_have_a_token_are_used_where_others_have_none() {
    use tokenizers::Tokenizer as Reference;
    let json = gemma_like_json(&[0x09]);
    let ours = Tokenizer::from_json(json.as_bytes(), Default::default()).expect("builds");
    let theirs: Reference = json.parse().expect("builds");
    for text in ["ᚠ", "🫠", "\0", "\t", "a\t\u{7f}a", "é\té", "\u{10ffff}\0\t\0"] {
        let expected = theirs.encode(text, false).expect("encodes").get_ids().to_vec();
        assert_eq!(ours.encode(text, Special::Plain), expected, "{text:?}");
        assert_eq!(ours.decode(&expected), text);
        assert!(!expected.contains(&0), "{text:?} is known to the reference");
    }
    // Only the byte without a token is unknown.
    let holed = Tokenizer::from_json(gemma_like_json(&[0x09, 0xa0]).as_bytes(), Default::default());
    let ids = holed.expect("builds").encode("\u{16a0}", Special::Plain);
    assert_eq!(ids.iter().filter(|id| **id == 0).count(), 1, "{ids:?}");
    assert_eq!(ids.len(), 3, "e1 9a a0: {ids:?}");

    // The same vocabulary in a GGUF, by score.
    let mut tokens =
        vec![("<unk>".to_owned(), 0.0, UNKNOWN), ("\t".into(), -1.0, NORMAL), ("▁".into(), -1.0, NORMAL)];
    tokens.extend((0..256).filter(|b| *b != 9).map(|b| (format!("<0x{b:02X}>"), 0.0, BYTE)));
    let build = |kind: Option<i32>| {
        let tokens: Vec<_> =
            tokens.iter().map(|(text, score, own)| (text.as_str(), *score, kind.unwrap_or(*own))).collect();
        let mut source = VocabWriter::new("llama", &tokens);
        source.set("add_space_prefix", OwnedValue::Bool(false)).build().expect("builds")
    };
    for tokenizer in [build(None), build(Some(NORMAL))] {
        for text in ["ᚠ", "🫠", "\0", "\t", "\t🫠\0"] {
            let ids = tokenizer.encode(text, Special::Plain);
            assert_eq!(tokenizer.decode(&ids), text, "{ids:?}");
            assert!(!ids.contains(&0), "{ids:?}");
        }
    }
}

#[test]
fn a_typed_sequence_mark_is_text() {
    // As Phi-3's tokenizer.json has it: `</s>` is an added token that is not special.
    let letters = ["<", "/", "s", ">", "</", "s>", "▁"];
    let mut vocab: Vec<(&str, u32)> = vec![("<unk>", 0), ("<s>", 1), ("</s>", 2)];
    vocab.extend((3..).zip(letters).map(|(id, text)| (text, id)));
    let vocab: std::collections::BTreeMap<_, _> = vocab.into_iter().collect();
    let added = |id: u32, text: &str, special: bool| serde_json::json!({"id": id, "content": text, "special": special, "rstrip": !special});
    let file = |begin_is_special: bool| {
        let text = serde_json::json!({
            "added_tokens": [added(0, "<unk>", true), added(1, "<s>", begin_is_special), added(2, "</s>", false)],
            "model": {"type": "BPE", "vocab": vocab, "merges": ["< /", "s >", "</ s>"], "unk_token": "<unk>"}
        });
        Tokenizer::from_json(text.to_string().as_bytes(), Default::default()).expect("builds")
    };
    let phi = file(true);
    check(&phi, "</s>", Special::Plain, &[7, 8]);
    check(&phi, "</s>", Special::Parse, &[2]);
    assert!(phi.is_control(2));
    // Inside a message and outside of one.
    let span = ContentSpan { message: Some(0), range: 4..8, is_content: true };
    let rendered = RenderedPrompt { text: "</s></s>".into(), content_spans: vec![span] };
    assert_eq!(phi.encode_rendered(&rendered, &[]), [2, 7, 8]);
    // In Gemma's vocabulary both are HTML.
    check(&file(false), "</s>", Special::Plain, &[2]);

    // The same in a GGUF, whose converters take over the type; merging must not make it either.
    let mut tokens = vec![("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, USER)];
    tokens.extend(letters.map(|text| (text, -1.0, NORMAL)));
    let mut source = VocabWriter::new("llama", &tokens);
    let tokenizer = source.set("add_space_prefix", OwnedValue::Bool(false)).build().expect("builds");
    check(&tokenizer, "</s>", Special::Plain, &[7, 8]);
    check(&tokenizer, "</s>", Special::Parse, &[2]);
}

#[test]
fn an_unknown_token_outside_the_vocabulary_is_none() {
    let tokens = [("<unk>", 0.0, UNKNOWN), ("a", -1.0, NORMAL)];
    let mut source = VocabWriter::new("llama", &tokens);
    source.set("unknown_token_id", OwnedValue::U32(33)).set("add_space_prefix", OwnedValue::Bool(false));
    check(&source.build().expect("builds"), "ab", Special::Plain, &[1, 0]);
    // The piece `a`, BPE with the unknown token 33, and no changes of white space.
    let model =
        b"\x0a\x0a\x0a\x01a\x15\x00\x00\x80\xbf\x18\x01\x12\x05\x18\x02\xc0\x02\x21\x1a\x04\x18\x00\x20\x00";
    check(&Tokenizer::from_sentencepiece(model).expect("builds"), "ab", Special::Plain, &[0]);
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
