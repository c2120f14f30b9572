//! Graphs that check the kernels of recurrent layers.

use super::{CheckNoise, KV, N_VOCAB, finish};
use crate::error::KernelError;
use crate::graph::{
    Activation, Columns, ConvShape, DeltaShape, Graph, GraphBuilder, HeadOrder, KvLayout, SsmShape,
};

pub(super) fn delta_rule() -> Result<Graph, KernelError> {
    let (n_heads, k_dim, v_dim, taps) = (2, 24, 40, 4);
    let mut noise = CheckNoise(4);
    let width = n_heads * (2 * k_dim + v_dim);
    let states = vec![(taps - 1) * width, n_heads * k_dim * v_dim];
    let mut b = GraphBuilder::new(KvLayout { states, ..KvLayout::uniform(0, KV) })?;
    let x = b.embed("embedding", &noise.tensor(&[N_VOCAB, width])?, 1.0)?;
    let conv = ConvShape {
        state: 0,
        weight: noise.many(taps * width).into(),
        kernel: taps,
        bias: None,
        act: Activation::Silu,
    };
    let qkv = b.short_conv("short convolution", x, conv)?;
    let of = |start| Columns { n_groups: 1, stride: width, start, width: n_heads };
    let (beta, alpha) = (b.columns("columns", x, of(0))?, b.columns("columns", x, of(n_heads))?);
    let delta = DeltaShape {
        state: 1,
        n_k_heads: n_heads,
        n_v_heads: n_heads,
        k_dim,
        v_dim,
        order: HeadOrder::Grouped,
        decay: vec![-0.5; n_heads].into(),
        dt_bias: noise.many(n_heads).into(),
    };
    let y = b.delta_net("delta rule", qkv, beta, alpha, delta)?;
    finish(b, y)
}

pub(super) fn state_space() -> Result<Graph, KernelError> {
    let (n_heads, head_dim, d_state) = (2, 41, 24);
    let mut noise = CheckNoise(6);
    let width = n_heads * head_dim + 2 * d_state;
    let states = vec![n_heads * head_dim * d_state];
    let mut b = GraphBuilder::new(KvLayout { states, ..KvLayout::uniform(0, KV) })?;
    let xbc = b.embed("embedding", &noise.tensor(&[N_VOCAB, width])?, 1.0)?;
    let of = Columns { n_groups: 1, stride: width, start: 0, width: n_heads };
    let dt = b.columns("columns", xbc, of)?;
    let ssm = SsmShape {
        state: 0,
        n_heads,
        head_dim,
        n_groups: 1,
        d_state,
        decay: vec![-0.5; n_heads].into(),
        skip: noise.many(n_heads).into(),
        dt_bias: noise.many(n_heads).into(),
        dt_limits: [0.01, f32::INFINITY],
    };
    let y = b.ssm("state space", xbc, dt, ssm)?;
    let y = b.scale_columns("factors of columns", y, noise.many(n_heads * head_dim).into())?;
    let y = b.join_columns("joined columns", y, dt, n_heads)?;
    finish(b, y)
}
