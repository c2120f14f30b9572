//! Replies as the templates of the reference write them: splitting one gives its reasoning and tool calls again.
//!
//! A template shows what its model was trained to write.

use contract::protocol::PromptMessage;
use engine::reply::{ReplyEnd, ReplyFormat, ReplyPiece, ReplySplitter, ToolCall};
use engine::template::{ChatTemplate, RenderInput};
use engine::tokenizer::{Special, Tokenizer};
use inglenook_tests::{reference_dir, reference_is_small};
use prompt::chat_template_input;
use prompt::image_runs::ImageForm;
use serde_json::{Map, Value, json};

use crate::typed::{markup_of, vocabulary};
use test_support::{Missing, skip_part};

#[derive(Debug, Default, PartialEq)]
struct Parts {
    text: String,
    reasoning: String,
    calls: Vec<ToolCall>,
    n_notices: usize,
}

/// A reply token by token; `at_once`: as few pieces as there can be.
fn split(
    format: &ReplyFormat,
    tokenizer: &Tokenizer,
    prompt: &str,
    tools: &Value,
    reply: &str,
    at_once: bool,
) -> Parts {
    let mut parts = Parts::default();
    let mut show = |shown: ReplyPiece<'_>| match shown {
        ReplyPiece::Text(text) => parts.text.push_str(text),
        ReplyPiece::Reasoning(text) => parts.reasoning.push_str(text),
        ReplyPiece::Call(call) => parts.calls.push(call),
        ReplyPiece::CutCall | ReplyPiece::Malformed(_) => parts.n_notices += 1,
    };
    let mut splitter = ReplySplitter::new(format, prompt, tools);
    let (mut stream, mut text) = (tokenizer.stream(), String::new());
    for id in tokenizer.encode(reply, Special::Parse) {
        let is_control = tokenizer.is_control(id);
        if is_control || format.markup_tokens().contains(&id) {
            splitter.text(&std::mem::take(&mut text), &mut show);
            splitter.markup(tokenizer.token_text(id).expect("UTF-8"), is_control, &mut show);
            continue;
        }
        text.push_str(stream.push(id));
        if !at_once {
            splitter.text(&std::mem::take(&mut text), &mut show);
        }
    }
    splitter.text(&text, &mut show);
    splitter.finish(ReplyEnd::Whole, &mut show);
    parts
}

fn render(template: &ChatTemplate, messages: &[Value], tools: &Value, prompts: bool) -> Option<String> {
    let kwargs = Map::from_iter([("add_generation_prompt".to_string(), json!(prompts))]);
    let input = RenderInput {
        messages,
        tools,
        kwargs: &kwargs,
        bos_token: "<s>",
        eos_token: "</s>",
        now: Some("2026-01-15T12:00:00"),
    };
    Some(template.render(&input).ok()?.text)
}

/// What the template writes for an answer: everything after the prompt for it.
fn reply(
    template: &ChatTemplate,
    question: &Value,
    answer: &Value,
    tools: &Value,
) -> Option<(String, String)> {
    let prompt = render(template, std::slice::from_ref(question), tools, true)?;
    let whole = render(template, &[question.clone(), answer.clone()], tools, false)?;
    let n = prompt.bytes().zip(whole.bytes()).take_while(|(a, b)| a == b).count();
    let n = prompt.floor_char_boundary(n);
    // Not in the middle of a tag; and up to the turn's opening at least, beside what only a prompt may hold.
    let open = prompt[..n].rfind(['<', '[']).filter(|open| !prompt[*open..n].contains(['>', ']']));
    let n = open.unwrap_or(n);
    (n + MAX_PROMPT_ONLY > prompt.len()).then(|| (prompt[..n].to_string(), whole[n..].to_string()))
}

/// Bytes that a template may put into a prompt and not into a conversation, such as an empty block of thinking.
const MAX_PROMPT_ONLY: usize = 64;

