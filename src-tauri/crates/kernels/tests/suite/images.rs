//! Rows of images: given instead of looked up, merged, rotated by row and column, and seen whole by each other. Every
//! backend and level equals the specification, node by node.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use std::sync::Arc;

use crate::common::*;
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
const N_VOCAB: usize = 40;
const HEAD_DIM: usize = 32;
const WIDTH: usize = 2 * HEAD_DIM;
/// Rows that one output merges.
const N_MERGED: usize = 4;
const N_ROWS: usize = 48;
/// The rows of the image.
const IMAGE: std::ops::Range<usize> = 10..30;
/// Sums in another order.
const CLOSE: f32 = 5e-5;

fn graph(window: Option<usize>) -> Graph {
    let layer =
        KvLayerLayout { n_kv_heads: 1, head_dim: HEAD_DIM, precision: KvDType::F32.both(), window: None };
    let mut b = GraphBuilder::new(KvLayout::uniform(1, layer)).unwrap();
    let r = &mut Random(8);
    let x = b.embed("embed", &r.tensor(DType::F32, &[N_VOCAB, WIDTH], 1.0), 1.5).unwrap();
    let x = b.replace_given("replace", x, 3).unwrap();
    let added = b.given("given", 0, WIDTH).unwrap();
    let x = b.add("add", x, added).unwrap();
    let half = |start| Columns { n_groups: 1, stride: WIDTH, start, width: HEAD_DIM };
    let k = b.columns("k", x, half(HEAD_DIM)).unwrap();
    let rope = |n_heads| RopeShape {
        n_heads,
        head_dim: HEAD_DIM,
        n_rot: HEAD_DIM / 2,
        inv_freq: (0..8).map(|i| 0.7f32.powi(i)).collect(),
        axes: [0, 1, 2, 0, 1, 2, 1, 2].into(),
        mscale: 1.0,
        style: RopeStyle::Half,
    };
    let q = b.rope("q_rope", x, &rope(2)).unwrap();
    let k = b.rope("k_rope", k, &rope(1)).unwrap();
    b.kv_write("kv", k, k, 0).unwrap();
    let shape = AttentionShape {
        layer: 0,
        n_heads: 2,
        n_kv_heads: 1,
        head_dim: HEAD_DIM,
        scale: 0.2,
        mask: Mask::CausalImages,
        window,
        softcap: None,
        sinks: None,
    };
    let first = b.attention("attention", q, shape.clone()).unwrap();
    // a second layer over the same memory, as in vision towers
    let k = b.columns("k2", first, half(0)).unwrap();
    b.kv_rewrite("kv2", k, k, 0).unwrap();
    let x = b.attention("attention2", first, shape).unwrap();
    let joined = b.merge_rows("joined", x, N_MERGED, RowMerge::Concat).unwrap();
    let x = b.merge_rows("mean", x, N_MERGED, RowMerge::Mean).unwrap();
    let x = b.clamp("clamp", x, -0.25, 0.5).unwrap();
    let x = b.join_columns("join", x, joined, 1).unwrap();
    b.finish(x).unwrap()
}

struct Inputs {
    tokens: Vec<u32>,
    positions: Vec<u32>,
    given_rows: Vec<u32>,
    values: Vec<f32>,
    image_ends: Vec<u32>,
    coordinates: Vec<[u32; N_COORDINATES]>,
    outputs: Vec<u32>,
    pages: Vec<u32>,
}

impl Inputs {
    fn new() -> Self {
        let place = |row: usize| match row.checked_sub(IMAGE.start).filter(|_| IMAGE.contains(&row)) {
            Some(at) => [10, 10 + at as u32 / 5, 10 + at as u32 % 5],
            None => [row as u32; N_COORDINATES],
        };
        let end = |row: usize| if IMAGE.contains(&row) { IMAGE.end as u32 } else { 0 };
        let n_values = IMAGE.len() * (WIDTH + 3);
        Self {
            tokens: tokens(N_ROWS, N_VOCAB, 3),
            positions: (0..N_ROWS as u32).collect(),
            given_rows: (IMAGE.start as u32..IMAGE.end as u32).collect(),
            values: (0..n_values).map(|i| (i % 13) as f32 / 6.5 - 1.0).collect(),
            image_ends: (0..N_ROWS).map(end).collect(),
            coordinates: (0..N_ROWS).map(place).collect(),
            outputs: vec![0, 1, 9, 20, (N_ROWS - N_MERGED) as u32],
            pages: vec![5, 2],
        }
    }

    fn with<R>(&self, run: impl FnOnce(&Batch) -> R) -> R {
        run(&Batch {
            tokens: &self.tokens,
            positions: &self.positions,
            kinds: &[],
            given: GivenRows {
                rows: &self.given_rows,
                values: &self.values,
                image_ends: &self.image_ends,
                coordinates: &self.coordinates,
            },
            sequence: &[0; N_ROWS],
            page_tables: &[&self.pages],
            window_tables: &[],
            states: &[],
            outputs: &self.outputs,
        })
    }
}

