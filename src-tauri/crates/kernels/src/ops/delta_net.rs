//! The gated delta rule (arXiv 2412.06464) for one head, on an f32 state S (k_dim, v_dim).
//! S ← S·e^g; d = β·(v − Sᵀk); S ← S + k·dᵀ; out = Sᵀq.
//!
//! A few consecutive tokens go through the state together, some columns at a time, so that these stay in the L1 cache.
//! The arithmetic of a token is the same whichever tokens are beside it.

use super::OpRow;
use super::activate::single;
use super::dot;
use super::softplus::softplus;
use crate::cpu::isa::{Mac, levels};
use crate::graph::{Activation, DeltaShape, HeadOrder, MAX_DELTA_HEAD_DIM};

/// Row in the table of operations.
pub static ROW: OpRow =
    OpRow { name: "delta_net", formula: "S ← S·e^g; S ← S + k·(β·(v − Sᵀk))ᵀ; out = Sᵀq" };

/// Added to squared lengths before the root.
const EPS: f32 = 1e-6;

/// The inputs of one token for one head.
#[derive(Clone, Copy, Debug)]
pub struct DeltaToken<'a> {
    /// (k_dim) query, not normalized
    pub q: &'a [f32],
    /// (k_dim) key, not normalized
    pub k: &'a [f32],
    /// (v_dim) value
    pub v: &'a [f32],
    /// e^g: the share of the state that is kept
    pub keep: f32,
    /// β: the share of the correction that is applied
    pub beta: f32,
}

impl DeltaToken<'_> {
    /// A token without elements.
    pub const EMPTY: Self = Self { q: &[], k: &[], v: &[], keep: 0.0, beta: 0.0 };
}

/// Tokens of one run at most.
pub const MAX_RUN: usize = 8;

/// Advances state (k_dim, v_dim) by 1 to `MAX_RUN` consecutive tokens; out (tokens, v_dim)
pub type AdvanceState = fn(tokens: &[DeltaToken], state: &mut [f32], out: &mut [f32]);

/// The inputs of value head `head` in one row: qkv (2 · n_k_heads · k_dim + n_v_heads · v_dim), beta and alpha
/// (n_v_heads).
pub fn token<'a>(
    delta: &DeltaShape,
    head: usize,
    qkv: &'a [f32],
    beta: &[f32],
    alpha: &[f32],
) -> DeltaToken<'a> {
    let (dk, dv) = (delta.k_dim, delta.v_dim);
    let k_head = match delta.order {
        HeadOrder::Grouped => head / (delta.n_v_heads / delta.n_k_heads),
        HeadOrder::Tiled => head % delta.n_k_heads,
    };
    let (q, rest) = qkv.split_at(delta.n_k_heads * dk);
    let (k, v) = rest.split_at(delta.n_k_heads * dk);
    let g = delta.decay[head] * softplus(alpha[head] + delta.dt_bias[head]);
    DeltaToken {
        q: &q[k_head * dk..(k_head + 1) * dk],
        k: &k[k_head * dk..(k_head + 1) * dk],
        v: &v[head * dv..(head + 1) * dv],
        keep: g.exp(),
        beta: single(beta[head], Activation::Sigmoid),
    }
}

/// One token of one head: state (k_dim, v_dim), out (v_dim)
pub fn scalar(token: DeltaToken, state: &mut [f32], out: &mut [f32]) {
    let (dk, dv) = (token.k.len(), token.v.len());
    let inverse_length = |x: &[f32]| 1.0 / (dot::scalar(x, x) + EPS).sqrt();
    let q_scale = inverse_length(token.q) / (dk as f32).sqrt();
    let k_scale = inverse_length(token.k);
    for j in 0..dv {
        let mut recalled = 0.0;
        for i in 0..dk {
            state[i * dv + j] *= token.keep;
            recalled += state[i * dv + j] * token.k[i] * k_scale;
        }
        let d = token.beta * (token.v[j] - recalled);
        out[j] = 0.0;
        for i in 0..dk {
            state[i * dv + j] += token.k[i] * k_scale * d;
            out[j] += state[i * dv + j] * token.q[i] * q_scale;
        }
    }
}

#[inline(always)]
fn body<M: Mac>(tokens: &[DeltaToken], state: &mut [f32], out: &mut [f32]) {
    let n = tokens.len();
    assert!((1..=MAX_RUN).contains(&n), "{n} tokens are no run");
    let (dk, dv) = (tokens[0].k.len(), tokens[0].v.len());
    assert!(dk <= MAX_DELTA_HEAD_DIM && state.len() == dk * dv && out.len() == n * dv);
    let (mut q, mut k) = ([[0.0; MAX_DELTA_HEAD_DIM]; MAX_RUN], [[0.0; MAX_DELTA_HEAD_DIM]; MAX_RUN]);
    for (token, (q, k)) in tokens.iter().zip(q.iter_mut().zip(&mut k)) {
        assert!(token.q.len() == dk && token.k.len() == dk && token.v.len() == dv);
        normalize::<M>(token.q, 1.0 / (dk as f32).sqrt(), &mut q[..dk]);
        normalize::<M>(token.k, 1.0, &mut k[..dk]);
    }
    let run = Run { tokens, q: &q, k: &k };
    let mut j = 0;
    // as many columns as the registers hold, since fewer sums would be bound by latency
    while M::PANEL_ROWS >= 4 && j + 64 <= dv {
        columns::<M, 64>(&run, j, state, out);
        j += 64;
    }
    while j + 32 <= dv {
        columns::<M, 32>(&run, j, state, out);
        j += 32;
    }
    while j + 8 <= dv {
        columns::<M, 8>(&run, j, state, out);
        j += 8;
    }
    while j < dv {
        columns::<M, 1>(&run, j, state, out);
        j += 1;
    }
}

