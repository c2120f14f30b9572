//! Every operation in one model: compares `Cpu` with the specification.
//!
//! The bits do not depend on the division into batches, with recurrent states saved, restored and copied in between.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use std::sync::Arc;

use crate::common::mixed::{MIXED, MixedShape, N_VOCAB, model};
use crate::common::*;
use kernels::cpu::isa::IsaLevel;
use kernels::*;
use weights::DType;

const CAPACITY: Capacity = Capacity {
    n_pages: 32,
    n_window_pages: 0,
    n_requantized_pages: 0,
    max_rows: 64,
    max_outputs: 64,
    n_states: 4,
};
const PAGES: [u32; 10] = [3, 1, 4, 15, 9, 2, 6, 5, 8, 7];

/// Largest deviation of a node that quantizes activations to 8 bits: see `backends`. Inputs of experts are not normed here,
/// so that gated units have an even heavier tail.
const QUANTISED: f32 = 0.2;
/// Sums in another order and e^x by polynomial; the state of a delta rule accumulates the differences.
const FLOAT: f32 = 5e-5;
/// Quantized keys are multiplied with 15-bit queries.
const ROUNDED: f32 = 3e-4;

#[test]
fn every_node_agrees_with_the_specification_at_every_level() {
    let text = tokens(50, N_VOCAB, 9);
    let all: Vec<u32> = (0..50).collect();
    let batch = |range: std::ops::Range<usize>| Batch {
        tokens: &text[range.clone()],
        positions: &all[range.clone()],
        kinds: &[],
        given: GivenRows::NONE,
        sequence: &[0; 50][..range.len()],
        page_tables: &[&PAGES],
        window_tables: &[],
        states: &[2],
        outputs: &all[..range.len().min(3)],
    };
    let batches = [batch(0..33), batch(33..34), batch(34..50)];
    for (dtype, act, order) in [
        (DType::F32, Activation::ClampedSwish { limit: 0.7 }, HeadOrder::Grouped),
        (DType::BF16, Activation::Gelu, HeadOrder::Tiled),
        (DType::Q8_0, Activation::GeluTanh, HeadOrder::Grouped),
        (DType::Q4_0, Activation::Silu, HeadOrder::Tiled),
        (DType::Q4_K, Activation::Silu, HeadOrder::Grouped),
    ] {
        let graph = Arc::new(model(MixedShape { dtype, act, order, ..MIXED }, 21));
        for level in IsaLevel::present() {
            let (mut a, mut b) = (Scalar::new(), cpu(2, level));
            let tolerance = if dtype.block_len() > 1 { QUANTISED } else { FLOAT };
            let found = compare(&graph, [&mut a, &mut *b], CAPACITY, &batches, tolerance).unwrap();
            assert_eq!(found, None, "{dtype} {level}");
        }
    }
}

#[test]
fn every_node_agrees_whatever_the_shapes() {
    let r = &mut Random(77);
    let text = tokens(40, N_VOCAB, 9);
    let all: Vec<u32> = (0..40).collect();
    for draw in 0..12 {
        let shape = MixedShape::drawn(r);
        let graph = Arc::new(model(shape, r.next()));
        let mut batches = Vec::new();
        let mut at = 0;
        for n in random_chunks(r, text.len(), 30) {
            batches.push(Batch {
                tokens: &text[at..at + n],
                positions: &all[at..at + n],
                kinds: &[],
                given: GivenRows::NONE,
                sequence: &[0; 40][..n],
                page_tables: &[&PAGES],
                window_tables: &[],
                states: &[1],
                outputs: &all[..n.min(2)],
            });
            at += n;
        }
        for level in IsaLevel::present() {
            let (mut a, mut b) = (Scalar::new(), cpu(1 + r.below(3), level));
            let tolerance = if shape.kv == KvDType::Q8_0 { ROUNDED } else { FLOAT };
            let found = compare(&graph, [&mut a, &mut *b], CAPACITY, &batches, tolerance).unwrap();
            assert_eq!(found, None, "draw {draw} {level}");
            let mut run = |threads, most| {
                let chunks = random_chunks(r, text.len(), most);
                let graph = Graph::clone(&graph);
                let mut executor = Executor::new(graph, vec![cpu(threads, level)], CAPACITY).unwrap();
                run_chunks(&mut executor, &text, &PAGES, &chunks)
            };
            assert!(run(1, 40) == run(3, 5), "draw {draw} {level}");
        }
    }
}

