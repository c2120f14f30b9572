//! An idle GPU: a loaded model submits nothing while there is no request. Without a model no GPU is open, and none of
//! its memory is used.

use std::sync::Arc;

use engine::{Devices, FaultPlan, GenEvent, LoadOptions, Model, Request, Sampling, Scheduler};
use weights::WeightFile;

/// Rounds of an idle worker.
const N_ROUNDS: usize = 200;

fn request() -> Request {
    Request {
        id: 1,
        prompt: vec![1, 9, 17, 4],
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

fn answer(model: &mut Model, scheduler: &mut Scheduler) -> Vec<u32> {
    let mut ids = Vec::new();
    scheduler.submit(request()).unwrap();
    let mut sink = |_: u64, event: GenEvent| match event {
        GenEvent::Token { id, .. } => ids.push(id),
        GenEvent::Failed(error) => panic!("{error}"),
        GenEvent::Prefill { .. } | GenEvent::Done(_) => {}
    };
    while scheduler.step(model, &mut sink) {}
    ids
}

#[test]
fn an_idle_model_submits_nothing() {
    let dir = inglenook_tests::workspace_root().join("tests/reference/families/llama");
    let file = Arc::new(WeightFile::open(&dir).unwrap());
    let watch = FaultPlan::count_only();
    assert_eq!(watch.n_holders(), 1, "no GPU is open");
    let load = || {
        let options = LoadOptions {
            devices: Devices::Gpu { layers: None },
            faults: watch.clone(),
            ctx: Some(128),
            threads: Some(1),
            max_sequences: 2,
            ..LoadOptions::default()
        };
        Model::load(file.clone(), &options, &mut |_| {}).unwrap()
    };
    let mut model = load();
    assert!(
        watch.n_holders() > 1 && !model.info().devices[0].starts_with("cpu"),
        "{:?}",
        model.info().devices
    );
    let mut scheduler = Scheduler::new();
    let first = answer(&mut model, &mut scheduler);
    // shapes of kernels are looked for while nothing is asked, until all are known
    while model.tune(&|| std::time::Duration::ZERO).unwrap() {}
    let n_before = watch.n_submissions();
    assert!(n_before > 0, "an answer is work");
    for _ in 0..N_ROUNDS {
        let is_left = scheduler.step(&mut model, &mut |_, event| panic!("without a request: {event:?}"));
        assert!(!is_left && !model.tune(&|| std::time::Duration::ZERO).unwrap());
        assert!(!scheduler.is_short_of_pages(&model) && !model.requantize_some());
        assert_eq!((model.take_gpu_incident(), model.kv_usage().n_pages), (None, 0));
    }
    assert_eq!(watch.n_submissions(), n_before, "{N_ROUNDS} idle rounds");
    assert_eq!(answer(&mut model, &mut scheduler), first);
    assert!(watch.n_submissions() > n_before);

    drop(model);
    assert_eq!(watch.n_holders(), 1, "the GPU is closed with the model");
    let n_before = watch.n_submissions();
    let mut model = load();
    assert_eq!(answer(&mut model, &mut Scheduler::new()), first, "opened again");
    assert!(watch.n_submissions() > n_before);
}
