//! Keeps values within bounds, as towers need that were trained so; NaN stays NaN.

use super::OpRow;

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "clamp", formula: "min(max(x, low), high)" };

/// x (n), in place; `low` is at most `high`
pub fn scalar(x: &mut [f32], low: f32, high: f32) {
    for x in x {
        *x = if *x < low { low } else { *x };
        *x = if *x > high { high } else { *x };
    }
}

#[cfg(test)]
mod tests {
    use super::scalar;

    #[test]
    fn values_stay_within_bounds() {
        let mut x = [-3.0, -0.5, 0.25, 2.0, f32::NAN];
        scalar(&mut x, -0.5, 1.0);
        assert_eq!(x[..4], [-0.5, -0.5, 0.25, 1.0]);
        assert!(x[4].is_nan());
    }
}
