//! Several answers at once, of prompts that begin alike, some still being read, some guessing ahead: all go on.

use std::collections::BTreeMap;

use engine::speculate::{DraftLength, DraftSource, Speculation};
use engine::{
    FaultPlan, Finish, GenEvent, GpuFault, LoadOptions, Model, Request, Sampling, Scheduler, TokenId,
};

use super::{fallbacks, load, open, options, wants_all};

/// What begins all prompts.
fn shared() -> Vec<TokenId> {
    (0..96).map(|i| (i * 37 + i * i % 11) % 100).collect()
}

fn request(model: &mut Model, id: u64, base: engine::SequenceId) -> Request {
    let own = (0..20 + 9 * id as u32).map(|i| (i * 13 + 7 * id as u32) % 100);
    let prompt = shared().into_iter().chain(own).collect();
    // sequences are forked from one that has read what they share
    let sequence = Some(model.fork(base).unwrap());
    let speculation = Speculation { source: DraftSource::Lookup, length: DraftLength::Always(4) };
    Request {
        id,
        prompt,
        sequence,
        sampling: Sampling { temperature: 0.8, seed: Some(id), ..Sampling::default() },
        max_tokens: Some(14),
        stop: Vec::new(),
        ignore_eos: true,
        markup_tokens: Vec::new(),
        budget: None,
        speculation: (id == 2).then_some(speculation),
        script: engine::speculate::Script::default(),
        constraint: None,
        logprobs: None,
        resumed: Vec::new(),
    }
}

/// The tokens of three answers that go on together.
fn answers(model: &mut Model) -> BTreeMap<u64, Vec<TokenId>> {
    let base = model.new_sequence().unwrap();
    let chunk = engine::Chunk { seq: base, tokens: &shared(), logits: engine::LogitsSelection::None };
    model.forward(&[chunk]).unwrap();
    let (mut scheduler, mut told) = (Scheduler::new(), BTreeMap::<u64, Vec<TokenId>>::new());
    for id in 0..3 {
        let request = request(model, id, base);
        scheduler.submit(request).unwrap();
    }
    let mut n_done = 0;
    while scheduler.step(model, &mut |id, event| match event {
        GenEvent::Prefill { .. } => {}
        GenEvent::Token { id: token, .. } => told.entry(id).or_default().push(token),
        GenEvent::Done(done) => {
            assert_eq!(done.finish, Finish::Length, "{id}");
            n_done += 1;
        }
        GenEvent::Failed(error) => panic!("{id}: {error}"),
    }) {}
    assert_eq!(n_done, 3);
    told
}

#[test]
fn all_answers_go_on() {
    // small runs: prompts are still read when others answer already
    let options = |plan: &FaultPlan| LoadOptions { max_rows: Some(32), ..options(plan) };
    for name in ["llama", "gemma3", "qwen3_5"] {
        let file = open(name);
        let expected = answers(&mut load(&file, &options(&FaultPlan::default())));
        assert!(expected.values().all(|ids| ids.len() == 14), "{name}: {expected:?}");
        let moments: Vec<u64> = if wants_all() { (0..18).collect() } else { vec![2, 5, 11] };
        for at in moments {
            // on the GPU again, where not a bit differs
            let plan = FaultPlan::before(at, GpuFault::Lost);
            let mut model = load(&file, &options(&plan));
            assert_eq!(answers(&mut model), expected, "{name}: lost before submission {at}");
            assert!(plan.is_over());
            assert_eq!(fallbacks(&mut model).len(), 1);
        }
    }
}
