//! A graphics card that fails while an answer is written: whatever fails and whenever, the answer is the same, and it
//! is told once that something was the matter.

use std::sync::Arc;

use engine::{Chunk, Devices, FaultPlan, GpuFault, LoadOptions, Model, Wanted};
use weights::WeightFile;

const FAULTS: [GpuFault; 5] =
    [GpuFault::Lost, GpuFault::Memory, GpuFault::Invalid, GpuFault::TimeOut, GpuFault::Wrong];
const N_TOKENS: usize = 64;
/// Set to have every fault at every submission; otherwise each fault has some.
const ALL_VARIABLE: &str = "INGLENOOK_ALL_FAULTS";

fn load(file: &Arc<WeightFile>, faults: &FaultPlan) -> Model {
    let options = LoadOptions {
        devices: Devices::Gpu { layers: None },
        faults: faults.clone(),
        ctx: Some(256),
        threads: Some(1),
        max_sequences: 2,
        ..LoadOptions::default()
    };
    let model = Model::load(file.clone(), &options, &mut |_| {}).unwrap();
    assert_eq!(model.info().instead, None);
    model
}

/// The likeliest tokens after a prompt; another sequence lives beside it. Submissions: the other's prompt, the prompt,
/// a token each.
fn answer(model: &mut Model) -> Vec<u32> {
    let other = model.new_sequence().unwrap();
    model.forward(&[Chunk { seq: other, tokens: &[5, 6, 7, 8], logits: Wanted::None }]).unwrap();
    let seq = model.new_sequence().unwrap();
    let (mut ids, mut next) = (Vec::new(), vec![1, 9, 17, 4]);
    for _ in 0..N_TOKENS {
        let logits = model.forward(&[Chunk { seq, tokens: &next, logits: Wanted::Last }]).unwrap();
        let row = logits.row(0).unwrap();
        let best = (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap() as u32;
        ids.push(best);
        next = vec![best];
    }
    // what the other one held is there again
    let logits = model.forward(&[Chunk { seq: other, tokens: &[9], logits: Wanted::Last }]).unwrap();
    let row = logits.row(0).unwrap();
    ids.push((0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap() as u32);
    ids
}

#[test]
fn an_answer_goes_on_where_it_was() {
    let dir = inglenook_tests::workspace_root().join("tests/reference/families/llama");
    let file = Arc::new(WeightFile::open(&dir).unwrap());
    let expected = answer(&mut load(&file, &FaultPlan::default()));
    let every = std::env::var_os(ALL_VARIABLE).is_some();
    for (i, fault) in FAULTS.into_iter().enumerate() {
        let times: Vec<u64> =
            if every { (0..N_TOKENS as u64 + 2).collect() } else { vec![1 + 13 * i as u64] };
        for at in times {
            let plan = FaultPlan::before(at, fault);
            let mut model = load(&file, &plan);
            assert_eq!(answer(&mut model), expected, "{fault:?} before submission {at}");
            // a prompt whose logits nobody wanted has no wrong ones
            let unseen = fault == GpuFault::Wrong && at == 0;
            assert!(plan.is_over(), "{fault:?} {at}");
            assert_eq!(model.take_fault().is_some(), !unseen, "{fault:?} {at}");
            assert_eq!(model.take_fault(), None, "{fault:?} {at}: it is told once");
            let is_card = !model.info().devices[0].starts_with("cpu");
            let passes = matches!(fault, GpuFault::Lost | GpuFault::TimeOut) || unseen;
            assert_eq!(is_card, passes, "{fault:?} {at}: {:?}", model.info().devices);
        }
    }
}
