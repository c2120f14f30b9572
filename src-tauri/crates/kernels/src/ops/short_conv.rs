//! Depthwise causal convolution over time, one token at a time; the state holds the preceding inputs.

use super::{OpRow, activate};
use crate::cpu::isa::{Mac, levels};
use crate::graph::ConvShape;

/// Row in the table of operations.
pub static ROW: OpRow = OpRow {
    name: "short_conv",
    formula: "act(Σⱼ weight[j] · x[t − K + 1 + j] + bias), channel by channel",
};

/// acc += a · b, all of one length
pub type MulAdd = fn(a: &[f32], b: &[f32], acc: &mut [f32]);

/// One token: x, out (channels), state (K − 1, channels), which is advanced to the next token
pub fn scalar(x: &[f32], conv: &ConvShape, state: &mut [f32], out: &mut [f32]) {
    let (n, taps) = (x.len(), conv.kernel);
    for c in 0..n {
        let weight = &conv.weight[c * taps..(c + 1) * taps];
        let mut sum = conv.bias.as_ref().map_or(0.0, |bias| bias[c]);
        for j in 0..taps - 1 {
            sum += weight[j] * state[j * n + c];
        }
        out[c] = sum + weight[taps - 1] * x[c];
    }
    activate::scalar(out, conv.act);
    state.copy_within(n.., 0);
    state[(taps - 2) * n..].copy_from_slice(x);
}

/// Weights as (K, channels), so that a vector of channels is contiguous.
pub fn by_tap(conv: &ConvShape) -> Vec<f32> {
    let taps = conv.kernel;
    (0..taps).flat_map(|j| conv.weight.iter().skip(j).step_by(taps)).copied().collect()
}

#[inline(always)]
fn body<M: Mac>(a: &[f32], b: &[f32], acc: &mut [f32]) {
    let n = acc.len();
    let (a, b) = (&a[..n], &b[..n]);
    for i in 0..n {
        acc[i] = M::mac(a[i], b[i], acc[i]);
    }
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(a: &[f32], b: &[f32], acc: &mut [f32]));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Activation;

    #[test]
    fn taps_meet_the_inputs_before() {
        let conv = ConvShape {
            state: 0,
            weight: [1.0, 10.0, 100.0, 2.0, 20.0, 200.0].into(),
            kernel: 3,
            bias: Some([0.5, 0.0].into()),
            act: Activation::Identity,
        };
        assert_eq!(by_tap(&conv), [1.0, 2.0, 10.0, 20.0, 100.0, 200.0]);
        let (mut state, mut out) = ([0.0; 4], [0.0; 2]);
        for (x, want) in [
            ([1.0, 0.0], [100.5, 0.0]),
            ([2.0, 1.0], [210.5, 200.0]),
            ([3.0, 0.0], [321.5, 20.0]),
            ([0.0, 0.0], [32.5, 2.0]),
        ] {
            scalar(&x, &conv, &mut state, &mut out);
            assert_eq!(out, want);
        }
        assert_eq!(state, [3.0, 0.0, 0.0, 0.0]);
    }
}
