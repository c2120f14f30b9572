//! Compares a GPU with the specification, node by node, and with itself: the same bits for any division of a text into
//! batches. Any adapter will do; on a machine without a GPU it is Mesa's software renderer.
#![cfg(feature = "gpu")]
#![allow(clippy::unwrap_used)] // a failure here fails the test

mod common;
#[path = "gpu/matmul.rs"]
mod matmul;
#[path = "gpu/products.rs"]
mod products;
#[path = "gpu/submission_stats.rs"]
mod submission_stats;

use std::sync::{Arc, OnceLock};

use common::mixed::{MIXED, MixedShape, N_VOCAB};
use common::*;
use kernels::GpuSelector;
use kernels::cpu::isa::IsaLevel;
use kernels::gpu::{Gpu, GpuContext};
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

/// Sums in another order and the device's e^x; the state of a delta rule accumulates the differences.
const FLOAT: f32 = 5e-5;
/// A value between two integers of the KV format may round either way: an error of 1/127 or 1/15 of a block.
const ROUNDED: f32 = 2e-3;
const COARSE: f32 = 3e-2;

/// Differences of single nodes, accumulated over some layers.
const WHOLE: f32 = 1e-3;

/// One device for all tests of this process, which share its pipelines.
fn device() -> Arc<GpuContext> {
    static DEVICE: OnceLock<Arc<GpuContext>> = OnceLock::new();
    let open = || {
        GpuContext::open(&GpuSelector::Any)
            .expect("mesa-vulkan-drivers, or the driver of a GPU: `make setup`")
    };
    DEVICE.get_or_init(open).clone()
}

fn gpu() -> Box<dyn Backend> {
    Box::new(Gpu::new(device()))
}

fn of_kv(kv: KvDType) -> f32 {
    match kv {
        KvDType::F32 | KvDType::F16 => FLOAT,
        KvDType::Q8_0 => ROUNDED,
        KvDType::Q4_0 => COARSE,
    }
}

/// Batches of one sequence: (ids, positions), split at `ends`.
fn differs(graph: &Arc<Graph>, n_vocab: usize, tolerance: f32) -> Option<NodeDifference> {
    let text = tokens(50, n_vocab, 9);
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
    compare(graph, [&mut Scalar::new(), &mut *gpu()], CAPACITY, &batches, tolerance).unwrap()
}

#[test]
fn every_node_agrees_with_the_specification() {
    for (dtype, kv, values, window, style) in [
        (DType::F32, KvDType::F32, None, None, RopeStyle::Interleaved),
        (DType::F16, KvDType::F16, None, Some(20), RopeStyle::Half),
        (DType::Q8_0, KvDType::Q8_0, None, None, RopeStyle::Half),
        (DType::Q4_K, KvDType::Q4_0, None, Some(20), RopeStyle::Interleaved),
        (DType::F32, KvDType::Q8_0, Some(KvDType::Q4_0), None, RopeStyle::Half),
        (DType::F32, KvDType::F16, Some(KvDType::Q4_0), Some(20), RopeStyle::Half),
        (DType::F32, KvDType::Q4_0, Some(KvDType::F32), None, RopeStyle::Interleaved),
    ] {
        let graph = Arc::new(model(Shape { dtype, kv, values, window, style, ..SMALL }, 21));
        let tolerance = of_kv(kv).max(of_kv(values.unwrap_or(kv)));
        assert_eq!(differs(&graph, SMALL.n_vocab, tolerance), None, "{dtype} {kv:?} {values:?}");
    }
}

#[test]
fn attention_that_looks_ahead_agrees_with_the_specification() {
    for window in [None, Some(1), Some(20), Some(usize::MAX)] {
        let shape = Shape { mask: Mask::Bidirectional, window, ..SMALL };
        let graph = Arc::new(model(shape, 21));
        assert_eq!(differs(&graph, SMALL.n_vocab, FLOAT), None, "{window:?}");
    }
}

/// Every supported format, including those without a GPU decoder.
#[test]
fn every_format_is_right() {
    let mut b = GraphBuilder::new(KvLayout::uniform(0, KV)).unwrap();
    let r = &mut Random(5);
    let x = b.embed("embed", &r.tensor(DType::F32, &[16, 256], 1.0), 1.0).unwrap();
    let mut last = x;
    for row in weights::dtype::TABLE.iter().filter(|row| row.codec.is_some()) {
        // the graph only tells which formats to check
        let data = weights::SharedBytes::from_vec(vec![0; 4 * row.dtype.row_bytes(256)]);
        let view = weights::TensorView { name: row.name, dtype: row.dtype, shape: &[4, 256], data };
        last = b.matmul(row.name, x, &Tensor::host(&view).unwrap(), None).unwrap();
    }
    let last = b.output_rows("output_rows", last).unwrap();
    let graph = b.finish(last).unwrap();
    Gpu::new(device()).verify(&graph).unwrap();
}

