//! Benchmark graphs of one operation each, with the required speedup.

use contract::Result;
use kernels::cpu::isa::IsaLevel;
use kernels::matmul::MATMULS;
use kernels::{
    Activation, AttentionShape, Columns, Graph, GraphBuilder, KernelError, KvDType, KvLayerLayout, KvLayout,
    Mask, RopeShape, RopeStyle, Tensor, ValueId,
};
use weights::{DType, SharedBytes, TensorView};

/// One benchmarked operation.
pub struct Case {
    pub group: &'static str,
    pub name: String,
    pub graph: Graph,
    /// Matrix of a matmul, whose reference accumulates sequentially.
    pub weight: Option<Tensor>,
    /// The measured node.
    pub node: &'static str,
    /// Positions already in the context, and rows of the measured run.
    pub before: usize,
    pub n_rows: usize,
    /// Required minimum speedup over the reference.
    pub bar: Option<f64>,
}

type Built<T> = std::result::Result<T, KernelError>;

/// Number of rows of the input embedding tables.
pub const N_VOCAB: usize = 64;

/// Required speedups of SIMD kernels over the reference (issue 4).
const MATMUL: f64 = 4.0;
const ATTENTION: f64 = 3.0;
const ACTIVATION: f64 = 2.0;

pub fn all(level: IsaLevel) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    let error = |error: KernelError| engine::EngineError::from(error);
    for row in MATMULS.iter().copied().flatten().filter(|row| row.level == level) {
        for n_rows in [1, 16] {
            cases.push(product(row.dtype, n_rows).map_err(error)?);
        }
    }
    for dtype in [KvDType::F16, KvDType::Q8_0, KvDType::Q4_0] {
        for n_rows in [1, 16] {
            cases.push(attention(dtype, n_rows).map_err(error)?);
        }
    }
    for (name, act) in [
        ("silu", Activation::Silu),
        ("gelu", Activation::Gelu),
        ("gelu_tanh", Activation::GeluTanh),
        ("sigmoid", Activation::Sigmoid),
    ] {
        let build = |b: &mut GraphBuilder, x| b.activate("op", x, act);
        cases.push(of_rows("activation", name, Some(ACTIVATION), &build).map_err(error)?);
    }
    for (name, act) in
        [("silu · up", Activation::Silu), ("clamped swish", Activation::ClampedSwish { limit: 7.0 })]
    {
        let build = |b: &mut GraphBuilder, x| {
            let half = |start| Columns { n_groups: 1, stride: WIDTH, start, width: WIDTH / 2 };
            let (gate, up) = (b.columns("gate", x, half(0))?, b.columns("up", x, half(WIDTH / 2))?);
            b.glu("op", gate, up, act)
        };
        cases.push(of_rows("activation", name, Some(ACTIVATION), &build).map_err(error)?);
    }
    let norm = floats(WIDTH, 1, &numbers(WIDTH)).map_err(error)?;
    let build = |b: &mut GraphBuilder, x| b.rms_norm("op", x, &norm, 1e-5);
    cases.push(of_rows("other", "rms_norm", None, &build).map_err(error)?);
    let build = |b: &mut GraphBuilder, x| b.softcap("op", x, 30.0);
    cases.push(of_rows("other", "softcap", None, &build).map_err(error)?);
    let build = |b: &mut GraphBuilder, x| b.rope("op", x, &rope());
    cases.push(of_rows("other", "rope", None, &build).map_err(error)?);
    Ok(cases)
}

/// Columns (`K`) and rows of a matrix, which fits into the L2 cache in most formats.
const K: usize = 2048;
const N_OUT: usize = 512;

fn product(dtype: DType, n_rows: usize) -> Built<Case> {
    let mut b = GraphBuilder::new(KvLayout::uniform(0, KV))?;
    let x = b.embed("embed", &table(K)?, 1.0)?;
    // one byte value everywhere: a small positive number in every format, also as a scale
    let bytes = vec![0x2C; N_OUT * dtype.row_bytes(K)];
    let view = TensorView { name: "weights", dtype, shape: &[N_OUT, K], data: SharedBytes::from_vec(bytes) };
    let weight = Tensor::host(&view)?;
    let y = b.matmul("op", x, &weight, None)?;
    let name = format!("{} {K}→{N_OUT}, {n_rows} row{}", dtype.name(), if n_rows == 1 { "" } else { "s" });
    let y = b.output_rows("output", y)?;
    let graph = b.finish(y)?;
    let weight = Some(weight);
    Ok(Case { group: "matmul", name, graph, weight, node: "op", before: 0, n_rows, bar: Some(MATMUL) })
}

