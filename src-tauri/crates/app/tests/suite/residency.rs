//! The worker with several models: those that fit stay, unused ones are evicted, and a load
//! interrupts no answer.
#![allow(clippy::unwrap_used)] // a test

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Duration;

use contract::Sampling;
use contract::limits::Bounds;
use contract::protocol::{
    Backend, ChatOptions, ContextRetention, GenerateRequest, LoadSpec, LoadState, Location, ModelRef, Prompt,
    Step, WorkerEvent, WorkerRequest,
};
use contract::types::ErrorAction;
use contract::types::Finish;
use engine::shape::{self, Shape};
use inference::worker::{self, End};
use io::ManualClock;

const PLENTY: u64 = 1 << 40;

/// A worker on a thread, with memory and time of the test's own.
struct Bench {
    folder: PathBuf,
    requests: worker::Requests,
    events: Receiver<WorkerEvent>,
    clock: Arc<ManualClock>,
    free: Arc<AtomicU64>,
    thread: JoinHandle<End>,
}

impl Bench {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("inglenook-residency-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let (requests, asked) = worker::channel();
        let (tell, events) = mpsc::channel();
        let (clock, free) = (Arc::new(ManualClock::new(0)), Arc::new(AtomicU64::new(PLENTY)));
        let (its_clock, its_free) = (clock.clone(), free.clone());
        let thread = std::thread::spawn(move || {
            let free = || Some(its_free.load(Ordering::SeqCst));
            worker::run_within(&asked, its_clock, &free, &mut |event| tell.send(event).is_ok())
        });
        Self { folder, requests, events, clock, free, thread }
    }

    /// A model of one layer.
    fn model(&self, id: &str) -> ModelRef {
        let published = shape::find("llama-3.2-1b").unwrap();
        let small = Shape {
            n_layers: 1,
            d_model: 64,
            n_heads: 4,
            n_kv_heads: 2,
            head_dim: 16,
            d_ff: 64,
            n_vocab: 600,
            context_length: 4096,
            rope_divisors: engine::shape::RopeDivisors::None,
            ..published
        };
        let mut bytes = Vec::new();
        shape::write(&small, shape::mix("q8_0").unwrap(), 1, &mut bytes).unwrap();
        let path = self.folder.join(format!("{id}.gguf"));
        std::fs::write(&path, bytes).unwrap();
        at(id, &path)
    }

    fn ask(&self, turn: &str, model: &ModelRef, max_tokens: usize) {
        self.ask_of(turn, model, max_tokens, LoadSpec::default());
    }

    fn ask_of(&self, turn: &str, model: &ModelRef, max_tokens: usize, load: LoadSpec) {
        let machine = contract::CpuRequest { threads: Some(1), ..Default::default() };
        let load = LoadSpec { machine, ..load };
        self.requests
            .send(WorkerRequest::Generate(Box::new(GenerateRequest {
                turn: turn.into(),
                model: model.clone(),
                load,
                conversation: None,
                prompt: Prompt::Ids(vec![1, 2, 3]),
                sampling: Sampling { temperature: 0.0, ..Sampling::default() },
                max_tokens: Some(max_tokens),
                stop: Vec::new(),
                ignore_eos: true,
                chat: ChatOptions::default(),
                constraint: None,
                logprobs: None,
                speculation: None,
                compression: None,
                had: None,
                resume: None,
                bounds: Bounds::default(),
                keeping: Some(ContextRetention { unload_after_s: Some(60), ..ContextRetention::default() }),
                profile: false,
            })))
            .unwrap();
    }

    /// Events up to the first that `is_it`, with it.
    fn until(&self, is_it: impl Fn(&WorkerEvent) -> bool) -> Vec<WorkerEvent> {
        let mut events = Vec::new();
        loop {
            events.push(self.events.recv_timeout(Duration::from_secs(120)).expect("the worker answers"));
            if is_it(events.last().unwrap()) {
                return events;
            }
        }
    }

    /// Events up to the end of a turn.
    fn ended(&self, turn: &str) -> Vec<WorkerEvent> {
        self.until(|event| matches!(event, WorkerEvent::Turn { turn: of, step: Step::Done(_) | Step::Failed { .. } } if of == turn))
    }

