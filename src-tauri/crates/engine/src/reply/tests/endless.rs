//! Replies of models that loop: what they repeat without end takes a time that grows with its length alone.

use super::*;

const TOOLS: TestModel = TestModel { has_tools: true, ..PLAIN };

/// The notation of each kind of call tag: with an end, without one, and as a part of the call.
const TAGGED: [TestModel; 3] = [
    TestModel { template: "<tool_call></tool_call>", ..TOOLS },
    TestModel { template: "'function call'", control: &["<|role_sep|>"], ..TOOLS },
    TestModel { template: "<function=</function>", ..TOOLS },
];

#[test]
fn endless_white_space_is_looked_through_once() {
    // Some seconds for each piece that looks through all before it.
    let began = std::time::Instant::now();
    let blank = " \n".repeat(200_000);
    for model in TAGGED {
        let reply = format!("a{blank}b");
        assert_eq!(model.split(&reply, 2), (reply, String::new(), Vec::new(), 0));
        let thinking = TestModel { prompt: "<think>\n", ..model };
        let (text, reasoning, _, _) = thinking.split(&format!("a{blank}</think>{blank}b"), 2);
        assert_eq!((text.as_str(), reasoning.as_str()), ("b", "a"));
    }
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

#[test]
fn endless_calls_whose_argument_never_ends_are_text() {
    let unit = "function call<|role_sep|>\n{\"name\": \"f\", \"arguments\": {\"x\": \"";
    let reply = unit.repeat(700);
    for n_chars in [1, 64, usize::MAX] {
        let (text, _, calls, n_notices) = TAGGED[1].split(&reply, n_chars);
        assert_eq!((text, calls.len(), n_notices), (reply.clone(), 0, 700));
    }
}

#[test]
fn a_call_after_some_whose_argument_never_ended_is_a_call() {
    let unended = "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": \"</tool_call>".repeat(200);
    let reply = format!("{unended}<tool_call>{{\"name\": \"f\", \"arguments\": {{}}}}</tool_call>");
    let (_, _, calls, _) = TAGGED[0].split(&reply, 64);
    assert_eq!(calls, ["f({})"]);
}
