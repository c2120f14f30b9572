//! Small random models for the tests of this crate: a decoder of the llama shape, any block format, any devices.
#![allow(dead_code, clippy::unwrap_used)] // each test binary uses its own part; a failure here fails the test

pub mod mixed;

use std::sync::Arc;

use kernels::cpu::isa::IsaLevel;
use kernels::*;
use weights::{DType, SharedBytes, TensorView};

/// A generator of reproducible numbers.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Roughly normal, deviation 1.
    pub fn normal(&mut self) -> f32 {
        let sum: f32 = (0..4).map(|_| (self.next() >> 40) as f32 / (1u64 << 24) as f32 - 0.5).sum();
        sum * 1.732
    }

    pub fn tensor(&mut self, dtype: DType, shape: &[usize], deviation: f32) -> Tensor {
        let n: usize = shape.iter().product();
        let x: Vec<f32> = (0..n).map(|_| self.normal() * deviation).collect();
        tensor(dtype, shape, &x)
    }
}

pub fn tensor(dtype: DType, shape: &[usize], x: &[f32]) -> Tensor {
    let n_cols = *shape.last().unwrap();
    let encode = dtype.encoder().unwrap();
    let mut bytes = vec![0; x.len() / n_cols * dtype.row_bytes(n_cols)];
    for (x, bytes) in x.chunks_exact(n_cols).zip(bytes.chunks_exact_mut(dtype.row_bytes(n_cols))) {
        encode(x, bytes);
    }
    let view = TensorView { name: "test", dtype, shape, data: SharedBytes::from_vec(bytes) };
    Tensor::host(&view).unwrap()
}

#[derive(Clone, Copy)]
pub struct Shape {
    pub d: usize,
    pub n_heads: usize,
    pub n_kv_heads: usize,
    pub head_dim: usize,
    pub ffn: usize,
    pub n_vocab: usize,
    pub n_layers: usize,
    pub dtype: DType,
    pub kv: KvDType,
    /// of values, if not that of keys
    pub values: Option<KvDType>,
    pub mask: Mask,
    /// of every second layer
    pub window: Option<usize>,
    /// how long those layers keep their pages
    pub retention: Retention,
    /// layers on device 0; the others on device 1
    pub n_first: usize,
    pub style: RopeStyle,
    /// heads of queries and keys are normed, and what attention adds
    pub norms: bool,
}

pub const SMALL: Shape = Shape {
    d: 256,
    n_heads: 8,
    n_kv_heads: 2,
    head_dim: 32,
    ffn: 256,
    n_vocab: 97,
    n_layers: 2,
    dtype: DType::F32,
    kv: KvDType::F32,
    values: None,
    mask: Mask::Causal,
    window: None,
    retention: Retention::All,
    n_first: usize::MAX,
    style: RopeStyle::Half,
    norms: false,
};

/// A decoder of that shape; equal seeds give equal weights.
pub fn model(shape: Shape, seed: u64) -> Graph {
    model_of(shape, &mut Random(seed), &mut |r, rows, cols| {
        r.tensor(shape.dtype, &[rows, cols], 1.0 / (cols as f32).sqrt())
    })
}

/// The heads of x, normed where the shape says so.
fn normed_heads(b: &mut GraphBuilder, shape: Shape, name: String, x: ValueId) -> ValueId {
    if !shape.norms {
        return x;
    }
    let weight: Vec<f32> = (0..shape.head_dim).map(|i| 0.8 + 0.1 * ((i + name.len()) % 5) as f32).collect();
    let weight = tensor(DType::F32, &[shape.head_dim], &weight);
    b.rms_norm_groups(name, x, Some(&weight), 0.25, 1e-6, shape.head_dim).unwrap()
}

fn attention_of(shape: Shape, layer: usize, window: Option<usize>) -> AttentionShape {
    AttentionShape {
        layer,
        n_heads: shape.n_heads,
        n_kv_heads: shape.n_kv_heads,
        head_dim: shape.head_dim,
        scale: 1.0 / (shape.head_dim as f32).sqrt(),
        mask: shape.mask,
        window,
        softcap: None,
        sinks: None,
    }
}

