//! A graphics card against the specification, node by node, and against itself: the same bits however a text is cut
//! into batches. Whatever adapter there is will do; on a machine without a card Mesa's software one plays it.
#![cfg(feature = "gpu")]
#![allow(clippy::unwrap_used)] // a failure here fails the test

mod common;
#[path = "gpu/products.rs"]
mod products;

use std::sync::{Arc, OnceLock};

use common::mixed::{MIXED, Mixed, N_VOCAB};
use common::*;
use kernels::backends::Card;
use kernels::cpu::isa::IsaLevel;
use kernels::gpu::{Device, Gpu};
use kernels::*;
use weights::DType;

const CAPACITY: Capacity =
    Capacity { n_pages: 32, n_window_pages: 0, n_aged_pages: 0, max_rows: 64, max_outputs: 64, n_states: 4 };
const PAGES: [u32; 10] = [3, 1, 4, 15, 9, 2, 6, 5, 8, 7];

/// Sums in another order and e^x of the device's own; the state of a delta rule carries them on.
const FLOAT: f32 = 5e-5;
/// A value on the border between two integers of the store goes either way: one of 127, or of 15, of a block.
const ROUNDED: f32 = 2e-3;
const COARSE: f32 = 3e-2;

/// What single nodes are off by, carried through some layers.
const WHOLE: f32 = 1e-3;

/// One device for all tests of this process, which share its pipelines.
fn device() -> Arc<Device> {
    static DEVICE: OnceLock<Arc<Device>> = OnceLock::new();
    let open =
        || Device::open(&Card::Any).expect("mesa-vulkan-drivers, or the driver of a card: `make setup`");
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

/// Batches of one sequence: (ids, positions) cut at `ends`.
fn differs(graph: &Arc<Graph>, n_vocab: usize, tolerance: f32) -> Option<Difference> {
    let text = tokens(50, n_vocab, 9);
    let all: Vec<u32> = (0..50).collect();
    let batch = |range: std::ops::Range<usize>| Batch {
        tokens: &text[range.clone()],
        positions: &all[range.clone()],
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
    for (dtype, kv, window, style) in [
        (DType::F32, KvDType::F32, None, RopeStyle::Interleaved),
        (DType::F16, KvDType::F16, Some(20), RopeStyle::Half),
        (DType::Q8_0, KvDType::Q8_0, None, RopeStyle::Half),
        (DType::Q4_K, KvDType::Q4_0, Some(20), RopeStyle::Interleaved),
    ] {
        let graph = Arc::new(model(Shape { dtype, kv, window, style, ..SMALL }, 21));
        assert_eq!(differs(&graph, SMALL.n_vocab, of_kv(kv)), None, "{dtype} {kv:?}");
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

/// Every format that can be computed with, those that cards have no decoder of their own for among them.
#[test]
fn every_format_is_right() {
    let mut b = GraphBuilder::new(KvLayout::uniform(0, KV)).unwrap();
    let r = &mut Random(5);
    let x = b.embed("embed", &r.tensor(DType::F32, &[16, 256], 1.0), 1.0).unwrap();
    let mut last = x;
    for row in weights::dtype::TABLE.iter().filter(|row| row.codec.is_some()) {
        // what is computed with is the check's own: the graph says which formats
        let data = weights::SharedBytes::from_vec(vec![0; 4 * row.dtype.row_bytes(256)]);
        let view = weights::TensorView { name: row.name, dtype: row.dtype, shape: &[4, 256], data };
        last = b.matmul(row.name, x, &Tensor::host(&view).unwrap(), None).unwrap();
    }
    let last = b.output_rows("output_rows", last).unwrap();
    let graph = b.finish(last).unwrap();
    Gpu::new(device()).check(&graph).unwrap();
}

const KV: KvLayerLayout = KvLayerLayout { n_kv_heads: 2, head_dim: 64, dtype: KvDType::F16, window: None };

#[test]
fn every_operation_agrees_with_the_specification() {
    for (dtype, kv, act, order) in [
        (DType::F32, KvDType::F32, Activation::ClampedSwish { limit: 0.7 }, HeadOrder::Grouped),
        (DType::BF16, KvDType::F16, Activation::Gelu, HeadOrder::Tiled),
        (DType::MXFP4, KvDType::F16, Activation::GeluTanh, HeadOrder::Grouped),
    ] {
        let graph = Arc::new(common::mixed::model(Mixed { dtype, kv, act, order, ..MIXED }, 21));
        assert_eq!(differs(&graph, N_VOCAB, FLOAT), None, "{dtype}");
    }
    let r = &mut Random(77);
    for draw in 0..3 {
        let shape = Mixed::drawn(r);
        let graph = Arc::new(common::mixed::model(shape, r.next()));
        assert_eq!(differs(&graph, N_VOCAB, of_kv(shape.kv)), None, "draw {draw}");
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
    let graph = common::mixed::model(Mixed { dtype: DType::Q8_0, kv: KvDType::F16, ..MIXED }, 5);
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

/// The bytes of a page mean the same on a card as on the processor.
#[test]
fn pages_and_states_move_between_a_card_and_the_processor() {
    let graph = common::mixed::model(Mixed { kv: KvDType::F16, ..MIXED }, 5);
    let text = tokens(60, N_VOCAB, 3);
    let make = |device| Executor::new(graph.clone(), vec![device], CAPACITY).unwrap();
    let (mut card, mut other) = (make(gpu()), make(scalar()));
    let whole = run_chunks(&mut card, &text, &PAGES, &[60]);
    run_chunks(&mut card, &text[..40], &PAGES, &[40]);
    card.kv_copy_page(Retention::All, PAGES[0], 20).unwrap();
    card.kv_copy_page(Retention::All, PAGES[1], 21).unwrap();
    card.copy_state(0, 3).unwrap();
    for layer in 0..graph.kv().layers.len() {
        for page in [20, 21] {
            let bytes = card.kv_page(layer, page).unwrap().into_owned();
            assert!(bytes.iter().any(|b| *b != 0));
            other.kv_write_page(layer, page, &bytes).unwrap();
            assert_eq!(*other.kv_page(layer, page).unwrap(), *bytes);
        }
    }
    other.write_state(1, &card.state(3).unwrap()).unwrap();
    let (positions, outputs): (Vec<u32>, Vec<u32>) = ((40..60).collect(), (0..20).collect());
    for (executor, slot, tolerance) in [(&mut card, 3, 0.0), (&mut other, 1, 1e-4)] {
        let batch = Batch {
            tokens: &text[40..],
            positions: &positions,
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
