//! Runs a graph whose kernels exceed the submission cost, split and whole.

use std::sync::Arc;

use weights::{DType, SharedBytes, TensorView};

use super::*;
use crate::backend::Backend;
use crate::batch::GivenRows;
use crate::capacity::Capacity;
use crate::gpu::{Gpu, GpuContext, GpuOptions};
use crate::gpu_selector::GpuSelector;
use crate::graph::{
    AttentionShape, Columns, DeviceId, ExpertChoice, Experts, GraphBuilder, KvDType, KvLayerLayout, KvLayout,
    Mask, Routing,
};
use crate::plan::layout::ValueLifetime;
use crate::tensor::Tensor;

/// Less than the cost of each multiplication, attention and expert layer below for many rows.
const LOW_COST: u64 = 3_000_000;
const CAPACITY: Capacity = Capacity {
    n_pages: 40,
    n_window_pages: 0,
    n_requantized_pages: 0,
    max_rows: 64,
    max_outputs: 64,
    n_states: 0,
};
const N_IDS: usize = 50;
const K: usize = 128;

/// Pseudo-random numbers.
fn noise(shape: [usize; 2], seed: u32) -> Tensor {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / (1 << 24) as f32 - 0.5) * 0.3
    };
    let bytes = (0..shape[0] * shape[1]).flat_map(|_| next().to_le_bytes()).collect();
    let data = SharedBytes::from_vec(bytes);
    Tensor::host(&TensorView { name: "noise", dtype: DType::F32, shape: &shape, data }).unwrap()
}

/// Attention, experts, and a multiplication with many outputs.
fn graph() -> Arc<Graph> {
    let layer = KvLayerLayout { n_kv_heads: 2, head_dim: 32, precision: KvDType::F16.both(), window: None };
    let mut b = GraphBuilder::new(KvLayout::uniform(1, layer)).unwrap();
    let x = b.embed("embedding", &noise([N_IDS, K], 1), 1.0).unwrap();
    let kv = b.matmul("keys and values", x, &noise([64, K], 2), None).unwrap();
    b.kv_write("writing", kv, kv, 0).unwrap();
    let shape = AttentionShape {
        layer: 0,
        n_heads: 4,
        n_kv_heads: 2,
        head_dim: 32,
        scale: 1.0,
        mask: Mask::Causal,
        window: None,
        softcap: None,
        sinks: None,
    };
    let x = b.attention("attention", x, shape).unwrap();
    let of = Columns { n_groups: 1, stride: K, start: 0, width: 4 };
    let route = b.columns("logits of experts", x, of).unwrap();
    let routing = Routing {
        n_experts: 4,
        n_used: 2,
        renormalize: true,
        expert_scale: None,
        choice: ExpertChoice::default(),
    };
    let route = b.moe_route("route", route, routing).unwrap();
    let experts = Experts { weights: (3..7).map(|seed| noise([K, K], seed)).collect(), bias: None };
    let x = b.expert_matmul("experts", x, route, experts).unwrap();
    let x = b.expert_sum("sum", x, route).unwrap();
    let x = b.output_rows("rows of the output", x).unwrap();
    let x = b.matmul("logits", x, &noise([512, K], 7), None).unwrap();
    Arc::new(b.finish(x).unwrap())
}

fn backend(graph: &Arc<Graph>, max_submission_cost: Option<u64>) -> Gpu {
    let options = GpuOptions { max_submission_cost, ..GpuOptions::default() };
    let context = GpuContext::open_using(&GpuSelector::Any, options)
        .expect("mesa-vulkan-drivers, or the driver of a GPU: `make setup`");
    let mut gpu = Gpu::new(context);
    gpu.prepare(graph, DeviceId(0), CAPACITY, ValueLifetime::Needed).unwrap();
    gpu
}

