//! The properties of a tokenizer that decide whether a text may be encoded from its middle on. Ids are worked out by hand,
//! and are the same after every way to cut the text in two.

use serde_json::{Value, json};

use super::super::json::SideFiles;
use super::super::{IncrementalEncoder, Special, TokenId, Tokenizer};
use super::*;
use crate::template::RenderedPrompt;

fn read(file: &Value) -> Tokenizer {
    Tokenizer::from_json(file.to_string().as_bytes(), SideFiles::default()).expect("a sound file")
}

/// Checks the ids of a text, and those of the text many times over, first up to every cut and then as a whole.
fn check(file: &Value, restarts: RestartPoints, text: &str, expected: &[TokenId]) {
    let tokenizer = read(file);
    assert_eq!(tokenizer.encode(text, Special::Plain), expected, "{text:?} by {file}");
    assert_eq!(tokenizer.restarts(), restarts, "{file}");
    let long = text.repeat(160 / text.len() + 2);
    let whole = tokenizer.encode(&long, Special::Plain);
    for (cut, _) in long.char_indices() {
        let mut encoder = IncrementalEncoder::new();
        encoder.encode(&tokenizer, &long[..cut]);
        assert_eq!(encoder.encode(&tokenizer, &long), whole, "{long:?}, first up to {cut}, by {file}");
    }
}

fn marks_spaces_json() -> Value {
    json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})
}

