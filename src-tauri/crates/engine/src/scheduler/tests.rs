//! A batch that fails, and whose fault it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use weights::{SharedBytes, WeightFile};

use super::*;
use crate::LoadOptions;
use crate::shape::{self, Shape};

const POISON: TokenId = 599;

pub(crate) fn model() -> Model {
    let shape = *shape::find("llama-3.2-1b").unwrap();
    let (n_heads, n_kv_heads, n_vocab) = (4, 2, 600);
    let shape = Shape { n_layers: 2, d_model: 128, d_ff: 128, n_heads, n_kv_heads, n_vocab, ..shape };
    let mut bytes = Vec::new();
    shape::write(&shape, shape::mix("q8_0").unwrap(), 1, &mut bytes).unwrap();
    let file = WeightFile::from_bytes("small", SharedBytes::from_vec(bytes)).unwrap();
    let options = LoadOptions { threads: Some(1), ctx: Some(128), ..LoadOptions::default() };
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
        marks: Vec::new(),
        budget: None,
        speculation: None,
        script: Vec::new(),
        resumed: Vec::new(),
    }
}

fn run(model: &mut Model, requests: Vec<Request>) -> BTreeMap<u64, (Vec<TokenId>, GenEvent)> {
    let mut scheduler = Scheduler::new();
    requests.into_iter().for_each(|request| scheduler.submit(request).unwrap());
    let (mut ids, mut ends) = (BTreeMap::<u64, Vec<TokenId>>::new(), BTreeMap::new());
    let mut take = |id, event| match event {
        GenEvent::Prefill { .. } => {}
        GenEvent::Token { id: token, .. } => ids.entry(id).or_default().push(token),
        end => assert!(ends.insert(id, end).is_none()),
    };
    while scheduler.step(model, &mut take) {}
    ends.into_iter().map(|(id, end)| (id, (ids.remove(&id).unwrap_or_default(), end))).collect()
}

#[test]
fn a_batch_that_fails_fails_only_the_request_whose_fault_it_is() {
    let mut model = model();
    let prompts = [vec![1, 2, 3], vec![7; 9], vec![4, 5, POISON, 6], vec![11, 12]];
    let requests = || prompts.iter().zip(0..).map(|(prompt, id)| request(id, prompt.clone()));
    let expected = run(&mut model, requests().collect());
    model.poison(POISON);
    let outcomes = run(&mut model, requests().collect());
    for (id, outcome) in &outcomes {
        match id {
            2 => assert!(matches!(&outcome.1, GenEvent::Failed(error) if error.code() == "kernels.panicked")),
            _ => assert_eq!(outcome, &expected[id], "request {id}"),
        }
    }
    assert_eq!(outcomes.len(), 4);
    assert_eq!(model.kv_usage().n_pages, 0);
}