const N_HEADS: usize = 8;
const KV: KvLayerLayout =
    KvLayerLayout { n_kv_heads: 2, head_dim: 64, precision: KvDType::F16.both(), window: None };
/// Positions before the measured rows.
const BEFORE: usize = 512;

fn attention(dtype: KvDType, n_rows: usize) -> Built<Case> {
    let KvLayerLayout { n_kv_heads, head_dim, .. } = KV;
    let mut b = GraphBuilder::new(KvLayout::uniform(1, KvLayerLayout { precision: dtype.both(), ..KV }))?;
    let stride = (N_HEADS + 2 * n_kv_heads) * head_dim;
    let x = b.embed("embed", &table(stride)?, 1.0)?;
    let part = |first: usize, n: usize| Columns {
        n_groups: 1,
        stride,
        start: first * head_dim,
        width: n * head_dim,
    };
    let q = b.columns("q", x, part(0, N_HEADS))?;
    let k = b.columns("k", x, part(N_HEADS, n_kv_heads))?;
    let v = b.columns("v", x, part(N_HEADS + n_kv_heads, n_kv_heads))?;
    b.kv_write("kv_write", k, v, 0)?;
    let shape = AttentionShape {
        layer: 0,
        n_heads: N_HEADS,
        n_kv_heads,
        head_dim,
        scale: 1.0 / (head_dim as f32).sqrt(),
        mask: Mask::Causal,
        window: None,
        softcap: None,
        sinks: None,
    };
    let y = b.attention("op", q, shape)?;
    let name =
        format!("{dtype:?} KV, {BEFORE} positions, {n_rows} row{}", if n_rows == 1 { "" } else { "s" });
    let y = b.output_rows("output", y)?;
    let graph = b.finish(y)?;
    Ok(Case {
        group: "attention",
        name,
        graph,
        weight: None,
        node: "op",
        before: BEFORE,
        n_rows,
        bar: Some(ATTENTION),
    })
}

/// Row length of row-wise operations.
const WIDTH: usize = 8192;

type Build<'a> = &'a dyn Fn(&mut GraphBuilder, ValueId) -> Built<ValueId>;

fn of_rows(group: &'static str, name: &str, bar: Option<f64>, build: Build) -> Built<Case> {
    let mut b = GraphBuilder::new(KvLayout::uniform(0, KV))?;
    let x = b.embed("embed", &table(WIDTH)?, 1.0)?;
    let y = build(&mut b, x)?;
    let y = b.output_rows("output", y)?;
    let graph = b.finish(y)?;
    Ok(Case { group, name: name.to_owned(), graph, weight: None, node: "op", before: 0, n_rows: 16, bar })
}

fn rope() -> RopeShape {
    let (head_dim, n_rot) = (64, 64);
    let inv_freq = (0..n_rot / 2).map(|i| 10000f32.powf(-2.0 * i as f32 / n_rot as f32)).collect();
    let n_heads = WIDTH / head_dim;
    RopeShape { n_heads, head_dim, n_rot, inv_freq, axes: [].into(), mscale: 1.0, style: RopeStyle::Half }
}

/// Pseudo-random but reproducible activations.
pub fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919 + 17) % 1009) as f32 / 252.0 - 2.0).collect()
}

fn table(width: usize) -> Built<Tensor> {
    floats(width, N_VOCAB, &numbers(N_VOCAB * width))
}

fn floats(width: usize, n_rows: usize, x: &[f32]) -> Built<Tensor> {
    let bytes = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    let shape = [n_rows, width];
    let shape = if n_rows == 1 { &shape[1..] } else { &shape[..] };
    Tensor::host(&TensorView {
        name: "numbers",
        dtype: DType::F32,
        shape,
        data: SharedBytes::from_vec(bytes),
    })
}
