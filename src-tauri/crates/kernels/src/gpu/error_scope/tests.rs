//! What a card refuses, as it is made and as it is submitted, and who hears of it.

use std::sync::Arc;

use weights::{DType, SharedBytes, TensorView};

use super::*;
use crate::backend::{Backend, Retain};
use crate::backends::Card;
use crate::gpu::Gpu;
use crate::gpu::pipeline::Variant;
use crate::gpu::shader::{Access, Shader};
use crate::graph::{DeviceId, Graph, GraphBuilder, KvDType, KvLayerLayout, KvLayout};
use crate::plan::Capacity;
use crate::tensor::Tensor;

const CAPACITY: Capacity =
    Capacity { n_pages: 1, n_window_pages: 0, n_aged_pages: 0, max_rows: 4, max_outputs: 4, n_states: 0 };

fn device() -> Arc<Device> {
    Device::open(&Card::Any).expect("mesa-vulkan-drivers, or the driver of a card: `make setup`")
}

/// As an error says it.
fn told<T>(result: Result<T, KernelError>) -> (&'static str, String) {
    let error = result.err().expect("it is refused");
    (error.code(), error.to_string())
}

static UNBOUND: Shader = Shader {
    name: "a test/unbound",
    source: "@group(0) @binding(7) var<storage, read_write> out: array<f32>;\n\
             @compute @workgroup_size(64) fn main() { out[0] = 1.0; }",
    bindings: &[Access::Uniform],
};
static UNREADABLE: Shader =
    Shader { name: "a test/unreadable", source: "fn main( {", bindings: &[Access::Uniform] };

#[test]
fn what_is_refused_as_it_is_made_is_named() {
    let gpu = device();
    for shader in [&UNBOUND, &UNREADABLE] {
        let (code, message) = told(gpu.pipeline(shader, Variant::default()));
        assert_eq!(code, "kernels.gpu_invalid");
        assert!(message.contains(&format!("kernel {}", shader.name)), "{message}");
    }
    let n_bytes = (gpu.limits.max_buffer_size / 4 + 2) * 4;
    let (code, message) = told(gpu.buffer("results", n_bytes, wgpu::BufferUsages::COPY_DST));
    assert_eq!(code, "kernels.gpu_invalid");
    assert!(message.contains(&format!("results, {n_bytes} bytes")), "{message}");
    // nothing of it is left for whoever asks next
    assert_eq!(gpu.check(), Ok(()));
}

#[test]
fn what_a_full_card_refuses_is_memory() {
    let gpu = device();
    let full = wgpu::Error::OutOfMemory { source: "full".into() };
    let error = gpu.complaint("weights, 12 bytes", &full);
    assert_eq!(error.code(), "kernels.gpu_memory");
    assert!(error.to_string().contains("weights, 12 bytes: "), "{error}");
    gpu.lose("a test wanted it");
    assert_eq!(gpu.complaint("weights, 12 bytes", &full).code(), "kernels.gpu_lost", "that is why");
}

/// Asks for what no card has, outside of any scope.
fn misuse(gpu: &Device) {
    let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::STORAGE;
    let size = gpu.limits.max_buffer_size + 4;
    let descriptor =
        wgpu::BufferDescriptor { label: Some("misused"), size, usage, mapped_at_creation: false };
    drop(gpu.device.create_buffer(&descriptor));
}

#[test]
fn nobody_gets_the_complaint_of_another() {
    let gpu = device();
    let (own, others) = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            misuse(&gpu);
            gpu.check()
        });
        let own = thread.join().expect("it ends");
        scope.spawn(|| misuse(&gpu)).join().expect("it ends");
        (own, gpu.check())
    });
    assert_eq!((told(own).0, others), ("kernels.gpu_invalid", Ok(())));
    // the net below catches what no scope does
    misuse(&gpu);
    assert_eq!(told(gpu.check()).0, "kernels.gpu_invalid");
    assert_eq!(gpu.check(), Ok(()));
    // the innermost scope has it
    let (inner, outer) = gpu.caught(|| gpu.scoped(|| "an inner".into(), || misuse(&gpu)));
    assert!(outer.is_none() && told(inner).1.contains("an inner: "));
}

