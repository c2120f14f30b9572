//! `Cpu` against the specification, two devices in one plan, and `compare` itself.

use std::sync::Arc;

use crate::common::*;
use kernels::cpu::isa::IsaLevel;
use kernels::*;
use weights::DType;

const CAPACITY: Capacity = Capacity {
    n_pages: 16,
    n_window_pages: 0,
    n_requantized_pages: 0,
    max_rows: 64,
    max_outputs: 64,
    n_states: 0,
};
const PAGES: [u32; 10] = [3, 1, 4, 15, 9, 2, 6, 5, 8, 7];

/// Largest deviation of a node that quantizes activations to 8 bits, relative to its root mean square. A block of 256 whose
/// maximum is ten times its mean (gated units) has steps of a thirteenth of the mean, hence an error of 2.3 %. The worst of
/// ten thousand elements is four times that.
const QUANTISED: f32 = 0.12;
/// Sums in another order and e^x by polynomial.
const FLOAT: f32 = 2e-5;
/// Quantized keys are multiplied with 15-bit queries.
const ROUNDED: f32 = 3e-4;

fn tolerance(dtype: DType, kv: KvDType) -> f32 {
    let rounded = [KvDType::Q8_0, KvDType::Q4_0].contains(&kv);
    let float = if rounded { ROUNDED } else { FLOAT };
    let quantised = dtype.block_len() > 1;
    if quantised { QUANTISED } else { float }
}

#[test]
fn every_node_agrees_with_the_specification_at_every_level() {
    let text = tokens(50, SMALL.n_vocab, 9);
    let all: Vec<u32> = (0..50).collect();
    let batch = |range: std::ops::Range<usize>| Batch {
        tokens: &text[range.clone()],
        positions: &all[range.clone()],
        kinds: &[],
        given: GivenRows::NONE,
        sequence: &[0; 50][..range.len()],
        page_tables: &[&PAGES],
        window_tables: &[],
        states: &[],
        outputs: &all[..range.len().min(3)],
    };
    let batches = [batch(0..33), batch(33..34), batch(34..50)];
    for dtype in [DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0, DType::Q4_K, DType::Q6_K] {
        for (kv, values, window, style) in [
            (KvDType::F32, None, None, RopeStyle::Interleaved),
            (KvDType::F16, None, Some(20), RopeStyle::Half),
            (KvDType::Q8_0, None, None, RopeStyle::Half),
            (KvDType::Q4_0, None, Some(20), RopeStyle::Interleaved),
            (KvDType::Q8_0, Some(KvDType::Q4_0), None, RopeStyle::Half),
            (KvDType::F16, Some(KvDType::Q8_0), Some(20), RopeStyle::Half),
        ] {
            let graph = Arc::new(model(Shape { dtype, kv, values, window, style, ..SMALL }, 21));
            for level in IsaLevel::present() {
                let (mut a, mut b) = (Scalar::new(), cpu(2, level));
                let found =
                    compare(&graph, [&mut a, &mut *b], CAPACITY, &batches, tolerance(dtype, kv)).unwrap();
                assert_eq!(found, None, "{dtype} {kv:?} {level}");
            }
        }
    }
}

#[test]
fn compare_names_the_first_node_that_differs() {
    let graph = Arc::new(model(Shape { kv: KvDType::Q4_0, ..SMALL }, 21));
    let ids = tokens(40, SMALL.n_vocab, 9);
    let positions: Vec<u32> = (0..40).collect();
    let batch = Batch {
        tokens: &ids,
        positions: &positions,
        kinds: &[],
        given: GivenRows::NONE,
        sequence: &[0; 40],
        page_tables: &[&PAGES],
        window_tables: &[],
        states: &[],
        outputs: &[39],
    };
    let (mut a, mut b) = (Scalar::new(), cpu(1, IsaLevel::detect()));
    let found = compare(&graph, [&mut a, &mut *b], CAPACITY, &[batch], 0.0).unwrap().unwrap();
    assert_eq!((found.node.as_str(), found.op), ("0.norm", "rms_norm"));
    assert!(found.relative > 0.0 && found.relative < 1e-5);
}

