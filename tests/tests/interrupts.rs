//! Cancellations interrupt a batch between the steps of a graph, with several prompts in it and layers that carry state.
//!
//! The interrupted rows are computed again, and no other answer changes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use engine::kv::size::Rewind;
use engine::{Devices, GenEvent, Interrupt, LoadOptions, Model, Request, Sampling, Scheduler, TokenId};
use weights::WeightFile;

use crate::checkpoints::families;

/// Of the project's own models, those whose layers carry a state: other data may have none.
const WITH_STATES: [&str; 2] = ["qwen3_5", "lfm2"];

fn load(path: &Path) -> Model {
    let file = Arc::new(WeightFile::open(path).unwrap());
    let options = LoadOptions {
        devices: Devices::Cpu,
        threads: Some(2),
        ctx: Some(256),
        max_sequences: 4,
        ..LoadOptions::default()
    };
    Model::load(file, &options, &mut |_| {}).unwrap()
}

fn request(id: u64, n: usize, n_vocab: usize) -> Request {
    Request {
        id,
        prompt: (0..n as u32).map(|i| (i * 31 + i / 7 * 3 + id as u32) % n_vocab as u32).collect(),
        sequence: None,
        sampling: Sampling { temperature: 0.0, ..Sampling::default() },
        max_tokens: Some(8),
        stop: Vec::new(),
        ignore_eos: true,
        markup_tokens: Vec::new(),
        budget: None,
        speculation: None,
        script: engine::speculate::Script::default(),
        constraint: None,
        logprobs: None,
        resumed: Vec::new(),
    }
}

/// The tokens of each request, and how many steps gave nothing; `asks` says of each step whether it is interrupted.
fn answers(model: &mut Model, asks: &dyn Fn(usize) -> bool) -> (BTreeMap<u64, Vec<TokenId>>, usize) {
    let interrupt = Interrupt::default();
    model.set_interrupt(interrupt.clone());
    let mut scheduler = Scheduler::new();
    for (id, n) in [(0, 90), (1, 70), (2, 120)] {
        scheduler.submit(request(id, n, model.info().n_vocab)).unwrap();
    }
    let (mut tokens, mut n_empty) = (BTreeMap::new(), 0);
    for step in 0.. {
        if asks(step) {
            interrupt.request();
        }
        let mut n_events = 0;
        let goes_on = scheduler.step(model, &mut |id, event| match event {
            GenEvent::Token { id: token, .. } => {
                n_events += 1;
                tokens.entry(id).or_insert_with(Vec::new).push(token);
            }
            GenEvent::Prefill { done, .. } => n_events += usize::from(done > 0),
            GenEvent::Done(_) => n_events += 1,
            GenEvent::Failed(error) => panic!("request {id}: {error}"),
        });
        interrupt.acknowledge();
        n_empty += usize::from(n_events == 0);
        if !goes_on {
            break;
        }
    }
    (tokens, n_empty)
}

#[test]
fn several_that_read_hear_a_cancel_and_lose_no_state() {
    let mut n_recurrent = 0;
    let own = inglenook_tests::workspace_root().join("tests/reference/families");
    for path in families().into_iter().chain(WITH_STATES.map(|name| own.join(name))) {
        let mut model = load(&path);
        let (expected, n_empty) = answers(&mut model, &|_| false);
        assert_eq!(n_empty, 0, "{}", path.display());
        n_recurrent += usize::from(model.rewind() == Rewind::Nowhere);
        for asks in [(|step| step == 0) as fn(usize) -> bool, |_| true, |step| step % 3 == 1] {
            let (found, n_empty) = answers(&mut model, &asks);
            assert_eq!(found, expected, "{}", path.display());
            // the first step reads all three
            assert!(n_empty > 0 || !asks(0), "{}: nobody heard it", path.display());
        }
        assert_eq!((model.kv_usage().n_pages, model.kv_usage().n_states), (0, 0), "{}", path.display());
    }
    assert!(n_recurrent > 0, "no family has a state");
}
