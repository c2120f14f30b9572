//! The pixel values of patches, as a vision tower takes them.

use crate::layout::TileLayout;
use crate::normalize::Normalization;
use crate::picture::{Picture, PictureSize};

/// How the samples of one patch lie in its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchOrder {
    /// `(channel, y, x)`, as a convolution's weights `(out, channel, y, x)` take it.
    ChannelFirst,
    /// `(y, x, channel)`, as a linear patch embedding takes it.
    ChannelLast,
}

/// In which order the patches of a tile follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchSequence {
    /// Row by row.
    Raster,
    /// In blocks of `merge × merge` patches, blocks row by row, patches of a block row by row.
    MergeBlocks {
        /// Patches per side of a block.
        merge: usize,
    },
}

impl PatchSequence {
    /// Row and column of every patch of a tile, in sequence. The tile's sides are multiples of the block's.
    pub fn positions(self, tile: &TileLayout) -> Vec<(usize, usize)> {
        let merge = match self {
            PatchSequence::Raster => 1,
            PatchSequence::MergeBlocks { merge } => merge,
        };
        let mut positions = Vec::with_capacity(tile.n_patches());
        for block_row in (0..tile.patch_rows).step_by(merge) {
            for block_col in (0..tile.patch_cols).step_by(merge) {
                for row in block_row..(block_row + merge).min(tile.patch_rows) {
                    for col in block_col..(block_col + merge).min(tile.patch_cols) {
                        positions.push((row, col));
                    }
                }
            }
        }
        positions
    }
}

/// Normalized float32 pixel values, one row per patch.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchPixels {
    /// `(n_patches, patch_length)`: the tiles' patches one after the other.
    pub pixels: Vec<f32>,
    /// Samples per patch: `3 × patch size²`. A temporal axis (qwen_vl) is not repeated here.
    pub patch_length: usize,
    /// How a row's samples lie.
    pub order: PatchOrder,
    /// How the patches of a tile follow each other.
    pub sequence: PatchSequence,
    /// The tiles, as in the picture's [`crate::ImageLayout`].
    pub tiles: Vec<TileLayout>,
}

impl PatchPixels {
    /// Number of rows.
    pub fn n_patches(&self) -> usize {
        self.pixels.len() / self.patch_length
    }

    /// Rows of the tower's output.
    pub fn n_tokens(&self) -> usize {
        self.tiles.iter().map(TileLayout::n_tokens).sum()
    }

    /// Shape and values as the published processor returns them, without its padding: patch rows for the families that
    /// cut pictures into patches themselves, else `(tiles, channel, y, x)`.
    pub fn in_processor_layout(&self) -> (Vec<usize>, Vec<f32>) {
        let side = (self.patch_length / 3).isqrt();
        match (self.order, self.sequence) {
            (PatchOrder::ChannelLast, _) => (vec![self.n_patches(), self.patch_length], self.pixels.clone()),
            (PatchOrder::ChannelFirst, PatchSequence::MergeBlocks { .. }) => {
                (vec![self.n_patches(), 3, side, side], self.pixels.clone())
            }
            (PatchOrder::ChannelFirst, PatchSequence::Raster) => {
                let size = self.tiles.first().map_or(PictureSize::new(0, 0), |tile| tile.size);
                (vec![self.tiles.len(), 3, size.height, size.width], self.planes(side))
            }
        }
    }

    /// The tiles, each `(channel, y, x)`.
    fn planes(&self, side: usize) -> Vec<f32> {
        let mut values = Vec::with_capacity(self.pixels.len());
        let mut rest = self.pixels.as_slice();
        for tile in &self.tiles {
            let (patches, after) = rest.split_at(tile.n_patches() * self.patch_length);
            rest = after;
            for line in 0..3 * tile.size.height {
                let (channel, y) = (line / tile.size.height, line % tile.size.height);
                let within = (channel * side + y % side) * side;
                for col in 0..tile.patch_cols {
                    let patch = y / side * tile.patch_cols + col;
                    values.extend_from_slice(&patches[patch * self.patch_length + within..][..side]);
                }
            }
        }
        values
    }

    /// No tiles yet.
    pub(crate) fn empty(patch: usize, order: PatchOrder, sequence: PatchSequence) -> Self {
        Self { pixels: Vec::new(), patch_length: 3 * patch * patch, order, sequence, tiles: Vec::new() }
    }

    /// Appends the patches of a tile, whose picture has the tile's size.
    pub(crate) fn push_tile(&mut self, tile: TileLayout, picture: &Picture, normalization: &Normalization) {
        debug_assert_eq!(tile.size, picture.size());
        let patch = tile.size.width / tile.patch_cols;
        self.pixels.reserve(tile.n_patches() * self.patch_length);
        for (row, col) in self.sequence.positions(&tile) {
            self.push_patch(picture, row * patch, col * patch, patch, normalization);
        }
        self.tiles.push(tile);
    }

    fn push_patch(&mut self, picture: &Picture, y: usize, x: usize, patch: usize, values: &Normalization) {
        let width = picture.size().width;
        let row_of = |dy: usize| &picture.rgb()[((y + dy) * width + x) * 3..][..patch * 3];
        match self.order {
            PatchOrder::ChannelFirst => {
                for channel in 0..3 {
                    let of_channel = values.channel(channel);
                    for dy in 0..patch {
                        let samples = row_of(dy).iter().skip(channel).step_by(3);
                        self.pixels.extend(samples.map(|&s| of_channel[usize::from(s)]));
                    }
                }
            }
            PatchOrder::ChannelLast => {
                for dy in 0..patch {
                    for rgb in row_of(dy).chunks_exact(3) {
                        self.pixels.extend((0..3).map(|c| values.channel(c)[usize::from(rgb[c])]));
                    }
                }
            }
        }
    }
}
