//! Compares every vectorized operation at every level of this CPU with its `scalar`, for lengths that leave tails.

use crate::cpu::isa::IsaLevel;
use crate::graph::{Activation, RopeStyle};
use crate::ops::{
    Kernels, activate, add, attention, cross_entropy, delta_net, dot, expert_sum, gaussian_top_k, glu,
    layer_norm, match_rms, mix, panel, rms_norm, rope, scale, softcap, ssm,
};

/// Lengths around register widths.
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

/// Runs `scalar` and the level's kernel on each length and compares their results.
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
fn additions_and_factors_are_exact() {
    let (a, b) = (|n| numbers(n, 1), |n| numbers(n, 2));
    check("add", 0.0, &|n, o| add::scalar(&a(n), &b(n), o), &|k, n, o| (k.add)(&a(n), &b(n), o));
    check("scale", 0.0, &|n, o| scale::scalar(&a(n), 0.3, o), &|k, n, o| (k.scale)(&a(n), 0.3, o));
}

/// Sums in another order: a few units in the last place per halving of a thousand terms.
#[test]
fn dots_and_norms() {
    let (a, b) = (|n| numbers(n, 1), |n| numbers(n, 2));
    check("dot", 1e-5, &|n, o| o[0] = dot::scalar(&a(n), &b(n)), &|k, n, o| o[0] = (k.dot)(&a(n), &b(n)));
    check("rms_norm", 2e-6, &|n, o| rms_norm::scalar(&a(n), &b(n), 1e-5, o), &|k, n, o| {
        (k.rms_norm)(&a(n), &b(n), 1e-5, o);
    });
    let grouped = |n: usize| (numbers(3 * n, 1), vec![0.0; 3 * n]);
    let last = |n: usize, x: Vec<f32>, out: &mut [f32]| out.copy_from_slice(&x[2 * n..]);
    let scalar = |n: usize, out: &mut [f32]| {
        let (x, mut y) = grouped(n);
        rms_norm::scalar(&x, &b(n), 1e-5, &mut y);
        last(n, y, out);
    };
    check("rms_norm of groups", 2e-6, &scalar, &|k, n, out| {
        let (x, mut y) = grouped(n);
        (k.rms_norm)(&x, &b(n), 1e-5, &mut y);
        last(n, y, out);
    });
    let bias = |n| numbers(n, 3);
    check("layer_norm", 4e-6, &|n, o| layer_norm::scalar(&a(n), &b(n), &bias(n), 1e-5, o), &|k, n, o| {
        (k.layer_norm)(&a(n), &b(n), &bias(n), 1e-5, o);
    });
}

/// Sums in another order, and the smallest differences from a cutoff.
#[test]
fn streams() {
    let (a, b) = (|n| numbers(n, 1), |n| numbers(n, 2));
    for deviations in [-1.0, 0.0, 1.6448536] {
        let scalar = |n: usize, o: &mut [f32]| gaussian_top_k::scalar(&a(n), deviations, o);
        check("gaussian_top_k", 4e-6, &scalar, &|k, n, o| (k.gaussian_top_k)(&a(n), deviations, o));
    }
    check("match_rms", 2e-6, &|n, o| match_rms::scalar(&a(n), &b(n), 1e-5, o), &|k, n, o| {
        (k.match_rms)(&a(n), &b(n), 1e-5, o);
    });
    // three parts of one column from two, whose sums tell them apart
    let factors = [0.5, -1.0, 0.0, 2.0, 1.5, 0.25];
    let of_three = |n: usize, kernel: mix::Mix, out: &mut [f32]| {
        let mut all = vec![0.0; 3 * n];
        kernel(&numbers(3 * n, 1), &numbers(2 * n, 2), &factors, n, &mut all);
        (0..n).for_each(|i| out[i] = all[i] - all[n + i] + 0.5 * all[2 * n + i]);
    };
    check("mix", 2e-6, &|n, out| of_three(n, mix::scalar, out), &|k, n, out| of_three(n, k.mix, out));
}

/// Limits within the numbers and at infinity.
const ACTIVATIONS: [Activation; 8] = [
    Activation::Identity,
    Activation::Sigmoid,
    Activation::Silu,
    Activation::Gelu,
    Activation::GeluTanh,
    Activation::ReluSquared,
    Activation::ClampedSwish { limit: 0.9 },
    Activation::ClampedSwish { limit: f32::INFINITY },
];

/// e^x and erfc by polynomial have relative errors of 5e-7, plus a division; a cap has 1e-7. Covers the range up to where
/// both sides are flat.
#[test]
fn activations() {
    let wide = |n| numbers(n, 9).iter().map(|x| x * 8.0).collect::<Vec<f32>>();
    let xielu = |eps| Activation::XIelu { alpha_p: 0.7, alpha_n: 0.9, beta: 0.5, eps };
    for act in ACTIVATIONS.into_iter().chain([xielu(-1e-6), xielu(-0.3)]) {
        let copied = |n, out: &mut [f32]| out.copy_from_slice(&wide(n));
        let scalar = |n, out: &mut [f32]| {
            copied(n, out);
            activate::scalar(out, act);
        };
        check("activate", 1e-6, &scalar, &|k, n, out| {
            copied(n, out);
            (k.activate)(out, act);
        });
    }
    for cap in [0.5, 30.0] {
        check("softcap", 5e-7 + 1e-7 * cap, &|_, out| softcap::scalar(out, cap), &|k, _, out| {
            (k.softcap)(out, cap)
        });
    }
}

