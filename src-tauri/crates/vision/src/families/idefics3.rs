//! Idefics3 and SmolVLM: scaled to a longest side, cut into square tiles, with an overview of the whole.

use crate::error::VisionError;
use crate::families::{ceil_to, sides};
use crate::layout::{ImageLayout, TileLayout};
use crate::picture::{Picture, PictureSize};

/// The processor never resizes to a longer side.
const MAX_SIDE: usize = 4096;

/// Patches and tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idefics3Settings {
    /// Pixels per side of a patch.
    pub patch: usize,
    /// Patches per side that are shuffled into one token.
    pub scale: usize,
    /// Pixels of the longer side after the first resize.
    pub longest_side: usize,
    /// Pixels per side of a tile.
    pub tile_side: usize,
    /// Whether pictures are split into tiles.
    pub is_split: bool,
}

impl Idefics3Settings {
    /// What the chat template writes for an image; also the image token.
    pub const PLACEHOLDER: &str = "<image>";
    const AROUND: &str = "<fake_token_around_image>";
    const OVERVIEW: &str = "<global-img>";

    pub(crate) const PUBLISHED_LONGEST_SIDE: usize = 1456;
    pub(crate) const PUBLISHED_TILE_SIDE: usize = 364;

    /// Image tokens per tile; 0 if the patches or tiles have no size.
    pub(crate) fn n_tile_tokens(&self) -> usize {
        let unit = self.patch.saturating_mul(self.scale);
        self.tile_side.checked_div(unit).unwrap_or(0).saturating_pow(2)
    }

    pub(crate) fn layout(&self, size: PictureSize) -> Result<ImageLayout, VisionError> {
        let (width, height) = sides(size)?;
        let first = self.first_resize(width, height);
        let side = self.tile_side;
        let tile = TileLayout::new(PictureSize::new(side, side), self.patch, self.scale);
        let resized = if self.is_split { self.second_resize(first) } else { tile.size };
        let (tile_rows, tile_cols) = (resized.height.div_ceil(side), resized.width.div_ceil(side));
        let n_tiles = if tile_rows * tile_cols == 1 { 1 } else { tile_rows * tile_cols + 1 };
        let expanded_text = expanded_text(&tile, tile_rows, tile_cols);
        let tiles = vec![tile; n_tiles];
        Ok(ImageLayout { tiles, resized, first_resize: Some(first), tile_rows, tile_cols, expanded_text })
    }

    /// The longer side to its length, the other truncated and made even.
    fn first_resize(&self, width: f64, height: f64) -> PictureSize {
        let ratio = width / height;
        let longest = self.longest_side as f64;
        let even = |side: f64| (side as usize).next_multiple_of(2).max(1);
        let (width, height) = if width >= height {
            (self.longest_side, even(longest / ratio))
        } else {
            (even(longest * ratio), self.longest_side)
        };
        if width.max(height) <= MAX_SIDE {
            return PictureSize::new(width, height);
        }
        let ratio = width as f64 / height as f64;
        let max = MAX_SIDE as f64;
        if width >= height {
            PictureSize::new(MAX_SIDE, ((max / ratio) as usize).max(1))
        } else {
            PictureSize::new(((max * ratio) as usize).max(1), MAX_SIDE)
        }
    }

    /// Both sides up to whole tiles, the longer one first.
    fn second_resize(&self, first: PictureSize) -> PictureSize {
        let (width, height) = (first.width as f64, first.height as f64);
        let ratio = width / height;
        let up = |side: f64| ceil_to(side, self.tile_side);
        if width >= height {
            let width = up(width);
            PictureSize::new(width, up((width as f64 / ratio).trunc()))
        } else {
            let height = up(height);
            PictureSize::new(up((height as f64 * ratio).trunc()), height)
        }
    }

    /// The pictures of the layout's tiles.
    pub(crate) fn cut(
        &self,
        picture: &Picture,
        layout: &ImageLayout,
        resize: &dyn Fn(&Picture, PictureSize) -> Picture,
    ) -> Vec<Picture> {
        let first = layout.first_resize.map(|first| resize(picture, first));
        let whole = resize(first.as_ref().unwrap_or(picture), layout.resized);
        let tile = layout.tiles[0].size;
        let n_tiles = layout.tile_rows * layout.tile_cols;
        let at = |i: usize| (i % layout.tile_cols * tile.width, i / layout.tile_cols * tile.height);
        let mut pictures: Vec<Picture> = (0..n_tiles).map(at).map(|(x, y)| whole.crop(x, y, tile)).collect();
        // The overview comes from the enlarged picture.
        pictures.extend(layout.tiles[n_tiles..].iter().map(|overview| resize(&whole, overview.size)));
        pictures
    }

    pub(crate) fn cap_tokens(&mut self, max_tokens: usize) {
        let per_tile = self.n_tile_tokens().max(1);
        // The overview counts as a tile, unless there is but one.
        let per_side = (max_tokens / per_tile).saturating_sub(1).isqrt().max(1);
        self.longest_side = self.longest_side.min(per_side * self.tile_side);
    }
}

fn expanded_text(tile: &TileLayout, rows: usize, cols: usize) -> String {
    let (around, overview) = (Idefics3Settings::AROUND, Idefics3Settings::OVERVIEW);
    let soft = Idefics3Settings::PLACEHOLDER.repeat(tile.n_tokens());
    let mut text = String::new();
    if rows * cols > 1 {
        for row in 1..=rows {
            for col in 1..=cols {
                text += &format!("{around}<row_{row}_col_{col}>{soft}");
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text + &format!("{around}{overview}{soft}{around}")
}
