//! A route to all experts in their order: matrices that every token passes, such as one for each head.

use super::OpRow;

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "route_all", formula: "indices 0..n, weights of 1" };

/// One token: out (2, n)
pub fn scalar(out: &mut [f32]) {
    let (indices, weights) = out.split_at_mut(out.len() / 2);
    indices.iter_mut().enumerate().for_each(|(i, index)| *index = i as f32);
    weights.fill(1.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experts_keep_their_order() {
        let mut out = [9.0; 6];
        scalar(&mut out);
        assert_eq!(out, [0.0, 1.0, 2.0, 1.0, 1.0, 1.0]);
    }
}
