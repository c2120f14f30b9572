//! What a graph builder refuses: every shape that does not fit, as an error that names the node.
#![allow(clippy::unwrap_used)] // a failure here fails the test

mod common;

use common::*;
use kernels::*;
use weights::DType;

const KV: KvLayerLayout = KvLayerLayout { n_kv_heads: 2, head_dim: 8, dtype: KvDType::F16, window: None };

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
        window: None,
        softcap: None,
        sinks: None,
    }
}

fn rope(n_rot: usize, n_freq: usize) -> RopeShape {
    let inv_freq = vec![1.0; n_freq].into();
    RopeShape { n_heads: 4, head_dim: 8, n_rot, inv_freq, mscale: 1.0, style: RopeStyle::Half }
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
    assert!(with(KvLayerLayout { dtype: KvDType::Q8_0, ..KV }).is_err(), "8 is no block of 32");
    assert!(with(KvLayerLayout { head_dim: 64, dtype: KvDType::Q4_0, ..KV }).is_ok());
    assert!(with(KvLayerLayout { head_dim: 1024, ..KV }).is_err());
    assert!(with(KvLayerLayout { n_kv_heads: 0, ..KV }).is_err());
    assert!(GraphBuilder::new(KvLayout { page_len: 16, layers: vec![KV], states: Vec::new() }).is_err());
}
