//! Step costs add up to the graph: every weight counts once, arithmetic equals a hand calculation, on every backend.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use crate::common::*;
use kernels::*;

/// Steps of one batch of `n` rows after `before` others.
fn steps(device: Box<dyn Backend>, graph: Graph, before: usize, n: usize) -> Vec<(String, StepCost)> {
    let capacity = Capacity {
        n_pages: 4,
        n_window_pages: 0,
        n_requantized_pages: 0,
        max_rows: 64,
        max_outputs: 1,
        n_states: 0,
    };
    let mut executor = Executor::new(graph, vec![device], capacity).unwrap();
    let positions: Vec<u32> = (before as u32..(before + n) as u32).collect();
    let batch = Batch {
        tokens: &vec![1; n],
        positions: &positions,
        kinds: &[],
        given: GivenRows::NONE,
        sequence: &vec![0; n],
        page_tables: &[&[0, 1, 2, 3]],
        window_tables: &[],
        states: &[],
        outputs: &[0],
    };
    let mut seen = Vec::new();
    let mut observe =
        |ran: &StepProfile| seen.push((format!("{} {}", ran.operation(), ran.label()), ran.cost()));
    executor.run_observed(&batch, Some(&mut observe)).unwrap();
    seen
}

#[test]
fn products_and_attention_are_counted_once_on_every_backend() {
    let Shape { d, n_heads, n_kv_heads, head_dim, ffn, n_vocab, n_layers, .. } = SMALL;
    let (q, kv) = (n_heads * head_dim, n_kv_heads * head_dim);
    let layer = d * (2 * q + 2 * kv + 3 * ffn);
    let (before, n) = (40, 3);
    let seen: u64 = (before + 1..=before + n).map(|seen| seen as u64).sum();
    for (name, make) in backends() {
        let steps = steps(make(2), model(SMALL, 1), before, n);
        let of = |op: &str| {
            let costs = steps.iter().filter(|(what, _)| what.starts_with(op)).map(|(_, cost)| *cost);
            costs.fold(StepCost::default(), |a, b| a + b)
        };
        let products = StepCost {
            bytes: 4 * (n_layers * layer + d * n_vocab) as u64,
            // logits of one row only
            ops: 2 * (n * n_layers * layer + d * n_vocab) as u64,
        };
        assert_eq!(of("matmul "), products, "{name}: {steps:?}");
        let attention = StepCost {
            bytes: (n_layers * (before + n) * 2 * kv * 4) as u64,
            ops: n_layers as u64 * 4 * q as u64 * seen,
        };
        assert_eq!(of("attention "), attention, "{name}");
    }
}

#[test]
fn steps_are_named_by_what_they_do() {
    let steps = steps(cpu(1, kernels::cpu::isa::IsaLevel::Portable), model(SMALL, 1), 0, 1);
    for what in ["matmul 0.q+k+v F32 256→384", "matmul 0.gate+up+glu F32 256→512", "attention 0.attention"]
    {
        assert!(steps.iter().any(|(step, _)| step == what), "{what}: {steps:?}");
    }
}
