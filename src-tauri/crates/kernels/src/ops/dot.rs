//! Σ a·b in a fixed order: sixteen partial sums by index modulo sixteen, then added pairwise.

use crate::cpu::isa::{Mac, levels};

/// a, b of one length
pub type Dot = fn(a: &[f32], b: &[f32]) -> f32;

/// Number of partial sums: the width of the widest register.
pub const LANES: usize = 16;

/// a, b (n)
pub fn scalar(a: &[f32], b: &[f32]) -> f32 {
    let mut sum = 0.0f64;
    for i in 0..a.len() {
        sum += f64::from(a[i]) * f64::from(b[i]);
    }
    sum as f32
}

/// Adds the lanes pairwise: 16 → 8 → 4 → 2 → 1.
#[inline(always)]
pub fn sum_lanes(mut lanes: [f32; LANES]) -> f32 {
    let mut n = LANES / 2;
    while n > 0 {
        for i in 0..n {
            lanes[i] += lanes[i + n];
        }
        n /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn body<M: Mac>(a: &[f32], b: &[f32]) -> f32 {
    let n = a.len();
    let b = &b[..n];
    let mut even = [0.0; LANES];
    let mut odd = [0.0; LANES];
    let (a2, b2) = (a.chunks_exact(2 * LANES), b.chunks_exact(2 * LANES));
    let (a_tail, b_tail) = (a2.remainder(), b2.remainder());
    for (a, b) in a2.zip(b2) {
        for i in 0..LANES {
            even[i] = M::mac(a[i], b[i], even[i]);
            odd[i] = M::mac(a[LANES + i], b[LANES + i], odd[i]);
        }
    }
    for i in 0..LANES {
        even[i] += odd[i];
    }
    for (i, (a, b)) in a_tail.iter().zip(b_tail).enumerate() {
        even[i % LANES] = M::mac(*a, *b, even[i % LANES]);
    }
    sum_lanes(even)
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(a: &[f32], b: &[f32]) -> f32);