#[test]
fn fused_steps_give_the_bits_of_single_nodes() {
    for level in IsaLevel::present() {
        for dtype in [DType::F32, DType::Q4_K] {
            let graph = model(Shape { dtype, kv: KvDType::F16, ..SMALL }, 33);
            let ids = tokens(50, SMALL.n_vocab, 9);
            let positions: Vec<u32> = (0..50).collect();
            let batch = Batch {
                tokens: &ids,
                positions: &positions,
                kinds: &[],
                given: GivenRows::NONE,
                sequence: &[0; 50],
                page_tables: &[&PAGES],
                window_tables: &[],
                states: &[],
                outputs: &[7, 49],
            };
            let mut fused =
                Executor::with_lifetime(graph.clone(), vec![cpu(2, level)], CAPACITY, ValueLifetime::All)
                    .unwrap();
            fused.run(&batch).unwrap();
            // without `ValueLifetime::All` less is written
            let mut needed = Executor::new(graph.clone(), vec![cpu(2, level)], CAPACITY).unwrap();
            needed.run(&batch).unwrap();
            assert_eq!(needed.output(), fused.output(), "{level}");
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

#[test]
fn two_devices_in_one_plan_give_what_one_gives() {
    let ids = tokens(90, SMALL.n_vocab, 1);
    let chunks = [50, 1, 1, 38];
    let split = Shape { n_layers: 4, n_first: 2, kv: KvDType::F16, ..SMALL };
    let whole = Shape { n_first: usize::MAX, ..split };
    let expected = run_chunks(
        &mut Executor::new(model(whole, 2), vec![scalar()], CAPACITY).unwrap(),
        &ids,
        &PAGES,
        &chunks,
    );
    let level = IsaLevel::detect();
    for devices in [vec![scalar(), scalar()], vec![cpu(2, level), scalar()], vec![scalar(), cpu(2, level)]] {
        let mut executor = Executor::new(model(split, 2), devices, CAPACITY).unwrap();
        let got = run_chunks(&mut executor, &ids, &PAGES, &chunks);
        let far = distance(&expected, &got);
        // keys and values are rounded to f16: the last bit may differ
        assert!(far < 1e-3, "{:?}: {far}", executor.describe());
        for layer in 0..4 {
            assert!(executor.kv_page(layer, PAGES[0]).unwrap().iter().any(|b| *b != 0), "layer {layer}");
        }
    }
}

#[test]
fn nan_is_farther_than_every_limit() {
    for (a, b) in [([1.0, 2.0], [1.0, f32::NAN]), ([f32::NAN, 2.0], [1.0, 2.0])] {
        assert_eq!(distance(&a, &b), f32::INFINITY, "{a:?} {b:?}");
    }
}

#[test]
fn nan_in_the_weights_is_a_number_not_a_panic() {
    for level in IsaLevel::present() {
        let mut b = GraphBuilder::new(KvLayout::uniform(
            1,
            KvLayerLayout { n_kv_heads: 1, head_dim: 8, precision: KvDType::F16.both(), window: None },
        ))
        .unwrap();
        let bad = tensor(DType::F32, &[4, 8], &[f32::NAN; 32]);
        let x = b.embed("e", &bad, 1.0).unwrap();
        b.kv_write("kv", x, x, 0).unwrap();
        let attention = AttentionShape {
            layer: 0,
            n_heads: 1,
            n_kv_heads: 1,
            head_dim: 8,
            scale: 1.0,
            mask: Mask::Causal,
            window: None,
            softcap: None,
            sinks: None,
        };
        let a = b.attention("a", x, attention).unwrap();
        let g = b.glu("g", a, x, Activation::GeluTanh).unwrap();
        let o = b.output_rows("o", g).unwrap();
        let mut executor = Executor::new(b.finish(o).unwrap(), vec![cpu(2, level)], CAPACITY).unwrap();
        let logits = run_chunks(&mut executor, &[0, 1, 2, 3], &PAGES, &[3, 1]);
        assert!(logits.iter().all(|x| x.is_nan()), "{level}");
    }
}

#[test]
fn batches_that_contradict_themselves_are_refused() {
    let mut executor = Executor::new(model(SMALL, 2), vec![scalar()], CAPACITY).unwrap();
    let good = Batch {
        tokens: &[1, 2],
        positions: &[0, 1],
        kinds: &[],
        given: GivenRows::NONE,
        sequence: &[0, 0],
        page_tables: &[&PAGES],
        window_tables: &[],
        states: &[],
        outputs: &[1],
    };
    executor.run(&good).unwrap();
    assert_eq!(executor.output().len(), SMALL.n_vocab);
    let bad = [
        Batch { tokens: &[], positions: &[], sequence: &[], outputs: &[], ..good },
        Batch { tokens: &[1, 97], ..good },
        Batch { positions: &[0], ..good },
        Batch { positions: &[0, 320], ..good },
        Batch { sequence: &[0, 1], ..good },
        Batch { page_tables: &[&[16]], ..good },
        Batch { outputs: &[2], ..good },
        Batch { outputs: &[1, 1], ..good },
    ];
    for batch in bad {
        let error = executor.run(&batch).unwrap_err();
        assert_eq!(error.code(), "kernels.batch", "{batch:?}");
        assert!(executor.output().is_empty());
    }
    executor.run(&Batch { outputs: &[], ..good }).unwrap();
    assert!(executor.output().is_empty());
}

#[test]
fn released_devices_fail_as_lost_ones_do() {
    let (ids, page) = (tokens(8, SMALL.n_vocab, 9), [1, 2]);
    let mut executor = Executor::new(model(SMALL, 21), vec![cpu(1, IsaLevel::detect())], CAPACITY).unwrap();
    run_chunks(&mut executor, &ids, &PAGES, &[8]);
    let described = executor.describe();
    executor.release();
    assert_eq!(executor.describe(), described);
    assert!(executor.output().is_empty());
    let batch = Batch {
        tokens: &ids[..1],
        positions: &[8],
        kinds: &[],
        given: GivenRows::NONE,
        sequence: &[0],
        page_tables: &[&PAGES],
        window_tables: &[],
        states: &[],
        outputs: &[0],
    };
    let bytes = vec![0; executor.kv_layout(0, page[0]).page_bytes()];
    let outcomes = [
        executor.run(&batch),
        executor.kv_page(0, page[0]).map(drop),
        executor.write_kv_page(0, page[0], &bytes),
        executor.copy_kv_page(Retention::All, page[0], page[1]),
    ];
    assert!(outcomes.into_iter().all(|outcome| outcome.unwrap_err().code() == "kernels.gpu_lost"));
    assert!(executor.output().is_empty());
}
