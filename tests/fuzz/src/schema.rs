//! Forms of answers: JSON schemas, regular expressions and grammars as sections, and a text. What is accepted has the
//! form.

use std::sync::OnceLock;

use constraint::{Compiler, TextForm, Vocabulary, Whitespace, lark_of_gbnf};
use serde_json::Value;

use crate::FuzzTarget;
use crate::sections::Sections;

/// Compiles forms of answers, and checks texts.
pub static SCHEMA: FuzzTarget = FuzzTarget { name: "schema", read, max_bytes: 512 << 20 };

/// Longer texts find no more.
const MAX_TEXT_BYTES: usize = 512;

fn read(input: &[u8]) {
    static COMPILER: OnceLock<Compiler> = OnceLock::new();
    let compiler = COMPILER.get_or_init(|| {
        Compiler::new(Vocabulary::of_bytes(), Whitespace::Any).expect("bytes are a vocabulary")
    });
    let sections = Sections::of(input);
    let text = sections.get("text").unwrap_or(b"{}");
    let text = &text[..text.len().min(MAX_TEXT_BYTES)];
    let accepts = |form: &TextForm| {
        let constraint = compiler.compile(form).ok()?;
        constraint.accepts_text(text).ok()
    };
    if let Some(schema) = sections.get("schema").and_then(|json| serde_json::from_slice::<Value>(json).ok())
        && accepts(&TextForm::JsonSchema(schema.clone())) == Some(true)
        && let Some(value) = value_of(text)
        && let Ok(validator) = jsonschema::validator_for(&schema)
    {
        assert!(validator.is_valid(&value), "accepted {value} under {schema}");
    }
    if let Some(regex) = sections.text("regex") {
        accepts(&TextForm::Regex(regex));
    }
    if let Some(lark) = sections.text("lark") {
        accepts(&TextForm::Lark(lark));
    }
    if let Some(Ok(lark)) = sections.text("gbnf").map(|gbnf| lark_of_gbnf(&gbnf)) {
        accepts(&TextForm::Lark(lark));
    }
}

/// The value of an accepted text, which is JSON. None: it is deeper, or has larger numbers, than the reader takes.
fn value_of(text: &[u8]) -> Option<Value> {
    match serde_json::from_slice(text) {
        Ok(value) => Some(value),
        Err(error) => {
            let reason = error.to_string();
            let is_limit = ["recursion limit", "number out of range"].iter().any(|it| reason.starts_with(it));
            assert!(is_limit, "what is accepted is JSON: {reason}");
            None
        }
    }
}
