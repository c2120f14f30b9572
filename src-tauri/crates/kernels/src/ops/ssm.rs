//! The state space of Mamba-2 (arXiv 2405.21060), one token of one head at a time, on an f32 state S (d_state, head_dim).
//! S ← S·e^(dt·decay) + B·(dt·x)ᵀ; out = Sᵀ·C + skip·x.

use super::OpRow;
use super::softplus::softplus;
use crate::cpu::isa::{Mac, levels};
use crate::graph::SsmShape;

/// Row in the table of operations.
pub static ROW: OpRow =
    OpRow { name: "ssm", formula: "S ← S·e^(dt·decay) + B·(dt·x)ᵀ; out = Sᵀ·C + skip·x" };

/// The inputs of one token for one head.
#[derive(Clone, Copy, Debug)]
pub struct SsmToken<'a> {
    /// (head_dim)
    pub x: &'a [f32],
    /// (d_state) what x is written along
    pub b: &'a [f32],
    /// (d_state) what the state is read along
    pub c: &'a [f32],
    /// e^(dt·decay): the share of the state that is kept
    pub keep: f32,
    /// time step
    pub dt: f32,
    /// factor on x in the output
    pub skip: f32,
}

/// Advances state (d_state, head_dim) by one token; out (head_dim)
pub type AdvanceSsm = fn(token: SsmToken, state: &mut [f32], out: &mut [f32]);

/// The inputs of head `head` in one row: xbc (n_heads · head_dim + 2 · n_groups · d_state), dt (n_heads).
pub fn token<'a>(ssm: &SsmShape, head: usize, xbc: &'a [f32], dt: &[f32]) -> SsmToken<'a> {
    let (x, rest) = xbc.split_at(ssm.n_heads * ssm.head_dim);
    let (b, c) = rest.split_at(ssm.n_groups * ssm.d_state);
    let group = head / (ssm.n_heads / ssm.n_groups);
    let of_group = group * ssm.d_state..(group + 1) * ssm.d_state;
    let [least, largest] = ssm.dt_limits;
    let dt = softplus(dt[head] + ssm.dt_bias[head]);
    // what is no number stays so
    let dt = if dt < least { least } else { dt };
    let dt = if dt > largest { largest } else { dt };
    SsmToken {
        x: &x[head * ssm.head_dim..(head + 1) * ssm.head_dim],
        b: &b[of_group.clone()],
        c: &c[of_group],
        keep: (dt * ssm.decay[head]).exp(),
        dt,
        skip: ssm.skip[head],
    }
}

/// One token of one head: state (d_state, head_dim), out (head_dim)
pub fn scalar(token: SsmToken, state: &mut [f32], out: &mut [f32]) {
    let n = token.x.len();
    for j in 0..n {
        let mut sum = 0.0;
        for i in 0..token.b.len() {
            let s = &mut state[i * n + j];
            *s = *s * token.keep + token.b[i] * (token.dt * token.x[j]);
            sum += *s * token.c[i];
        }
        out[j] = sum + token.skip * token.x[j];
    }
}

#[inline(always)]
fn body<M: Mac>(token: SsmToken, state: &mut [f32], out: &mut [f32]) {
    let n = token.x.len();
    assert!(token.b.len() == token.c.len() && state.len() == n * token.b.len() && out.len() == n);
    let mut j = 0;
    // as many columns as the registers hold, since fewer sums would be bound by latency
    while M::PANEL_ROWS >= 4 && j + 128 <= n {
        columns::<M, 128>(token, j, state, out);
        j += 128;
    }
    while j + 32 <= n {
        columns::<M, 32>(token, j, state, out);
        j += 32;
    }
    while j + 8 <= n {
        columns::<M, 8>(token, j, state, out);
        j += 8;
    }
    while j < n {
        columns::<M, 1>(token, j, state, out);
        j += 1;
    }
}

/// Columns j..j + N of the state; inputs and results stay in registers.
#[inline(always)]
fn columns<M: Mac, const N: usize>(token: SsmToken, j: usize, state: &mut [f32], out: &mut [f32]) {
    let x: &[f32; N] = token.x[j..][..N].try_into().expect("a slice of N floats");
    let (stepped, mut sum) = (x.map(|x| token.dt * x), [0.0f32; N]);
    let rows = state.chunks_exact_mut(token.x.len());
    for ((row, b), c) in rows.zip(token.b).zip(token.c) {
        let row: &mut [f32; N] = (&mut row[j..][..N]).try_into().expect("a slice of N floats");
        for n in 0..N {
            row[n] = M::mac(*b, stepped[n], row[n] * token.keep);
            sum[n] = M::mac(row[n], *c, sum[n]);
        }
    }
    for n in 0..N {
        out[j + n] = M::mac(token.skip, x[n], sum[n]);
    }
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(token: SsmToken, state: &mut [f32], out: &mut [f32]));

#[cfg(test)]
mod tests {
    use super::*;

    /// Heads of one element with a state of two can be computed by hand.
    #[test]
    fn inputs_are_written_along_b_and_read_along_c() {
        let token = |x, keep, dt| SsmToken { x, b: &[1.0, 2.0], c: &[1.0, -1.0], keep, dt, skip: 10.0 };
        let (mut state, mut out) = ([0.0; 2], [0.0]);
        scalar(token(&[3.0], 0.5, 2.0), &mut state, &mut out);
        assert_eq!((state, out), ([6.0, 12.0], [24.0]), "6 − 12 + 30");
        scalar(token(&[1.0], 0.5, 1.0), &mut state, &mut out);
        assert_eq!((state, out), ([4.0, 8.0], [6.0]), "4 − 8 + 10");
    }

    #[test]
    fn heads_share_groups_and_time_steps_have_limits() {
        let ssm = SsmShape {
            state: 0,
            n_heads: 4,
            head_dim: 1,
            n_groups: 2,
            d_state: 1,
            decay: [-1.0, -2.0, -1.0, -1.0].into(),
            skip: [1.0, 2.0, 3.0, 4.0].into(),
            dt_bias: [0.5; 4].into(),
            dt_limits: [0.1, 9.0],
        };
        let xbc = [10.0, 11.0, 12.0, 13.0, 20.0, 21.0, 30.0, 31.0];
        let heads = [0, 1, 2, 3].map(|head| token(&ssm, head, &xbc, &[-0.5, -0.5, -99.0, 99.0]));
        assert_eq!(heads.map(|t| t.x[0]), [10.0, 11.0, 12.0, 13.0]);
        assert_eq!(heads.map(|t| t.b[0]), [20.0, 20.0, 21.0, 21.0]);
        assert_eq!(heads.map(|t| t.c[0]), [30.0, 30.0, 31.0, 31.0]);
        assert_eq!(heads.map(|t| t.skip), [1.0, 2.0, 3.0, 4.0]);
        assert!((heads[0].dt - 2f32.ln()).abs() < 1e-6 && (heads[1].keep - 0.25).abs() < 1e-6);
        assert_eq!([heads[2].dt, heads[3].dt], [0.1, 9.0]);
    }
}
