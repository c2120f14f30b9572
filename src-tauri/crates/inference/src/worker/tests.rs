//! Panics, and which turns they fail.

use io::RealClock;

use super::active_turn::PANICS;
use super::*;
use contract::CpuRequest;
use contract::protocol::{LoadSpec, Location, Prompt, PromptMessage};

#[test]
fn a_panic_is_an_error_with_its_words() {
    let caught = guarded::<()>(|| panic!("row {} is not there", 7)).unwrap_err();
    assert_eq!(caught.code(), "bug");
    assert!(caught.message().contains("row 7 is not there"));
}

fn generate(turn: &str) -> WorkerRequest {
    let asked = CpuRequest { threads: Some(1), ..CpuRequest::default() };
    let user = PromptMessage { role: "user".into(), content: "Hello".into(), ..PromptMessage::default() };
    WorkerRequest::Generate(Box::new(GenerateRequest {
        turn: turn.into(),
        model: ModelRef { id: "starter".into(), location: Location::BuiltIn },
        load: LoadSpec { machine: asked, context: Some(256), ..LoadSpec::default() },
        conversation: Some(turn.into()),
        prompt: Prompt::Chat(vec![user]),
        sampling: serde_json::from_str(r#"{"temperature":0}"#).unwrap(),
        max_tokens: Some(12),
        stop: vec![],
        ignore_eos: true,
        chat: Default::default(),
        constraint: None,
        logprobs: None,
        speculation: None,
        resume: None,
        bounds: Default::default(),
        compression: None,
        had: None,
        keeping: None,
        profile: false,
    }))
}

/// A template that would take minutes.
const SLOW: &str =
    "{% set x = namespace(a=[]) %}{% for i in range(100000) %}{% set x.a = x.a + [i] %}{% endfor %}";

/// A turn whose prompt is rendered by another template.
fn generate_by(turn: &str, template: &str) -> WorkerRequest {
    let WorkerRequest::Generate(mut request) = generate(turn) else { panic!("it is one that generates") };
    request.chat.template = Some(template.into());
    WorkerRequest::Generate(request)
}

#[test]
fn a_slow_template_fails_its_turn_alone() {
    let (send, requests) = channel();
    send.send(generate("a")).unwrap();
    send.send(generate_by("slow", SLOW)).unwrap();
    send.send(generate("b")).unwrap();
    let (mut ends, mut ids) = (Vec::new(), Vec::new());
    let end = run(&requests, Arc::new(RealClock::new()), &mut |event| {
        match event {
            WorkerEvent::Turn { turn, step: Step::Done(finished) } => {
                ends.push((turn, "done".to_owned()));
                ids.push(finished.log.ids);
            }
            WorkerEvent::Turn { turn, step: Step::Failed { error } } => {
                assert!(!error.remedy().is_empty());
                ends.push((turn, error.code().to_owned()));
            }
            _ => {}
        }
        if ends.len() == 3 {
            send.send(WorkerRequest::Stop).unwrap();
        }
        true
    });
    assert_eq!(end, End::Stopped);
    ends.sort();
    let ended = [("a", "done"), ("b", "done"), ("slow", "template.limit")];
    assert_eq!(ends, ended.map(|(turn, end)| (turn.to_owned(), end.to_owned())));
    assert_eq!(ids[0], ids[1], "the others answer as ever");
}

#[test]
fn a_turn_can_be_cancelled_while_its_prompt_is_rendered() {
    let (send, requests) = channel();
    send.send(generate("a")).unwrap();
    let mut ended = Vec::new();
    run(&requests, Arc::new(RealClock::new()), &mut |event| {
        match event {
            // Both requests are there before the prompt is rendered.
            WorkerEvent::Turn { turn, step: Step::Done(_) } if turn == "a" => {
                send.send(generate_by("slow", SLOW)).unwrap();
                send.send(WorkerRequest::Cancel { turn: "slow".into() }).unwrap();
            }
            WorkerEvent::Turn { turn, step } if turn == "slow" => {
                match step {
                    Step::Done(_) => ended.push("done".to_owned()),
                    Step::Failed { error } => ended.push(error.code().to_owned()),
                    _ => return true,
                }
                send.send(WorkerRequest::Stop).unwrap();
            }
            _ => {}
        }
        true
    });
    assert_eq!(ended, ["done"], "cancelled, not stopped for its time");
}

/// How a turn ended: what it generated, or the code of its error.
type TurnEnd = (String, std::result::Result<Vec<u32>, String>);

/// The end of each turn, and how often the model went.
fn ends(turns: &[&str]) -> (Vec<TurnEnd>, usize) {
    let (send, requests) = channel();
    turns.iter().for_each(|turn| send.send(generate(turn)).unwrap());
    let (mut ends, mut n_gone) = (Vec::new(), 0);
    let end = run(&requests, Arc::new(RealClock::new()), &mut |event| {
        match event {
            WorkerEvent::Turn { turn, step: Step::Done(finished) } => ends.push((turn, Ok(finished.log.ids))),
            WorkerEvent::Turn { turn, step: Step::Failed { error } } => {
                ends.push((turn, Err(error.code().to_owned())));
            }
            WorkerEvent::Model { state: LoadState::Unloaded, .. } => n_gone += 1,
            _ => {}
        }
        if ends.len() == turns.len() {
            send.send(WorkerRequest::Stop).unwrap();
        }
        true
    });
    assert_eq!(end, End::Stopped);
    ends.sort();
    (ends, n_gone)
}

#[test]
fn f55_a_panic_in_a_turn_fails_that_turn_alone() {
    let (alone, _) = ends(&["a"]);
    let ids = alone[0].1.as_ref().unwrap();
    let expected = ["a", "b", "c", PANICS, PANICS].map(|turn| match turn {
        PANICS => (turn.to_owned(), Err("bug".to_owned())),
        _ => (turn.to_owned(), Ok(ids.clone())),
    });
    assert_eq!(ends(&["a", PANICS, "b", PANICS, "c"]), (expected.to_vec(), 0));
}
