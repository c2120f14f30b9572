//! Schemas and the texts that they accept, by the rules of JSON Schema.

use serde_json::{Value, json};

use super::*;

fn check(schema: &Value, accepted: &[&str], refused: &[&str]) {
    let compiler = Compiler::new(Vocabulary::of_bytes(), Whitespace::Any).expect("bytes are a vocabulary");
    let compiled = compiler.compile(&TextForm::JsonSchema(schema.clone()));
    let compiled = compiled.unwrap_or_else(|error| panic!("{schema}: {error}"));
    for (texts, expected) in [(accepted, true), (refused, false)] {
        for text in texts {
            assert_eq!(compiled.clone().accepts_text(text.as_bytes()), Ok(expected), "{schema}: {text}");
        }
    }
}

#[test]
fn what_grammars_express_is_expressed() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] });
    check(&schema, &[r#"{"a":1}"#, r#"{ "a" : 1 , "b" : [null] }"#], &["{}", r#"{"a":1.5}"#, "[1]", "{"]);
    check(&json!({ "type": "string", "maxLength": 2 }), &[r#""ab""#, r#""\u00e9b""#], &[r#""abc""#, "1"]);
    check(&json!({ "multipleOf": 5, "type": "number" }), &["10", "-5", "0"], &["7"]);
    check(&json!(true), &["null", "[1, {}]"], &["", "nul"]);
}

#[test]
fn negations_are_refused() {
    check(&json!({ "not": { "type": ["string", "null"] } }), &["1", "{}", "true"], &[r#""a""#, "null"]);
    check(&json!({ "not": { "enum": [1, "a", null] } }), &["2", r#""b""#, "[1]"], &["1", r#""a""#, "null"]);
    let words = json!({ "type": "string", "not": { "enum": ["a", "ab", ""] } });
    check(&words, &[r#""b""#, r#""abc""#, r#""aa""#, r#""ac""#], &[r#""a""#, r#""ab""#, r#""""#]);
    check(&json!({ "type": "number", "not": { "enum": [2, 5] } }), &["1", "3", "5.5", "60"], &["2", "5"]);
    check(&json!({ "type": "integer", "not": { "minimum": 3 } }), &["2", "-9"], &["3", "4"]);
    let schema = json!({ "type": "object", "not": { "required": ["a", "b"] } });
    check(&schema, &["{}", r#"{"a":1}"#, r#"{"b":1,"c":2}"#], &[r#"{"a":1,"b":2}"#, r#"{"b":1,"a":2}"#]);
    let schema = json!({ "not": { "properties": { "a": { "type": "string" } }, "type": "object" } });
    check(&schema, &["1", r#"{"a":1}"#], &["{}", r#"{"a":"x"}"#]);
    check(&json!({ "not": { "not": { "type": "boolean" } } }), &["true"], &["1"]);
    check(&json!({ "type": "string", "not": { "pattern": "^a" } }), &[r#""ba""#], &[r#""ab""#]);
    check(&json!({ "type": "number", "not": { "type": "integer" } }), &["1.5"], &["1"]);
}

#[test]
fn conditions_and_dependencies_are_followed() {
    let schema = json!({
        "type": "object",
        "if": { "properties": { "k": { "const": "a" } }, "required": ["k"] },
        "then": { "required": ["x"] },
        "else": { "required": ["y"] },
    });
    check(
        &schema,
        &[r#"{"k":"a","x":1}"#, r#"{"y":1}"#, r#"{"k":"b","y":1}"#],
        &[r#"{"k":"a","y":1}"#, r#"{"k":"b"}"#, "{}"],
    );
    let schema = json!({ "type": "object", "dependencies": { "a": ["b"], "c": { "required": ["d"] } } });
    check(
        &schema,
        &["{}", r#"{"a":1,"b":2}"#, r#"{"c":1,"d":2}"#, r#"{"b":1}"#],
        &[r#"{"a":1}"#, r#"{"c":1}"#, r#"{"a":1,"b":1,"c":2}"#],
    );
    let many: serde_json::Map<String, Value> = (0..9).map(|n| (format!("k{n}"), json!(["z"]))).collect();
    let schema = json!({ "type": "object", "dependentRequired": many });
    check(&schema, &["{}", r#"{"k3":1,"z":2}"#], &[r#"{"k3":1}"#]);
}

#[test]
fn whole_values_are_checked_when_they_end() {
    let schema = json!({ "type": "array", "items": { "type": "integer" }, "uniqueItems": true });
    check(&schema, &["[]", "[1, 2]"], &["[1, 1]", "[1, 2, 1]"]);
    let nested = json!({ "type": "object", "properties": { "t": schema }, "additionalProperties": false });
    check(&nested, &[r#"{"t":[1,2]}"#], &[r#"{"t":[1,1]}"#]);
    check(&json!({ "type": "array", "contains": { "const": 3 } }), &["[1, 3]"], &["[1]", "[]"]);
    let schema = json!({ "oneOf": [{ "type": "integer" }, { "minimum": 2 }] });
    check(&schema, &["1", "2.5"], &["3", "1.5"]);
    let schema = json!({ "type": "object", "propertyNames": { "pattern": "^[a-z]+$" } });
    check(&schema, &["{}", r#"{"ab":1}"#], &[r#"{"a1":1}"#]);
    let schema = json!({ "type": "object", "propertyNames": { "enum": ["a", "b"] } });
    check(&schema, &["{}", r#"{"b":1}"#], &[r#"{"c":1}"#]);
    let schema = json!({ "patternProperties": { "a": { "type": "integer" }, "b": { "minimum": 5 } } });
    check(&schema, &[r#"{"ab":7}"#, r#"{"a":1}"#], &[r#"{"ab":3}"#, r#"{"a":"x"}"#]);
    let schema = json!({ "type": "string", "format": "json-pointer" });
    check(&schema, &[r#""/a/b""#, r#""""#], &[r#""a/b""#]);
    let schema = json!({
        "allOf": [{ "properties": { "a": true } }],
        "unevaluatedProperties": false,
        "type": "object",
    });
    check(&schema, &["{}", r#"{"a":1}"#], &[r#"{"b":1}"#]);
}

#[test]
fn an_invalid_part_is_refused_at_its_end() {
    let schema = json!({ "type": "object", "properties": { "t": { "type": "array", "uniqueItems": true } } });
    let compiler = Compiler::new(Vocabulary::of_bytes(), Whitespace::Any).expect("bytes are a vocabulary");
    let mut constraint = compiler.compile(&TextForm::JsonSchema(schema)).expect("it compiles");
    // The item ends with what follows it, or with its own last byte.
    for byte in br#"{"t":["a",1,1"# {
        assert_eq!(constraint.accept(u32::from(*byte)), Ok(Verdict::Accepted));
    }
    assert_eq!(constraint.accept(u32::from(b',')), Ok(Verdict::Refused));
    assert!(constraint.mask().expect("there is more")[b']' as usize / 32] >> (b']' % 32) & 1 == 1);
    assert_eq!(constraint.accept(u32::from(b']')), Ok(Verdict::Refused));
    assert!(constraint.mask().expect("there is more")[b']' as usize / 32] >> (b']' % 32) & 1 == 0);
    for byte in br#"2,"ab","a"# {
        assert_eq!(constraint.accept(u32::from(*byte)), Ok(Verdict::Accepted));
    }
    assert_eq!(constraint.accept(u32::from(b'"')), Ok(Verdict::Refused));
    for byte in br#"c"]}"# {
        assert_eq!(constraint.accept(u32::from(*byte)), Ok(Verdict::Accepted));
    }
    assert_eq!(constraint.is_complete(), Ok(true));
    assert_eq!(constraint.accept(256), Ok(Verdict::Accepted));
}

#[test]
fn references_lead_where_they_led() {
    let schema = json!({
        "definitions": { "list": { "type": "array", "items": { "$ref": "#/definitions/list" }, "uniqueItems": true } },
        "$ref": "#/definitions/list",
    });
    check(&schema, &["[]", "[[], [[]]]"], &["[[], []]", "[1]"]);
    let schema = json!({
        "properties": { "a": { "$ref": "#/not/properties/b" } },
        "not": { "properties": { "b": { "type": "integer" } }, "required": ["b"] },
        "type": "object",
    });
    check(&schema, &[r#"{"a":1}"#, r#"{"b":"x"}"#], &[r#"{"a":"x"}"#, r#"{"b":1}"#]);
    let schema = json!({
        "properties": { "a": { "definitions": { "n": { "type": "integer" } }, "$ref": "#/properties/a/definitions/n" },
            "b": { "type": "string" } },
        "type": "object",
    });
    let compiler = Compiler::new(Vocabulary::of_bytes(), Whitespace::Any).expect("bytes are a vocabulary");
    let unordered = compiler.compile_unordered(&schema).expect("it compiles");
    for (text, expected) in [(r#"{"b":"x","a":1}"#, true), (r#"{"b":"x","a":"y"}"#, false)] {
        assert_eq!(unordered.clone().accepts_text(text.as_bytes()), Ok(expected), "{text}");
    }
    // Beside a reference nothing counts in old drafts.
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": { "a": { "type": "integer" } },
        "$ref": "#/definitions/a",
        "minimum": 7,
    });
    check(&schema, &["1"], &[r#""a""#]);
}

#[test]
fn f70_what_does_not_compile_says_why() {
    let compiler = Compiler::new(Vocabulary::of_bytes(), Whitespace::Any).expect("bytes are a vocabulary");
    let check = |form: TextForm, part: &str| {
        let error = compiler.compile(&form).expect_err("it cannot be compiled");
        assert_eq!(error.code(), "constraint.invalid", "{form:?}");
        assert!(error.to_string().contains(part), "{error}");
    };
    check(TextForm::JsonSchema(json!({ "type": "strange" })), "strange");
    check(TextForm::JsonSchema(json!({ "$ref": "http://example.com/schema" })), "example.com");
    check(TextForm::JsonSchema(json!(false)), "nsatisfiable");
    check(TextForm::Regex("(".into()), "regular expression");
    check(TextForm::Lark("start: missing".into()), "missing");
    let large = "a".repeat(2 << 20);
    let error = compiler.compile(&TextForm::Regex(large)).expect_err("it is too large");
    assert_eq!(error.code(), "constraint.too_large");
}

#[test]
fn sequences_join_tokens_text_and_json() {
    let mut tokens: Vec<TokenText> = (0..=u8::MAX).map(|byte| TokenText::Bytes(vec![byte])).collect();
    tokens.extend(["<call>", "</call>", "<end>"].map(|name| TokenText::Markup(name.into())));
    let compiler = Compiler::new(Vocabulary::new(tokens, &[258]), Whitespace::Bounded).expect("a vocabulary");
    let form = TextForm::Sequences(vec![vec![
        TextPart::Optional(vec![TextPart::AnyText, TextPart::Token(257)]),
        TextPart::Token(256),
        TextPart::Literal("f ".into()),
        TextPart::Json(
            json!({ "type": "object", "properties": { "x": { "type": "integer" } }, "required": ["x"] }),
        ),
        TextPart::Token(257),
    ]]);
    let compiled = compiler.compile(&form).expect("it compiles");
    let accepts = |pieces: &[(&str, Option<u32>)]| {
        let mut constraint = compiled.clone();
        let tokens = pieces.iter().flat_map(|(text, token)| text.bytes().map(u32::from).chain(*token));
        for token in tokens {
            if constraint.accept(token).expect("within limits") == Verdict::Refused {
                return false;
            }
        }
        constraint.is_complete().expect("within limits")
    };
    assert!(accepts(&[("", Some(256)), (r#"f {"x": 1}"#, Some(257))]));
    assert!(accepts(&[
        ("so be it", Some(257)),
        ("", Some(256)),
        (r#"f {"x": 1}"#, Some(257)),
        ("", Some(258))
    ]));
    assert!(!accepts(&[("", Some(256)), (r#"f {"x": "a"}"#, Some(257))]));
    assert!(!accepts(&[("<call>f {\"x\": 1}", Some(257))]));
    assert!(!accepts(&[("", Some(256)), (r#"f {"x": 1}"#, None)]));
}
