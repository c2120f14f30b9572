//! Replies in every style, whole and piece by piece.

use serde_json::{Value, json};
use weights::write::{GgufWriter, OwnedValue};
use weights::{SharedBytes, WeightFile};

use super::*;
use crate::tokenizer::{Special, Tokenizer};

mod cut;
mod embedded;
mod endless;

/// Text, reasoning, calls as `name(arguments)`, number of notices.
type ReplyParts = (String, String, Vec<String>, usize);

fn tokenizer(control: &[&str], user: &[&str]) -> Tokenizer {
    const NORMAL: i32 = 1;
    const CONTROL: i32 = 3;
    const USER: i32 = 4;
    let alphabet = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
    let mut tokens: Vec<(String, i32)> = alphabet.into_iter().map(|c| (c.to_string(), NORMAL)).collect();
    tokens.sort();
    tokens.extend(control.iter().map(|text| (text.to_string(), CONTROL)));
    tokens.extend(user.iter().map(|text| (text.to_string(), USER)));
    let mut writer = GgufWriter::new();
    let mut set = |key: &str, value| {
        writer.set(&format!("tokenizer.ggml.{key}"), value);
    };
    set("model", OwnedValue::Str("gpt2".into()));
    set("pre", OwnedValue::Str("gpt-2".into()));
    set("tokens", OwnedValue::Strs(tokens.iter().map(|(text, _)| text.clone()).collect()));
    set("token_type", OwnedValue::I32s(tokens.iter().map(|(_, kind)| *kind).collect()));
    writer.set("general.architecture", OwnedValue::Str("llama".into()));
    let bytes: &'static [u8] = writer.to_bytes().leak();
    let file = WeightFile::from_bytes("made up", SharedBytes::from_static(bytes)).expect("a sound file");
    Tokenizer::from_weights(&file).expect("a tokenizer")
}

/// A model: its template and its control tokens.
struct TestModel {
    template: &'static str,
    prompt: &'static str,
    control: &'static [&'static str],
    user: &'static [&'static str],
    has_tools: bool,
}

const PLAIN: TestModel = TestModel { template: "", prompt: "", control: &[], user: &[], has_tools: false };

impl TestModel {
    fn split(&self, reply: &str, n_chars: usize) -> ReplyParts {
        self.split_until(reply, n_chars, ReplyEnd::Whole, false)
    }

    fn split_until(&self, reply: &str, n_chars: usize, end: ReplyEnd, is_forced: bool) -> ReplyParts {
        let tokenizer = tokenizer(self.control, self.user);
        let format = ReplyFormat::of(self.template, &tokenizer);
        let format = if is_forced { format.with_forced_calls() } else { format };
        let tools = json!([{"type": "function", "function": {"name": "f"}}]);
        let none = Value::Null;
        let mut splitter =
            ReplySplitter::new(&format, self.prompt, if self.has_tools { &tools } else { &none });
        let mut parts = ReplyParts::default();
        let mut show = |shown: ReplyPiece<'_>| match shown {
            ReplyPiece::Text(text) => parts.0.push_str(text),
            ReplyPiece::Reasoning(text) => parts.1.push_str(text),
            ReplyPiece::Call(call) => parts.2.push(format!("{}({})", call.name, call.arguments)),
            ReplyPiece::CutCall | ReplyPiece::Malformed(_) => parts.3 += 1,
        };
        let mut text = String::new();
        let mut stream = tokenizer.stream();
        for id in tokenizer.encode(reply, Special::Parse) {
            let is_control = tokenizer.is_control(id);
            if is_control || format.markup_tokens().contains(&id) {
                splitter.text(&std::mem::take(&mut text), &mut show);
                splitter.markup(tokenizer.token_text(id).expect("UTF-8"), is_control, &mut show);
                continue;
            }
            text.push_str(stream.push(id));
            if text.chars().count() >= n_chars {
                splitter.text(&std::mem::take(&mut text), &mut show);
            }
        }
        splitter.text(&text, &mut show);
        splitter.finish(end, &mut show);
        parts
    }

    fn check(&self, reply: &str, text: &str, reasoning: &str, calls: &[&str]) {
        self.check_all(reply, text, reasoning, calls, 0);
    }

    fn check_all(&self, reply: &str, text: &str, reasoning: &str, calls: &[&str], n_notices: usize) {
        let calls: Vec<String> = calls.iter().map(|call| call.to_string()).collect();
        let expected: ReplyParts = (text.into(), reasoning.into(), calls, n_notices);
        for n_chars in [1, 2, 3, 5, 8, 13, usize::MAX] {
            assert_eq!(self.split(reply, n_chars), expected, "by {n_chars}: {reply:?}");
        }
    }
}

