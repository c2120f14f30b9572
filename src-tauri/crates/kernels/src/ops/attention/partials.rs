//! What a card holds of attention between chunks and their merging: how much memory that is.

use super::CHUNK;

/// Rows that keep a card busy by themselves.
pub const MOST_ROWS: usize = 8;

/// Beyond one row of the longest context, no more than this is taken.
const MOST_BYTES: usize = 32 << 20;

/// Of one chunk of one row: sums of each head, its largest score and the total of its shares.
pub fn part_bytes(n_heads: usize, head_dim: usize) -> usize {
    n_heads * (head_dim + 2) * size_of::<f32>()
}

/// Rows times chunks that there is room for, of `n_bytes` each, where contexts have `n_positions` at most.
pub fn most_parts(n_bytes: usize, n_positions: usize) -> usize {
    let most_chunks = n_positions.div_ceil(CHUNK);
    let fits = MOST_BYTES.checked_div(n_bytes).unwrap_or(0);
    (MOST_ROWS * most_chunks).min(fits.max(most_chunks))
}

/// Bytes that a card holds for it, whose contexts have room for `n_positions` together.
pub fn held_bytes(n_heads: usize, head_dim: usize, n_positions: usize) -> u64 {
    let n_bytes = part_bytes(n_heads, head_dim);
    (most_parts(n_bytes, n_positions) * n_bytes) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_always_room_for_one_row_of_the_longest_context() {
        for (n_heads, head_dim, n_positions, parts) in [
            (32, 64, 8192, 8 * 32),
            (32, 128, 131_072, 2016),
            (128, 512, 131_072, 512),
            (8, 64, 0, 0),
            (0, 0, 8192, 32),
        ] {
            let n_bytes = part_bytes(n_heads, head_dim);
            assert_eq!(most_parts(n_bytes, n_positions), parts, "{n_heads} of {head_dim}");
            assert_eq!(held_bytes(n_heads, head_dim, n_positions), (parts * n_bytes) as u64);
        }
    }
}
