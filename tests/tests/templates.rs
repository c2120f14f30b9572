//! Chat templates against what Jinja in Python makes of them: the same text, or an error of the same kind.

use engine::Result;
use engine::capabilities::{ModelCapabilities, Thinking};
use engine::template::{ChatTemplate, RenderInput, RenderedPrompt};
use inglenook_tests::reference_dir;
use serde_json::{Map, Value};

fn render(template: &ChatTemplate, case: &Value) -> Result<RenderedPrompt> {
    let none = Map::new();
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    template.render(&RenderInput {
        messages: case["messages"].as_array().expect("messages"),
        tools: &case["tools"],
        kwargs: case["kwargs"].as_object().unwrap_or(&none),
        bos_token: text("bos_token"),
        eos_token: text("eos_token"),
        now: Some("2026-01-15T12:00:00"),
    })
}

/// What is wrong, if anything.
fn check(case: &Value, template: Result<ChatTemplate>) -> Option<String> {
    let rendered = template.and_then(|template| render(&template, case));
    match (rendered, case["expected"].as_str()) {
        (Ok(rendered), Some(expected)) => {
            (rendered.text != expected).then(|| format!("{:?}\nfor {expected:?}", rendered.text))
        }
        (Err(error), Some(_)) => Some(format!("failed: {error}")),
        (Ok(_), None) => Some(format!("did not fail: {}", case["error"])),
        (Err(error), None) if case["raised_by_template"] == true => {
            let raised = case["error"].as_str().expect("an error").trim_start_matches("TemplateError: ");
            let is_same = error.code() == "template.raised" && error.to_string() == raised;
            (!is_same).then(|| format!("{}: {error}\nfor {raised}", error.code()))
        }
        (Err(error), None) => (error.code() != "template.failed").then(|| error.to_string()),
    }
}

#[test]
fn every_case_renders_as_in_python() {
    let folder = reference_dir().join("templates");
    let cases = std::fs::read_to_string(folder.join("cases.jsonl")).expect("templates/cases.jsonl");
    let (mut n, mut wrong) = (0, Vec::new());
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).expect("a case");
        let name = case["template"].as_str().expect("a template");
        let source = std::fs::read_to_string(folder.join("jinja").join(name)).expect(name);
        n += 1;
        let what = check(&case, ChatTemplate::from_source(&source));
        wrong.extend(what.map(|what| format!("{name}, {}: {what}", case["case"])));
    }
    println!("templates: {} of {n} cases", n - wrong.len());
    assert!(wrong.is_empty(), "{} of {n}:\n{}", wrong.len(), wrong.join("\n"));
}

/// What published templates tell of their models.
#[test]
fn templates_tell_what_their_models_can_do() {
    use Thinking::{Always, Graded, Never, Switched};
    let cases = [
        ("ByteDance-Seed-OSS", true, Always),
        // a shortened one: it writes tools into no prompt
        ("HuggingFaceTB-SmolLM3-3B", false, Switched),
        ("Kimi-K2-Thinking", true, Always),
        ("Qwen-Qwen2.5-7B-Instruct", true, Never),
        ("Qwen-Qwen3-0.6B", true, Switched),
        ("Qwen3-Coder", true, Never),
        ("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", false, Always),
        ("google-gemma-2-2b-it", false, Never),
        ("ibm-granite-granite-4.0", true, Never),
        ("meta-llama-Llama-3.2-3B-Instruct", true, Never),
        ("microsoft-Phi-3.5-mini-instruct", false, Never),
        ("mistralai-Ministral-3-14B-Reasoning-2512", true, Always),
        ("openai-gpt-oss-120b", true, Graded),
    ];
    for (name, tools, thinking) in cases {
        let path = reference_dir().join("templates/jinja").join(format!("{name}.jinja"));
        let source = std::fs::read_to_string(&path).expect(name);
        let told = ModelCapabilities::from_template(&ChatTemplate::from_source(&source).expect(name));
        assert_eq!(told, ModelCapabilities { tools, thinking }, "{name}");
    }
}

/// The words of every message are known in (nearly) every rendering, so that nothing typed there is markup.
#[test]
fn spans_cover_what_people_wrote() {
    let folder = reference_dir().join("templates");
    let cases = std::fs::read_to_string(folder.join("cases.jsonl")).expect("templates/cases.jsonl");
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).expect("a case");
        let name = case["template"].as_str().expect("a template");
        let source = std::fs::read_to_string(folder.join("jinja").join(name)).expect(name);
        let Ok(rendered) = ChatTemplate::from_source(&source).and_then(|t| render(&t, &case)) else {
            continue;
        };
        let mut end = 0;
        for span in &rendered.content_spans {
            assert!(span.range.start >= end && span.range.end <= rendered.text.len(), "{name}: {span:?}");
            end = span.range.end;
        }
        for (at, message) in case["messages"].as_array().expect("messages").iter().enumerate() {
            let Some(content) = message["content"].as_str().map(str::trim).filter(|text| !text.is_empty())
            else {
                continue;
            };
            if message["role"] != "user" || !rendered.text.contains(content) {
                continue;
            }
            let covers = |range: &std::ops::Range<usize>| rendered.text[range.clone()].contains(content);
            let spans = rendered.content_spans.iter().filter(|span| span.message == Some(at));
            assert!(spans.map(|span| &span.range).any(covers), "{name}, {}: message {at}", case["case"]);
        }
    }
}

#[test]
fn hostile_templates_end_with_an_error() {
    let case =
        serde_json::json!({"messages": [{"role": "user", "content": "hi"}], "tools": null, "kwargs": {}});
    let sources = [
        "{% for a in range(1000000) %}{% for b in range(1000000) %}{% endfor %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ 'x' * 1000000000000 }}",
        "{% for a in range(100000) %}{{ 'xxxxxxxxxx' * 1000 }}{% endfor %}",
        "{{ messages[0].nothing.more }}",
        "{{ raise_exception('no') }}",
        "{{ unknown_function() }}",
        "{% if %}",
        "{{",
        "{% include 'other' %}",
        "{% set x = namespace(a=[]) %}{% for i in range(100000) %}{% set x.a = x.a + [i] %}{% endfor %}",
        "{% set x = namespace(a='x') %}{% for i in range(99) %}{% set x.a = x.a ~ x.a %}{% endfor %}",
        "{% set x = namespace(a='x') %}{% for i in range(99) %}{% set x.a = (x.a * 2)|upper %}{% endfor %}",
        "{% set x = namespace(a=[1]) %}{% for i in range(99) %}{% set x.a = (x.a + x.a)|sort %}{% endfor %}",
        "{% set x = namespace(a='x') %}{% for i in range(99) %}{% set x.a = [x.a, x.a]|tojson %}{% endfor %}",
        "{% set x = namespace(a='x') %}{% for i in range(99) %}{% set x.a = x.a|replace('x', 'xx') %}{% endfor %}",
    ];
    let minus = format!("{{{{ {}1 }}}}", "-".repeat(20_000));
    let sources: Vec<&str> = sources.into_iter().chain([minus.as_str()]).collect();
    for source in sources {
        let rendered = ChatTemplate::from_source(source).and_then(|template| render(&template, &case));
        let error = rendered.expect_err(source);
        assert!(error.code().starts_with("template."), "{source}: {}", error.code());
        assert!(!error.to_string().is_empty() && !error.remedy().is_empty(), "{source}");
    }
}