/// e^x by polynomial has a relative error of 3e-7, plus a division.
#[test]
fn gated_units() {
    let (a, b) = (|n| numbers(n, 1), |n| numbers(n, 2));
    for act in ACTIVATIONS {
        check("glu", 2e-6, &|n, o| glu::scalar(&a(n), &b(n), act, o), &|k, n, o| {
            (k.glu)(&a(n), &b(n), act, o);
        });
    }
}

/// Sums of a few products, fused or not.
#[test]
fn sums_of_experts() {
    let route = [3.0, 1.0, 7.0, 0.5, 0.3, 0.2];
    check("expert_sum", 1e-6, &|n, o| expert_sum::scalar(&numbers(3 * n, 1), &route, o), &|k, n, o| {
        (k.expert_sum)(&numbers(3 * n, 1), &route, o);
    });
    let product = |n: usize, o: &mut [f32]| (0..n).for_each(|i| o[i] += number(i) * number(i + 7));
    check("mul_add", 1e-6, &product, &|k, n, o| {
        let (a, b): (Vec<f32>, Vec<f32>) = (0..n).map(|i| (number(i), number(i + 7))).unzip();
        (k.mul_add)(&a, &b, o);
    });
}

/// Ten tokens on one state: sums of up to 256 terms in another order, accumulated.
#[test]
fn state_spaces() {
    for (d_state, n) in [(1, 1), (16, 8), (24, 41), (128, 64), (256, 129)] {
        for level in IsaLevel::present() {
            let (mut want, mut got) = (numbers(n * d_state, 1), numbers(n * d_state, 1));
            for t in 0..10 {
                let (x, b, c) = (numbers(n, 3 * t), numbers(d_state, 3 * t + 1), numbers(d_state, 3 * t + 2));
                let token = ssm::SsmToken { x: &x, b: &b, c: &c, keep: 0.9, dt: 0.3, skip: 0.7 };
                let (mut out, mut level_out) = (vec![0.0; n], vec![0.0; n]);
                ssm::scalar(token, &mut want, &mut out);
                (Kernels::at(level).ssm)(token, &mut got, &mut level_out);
                assert_close("ssm", level, &out, &level_out, 1e-5);
                assert_close("ssm's state", level, &want, &got, 5e-6);
            }
        }
    }
}

/// Ten tokens on one state: sums of up to 130 terms in another order, accumulated.
#[test]
fn delta_rules() {
    for (dk, dv) in [(1, 1), (16, 8), (24, 41), (128, 128), (130, 77)] {
        let inputs: Vec<[Vec<f32>; 3]> =
            (0..10).map(|t| [numbers(dk, 3 * t), numbers(dk, 3 * t + 1), numbers(dv, 3 * t + 2)]).collect();
        let tokens: Vec<_> =
            inputs.iter().map(|[q, k, v]| delta_net::DeltaToken { q, k, v, keep: 0.9, beta: 0.7 }).collect();
        let start = numbers(dk * dv, 1);
        let (mut want, mut wanted_out) = (start.clone(), vec![0.0; 10 * dv]);
        for (token, out) in tokens.iter().zip(wanted_out.chunks_exact_mut(dv)) {
            delta_net::scalar(*token, &mut want, out);
        }
        for level in IsaLevel::present() {
            // Runs of any length have the same bits.
            let mut alone = None;
            for length in [1, 2, 3, delta_net::MAX_RUN] {
                let (mut got, mut out) = (start.clone(), vec![0.0; 10 * dv]);
                for (run, out) in tokens.chunks(length).zip(out.chunks_mut(length * dv)) {
                    (Kernels::at(level).delta)(run, &mut got, out);
                }
                assert_close("delta_net", level, &wanted_out, &out, 5e-6);
                assert_close("delta_net's state", level, &want, &got, 5e-6);
                let bits = (got, out);
                assert!(*alone.get_or_insert_with(|| bits.clone()) == bits, "runs of {length} at {level:?}");
            }
        }
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

#[test]
fn cross_entropies() {
    for (n, target) in [(1, 0), (17, 16), (1500, 7), (2100, 1024)] {
        for level in IsaLevel::present() {
            let logits: Vec<f32> = numbers(n, 1).iter().map(|x| 4.0 * x).collect();
            let (mut want, mut got) = (logits.clone(), logits);
            let loss = cross_entropy::scalar(&mut want, target, 0.5);
            let found = (Kernels::at(level).cross_entropy)(&mut got, target, 0.5);
            assert!((found - loss).abs() < 1e-6, "{level}: {found}, not {loss}");
            assert_close("cross_entropy", level, &want, &got, 1e-7);
        }
    }
}

/// Sums of up to 100 products, fused or not: a few units in the last place.
#[test]
fn panels() {
    for n_a in [1, 2, 3, 4, 5, 7, 9, 25] {
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

/// Compares two merged partial softmaxes with the whole.
#[test]
fn softmaxes_merge() {
    let d = 24;
    let (q, keys, values) = (numbers(d, 1), numbers(96 * d, 2), numbers(96 * d, 3));
    let mut want = vec![0.0; d];
    let scoring = attention::Scoring { scale: 0.3, softcap: None, sink: None };
    attention::scalar(&q, &keys, &values, scoring, &mut [0.0; 96], &mut want);
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