const FORMATS: [DType; 3] = [DType::F32, DType::Q8_0, DType::Q4_K];

#[test]
fn chunks_threads_and_pages_change_no_bit() {
    let r = &mut Random(7);
    for (dtype, window) in FORMATS.into_iter().zip([None, Some(20), Some(70)]) {
        // without a window: more than one chunk of attention
        let text = tokens(if window.is_none() { 300 } else { 120 }, N_VOCAB, 3);
        let graph = model(MixedShape { dtype, window, kv: KvDType::F16, ..MIXED }, 5);
        for (name, backend) in backends() {
            let make = |threads| Executor::new(graph.clone(), vec![backend(threads)], CAPACITY).unwrap();
            let first = run_chunks(&mut make(1), &text, &PAGES, &vec![60; text.len() / 60]);
            assert!(first.iter().all(|x| x.is_finite()), "{name} {dtype}");
            for (threads, most) in [(2, 3), (3, 64)] {
                let chunks = random_chunks(r, text.len(), most);
                let again = run_chunks(&mut make(threads), &text, &PAGES, &chunks);
                assert!(first == again, "{name} {dtype} threads {threads} chunks {chunks:?}");
            }
        }
    }
}

#[test]
fn fused_steps_give_the_bits_of_single_nodes() {
    let (text, positions) = (tokens(50, N_VOCAB, 9), (0..50).collect::<Vec<u32>>());
    for level in IsaLevel::present() {
        for (dtype, n) in FORMATS.into_iter().flat_map(|dtype| [(dtype, 50), (dtype, 1)]) {
            let batch = Batch {
                tokens: &text[..n],
                positions: &positions[..n],
                kinds: &[],
                given: GivenRows::NONE,
                sequence: &[0; 50][..n],
                page_tables: &[&PAGES],
                window_tables: &[],
                states: &[3],
                outputs: &[n as u32 - 1],
            };
            let graph = model(MixedShape { dtype, ..MIXED }, 33);
            let mut fused =
                Executor::with_lifetime(graph.clone(), vec![cpu(2, level)], CAPACITY, ValueLifetime::All)
                    .unwrap();
            fused.run(&batch).unwrap();
            let graph = Arc::new(graph);
            let mut single = cpu(2, level);
            single.prepare(&graph, DeviceId(0), CAPACITY, ValueLifetime::All).unwrap();
            single.begin(&batch).unwrap();
            for (i, node) in graph.nodes().iter().enumerate() {
                single.run(i..i + 1, &batch, None).unwrap();
                let Some(value) = node.output else { continue };
                let n = batch.rows(graph.value(value).rows);
                assert_eq!(fused.value(value, n), single.read(value, n), "{level} {}", node.name);
            }
        }
    }
}

/// Sequences as a scheduler runs them: position and logits of each.
struct Text {
    ids: Vec<u32>,
    pages: Vec<u32>,
    at: usize,
    logits: Vec<f32>,
}

fn texts() -> Vec<Text> {
    let text = |i: u32| Text {
        ids: tokens(40 + 20 * i as usize, N_VOCAB, u64::from(i)),
        pages: (4 * i..4 * i + 4).rev().collect(),
        at: 0,
        logits: Vec::new(),
    };
    (0..4).map(text).collect()
}

/// Rows of some sequences in turn, a few of each, `n(sequence)` of them, mixed row by row.
fn step(executor: &mut Executor, texts: &mut [Text], n: &mut dyn FnMut(usize) -> usize, slots: [u32; 4]) {
    let (mut ids, mut positions, mut sequence) = (Vec::new(), Vec::new(), Vec::new());
    let mut left: Vec<usize> =
        texts.iter().enumerate().map(|(s, text)| n(s).min(text.ids.len() - text.at)).collect();
    while left.iter().any(|n| *n > 0) {
        for s in (0..texts.len()).filter(|s| left[*s] > 0).collect::<Vec<_>>() {
            ids.push(texts[s].ids[texts[s].at]);
            positions.push(texts[s].at as u32);
            sequence.push(s as u32);
            texts[s].at += 1;
            left[s] -= 1;
        }
    }
    if ids.is_empty() {
        return;
    }
    let tables: Vec<Vec<u32>> = texts.iter().map(|t| t.pages.clone()).collect();
    let tables: Vec<&[u32]> = tables.iter().map(Vec::as_slice).collect();
    let outputs: Vec<u32> = (0..ids.len() as u32).collect();
    let batch = Batch {
        tokens: &ids,
        positions: &positions,
        kinds: &[],
        given: GivenRows::NONE,
        sequence: &sequence,
        page_tables: &tables,
        window_tables: &[],
        states: &slots,
        outputs: &outputs,
    };
    executor.run(&batch).unwrap();
    for (logits, s) in executor.output().chunks_exact(N_VOCAB).zip(&sequence) {
        texts[*s as usize].logits.extend_from_slice(logits);
    }
}

