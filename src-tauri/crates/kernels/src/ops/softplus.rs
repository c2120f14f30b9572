//! The softplus of time steps and decays: a smooth step that is never negative.

/// ln(1 + e^x), computed as x where both are equal in f32.
pub fn softplus(x: f32) -> f32 {
    if x > 20.0 { x } else { x.exp().ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_arguments_keep_their_digits() {
        for (x, expected) in
            [(0.0, 2f32.ln()), (-20.0, 2.061_153_6e-9), (100.0, 100.0), (f32::NEG_INFINITY, 0.0)]
        {
            assert!((softplus(x) - expected).abs() <= 1e-6 * expected, "{x}");
        }
    }
}
