//! Replies that a limit of tokens cut inside a call.

use super::*;

impl TestModel {
    fn check_cut(&self, is_forced: bool, reply: &str, text: &str, calls: &[&str], n_notices: usize) {
        let calls: Vec<String> = calls.iter().map(|call| call.to_string()).collect();
        for n_chars in [1, 3, usize::MAX] {
            let parts = self.split_until(reply, n_chars, ReplyEnd::Cut, is_forced);
            let expected = (text.to_string(), calls.clone(), n_notices);
            assert_eq!((parts.0, parts.2, parts.3), expected, "by {n_chars}: {reply:?}");
        }
    }
}

const HERMES: TestModel = TestModel { template: "<tool_call></tool_call>", has_tools: true, ..PLAIN };

#[test]
fn a_cut_call_keeps_the_beginning_of_its_arguments() {
    let begun = "{\"name\": \"f\", \"arguments\": {\"x\": \"a b";
    for is_forced in [false, true] {
        HERMES.check_cut(is_forced, &format!("<tool_call>\n{begun}"), "", &["f({\"x\": \"a b)"], 0);
    }
    HERMES.check_cut(false, &format!("Now.\n<tool_call>\n{begun}"), "Now.", &["f({\"x\": \"a b)"], 0);
    let whole = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>\n";
    let two = ["f({\"x\":1})", "f({\"x\": \"a b)"];
    HERMES.check_cut(false, &format!("{whole}<tool_call>\n{begun}"), "", &two, 0);
    PLAIN_WITH_TOOLS.check_cut(true, begun, "", &["f({\"x\": \"a b)"], 0);
    let harmony = TestModel {
        template: "",
        prompt: "<|start|>assistant",
        control: &["<|channel|>", "<|message|>", "<|start|>", "<|return|>", "<|end|>", "<|call|>"],
        has_tools: true,
        ..PLAIN
    };
    let head = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>";
    harmony.check_cut(true, &format!("{head}{{\"x\": \"a b"), "", &["f({\"x\": \"a b)"], 0);
    harmony.check_cut(true, "<|channel|>commentary to=functions", "", &[], 1);
    harmony.check_cut(true, "<|channel|>comm", "", &[], 1);
    harmony.check_cut(false, "<|channel|>final The ans", "The ans", &[], 0);
    let functionary = TestModel { template: ">>>${recipient}", prompt: ">>>", has_tools: true, ..PLAIN };
    functionary.check_cut(true, "f\n{\"x\": \"a b", "", &["f({\"x\": \"a b)"], 0);
}

const PLAIN_WITH_TOOLS: TestModel = TestModel { has_tools: true, ..PLAIN };

#[test]
fn a_call_cut_before_its_name_is_not_shown() {
    HERMES.check_cut(false, "<tool_call>\n{\"na", "", &[], 1);
    HERMES.check_cut(true, "<tool_c", "", &[], 1);
    PLAIN_WITH_TOOLS.check_cut(true, "{\"name\": \"", "", &[], 1);
    PLAIN_WITH_TOOLS.check_cut(true, "{", "", &[], 1);
    PLAIN_WITH_TOOLS.check_cut(true, "", "", &[], 0);
}

#[test]
fn what_is_no_call_stays_text() {
    PLAIN_WITH_TOOLS.check_cut(false, "{\"name\": \"Ada", "{\"name\": \"Ada", &[], 0);
    HERMES.check_cut(false, "<tool_c", "<tool_c", &[], 0);
    HERMES.check_cut(false, "An answer that", "An answer that", &[], 0);
    let reply = "<tool_call>\n{\"name\": \"fly\", \"arguments\": {\"x\": 1";
    HERMES.check_cut(false, reply, reply, &[], 1);
}