/// For each batch: the bits of its output, the largest cost of a submission, and the number of submissions.
fn run(gpu: &mut Gpu, graph: &Graph) -> Vec<(Vec<u32>, u64, usize)> {
    let pages: Vec<u32> = (0..CAPACITY.n_pages as u32).rev().collect();
    let mut ran = Vec::new();
    for (first, n) in [(0u32, 64usize), (64, 64), (1200, 64), (1264, 8), (1272, 1)] {
        let tokens: Vec<u32> = (first..).take(n).map(|at| at * 7 % N_IDS as u32).collect();
        let positions: Vec<u32> = (first..).take(n).collect();
        let outputs: Vec<u32> = (0..n as u32).collect();
        let batch = Batch {
            tokens: &tokens,
            positions: &positions,
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &vec![0; n],
            page_tables: &[&pages],
            window_tables: &[],
            states: &[],
            outputs: &outputs,
        };
        gpu.begin(&batch).unwrap();
        gpu.run(0..graph.nodes().len(), &batch, None).unwrap();
        let bits = gpu.read(graph.output(), n).iter().map(|x| x.to_bits()).collect();
        let cost = |all: &[Dispatch]| all.iter().map(|dispatch| dispatch.cost_of(&batch)).sum::<u64>();
        let all = &gpu.prepared().programs[0].dispatches;
        let costs: Vec<u64> = submissions(&gpu.context.device, all, &batch).map(cost).collect();
        ran.push((bits, costs.iter().copied().max().unwrap_or(0), costs.len()));
    }
    ran
}

/// The bits of the output for tokens one by one from position 1260 on. `drops`: nothing is encoded ahead.
fn one_by_one(gpu: &mut Gpu, graph: &Graph, drops: bool) -> (Vec<u32>, usize) {
    let pages: Vec<u32> = (0..CAPACITY.n_pages as u32).collect();
    let (mut bits, mut n_ahead) = (Vec::new(), 0);
    for position in 1260..1290 {
        let batch = Batch {
            tokens: &[position * 7 % N_IDS as u32],
            positions: &[position],
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &[0],
            page_tables: &[&pages],
            window_tables: &[],
            states: &[],
            outputs: &[0],
        };
        gpu.begin(&batch).unwrap();
        let ahead = gpu.prepared_mut().programs[0].ahead.take().filter(|_| !drops);
        gpu.prepared_mut().programs[0].ahead = ahead;
        if let Some(commands) = gpu.prepared_mut().take_ahead(0, &batch) {
            n_ahead += 1;
            // encoded again, since commands can't be put back
            drop(commands);
            let before = Batch { positions: &[position - 1], ..batch };
            let context = gpu.context.clone();
            gpu.prepared_mut().encode_ahead(&context.device, 0, &before);
        }
        gpu.run(0..graph.nodes().len(), &batch, None).unwrap();
        bits.extend(gpu.read(graph.output(), 1).iter().map(|x| x.to_bits()));
    }
    (bits, n_ahead)
}

#[test]
fn tokens_encoded_ahead_keep_the_bits() {
    let graph = graph();
    let (expected, none) = one_by_one(&mut backend(&graph, None), &graph, true);
    let (found, n_ahead) = one_by_one(&mut backend(&graph, None), &graph, false);
    assert!(expected == found);
    // all but the first; the batch is known one token before, also where a chunk begins
    assert_eq!((none, n_ahead), (0, 29));
}

#[test]
fn submissions_respect_the_cost_limit_and_splitting_keeps_the_bits() {
    let graph = graph();
    let whole = run(&mut backend(&graph, None), &graph);
    let cut = run(&mut backend(&graph, Some(LOW_COST)), &graph);
    for (i, ((expected, _, n_whole), (found, longest, n_cut))) in whole.iter().zip(&cut).enumerate() {
        assert!(expected == found, "batch {i}");
        assert!(*longest <= LOW_COST, "batch {i}: {longest}");
        assert_eq!(*n_whole, 1, "batch {i} is short on any GPU");
        // the last has one row
        assert_eq!(*n_cut > 4, i < 4, "batch {i}: {n_cut} submissions");
    }
}
