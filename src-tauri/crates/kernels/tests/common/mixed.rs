//! A random model with every operation: learned positions, layer norms, a short convolution, a gated delta rule, attention
//! with caps and sinks, mixed streams, mixture of experts with shared experts.

use std::sync::Arc;

use kernels::*;
use weights::DType;

use super::{Random, tensor};

pub const D: usize = 256;
pub const N_VOCAB: usize = 61;
pub const N_POSITIONS: usize = 1000;
const CONV: usize = 0;
const DELTA_CONV: usize = 1;
const DELTA: usize = 2;
const SSM: usize = 3;

#[derive(Clone, Copy)]
pub struct MixedShape {
    /// of all matrices
    pub dtype: DType,
    pub kv: KvDType,
    pub act: Activation,
    pub order: HeadOrder,
    pub window: Option<usize>,
    /// experts there are, experts used
    pub experts: [usize; 2],
    /// key heads, value heads, head sizes
    pub delta: [usize; 4],
    /// taps of the convolution before the delta rule
    pub taps: usize,
    /// heads, their size, groups and states of the state space
    pub ssm: [usize; 4],
}

pub const MIXED: MixedShape = MixedShape {
    dtype: DType::F32,
    kv: KvDType::F32,
    act: Activation::Silu,
    order: HeadOrder::Grouped,
    window: Some(20),
    experts: [7, 3],
    delta: [2, 4, 24, 40],
    taps: 4,
    ssm: [4, 24, 2, 12],
};

impl MixedShape {
    /// Other numbers of experts, heads and taps; matrices of floats, so that they can be compared closely.
    pub fn drawn(r: &mut Random) -> Self {
        let acts = [
            Activation::Silu,
            Activation::Gelu,
            Activation::GeluTanh,
            Activation::ClampedSwish { limit: 0.1 + r.below(9) as f32 },
        ];
        let n_experts = 1 + r.below(20);
        let n_k_heads = 1 + r.below(3);
        Self {
            dtype: [DType::F32, DType::F16, DType::BF16][r.below(3)],
            kv: [KvDType::F32, KvDType::F16, KvDType::Q8_0][r.below(3)],
            act: acts[r.below(acts.len())],
            order: [HeadOrder::Grouped, HeadOrder::Tiled][r.below(2)],
            window: [None, Some(1 + r.below(40))][r.below(2)],
            experts: [n_experts, 1 + r.below(n_experts)],
            delta: [n_k_heads, n_k_heads * (1 + r.below(3)), 1 + r.below(70), 1 + r.below(140)],
            taps: 2 + r.below(4),
            ssm: [2 * (1 + r.below(3)), 1 + r.below(140), 2, 1 + r.below(70)],
        }
    }
}

/// Builds it, part by part.
struct Parts {
    b: GraphBuilder,
    r: Random,
    shape: MixedShape,
}

/// Equal seeds give equal weights, and layers in the same order.
pub fn model(shape: MixedShape, seed: u64) -> Graph {
    let [nk, nv, dk, dv] = shape.delta;
    let [n_heads, head_dim, _, d_state] = shape.ssm;
    let kv = KvLayout {
        page_len: PAGE_LEN,
        layers: vec![KvLayerLayout { n_kv_heads: 2, head_dim: 32, precision: shape.kv.both(), window: None }],
        states: vec![
            2 * D,
            (shape.taps - 1) * (2 * nk * dk + nv * dv),
            nv * dk * dv,
            n_heads * head_dim * d_state,
        ],
    };
    let mut m = Parts { b: GraphBuilder::new(kv).unwrap(), r: Random(seed), shape };
    let (table, places) = (m.matrix(N_VOCAB, D), m.r.tensor(DType::F32, &[N_POSITIONS, D], 0.3));
    let x = m.b.embed("embed", &table, 16.0).unwrap();
    let p = m.b.embed_position("positions", &places).unwrap();
    let mut x = m.b.add("embedded", x, p).unwrap();
    let mut parts = [
        Parts::conv,
        Parts::experts,
        Parts::delta,
        Parts::attention,
        Parts::ssm,
        Parts::streams,
        Parts::experts,
    ];
    (1..parts.len()).for_each(|i| parts.swap(i, m.r.below(i + 1)));
    for part in parts {
        let more = part(&mut m, x);
        x = m.b.add(format!("{}.add", m.b.width(more)), x, more).unwrap();
    }
    let x = m.b.output_rows("output_rows", x).unwrap();
    let x = m.layer_norm(x);
    let x = m.matmul("logits", x, N_VOCAB);
    let x = m.b.softcap("softcap", x, 3.0).unwrap();
    m.b.finish(x).unwrap()
}

impl Parts {
    fn matrix(&mut self, rows: usize, cols: usize) -> Tensor {
        self.r.tensor(self.shape.dtype, &[rows, cols], 1.0 / (cols as f32).sqrt())
    }

    fn floats(&mut self, n: usize, mean: f32) -> Vec<f32> {
        (0..n).map(|_| mean + 0.3 * self.r.normal()).collect()
    }

