//! Texts of people, files and tools never steer a model: markup that is typed stays text.
//!
//! Checked for every template of the reference, with a vocabulary in which all its markup is tokens.

use engine::TokenId;
use engine::template::{ChatTemplate, RenderInput};
use engine::tokenizer::{Special, Tokenizer};
use inglenook_tests::reference_dir;
use serde_json::{Map, Value, json};
use weights::write::{GgufWriter, OwnedValue};
use weights::{SharedBytes, WeightFile};

/// Markup of the mission's families, typed into every template whether it is its own or not.
const MARKUP: &[&str] = &[
    "<|im_start|>",
    "<|im_end|>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<|turn>",
    "<turn|>",
    "<|channel>",
    "<channel|>",
    "[INST]",
    "[/INST]",
    "[TOOL_CALLS]",
    "<|start|>",
    "<|channel|>",
    "<|message|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|python_tag|>",
    "<|user|>",
    "<|assistant|>",
    "<|system|>",
    "<s>",
    "</s>",
    "<bos>",
    "<eos>",
    "<|endoftext|>",
    "<|tool_call_start|>",
    "<|tool_call_end|>",
    "<｜tool▁calls▁begin｜>",
    "<｜User｜>",
];

/// Stands where markup is typed, in the conversation that is compared with.
const HARMLESS: &str = "marigold";

/// Everything in a template that looks like a control token.
pub fn markup_of(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (open, close) in [('<', '>'), ('[', ']')] {
        for part in source.split(open).skip(1) {
            let Some((name, _)) = part.split_once(close) else { continue };
            let is_name = |c: char| c.is_alphanumeric() || "|/_-:｜▁\"".contains(c);
            let is_token = !name.is_empty()
                && name.len() <= 48
                && name.chars().all(is_name)
                && name.chars().any(char::is_alphabetic)
                && (open == '<' || name.chars().all(|c| c.is_ascii_uppercase() || "/_".contains(c)));
            if is_token {
                found.push(format!("{open}{name}{close}"));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Every byte, and the markup as control tokens. A token at or above the second result is markup.
pub fn vocabulary(markup: &[String]) -> (Tokenizer, TokenId) {
    const NORMAL: i32 = 1;
    const CONTROL: i32 = 3;
    let is_printable = |byte: u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let others = (0..=255u8).filter(|byte| !is_printable(*byte)).enumerate();
    let others = others.map(|(n, _)| char::from_u32(0x100 + n as u32).expect("a letter"));
    let mut tokens: Vec<String> = (0..=255u8)
        .filter(|byte| is_printable(*byte))
        .map(char::from)
        .chain(others)
        .map(String::from)
        .collect();
    let n_bytes = tokens.len();
    tokens.extend(markup.iter().cloned());
    let kinds = (0..tokens.len()).map(|at| if at < n_bytes { NORMAL } else { CONTROL }).collect();
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", OwnedValue::Str("llama".into()));
    writer.set("tokenizer.ggml.model", OwnedValue::Str("gpt2".into()));
    writer.set("tokenizer.ggml.pre", OwnedValue::Str("gpt-2".into()));
    writer.set("tokenizer.ggml.tokens", OwnedValue::Strs(tokens));
    writer.set("tokenizer.ggml.token_type", OwnedValue::I32s(kinds));
    let file =
        WeightFile::from_bytes("made up", SharedBytes::from_vec(writer.to_bytes())).expect("a sound file");
    (Tokenizer::from_weights(&file).expect("a tokenizer"), n_bytes as TokenId)
}

/// Conversations in which `typed` stands wherever somebody else's words do.
fn conversations(typed: &str) -> Vec<(&'static str, Vec<Value>, Value)> {
    let words = format!("see {typed} there");
    let say = |role: &str, text: &str| json!({"role": role, "content": text});
    let call = json!({"id": "call12345", "type": "function",
        "function": {"name": "look", "arguments": {"at": words}}});
    let tools = json!([{"type": "function", "function": {"name": "look", "description": words,
        "parameters": {"type": "object", "properties": {"at": {"type": "string", "description": words}},
        "required": ["at"]}}}]);
    let asks = vec![say("user", &words)];
    let asks_again = vec![say("user", &words), say("assistant", "Yes."), say("user", &words)];
    let with_system = vec![say("system", &words), say("user", &words)];
    let parts = vec![json!({"role": "user", "content": [{"type": "text", "text": words}]})];
    let calls = json!({"role": "assistant", "content": "", "tool_calls": [call]});
    let answers = json!({"role": "tool", "tool_call_id": "call12345", "name": "look", "content": words});
    let with_tools = vec![say("user", &words), calls, answers];
    vec![
        ("a question", asks.clone(), Value::Null),
        ("two questions", asks_again, Value::Null),
        ("a system message", with_system, Value::Null),
        ("parts", parts, Value::Null),
        ("tools", asks, tools.clone()),
        ("a tool's answer", with_tools, tools),
    ]
}

/// The markup among the tokens of a rendered conversation; None where the template refuses it.
fn steering(
    template: &ChatTemplate,
    tokenizer: &Tokenizer,
    first: TokenId,
    messages: &[Value],
    tools: &Value,
) -> Option<Vec<TokenId>> {
    let kwargs = Map::from_iter([("add_generation_prompt".to_string(), json!(true))]);
    let input = RenderInput {
        messages,
        tools,
        kwargs: &kwargs,
        bos_token: "<s>",
        eos_token: "</s>",
        now: Some("2026-01-15T12:00:00"),
    };
    let rendered = template.render(&input).ok()?;
    let ids = tokenizer.encode_rendered(&rendered, &[]);
    assert_eq!(tokenizer.decode(&ids), rendered.text, "the tokens are the text");
    Some(ids.into_iter().filter(|id| *id >= first).collect())
}

#[test]
fn typed_markup_never_becomes_a_control_token() {
    let folder = reference_dir().join("templates/jinja");
    let mut names: Vec<_> =
        std::fs::read_dir(&folder).expect("templates").map(|entry| entry.expect("an entry").path()).collect();
    names.sort();
    let (mut n, mut wrong) = (0, Vec::new());
    for path in names {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let source = std::fs::read_to_string(&path).expect("a template");
        let Ok(template) = ChatTemplate::from_source(&source) else { continue };
        let mut markup = markup_of(&source);
        markup.extend(MARKUP.iter().map(|text| text.to_string()));
        markup.sort();
        markup.dedup();
        let (tokenizer, first) = vocabulary(&markup);
        for text in &markup {
            let is_token = |id: &TokenId| *id >= first;
            assert!(tokenizer.encode(text, Special::Parse).iter().any(is_token), "{text}");
            let pairs = conversations(text).into_iter().zip(conversations(HARMLESS));
            for ((what, messages, tools), (_, harmless, harmless_tools)) in pairs {
                let expected = steering(&template, &tokenizer, first, &harmless, &harmless_tools);
                let got = steering(&template, &tokenizer, first, &messages, &tools);
                n += usize::from(got.is_some());
                if got.is_some() && got != expected {
                    wrong.push(format!("{name}: {text} in {what}"));
                }
            }
        }
    }
    println!("typed markup: {} of {n} renderings", n - wrong.len());
    assert!(n > 0 && wrong.is_empty(), "{} of {n}:\n{}", wrong.len(), wrong.join("\n"));
}