/// Single characters without merges, `<unk>` first, and further fields of the model.
fn chars_json(normalizer: Value, pre_tokenizer: Value) -> Value {
    let vocab = json!({"<unk>": 0, "▁": 1, "a": 2, "b": 3, "c": 4, "ab": 5, "ac": 6});
    let model = json!({"type": "BPE", "vocab": vocab, "merges": ["a b", "a c"], "unk_token": "<unk>"});
    json!({"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "model": model})
}

fn unigram_json(vocab: &Value, normalizer: Value) -> Value {
    let decoder = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"});
    let model = json!({"type": "Unigram", "unk_id": 0, "vocab": vocab});
    json!({"normalizer": normalizer, "decoder": decoder, "model": model})
}

/// The 256 characters for bytes, a token each, and tokens of two letters.
fn bytes_json(normalizer: Value, pre_tokenizer: Value) -> Value {
    let mut chars: Vec<char> =
        tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet().into_iter().collect();
    chars.sort_unstable();
    let mut tokens: Vec<String> = chars.into_iter().map(String::from).collect();
    tokens.extend(["aa".to_owned(), "bc".to_owned()]);
    let vocab: Value = (0..).zip(&tokens).map(|(id, text)| (text.clone(), Value::from(id as u32))).collect();
    let model = json!({"type": "BPE", "vocab": vocab, "merges": ["a a", "b c"]});
    json!({"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "model": model})
}

fn byte_level_json(use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex})
}

fn split_json(pattern: Value, behavior: &str) -> Value {
    json!({"type": "Split", "pattern": pattern, "behavior": behavior, "invert": false})
}

/// Splits by a regular expression, then turns characters into bytes.
fn split_bytes_json(pattern: &str) -> Value {
    let steps = [split_json(json!({"Regex": pattern}), "Isolated"), byte_level_json(false)];
    json!({"type": "Sequence", "pretokenizers": steps})
}

/// The ids of tokens of `bytes_json`.
fn byte_ids(tokens: &[&str]) -> Vec<TokenId> {
    let tokenizer = read(&bytes_json(Value::Null, byte_level_json(false)));
    tokens.iter().map(|text| tokenizer.vocab.find_any(text).expect("a token")).collect()
}

#[test]
fn unknown_characters_in_a_row_are_one_token() {
    let vocab = json!([["<unk>", 0.0], ["▁", -1.0], ["a", -2.0]]);
    // Spaces that stay spaces are unknown, although `▁` is a token.
    check(&unigram_json(&vocab, Value::Null), RestartPoints::Never, "a   éa", &[2, 0, 2]);
    let marked = unigram_json(&vocab, marks_spaces_json());
    check(&marked, RestartPoints::BetweenUnpairedChars, "a   éa", &[2, 1, 1, 1, 0, 2]);
    let mut fused = chars_json(marks_spaces_json(), Value::Null);
    check(&fused, RestartPoints::BetweenUnpairedChars, "éüa é", &[0, 0, 2, 1, 0]);
    fused["model"]["fuse_unk"] = Value::from(true);
    check(&fused, RestartPoints::BetweenUnpairedChars, "éüa é", &[0, 2, 1, 0]);
}

#[test]
fn normalizers_may_join_what_a_cut_separates() {
    let replace = |pattern: Value, by: &str| json!({"type": "Replace", "pattern": pattern, "content": by});
    let check = |normalizer: Value, text: &str, expected: &[TokenId]| {
        check(&chars_json(normalizer, Value::Null), RestartPoints::Never, text, expected);
    };
    check(replace(json!({"String": "ba"}), "c"), "aba", &[6]);
    check(replace(json!({"Regex": "b+a"}), "c"), "abbb a", &[5, 3, 3, 0, 2]);
    check(
        json!({"type": "Sequence", "normalizers": [marks_spaces_json(), marks_spaces_json()]}),
        "a b",
        &[2, 1, 3],
    );
    check(json!({"type": "Strip", "strip_left": true, "strip_right": true}), " ab ", &[5]);
    check(json!({"type": "NFC"}), "ab", &[5]);
    let steps = json!([{"type": "Prepend", "prepend": "▁"}, marks_spaces_json()]);
    check(json!({"type": "Sequence", "normalizers": steps}), "a b", &[1, 2, 1, 3]);
}

#[test]
fn only_known_ways_to_split_begin_anywhere() {
    let check_chars = |pre: Value, restarts, text: &str, expected: &[TokenId]| {
        check(&chars_json(marks_spaces_json(), pre), restarts, text, expected);
    };
    // Three characters at a time: aba, bab, ab.
    let by_three = split_json(json!({"Regex": ".{3}"}), "Isolated");
    check_chars(by_three, RestartPoints::Never, "abababab", &[5, 2, 3, 5, 5]);
    check_chars(split_json(json!({"String": "ba"}), "Isolated"), RestartPoints::Never, "abac", &[2, 3, 2, 4]);
    for behavior in ["MergedWithPrevious", "Isolated", "Contiguous", "MergedWithNext"] {
        let one_char = split_json(json!({"String": "b"}), behavior);
        let expected: &[TokenId] = if behavior == "MergedWithPrevious" { &[5, 3, 6] } else { &[2, 3, 3, 6] };
        check_chars(one_char, RestartPoints::BetweenUnpairedChars, "abbac", expected);
    }
    let metaspace = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"});
    check_chars(metaspace, RestartPoints::Never, "a b", &[1, 2, 1, 3]);
}

#[test]
fn only_known_patterns_begin_at_any_piece() {
    let check_bytes = |pre: Value, restarts, text: &str, expected: &[&str]| {
        check(&bytes_json(Value::Null, pre), restarts, text, &byte_ids(expected));
    };
    check_bytes(split_bytes_json("(?<=a)b"), RestartPoints::Never, "abcc", &["a", "b", "c", "c"]);
    check_bytes(split_bytes_json("a(?=[^z]*z)"), RestartPoints::Never, "aa1 b1", &["aa", "1", "Ġ", "b", "1"]);
    check_bytes(split_bytes_json("a(?=[^z]*z)"), RestartPoints::Never, "aa1 z", &["a", "a", "1", "Ġ", "z"]);
    check_bytes(split_bytes_json(GPT_2), RestartPoints::AtPieces, "aa bc", &["aa", "Ġ", "bc"]);
    check_bytes(byte_level_json(true), RestartPoints::AtPieces, "aa bc", &["aa", "Ġ", "bc"]);
    // Nothing is ever split off.
    check_bytes(byte_level_json(false), RestartPoints::Never, "aa bc", &["aa", "Ġ", "bc"]);
    let mut prefixed = byte_level_json(true);
    prefixed["add_prefix_space"] = Value::from(true);
    check_bytes(prefixed, RestartPoints::Never, "aa", &["Ġ", "aa"]);
    // Splits é after its first byte.
    let steps = [byte_level_json(true), split_json(json!({"Regex": "Ã"}), "Isolated")];
    let pre = json!({"type": "Sequence", "pretokenizers": steps});
    check_bytes(pre, RestartPoints::Never, "éa", &["Ã", "©", "a"]);
}

#[test]
fn canonical_composition_reaches_across_any_number_of_marks() {
    let check_form = |form: &str, restarts, text: &str, expected: &[&str]| {
        let file = bytes_json(json!({"type": form}), byte_level_json(true));
        check(&file, restarts, text, &byte_ids(expected));
    };
    // The acute accent goes to the letter, past all marks below it.
    let text = format!("e{}\u{301} 1 ", "\u{316}".repeat(17));
    let expected = [&["Ã", "©"][..], &["Ì", "ĸ"].repeat(17), &["Ġ", "1", "Ġ"]].concat();
    check_form("NFC", RestartPoints::AtPieces, &text, &expected);
    check_form("NFC", RestartPoints::AtPieces, "e\u{301}1 ", &["Ã", "©", "1", "Ġ"]);
    // ½ becomes three pieces, all at the same byte of the text.
    check_form("NFKC", RestartPoints::Never, "½", &["1", "â", "ģ", "Ħ", "2"]);
    check_form("NFD", RestartPoints::Never, "é", &["e", "Ì", "ģ"]);
}

#[test]
fn a_piece_that_is_a_token_is_not_one_as_a_part() {
    let mut file = chars_json(marks_spaces_json(), Value::Null);
    file["model"]["ignore_merges"] = Value::from(true);
    file["model"]["merges"] = json!(["a c"]);
    check(&file, RestartPoints::Never, "ab", &[5]);
    check(&file, RestartPoints::Never, "bab", &[3, 2, 3]);
}

#[test]
fn scores_before_a_cut_decide_nothing_after_it() {
    // `f32` has no such score, so `b` is unknown.
    let vocab = json!([["<unk>", 0.0], ["a", -1.0], ["b", 1e300], ["c", -1.0]]);
    let file = unigram_json(&vocab, marks_spaces_json());
    check(&file, RestartPoints::BetweenUnpairedChars, "abbéca", &[1, 0, 3, 1]);
    // Beside -1e30 the other scores vanish in rounding: `ab`, less likely than its letters, would come first.
    let vocab = json!([["<unk>", 0.0], ["a", -1.0], ["b", -1.0], ["c", -1e30], ["ab", -3.0]]);
    let file = unigram_json(&vocab, marks_spaces_json());
    check(&file, RestartPoints::BetweenUnpairedChars, "cab", &[3, 1, 2]);
}

#[test]
fn bytes_without_a_token_stay_apart() {
    let mut file = chars_json(marks_spaces_json(), Value::Null);
    file["model"]["byte_fallback"] = Value::from(true);
    file["model"]["vocab"]["<0xC3>"] = Value::from(7);
    // é is C3 A9 and has a token for its first byte alone.
    check(&file, RestartPoints::BetweenUnpairedChars, "aéé b", &[2, 7, 0, 7, 0, 1, 3]);
}

#[test]
fn word_pieces_begin_at_words() {
    let vocab = json!({"[UNK]": 0, "a": 1, "##a": 2, "b": 3});
    let model = json!({"type": "WordPiece", "vocab": vocab, "unk_token": "[UNK]", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100});
    let normalizer = json!({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
        "strip_accents": null, "lowercase": true});
    let added = json!([{"id": 0, "content": "[UNK]", "special": true}]);
    let pre = json!({"type": "BertPreTokenizer"});
    let file = json!({"normalizer": normalizer, "pre_tokenizer": pre, "added_tokens": added, "model": model});
    check(&file, RestartPoints::Never, "aa b ba c", &[1, 2, 3, 3, 2, 0]);
}

#[test]
fn added_tokens_may_depend_on_what_surrounds_them() {
    let file = |key: &str, is_control: bool| {
        let mut file = chars_json(marks_spaces_json(), Value::Null);
        let mut added = json!({"id": 7, "content": "cc", "special": is_control});
        added[key] = Value::from(true);
        file["added_tokens"] = json!([added]);
        file
    };
    check(&file("lstrip", false), RestartPoints::Never, "a  cc a", &[2, 7, 1, 2]);
    check(&file("rstrip", false), RestartPoints::Never, "a cc  a", &[2, 1, 7, 2]);
    check(&file("single_word", false), RestartPoints::Never, "acc cc b", &[6, 4, 1, 7, 1, 3]);
    check(&file("normalized", false), RestartPoints::BetweenUnpairedChars, "acc b", &[2, 7, 1, 3]);
    check(&file("rstrip", true), RestartPoints::BetweenUnpairedChars, "acc  b", &[6, 4, 1, 1, 3]);
}

#[test]
fn control_tokens_depend_on_what_surrounds_them_too() {
    let check = |key: &str, text: &str, expected: &[TokenId]| {
        let mut file = chars_json(marks_spaces_json(), Value::Null);
        file["added_tokens"] = json!([{"id": 7, "content": "cc", "special": true, (key): true}]);
        let (tokenizer, text) = (read(&file), text.repeat(20));
        let prompt = |text: &str| RenderedPrompt { text: text.to_owned(), content_spans: Vec::new() };
        for cut in 0..text.len() {
            let mut encoder = IncrementalEncoder::new();
            encoder.encode_rendered(&tokenizer, &prompt(&text[..cut]), &[]);
            let ids = encoder.encode_rendered(&tokenizer, &prompt(&text), &[]);
            assert_eq!(ids, expected.repeat(20), "{key}: {text:?}, first up to {cut}");
        }
    };
    check("lstrip", "b   cc   a ", &[3, 7, 1, 1, 1, 2, 1]);
    check("rstrip", "b   cc   a ", &[3, 1, 1, 1, 7, 2, 1]);
    // Behind a letter it is none, also where the letter is kept from before.
    check("single_word", "bcc cc ", &[3, 4, 4, 1, 7, 1]);
}

/// The usual ones encode little again after a change: those of Gemma 3, Qwen 2 and SmolLM.
#[test]
fn the_usual_tokenizers_keep_what_comes_before_a_change() {
    let gemma = chars_json(marks_spaces_json(), split_json(json!({"String": " "}), "MergedWithPrevious"));
    let qwen = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    let digits = [json!({"type": "Digits", "individual_digits": true}), byte_level_json(true)];
    let smollm = json!({"type": "Sequence", "pretokenizers": digits});
    let files =
        [gemma, bytes_json(json!({"type": "NFC"}), split_bytes_json(qwen)), bytes_json(Value::Null, smollm)];
    for file in files {
        let (tokenizer, mut encoder) = (read(&file), IncrementalEncoder::new());
        let mut text = "ab ac ba ".repeat(400);
        encoder.encode(&tokenizer, &text);
        let before = encoder.n_encoded();
        text.push('a');
        encoder.encode(&tokenizer, &text);
        let again = encoder.n_encoded() - before;
        assert!(again < 100, "{again} bytes by {file}");
    }
}