const KV: KvLayerLayout =
    KvLayerLayout { n_kv_heads: 2, head_dim: 64, precision: KvDType::F16.both(), window: None };

#[test]
fn every_operation_agrees_with_the_specification() {
    for (dtype, kv, act, order) in [
        (DType::F32, KvDType::F32, Activation::ClampedSwish { limit: 0.7 }, HeadOrder::Grouped),
        (DType::BF16, KvDType::F16, Activation::Gelu, HeadOrder::Tiled),
        (DType::MXFP4, KvDType::F16, Activation::GeluTanh, HeadOrder::Grouped),
    ] {
        let graph = Arc::new(common::mixed::model(MixedShape { dtype, kv, act, order, ..MIXED }, 21));
        assert_eq!(differs(&graph, N_VOCAB, FLOAT), None, "{dtype}");
    }
    let r = &mut Random(77);
    for draw in 0..3 {
        let shape = MixedShape::drawn(r);
        let graph = Arc::new(common::mixed::model(shape, r.next()));
        assert_eq!(differs(&graph, N_VOCAB, of_kv(shape.kv)), None, "draw {draw}");
    }
}

/// Parameters of an attention test.
#[derive(Clone, Copy, Debug)]
struct Heads {
    kv: KvDType,
    n_heads: usize,
    n_kv_heads: usize,
    head_dim: usize,
    mask: Mask,
    window: Option<usize>,
    /// with a cap and sinks
    is_odd: bool,
}

/// Attention over queries, keys and values that come straight from a table.
fn attention(heads: Heads) -> Graph {
    let Heads { kv, n_heads, n_kv_heads, head_dim, mask, window, is_odd } = heads;
    let layer = KvLayerLayout { n_kv_heads, head_dim, precision: kv.both(), window: None };
    let mut b = GraphBuilder::new(KvLayout::uniform(1, layer)).unwrap();
    let r = &mut Random(3);
    let stride = (n_heads + 2 * n_kv_heads) * head_dim;
    let x = b.embed("embed", &r.tensor(DType::F32, &[N_IDS, stride], 1.0), 1.0).unwrap();
    let mut part = |first: usize, n: usize| {
        let columns = Columns { n_groups: 1, stride, start: first * head_dim, width: n * head_dim };
        b.columns(format!("columns {first}"), x, columns).unwrap()
    };
    let (q, k, v) = (part(0, n_heads), part(n_heads, n_kv_heads), part(n_heads + n_kv_heads, n_kv_heads));
    b.kv_write("kv_write", k, v, 0).unwrap();
    let shape = AttentionShape {
        layer: 0,
        n_heads,
        n_kv_heads,
        head_dim,
        scale: 0.3,
        mask,
        window,
        softcap: is_odd.then_some(4.0),
        sinks: is_odd.then(|| (0..n_heads).map(|_| r.normal()).collect()),
    };
    let out = b.attention("attention", q, shape).unwrap();
    let out = b.output_rows("output_rows", out).unwrap();
    b.finish(out).unwrap()
}

const N_IDS: usize = 61;
/// Contexts of three chunks, of two sequences with interleaved pages.
const LONG: Capacity = Capacity { n_pages: 40, ..CAPACITY };
const N_LONG: usize = 560;

