//! Memory for the partial results of split-KV attention on a GPU.

use super::CHUNK;

/// Largest number of rows for which attention is split; more rows keep a GPU busy without splitting.
pub const MAX_SPLIT_ROWS: usize = 8;

/// Memory limit, except that one row of the longest context always fits.
const MAX_PARTIALS_BYTES: usize = 32 << 20;

/// Bytes for one chunk of one row: per head its weighted sum, largest score and sum of weights.
pub fn partial_bytes(n_heads: usize, head_dim: usize) -> usize {
    n_heads * (head_dim + 2) * size_of::<f32>()
}

/// Rows times chunks to allocate, of `n_bytes` each, for contexts of at most `n_positions`.
pub fn max_partials(n_bytes: usize, n_positions: usize) -> usize {
    let max_chunks = n_positions.div_ceil(CHUNK);
    let fits = MAX_PARTIALS_BYTES.checked_div(n_bytes).unwrap_or(0);
    (MAX_SPLIT_ROWS * max_chunks).min(fits.max(max_chunks))
}

/// Bytes that a GPU allocates for partial results, with KV memory for `n_positions` in total.
pub fn partials_bytes(n_heads: usize, head_dim: usize, n_positions: usize) -> u64 {
    let n_bytes = partial_bytes(n_heads, head_dim);
    (max_partials(n_bytes, n_positions) * n_bytes) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_of_the_longest_context_always_fits() {
        for (n_heads, head_dim, n_positions, parts) in [
            (32, 64, 8192, 8 * 32),
            (32, 128, 131_072, 2016),
            (128, 512, 131_072, 512),
            (8, 64, 0, 0),
            (0, 0, 8192, 32),
        ] {
            let n_bytes = partial_bytes(n_heads, head_dim);
            assert_eq!(max_partials(n_bytes, n_positions), parts, "{n_heads} of {head_dim}");
            assert_eq!(partials_bytes(n_heads, head_dim, n_positions), (parts * n_bytes) as u64);
        }
    }
}
