//! Models whose layers forget: windows that have passed most of the text, recurrent states. After a fault they are read
//! again from the first token on, and the answer is the same.

use engine::kv::size::Rewind;
use engine::{Devices, FaultPlan, GpuFault, LoadOptions, Model};

use super::{fallbacks, is_on_gpu, load, next, open, options, wants_all};

/// Windows of some pages' length, short convolutions, delta rules, experts.
const FAMILIES: [(&str, Rewind); 5] = [
    ("gemma3", Rewind::Near),
    ("gpt_oss", Rewind::Near),
    ("smollm3-window", Rewind::Near),
    ("lfm2", Rewind::Nowhere),
    ("qwen3_5", Rewind::Nowhere),
];

/// Long enough that windows have let go of pages.
const N_PROMPT: u32 = 150;
const N_TOKENS: usize = 16;

fn prompt(seed: u32) -> Vec<u32> {
    (0..N_PROMPT).map(|i| (i * 37 + seed * 101 + i * i % 11) % 100).collect()
}

/// The likeliest tokens after a prompt.
fn answer(model: &mut Model, seed: u32) -> Vec<u32> {
    let seq = model.new_sequence().unwrap();
    let (mut tokens, mut ids) = (prompt(seed), Vec::new());
    for _ in 0..N_TOKENS {
        tokens = vec![next(model, seq, &tokens)];
        ids.extend(&tokens);
    }
    model.free(seq);
    ids
}

#[test]
fn windows_and_states_are_read_again() {
    for (name, rewind) in FAMILIES {
        let file = open(name);
        let mut model = load(&file, &options(&FaultPlan::default()));
        assert_eq!(model.rewind(), rewind, "{name}");
        // roundings differ: a prompt that the processor, asked alone, answers as a GPU does
        let processor = LoadOptions { devices: Devices::Cpu, ..options(&FaultPlan::default()) };
        let mut processor = load(&file, &processor);
        let mut by_gpu = (0..40).map(|seed| (seed, answer(&mut model, seed)));
        let (seed, expected) = by_gpu.find(|(seed, ids)| answer(&mut processor, *seed) == *ids).unwrap();
        let n = N_TOKENS as u64;
        let moments = if wants_all() { (0..n).collect() } else { vec![0, n / 2] };
        for fault in [GpuFault::Lost, GpuFault::Invalid, GpuFault::Memory] {
            for &at in &moments {
                let plan = FaultPlan::before(at, fault);
                let mut model = load(&file, &options(&plan));
                let found = answer(&mut model, seed);
                assert_eq!(found, expected, "{name}: {fault:?} before submission {at}");
                assert!(plan.is_over());
                assert_eq!(fallbacks(&mut model).len(), 1, "{name}: {fault:?} {at}");
                assert_eq!(is_on_gpu(&model), fault != GpuFault::Invalid, "{name}: {fault:?} {at}");
            }
        }
    }
}