#[test]
fn batch_mates_change_no_bit() {
    let r = &mut Random(11);
    for dtype in FORMATS {
        let graph = model(MixedShape { dtype, kv: KvDType::F16, ..MIXED }, 5);
        for (name, backend) in backends() {
            let make = |threads| Executor::new(graph.clone(), vec![backend(threads)], CAPACITY).unwrap();
            let mut together = texts();
            let mut executor = make(3);
            while together.iter().any(|t| t.at < t.ids.len()) {
                step(&mut executor, &mut together, &mut |_| r.below(12), [2, 0, 3, 1]);
            }
            // one executor for all: the previous contents of a slot must not affect the next sequence
            let mut executor = make(1);
            for text in &together {
                let half = text.ids.len() / 2;
                let alone = run_chunks(&mut executor, &text.ids, &PAGES, &[half, half]);
                assert!(alone == text.logits, "{name} {dtype}");
            }
        }
    }
}

#[test]
fn states_can_be_copied_saved_and_restored() {
    for device in [scalar(), cpu(2, IsaLevel::detect())] {
        let mut executor = Executor::new(model(MIXED, 5), vec![device], CAPACITY).unwrap();
        let text = tokens(60, N_VOCAB, 3);
        let whole = run_chunks(&mut executor, &text, &PAGES, &[30, 30]);
        run_chunks(&mut executor, &text[..40], &PAGES, &[40]);
        let saved = executor.state(0).unwrap();
        executor.copy_state(0, 3).unwrap();
        run_chunks(&mut executor, &tokens(10, N_VOCAB, 8), &PAGES[3..], &[10]);
        assert!(saved != executor.state(0).unwrap() && saved == executor.state(3).unwrap());
        executor.write_state(1, &saved).unwrap();
        let positions: Vec<u32> = (40..60).collect();
        let outputs: Vec<u32> = (0..20).collect();
        run_chunks(&mut executor, &text[..40], &PAGES, &[40]);
        for slot in [3, 1] {
            let batch = Batch {
                tokens: &text[40..],
                positions: &positions,
                kinds: &[],
                given: GivenRows::NONE,
                sequence: &[0; 20],
                page_tables: &[&PAGES],
                window_tables: &[],
                states: &[slot],
                outputs: &outputs,
            };
            executor.run(&batch).unwrap();
            assert!(executor.output() == &whole[40 * N_VOCAB..], "slot {slot}");
        }
        assert!(executor.write_state(1, &saved[1..]).is_err());
        assert!(executor.write_state(4, &saved).is_err() && executor.state(4).is_err());
        assert!(executor.copy_state(0, 4).is_err() && executor.copy_state(4, 0).is_err());
    }
}

#[test]
fn batches_that_contradict_their_states_are_refused() {
    let mut executor = Executor::new(model(MIXED, 2), vec![scalar()], CAPACITY).unwrap();
    let good = Batch {
        tokens: &[1, 2, 3, 4],
        positions: &[0, 5, 1, 6],
        kinds: &[],
        given: GivenRows::NONE,
        sequence: &[0, 1, 0, 1],
        page_tables: &[&PAGES, &PAGES[2..]],
        window_tables: &[],
        states: &[3, 0],
        outputs: &[1],
    };
    executor.run(&good).unwrap();
    let bad = [
        Batch { states: &[], ..good },
        Batch { states: &[0], ..good },
        Batch { states: &[0, 0], ..good },
        Batch { states: &[0, 4], ..good },
        Batch { positions: &[0, 5, 2, 6], ..good },
        Batch { positions: &[1, 5, 0, 6], ..good },
        Batch { positions: &[0, 5, 0, 6], ..good },
        Batch { positions: &[u32::MAX, 5, 0, 6], ..good },
    ];
    for batch in bad {
        assert_eq!(executor.run(&batch).unwrap_err().code(), "kernels.batch", "{batch:?}");
    }
    let pages: Vec<u32> = (0..32).collect();
    let far =
        Batch { tokens: &[1], sequence: &[0], page_tables: &[&pages], states: &[0], outputs: &[], ..good };
    executor.run(&Batch { positions: &[999], ..far }).unwrap();
    let error = executor.run(&Batch { positions: &[1000], ..far }).unwrap_err();
    assert_eq!(error.code(), "kernels.batch", "the table of positions has a thousand");
}

