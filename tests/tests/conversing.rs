//! `nook run` with whole conversations: tools, templates named by a flag or a setting, broken ones, bounds on thinking.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use inglenook_tests::reference_dir;
use serde_json::{Value, json};

use crate::cli::Home;
use test_support::{Missing, skip};

/// ChatML that lets the model think first.
const THINKS: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
                      <|im_start|>assistant\n<think>\n";

fn write(home: &Home, name: &str, text: &str) -> String {
    let path = home.0.join(name);
    std::fs::write(&path, text).expect("the folder is there");
    path.to_str().expect("a Unicode path").to_owned()
}

/// The small model as safetensors, with a template beside it; None where the reference does not hold it.
fn with_template(home: &Home, template: Option<&str>) -> Option<PathBuf> {
    let from = reference_dir().join("logits/llama");
    if !from.join("model.safetensors").is_file() {
        return None;
    }
    let folder = home.0.join("model");
    std::fs::create_dir_all(&folder).expect("the folder is there");
    for name in ["model.safetensors", "config.json", "tokenizer.json"] {
        std::fs::copy(from.join(name), folder.join(name)).expect("the folder can be written");
    }
    if let Some(template) = template {
        std::fs::write(folder.join("chat_template.jinja"), template).expect("the folder can be written");
    }
    Some(folder)
}

fn said(home: &Home, model: &Path, flags: &[&str]) -> Value {
    let model = model.to_str().expect("a Unicode path");
    let args = [
        "run",
        "--model",
        model,
        "--prompt",
        "Hi",
        "--max-tokens",
        "4",
        "--ignore-eos",
        "--temperature",
        "0",
    ];
    home.json(&[&args[..], flags].concat())
}

#[test]
fn conversations_come_with_tools() {
    let home = Home::new();
    let call = json!({"id": "call12345", "type": "function", "function": {"name": "look", "arguments": "{\"at\": \"map\"}"}});
    let file = json!({
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Where is it?"},
            {"role": "assistant", "content": null, "reasoning_content": "I look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call12345", "name": "look", "content": "Here."},
        ],
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}],
        "kwargs": {"enable_thinking": false},
    });
    let path = write(&home, "m.json", &file.to_string());
    let args = ["run", "--model", "starter", "--messages", &path, "--temperature", "0", "--max-tokens", "8"];
    let answer = home.json(&args);
    assert!(
        answer["text"].is_string() && answer["reasoning"].is_string() && answer["tool_calls"].is_array(),
        "{answer}"
    );
    for wrong in [
        json!({"messages": [{"role": "user", "content": "Hi"}], "tools": [{}]}),
        json!({"messages": [{"role": "tool"}]}),
        json!({"messages": [{"role": "user", "content": "Hi"}], "kwargs": 3}),
    ] {
        let path = write(&home, "wrong.json", &wrong.to_string());
        let (code, error) = home.error(&["run", "--model", "starter", "--messages", &path]);
        assert_eq!((code, &error["code"]), (3, &json!("input.messages")), "{wrong}");
    }
}

#[test]
fn thinking_has_its_bounds() {
    let home = Home::new();
    let template = write(&home, "thinks.jinja", THINKS);
    let args = [
        "run",
        "--model",
        "starter",
        "--prompt",
        "How do I add a model?",
        "--temperature",
        "0",
        "--max-tokens",
        "48",
        "--ignore-eos",
        "--chat-template",
        &template,
    ];
    let free = home.json(&args);
    assert!(free["text"] == "" && free["reasoning"] != "", "nothing ends it: {free}");
    for budget in ["0", "5"] {
        let bound = home.json(&[&args[..], &["--reasoning-budget", budget]].concat());
        assert!(bound["text"].as_str().is_some_and(|text| !text.is_empty()), "{bound}");
        let (thought, unbound) =
            (bound["reasoning"].as_str().expect("text"), free["reasoning"].as_str().expect("text"));
        assert!(thought.len() < unbound.len() && unbound.starts_with(thought), "{thought:?} of {unbound:?}");
        assert_eq!(thought.is_empty(), budget == "0", "{bound}");
    }
}