#[test]
fn reasoning_is_separated_from_text() {
    let check = |prompt: &'static str, reply: &str, text: &str, reasoning: &str| {
        TestModel { prompt, ..PLAIN }.check(reply, text, reasoning, &[]);
    };
    check("", "Hello.", "Hello.", "");
    check("", "  Hello.", "  Hello.", "");
    check("", "<think>\nHm.\n</think>\n\nYes.", "Yes.", "Hm.");
    check("", "\n<think>a b\n\nc</think>Yes.", "Yes.", "a b\n\nc");
    check("", "<think>\n\n</think>\n\nYes.", "Yes.", "");
    check("…<think>\n", "Hm </thin </think> Yes", "Yes", "Hm </thin");
    check("", "<thinking is fun", "<thinking is fun", "");
    check("", "<thi", "<thi", "");
    check("", "</think>\n\nYes.", "Yes.", "");
    check("", "The tag <think> opens.", "The tag <think> opens.", "");
    check("", "<think>never ends  ", "", "never ends  ");
    check("", "[THINK]x[/THINK]y", "y", "x");
    check("", "", "", "");
    check("", "<think>é …</think>é", "é", "é …");
}

#[test]
fn tokens_are_tags_and_letters_are_not() {
    let qwen = TestModel { user: &["<think>", "</think>", "<tool_call>", "</tool_call>"], ..PLAIN };
    qwen.check("<think>a</think>b", "b", "a", &[]);
    qwen.check("a<think>b</think>c", "ac", "b", &[]);
    qwen.check(
        "x\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>",
        "x",
        "",
        &["f({\"x\":1})"],
    );
    // A control token without meaning here has no text.
    let other = TestModel { control: &["<|x|>"], ..PLAIN };
    other.check("a<|x|>b", "ab", "", &[]);
    let tokenizer = tokenizer(&[], &["<think>"]);
    let format = ReplyFormat::of("", &tokenizer);
    let mut splitter = ReplySplitter::new(&format, "", &Value::Null);
    let mut text = String::new();
    let mut show = |shown: ReplyPiece<'_>| match shown {
        ReplyPiece::Text(piece) => text.push_str(piece),
        other => panic!("{other:?}"),
    };
    splitter.text("<think>spelled out\u{fdd0}<think>\u{fdd1}", &mut show);
    splitter.finish(ReplyEnd::Whole, &mut show);
    assert_eq!(text, "<think>spelled out\u{fffd}<think>\u{fffd}");
}

