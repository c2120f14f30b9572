//! Every vectorised operation at every level of this processor against its `scalar`, over lengths that leave tails.

use crate::cpu::isa::IsaLevel;
use crate::graph::{Activation, RopeStyle};
use crate::ops::{Kernels, add, attention, dot, glu, panel, rms_norm, rope};

/// Lengths around the widths of registers.
const LENGTHS: [usize; 12] = [1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 100, 1031];

/// A reproducible number between -2 and 2.
fn number(i: usize) -> f32 {
    let z = (i as u32 + 1).wrapping_mul(0x9e37_79b9);
    let z = (z ^ (z >> 15)).wrapping_mul(0x85eb_ca6b);
    (z >> 8) as f32 / (1 << 22) as f32 - 2.0
}

fn numbers(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| number(i + seed * 100_003)).collect()
}

/// `|a − b| ≤ tolerance · (1 + |a|)` for each element.
fn assert_close(what: &str, level: IsaLevel, want: &[f32], got: &[f32], tolerance: f32) {
    assert_eq!(want.len(), got.len());
    for (i, (a, b)) in want.iter().zip(got).enumerate() {
        assert!((a - b).abs() <= tolerance * (1.0 + a.abs()), "{what} at {level}: [{i}] is {b}, not {a}");
    }
}

/// Runs `scalar` and the level's kernel on each length and compares what they wrote.
fn check(
    what: &str,
    tolerance: f32,
    scalar: &dyn Fn(usize, &mut [f32]),
    kernel: &dyn Fn(&Kernels, usize, &mut [f32]),
) {
    for level in IsaLevel::present() {
        let kernels = Kernels::at(level);
        for n in LENGTHS {
            let (mut want, mut got) = (numbers(n, 9), numbers(n, 9));
            scalar(n, &mut want);
            kernel(&kernels, n, &mut got);
            assert_close(what, level, &want, &got, tolerance);
        }
    }
}

#[test]
fn additions_are_exact() {
    let (a, b) = (|n| numbers(n, 1), |n| numbers(n, 2));
    check("add", 0.0, &|n, o| add::scalar(&a(n), &b(n), o), &|k, n, o| (k.add)(&a(n), &b(n), o));
}

/// Sums in another order: a few units in the last place for each halving of a thousand terms.
#[test]
fn dots_and_norms() {
    let (a, b) = (|n| numbers(n, 1), |n| numbers(n, 2));
    check("dot", 1e-5, &|n, o| o[0] = dot::scalar(&a(n), &b(n)), &|k, n, o| o[0] = (k.dot)(&a(n), &b(n)));
    check("rms_norm", 2e-6, &|n, o| rms_norm::scalar(&a(n), &b(n), 1e-5, o), &|k, n, o| {
        (k.rms_norm)(&a(n), &b(n), 1e-5, o);
    });
}

/// e^x by polynomial: 3e-7 of itself, and a division.
#[test]
fn gated_units() {
    let (a, b) = (|n| numbers(n, 1), |n| numbers(n, 2));
    for act in [Activation::Silu, Activation::GeluTanh] {
        check("glu", 2e-6, &|n, o| glu::scalar(&a(n), &b(n), act, o), &|k, n, o| {
            (k.glu)(&a(n), &b(n), act, o);
        });
    }
}

/// One multiplication may be fused with an addition.
#[test]
fn rotations() {
    for (head_dim, n_rot) in [(2, 2), (8, 6), (64, 64), (80, 32), (128, 128)] {
        let (cos, sin) = (numbers(n_rot / 2, 3), numbers(n_rot / 2, 4));
        for style in [RopeStyle::Half, RopeStyle::Interleaved] {
            for level in IsaLevel::present() {
                let (mut want, mut got) = (numbers(3 * head_dim, 1), numbers(3 * head_dim, 1));
                rope::scalar(&mut want, head_dim, style, &cos, &sin);
                (Kernels::at(level).rope)(&mut got, head_dim, style, &cos, &sin);
                assert_close("rope", level, &want, &got, 1e-6);
            }
        }
    }
}

/// Products of up to 100 terms: fused or not, a few units in the last place.
#[test]
fn panels() {
    for n_a in [1, 2, 3, 4, 5, 7, 9] {
        for (k, n) in [(1, 1), (8, 32), (33, 40), (100, 64), (17, 73), (5, 20)] {
            let shape = panel::PanelShape { n_a, k, n, a_stride: k + 3, b_stride: n + 1, c_stride: n + 2 };
            let (a, b) = (numbers(n_a * (k + 3), 1), numbers(k * (n + 1), 2));
            for level in IsaLevel::present() {
                let (mut want, mut got) = (numbers(n_a * (n + 2), 3), numbers(n_a * (n + 2), 3));
                panel::scalar(shape, &a, &b, &mut want);
                (Kernels::at(level).panel)(shape, &a, &b, &mut got);
                assert_close("panel", level, &want, &got, 2e-5);
            }
        }
    }
}

/// Softmax in two parts, merged, against the whole.
#[test]
fn softmaxes_merge() {
    let d = 24;
    let (q, keys, values) = (numbers(d, 1), numbers(96 * d, 2), numbers(96 * d, 3));
    let mut want = vec![0.0; d];
    attention::scalar(&q, &keys, &values, 0.3, &mut [0.0; 96], &mut want);
    for level in IsaLevel::present() {
        let kernels = Kernels::at(level);
        let part = |range: std::ops::Range<usize>| {
            let mut scores: Vec<f32> =
                range.clone().map(|j| dot::scalar(&q, &keys[j * d..(j + 1) * d]) * 0.3).collect();
            let partial = (kernels.softmax)(&mut scores);
            let mut sums = vec![0.0; d];
            for (j, p) in range.zip(scores) {
                sums.iter_mut().zip(&values[j * d..]).for_each(|(s, v)| *s += p * v);
            }
            (partial, sums)
        };
        let ((first, mut sums), (second, more)) = (part(0..64), part(64..96));
        let total = (kernels.merge)(first, &mut sums, second, &more);
        let got: Vec<f32> = sums.iter().map(|s| s / total.sum).collect();
        assert_close("attention", level, &want, &got, 1e-5);
    }
}
