//! Matrix multiplication by every GPU method: lane reductions with subgroups and with memory, f32 and f16 tiles, matrices
//! in several slices, experts slot by slot and grouped.

use std::sync::{Arc, OnceLock};

use kernels::GpuSelector;
use kernels::gpu::{Gpu, GpuContext, GpuOptions};
use kernels::*;
use test_support::{Missing, skip};
use weights::DType;

use crate::common::*;
use crate::{FLOAT, PAGES};

const CAPACITY: Capacity = Capacity {
    n_pages: 16,
    n_window_pages: 0,
    n_requantized_pages: 0,
    max_rows: 72,
    max_outputs: 72,
    n_states: 1,
};
const N_VOCAB: usize = 50;
/// Operands rounded to eleven bits, each off by up to 2⁻¹¹ of itself, in sums that may cancel.
const HALVED: f32 = 5e-3;

/// GPUs opened with different options, each once.
static WAYS: [(&str, GpuOptions, OnceLock<Arc<GpuContext>>); 5] = [
    ("subgroups", PLAIN, OnceLock::new()),
    ("memory", GpuOptions { lane_reduction: LaneReduction::SharedMemory, ..PLAIN }, OnceLock::new()),
    ("halves", GpuOptions { precision: Precision::F16, ..PLAIN }, OnceLock::new()),
    ("pieces", GpuOptions { max_binding_bytes: Some(650_000), ..PLAIN }, OnceLock::new()),
    ("short submissions", GpuOptions { max_submission_cost: Some(SHORT), ..PLAIN }, OnceLock::new()),
];

const PLAIN: GpuOptions = GpuOptions {
    lane_reduction: LaneReduction::Subgroups,
    precision: Precision::F32,
    max_binding_bytes: None,
    max_submission_cost: None,
};
/// Submission cost below that of any tile of these graphs, so that multiplications are split as far as possible.
const SHORT: u64 = 100_000;

fn on(way: usize) -> Box<dyn Backend> {
    let (_, uses, device) = &WAYS[way];
    let open =
        || GpuContext::open_using(&GpuSelector::Any, *uses).expect("what the other tests of cards have");
    Box::new(Gpu::new(device.get_or_init(open).clone()))
}

fn is_halved(uses: GpuOptions) -> bool {
    uses.precision == Precision::F16
}

fn tolerance(way: usize) -> f32 {
    if is_halved(WAYS[way].1) { HALVED } else { FLOAT }
}

/// Batch sizes that use every method: a tile with a remainder, one row, few rows, just below a tile.
const BATCHES: [usize; 5] = [70, 1, 5, 32, 33];

/// The first node that differs from the specification.
fn difference(graph: &Arc<Graph>, way: usize) -> Option<NodeDifference> {
    let text = tokens(160, N_VOCAB, 9);
    let all: Vec<u32> = (0..160).collect();
    let mut at = 0;
    let batches = BATCHES.map(|n| {
        let range = at..at + n;
        at += n;
        Batch {
            tokens: &text[range.clone()],
            positions: &all[range],
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &[0; 160][..n],
            page_tables: &[&PAGES],
            window_tables: &[],
            states: &[],
            outputs: &all[..n],
        }
    });
    compare(graph, [&mut Scalar::new(), &mut *on(way)], CAPACITY, &batches, tolerance(way)).unwrap()
}

/// The bits of each row, for batches of these lengths.
fn bits(graph: &Graph, way: usize, chunks: &[usize]) -> Vec<u32> {
    let mut executor = Executor::new(graph.clone(), vec![on(way)], CAPACITY).unwrap();
    let text = tokens(chunks.iter().sum(), N_VOCAB, 9);
    run_chunks(&mut executor, &text, &PAGES, chunks).iter().map(|x| x.to_bits()).collect()
}

fn builder() -> GraphBuilder {
    let layer = KvLayerLayout { n_kv_heads: 1, head_dim: 32, precision: KvDType::F16.both(), window: None };
    GraphBuilder::new(KvLayout::uniform(0, layer)).unwrap()
}

/// x · Wᵀ + bias for all tokens, and x · Wᵀ for the output rows.
fn products(dtype: DType, k: usize, n_out: usize) -> Graph {
    scaled_products(dtype, k, n_out, 1.0)
}

/// The same with x multiplied by `scale`.
fn scaled_products(dtype: DType, k: usize, n_out: usize, scale: f32) -> Graph {
    let (r, mut b) = (&mut Random(k as u64), builder());
    let x = b.embed("embed", &r.tensor(DType::F32, &[N_VOCAB, k], 1.0), scale).unwrap();
    let weight = r.tensor(dtype, &[n_out, k], 1.0 / (k as f32).sqrt());
    let bias = r.tensor(DType::F32, &[n_out], 1.0);
    let y = b.matmul("of tokens", x, &weight, Some(&bias)).unwrap();
    let y = b.output_rows("output_rows", y).unwrap();
    let x = b.output_rows("rows of x", x).unwrap();
    let z = b.matmul("of outputs", x, &weight, None).unwrap();
    let sum = b.add("sum", y, z).unwrap();
    b.finish(sum).unwrap()
}

