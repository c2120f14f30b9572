//! What a picture of a given size becomes: tiles, grids, token counts, and the text of its placeholders.

use crate::picture::PictureSize;

/// One rectangle that the vision tower sees on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileLayout {
    /// Pixels after resizing.
    pub size: PictureSize,
    /// Patches per column.
    pub patch_rows: usize,
    /// Patches per row.
    pub patch_cols: usize,
    /// Image tokens per column, after merging or pooling patches.
    pub token_rows: usize,
    /// Image tokens per row, after merging or pooling patches.
    pub token_cols: usize,
}

impl TileLayout {
    /// Splits `size` into patches of `patch` pixels, of which `merge × merge` become one token. Incomplete groups at
    /// the right and bottom count as tokens.
    pub(crate) fn new(size: PictureSize, patch: usize, merge: usize) -> Self {
        let (patch_rows, patch_cols) = (size.height / patch, size.width / patch);
        let (token_rows, token_cols) = (patch_rows.div_ceil(merge), patch_cols.div_ceil(merge));
        Self { size, patch_rows, patch_cols, token_rows, token_cols }
    }

    /// Rows of [`crate::PatchPixels`] that belong to this tile.
    pub fn n_patches(&self) -> usize {
        self.patch_rows * self.patch_cols
    }

    /// Placeholders that receive an embedding of this tile.
    pub fn n_tokens(&self) -> usize {
        self.token_rows * self.token_cols
    }
}

/// The layout of one picture, computed from its size alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageLayout {
    /// The tiles in the order of their embeddings. A picture that is not split is one tile. Where a split picture
    /// also has an overview, it is the last.
    pub tiles: Vec<TileLayout>,
    /// The picture's size before it is cut into tiles: the tile's own if it is not split.
    pub resized: PictureSize,
    /// The first of two resizes (idefics3).
    pub first_resize: Option<PictureSize>,
    /// Rows of tiles, without the overview; 1 if the picture is not split.
    pub tile_rows: usize,
    /// Columns of tiles, without the overview; 1 if the picture is not split.
    pub tile_cols: usize,
    /// What replaces the placeholder in the text, before tokenization.
    pub expanded_text: String,
}

impl ImageLayout {
    /// The layout of a picture that is one tile.
    pub(crate) fn single(tile: TileLayout, expanded_text: String) -> Self {
        let (resized, first_resize) = (tile.size, None);
        Self { tiles: vec![tile], resized, first_resize, tile_rows: 1, tile_cols: 1, expanded_text }
    }

    /// Placeholders that receive an embedding: rows of the tower's output.
    pub fn n_tokens(&self) -> usize {
        self.tiles.iter().map(TileLayout::n_tokens).sum()
    }

    /// Rows of [`crate::PatchPixels`].
    pub fn n_patches(&self) -> usize {
        self.tiles.iter().map(TileLayout::n_patches).sum()
    }
}