#[test]
fn calls_come_back_as_templates_write_them() {
    let folder = reference_dir().join("templates/jinja");
    let mut names: Vec<_> =
        std::fs::read_dir(&folder).expect("templates").map(|entry| entry.expect("an entry").path()).collect();
    names.sort();
    let question = json!({"role": "user", "content": "Where?"});
    let tools = json!([{"type": "function", "function": {"name": "look_up", "description": "Looks.", "parameters":
        {"type": "object", "properties": {"place": {"type": "string"}, "n": {"type": "integer"}}, "required": ["place"]}}}]);
    let arguments = json!({"n": 3, "place": "a \"b\" <c>"});
    let (mut n, mut wrong) = (0, Vec::new());
    for path in names {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let source = std::fs::read_to_string(&path).expect("a template");
        let Ok(template) = ChatTemplate::from_source(&source) else { continue };
        // As its vocabulary may be: with tokens for the tags, or with none.
        let has_bars = |text: &String| text.contains(['|', '｜', '[']);
        let tokens: Vec<String> = markup_of(&source).into_iter().filter(has_bars).collect();
        let others = ["<think>", "</think>", "<tool_call>", "</tool_call>"].map(String::from);
        let tokens = [tokens, ["<s>", "</s>"].map(String::from).to_vec()].concat();
        let vocabularies = [[tokens.clone(), others.to_vec()].concat(), tokens].map(|it| vocabulary(&it).0);
        let way = |arguments: Value, content: Value| {
            json!({"role": "assistant", "content": content, "tool_calls": [{"id": "call12345", "type": "function",
                "function": {"name": "look_up", "arguments": arguments}}]})
        };
        let ways = [
            way(arguments.clone(), json!("")),
            way(arguments.clone(), Value::Null),
            way(json!(arguments.to_string()), json!("")),
            way(json!(arguments.to_string()), Value::Null),
        ];
        let written: Vec<(String, String)> = ways
            .iter()
            .filter_map(|answer| reply(&template, &question, answer, &tools))
            .filter(|(_, it)| it.contains("look_up"))
            .collect();
        let Some((prompt, text)) = written.first() else { continue };
        n += 1;
        let is_right = |parts: &Parts| {
            parts.calls.len() == 1
                && parts.calls[0].name == "look_up"
                && serde_json::from_str::<Value>(&parts.calls[0].arguments).expect("JSON") == arguments
        };
        for tokenizer in &vocabularies {
            let format = ReplyFormat::of(&source, tokenizer);
            let tries: Vec<Parts> = written
                .iter()
                .map(|(prompt, text)| {
                    let parts = split(&format, tokenizer, prompt, &tools, text, false);
                    let whole = split(&format, tokenizer, prompt, &tools, text, true);
                    assert_eq!(parts, whole, "{name}: {text:?}");
                    parts
                })
                .collect();
            if !tries.iter().any(is_right) {
                let end = prompt.char_indices().rev().nth(40).map_or(0, |(at, _)| at);
                wrong.push(format!("{name}: after {:?}: {text:?}\n   is {:?}", &prompt[end..], tries[0]));
            }
        }
    }
    println!("calls: {n} templates write them, and all are read");
    let is_enough = n > 0 || reference_is_small();
    if n == 0 {
        skip_part!(Missing::Reference, "no template of the small set writes calls");
    }
    assert!(is_enough && wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Templates of the four families, and what ends their prompts for an answer.
const ROUNDS: &[(&str, &str)] = &[
    ("openai-gpt-oss-120b.jinja", "<|start|>assistant"),
    ("HuggingFaceTB-SmolLM3-3B.jinja", "<|im_start|>assistant\n"),
    ("Qwen-Qwen3-0.6B.jinja", "<|im_start|>assistant\n"),
    ("meta-llama-Llama-3.2-3B-Instruct.jinja", "<|start_header_id|>assistant<|end_header_id|>\n\n"),
];

/// A tool round as the application makes it: the model's call is parsed. The next prompt shows the call and the tool's
/// result, word for word, before the answer's place.
#[test]
fn what_tools_bring_follows_the_call_in_every_familys_way() {
    let question = json!({"role": "user", "content": "Where?"});
    let tools = json!([{"type": "function", "function": {"name": "look_up", "description": "Looks.", "parameters":
        {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}}]);
    let arguments = json!({"place": "a \"b\" <c>"});
    let result = "7 degrees & \"rain\"\n[cut here]";
    for (name, end) in ROUNDS {
        let path = reference_dir().join("templates/jinja").join(name);
        let Ok(source) = std::fs::read_to_string(&path) else {
            assert!(reference_is_small(), "{} is not there", path.display());
            skip_part!(Missing::Reference, "no {name}");
            continue;
        };
        let template = ChatTemplate::from_source(&source).expect("a template");
        let tokens: Vec<String> = markup_of(&source);
        let others = ["<s>", "</s>", "<tool_call>", "</tool_call>"].map(String::from).to_vec();
        let tokenizer = vocabulary(&[tokens, others].concat()).0;
        let format = ReplyFormat::of(&source, &tokenizer);
        let answer = json!({"role": "assistant", "content": "", "tool_calls": [{"id": "call12345", "type": "function",
            "function": {"name": "look_up", "arguments": arguments}}]});
        let written =
            reply(&template, &question, &answer, &tools).filter(|(_, text)| text.contains("look_up"));
        // Where the template doesn't say it, as the model was taught.
        let taught = || {
            let call = json!({"name": "look_up", "arguments": arguments});
            (String::new(), format!("<tool_call>\n{call}\n</tool_call>"))
        };
        let (prompt, text) = written.unwrap_or_else(taught);
        let parts = split(&format, &tokenizer, &prompt, &tools, &text, false);
        assert_eq!(parts.calls.len(), 1, "{name}: {text:?} is {parts:?}");
        let call = &parts.calls[0];
        assert_eq!(serde_json::from_str::<Value>(&call.arguments).expect("JSON"), arguments, "{name}");

        let function = json!({"name": call.name, "arguments": call.arguments});
        let called = json!({"id": "call12345", "type": "function", "function": function});
        let user = PromptMessage { role: "user".into(), content: "Where?".into(), ..Default::default() };
        let calling =
            PromptMessage { role: "assistant".into(), tool_calls: vec![called], ..Default::default() };
        let brought = PromptMessage {
            role: "tool".into(),
            content: result.into(),
            tool_call_id: Some("call12345".into()),
            name: Some("look_up".into()),
            ..Default::default()
        };
        let mut kwargs = Map::from_iter([("add_generation_prompt".to_string(), json!(true))]);
        if source.contains("xml_tools") {
            kwargs.insert("xml_tools".into(), tools.clone());
        }
        let now = Some("2026-01-15T12:00:00");
        let (tools, kwargs, bos_token, eos_token) = (&tools, &kwargs, "<s>", "</s>");
        let by = |messages: &[Value]| {
            template.render(&RenderInput { messages, tools, kwargs, bos_token, eos_token, now })
        };
        let messages = [user, calling, brought];
        let next =
            chat_template_input::render(&messages, &source, ImageForm::Parts, &by).expect("it renders").text;
        let at_call = next.rfind("look_up").unwrap_or_else(|| panic!("{name}: no call in {next}"));
        // A template may write what a tool brings as JSON.
        let quoted = serde_json::to_string(result).expect("JSON");
        let shown = next.find(result).or_else(|| next.find(&quoted));
        let at_result = shown.unwrap_or_else(|| panic!("{name}: no result in {next}"));
        let ends = next.trim_end().ends_with(end.trim_end()) || next.contains(&format!("{end}<think>"));
        assert!(at_result > next.find("look_up").unwrap_or(at_call) && ends, "{name}: {next}");
    }
}
