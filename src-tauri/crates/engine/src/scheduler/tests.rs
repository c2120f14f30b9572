//! Failing batches: only the request that caused the failure fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use weights::{SharedBytes, WeightFile};

use super::active::PANICS;
use super::*;
use crate::model::replica::Poison;
use crate::shape::{self, Shape};
use crate::speculate::Script;
use crate::{BackendKind, Devices, Interrupt, LoadOptions};

const POISON: TokenId = 599;

pub(crate) fn model() -> Model {
    small("llama-3.2-1b", 2)
}

/// A small version of a published shape, with its windows, sinks, norms and experts.
pub(crate) fn small(name: &str, n_layers: u32) -> Model {
    small_on(name, n_layers, Devices::Auto)
}

fn small_on(name: &str, n_layers: u32, devices: Devices) -> Model {
    let options = LoadOptions { devices, threads: Some(1), ctx: Some(128), ..LoadOptions::default() };
    let shape = shape::find(name).unwrap();
    let (n_heads, n_kv_heads, n_vocab) = (4, 2, 600);
    let shape = Shape { n_layers, d_model: 128, d_ff: 128, n_heads, n_kv_heads, n_vocab, ..shape };
    let mut bytes = Vec::new();
    shape::write(&shape, shape::mix("q8_0").unwrap(), 1, &mut bytes).unwrap();
    let file = WeightFile::from_bytes("small", SharedBytes::from_vec(bytes)).unwrap();
    Model::load(Arc::new(file), &options, &mut |_| {}).unwrap()
}

fn request(id: u64, prompt: Vec<TokenId>) -> Request {
    Request {
        id,
        prompt,
        sequence: None,
        sampling: Sampling { temperature: 0.0, ..Sampling::default() },
        max_tokens: Some(12),
        stop: Vec::new(),
        ignore_eos: true,
        markup_tokens: Vec::new(),
        budget: None,
        speculation: None,
        script: Script::default(),
        constraint: None,
        logprobs: None,
        resumed: Vec::new(),
    }
}

/// Tokens of each request, and how it ended.
type RequestOutcomes = BTreeMap<u64, (Vec<TokenId>, GenEvent)>;

fn take(outcomes: &mut RequestOutcomes, id: u64, event: GenEvent) {
    let (ids, end) = outcomes.entry(id).or_insert((Vec::new(), GenEvent::Prefill { done: 0, total: 0 }));
    match event {
        GenEvent::Prefill { .. } => {}
        GenEvent::Token { id: token, .. } => ids.push(token),
        GenEvent::Done(_) | GenEvent::Failed(_) => {
            assert!(matches!(end, GenEvent::Prefill { .. }), "it ends once");
            *end = event;
        }
    }
}

fn run(model: &mut Model, requests: Vec<Request>) -> RequestOutcomes {
    let mut scheduler = Scheduler::new();
    requests.into_iter().for_each(|request| scheduler.submit(request).unwrap());
    let mut outcomes = RequestOutcomes::new();
    while scheduler.step(model, &mut |id, event| take(&mut outcomes, id, event)) {}
    outcomes
}

fn prompts() -> Vec<Vec<TokenId>> {
    vec![vec![1, 2, 3], vec![7; 9], vec![4, 5, POISON, 6], vec![11, 12]]
}

fn requests() -> Vec<Request> {
    prompts().into_iter().zip(0..).map(|(prompt, id)| request(id, prompt)).collect()
}

/// Checks that request 2 fails with this code, and that the others are as without it.
fn only_the_third_fails(model: &mut Model, requests: Vec<Request>, expected: &RequestOutcomes, code: &str) {
    let outcomes = run(model, requests);
    for (id, outcome) in &outcomes {
        match id {
            2 => assert!(
                matches!(&outcome.1, GenEvent::Failed(error) if error.code() == code),
                "{code}: {outcome:?}"
            ),
            _ => assert_eq!(outcome, &expected[id], "{code}: request {id}"),
        }
    }
    assert_eq!(outcomes.len(), 4);
    assert_eq!(model.kv_usage().n_pages, 0);
}

#[test]
fn only_the_failing_request_fails() {
    let mut model = model();
    let expected = run(&mut model, requests());
    let mut panicking = requests();
    panicking[2].stop = vec![PANICS.into()];
    only_the_third_fails(&mut model, panicking, &expected, "engine.panicked");
    for (how, code) in [(Poison::Fails, "kernels.panicked"), (Poison::Panics, "engine.panicked")] {
        model.poison(POISON, how);
        only_the_third_fails(&mut model, requests(), &expected, code);
    }
}

#[test]
fn interrupted_runs_lose_no_token() {
    let mut model = model();
    let expected = run(&mut model, requests());
    let interrupt = Interrupt::default();
    model.set_interrupt(interrupt.clone());
    interrupt.request();
    let mut scheduler = Scheduler::new();
    requests().into_iter().for_each(|request| scheduler.submit(request).unwrap());
    let (mut outcomes, mut n_steps) = (RequestOutcomes::new(), 0);
    loop {
        // a constant interrupter does not succeed twice in a row
        let is_interrupted = n_steps % 2 == 0;
        let mut n_events = 0;
        let continues_in = scheduler.step(&mut model, &mut |id, event| {
            n_events += usize::from(!matches!(event, GenEvent::Prefill { .. }));
            take(&mut outcomes, id, event);
        });
        assert_eq!(n_events == 0, is_interrupted, "step {n_steps}: an interrupted run has no events");
        n_steps += 1;
        if !continues_in {
            break;
        }
        if n_steps == 9 {
            scheduler.cancel(1);
        }
    }
    for (id, (ids, end)) in outcomes {
        let (whole, whole_end) = &expected[&id];
        match id {
            1 => assert!(whole.starts_with(&ids) && ids.len() < whole.len(), "cancelled at once"),
            _ => assert_eq!((&ids, &end), (whole, whole_end), "request {id}"),
        }
    }
    assert_eq!(model.kv_usage().n_pages, 0);
}

/// Requests go to the replica with the least work, and each replica prefills as much per batch as a single one.
#[test]
fn requests_are_spread_over_replicas() {
    let alone = run(&mut model(), requests());
    let mut model = small_on("llama-3.2-1b", 2, Devices::Replicas(vec![BackendKind::Cpu; 2]));
    let mut scheduler = Scheduler::new();
    let held = model.new_sequence().unwrap();
    assert_eq!(model.replica_of(held), 0, "an idle context");
    requests().into_iter().for_each(|request| scheduler.submit(request).unwrap());
    let mut outcomes = RequestOutcomes::new();
    let mut sink = |id: u64, event: GenEvent| take(&mut outcomes, id, event);
    assert!(scheduler.step(&mut model, &mut sink));
    let at: Vec<usize> = scheduler.active.iter().map(|active| model.replica_of(active.sequence)).collect();
    let n_first = at.iter().filter(|at| **at == 0).count();
    assert!(at.len() > 2 && n_first.abs_diff(at.len() - n_first) <= 1, "{at:?}");
    while scheduler.step(&mut model, &mut sink) {}
    assert_eq!(outcomes, alone);
    assert_eq!(model.kv_usage().n_pages, 0);
}
