//! The whole model on each of two GPUs: the same texts as on one, both at work, and one that fails leaves the
//! other going. One adapter, opened twice, is two GPUs.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    BackendKind, Devices, FaultPlan, GenEvent, GpuFallback, GpuFault, LoadOptions, Model, MonotonicClock,
    Request, Sampling, Scheduler,
};
use kernels::GpuSelector;
use weights::WeightFile;

const N_REQUESTS: u64 = 6;

fn load(devices: Devices, faults: FaultPlan) -> Model {
    let dir = inglenook_tests::workspace_root().join("tests/reference/families/llama");
    let options = LoadOptions {
        devices,
        gpus: vec![GpuSelector::Nth(0), GpuSelector::Nth(0)],
        faults,
        ctx: Some(128),
        threads: Some(1),
        max_sequences: N_REQUESTS as usize,
        ..LoadOptions::default()
    };
    let file = Arc::new(WeightFile::open(&dir).unwrap());
    let model = Model::load(file, &options, &mut |_| {}).unwrap();
    assert_eq!(model.info().fallback_error, None);
    model
}

fn copies() -> Devices {
    Devices::Replicas(vec![BackendKind::Gpu; 2])
}

fn request(id: u64) -> Request {
    Request {
        id,
        prompt: (0..5 + 3 * id as u32).map(|n| (n * 7 + id as u32) % 100).collect(),
        sequence: None,
        sampling: Sampling { temperature: 0.0, ..Sampling::default() },
        max_tokens: Some(24),
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

/// The ids of each answer, all written together.
fn answers(model: &mut Model) -> BTreeMap<u64, Vec<u32>> {
    let mut scheduler = Scheduler::new();
    (0..N_REQUESTS).for_each(|id| scheduler.submit(request(id)).unwrap());
    let mut answers: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    let mut sink = |id: u64, event: GenEvent| match event {
        GenEvent::Token { id: token, .. } => answers.entry(id).or_default().push(token),
        GenEvent::Failed(error) => panic!("request {id}: {error}"),
        GenEvent::Prefill { .. } | GenEvent::Done(_) => {}
    };
    while scheduler.step(model, &mut sink) {}
    assert_eq!(answers.len() as u64, N_REQUESTS);
    answers
}

#[test]
fn two_gpus_with_the_whole_model_give_what_one_gives() {
    let expected = answers(&mut load(Devices::Gpu { layers: None }, FaultPlan::default()));
    let mut model = load(copies(), FaultPlan::default());
    assert_eq!((model.n_replicas(), model.info().devices.len()), (2, 2));
    // submissions to each are counted: both work
    let now: MonotonicClock = Arc::new(|| std::time::Duration::ZERO);
    model.measure_submissions(Some(&now));
    assert_eq!(answers(&mut model), expected);
    let told = model.submission_stats_by_replica();
    assert!(told.len() == 2 && told.iter().all(|effort| effort.n_kernels > 0), "{told:?}");
    assert_eq!(model.take_gpu_incident(), None);
}

#[test]
fn the_other_gpu_goes_on_where_one_is_lost() {
    let expected = answers(&mut load(Devices::Gpu { layers: None }, FaultPlan::default()));
    for fault in [GpuFault::Lost, GpuFault::Memory, GpuFault::TimeOut] {
        let faults = FaultPlan::before(17, fault);
        let mut model = load(copies(), faults.clone());
        assert_eq!(answers(&mut model), expected, "{fault:?}");
        assert!(faults.is_over() && model.n_replicas() == 1, "{fault:?}");
        let told: Vec<GpuFallback> =
            std::iter::from_fn(|| model.take_gpu_incident()).map(|it| it.fallback).collect();
        assert_eq!(told, [GpuFallback::OtherReplicas(1)], "{fault:?}: told once");
        // the one that is left is a GPU
        assert!(!model.info().devices[0].starts_with("cpu"), "{:?}", model.info().devices);
        assert_eq!(answers(&mut model), expected, "{fault:?}, and goes on");
    }
}

/// The second is lost too: what a single GPU does then is done.
#[test]
fn the_last_gpu_is_opened_again() {
    let expected = answers(&mut load(Devices::Gpu { layers: None }, FaultPlan::default()));
    let faults = FaultPlan::repeated(15, GpuFault::Lost, 2);
    let mut model = load(copies(), faults.clone());
    assert_eq!(answers(&mut model), expected);
    assert!(faults.is_over());
    let told: Vec<GpuFallback> =
        std::iter::from_fn(|| model.take_gpu_incident()).map(|it| it.fallback).collect();
    assert_eq!(told, [GpuFallback::OtherReplicas(1), GpuFallback::Reopened]);
}
