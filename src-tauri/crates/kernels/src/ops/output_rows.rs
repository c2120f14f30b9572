//! Selects the rows whose logits are computed: (tokens, width) → (outputs, width).

use super::OpRow;

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "output_rows", formula: "out[i] = x[outputs[i]]" };

/// x (tokens, width), outputs (n), out (n, width)
pub fn scalar(x: &[f32], width: usize, outputs: &[u32], out: &mut [f32]) {
    for (out, row) in out.chunks_exact_mut(width).zip(outputs) {
        let start = *row as usize * width;
        out.copy_from_slice(&x[start..start + width]);
    }
}
