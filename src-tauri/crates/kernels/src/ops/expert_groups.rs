//! Sizes of the lists of `expert_groups.wgsl`, which groups rows by expert on a GPU, so that a tile multiplies with one
//! expert's weights.

/// Words before the tiles.
const HEADER_WORDS: usize = 4;
/// Words per tile.
const TILE_WORDS: usize = 4;

/// Word offsets of the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLists {
    /// rows by expert
    pub list: usize,
    /// first row of each expert
    pub starts: usize,
    /// total length
    pub n_words: usize,
}

impl GroupLists {
    /// The offsets for up to `n_rows` expert slots in tiles of `tile_rows`.
    pub fn new(n_rows: usize, n_experts: usize, tile_rows: usize) -> Self {
        let list = HEADER_WORDS + max_tiles(n_rows, n_experts, tile_rows) * TILE_WORDS;
        let starts = list + n_rows;
        Self { list, starts, n_words: starts + n_experts }
    }
}

/// Largest number of tiles: full ones, plus one partial tile per expert that has rows.
pub fn max_tiles(n_rows: usize, n_experts: usize, tile_rows: usize) -> usize {
    n_rows.div_ceil(tile_rows) + n_rows.min(n_experts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_tiles_enough_for_any_division() {
        for (n_experts, tile_rows) in [(1, 4), (3, 4), (8, 3)] {
            for counts in [vec![9], vec![1, 1, 1], vec![5, 0, 4, 0, 0, 0, 0, 3], vec![2; 8]] {
                let counts = &counts[..counts.len().min(n_experts)];
                let n_rows: usize = counts.iter().sum();
                let needed: usize = counts.iter().map(|n| n.div_ceil(tile_rows)).sum();
                assert!(needed <= max_tiles(n_rows, n_experts, tile_rows), "{counts:?}");
            }
        }
        assert_eq!(GroupLists::new(8, 2, 4), GroupLists { list: 20, starts: 28, n_words: 30 });
    }
}