fn zeros(n_rows: usize, k: usize) -> Tensor {
    let data = SharedBytes::from_vec(vec![0; n_rows * DType::F32.row_bytes(k)]);
    Tensor::host(&TensorView { name: "zeros", dtype: DType::F32, shape: &[n_rows, k], data }).unwrap()
}

fn graph() -> Arc<Graph> {
    let layer = KvLayerLayout { n_kv_heads: 1, head_dim: 32, dtype: KvDType::F16, window: None };
    let mut b = GraphBuilder::new(KvLayout::uniform(0, layer)).unwrap();
    let x = b.embed("embedding", &zeros(4, 8), 1.0).unwrap();
    let x = b.matmul("down", x, &zeros(8, 8), None).unwrap();
    let x = b.matmul("up", x, &zeros(8, 8), None).unwrap();
    let x = b.output_rows("rows of the output", x).unwrap();
    Arc::new(b.finish(x).unwrap())
}

fn prepared(gpu: &Arc<Device>, graph: &Arc<Graph>) -> Gpu {
    let mut executor = Gpu::new(gpu.clone());
    executor.prepare(graph, DeviceId(0), CAPACITY, Retain::Needed).unwrap();
    executor
}

fn run(executor: &mut Gpu, graph: &Graph) -> Result<(), KernelError> {
    let batch = Batch {
        tokens: &[1, 2],
        positions: &[0, 1],
        sequence: &[0, 0],
        page_tables: &[&[0]],
        window_tables: &[],
        states: &[],
        outputs: &[0, 1],
    };
    executor.begin(&batch)?;
    executor.run(0..graph.nodes().len(), &batch, None)
}

#[test]
fn a_step_that_is_refused_is_named() {
    let (gpu, graph) = (device(), graph());
    let [mut refused, mut gone, mut other] = [(); 3].map(|()| prepared(&gpu, &graph));
    // more workgroups than any card takes
    let program = &mut refused.prepared_mut().programs[0];
    let (_, of_down) = program.steps.iter().find(|(step, _)| step.nodes().contains(&1)).unwrap();
    let of_down = of_down.clone();
    program.dispatches[of_down].iter_mut().for_each(|dispatch| dispatch.groups = [u32::MAX, 1]);
    let (code, message) = told(run(&mut refused, &graph));
    assert_eq!(code, "kernels.gpu_invalid");
    assert!(message.contains("refused a command: down: "), "{message}");
    // memory that went away is only missed as all is submitted
    gone.prepared_mut().values.buffer(graph.output()).destroy();
    let (code, message) = told(run(&mut gone, &graph));
    assert_eq!(code, "kernels.gpu_invalid");
    assert!(message.contains("one of the steps from embedding to rows of the output"), "{message}");
    // whoever else uses the card hears nothing of it, and what is not scoped any more fails as well
    assert_eq!(run(&mut other, &graph), Ok(()));
    assert_eq!(told(run(&mut refused, &graph)).0, "kernels.gpu_invalid");
    assert_eq!(run(&mut other, &graph), Ok(()));
}

#[test]
fn only_the_first_steps_of_their_kind_are_scoped() {
    let (mut tried, mut n_new) = (Tried::default(), 0);
    let mut step = |first: u32, n: usize, n_outputs: usize| {
        let (tokens, positions) = (vec![0; n], (first..).take(n).collect::<Vec<u32>>());
        let (sequence, outputs) = (vec![0; n], (0..n_outputs as u32).collect::<Vec<u32>>());
        let is_new = tried.is_new(&Batch {
            tokens: &tokens,
            positions: &positions,
            sequence: &sequence,
            page_tables: &[],
            window_tables: &[],
            states: &[],
            outputs: &outputs,
        });
        n_new += usize::from(is_new);
        is_new
    };
    assert!(step(0, 256, 0) && step(256, 256, 0), "a context of another length");
    assert!(step(512, 44, 1) && step(556, 1, 1));
    assert!(!step(557, 1, 1) && step(558, 3, 3), "guesses that are checked");
    (561..20_000).for_each(|at| _ = step(at, 1, 1));
    assert!(n_new <= 12, "{n_new} of 20,000 tokens");
}
