//! Merges each output row with the rows after it: (tokens, width) → (outputs, width), or (outputs, n · width).
//! The patches that become one embedding of an image follow one another.

use super::OpRow;
use crate::graph::RowMerge;

/// Row in the table of operations.
pub static ROW: OpRow =
    OpRow { name: "merge_rows", formula: "mean or concatenation of x[outputs[i]..][..n]" };

/// x (tokens, width), outputs (m), out (m, width) or (m, n · width)
pub fn scalar(x: &[f32], width: usize, (n, merge): (usize, RowMerge), outputs: &[u32], out: &mut [f32]) {
    let Some(out_width) = out.len().checked_div(outputs.len()) else { return };
    for (out, first) in out.chunks_exact_mut(out_width).zip(outputs) {
        let start = *first as usize * width;
        let rows = &x[start..start + n * width];
        match merge {
            RowMerge::Concat => out.copy_from_slice(rows),
            RowMerge::Mean => {
                out.fill(0.0);
                for row in rows.chunks_exact(width) {
                    out.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
                }
                out.iter_mut().for_each(|sum| *sum /= n as f32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_averaged_or_joined_from_each_output_on() {
        let x = [1.0, 10.0, 3.0, 30.0, 5.0, 50.0, 7.0, 70.0];
        let check = |merge: RowMerge, outputs: &[u32], expected: &[f32]| {
            let mut out = vec![9.0; expected.len()];
            scalar(&x, 2, (2, merge), outputs, &mut out);
            assert_eq!(out, expected);
        };
        check(RowMerge::Mean, &[0, 2], &[2.0, 20.0, 6.0, 60.0]);
        check(RowMerge::Concat, &[1], &[3.0, 30.0, 5.0, 50.0]);
        check(RowMerge::Concat, &[], &[]);
    }
}