    fn vector(&mut self, n: usize, mean: f32) -> Tensor {
        let x = self.floats(n, mean);
        tensor(DType::F32, &[n], &x)
    }

    fn matmul(&mut self, name: &str, x: ValueId, rows: usize) -> ValueId {
        let (weight, bias) = (self.matrix(rows, self.b.width(x)), self.vector(rows, 0.0));
        self.b.matmul(name, x, &weight, Some(&bias)).unwrap()
    }

    fn layer_norm(&mut self, x: ValueId) -> ValueId {
        let (weight, bias) = (self.vector(D, 1.0), self.vector(D, 0.0));
        self.b.layer_norm("layer_norm", x, &weight, Some(&bias), 1e-5).unwrap()
    }

    fn columns(&mut self, x: ValueId, n_groups: usize, start: usize, width: usize) -> ValueId {
        let stride = self.b.width(x) / n_groups;
        self.b.columns("columns", x, Columns { n_groups, stride, start, width }).unwrap()
    }

    fn conv(&mut self, x: ValueId) -> ValueId {
        let x = self.layer_norm(x);
        let x = self.matmul("conv.in", x, 3 * D);
        let [b, c, x] = [0, D, 2 * D].map(|start| self.columns(x, 1, start, D));
        let x = self.b.glu("conv.bx", b, x, Activation::Identity).unwrap();
        let conv = ConvShape {
            state: CONV,
            weight: self.floats(3 * D, 0.0).into(),
            kernel: 3,
            bias: Some(self.floats(D, 0.0).into()),
            act: Activation::Identity,
        };
        let x = self.b.short_conv("conv", x, conv).unwrap();
        let x = self.b.glu("conv.gated", c, x, Activation::Identity).unwrap();
        self.matmul("conv.out", x, D)
    }

    fn delta(&mut self, x: ValueId) -> ValueId {
        let MixedShape { delta: [nk, nv, dk, dv], taps, .. } = self.shape;
        let norm = self.vector(D, 0.0);
        let x = self.b.rms_norm_groups("delta.norm", x, Some(&norm), 1.0, 1e-6, D).unwrap();
        let qkv = self.matmul("delta.qkv", x, 2 * nk * dk + nv * dv);
        let [beta, alpha] = ["delta.beta", "delta.alpha"].map(|name| self.matmul(name, x, nv));
        let z = self.matmul("delta.z", x, nv * dv);
        let n_channels = self.b.width(qkv);
        let conv = ConvShape {
            state: DELTA_CONV,
            weight: self.floats(taps * n_channels, 0.0).into(),
            kernel: taps,
            bias: None,
            act: Activation::Silu,
        };
        let qkv = self.b.short_conv("delta.conv", qkv, conv).unwrap();
        let delta = DeltaShape {
            state: DELTA,
            n_k_heads: nk,
            n_v_heads: nv,
            k_dim: dk,
            v_dim: dv,
            order: self.shape.order,
            decay: self.floats(nv, -1.0).into(),
            dt_bias: self.floats(nv, 0.0).into(),
        };
        let x = self.b.delta_net("delta", qkv, beta, alpha, delta).unwrap();
        let norm = self.vector(dv, 1.0);
        let x = self.b.rms_norm_groups("delta.heads", x, Some(&norm), 0.0, 1e-6, dv).unwrap();
        let x = self.b.glu("delta.gated", z, x, Activation::Silu).unwrap();
        // block formats need rows of 256
        let x = self.b.glu("delta.wide", x, x, Activation::Sigmoid).unwrap();
        let weight = self.r.tensor(DType::F32, &[D, nv * dv], 0.08);
        self.b.matmul("delta.out", x, &weight, None).unwrap()
    }

    fn ssm(&mut self, x: ValueId) -> ValueId {
        let [n_heads, head_dim, n_groups, d_state] = self.shape.ssm;
        let inner = n_heads * head_dim;
        let x = self.layer_norm(x);
        let xbc = self.matmul("ssm.xbc", x, inner + 2 * n_groups * d_state);
        let dt = self.matmul("ssm.dt", x, n_heads);
        let ssm = SsmShape {
            state: SSM,
            n_heads,
            head_dim,
            n_groups,
            d_state,
            decay: self.floats(n_heads, -1.0).into(),
            skip: self.floats(n_heads, 1.0).into(),
            dt_bias: self.floats(n_heads, 0.0).into(),
            dt_limits: [0.05, 2.0],
        };
        let x = self.b.ssm("ssm", xbc, dt, ssm).unwrap();
        let factors = self.floats(inner, 1.0).into();
        let x = self.b.scale_columns("ssm.factors", x, factors).unwrap();
        let x = self.b.join_columns("ssm.joined", x, dt, n_heads).unwrap();
        // a matrix for each head, and their sum
        let route = self.b.route_all("ssm.heads", n_heads).unwrap();
        let width = head_dim + 1;
        let weights = (0..n_heads).map(|_| self.r.tensor(DType::F32, &[D, width], 0.08)).collect();
        let x = self.b.expert_matmul("ssm.out", x, route, Experts { weights, bias: None }).unwrap();
        self.b.expert_sum("ssm.sum", x, route).unwrap()
    }