/// Runs batches, each a list of (sequence, number of tokens), and returns all outputs of each sequence.
fn run_mixed(executor: &mut Executor, batches: &[&[(usize, usize)]]) -> [Vec<f32>; 2] {
    let tables: [Vec<u32>; 2] = [0, 1].map(|s| (0..20).map(|i| (i * 7 + 3) % 20 * 2 + s).collect());
    let texts = [tokens(N_LONG, N_IDS, 1), tokens(N_LONG, N_IDS, 2)];
    let width = executor.graph().value(executor.graph().output()).width;
    let (mut at, mut out) = ([0; 2], [Vec::new(), Vec::new()]);
    for batch in batches {
        let (mut ids, mut positions, mut sequence) = (Vec::new(), Vec::new(), Vec::new());
        for &(of, n) in *batch {
            ids.extend_from_slice(&texts[of][at[of]..at[of] + n]);
            positions.extend((at[of] as u32..).take(n));
            sequence.extend(std::iter::repeat_n(of as u32, n));
            at[of] += n;
        }
        let outputs: Vec<u32> = (0..ids.len() as u32).collect();
        let batch = Batch {
            tokens: &ids,
            positions: &positions,
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &sequence,
            page_tables: &[&tables[0], &tables[1]],
            window_tables: &[],
            states: &[],
            outputs: &outputs,
        };
        executor.run(&batch).unwrap();
        for (row, of) in executor.output().chunks_exact(width).zip(&sequence) {
            out[*of as usize].extend_from_slice(row);
        }
    }
    out
}

/// Whole and split attention, with narrow and wide workgroups: groups of one, four and more heads per KV head; each KV
/// format; with windows, caps and sinks.
#[test]
fn long_contexts_agree_with_the_specification_and_themselves() {
    let plain = Heads {
        kv: KvDType::F16,
        n_heads: 8,
        n_kv_heads: 2,
        head_dim: 64,
        mask: Mask::Causal,
        window: None,
        is_odd: false,
    };
    // two sequences in one batch
    let whole: Vec<(usize, usize)> = vec![(0, 32), (1, 32)];
    let whole = [vec![&whole[..]; 17], vec![&[(0, 16), (1, 16)][..]]].concat();
    // one or two rows at a time in long contexts, the rest in other batches
    let ahead: &[(usize, usize)] = &[(1, 7), (0, 50)];
    let few: [&[(usize, usize)]; 4] = [&[(0, 1)], &[(1, 2), (0, 3)], &[(1, 1), (0, 1)], &[(0, 8)]];
    let pieces =
        [vec![ahead; 10], vec![&[(1, 64)][..]; 7], few.to_vec(), vec![&[(0, 47), (1, 1)][..]]].concat();
    for heads in [
        plain,
        Heads { kv: KvDType::F32, n_heads: 3, n_kv_heads: 3, head_dim: 20, window: Some(300), ..plain },
        Heads { kv: KvDType::Q8_0, n_heads: 6, n_kv_heads: 1, head_dim: 96, is_odd: true, ..plain },
        Heads { kv: KvDType::Q4_0, n_heads: 2, n_kv_heads: 1, head_dim: 128, window: Some(33), ..plain },
        Heads { n_heads: 5, n_kv_heads: 1, head_dim: 512, is_odd: true, window: Some(257), ..plain },
        Heads { kv: KvDType::F32, n_heads: 2, n_kv_heads: 2, head_dim: 7, ..plain },
    ] {
        let graph = attention(heads);
        let make = |backend| Executor::new(graph.clone(), vec![backend], LONG).unwrap();
        let expected = run_mixed(&mut make(scalar()), &whole);
        let first = run_mixed(&mut make(gpu()), &whole);
        let again = run_mixed(&mut make(gpu()), &pieces);
        for of in 0..2 {
            let off = distance(&expected[of], &first[of]);
            assert!(off < of_kv(heads.kv) * 4.0, "{heads:?}: {off}");
            assert!(first[of][..again[of].len()] == again[of], "{heads:?}: pieces change bits");
        }
    }
}

/// With bidirectional attention a text must be one batch.
#[test]
fn long_texts_that_look_ahead_agree_with_the_specification() {
    let text = tokens(600, N_IDS, 4);
    let pages: Vec<u32> = (0..19).map(|i| (i * 7 + 3) % 19).collect();
    for window in [None, Some(280)] {
        let heads = Heads {
            kv: KvDType::F16,
            n_heads: 4,
            n_kv_heads: 2,
            head_dim: 32,
            mask: Mask::Bidirectional,
            window,
            is_odd: true,
        };
        let capacity = Capacity { n_pages: 19, max_rows: 600, max_outputs: 600, ..CAPACITY };
        let run = |backend| {
            let mut executor = Executor::new(attention(heads), vec![backend], capacity).unwrap();
            run_chunks(&mut executor, &text, &pages, &[600])
        };
        let off = distance(&run(scalar()), &run(gpu()));
        assert!(off < 4.0 * FLOAT, "{window:?}: {off}");
    }
}