    fn end(self) {
        self.requests.send(WorkerRequest::Stop).unwrap();
        assert_eq!(self.thread.join().unwrap(), End::Stopped);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn at(id: &str, path: &Path) -> ModelRef {
    ModelRef { id: id.into(), location: Location::Path(path.to_str().unwrap().into()) }
}

fn unloaded(events: &[WorkerEvent]) -> Vec<&str> {
    let gone = events.iter().filter_map(|event| match event {
        WorkerEvent::Model { id, state: LoadState::Unloaded } => Some(id.as_str()),
        _ => None,
    });
    gone.collect()
}

fn is_loading(events: &[WorkerEvent], id: &str) -> bool {
    events.iter().any(
        |event| matches!(event, WorkerEvent::Model { id: of, state: LoadState::Loading { .. } } if of == id),
    )
}

#[test]
fn models_that_fit_stay_and_the_least_used_goes_first() {
    let bench = Bench::new("fit");
    let [a, b, c] = ["a", "b", "c"].map(|id| bench.model(id));
    for (turn, model) in [("1", &a), ("2", &b), ("3", &a)] {
        bench.ask(turn, model, 2);
        let events = bench.ended(turn);
        assert!(unloaded(&events).is_empty(), "{events:?}");
        assert_eq!(is_loading(&events, &model.id), turn != "3", "the third finds its model there");
    }
    // no memory for a third beside them: both are evicted, the least recently used first
    bench.free.store(1, Ordering::SeqCst);
    bench.ask("4", &c, 2);
    assert_eq!(unloaded(&bench.ended("4")), ["b", "a"]);
    bench.end();
}

#[test]
fn an_answer_goes_on_while_another_model_loads_and_is_never_evicted() {
    let bench = Bench::new("swap");
    let [a, b] = ["a", "b"].map(|id| bench.model(id));
    bench.ask("long", &a, 3000);
    bench.until(|event| matches!(event, WorkerEvent::Turn { step: Step::Token { .. }, .. }));
    bench.ask("short", &b, 2);
    let mut events = bench.ended("short");
    let is_of =
        |event: &WorkerEvent, turn: &str| matches!(event, WorkerEvent::Turn { turn: of, .. } if of == turn);
    if !events
        .iter()
        .any(|event| is_of(event, "long") && matches!(event, WorkerEvent::Turn { step: Step::Done(_), .. }))
    {
        events.extend(bench.ended("long"));
    }
    let Some(WorkerEvent::Turn { step: Step::Done(done), .. }) =
        events.iter().rev().find(|event| is_of(event, "long"))
    else {
        panic!("{events:?}")
    };
    assert_eq!((done.finish, done.generated_tokens), (Finish::Length, 3000), "the whole answer");
    assert!(unloaded(&events).is_empty());

    // where there is no room, the second waits until the first has ended
    bench.free.store(1, Ordering::SeqCst);
    let c = bench.model("c");
    bench.ask("long again", &a, 3000);
    bench.until(|event| {
        is_of(event, "long again") && matches!(event, WorkerEvent::Turn { step: Step::Token { .. }, .. })
    });
    bench.ask("waits", &c, 2);
    let events = bench.ended("waits");
    let end = events
        .iter()
        .position(
            |event| matches!(event, WorkerEvent::Turn { turn, step: Step::Done(_) } if turn == "long again"),
        )
        .unwrap();
    assert!(!is_loading(&events[..end], "c") && is_loading(&events[end..], "c"));
    bench.end();
}

#[test]
fn a_model_that_nobody_asks_leaves_memory() {
    let bench = Bench::new("idle");
    let a = bench.model("a");
    bench.ask("1", &a, 2);
    bench.ended("1");
    let stats = |request| {
        bench.requests.send(WorkerRequest::KvStats { request }).unwrap();
        bench.until(|event| matches!(event, WorkerEvent::KvStats { request: of, .. } if *of == request))
    };
    bench.clock.advance(Duration::from_secs(59));
    assert!(unloaded(&stats(1)).is_empty());
    bench.clock.advance(Duration::from_secs(2));
    bench.requests.send(WorkerRequest::KvStats { request: 2 }).unwrap();
    bench.until(|event| matches!(event, WorkerEvent::Model { id, state: LoadState::Unloaded } if id == "a"));
    bench.ask("2", &a, 2);
    assert!(is_loading(&bench.ended("2"), "a"), "asked again, it comes again");
    bench.end();
}

/// Memory of the software adapter: it takes some each time that it is opened.
#[cfg(target_os = "linux")]
fn n_card_threads() -> usize {
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    let names = std::fs::read_dir("/proc/self/task").unwrap().filter_map(name);
    names.filter(|name| name.starts_with("llvmpipe-")).count()
}

#[test]
#[cfg(target_os = "linux")]
fn a_card_is_open_only_while_a_model_is_there() {
    let bench = Bench::new("card");
    let a = bench.model("a");
    let gpus = contract::GpuRequest { devices: vec!["llvmpipe".into()], ..Default::default() };
    let load = LoadSpec { backend: Backend::Gpu, gpus, ..LoadSpec::default() };
    assert_eq!(n_card_threads(), 0, "nobody has asked anything");
    for (turn, request) in [("1", 1), ("2", 2)] {
        bench.ask_of(turn, &a, 2, load.clone());
        bench.ended(turn);
        assert!(n_card_threads() > 0, "Mesa's software plays the card: `make setup` brings it");
        bench.clock.advance(Duration::from_secs(61));
        bench.requests.send(WorkerRequest::KvStats { request }).unwrap();
        bench.until(
            |event| matches!(event, WorkerEvent::Model { id, state: LoadState::Unloaded } if id == "a"),
        );
        // the event may come before the last of the model has gone
        let start = std::time::Instant::now();
        while n_card_threads() > 0 {
            assert!(start.elapsed() < Duration::from_secs(60), "the card is still open");
            std::thread::yield_now();
        }
    }
    bench.end();
}

#[test]
fn a_load_that_fails_says_why_and_offers_the_starter() {
    let bench = Bench::new("fails");
    let a = bench.model("a");
    let damaged = bench.folder.join("damaged.gguf");
    let bytes = std::fs::read(bench.folder.join("a.gguf")).unwrap();
    std::fs::write(&damaged, &bytes[..bytes.len() / 2]).unwrap();
    bench.ask("1", &at("damaged", &damaged), 2);
    let events = bench.ended("1");
    let Some(WorkerEvent::Turn { step: Step::Failed { error }, .. }) = events.last() else {
        panic!("{events:?}")
    };
    assert_eq!(error.info.action, Some(ErrorAction::UseModel { model: "starter".into() }));
    assert!(error.code().starts_with("weights.") && error.remedy().contains("built-in model"), "{error:?}");
    // nothing else was hurt
    bench.ask("2", &a, 2);
    assert!(matches!(bench.ended("2").last(), Some(WorkerEvent::Turn { step: Step::Done(_), .. })));
    bench.end();
}