    /// Three streams of a quarter of the width, mixed, and one of them sparse.
    fn streams(&mut self, x: ValueId) -> ValueId {
        const WIDTH: usize = D / 4;
        let x = self.layer_norm(x);
        let first = self.matmul("streams.first", x, WIDTH);
        let others = self.matmul("streams.others", x, 2 * WIDTH);
        let others = self.b.match_rms("streams.matched", others, first, 1e-5).unwrap();
        let all = self.b.join_columns("streams.all", first, others, 1).unwrap();
        let factors = self.matmul("streams.factors", x, 9);
        let factors = MixFactors::OfRow(factors);
        let mixed = self.b.mix("streams.mixed", all, all, factors, WIDTH).unwrap();
        let factors = MixFactors::Same([0.0, -1.0, 0.5].into());
        let mixed = self.b.mix("streams.more", mixed, first, factors, WIDTH).unwrap();
        let wide = self.matmul("streams.wide", x, D);
        let sparse = self.b.gaussian_top_k("streams.sparse", wide, 0.5).unwrap();
        let joined = self.b.join_columns("streams.joined", mixed, first, 1).unwrap();
        let y = self.b.add("streams.both", joined, sparse).unwrap();
        self.matmul("streams.out", y, D)
    }

    fn attention(&mut self, x: ValueId) -> ValueId {
        let (n_heads, n_kv_heads, head_dim) = (8, 2, 32);
        let norm = self.vector(D, 1.0);
        let x = self.b.rms_norm("attention.norm", x, &norm, 1e-6).unwrap();
        let both = self.matmul("q", x, 2 * n_heads * head_dim);
        let [q, gate] = [0, head_dim].map(|start| self.columns(both, n_heads, start, head_dim));
        let norm = self.vector(head_dim, 1.0);
        let q = self.b.rms_norm_groups("q_norm", q, Some(&norm), 0.0, 1e-6, head_dim).unwrap();
        let q = self.b.position_scale("q_scale", q, 0.1, 16).unwrap();
        let [k, v] = ["k", "v"].map(|name| self.matmul(name, x, n_kv_heads * head_dim));
        let v = self.b.rms_norm_groups("v_norm", v, None, 0.0, 1e-6, head_dim).unwrap();
        let rope = RopeShape {
            n_heads: n_kv_heads,
            head_dim,
            n_rot: 16,
            inv_freq: Arc::new([1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0]),
            axes: Arc::default(),
            mscale: 1.0,
            style: RopeStyle::Half,
        };
        let k = self.b.rope("k_rope", k, &rope).unwrap();
        self.b.kv_write("kv", k, v, 0).unwrap();
        let shape = AttentionShape {
            layer: 0,
            n_heads,
            n_kv_heads,
            head_dim,
            scale: 0.3,
            mask: Mask::Causal,
            window: self.shape.window,
            softcap: Some(2.0),
            sinks: Some(self.floats(n_heads, 0.5).into()),
        };
        let x = self.b.attention("attention", q, shape).unwrap();
        let x = self.b.glu("attention.gated", gate, x, Activation::Sigmoid).unwrap();
        let x = self.matmul("attention.out", x, D);
        let x = self.b.activate("attention.act", x, Activation::GeluTanh).unwrap();
        self.b.scale("attention.scale", x, 0.7).unwrap()
    }

    fn experts(&mut self, x: ValueId) -> ValueId {
        let [n_experts, n_used] = self.shape.experts;
        let logits = self.matmul("router", x, n_experts);
        let routing = Routing {
            n_experts,
            n_used,
            renormalize: true,
            expert_scale: Some(self.floats(n_experts, 1.0).into()),
            choice: ExpertChoice::default(),
        };
        let route = self.b.moe_route("route", logits, routing).unwrap();
        let mut experts = |bias: bool| Experts {
            weights: (0..n_experts).map(|_| self.matrix(D, D)).collect(),
            bias: bias.then(|| self.r.tensor(DType::F32, &[n_experts, D], 0.1)),
        };
        let [gate, up, down] = [experts(true), experts(false), experts(true)];
        let act = self.shape.act;
        let gate = self.b.expert_matmul("experts.gate", x, route, gate).unwrap();
        let up = self.b.expert_matmul("experts.up", x, route, up).unwrap();
        let h = self.b.glu("experts.glu", gate, up, act).unwrap();
        let h = self.b.expert_matmul("experts.down", h, route, down).unwrap();
        let h = self.b.expert_sum("experts.sum", h, route).unwrap();
        // a bias keeps this single number away from 0, or its rounding would be compared with nothing
        let (weight, bias) = (self.matrix(1, D), tensor(DType::F32, &[1], &[10.0]));
        let gate = self.b.matmul("shared.gate", x, &weight, Some(&bias)).unwrap();
        let shared = self.matmul("shared", x, D);
        let shared = self.b.row_gate("shared.gated", gate, shared).unwrap();
        self.b.add("experts.all", h, shared).unwrap()
    }
}
