//! Joins the columns of two values group by group: the parts of a head that are computed separately.

use super::OpRow;

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "join_columns", formula: "out[g] = a[g], then b[g]" };

/// One row: a (n_groups, w), b (n_groups, v), out (n_groups, w + v)
pub fn scalar(a: &[f32], b: &[f32], n_groups: usize, out: &mut [f32]) {
    let (w, v) = (a.len() / n_groups, b.len() / n_groups);
    for (out, (a, b)) in out.chunks_exact_mut(w + v).zip(a.chunks_exact(w).zip(b.chunks_exact(v))) {
        let (left, right) = out.split_at_mut(w);
        left.copy_from_slice(a);
        right.copy_from_slice(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_alternate() {
        let mut out = [0.0; 6];
        scalar(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0], 2, &mut out);
        assert_eq!(out, [1.0, 2.0, 5.0, 3.0, 4.0, 6.0]);
    }
}
