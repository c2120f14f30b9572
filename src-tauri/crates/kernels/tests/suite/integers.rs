//! Products and attention in integers (`CpuPrecision::I16`): close to the specification node by node, and the same bits
//! for any number of rows and threads.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use std::sync::Arc;

use kernels::cpu::isa::IsaLevel;
use kernels::ops::integer_panel;
use kernels::*;
use weights::DType;

use crate::common::*;

/// No multiple of a tile or a pair of elements.
const WIDTH: usize = 331;
/// More than a strip, and not whole strips.
const HIDDEN: usize = 140;
/// The widths of heads that towers have, and one of an odd length.
const HEAD_DIMS: [usize; 4] = [64, 72, 80, 33];
const N_HEADS: usize = 4;
const N_KV_HEADS: usize = 2;
/// More than two chunks of positions; the last ends inside a page.
const N_ROWS: usize = 523;
/// The largest of some ten thousand elements is about five deviations from its value, which are below 8e-4 each.
const CLOSE: f32 = 4e-3;
/// No two orders of sums differ as much.
const DIFFERENT: f32 = 5e-5;

fn capacity() -> Capacity {
    Capacity {
        n_pages: N_ROWS.div_ceil(PAGE_LEN),
        n_window_pages: 0,
        n_requantized_pages: 0,
        max_rows: N_ROWS,
        max_outputs: N_ROWS,
        n_states: 0,
    }
}

fn integers(threads: usize, level: IsaLevel) -> Box<dyn Backend> {
    let options = CpuOptions {
        threads: Some(threads),
        level: Some(level),
        precision: CpuPrecision::I16,
        ..CpuOptions::default()
    };
    Box::new(Cpu::new(options).unwrap())
}

fn layout(head_dim: usize) -> KvLayout {
    let layer =
        KvLayerLayout { n_kv_heads: N_KV_HEADS, head_dim, precision: KvDType::F32.both(), window: None };
    KvLayout::uniform(1, layer)
}

/// Of a graph without attention.
fn no_context() -> KvLayout {
    KvLayout { layers: Vec::new(), ..layout(64) }
}

/// Products with each format of floats, one with a bias, a gated pair, and attention over all positions.
fn graph(head_dim: usize) -> Graph {
    let r = &mut Random(4);
    let mut b = GraphBuilder::new(layout(head_dim)).unwrap();
    let mut w = |dtype, rows: usize, cols: usize| r.tensor(dtype, &[rows, cols], 1.0 / (cols as f32).sqrt());
    let bias: Vec<f32> = (0..HIDDEN).map(|i| i as f32 / 70.0 - 1.0).collect();
    let x = b.given("given", 0, WIDTH).unwrap();
    let q = b.matmul("q", x, &w(DType::F16, N_HEADS * head_dim, WIDTH), None).unwrap();
    let k = b.matmul("k", x, &w(DType::BF16, N_KV_HEADS * head_dim, WIDTH), None).unwrap();
    let v = b.matmul("v", x, &w(DType::F32, N_KV_HEADS * head_dim, WIDTH), None).unwrap();
    b.kv_write("kv", k, v, 0).unwrap();
    let shape = AttentionShape {
        layer: 0,
        n_heads: N_HEADS,
        n_kv_heads: N_KV_HEADS,
        head_dim,
        scale: 1.0 / (head_dim as f32).sqrt(),
        mask: Mask::Bidirectional,
        window: None,
        softcap: None,
        sinks: None,
    };
    let x = b.attention("attention", q, shape).unwrap();
    let n_out = N_HEADS * head_dim;
    let bias = tensor(DType::F32, &[HIDDEN], &bias);
    let x = b.matmul("hidden", x, &w(DType::F16, HIDDEN, n_out), Some(&bias)).unwrap();
    let gate = b.matmul("gate", x, &w(DType::F16, HIDDEN, HIDDEN), None).unwrap();
    let up = b.matmul("up", x, &w(DType::F16, HIDDEN, HIDDEN), None).unwrap();
    let x = b.glu("glu", gate, up, Activation::Silu).unwrap();
    let x = b.output_rows("rows", x).unwrap();
    b.finish(x).unwrap()
}

/// Calls `run` with rows `first..first + n` of the input.
fn with_rows<R>(first: usize, n: usize, run: impl FnOnce(&Batch) -> R) -> R {
    let mut noise = Random(7);
    let values: Vec<f32> = (0..N_ROWS * WIDTH).map(|_| noise.normal()).collect();
    let rows: Vec<u32> = (0..n as u32).collect();
    let (zeros, pages) = (vec![0; n], Vec::from_iter((0..N_ROWS.div_ceil(PAGE_LEN) as u32).rev()));
    run(&Batch {
        tokens: &zeros,
        positions: &rows,
        kinds: &[],
        given: GivenRows {
            rows: &rows,
            values: &values[first * WIDTH..(first + n) * WIDTH],
            image_ends: &[],
            coordinates: &[],
        },
        sequence: &zeros,
        page_tables: &[&pages],
        window_tables: &[],
        states: &[],
        outputs: &rows,
    })
}

