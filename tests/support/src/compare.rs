//! Distances between computed and expected values.
//!
//! Guarantees that a NaN fails every comparison with a limit: `f32::max` drops it, these turn it into infinity.

/// The largest of `values`; 0 if there are none, infinite if one is NaN.
pub fn largest(values: impl IntoIterator<Item = f32>) -> f32 {
    values.into_iter().fold(0.0, |most, value| if value.is_nan() { f32::INFINITY } else { most.max(value) })
}

/// How far `found` is from `expected`: 0 if both are the same infinity, infinite if one is NaN.
pub fn difference(found: f32, expected: f32) -> f32 {
    if found == expected { 0.0 } else { largest([(found - expected).abs()]) }
}

/// The largest difference between two rows of the same length.
///
/// Panics if the lengths differ.
pub fn largest_difference(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len(), "rows of different lengths");
    largest(found.iter().zip(expected).map(|(a, b)| difference(*a, *b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_farther_than_every_limit() {
        let nan = f32::NAN;
        for (found, expected) in
            [([1.0, nan], [1.0, 2.0]), ([1.0, 2.0], [nan, 2.0]), ([nan, 9.0], [nan, 2.0])]
        {
            assert_eq!(largest_difference(&found, &expected), f32::INFINITY, "{found:?} {expected:?}");
        }
        assert_eq!(largest([nan, 1.0]), f32::INFINITY);
        assert_eq!(largest([1.0, nan, 0.5]), f32::INFINITY);
    }

    #[test]
    fn numbers_keep_their_distance() {
        let infinite = f32::INFINITY;
        assert_eq!(largest([]), 0.0);
        assert_eq!(largest([0.5, 2.0, 1.0]), 2.0);
        assert_eq!(largest_difference(&[1.0, -2.0, -infinite], &[1.5, 2.0, -infinite]), 4.0);
        assert_eq!(difference(infinite, 1.0), infinite);
        assert_eq!(difference(infinite, -infinite), infinite);
    }
}
