//! Tags inside arguments, calls inside reasoning, and words around both.

use serde_json::Value;

use super::{F, PLAIN, TestModel};

#[test]
fn end_tags_inside_arguments_end_nothing() {
    let tools = |template| TestModel { template, has_tools: true, ..PLAIN };
    let hermes = tools("<tool_call></tool_call>");
    let json = |text: &str| format!("{{\"name\": \"f\", \"arguments\": {{\"x\": {}}}}}", Value::from(text));
    let call = |text: &str| format!("f({{\"x\":{}}})", Value::from(text));
    for text in [
        "a </tool_call> b",
        "</tool_call>",
        "<tool_call>{\"name\": \"g\"}</tool_call>",
        "it's \"</tool_call>\"",
    ] {
        let written = format!("<tool_call>\n{}\n</tool_call>", json(text));
        hermes.check(&written, "", "", &[&call(text)]);
        hermes.check(
            &format!("Now.\n{written}\n{written} Done."),
            "Now.\nDone.",
            "",
            &[&call(text), &call(text)],
        );
        let parameter = format!(
            "<tool_call>\n<function=f>\n<parameter=x>\n{text}\n</parameter>\n</function>\n</tool_call>"
        );
        hermes.check(&parameter, "", "", &[&call(text)]);
        hermes.check(
            &format!("<tool_call>f\n<arg_key>x</arg_key>\n<arg_value>{text}</arg_value>\n</tool_call>"),
            "",
            "",
            &[&call(text)],
        );
        // The end of the reply ends the call too.
        hermes.check(&format!("<tool_call>{}", json(text)), "", "", &[&call(text)]);
    }
    let own_tokens = TestModel { user: &["<tool_call>", "</tool_call>"], ..PLAIN };
    own_tokens.check(
        &format!("<tool_call>{}</tool_call>", json("</tool_call>")),
        "",
        "",
        &[&call("</tool_call>")],
    );
    let functions = tools("<function=");
    functions.check(
        "<function=f>\n<parameter=x>\na </function> b\n</parameter>\n</function>!",
        "!",
        "",
        &[&call("a </function> b")],
    );
    functions.check("<function=f>{\"x\": \"</function>\"}</function>", "", "", &[&call("</function>")]);
    tools("<code></code>").check("<code>f(x=\"</code>\")</code>", "", "", &[&call("</code>")]);
    tools("<start_of_turn>").check("```tool_code\nf(x=\"```\")\n```", "", "", &[&call("```")]);
    tools("[TOOL_CALLS]").check(
        "[TOOL_CALLS]f[ARGS]{\"x\": \"[TOOL_CALLS]\"}",
        "",
        "",
        &[&call("[TOOL_CALLS]")],
    );
    tools("<｜DSML｜function_calls>").check(
        "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"x\" string=\"true\">\
         </｜DSML｜function_calls></｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        "",
        "",
        &[&call("</｜DSML｜function_calls>")],
    );
}

#[test]
fn an_argument_that_never_ends_spoils_its_own_call_only() {
    let hermes = TestModel { template: "<tool_call></tool_call>", has_tools: true, ..PLAIN };
    let json = |text: &str| format!("{{\"name\": \"f\", \"arguments\": {{\"x\": {}}}}}", Value::from(text));
    let call = |text: &str| format!("f({{\"x\":{}}})", Value::from(text));
    hermes.check_all(
        &format!("<tool_call>{{\"name\": \"f</tool_call> and <tool_call>{}</tool_call>", json("a")),
        "<tool_call>{\"name\": \"f</tool_call> and",
        "",
        &[&call("a")],
        1,
    );
    hermes.check(
        "<tool_call><function=f><parameter=x>a</function></tool_call><tool_call><function=f><parameter=x>b</parameter></function></tool_call>",
        "",
        "",
        &[&call("a"), &call("b")],
    );
}