/// Rows that are not whole blocks; fewer, as many and more blocks than partial sums; outputs with tile remainders.
const SHAPES: [(DType, usize, usize); 10] = [
    (DType::F32, 20, 3),
    (DType::F32, 1061, 300),
    (DType::Q4_K, 1280, 129),
    (DType::F16, 1100, 70),
    (DType::BF16, 96, 129),
    (DType::Q8_0, 32, 1),
    (DType::Q8_0, 1120, 130),
    (DType::Q4_0, 2080, 67),
    (DType::Q6_K, 256, 40),
    (DType::MXFP4, 1024, 64),
];

/// All cases with default options; the first `n` with all others too, whose pipelines are slow to compile.
fn cases<T>(all: &[T], n: usize) -> impl Iterator<Item = (usize, &'static str, &T)> {
    WAYS.iter().enumerate().flat_map(move |(way, (name, ..))| {
        let len = if way == 0 { all.len() } else { n };
        all[..len].iter().map(move |case| (way, *name, case))
    })
}

#[test]
fn every_way_agrees_with_the_specification() {
    for (way, name, &(dtype, k, n_out)) in cases(&SHAPES, 3) {
        let found = difference(&Arc::new(products(dtype, k, n_out)), way);
        assert_eq!(found, None, "{name}: {dtype} {n_out} x {k}");
    }
}

#[test]
fn a_row_has_the_same_bits_alone_among_few_and_among_many() {
    // the second has operands below the normal range of f16
    let cases = [(DType::F32, 1061, 300, 1.0), (DType::F32, 1061, 300, 1e-3), (DType::Q4_K, 1280, 129, 1.0)];
    for (dtype, k, n_out, scale) in cases {
        let graph = scaled_products(dtype, k, n_out, scale);
        let of_floats = bits(&graph, 0, &[70]);
        for (way, (name, uses, _)) in WAYS.iter().enumerate() {
            let many = bits(&graph, way, &[70]);
            assert!(many == bits(&graph, way, &[1; 70]), "{name}: {dtype} one by one");
            assert!(many == bits(&graph, way, &[1, 9, 33, 27]), "{name}: {dtype}");
            // neither subgroups nor slices change a bit; f16 changes most
            assert_eq!(many == of_floats, !is_halved(*uses), "{name}: {dtype}");
        }
    }
}

/// Prompts are close to the specification; answers, and batches of several sequences, have the bits of single precision.
#[test]
fn cooperative_matrices_multiply_prompts_only() {
    let uses = GpuOptions { precision: Precision::Matrices, ..PLAIN };
    let context = match GpuContext::open_using(&GpuSelector::Any, uses) {
        Ok(context) => context,
        Err(error) => {
            assert!(error.to_string().contains("no cooperative matrices"), "{error}");
            skip!(Missing::Gpu, "{error}");
        }
    };
    let open = || -> Box<dyn Backend> { Box::new(Gpu::new(context.clone())) };
    let text = tokens(70, N_VOCAB, 9);
    let run = |graph: &Graph, device: Box<dyn Backend>, chunks: &[usize]| {
        let mut executor = Executor::new(graph.clone(), vec![device], CAPACITY).unwrap();
        run_chunks(&mut executor, &text, &PAGES, chunks)
    };
    for (dtype, k, n_out) in SHAPES {
        let graph = products(dtype, k, n_out);
        let expected = run(&graph, Box::new(Scalar::new()), &[70]);
        let found = run(&graph, open(), &[70]);
        let size = (expected.iter().map(|x| x * x).sum::<f32>() / expected.len() as f32).sqrt();
        for (a, b) in expected.iter().zip(&found) {
            assert!((a - b).abs() <= HALVED * size, "{dtype} {n_out} x {k}: {b}, not {a}");
        }
        assert!(expected != found, "{dtype}: they round");
        let floats = run(&graph, on(0), &[70]);
        for chunks in [&[1, 5, 32, 32][..], &[MIN_PROMPT_ROWS - 1, 7]] {
            assert_eq!(run(&graph, open(), chunks), floats, "{dtype}: few rows");
        }
    }
}

/// Two expert multiplications: the first of tokens, the second of their slots.
fn experts(dtype: DType, n_experts: usize, n_used: usize, k: usize) -> Graph {
    let (r, mut b) = (&mut Random((n_experts + k) as u64), builder());
    let x = b.embed("embed", &r.tensor(DType::F32, &[N_VOCAB, k], 1.0), 1.0).unwrap();
    let of = Columns { n_groups: 1, stride: k, start: 0, width: n_experts };
    let logits = b.columns("logits", x, of).unwrap();
    let choice = ExpertChoice::default();
    let routing = Routing { n_experts, n_used, renormalize: true, expert_scale: None, choice };
    let route = b.moe_route("route", logits, routing).unwrap();
    let mut of = |bias: bool| Experts {
        weights: (0..n_experts).map(|_| r.tensor(dtype, &[k, k], 1.0 / (k as f32).sqrt())).collect(),
        bias: bias.then(|| r.tensor(DType::F32, &[n_experts, k], 1.0)),
    };
    let (first, second) = (of(true), of(false));
    let y = b.expert_matmul("of tokens", x, route, first).unwrap();
    let y = b.expert_matmul("of slots", y, route, second).unwrap();
    let y = b.expert_sum("sum", y, route).unwrap();
    let y = b.output_rows("output_rows", y).unwrap();
    b.finish(y).unwrap()
}