/// Of ten thousand columns with many ties, the GPU selects the same as the CPU.
#[test]
fn top_k_is_selected_on_the_gpu() {
    let (n_vocab, d) = (10_007, 8);
    let mut b = GraphBuilder::new(KvLayout::uniform(0, KV)).unwrap();
    let r = &mut Random(5);
    let x = b.embed("embed", &r.tensor(DType::F32, &[N_IDS, d], 1.0), 1.0).unwrap();
    let x = b.output_rows("output_rows", x).unwrap();
    let few: Vec<f32> = (0..n_vocab * d).map(|_| (r.below(3) as f32) - 1.0).collect();
    let logits = b.matmul("logits", x, &common::tensor(DType::F32, &[n_vocab, d], &few), None).unwrap();
    let graph = b.finish(logits).unwrap();
    let positions: Vec<u32> = (0..9).collect();
    let ids = tokens(9, N_IDS, 3);
    for outputs in [&[8][..], &[0, 3, 4, 7], &[]] {
        let batch = Batch {
            tokens: &ids,
            positions: &positions,
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &[0; 9],
            page_tables: &[&PAGES],
            window_tables: &[],
            states: &[],
            outputs,
        };
        for backend in [gpu(), scalar()] {
            let mut executor = Executor::new(graph.clone(), vec![backend], CAPACITY).unwrap();
            executor.run(&batch).unwrap();
            let rows = executor.output().to_vec();
            assert_eq!(rows.len(), outputs.len() * n_vocab);
            // the last is more than a GPU selects
            for k in [1, 2, 40, 104, 128, 1, 300] {
                executor.select_output(OutputSelection::TopK(k));
                executor.run(&batch).unwrap();
                let expected: Vec<TopKEntry> =
                    rows.chunks(n_vocab).flat_map(|row| kernels::ops::top_k::scalar(row, k)).collect();
                assert_eq!(executor.top_k(), expected, "{k} of {} {:?}", outputs.len(), executor.describe());
                assert!(executor.output().is_empty());
            }
            executor.select_output(OutputSelection::Rows);
            executor.run(&batch).unwrap();
            assert!(executor.output() == rows && executor.top_k().is_empty());
        }
    }
}

/// Fused GPU steps compute what the specification does node by node.
#[test]
fn joined_kernels_agree_with_the_specification() {
    let text = tokens(70, SMALL.n_vocab, 1);
    for (kv, style, norms, head_dim) in [
        (KvDType::F32, RopeStyle::Half, false, 32),
        (KvDType::F32, RopeStyle::Interleaved, true, 20),
        (KvDType::F16, RopeStyle::Interleaved, false, 32),
        (KvDType::F16, RopeStyle::Half, true, 256),
        (KvDType::Q8_0, RopeStyle::Half, true, 64),
        (KvDType::Q4_0, RopeStyle::Interleaved, false, 32),
    ] {
        let graph = model(Shape { kv, style, norms, head_dim, ..SMALL }, 5);
        let run = |backend| {
            let mut executor = Executor::new(graph.clone(), vec![backend], CAPACITY).unwrap();
            let out = run_chunks(&mut executor, &text, &PAGES, &[50, 1, 1, 18]);
            (out, executor.kv_page(0, PAGES[0]).unwrap().into_owned())
        };
        let ((expected, page), (found, own)) = (run(scalar()), run(gpu()));
        let off = distance(&expected, &found);
        assert!(off < 20.0 * of_kv(kv), "{kv:?} {norms}: {off}");
        if kv == KvDType::F16 {
            // the last bit of an f16 may round either way
            let differing = page.iter().zip(&own).filter(|(a, b)| a != b).count();
            assert!(differing * 50 < page.len(), "{differing} of {}", page.len());
        }
    }
}

#[test]
fn chunks_and_pages_change_no_bit() {
    let r = &mut Random(7);
    for (dtype, kv, window) in [(DType::Q4_K, KvDType::F16, None), (DType::BF16, KvDType::Q8_0, Some(40))] {
        let text = tokens(280, SMALL.n_vocab, 3); // more than one chunk of attention
        let graph = model(Shape { dtype, kv, window, ..SMALL }, 5);
        let make = || Executor::new(graph.clone(), vec![gpu()], CAPACITY).unwrap();
        let first = run_chunks(&mut make(), &text, &PAGES, &[60, 60, 60, 60, 40]);
        assert!(first.iter().all(|x| x.is_finite()), "{dtype}");
        let chunks = random_chunks(r, text.len(), 30);
        let again = run_chunks(&mut make(), &text, &[11, 3, 17, 5, 2, 19, 1, 0, 31, 30], &chunks);
        assert!(first == again, "{dtype} {kv:?} chunks {chunks:?}");
    }
}