#[test]
fn calls_of_every_style_are_parsed() {
    let tools = |template| TestModel { template, has_tools: true, ..PLAIN };
    let f = ["f({\"x\":\"a\"})"];
    let json = "{\"name\": \"f\", \"arguments\": {\"x\": \"a\"}}";
    let hermes = tools("<tool_call></tool_call>");
    hermes.check(&format!("Now.\n\n<tool_call>\n{json}\n</tool_call>"), "Now.", "", &f);
    hermes.check(
        &format!("<think>t</think>\n<tool_call>{json}</tool_call>\n<tool_call>{json}</tool_call>"),
        "",
        "t",
        &[f[0], f[0]],
    );
    hermes.check(&format!("<tool_call>{json}"), "", "", &f);
    hermes.check(&format!("<tool_call>{json}</tool_call> Done."), "Done.", "", &f);
    hermes.check(
        "<tool_call>\n<function=f>\n<parameter=x>\na\n</parameter>\n</function>\n</tool_call>",
        "",
        "",
        &f,
    );
    TestModel { has_tools: false, ..hermes }.check(
        "<tool_call>{}</tool_call>",
        "<tool_call>{}</tool_call>",
        "",
        &[],
    );
    tools("<function=").check("<function=f>\n<parameter=x>\na\n</parameter>\n</function>", "", "", &f);
    tools("<code></code>").check("<code>\nf(x=\"a\")\n</code>", "", "", &f);
    tools("<start_of_turn>").check("```tool_code\nprint(f(x=\"a\"))\n```", "", "", &f);
    let llama = tools("{\"name\": function name <|python_tag|>");
    llama.check("{\"name\": \"f\", \"parameters\": {\"x\": \"a\"}}", "", "", &f);
    llama.check("<|python_tag|>{\"name\": \"f\", \"parameters\": {\"x\": \"a\"}}", "", "", &f);
    llama.check("{\"answer\": 1}", "{\"answer\": 1}", "", &[]);
    llama.check("{\"name\": \"Ann\", \"age\": 3} is it", "{\"name\": \"Ann\", \"age\": 3} is it", "", &[]);
    let mistral = TestModel { control: &["[TOOL_CALLS]", "[ARGS]"], ..PLAIN };
    mistral.check("[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"x\": \"a\"}}]", "", "", &f);
    mistral.check("Hm.[TOOL_CALLS]f[ARGS]{\"x\": \"a\"}[TOOL_CALLS]g[ARGS]{}", "Hm.", "", &[f[0], "g({})"]);
    let gemma = TestModel {
        template: "<|channel>thought",
        control: &["<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|\"|>"],
        ..PLAIN
    };
    gemma.check("<|channel>thought\nHm.\n<channel|>Yes.", "Yes.", "Hm.", &[]);
    gemma.check("<|tool_call>call:f{x:<|\"|>a<|\"|>}<tool_call|>", "", "", &f);
    let lfm = TestModel { control: &["<|tool_call_start|>", "<|tool_call_end|>"], ..PLAIN };
    lfm.check("<|tool_call_start|>[f(x=\"a\")]<|tool_call_end|>Looking.", "Looking.", "", &f);
    let phi = TestModel { control: &["<|tool_call|>", "<|/tool_call|>"], ..PLAIN };
    phi.check(&format!("<|tool_call|>[{json}]<|/tool_call|>"), "", "", &f);
}

#[test]
fn a_call_that_cannot_be_read_is_text_with_a_notice() {
    let hermes = TestModel { template: "<tool_call></tool_call>", has_tools: true, ..PLAIN };
    hermes.check_all(
        "a <tool_call>{\"name\": </tool_call> b",
        "a <tool_call>{\"name\": </tool_call> b",
        "",
        &[],
        1,
    );
    hermes.check_all("<tool_call>never", "<tool_call>never", "", &[], 1);
    hermes.check_all("<tool_cal", "<tool_cal", "", &[], 0);
}