fn check(name: &str, make: &dyn Fn() -> Box<dyn Backend>) {
    for window in [None, Some(7)] {
        let graph = Arc::new(graph(window));
        let differs = Inputs::new().with(|batch| {
            compare(&graph, [&mut Scalar::new(), &mut *make()], CAPACITY, std::slice::from_ref(batch), CLOSE)
        });
        assert_eq!(differs.unwrap(), None, "{name}, {window:?}");
    }
}

#[test]
fn every_level_agrees_with_the_specification() {
    for (name, make) in backends() {
        check(&name, &|| make(2));
    }
}

#[cfg(feature = "gpu")]
#[test]
fn a_gpu_agrees_with_the_specification() {
    use kernels::gpu::{Gpu, GpuContext};
    let device = GpuContext::open(&GpuSelector::Any)
        .expect("mesa-vulkan-drivers, or the driver of a GPU: `make setup`");
    check("gpu", &|| Box::new(Gpu::new(device.clone())));
}

/// Which rows a change of one row's value reaches, in a single attention.
#[test]
fn an_image_sees_itself_and_what_came_before() {
    let layer =
        KvLayerLayout { n_kv_heads: 1, head_dim: HEAD_DIM, precision: KvDType::F32.both(), window: None };
    let one_layer = |window: Option<usize>| {
        let mut b = GraphBuilder::new(KvLayout::uniform(1, layer)).unwrap();
        let x = b.given("given", 0, HEAD_DIM).unwrap();
        b.kv_write("kv", x, x, 0).unwrap();
        let shape = AttentionShape {
            layer: 0,
            n_heads: 1,
            n_kv_heads: 1,
            head_dim: HEAD_DIM,
            scale: 0.1,
            mask: Mask::CausalImages,
            window,
            softcap: None,
            sinks: None,
        };
        let x = b.attention("attention", x, shape).unwrap();
        let x = b.output_rows("rows", x).unwrap();
        b.finish(x).unwrap()
    };
    let reached = |window: Option<usize>, changed: usize| -> Vec<usize> {
        let mut inputs = Inputs::new();
        inputs.tokens = vec![0; N_ROWS];
        inputs.given_rows = (0..N_ROWS as u32).collect();
        inputs.outputs = inputs.given_rows.clone();
        let mut noise = Random(6);
        inputs.values = (0..N_ROWS * HEAD_DIM).map(|_| noise.normal()).collect();
        let run = |inputs: &Inputs| {
            let mut executor = Executor::new(one_layer(window), vec![scalar()], CAPACITY).unwrap();
            inputs.with(|batch| executor.run(batch)).unwrap();
            executor.output().to_vec()
        };
        let before = run(&inputs);
        inputs.values[changed * HEAD_DIM..(changed + 1) * HEAD_DIM].fill(0.5);
        let after = run(&inputs);
        let row = |all: &[f32], row: usize| all[row * HEAD_DIM..(row + 1) * HEAD_DIM].to_vec();
        (0..N_ROWS).filter(|at| row(&before, *at) != row(&after, *at)).collect()
    };
    // the last row of the image: seen by all of it, and by what follows
    assert_eq!(reached(None, 29), (10..N_ROWS).collect::<Vec<_>>());
    assert_eq!(reached(None, 5), (5..N_ROWS).collect::<Vec<_>>());
    // a window limits what lies behind, not what lies ahead in the image
    assert_eq!(reached(Some(4), 29), (10..33).collect::<Vec<_>>());
    assert_eq!(reached(Some(4), 12), (10..16).collect::<Vec<_>>());
}

#[test]
fn a_batch_that_contradicts_itself_is_refused() {
    let mut executor = Executor::new(graph(None), vec![scalar()], CAPACITY).unwrap();
    let mut refused = |change: &dyn Fn(&mut Inputs), what: &str| {
        let mut inputs = Inputs::new();
        change(&mut inputs);
        let error = inputs.with(|batch| executor.run(batch)).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    };
    refused(&|inputs| inputs.given_rows[1] = 10, "given row");
    refused(&|inputs| inputs.given_rows[19] = 90, "given row");
    refused(&|inputs| inputs.values.truncate(7), "values of given rows");
    refused(&|inputs| inputs.image_ends.truncate(7), "ends of images");
    refused(&|inputs| inputs.image_ends[12] = 12, "end of an image");
    refused(&|inputs| inputs.image_ends[12] = 49, "end of an image");
    refused(&|inputs| inputs.coordinates.truncate(7), "coordinates");
    refused(&|inputs| inputs.outputs = vec![45], "output row");
}