/// A router whose logits are NaN.
#[test]
fn nan_in_a_router_is_a_number_not_a_panic() {
    for (_, backend) in backends() {
        let mut b =
            GraphBuilder::new(KvLayout { page_len: PAGE_LEN, layers: vec![], states: vec![] }).unwrap();
        let r = &mut Random(3);
        let x = b.embed("e", &r.tensor(DType::F32, &[8, 32], 1.0), 1.0).unwrap();
        let mut gate = vec![f32::NAN; 5 * 32];
        gate[32..96].fill(0.5);
        let logits = b.matmul("router", x, &tensor(DType::F32, &[5, 32], &gate), None).unwrap();
        let routing = Routing {
            n_experts: 5,
            n_used: 3,
            renormalize: true,
            expert_scale: None,
            choice: ExpertChoice::default(),
        };
        let route = b.moe_route("route", logits, routing).unwrap();
        let weights = (0..5).map(|_| r.tensor(DType::Q8_0, &[64, 32], 1.0)).collect();
        let x = b.expert_matmul("experts", x, route, Experts { weights, bias: None }).unwrap();
        let x = b.expert_sum("sum", x, route).unwrap();
        let route = b.output_rows("routes", route).unwrap();
        let x = b.output_rows("rows", x).unwrap();
        let graph = b.finish(x).unwrap();
        let mut executor =
            Executor::with_lifetime(graph, vec![backend(2)], CAPACITY, ValueLifetime::All).unwrap();
        let logits = run_chunks(&mut executor, &[0, 1, 2, 3, 4, 5, 6, 7], &PAGES, &[7, 1]);
        assert!(logits.iter().all(|x| x.is_nan()));
        assert_eq!(executor.value(route, 1)[..3], [1.0, 2.0, 0.0], "equal ones by number, then what is none");
    }
}

/// After a run, a state from before it is advanced again by the run's first rows, to the bits of a run of only those.
#[test]
fn states_advance_again_by_the_first_rows_of_a_run() {
    let text = tokens(49, N_VOCAB, 5);
    let all: Vec<u32> = (0..49).collect();
    let batch = |range: std::ops::Range<usize>| Batch {
        tokens: &text[range.clone()],
        positions: &all[range.clone()],
        kinds: &[],
        given: GivenRows::NONE,
        sequence: &[0; 49][..range.len()],
        page_tables: &[&PAGES],
        window_tables: &[],
        states: &[2],
        outputs: &[],
    };
    let graph = model(MixedShape { dtype: DType::Q8_0, ..MIXED }, 21);
    let new = || Executor::new(graph.clone(), vec![cpu(2, IsaLevel::from_env().unwrap())], CAPACITY).unwrap();
    assert!(new().state(2).unwrap().len() > 1000, "the model has recurrent layers");
    // The last begins with no state at all.
    for (from, n_rows) in [(33, 2), (33, 7), (33, 16), (0, 5)] {
        for n_kept in 1..n_rows {
            let [mut replaying, mut plain] = [new(), new()];
            for executor in [&mut replaying, &mut plain] {
                if from > 0 {
                    executor.run(&batch(0..from)).unwrap();
                }
            }
            replaying.copy_state(2, 3).unwrap();
            replaying.run(&batch(from..from + n_rows)).unwrap();
            assert!(replaying.can_replay_states(n_rows));
            replaying.replay_states(&Batch { states: &[3], ..batch(from..from + n_kept) }).unwrap();
            plain.run(&batch(from..from + n_kept)).unwrap();
            assert!(
                replaying.state(3).unwrap() == plain.state(2).unwrap(),
                "{n_kept} of {n_rows} after {from}"
            );
            assert!(replaying.state(2).unwrap() != plain.state(2).unwrap());
        }
    }
    assert!(!new().can_replay_states(17));
    let of_no_slot = Batch { states: &[9], ..batch(0..1) };
    assert!(new().replay_states(&of_no_slot).is_err());
}
