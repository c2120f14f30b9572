//! The worker over a pipe: JSON lines both ways, as a child process has it.
#![allow(clippy::unwrap_used)] // a test

use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;

use contract::CpuRequest;
use contract::protocol::{
    GenerateRequest, LoadSpec, LoadState, Location, ModelRef, Prompt, PromptMessage, Step, WorkerEvent,
    WorkerRequest,
};
use inference::worker::pipe::serve;
use inference::worker::{End, channel, run};
use io::RealClock;

fn line(request: &WorkerRequest) -> String {
    serde_json::to_string(request).unwrap() + "\n"
}

fn generate(turn: &str) -> WorkerRequest {
    WorkerRequest::Generate(Box::new(GenerateRequest {
        turn: turn.into(),
        model: ModelRef { id: "starter".into(), location: Location::BuiltIn },
        load: LoadSpec {
            machine: CpuRequest { threads: Some(1), ..CpuRequest::default() },
            context: Some(256),
            ..LoadSpec::default()
        },
        conversation: Some("c".into()),
        prompt: Prompt::Chat(vec![PromptMessage {
            role: "user".into(),
            content: "Hello".into(),
            ..PromptMessage::default()
        }]),
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

#[test]
fn the_worker_runs_over_a_pipe() {
    let (requests, mut to_worker) = std::io::pipe().unwrap();
    let (from_worker, events) = std::io::pipe().unwrap();
    let worker = std::thread::spawn(move || serve(requests, events, Arc::new(RealClock::new())));

    let inspect = WorkerRequest::Inspect { request: 7, location: Location::BuiltIn };
    let missing = WorkerRequest::Inspect { request: 8, location: Location::Path("/nowhere.gguf".into()) };
    for request in
        [inspect, missing, generate("a"), generate("b"), WorkerRequest::Cancel { turn: "x".into() }]
    {
        to_worker.write_all(line(&request).as_bytes()).unwrap();
    }
    let mut texts = [String::new(), String::new()];
    let mut done = Vec::new();
    let mut inspected = 0;
    for text in BufReader::new(from_worker).lines() {
        match serde_json::from_str(&text.unwrap()).unwrap() {
            WorkerEvent::Inspected { request: 7, outcome } => {
                inspected += 1;
                assert!(outcome.unwrap().parameters > 0);
            }
            WorkerEvent::TokenCounts { .. }
            | WorkerEvent::TokenAlternatives { .. }
            | WorkerEvent::VocabularyAnswer { .. }
            | WorkerEvent::EmbeddingBatch { .. }
            | WorkerEvent::PassageScores { .. }
            | WorkerEvent::PageImages { .. }
            | WorkerEvent::ImageInfo { .. }
            | WorkerEvent::FitOutcome { .. }
            | WorkerEvent::Stored { .. }
            | WorkerEvent::MeasuredAnswer(_)
            | WorkerEvent::KvStats { .. } => panic!("nobody asked"),
            WorkerEvent::Checkpoints(told) => panic!("nothing is stored without a folder: {told:?}"),
            WorkerEvent::Inspected { request: _, outcome } => {
                inspected += 1;
                assert!(!outcome.unwrap_err().info.remedy.is_empty());
            }
            WorkerEvent::Model { id, .. } => assert_eq!(id, "starter"),
            WorkerEvent::RunFacts(ran) => assert!(ran.model == "starter" && ran.tok_s >= 0.0),
            WorkerEvent::Turn { turn, step } => match step {
                Step::Token { text, .. } | Step::Rest { text, .. } => {
                    texts[usize::from(turn == "b")] += &text
                }
                Step::Done(finished) => {
                    done.push((turn, *finished));
                    if done.len() == 2 {
                        to_worker.write_all(line(&WorkerRequest::Stop).as_bytes()).unwrap();
                    }
                }
                Step::Failed { error } => panic!("{turn}: {error:?}"),
                Step::Queued { .. }
                | Step::Loading { .. }
                | Step::Prefill { .. }
                | Step::ToolCall { .. }
                | Step::Compacted { .. }
                | Step::Wanting { .. }
                | Step::Began { .. }
                | Step::Notice { .. } => {}
            },
        }
    }
    worker.join().unwrap().unwrap();
    assert_eq!(inspected, 2);
    assert_eq!(done.iter().map(|(turn, _)| turn.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(texts[0], texts[1], "the same question, the same answer");
    let [(_, first), (_, second)] = done.as_slice() else { panic!() };
    assert_eq!((first.reused_tokens, first.generated_tokens), (0, 12));
    assert_eq!(second.reused_tokens, second.prompt_tokens - 1, "the second found the first one's cache");
    assert_eq!(first.log.ids, second.log.ids);
}

#[test]
fn a_turn_is_cancelled_while_its_model_loads() {
    let (send, requests) = channel();
    for request in [generate("a"), WorkerRequest::Cancel { turn: "a".into() }, generate("b")] {
        send.send(request).unwrap();
    }
    let mut send = Some(send);
    let mut events = Vec::new();
    let end = run(&requests, Arc::new(RealClock::new()), &mut |event| {
        if matches!(&event, WorkerEvent::Turn { turn, step: Step::Done(_) } if turn == "b") {
            send = None;
        }
        events.push(event);
        true
    });
    assert_eq!(end, End::RequestsEnded);
    let mut steps = events.iter().filter_map(|event| match event {
        WorkerEvent::Turn { turn, step } if turn == "a" => Some(step),
        _ => None,
    });
    let Some(Step::Done(finished)) = steps.by_ref().find(|step| !matches!(step, Step::Loading { .. })) else {
        panic!("{events:?}")
    };
    assert_eq!((finished.finish, finished.generated_tokens), (contract::types::Finish::Cancelled, 0));
    assert_eq!(steps.next(), None, "nothing comes after the end");
    let is_ready = |event: &WorkerEvent| matches!(event, WorkerEvent::Model { state: LoadState::Ready, .. });
    assert!(events.iter().any(is_ready), "the model stays for the next one");
}

#[test]
fn a_line_that_is_no_request_ends_the_worker_with_an_error() {
    let ended = serve(&b"{\"type\":\"dance\"}\n"[..], Vec::new(), Arc::new(RealClock::new()));
    assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::InvalidData);
    serve(&b""[..], Vec::new(), Arc::new(RealClock::new())).unwrap();
}