#[test]
fn every_node_is_close_to_the_specification() {
    for level in IsaLevel::present() {
        for head_dim in HEAD_DIMS {
            let graph = Arc::new(graph(head_dim));
            let differs = with_rows(0, N_ROWS, |batch| {
                let backends: [&mut dyn Backend; 2] = [&mut Scalar::new(), &mut *integers(2, level)];
                compare(&graph, backends, capacity(), std::slice::from_ref(batch), CLOSE)
            });
            assert_eq!(differs.unwrap(), None, "{level}, heads of {head_dim}");
        }
    }
}

/// Or the test above would compare floats.
#[test]
fn products_and_attention_are_not_those_of_floats() {
    for level in IsaLevel::present().filter(|level| integer_panel::find(*level).is_some()) {
        let run = |backend, graph: Graph| {
            let mut executor = Executor::new(graph, vec![backend], capacity()).unwrap();
            with_rows(0, N_ROWS, |batch| executor.run(batch)).unwrap();
            executor.output().to_vec()
        };
        for graph in [products as fn() -> Graph, attention] {
            let (fast, exact) = (run(integers(2, level), graph()), run(cpu(2, level), graph()));
            let distance = distance(&exact, &fast);
            assert!((DIFFERENT..CLOSE).contains(&distance), "{level}: {distance}");
        }
    }
}

/// Products without attention: a row depends on itself alone.
fn products() -> Graph {
    let r = &mut Random(5);
    let mut b = GraphBuilder::new(no_context()).unwrap();
    let mut w = |rows: usize, cols: usize| r.tensor(DType::F16, &[rows, cols], 1.0 / (cols as f32).sqrt());
    let x = b.given("given", 0, WIDTH).unwrap();
    let x = b.matmul("hidden", x, &w(HIDDEN, WIDTH), None).unwrap();
    let x = b.matmul("out", x, &w(HIDDEN, HIDDEN), None).unwrap();
    let x = b.output_rows("rows", x).unwrap();
    b.finish(x).unwrap()
}

/// Attention whose queries, keys and values are columns of the input.
fn attention() -> Graph {
    const HEAD_DIM: usize = 40;
    let mut b = GraphBuilder::new(layout(HEAD_DIM)).unwrap();
    let x = b.given("given", 0, WIDTH).unwrap();
    let columns = |start, n_heads| Columns { n_groups: 1, stride: WIDTH, start, width: n_heads * HEAD_DIM };
    let q = b.columns("q", x, columns(0, N_HEADS)).unwrap();
    let k = b.columns("k", x, columns(160, N_KV_HEADS)).unwrap();
    let v = b.columns("v", x, columns(240, N_KV_HEADS)).unwrap();
    b.kv_write("kv", k, v, 0).unwrap();
    let shape = AttentionShape {
        layer: 0,
        n_heads: N_HEADS,
        n_kv_heads: N_KV_HEADS,
        head_dim: HEAD_DIM,
        scale: 0.16,
        mask: Mask::Bidirectional,
        window: None,
        softcap: None,
        sinks: None,
    };
    let x = b.attention("attention", q, shape).unwrap();
    let x = b.output_rows("rows", x).unwrap();
    b.finish(x).unwrap()
}

#[test]
fn bits_depend_neither_on_threads_nor_on_other_rows() {
    for level in IsaLevel::present() {
        let run = |threads, graph: Graph, first, n| {
            let backend = vec![integers(threads, level)];
            let mut executor = Executor::new(graph, backend, capacity()).unwrap();
            with_rows(first, n, |batch| executor.run(batch)).unwrap();
            executor.output().to_vec()
        };
        for head_dim in HEAD_DIMS {
            let one = run(1, graph(head_dim), 0, N_ROWS);
            assert_eq!(one, run(3, graph(head_dim), 0, N_ROWS), "{level}, heads of {head_dim}");
        }
        let all = run(2, products(), 0, N_ROWS);
        for (first, n) in [(0, 1), (5, 97), (400, N_ROWS - 400)] {
            let some = run(2, products(), first, n);
            assert_eq!(all[first * HIDDEN..(first + n) * HIDDEN], some, "{level}: rows from {first}, {n}");
        }
    }
}