#[test]
fn batch_mates_change_no_bit() {
    let graph = common::mixed::model(MixedShape { dtype: DType::Q8_0, kv: KvDType::F16, ..MIXED }, 5);
    let make = || Executor::new(graph.clone(), vec![gpu()], CAPACITY).unwrap();
    let texts = [tokens(30, N_VOCAB, 1), tokens(30, N_VOCAB, 2)];
    let alone = texts.each_ref().map(|text| run_chunks(&mut make(), text, &PAGES, &[30]));
    let mut executor = make();
    let mut together = [Vec::new(), Vec::new()];
    for at in (0..30).step_by(3) {
        let ids: Vec<u32> = texts.iter().flat_map(|text| text[at..at + 3].to_vec()).collect();
        let positions: Vec<u32> = (0..6).map(|i| at as u32 + i % 3).collect();
        let batch = Batch {
            tokens: &ids,
            positions: &positions,
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &[0, 0, 0, 1, 1, 1],
            page_tables: &[&PAGES[..1], &PAGES[1..2]],
            window_tables: &[],
            states: &[3, 1],
            outputs: &[0, 1, 2, 3, 4, 5],
        };
        executor.run(&batch).unwrap();
        for (of, logits) in together.iter_mut().zip(executor.output().chunks_exact(3 * N_VOCAB)) {
            of.extend_from_slice(logits);
        }
    }
    assert!(alone == together);
}

/// Pages have the same bytes on a GPU as on the CPU.
#[test]
fn pages_and_states_move_between_a_card_and_the_processor() {
    let graph = common::mixed::model(MixedShape { kv: KvDType::F16, ..MIXED }, 5);
    let text = tokens(60, N_VOCAB, 3);
    let make = |device| Executor::new(graph.clone(), vec![device], CAPACITY).unwrap();
    let (mut card, mut other) = (make(gpu()), make(scalar()));
    let whole = run_chunks(&mut card, &text, &PAGES, &[60]);
    run_chunks(&mut card, &text[..40], &PAGES, &[40]);
    card.copy_kv_page(Retention::All, PAGES[0], 20).unwrap();
    card.copy_kv_page(Retention::All, PAGES[1], 21).unwrap();
    card.copy_state(0, 3).unwrap();
    for layer in 0..graph.kv().layers.len() {
        for page in [20, 21] {
            let bytes = card.kv_page(layer, page).unwrap().into_owned();
            assert!(bytes.iter().any(|b| *b != 0));
            other.write_kv_page(layer, page, &bytes).unwrap();
            assert_eq!(*other.kv_page(layer, page).unwrap(), *bytes);
        }
    }
    other.write_state(1, &card.state(3).unwrap()).unwrap();
    let (positions, outputs): (Vec<u32>, Vec<u32>) = ((40..60).collect(), (0..20).collect());
    for (executor, slot, tolerance) in [(&mut card, 3, 0.0), (&mut other, 1, 1e-4)] {
        let batch = Batch {
            tokens: &text[40..],
            positions: &positions,
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &[0; 20],
            page_tables: &[&[20, 21]],
            window_tables: &[],
            states: &[slot],
            outputs: &outputs,
        };
        executor.run(&batch).unwrap();
        assert!(distance(&whole[40 * N_VOCAB..], executor.output()) <= tolerance);
    }
}

#[test]
fn layers_are_shared_out_between_a_card_and_the_processor() {
    let text = tokens(90, SMALL.n_vocab, 1);
    for n_first in [1, 2] {
        let shape = Shape { n_layers: 3, ..SMALL };
        let whole = Executor::new(model(shape, 5), vec![scalar()], CAPACITY);
        let expected = run_chunks(&mut whole.unwrap(), &text, &PAGES, &[50, 40]);
        for devices in [[gpu(), cpu(1, IsaLevel::detect())], [cpu(1, IsaLevel::detect()), gpu()]] {
            let graph = model(Shape { n_first, ..shape }, 5);
            let mut executor = Executor::new(graph, devices.into(), CAPACITY).unwrap();
            let found = run_chunks(&mut executor, &text, &PAGES, &[50, 1, 1, 38]);
            let off = distance(&expected, &found);
            assert!(off < WHOLE, "{off} {:?}", executor.describe());
        }
    }
}
