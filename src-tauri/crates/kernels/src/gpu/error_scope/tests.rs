//! Errors when compiling, allocating and submitting, and the thread that receives them.

use std::sync::Arc;

use weights::{DType, SharedBytes, TensorView};

use super::*;
use crate::backend::Backend;
use crate::batch::GivenRows;
use crate::capacity::Capacity;
use crate::gpu::pipeline::ShaderVariant;
use crate::gpu::shader::{Access, Shader};
use crate::gpu::{Gpu, GpuContext};
use crate::gpu_selector::GpuSelector;
use crate::graph::{DeviceId, Graph, GraphBuilder, KvDType, KvLayerLayout, KvLayout};
use crate::plan::layout::ValueLifetime;
use crate::tensor::Tensor;

const CAPACITY: Capacity = Capacity {
    n_pages: 1,
    n_window_pages: 0,
    n_requantized_pages: 0,
    max_rows: 4,
    max_outputs: 4,
    n_states: 0,
};

fn context() -> Arc<GpuContext> {
    GpuContext::open(&GpuSelector::Any).expect("mesa-vulkan-drivers, or the driver of a GPU: `make setup`")
}

/// Code and message of an error.
fn error_of<T>(result: Result<T, KernelError>) -> (&'static str, String) {
    let error = result.err().expect("it fails");
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
fn f59_errors_of_compiling_and_allocating_are_attributed() {
    let context = context();
    let gpu = &context.device;
    for shader in [&UNBOUND, &UNREADABLE] {
        let (code, message) = error_of(context.pipelines.get(gpu, shader, ShaderVariant::default()));
        assert_eq!(code, "kernels.gpu_invalid");
        assert!(message.contains(&format!("kernel {}", shader.name)), "{message}");
    }
    let n_bytes = (gpu.limits.max_buffer_size / 4 + 2) * 4;
    let (code, message) = error_of(gpu.buffer("results", n_bytes, wgpu::BufferUsages::COPY_DST));
    assert_eq!(code, "kernels.gpu_invalid");
    assert!(message.contains(&format!("results, {n_bytes} bytes")), "{message}");
    // the error is not reported again
    assert_eq!(gpu.check(), Ok(()));
}

#[test]
fn full_memory_outranks_other_errors_but_not_a_loss() {
    let context = context();
    let gpu = &context.device;
    let full = wgpu::Error::OutOfMemory { source: "full".into() };
    let error = gpu.attributed("weights, 12 bytes", &full);
    assert_eq!(error.code(), "kernels.gpu_memory");
    assert!(error.to_string().contains("weights, 12 bytes: "), "{error}");
    gpu.lose("injected by a test");
    assert_eq!(gpu.attributed("weights, 12 bytes", &full).code(), "kernels.gpu_lost", "that is why");
}

/// Creates an invalid buffer, outside of any scope.
fn misuse(gpu: &Device) {
    let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::STORAGE;
    let size = gpu.limits.max_buffer_size + 4;
    let descriptor =
        wgpu::BufferDescriptor { label: Some("misused"), size, usage, mapped_at_creation: false };
    drop(gpu.device.create_buffer(&descriptor));
}

#[test]
fn a_thread_does_not_receive_the_errors_of_another() {
    let context = context();
    let gpu = &context.device;
    let (own, others) = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            misuse(gpu);
            gpu.check()
        });
        let own = thread.join().expect("it ends");
        scope.spawn(|| misuse(gpu)).join().expect("it ends");
        (own, gpu.check())
    });
    assert_eq!((error_of(own).0, others), ("kernels.gpu_invalid", Ok(())));
    // without a scope the error is recorded for the thread
    misuse(gpu);
    assert_eq!(error_of(gpu.check()).0, "kernels.gpu_invalid");
    assert_eq!(gpu.check(), Ok(()));
    // the innermost scope catches it
    let (inner, outer) = gpu.caught(|| gpu.scoped(|| "an inner".into(), || misuse(gpu)));
    assert!(outer.is_none() && error_of(inner).1.contains("an inner: "));
}

fn zeros(n_rows: usize, k: usize) -> Tensor {
    let data = SharedBytes::from_vec(vec![0; n_rows * DType::F32.row_bytes(k)]);
    Tensor::host(&TensorView { name: "zeros", dtype: DType::F32, shape: &[n_rows, k], data }).unwrap()
}

fn graph() -> Arc<Graph> {
    let layer = KvLayerLayout { n_kv_heads: 1, head_dim: 32, precision: KvDType::F16.both(), window: None };
    let mut b = GraphBuilder::new(KvLayout::uniform(0, layer)).unwrap();
    let x = b.embed("embedding", &zeros(4, 8), 1.0).unwrap();
    let x = b.matmul("down", x, &zeros(8, 8), None).unwrap();
    let x = b.matmul("up", x, &zeros(8, 8), None).unwrap();
    let x = b.output_rows("rows of the output", x).unwrap();
    Arc::new(b.finish(x).unwrap())
}

fn prepared(context: &Arc<GpuContext>, graph: &Arc<Graph>) -> Gpu {
    let mut executor = Gpu::new(context.clone());
    executor.prepare(graph, DeviceId(0), CAPACITY, ValueLifetime::Needed).unwrap();
    executor
}

fn run(executor: &mut Gpu, graph: &Graph) -> Result<(), KernelError> {
    let batch = Batch {
        tokens: &[1, 2],
        positions: &[0, 1],
        kinds: &[],
        given: GivenRows::NONE,
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
fn a_rejected_step_is_reported_by_name() {
    let (context, graph) = (context(), graph());
    let [mut rejected, mut destroyed, mut other] = [(); 3].map(|()| prepared(&context, &graph));
    // more workgroups than any GPU allows
    let program = &mut rejected.prepared_mut().programs[0];
    let (_, of_down) = program.steps.iter().find(|(step, _)| step.nodes().contains(&1)).unwrap();
    let of_down = of_down.clone();
    program.dispatches[of_down].iter_mut().for_each(|dispatch| dispatch.groups = [u32::MAX, 1]);
    let (code, message) = error_of(run(&mut rejected, &graph));
    assert_eq!(code, "kernels.gpu_invalid");
    assert!(message.contains("refused a command: down: "), "{message}");
    // a destroyed buffer only shows at submission
    destroyed.prepared_mut().values.buffer(graph.output()).destroy();
    let (code, message) = error_of(run(&mut destroyed, &graph));
    assert_eq!(code, "kernels.gpu_invalid");
    assert!(message.contains("one of the steps from embedding to rows of the output"), "{message}");
    // other users of the GPU are not affected, and later submissions without a scope fail as well
    assert_eq!(run(&mut other, &graph), Ok(()));
    assert_eq!(error_of(run(&mut rejected, &graph)).0, "kernels.gpu_invalid");
    assert_eq!(run(&mut other, &graph), Ok(()));
}

#[test]
fn only_the_first_batch_of_a_kind_runs_in_a_scope() {
    let (mut tried, mut n_new) = (SeenBatchKinds::default(), 0);
    let mut step = |first: u32, n: usize, n_outputs: usize| {
        let (tokens, positions) = (vec![0; n], (first..).take(n).collect::<Vec<u32>>());
        let (sequence, outputs) = (vec![0; n], (0..n_outputs as u32).collect::<Vec<u32>>());
        let is_new = tried.is_new(&Batch {
            tokens: &tokens,
            positions: &positions,
            kinds: &[],
            given: GivenRows::NONE,
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