#[test]
fn harmony_channels_are_separated() {
    let control =
        &["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>", "<|constrain|>"];
    let harmony = TestModel { prompt: "<|end|><|start|>assistant", control, ..PLAIN };
    let final_only = "<|channel|>final<|message|>Yes.<|return|>";
    harmony.check(final_only, "Yes.", "", &[]);
    let thought = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant";
    harmony.check(&format!("{thought}{final_only}"), "Yes.", "Hm.", &[]);
    let call = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"x\": \"a\"}<|call|>";
    harmony.check(&format!("{thought}{call}"), "", "Hm.", &["f({\"x\":\"a\"})"]);
    harmony.check(" to=functions.f<|channel|>commentary json<|message|>{}<|call|>", "", "", &["f({})"]);
    let preamble = "<|channel|>commentary<|message|>I will look.<|end|><|start|>assistant";
    harmony.check(&format!("{preamble}{call}"), "I will look.", "", &["f({\"x\":\"a\"})"]);
    harmony.check(&format!("{preamble}{final_only}"), "I will look.\n\nYes.", "", &[]);
    harmony.check(
        "<|channel|>final<|message|>The tag <|channel> is text.",
        "The tag <|channel> is text.",
        "",
        &[],
    );
    harmony.check("Just text.", "Just text.", "", &[]);
    harmony.check("<|channel|>analysis<|message|>Hm.<|end|> \n Yes.", "Yes.", "Hm.", &[]);
    harmony.check_all(
        "<|channel|>commentary to=functions.f<|message|>not json<|call|>",
        "to=f not json".replace("to=f", "to=functions.f").as_str(),
        "",
        &[],
        1,
    );
    // Headers that never complete: the text behind their words is the reply.
    let open = |header: &str| format!("{thought}{header}");
    harmony.check(&open("<|channel|>final The answer"), "The answer", "Hm.", &[]);
    harmony.check(&open("<|channel|>analysis So.<|end|>"), "", "Hm.\n\nSo.", &[]);
    harmony.check(&open("<|channel|>finally, it works<|return|>"), "finally, it works", "Hm.", &[]);
    harmony.check(&open("The answer"), "The answer", "Hm.", &[]);
    harmony.check("<|channel|>final The answer", "The answer", "", &[]);
    for bare in ["", "<|channel|>", "<|channel|>fin", "<|channel|>final"] {
        harmony.check(&open(bare), "", "Hm.", &[]);
    }
    let long = "a ".repeat(200);
    harmony.check(&open(&format!("<|channel|>final {long}")), &long, "Hm.", &[]);
    TestModel { prompt: "<|start|>assistant<|channel|>final<|message|>", ..harmony }.check(
        "Yes.",
        "Yes.",
        "",
        &[],
    );
}

#[test]
fn half_a_tag_is_never_shown() {
    let tokenizer = tokenizer(&[], &[]);
    let format = ReplyFormat::of("<tool_call>", &tokenizer);
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    let mut splitter = ReplySplitter::new(&format, "<think>", &tools);
    for c in "ab</think>cd<tool_call".chars() {
        splitter.text(c.encode_utf8(&mut [0; 4]), &mut |shown| {
            if let ReplyPiece::Text(text) | ReplyPiece::Reasoning(text) = shown {
                assert!(!text.contains('<'), "{text}");
            }
        });
    }
}

