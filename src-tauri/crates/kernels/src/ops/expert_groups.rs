//! Rows that are grouped by expert on a card, so that a tile of products has the weights of one: how long the lists are
//! that `expert_groups.wgsl` makes.

/// Words before the tiles, and of each.
const TILES: usize = 4;
const WORDS_OF_TILE: usize = 4;

/// Where the parts of the lists lie, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLists {
    /// of rows by expert
    pub list: usize,
    /// where each expert's begin
    pub starts: usize,
    pub n_words: usize,
}

impl GroupLists {
    /// For up to `n_rows` slots of tokens, tiles of `tile_rows` of them.
    pub fn new(n_rows: usize, n_experts: usize, tile_rows: usize) -> Self {
        let list = TILES + max_tiles(n_rows, n_experts, tile_rows) * WORDS_OF_TILE;
        let starts = list + n_rows;
        Self { list, starts, n_words: starts + n_experts }
    }
}

/// Tiles that there are at most: full ones, and one of each expert that has any rows.
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