/// As `model`, with matrices (rows, cols) from wherever they come.
pub fn model_of(
    shape: Shape,
    r: &mut Random,
    matrix: &mut dyn FnMut(&mut Random, usize, usize) -> Tensor,
) -> Graph {
    let Shape { d, n_heads, n_kv_heads, head_dim, ffn, n_vocab, .. } = shape;
    let precision = KvPrecision { keys: shape.kv, values: shape.values.unwrap_or(shape.kv) };
    let layer = KvLayerLayout { n_kv_heads, head_dim, precision, window: None };
    let mut layout = KvLayout::uniform(shape.n_layers, layer);
    let window_of = |layer: usize| shape.window.filter(|_| layer % 2 == 1);
    if shape.retention == Retention::Window {
        layout.layers.iter_mut().enumerate().for_each(|(i, layer)| layer.window = window_of(i));
    }
    let mut b = GraphBuilder::new(layout).unwrap();
    let inv_freq: Arc<[f32]> =
        (0..head_dim / 2).map(|i| 10000f32.powf(-2.0 * i as f32 / head_dim as f32)).collect();
    let rope = |n_heads| RopeShape {
        n_heads,
        head_dim,
        n_rot: head_dim,
        inv_freq: inv_freq.clone(),
        axes: Arc::default(),
        mscale: 1.0,
        style: shape.style,
    };
    let mut m = |rows: usize, cols: usize| matrix(r, rows, cols);
    let norm = tensor(DType::F32, &[d], &vec![1.1; d]);
    let mut x = b.embed("embed", &m(n_vocab, d), 1.5).unwrap();
    for layer in 0..shape.n_layers {
        b.on(DeviceId(usize::from(layer >= shape.n_first)));
        x = b.copy(format!("{layer}.copy"), x).unwrap();
        let h = b.rms_norm(format!("{layer}.norm"), x, &norm, 1e-5).unwrap();
        let q = b.matmul(format!("{layer}.q"), h, &m(n_heads * head_dim, d), None).unwrap();
        let q = normed_heads(&mut b, shape, format!("{layer}.q_norm"), q);
        let q = b.rope(format!("{layer}.q_rope"), q, &rope(n_heads)).unwrap();
        let bias = tensor(DType::F32, &[n_kv_heads * head_dim], &vec![0.25; n_kv_heads * head_dim]);
        let k = b.matmul(format!("{layer}.k"), h, &m(n_kv_heads * head_dim, d), Some(&bias)).unwrap();
        let k = normed_heads(&mut b, shape, format!("{layer}.the_k_norm"), k);
        let k = b.rope(format!("{layer}.k_rope"), k, &rope(n_kv_heads)).unwrap();
        let v = b.matmul(format!("{layer}.v"), h, &m(n_kv_heads * head_dim, d), None).unwrap();
        let q = b.rotate_heads(format!("{layer}.q_turn"), q, head_dim, precision.keys).unwrap();
        let k = b.rotate_heads(format!("{layer}.k_turn"), k, head_dim, precision.keys).unwrap();
        let v = b.rotate_heads(format!("{layer}.v_turn"), v, head_dim, precision.values).unwrap();
        b.kv_write(format!("{layer}.kv"), k, v, layer).unwrap();
        let window = window_of(layer);
        let attention = attention_of(shape, layer, window);
        let a = b.attention(format!("{layer}.attention"), q, attention).unwrap();
        let a = b.rotate_heads(format!("{layer}.a_turn"), a, head_dim, precision.values).unwrap();
        let a = b.matmul(format!("{layer}.o"), a, &m(d, n_heads * head_dim), None).unwrap();
        let a = if shape.norms { b.rms_norm("post_norm", a, &norm, 1e-6).unwrap() } else { a };
        x = b.add(format!("{layer}.add"), x, a).unwrap();
        let h = b.rms_norm(format!("{layer}.ffn_norm"), x, &norm, 1e-5).unwrap();
        let gate = b.matmul(format!("{layer}.gate"), h, &m(ffn, d), None).unwrap();
        let up = b.matmul(format!("{layer}.up"), h, &m(ffn, d), None).unwrap();
        let h = b.glu(format!("{layer}.glu"), gate, up, Activation::Silu).unwrap();
        let h = b.matmul(format!("{layer}.down"), h, &m(d, ffn), None).unwrap();
        x = b.add(format!("{layer}.ffn_add"), x, h).unwrap();
    }
    let x = b.output_rows("output_rows", x).unwrap();
    let x = b.rms_norm("output_norm", x, &norm, 1e-5).unwrap();
    let x = b.matmul("logits", x, &m(n_vocab, d), None).unwrap();
    b.finish(x).unwrap()
}

pub fn cpu(threads: usize, level: IsaLevel) -> Box<dyn Backend> {
    let options = CpuOptions { threads: Some(threads), level: Some(level), ..CpuOptions::default() };
    Box::new(Cpu::new(options).unwrap())
}

pub fn scalar() -> Box<dyn Backend> {
    Box::new(Scalar::new())
}

/// One sequence with pages in the given order and, where the graph has states, slot 0: logits after every token, fed
/// in chunks of the given sizes.
pub fn run_chunks(executor: &mut Executor, tokens: &[u32], pages: &[u32], chunks: &[usize]) -> Vec<f32> {
    let states: &[u32] = if executor.graph().kv().states.is_empty() { &[] } else { &[0] };
    let mut out = Vec::new();
    let mut at = 0;
    for n in chunks {
        let positions: Vec<u32> = (at as u32..(at + n) as u32).collect();
        let outputs: Vec<u32> = (0..*n as u32).collect();
        let batch = Batch {
            tokens: &tokens[at..at + n],
            positions: &positions,
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &vec![0; *n],
            page_tables: &[pages],
            window_tables: &[],
            states,
            outputs: &outputs,
        };
        executor.run(&batch).unwrap();
        out.extend_from_slice(executor.output());
        at += n;
    }
    assert_eq!(at, tokens.len());
    out
}

pub fn tokens(n: usize, n_vocab: usize, seed: u64) -> Vec<u32> {
    let mut r = Random(seed);
    (0..n).map(|_| r.below(n_vocab) as u32).collect()
}

/// Largest |a − b| as a share of the root mean square of `a`.
pub fn distance(a: &[f32], b: &[f32]) -> f32 {
    let square: f32 = a.iter().map(|x| x * x).sum::<f32>() / a.len() as f32;
    test_support::largest([test_support::largest_difference(b, a) / square.sqrt()])
}

/// A backend by its number of threads.
pub type Make = Box<dyn Fn(usize) -> Box<dyn Backend>>;

/// The specification, and the CPU at every level.
pub fn backends() -> Vec<(String, Make)> {
    let mut all: Vec<(String, Make)> = vec![("scalar".into(), Box::new(|_| scalar()))];
    for level in IsaLevel::present() {
        all.push((level.to_string(), Box::new(move |threads| cpu(threads, level))));
    }
    all
}

/// `n` in random parts of at most `most`.
pub fn random_chunks(r: &mut Random, mut n: usize, most: usize) -> Vec<usize> {
    let mut chunks = Vec::new();
    while n > 0 {
        let c = (1 + r.below(most)).min(n);
        chunks.push(c);
        n -= c;
    }
    chunks
}