/// A vendor's own style: the marker in its template, and the tokens in its vocabulary, if any.
fn own(template: &'static str, control: &'static [&'static str]) -> [TestModel; 2] {
    [control, &[]].map(|control| TestModel { template, control, has_tools: true, ..PLAIN })
}

const F: [&str; 1] = ["f({\"x\":\"a\"})"];

#[test]
fn hunyuan_tags_names_keys_and_values() {
    let tags = &[
        "<tool_calls:opensource>",
        "</tool_calls:opensource>",
        "<tool_sep:opensource>",
        "</think:opensource>",
    ];
    for hunyuan in own("set a = '<tool_calls{}>'.format(x)", tags) {
        let call = "<tool_call:opensource>f<tool_sep:opensource>\n<arg_key:opensource>x</arg_key:opensource>\n\
                    <arg_value:opensource>a</arg_value:opensource>\n</tool_call:opensource>\n";
        let calls = |inner: &str| format!("<tool_calls:opensource>\n{inner}</tool_calls:opensource>");
        hunyuan.check(&calls(call), "", "", &F);
        hunyuan.check(&format!("I look.{}", calls(&[call, call].concat())), "I look.", "", &[F[0], F[0]]);
        hunyuan.check("<think:opensource>Hm.</think:opensource>Yes.", "Yes.", "Hm.", &[]);
        let half = &calls(call)[..60];
        hunyuan.check_all(&format!("a {half}"), &format!("a {half}"), "", &[], 1);
        hunyuan.check("<tool_calls:open", "<tool_calls:open", "", &[]);
    }
}

#[test]
fn solar_separates_reasoning_text_and_calls() {
    let control = &[
        "<|begin|>",
        "<|end|>",
        "<|think|>",
        "<|content|>",
        "<|tool_calls|>",
        "<|calls|>",
        "<|tool_call:begin|>",
        "<|tool_call:name|>",
        "<|tool_call:args|>",
        "<|tool_call:end|>",
    ];
    let [solar, _] = own("<|tool_call:args|>", control);
    let solar = TestModel { prompt: "<|begin|>assistant", ..solar };
    let call = |arguments: &str| {
        format!(
            "<|tool_calls|><|tool_call:begin|>id<|tool_call:name|>f<|tool_call:args|>{arguments}<|tool_call:end|><|calls|>"
        )
    };
    let thought = "<|think|>Hm.<|end|><|begin|>assistant";
    solar.check(&call("{\"x\": \"a\"}"), "", "", &F);
    solar.check(&format!("{thought}{}", call("{\"x\": \"a\"}")), "", "Hm.", &F);
    solar.check(&format!("{thought}<|content|>The end.<|end|>"), "The end.", "Hm.", &[]);
    solar.check("<|content|>An assistant begins.<|end|>", "An assistant begins.", "", &[]);
    solar.check_all(&call("{\"x\": "), &call("{\"x\": "), "", &[], 1);
    let half = "<|tool_calls|><|tool_call:begin|>id<|tool_call:name|>f";
    solar.check_all(&format!("<|content|>a {half}"), &format!("a {half}"), "", &[], 1);
}

#[test]
fn kimi_k3_opens_and_closes_elements() {
    let [kimi, _] = own("open_tag('call'", &["<|open|>", "<|close|>", "<|sep|>"]);
    let kimi = TestModel { prompt: "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>", ..kimi };
    let argument = "<|open|>argument key=\"x\" type=\"string\"<|sep|>a<|close|>argument<|sep|>";
    let call = format!("<|open|>call tool=\"f\" index=\"1\"<|sep|>{argument}<|close|>call<|sep|>");
    let whole = |words: &str, calls: &str| {
        format!(
            "Hm.<|close|>think<|sep|><|open|>response<|sep|>{words}<|close|>response<|sep|>{calls}<|close|>message<|sep|>"
        )
    };
    let tools = |inner: &str| format!("<|open|>tools<|sep|>{inner}<|close|>tools<|sep|>");
    kimi.check(&whole("The response: open.", ""), "The response: open.", "Hm.", &[]);
    kimi.check(&whole("", &tools(&call)), "", "Hm.", &F);
    kimi.check(&whole("Now.", &tools(&[call.as_str(), &call].concat())), "Now.", "Hm.", &[F[0], F[0]]);
    let wrong = tools(&call.replace("type=\"string\"", "type=\"number\""));
    kimi.check_all(&whole("a", &wrong), &format!("a{wrong}"), "Hm.", &[], 1);
    let half = "<|open|>tools<|sep|><|open|>call tool=\"f\"";
    kimi.check_all(&format!("<|close|>think<|sep|>{half}"), half, "", &[], 1);
}

#[test]
fn minimax_m3_prefixes_tags_with_a_token() {
    for minimax in own("ns = ']<]minimax[>[' <mm:think>", &["]<]minimax[>[", "<mm:think>", "</mm:think>"]) {
        let call =
            "]<]minimax[>[<invoke name=\"f\">]<]minimax[>[<x>a]<]minimax[>[</x>]<]minimax[>[</invoke>\n";
        let calls = |inner: &str| format!("]<]minimax[>[<tool_call>\n{inner}]<]minimax[>[</tool_call>");
        minimax.check(&format!("</mm:think>{}", calls(call)), "", "", &F);
        minimax.check(
            &format!("<mm:think>Hm.</mm:think>Now.{}", calls(&[call, call].concat())),
            "Now.",
            "Hm.",
            &[F[0], F[0]],
        );
        let wrong = calls(&call.replace("</x>", "</y>"));
        minimax.check_all(&format!("a {wrong}"), &format!("a {wrong}"), "", &[], 1);
        let half = "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke";
        minimax.check_all(&format!("a {half}"), &format!("a {half}"), "", &[], 1);
    }
}

#[test]
fn gigachat_calls_in_a_separate_message() {
    let [gigachat, _] = own("'role': 'function call',", &["<|role_sep|>", "<|message_sep|>"]);
    let call = |arguments: &str| {
        format!(
            "<|message_sep|>\n\nfunction call<|role_sep|>\n{{\"name\": \"f\", \"arguments\": {arguments}}}<|message_sep|>\n\n"
        )
    };
    gigachat.check(&call("{\"x\": \"a\"}"), "", "", &F);
    gigachat.check(&format!("I look.{}", call("{\"x\": \"a\"}")), "I look.", "", &F);
    gigachat.check("A function call is this.<|message_sep|>", "A function call is this.", "", &[]);
    let wrong = "function call<|role_sep|>\n{\"name\": ";
    gigachat.check_all(
        &format!("a<|message_sep|>\n\n{wrong}<|message_sep|>"),
        &format!("a\n\n{wrong}"),
        "",
        &[],
        1,
    );
    gigachat.check_all(
        "function call<|role_sep|>\n{\"name\"",
        "function call<|role_sep|>\n{\"name\"",
        "",
        &[],
        1,
    );
}

#[test]
fn muse_addresses_itself_tools_and_the_user() {
    let control = &["<|start|>", "<|message|>", "<|eom|>", "<|eot|>"];
    let [muse, _] = own("<atem:function_calls>", control);
    let muse = TestModel { prompt: "<|eot|><|start|>assistant", ..muse };
    let thought = " to=self<|message|>Hm.<|eom|><|start|>assistant";
    let call = "<atem:function_calls>\n<atem:invoke name=\"f\">\n<atem:parameter name=\"x\">a</atem:parameter>\n\
                </atem:invoke>\n</atem:function_calls>";
    muse.check(" to=user<|message|>Yes.<|eot|>", "Yes.", "", &[]);
    muse.check(&format!("{thought} to=user<|message|>Yes.<|eot|>"), "Yes.", "Hm.", &[]);
    muse.check(&format!("{thought} to=f<|message|>{call}<|eot|>"), "", "Hm.", &F);
    muse.check(
        &format!(" to=f<|message|>{call}<|eom|><|start|>assistant to=f<|message|>{call}<|eot|>"),
        "",
        "",
        &[F[0], F[0]],
    );
    let half = &call[..70];
    muse.check_all(&format!(" to=f<|message|>{half}"), &format!("to=f {half}"), "", &[], 1);
}

#[test]
fn functionary_names_recipients_in_a_line() {
    let functionary = TestModel {
        template: "Respond:\n>>>${recipient}\n",
        prompt: "<|end_header_id|>\n\n>>>",
        control: &["<|eot_id|>"],
        has_tools: true,
        ..PLAIN
    };
    functionary.check("all\nHello.", "Hello.", "", &[]);
    functionary.check("f\n{\"x\": \"a\"}", "", "", &F);
    functionary.check("f\n{\"x\": \"a\"}>>>f\n{\"x\": \"a\"}", "", "", &[F[0], F[0]]);
    functionary.check("all\nI look.>>>f\n{\"x\": \"a\"}<|eot_id|>", "I look.", "", &F);
    functionary.check("all\nI look.>>>f\n{\"x\": \"a\"}>>>all\nDone.", "I look.\n\nDone.", "", &F);
    // Text like Python's prompt; a message without a recipient is for the user.
    functionary.check("all\n>>> print(1)\n>>>g\n", ">>> print(1)\n>>>g\n", "", &[]);
    functionary.check("Just some words.\nAnd more.", "Just some words.\nAnd more.", "", &[]);
    functionary.check("al", "al", "", &[]);
    let words = format!("{}\nAnd more.", "f".repeat(200));
    functionary.check(&words, &words, "", &[]);
    functionary.check_all("f\n{\"x\": ", "f\n{\"x\": ", "", &[], 1);
    functionary.check_all("all\na>>>f\nwords>>>all\nb", "af\nwords\n\nb", "", &[], 1);
    TestModel { prompt: "", ..functionary }.check("Hello.>>>f\n{\"x\": \"a\"}", "Hello.", "", &F);
}
