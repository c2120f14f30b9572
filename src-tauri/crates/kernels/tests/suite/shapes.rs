//! A graph builder rejects every shape that does not fit, with an error that names the node.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use crate::common::*;
use kernels::*;
use weights::DType;

const KV: KvLayerLayout =
    KvLayerLayout { n_kv_heads: 2, head_dim: 8, precision: KvDType::F16.both(), window: None };

fn f32s(shape: &[usize]) -> Tensor {
    tensor(DType::F32, shape, &vec![1.0; shape.iter().product()])
}

/// A builder with one embedded value of width 32.
fn begun() -> (GraphBuilder, ValueId) {
    let mut b = GraphBuilder::new(KvLayout::uniform(2, KV)).unwrap();
    let x = b.embed("embed", &f32s(&[10, 32]), 1.0).unwrap();
    (b, x)
}

fn attention(n_heads: usize, layer: usize) -> AttentionShape {
    AttentionShape {
        layer,
        n_heads,
        n_kv_heads: 2,
        head_dim: 8,
        scale: 1.0,
        mask: Mask::Causal,
        window: None,
        softcap: None,
        sinks: None,
    }
}

fn rope(n_rot: usize, n_freq: usize) -> RopeShape {
    let inv_freq = vec![1.0; n_freq].into();
    RopeShape {
        n_heads: 4,
        head_dim: 8,
        n_rot,
        inv_freq,
        axes: [].into(),
        mscale: 1.0,
        style: RopeStyle::Half,
    }
}

type Build = fn(&mut GraphBuilder, ValueId) -> Result<(), KernelError>;

