//! Replies of models: split into text, reasoning and tool calls, the same however their tokens are cut.

use std::sync::OnceLock;

use engine::reply::{ReplyEnd, ReplyFormat, ReplyPiece, ReplySplitter, ToolCall};
use engine::tokenizer::{Special, Tokenizer};
use serde_json::{Value, json};
use weights::write::{GgufWriter, OwnedValue};
use weights::{SharedBytes, WeightFile};

use crate::FuzzTarget;

/// Splits replies.
pub static REPLY: FuzzTarget = FuzzTarget { name: "reply", read, max_bytes: 128 << 20 };

/// Templates that stand for ways to write replies: with the tokens that they name.
const TEMPLATES: &[&str] = &[
    "<think></think><tool_call></tool_call>",
    "<|channel|><|message|><|start|><|return|><|end|><|call|><|constrain|>",
    "<|message|><|start|><|eom|><|eot|><atem:function_calls>",
    "[THINK][/THINK][TOOL_CALLS][ARGS][CALL_ID]",
    "<|START_THINKING|><|END_THINKING|><|START_ACTION|><|END_ACTION|>",
    "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜><｜tool▁call▁begin｜><｜tool▁call▁end｜><｜tool▁sep｜>",
    "{\"name\": function name<|python_tag|>",
    "<start_of_turn>tool_code",
    "<tool_call><arg_key></arg_key><arg_value></arg_value></tool_call>",
    "<function=x><parameter=y></parameter></function><tool_call>",
    "<|tool_calls_section_begin|><|tool_calls_section_end|><|tool_call_begin|><|tool_call_argument_begin|><|tool_call_end|>",
    "<|tool_call_start|><|tool_call_end|>",
    "",
    ">>>${recipient}",
    "'function call'<|role_sep|>",
    "'<tool_calls{}>'",
    "open_tag('call'<|open|><|sep|><|close|>",
    "']<]minimax[>['<tool_call>",
    "<|think|><|end|><|tool_calls|><|calls|><|tool_call:begin|><|tool_call:name|><|tool_call:args|><|tool_call:end|>",
    "<｜DSML｜function_calls>",
    "<|channel>thought<channel|><|tool_call><tool_call|><|\"|>",
];

/// Ends of prompts: inside nothing, and inside what a prompt may open.
const PROMPTS: &[&str] = &["", "<think>\n", ">>>", "<|start|>assistant"];

struct ReplyDialect {
    format: ReplyFormat,
    tokenizer: Tokenizer,
}

/// A reply as its reader gets it.
struct TokenizedReply<'a> {
    dialect: &'a ReplyDialect,
    prompt: &'static str,
    ids: Vec<u32>,
}

#[derive(Debug, Default, PartialEq)]
struct ReplyParts {
    text: String,
    reasoning: String,
    calls: Vec<ToolCall>,
    n_notices: usize,
}

fn read(input: &[u8]) {
    static DIALECTS: OnceLock<Vec<ReplyDialect>> = OnceLock::new();
    let dialects = DIALECTS.get_or_init(|| TEMPLATES.iter().map(|template| dialect(template)).collect());
    // The first byte chooses the dialect, the second the prompt and the length of the pieces.
    let [dialect, options, reply @ ..] = input else { return };
    let dialect = &dialects[usize::from(*dialect) % dialects.len()];
    let prompt = PROMPTS[usize::from(options >> 6)];
    let n = usize::from(options & 0x3f).max(1);
    let ids = dialect.tokenizer.encode(&String::from_utf8_lossy(reply), Special::Parse);
    let reply = TokenizedReply { dialect, prompt, ids };
    let tools = json!([{"type": "function", "function": {"name": "look", "parameters": {"type": "object",
        "properties": {"at": {"type": "string"}, "n": {"type": "integer"}}}}}]);
    for end in [ReplyEnd::Whole, ReplyEnd::Cut] {
        for tools in [&tools, &Value::Null] {
            let whole = reply.split(tools, end, usize::MAX);
            let cut = reply.split(tools, end, n);
            assert_eq!(whole, cut, "in pieces of {n}");
        }
    }
}

impl TokenizedReply<'_> {
    /// Splits the reply, whose text comes in pieces of at least `n` bytes.
    fn split(&self, tools: &Value, end: ReplyEnd, n: usize) -> ReplyParts {
        let ReplyDialect { format, tokenizer } = self.dialect;
        let mut parts = ReplyParts::default();
        let mut show = |shown: ReplyPiece<'_>| match shown {
            ReplyPiece::Text(text) => parts.text.push_str(text),
            ReplyPiece::Reasoning(text) => parts.reasoning.push_str(text),
            ReplyPiece::Call(call) => parts.calls.push(call),
            ReplyPiece::CutCall | ReplyPiece::Malformed(_) => parts.n_notices += 1,
        };
        let mut splitter = ReplySplitter::new(format, self.prompt, tools);
        let (mut stream, mut text) = (tokenizer.stream(), String::new());
        for id in self.ids.iter().copied() {
            let is_control = tokenizer.is_control(id);
            if is_control || format.markup_tokens().contains(&id) {
                splitter.text(&std::mem::take(&mut text), &mut show);
                splitter.markup(tokenizer.token_text(id).unwrap_or_default(), is_control, &mut show);
                continue;
            }
            text.push_str(stream.push(id));
            if text.len() >= n {
                splitter.text(&std::mem::take(&mut text), &mut show);
            }
        }
        splitter.text(&text, &mut show);
        splitter.finish(end, &mut show);
        parts
    }
}

/// Every byte, and each markup of the template as a control token.
fn dialect(template: &str) -> ReplyDialect {
    const NORMAL: i32 = 1;
    const CONTROL: i32 = 3;
    let is_printable = |byte: u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let others = (0..=255u8).filter(|byte| !is_printable(*byte)).enumerate();
    let others = others.filter_map(|(n, _)| char::from_u32(0x100 + n as u32));
    let printable = (0..=255u8).filter(|byte| is_printable(*byte)).map(char::from);
    let mut tokens: Vec<String> = printable.chain(others).map(String::from).collect();
    let n_bytes = tokens.len();
    tokens.extend(markup_of(template));
    let kinds = (0..tokens.len()).map(|at| if at < n_bytes { NORMAL } else { CONTROL }).collect();
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", OwnedValue::Str("llama".into()));
    writer.set("tokenizer.ggml.model", OwnedValue::Str("gpt2".into()));
    writer.set("tokenizer.ggml.pre", OwnedValue::Str("gpt-2".into()));
    writer.set("tokenizer.ggml.tokens", OwnedValue::Strs(tokens));
    writer.set("tokenizer.ggml.token_type", OwnedValue::I32s(kinds));
    let file = WeightFile::from_bytes("made", SharedBytes::from_vec(writer.to_bytes()));
    let tokenizer = Tokenizer::from_weights(&file.expect("a sound file")).expect("a tokenizer");
    ReplyDialect { format: ReplyFormat::of(template, &tokenizer), tokenizer }
}

/// What stands in pointed or square brackets, where it looks like a token.
fn markup_of(template: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (open, close) in [('<', '>'), ('[', ']')] {
        for part in template.split(open).skip(1) {
            let Some((name, _)) = part.split_once(close) else { continue };
            if name.contains(['|', '｜']) || open == '[' {
                found.push(format!("{open}{name}{close}"));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}