/// Consecutive tokens with their normalized queries and keys.
struct Run<'a> {
    tokens: &'a [DeltaToken<'a>],
    q: &'a [[f32; MAX_DELTA_HEAD_DIM]; MAX_RUN],
    k: &'a [[f32; MAX_DELTA_HEAD_DIM]; MAX_RUN],
}

/// Scales x to length `length`.
#[inline(always)]
fn normalize<M: Mac>(x: &[f32], length: f32, out: &mut [f32]) {
    let mut lanes = [0.0; dot::LANES];
    for x in x.chunks(dot::LANES) {
        for (lane, x) in lanes.iter_mut().zip(x) {
            *lane = M::mac(*x, *x, *lane);
        }
    }
    let scale = length / (dot::sum_lanes(lanes) + EPS).sqrt();
    for (out, x) in out.iter_mut().zip(x) {
        *out = x * scale;
    }
}

/// Columns j..j + N of the state; recalled values, corrections and results stay in registers. The pass that writes a
/// token also recalls what the next one finds.
#[inline(always)]
fn columns<M: Mac, const N: usize>(run: &Run, j: usize, state: &mut [f32], out: &mut [f32]) {
    let dv = run.tokens[0].v.len();
    let mut recalled = [0.0f32; N];
    for (row, k) in state.chunks_exact(dv).zip(&run.k[0]) {
        let row: &[f32; N] = row[j..][..N].try_into().expect("a slice of N floats");
        for n in 0..N {
            recalled[n] = M::mac(row[n], *k, recalled[n]);
        }
    }
    for (t, token) in run.tokens.iter().enumerate() {
        let mut correction = [0.0f32; N];
        for n in 0..N {
            correction[n] = token.beta * (token.v[j + n] - token.keep * recalled[n]);
        }
        let (q, k) = (&run.q[t], &run.k[t]);
        let next = run.k.get(t + 1).filter(|_| t + 1 < run.tokens.len());
        let sum;
        (sum, recalled) = match next {
            Some(next) => update::<M, N, true>(token.keep, [q, k, next], &correction, j, dv, state),
            None => update::<M, N, false>(token.keep, [q, k, k], &correction, j, dv, state),
        };
        out[t * dv + j..][..N].copy_from_slice(&sum);
    }
}

/// Writes one token into the columns. Returns its results, and what the key `next` recalls afterwards if there is one.
#[inline(always)]
fn update<M: Mac, const N: usize, const HAS_NEXT: bool>(
    keep: f32,
    [q, k, next]: [&[f32; MAX_DELTA_HEAD_DIM]; 3],
    correction: &[f32; N],
    j: usize,
    dv: usize,
    state: &mut [f32],
) -> ([f32; N], [f32; N]) {
    let (mut sum, mut recalled) = ([0.0f32; N], [0.0f32; N]);
    for (row, ((q, k), next)) in state.chunks_exact_mut(dv).zip(q.iter().zip(k).zip(next)) {
        let row: &mut [f32; N] = (&mut row[j..][..N]).try_into().expect("a slice of N floats");
        for n in 0..N {
            row[n] = M::mac(*k, correction[n], row[n] * keep);
            sum[n] = M::mac(row[n], *q, sum[n]);
            if HAS_NEXT {
                recalled[n] = M::mac(row[n], *next, recalled[n]);
            }
        }
    }
    (sum, recalled)
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(tokens: &[DeltaToken], state: &mut [f32], out: &mut [f32]));

#[cfg(test)]
mod tests {
    use super::*;

    /// Heads of one element, whose normalized key is ±1, can be computed by hand.
    #[test]
    fn one_number_is_stored_corrected_and_decayed() {
        let token = |k, v, keep, beta| DeltaToken { q: &[5.0], k, v, keep, beta };
        let (mut state, mut out) = ([0.0], [0.0]);
        let mut check = |token: DeltaToken, want: f32| {
            scalar(token, &mut state, &mut out);
            assert!((out[0] - want).abs() < 1e-5, "{} is not {want}", out[0]);
        };
        check(token(&[3.0], &[2.0], 1.0, 1.0), 2.0);
        check(token(&[3.0], &[1.0], 1.0, 0.5), 1.5);
        check(token(&[-3.0], &[1.5], 1.0, 1.0), -1.5);
        check(token(&[3.0], &[9.0], 0.5, 0.0), -0.75);
    }

    #[test]
    fn heads_and_gates() {
        let delta = |order| DeltaShape {
            state: 0,
            n_k_heads: 2,
            n_v_heads: 4,
            k_dim: 1,
            v_dim: 1,
            order,
            decay: [-2.0; 4].into(),
            dt_bias: [0.5; 4].into(),
        };
        let qkv = [10.0, 11.0, 20.0, 21.0, 30.0, 31.0, 32.0, 33.0];
        let heads = |order| {
            [0, 1, 2, 3].map(|head| token(&delta(order), head, &qkv, &[0.0; 4], &[-0.5, 99.5, 0.0, 0.0]))
        };
        assert_eq!(heads(HeadOrder::Grouped).map(|t| t.k[0]), [20.0, 20.0, 21.0, 21.0]);
        assert_eq!(heads(HeadOrder::Tiled).map(|t| t.q[0]), [10.0, 11.0, 10.0, 11.0]);
        assert_eq!(heads(HeadOrder::Tiled).map(|t| t.v[0]), [30.0, 31.0, 32.0, 33.0]);
        let first = heads(HeadOrder::Grouped)[0];
        assert!((first.keep - 0.25).abs() < 1e-6 && first.beta == 0.5, "e^(−2 ln 2) and σ(0)");
        assert_eq!(heads(HeadOrder::Grouped)[1].keep, (-200f32).exp());
    }
}