#[test]
fn misfits_are_refused_by_name() {
    let cases: &[(&str, Build)] = &[
        ("columns of the weight", |b, x| b.matmul("bad", x, &f32s(&[4, 31]), None).map(drop)),
        ("bias", |b, x| b.matmul("bad", x, &f32s(&[4, 32]), Some(&f32s(&[5]))).map(drop)),
        ("weight", |b, x| b.matmul("bad", x, &f32s(&[32]), None).map(drop)),
        ("norm weight", |b, x| b.rms_norm("bad", x, &f32s(&[16]), 1e-5).map(drop)),
        ("norm weight", |b, x| b.rms_norm("bad", x, &f32s(&[1, 32]), 1e-5).map(drop)),
        ("rows of a second table", |b, _| b.embed("bad", &f32s(&[11, 32]), 1.0).map(drop)),
        ("width of x", |b, x| b.rope("bad", x, &RopeShape { n_heads: 3, ..rope(8, 4) }).map(drop)),
        ("rotated elements", |b, x| b.rope("bad", x, &rope(10, 5)).map(drop)),
        ("rotated elements", |b, x| b.rope("bad", x, &rope(3, 1)).map(drop)),
        ("inverse frequencies", |b, x| b.rope("bad", x, &rope(8, 3)).map(drop)),
        ("width of keys or values", |b, x| b.kv_write("bad", x, x, 0)),
        ("KV layer", |b, x| b.kv_write("bad", x, x, 2)),
        ("KV layer", |b, x| b.attention("bad", x, attention(4, 2)).map(drop)),
        ("KV layer", |b, x| b.attention("bad", x, attention(4, 0)).map(drop)),
        ("width of q", |b, x| b.attention("bad", x, attention(3, 0)).map(drop)),
        ("head size", |b, x| {
            let shape = AttentionShape { head_dim: 16, n_heads: 2, ..attention(4, 0) };
            b.attention("bad", x, shape).map(drop)
        }),
        ("window", |b, x| {
            b.attention("bad", x, AttentionShape { window: Some(0), ..attention(4, 0) }).map(drop)
        }),
        ("width of the second operand", |b, x| {
            let y = b.matmul("ok", x, &f32s(&[4, 32]), None)?;
            b.add("bad", x, y).map(drop)
        }),
        ("rows of the second operand", |b, x| {
            let y = b.output_rows("ok", x)?;
            b.glu("bad", x, y, Activation::Silu).map(drop)
        }),
        ("rows of an input", |b, x| {
            let y = b.output_rows("ok", x)?;
            b.attention("bad", y, attention(4, 0)).map(drop)
        }),
        ("device of an input (copy it first)", |b, x| {
            b.on(DeviceId(1)).rms_norm("bad", x, &f32s(&[32]), 1e-5).map(drop)
        }),
    ];
    for (what, build) in cases {
        let (mut b, x) = begun();
        match build(&mut b, x) {
            Err(KernelError::Shape { node, what: found, .. }) => {
                assert_eq!((node.as_str(), found), ("bad", *what))
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

/// A builder with two states, an embedded value of width 32 and a route over four experts of which two are used.
fn begun_with_states() -> (GraphBuilder, ValueId, ValueId) {
    let layers = vec![KvLayerLayout { window: Some(16), ..KV }];
    let kv = KvLayout { page_len: PAGE_LEN, layers, states: vec![3 * 32, 2 * 4 * 4] };
    let mut b = GraphBuilder::new(kv).unwrap();
    let x = b.embed("embed", &f32s(&[10, 32]), 1.0).unwrap();
    let logits = b.matmul("logits", x, &f32s(&[4, 32]), None).unwrap();
    let route = b.moe_route("route", logits, routing(4, 2)).unwrap();
    (b, x, route)
}

fn routing(n_experts: usize, n_used: usize) -> Routing {
    Routing { n_experts, n_used, renormalize: false, expert_scale: None, choice: ExpertChoice::default() }
}

fn experts(n: usize, shape: [usize; 2]) -> Experts {
    Experts { weights: (0..n).map(|_| f32s(&shape)).collect(), bias: None }
}

fn conv(state: usize, n: usize) -> ConvShape {
    ConvShape { state, weight: vec![1.0; n].into(), kernel: 4, bias: None, act: Activation::Silu }
}

/// Fits a width of 2 · 4 + 2 · 4 = 16.
fn delta() -> DeltaShape {
    let gates: std::sync::Arc<[f32]> = [1.0; 2].into();
    DeltaShape {
        state: 1,
        n_k_heads: 1,
        n_v_heads: 2,
        k_dim: 4,
        v_dim: 4,
        order: HeadOrder::Grouped,
        decay: gates.clone(),
        dt_bias: gates,
    }
}

/// With inputs that fit `delta()`.
fn delta_net(b: &mut GraphBuilder, x: ValueId, delta: DeltaShape) -> Result<(), KernelError> {
    let [qkv, gate] = [16, 2].map(|n| b.matmul("ok", x, &f32s(&[n, 32]), None).unwrap());
    b.delta_net("bad", qkv, gate, gate, delta).map(drop)
}

type BuildRouted = fn(&mut GraphBuilder, ValueId, ValueId) -> Result<(), KernelError>;

/// Each build fails with the expected reason.
fn refused(cases: &[(&str, BuildRouted)]) {
    for (what, build) in cases {
        let (mut b, x, route) = begun_with_states();
        match build(&mut b, x, route) {
            Err(KernelError::Shape { node, what: found, .. }) => {
                assert_eq!((node.as_str(), found), ("bad", *what))
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn misfits_of_rows_and_columns_are_refused_by_name() {
    refused(&[
        ("width of x", |b, x, _| b.rms_norm_groups("bad", x, None, 0.0, 1e-5, 5).map(drop)),
        ("width of x", |b, x, _| b.rms_norm_groups("bad", x, None, 0.0, 1e-5, 0).map(drop)),
        ("norm weight", |b, x, _| b.rms_norm_groups("bad", x, Some(&f32s(&[32])), 0.0, 1e-5, 8).map(drop)),
        ("norm weight", |b, x, _| b.layer_norm("bad", x, &f32s(&[31]), None, 1e-5).map(drop)),
        ("norm bias", |b, x, _| b.layer_norm("bad", x, &f32s(&[32]), Some(&f32s(&[31])), 1e-5).map(drop)),
        ("original context", |b, x, _| b.position_scale("bad", x, 0.1, 0).map(drop)),
        ("activation", |b, x, _| b.activate("bad", x, Activation::ClampedSwish { limit: 7.0 }).map(drop)),
        ("width of the gate", |b, x, _| b.row_gate("bad", x, x).map(drop)),
        ("width of x", |b, x, _| {
            b.columns("bad", x, Columns { n_groups: 3, stride: 8, start: 0, width: 8 }).map(drop)
        }),
        ("columns", |b, x, _| {
            b.columns("bad", x, Columns { n_groups: 4, stride: 8, start: 4, width: 5 }).map(drop)
        }),
        ("columns", |b, x, _| {
            b.columns("bad", x, Columns { n_groups: 4, stride: 8, start: usize::MAX, width: 2 }).map(drop)
        }),
        ("columns", |b, x, _| {
            b.columns("bad", x, Columns { n_groups: 4, stride: 8, start: 0, width: 0 }).map(drop)
        }),
        ("window", |b, x, _| {
            let kv = b.matmul("ok", x, &f32s(&[16, 32]), None)?;
            b.kv_write("ok", kv, kv, 0)?;
            b.attention("bad", x, AttentionShape { window: Some(17), ..attention(4, 0) }).map(drop)
        }),
        ("window of what is kept", |b, x, _| {
            let kv = b.matmul("ok", x, &f32s(&[16, 32]), None)?;
            b.kv_write("ok", kv, kv, 0)?;
            let mask = Mask::Bidirectional;
            b.attention("bad", x, AttentionShape { mask, window: Some(16), ..attention(4, 0) }).map(drop)
        }),
        ("sinks", |b, x, _| {
            let kv = b.matmul("ok", x, &f32s(&[16, 32]), None)?;
            b.kv_write("ok", kv, kv, 0)?;
            let shape = AttentionShape { window: Some(16), sinks: Some([0.0; 3].into()), ..attention(4, 0) };
            b.attention("bad", x, shape).map(drop)
        }),
    ]);
}

#[test]
fn misfits_of_experts_are_refused_by_name() {
    refused(&[
        ("width of the router's logits", |b, x, _| b.moe_route("bad", x, routing(31, 2)).map(drop)),
        ("experts used", |b, x, _| b.moe_route("bad", x, routing(32, 0)).map(drop)),
        ("experts used", |b, x, _| b.moe_route("bad", x, routing(32, 33)).map(drop)),
        ("factors of the experts", |b, x, _| {
            let expert_scale = Some([1.0; 31].into());
            b.moe_route("bad", x, Routing { expert_scale, ..routing(32, 2) }).map(drop)
        }),
        ("route", |b, x, _| b.expert_matmul("bad", x, x, experts(4, [8, 32])).map(drop)),
        ("route", |b, x, _| b.expert_sum("bad", x, x).map(drop)),
        ("experts", |b, x, route| b.expert_matmul("bad", x, route, experts(3, [8, 32])).map(drop)),
        ("width of x", |b, x, route| b.expert_matmul("bad", x, route, experts(4, [8, 31])).map(drop)),
        ("width of x", |b, x, route| b.expert_matmul("bad", x, route, experts(4, [8, 8])).map(drop)),
        ("rows of an expert", |b, x, route| {
            let weights = [8, 8, 8, 9].map(|n| f32s(&[n, 32])).to_vec().into();
            b.expert_matmul("bad", x, route, Experts { weights, bias: None }).map(drop)
        }),
        ("columns of an expert", |b, x, route| {
            let weights = [32, 32, 32, 16].map(|n| f32s(&[8, n])).to_vec().into();
            b.expert_matmul("bad", x, route, Experts { weights, bias: None }).map(drop)
        }),
        ("format of an expert", |b, x, route| {
            let [f32s, f16s] = [DType::F32, DType::F16].map(|dtype| tensor(dtype, &[8, 32], &[1.0; 256]));
            let weights = vec![f32s.clone(), f32s.clone(), f32s, f16s].into();
            b.expert_matmul("bad", x, route, Experts { weights, bias: None }).map(drop)
        }),
        ("bias of the experts", |b, x, route| {
            let bias = Some(f32s(&[8, 4]));
            b.expert_matmul("bad", x, route, Experts { bias, ..experts(4, [8, 32]) }).map(drop)
        }),
        ("width of x", |b, x, route| {
            let x = b.matmul("ok", x, &f32s(&[7, 32]), None)?;
            b.expert_sum("bad", x, route).map(drop)
        }),
    ]);
}

#[test]
fn misfits_of_recurrent_layers_are_refused_by_name() {
    refused(&[
        ("taps of the convolution", |b, x, _| {
            b.short_conv("bad", x, ConvShape { kernel: 1, ..conv(0, 32) }).map(drop)
        }),
        ("weights of the convolution", |b, x, _| b.short_conv("bad", x, conv(0, 127)).map(drop)),
        ("weights of the convolution", |b, x, _| {
            b.short_conv("bad", x, ConvShape { kernel: usize::MAX, ..conv(0, 128) }).map(drop)
        }),
        ("biases of the convolution", |b, x, _| {
            b.short_conv("bad", x, ConvShape { bias: Some([0.0; 31].into()), ..conv(0, 128) }).map(drop)
        }),
        ("activation", |b, x, _| {
            let act = Activation::ClampedSwish { limit: 7.0 };
            b.short_conv("bad", x, ConvShape { act, ..conv(0, 128) }).map(drop)
        }),
        ("recurrent state", |b, x, _| b.short_conv("bad", x, conv(2, 128)).map(drop)),
        ("floats of the state", |b, x, _| b.short_conv("bad", x, conv(1, 128)).map(drop)),
        ("users of this state", |b, x, _| {
            b.short_conv("ok", x, conv(0, 128))?;
            b.short_conv("bad", x, conv(0, 128)).map(drop)
        }),
        ("value heads", |b, x, _| delta_net(b, x, DeltaShape { n_k_heads: 3, ..delta() })),
        ("value heads", |b, x, _| delta_net(b, x, DeltaShape { n_k_heads: 0, ..delta() })),
        ("value heads", |b, x, _| delta_net(b, x, DeltaShape { n_v_heads: 0, ..delta() })),
        ("head size", |b, x, _| delta_net(b, x, DeltaShape { k_dim: 0, ..delta() })),
        ("head size", |b, x, _| delta_net(b, x, DeltaShape { v_dim: 513, ..delta() })),
        ("width of q, k and v", |b, x, _| delta_net(b, x, DeltaShape { n_k_heads: 2, ..delta() })),
        ("width of q, k and v", |b, x, _| {
            delta_net(b, x, DeltaShape { n_k_heads: usize::MAX, n_v_heads: usize::MAX, ..delta() })
        }),
        ("decays", |b, x, _| delta_net(b, x, DeltaShape { decay: [1.0; 3].into(), ..delta() })),
        ("time steps", |b, x, _| delta_net(b, x, DeltaShape { dt_bias: [1.0; 3].into(), ..delta() })),
        ("floats of the state", |b, x, _| delta_net(b, x, DeltaShape { state: 0, ..delta() })),
        ("width of a gate", |b, x, _| {
            let qkv = b.matmul("ok", x, &f32s(&[16, 32]), None)?;
            b.delta_net("bad", qkv, x, x, delta()).map(drop)
        }),
    ]);
}

/// Fits a width of 2 · 4 + 2 · 4 = 16.
fn ssm() -> SsmShape {
    let heads: std::sync::Arc<[f32]> = [1.0; 2].into();
    SsmShape {
        state: 1,
        n_heads: 2,
        head_dim: 4,
        n_groups: 1,
        d_state: 4,
        decay: heads.clone(),
        skip: heads.clone(),
        dt_bias: heads,
        dt_limits: [0.0, f32::INFINITY],
    }
}

/// With inputs that fit `ssm()`.
fn state_space(b: &mut GraphBuilder, x: ValueId, ssm: SsmShape) -> Result<(), KernelError> {
    let [xbc, dt] = [16, 2].map(|n| b.matmul("ok", x, &f32s(&[n, 32]), None).unwrap());
    b.ssm("bad", xbc, dt, ssm).map(drop)
}

#[test]
fn misfits_of_state_spaces_and_heads_are_refused_by_name() {
    refused(&[
        ("heads", |b, x, _| state_space(b, x, SsmShape { n_groups: 0, ..ssm() })),
        ("heads", |b, x, _| state_space(b, x, SsmShape { n_groups: 4, ..ssm() })),
        ("head or state size", |b, x, _| state_space(b, x, SsmShape { d_state: usize::MAX, ..ssm() })),
        ("head or state size", |b, x, _| state_space(b, x, SsmShape { head_dim: 0, ..ssm() })),
        ("width of x, B and C", |b, x, _| state_space(b, x, SsmShape { n_groups: 2, ..ssm() })),
        ("decays", |b, x, _| state_space(b, x, SsmShape { decay: [1.0; 3].into(), ..ssm() })),
        ("skip factors", |b, x, _| state_space(b, x, SsmShape { skip: [1.0; 3].into(), ..ssm() })),
        ("time steps", |b, x, _| state_space(b, x, SsmShape { dt_bias: [1.0; 3].into(), ..ssm() })),
        ("floats of the state", |b, x, _| state_space(b, x, SsmShape { state: 0, ..ssm() })),
        ("width of the time steps", |b, x, _| {
            let xbc = b.matmul("ok", x, &f32s(&[16, 32]), None)?;
            b.ssm("bad", xbc, x, ssm()).map(drop)
        }),
        ("factors of columns", |b, x, _| b.scale_columns("bad", x, [1.0; 31].into()).map(drop)),
        ("width of an operand", |b, x, _| b.join_columns("bad", x, x, 5).map(drop)),
        ("width of an operand", |b, x, _| b.join_columns("bad", x, x, 0).map(drop)),
        ("factors of a mixture", |b, x, _| b.mix("bad", x, x, MixFactors::OfRow(x), 8).map(drop)),
        ("factors of a mixture", |b, x, _| {
            b.mix("bad", x, x, MixFactors::Same([1.0; 15].into()), 8).map(drop)
        }),
        ("width of x", |b, x, _| b.mix("bad", x, x, MixFactors::Same([1.0; 16].into()), 7).map(drop)),
        ("width of x", |b, x, _| b.mix("bad", x, x, MixFactors::Same([1.0; 16].into()), 0).map(drop)),
        ("rows of an operand", |b, x, _| {
            let rows = b.output_rows("ok", x)?;
            b.mix("bad", x, rows, MixFactors::Same([1.0].into()), 32).map(drop)
        }),
        ("rows of an operand", |b, x, _| {
            let rows = b.output_rows("ok", x)?;
            b.match_rms("bad", x, rows, 1e-5).map(drop)
        }),
        ("width of x", |b, x, _| {
            let wide = b.join_columns("ok", x, x, 1)?;
            b.match_rms("bad", x, wide, 1e-5).map(drop)
        }),
        ("standard deviations", |b, x, _| b.gaussian_top_k("bad", x, f32::NEG_INFINITY).map(drop)),
        ("experts", |b, _, _| b.route_all("bad", 0).map(drop)),
        ("experts", |b, x, _| {
            let route = b.route_all("ok", 3)?;
            b.expert_matmul("bad", x, route, experts(4, [8, 32])).map(drop)
        }),
    ]);
    let (mut b, x, _) = begun_with_states();
    state_space(&mut b, x, ssm()).unwrap();
}

/// The shapes before modification are valid.
#[test]
fn what_fits_is_built() {
    let (mut b, x, route) = begun_with_states();
    b.short_conv("conv", x, conv(0, 128)).unwrap();
    delta_net(&mut b, x, delta()).unwrap();
    let y = b.expert_matmul("experts", x, route, experts(4, [8, 32])).unwrap();
    assert_eq!(b.width(y), 2 * 8);
    let y = b.expert_matmul("each its own", y, route, experts(4, [3, 8])).unwrap();
    let y = b.expert_sum("sum", y, route).unwrap();
    assert_eq!(b.width(y), 3);
    let kv = b.matmul("kv", x, &f32s(&[16, 32]), None).unwrap();
    b.kv_write("write", kv, kv, 0).unwrap();
    let out = b.output_rows("out", y).unwrap();
    let graph = b.finish(out).unwrap();
    assert_eq!((graph.state_devices().len(), graph.n_positions()), (2, None));

    let (mut b, _, route) = begun_with_states();
    let out = b.output_rows("out", route).unwrap();
    assert!(b.finish(out).is_err(), "states that nothing uses");
}

#[test]
fn unfinished_graphs_are_refused() {
    let (mut b, x) = begun();
    let k = b.matmul("k", x, &f32s(&[16, 32]), None).unwrap();
    b.kv_write("kv", k, k, 0).unwrap();
    assert!(b.kv_write("again", k, k, 0).is_err());
    let out = b.output_rows("out", x).unwrap();
    assert!(b.finish(out).is_err(), "layer 1 has no writer");

    let (mut b, x) = begun();
    let k = b.matmul("k", x, &f32s(&[16, 32]), None).unwrap();
    b.kv_write("kv", k, k, 0).unwrap();
    b.kv_write("kv", k, k, 1).unwrap();
    assert!(b.finish(x).is_err(), "rows of tokens are no output");
}

#[test]
fn kv_layouts_are_checked() {
    let with = |layer| GraphBuilder::new(KvLayout::uniform(1, layer));
    assert!(with(KV).is_ok());
    assert!(with(KvLayerLayout { precision: KvDType::Q8_0.both(), ..KV }).is_err(), "8 is no block of 32");
    assert!(with(KvLayerLayout { head_dim: 64, precision: KvDType::Q4_0.both(), ..KV }).is_ok());
    assert!(with(KvLayerLayout { head_dim: 1024, ..KV }).is_err());
    assert!(with(KvLayerLayout { n_kv_heads: 0, ..KV }).is_err());
    assert!(GraphBuilder::new(KvLayout { states: vec![4, 0], ..KvLayout::uniform(1, KV) }).is_err());
    assert!(GraphBuilder::new(KvLayout { page_len: 16, layers: vec![KV], states: Vec::new() }).is_err());
}