#[test]
fn a_prompt_needs_no_option() {
    let home = Home::new();
    let file = write(&home, "prompt.txt", "Hi");
    let ids = |prompt: &[&str]| {
        let rest = ["--max-tokens", "4", "--temperature", "0"];
        home.json(&[&["run"], prompt, &rest].concat())["ids"].clone()
    };
    // The default model is the starter.
    let expected = ids(&["--model", "starter", "--prompt", "Hi"]);
    for prompt in [&["Hi"][..], &["--model", "starter", "Hi"], &["--prompt-file", &file]] {
        assert_eq!(ids(prompt), expected, "{prompt:?}");
    }
    let mut command =
        home.command(&["run", "--json", "--prompt-file", "-", "--max-tokens", "4", "--temperature", "0"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("nook starts");
    child.stdin.take().expect("piped").write_all(b"Hi").expect("nook reads");
    let output = child.wait_with_output().expect("nook ends");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["ids"], expected);
    for wrong in [
        &["run"][..],
        &["run", "Hi", "--prompt", "Hi"],
        &["run", "Hi", "--prompt-file", &file],
        &["run", "a", "b"],
    ] {
        assert_eq!(home.error(wrong).0, 2, "{wrong:?}");
    }
}

#[test]
fn f07_a_broken_template_has_a_way_out() {
    let home = Home::new();
    let Some(model) = with_template(&home, Some("{% if %}")) else {
        skip!(Missing::Reference, "no safetensors model");
    };
    let name = model.to_str().expect("a Unicode path");
    let (code, error) = home.error(&["run", "--model", name, "--prompt", "Hi"]);
    assert_eq!((code, &error["code"]), (3, &json!("template.syntax")), "{error}");
    assert!(error["remedy"].as_str().is_some_and(|it| it.contains("--template-fallback")), "{error}");
    let mended = said(&home, &model, &["--template-fallback"]);
    // Its vocabulary is one for ChatML, which is what a file without a template gets.
    std::fs::remove_file(model.join("chat_template.jinja")).expect("it was there");
    assert_eq!(said(&home, &model, &[])["ids"], mended["ids"]);
    let line =
        json!({"messages": [{"role": "user", "content": "Hi"}], "kwargs": {"add_generation_prompt": true}});
    let lines = write(&home, "lines.jsonl", &line.to_string());
    let rendered = home.lines(&["render", "--model", name, "--jsonl", &lines]);
    assert_eq!(rendered, [json!({"text": "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"})]);
    std::fs::write(model.join("chat_template.jinja"), "{{ messages[0].nothing.more }}").expect("written");
    let (_, error) = home.error(&["run", "--model", name, "--prompt", "Hi"]);
    assert_eq!(error["code"], "template.failed");
    assert_eq!(said(&home, &model, &["--template-fallback"])["ids"], mended["ids"]);
    // Another file instead: by a flag, or by a setting for this model.
    let other = write(&home, "other.jinja", "{{ messages[0].content * 3 }}");
    let by_flag = said(&home, &model, &["--chat-template", &other]);
    assert_ne!(by_flag["usage"]["prompt_tokens"], mended["usage"]["prompt_tokens"]);
    home.json(&["settings", "set", "chat_templates", &format!("{name}={other}")]);
    assert_eq!(said(&home, &model, &[])["ids"], by_flag["ids"]);
    let broken = write(&home, "broken.jinja", "{{");
    for args in [
        ["run", "--model", name, "--prompt", "Hi", "--chat-template", &broken].as_slice(),
        &["run", "--model", name, "--prompt", "Hi", "--chat-template", "/nowhere"],
        &["settings", "set", "chat_templates", &format!("{name}={broken}")],
        &["settings", "set", "chat_templates", "nonsense"],
    ] {
        assert_eq!(home.error(args).0, 3, "{args:?}");
    }
}