/// Few experts with many rows each; more experts than rows of some batches; one for all; rows that are not whole blocks.
const EXPERTS: [(DType, usize, usize, usize); 4] =
    [(DType::F32, 5, 2, 260), (DType::Q4_K, 5, 2, 256), (DType::Q8_0, 60, 4, 64), (DType::MXFP4, 1, 1, 128)];

#[test]
fn experts_agree_with_the_specification_slot_by_slot_and_grouped() {
    for (way, name, &(dtype, n_experts, n_used, k)) in cases(&EXPERTS, 2) {
        let found = difference(&Arc::new(experts(dtype, n_experts, n_used, k)), way);
        assert_eq!(found, None, "{name}: {n_used} of {n_experts} of {dtype}");
    }
}

#[test]
fn experts_give_a_token_the_same_bits_in_any_company() {
    for (way, name, &(dtype, n_experts, n_used, k)) in cases(&EXPERTS, 2) {
        let graph = experts(dtype, n_experts, n_used, k);
        let many = bits(&graph, way, &[70]);
        assert!(many == bits(&graph, way, &[1, 9, 8, 52]), "{name}: {n_used} of {n_experts} of {dtype}");
    }
}

/// act(x · Gᵀ) · (x · Uᵀ)
fn gated(dtype: DType, k: usize, n_out: usize, act: Activation) -> Graph {
    let (r, mut b) = (&mut Random(k as u64), builder());
    let x = b.embed("embed", &r.tensor(DType::F32, &[N_VOCAB, k], 1.0), 1.0).unwrap();
    let mut product = |b: &mut GraphBuilder, name: &str| {
        b.matmul(name, x, &r.tensor(dtype, &[n_out, k], 1.0 / (k as f32).sqrt()), None).unwrap()
    };
    // the gate comes second: the gated unit tells which is which
    let (up, gate) = (product(&mut b, "up"), product(&mut b, "gate"));
    let y = b.glu("glu", gate, up, act).unwrap();
    let y = b.output_rows("output_rows", y).unwrap();
    b.finish(y).unwrap()
}

#[test]
fn gated_units_are_right_in_one_kernel_and_in_three() {
    // matrices that are multiples of the binding alignment, and one that is not
    let all = [
        (DType::Q4_K, 512, 192, Activation::Silu),
        (DType::F32, 70, 64, Activation::ClampedSwish { limit: 0.7 }),
        (DType::Q8_0, 96, 33, Activation::GeluTanh),
    ];
    for (way, name, &(dtype, k, n_out, act)) in cases(&all, 2) {
        let graph = gated(dtype, k, n_out, act);
        assert_eq!(difference(&Arc::new(graph.clone()), way), None, "{name}: {dtype}");
        let many = bits(&graph, way, &[70]);
        assert!(many == bits(&graph, way, &[1, 1, 9, 59]), "{name}: {dtype}");
    }
}

/// The first rows of a matrix, before the whole of it and after: what is stored once serves both.
#[test]
fn the_first_rows_of_a_matrix_are_multiplied_alone() {
    for (dtype, k, n_out, n_first) in
        [(DType::Q4_K, 256, 700, 300), (DType::Q8_0, 320, 900, 130), (DType::F16, 1000, 500, 400)]
    {
        let (r, mut b) = (&mut Random(k as u64), builder());
        let x = b.embed("embed", &r.tensor(DType::F32, &[N_VOCAB, k], 1.0), 1.0).unwrap();
        let weight = r.tensor(dtype, &[n_out, k], 1.0 / (k as f32).sqrt());
        let first = weight.first_rows(n_first);
        assert_eq!(
            (first.n_rows(), first.bytes()),
            (n_first, &weight.bytes()[..n_first * weight.row_bytes()])
        );
        let before = b.matmul("first, before", x, &first, None).unwrap();
        let all = b.matmul("all", x, &weight, None).unwrap();
        let after = b.matmul("first, after", x, &first, None).unwrap();
        let firsts = b.join_columns("firsts", before, after, 1).unwrap();
        let joined = b.join_columns("joined", firsts, all, 1).unwrap();
        let rows = b.output_rows("rows", joined).unwrap();
        let graph = Arc::new(b.finish(rows).unwrap());
        for (way, (name, ..)) in WAYS.iter().enumerate() {
            assert_eq!(difference(&graph, way), None, "{dtype:?} {name}");
        }
    }
}