#[test]
fn words_around_tags_keep_their_space() {
    let qwen = TestModel { user: &["<think>", "</think>", "<tool_call>", "</tool_call>"], ..PLAIN };
    let call = "<tool_call>{\"name\": \"f\"}</tool_call>";
    qwen.check("Hello <think>hm</think> world", "Hello world", "hm", &[]);
    qwen.check("Hello <think>hm</think>world", "Hello world", "hm", &[]);
    qwen.check("Hello<think>hm</think> world", "Hello world", "hm", &[]);
    qwen.check("One.\n\n<think>\nhm\n</think>\n\nTwo.", "One.\n\nTwo.", "hm", &[]);
    qwen.check("One. <think>hm</think>\n", "One.", "hm", &[]);
    qwen.check("One <think>a</think> two <think>b</think> three", "One two three", "a\n\nb", &[]);
    qwen.check(&format!("One.\n{call}\n\n{call}\nTwo."), "One.\n\nTwo.", "", &["f({})", "f({})"]);
    qwen.check(&format!("{call}\n</think>\n\nTwo."), "Two.", "", &["f({})"]);
    qwen.check("One two  ", "One two  ", "", &[]);
}

#[test]
fn calls_inside_reasoning_are_calls() {
    let json = "{\"name\": \"f\", \"arguments\": {\"x\": \"a\"}}";
    let template = "<tool_call></tool_call>";
    for (user, has_tools) in
        [(&["<think>", "</think>", "<tool_call>", "</tool_call>"][..], false), (&[], true)]
    {
        let model = TestModel { template, prompt: "<think>\n", user, has_tools, ..PLAIN };
        let call = format!("<tool_call>\n{json}\n</tool_call>");
        model.check(&format!("I look.\n{call}"), "", "I look.", &F);
        model.check(&format!("I look.\n{call}\n</think>\n\nDone."), "Done.", "I look.", &F);
        model.check(
            &format!("I look.\n{call}\nThen more.\n</think>\n\nDone."),
            "Done.",
            "I look.\n\nThen more.",
            &F,
        );
        model.check(&format!("{call}{call}"), "", "", &[F[0], F[0]]);
        model.check(&format!("I look.\n<tool_call>{json}"), "", "I look.", &F);
        model.check(&format!("I look.\n<tool_call>{json}\n</think>\n\nDone."), "Done.", "I look.", &F);
        let inner = "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": \"</think>\"}}</tool_call>";
        model.check(inner, "", "", &["f({\"x\":\"</think>\"})"]);
        let unclosed =
            "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": \"</think>\"}}\n</think>\n\nDone.";
        model.check(unclosed, "Done.", "", &["f({\"x\":\"</think>\"})"]);
        // Words about calls are none.
        for thought in [
            "I write <tool_call> tags.",
            "Like <tool_call>{\"name\": </tool_call>.",
            "So <tool_call>f is it",
            "With <tool_call>{\"a\": 1}</tool_call> no.",
            "Or <tool_call>",
        ] {
            model.check(&format!("{thought}\n</think>\n\nDone."), "Done.", thought, &[]);
        }
    }
    let other = "<tool_call>{\"name\": \"unknown\", \"arguments\": {}}</tool_call>";
    let hermes = TestModel { template, prompt: "<think>\n", has_tools: true, ..PLAIN };
    hermes.check(&format!("For example {other}.</think>Yes."), "Yes.", &format!("For example {other}."), &[]);
    let gemma = TestModel {
        template: "<|channel>thought",
        control: &["<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|\"|>"],
        ..PLAIN
    };
    gemma.check("<|channel>thought\nHm.\n<|tool_call>call:f{x:<|\"|>a<|\"|>}<tool_call|>", "", "Hm.", &F);
    let mistral = TestModel { control: &["[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]"], ..PLAIN };
    mistral.check("[THINK]Hm.[TOOL_CALLS]f[ARGS]{\"x\": \"a\"}", "", "Hm.", &F);
    let deepseek = TestModel {
        control: &[
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁call▁end｜>",
            "<｜tool▁sep｜>",
        ],
        prompt: "<think>\n",
        ..PLAIN
    };
    deepseek.check("Hm.\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"x\": \"a\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "", "Hm.", &F);
}

#[test]
fn endless_tags_inside_reasoning_are_words() {
    let model =
        TestModel { prompt: "<think>\n", template: "<tool_call></tool_call>", has_tools: true, ..PLAIN };
    let begun = "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": \"";
    // More end tags of the reasoning than an argument may have: the call has not come.
    let ends = "</think>".repeat(100);
    let (text, reasoning, calls, _) = model.split(&format!("{begun}{ends}"), usize::MAX);
    assert_eq!((text.as_str(), reasoning.as_str(), calls.len()), ("", begun, 0));
    let thought = format!("{begun}{}", "<tool_call>".repeat(2000));
    model.check(&thought, "", &thought, &[]);
}
