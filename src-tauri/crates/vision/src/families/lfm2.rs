//! LFM2-VL: one tile of the picture's own shape; large pictures as a grid of square tiles with an overview.

use crate::error::VisionError;
use crate::families::{ceil_to, floor_to, round_to, sides};
use crate::layout::{ImageLayout, TileLayout};
use crate::picture::{Picture, PictureSize};

/// Patches, token limits, and the grid of tiles.
#[derive(Debug, Clone, PartialEq)]
pub struct Lfm2Settings {
    /// Pixels per side of a patch.
    pub patch: usize,
    /// Patches per side that are merged to one token.
    pub merge: usize,
    /// Tokens of a single tile, or of the overview, at least.
    pub min_tokens: usize,
    /// Tokens of a single tile, or of the overview, at most.
    pub max_tokens: usize,
    /// A picture is split if it exceeds [`Lfm2Settings::max_tokens`] by this factor.
    pub tolerance: f64,
    /// Whether large pictures are split.
    pub is_split: bool,
    /// Tiles of a split picture at least.
    pub min_tiles: usize,
    /// Tiles of a split picture at most.
    pub max_tiles: usize,
    /// Pixels per side of a tile.
    pub tile_side: usize,
    /// Whether a split picture has an overview.
    pub has_overview: bool,
    /// Whether the expansion has markers beside image tokens.
    pub has_markers: bool,
}

impl Lfm2Settings {
    /// What the chat template writes for an image; also the image token.
    pub const PLACEHOLDER: &str = "<image>";
    const BEGIN: &str = "<|image_start|>";
    const END: &str = "<|image_end|>";
    const OVERVIEW: &str = "<|img_thumbnail|>";

    /// The numbers of the published models.
    pub fn published() -> Self {
        Self {
            patch: 16,
            merge: 2,
            min_tokens: 64,
            max_tokens: 256,
            tolerance: 2.0,
            is_split: true,
            min_tiles: 2,
            max_tiles: 10,
            tile_side: 512,
            has_overview: true,
            has_markers: true,
        }
    }

    pub(crate) fn layout(&self, size: PictureSize) -> Result<ImageLayout, VisionError> {
        let (width, height) = sides(size)?;
        let whole = TileLayout::new(self.single_size(width, height), self.patch, self.merge);
        let can_split = self.is_split && (self.min_tiles, self.max_tiles) != (1, 1);
        if !can_split || !self.is_too_large(width, height) {
            return Ok(ImageLayout::single(whole, self.expanded_text(&[whole], 1, 1)));
        }
        let (tile_cols, tile_rows) = self.grid(size);
        let side = self.tile_side;
        let tile = TileLayout::new(PictureSize::new(side, side), self.patch, self.merge);
        let mut tiles = vec![tile; tile_cols * tile_rows];
        if self.has_overview && tiles.len() > 1 {
            tiles.push(whole);
        }
        Ok(ImageLayout {
            resized: PictureSize::new(side * tile_cols, side * tile_rows),
            first_resize: None,
            expanded_text: self.expanded_text(&tiles, tile_rows, tile_cols),
            tiles,
            tile_rows,
            tile_cols,
        })
    }

    fn unit(&self) -> usize {
        self.patch * self.merge
    }

    fn single_size(&self, width: f64, height: f64) -> PictureSize {
        let unit = self.unit();
        let (min_pixels, max_pixels) = (self.min_tokens * unit * unit, self.max_tokens * unit * unit);
        let rounded = PictureSize::new(round_to(width, unit).max(unit), round_to(height, unit).max(unit));
        if rounded.n_pixels() > max_pixels {
            let shrink = (height * width / max_pixels as f64).sqrt();
            let side = |side: f64| floor_to(side / shrink, unit).max(unit);
            PictureSize::new(side(width), side(height))
        } else if rounded.n_pixels() < min_pixels {
            let grow = (min_pixels as f64 / (height * width)).sqrt();
            PictureSize::new(ceil_to(width * grow, unit), ceil_to(height * grow, unit))
        } else {
            rounded
        }
    }

    fn is_too_large(&self, width: f64, height: f64) -> bool {
        let unit = self.unit();
        let side = |side: f64| round_to(side, unit).max(self.patch) as f64;
        side(width) * side(height) > (self.max_tokens * unit * unit) as f64 * self.tolerance
    }

    /// Columns and rows of the grid whose shape is closest to the picture's. Of equally close ones the later, larger
    /// one wins if the picture covers more than half of it.
    fn grid(&self, size: PictureSize) -> (usize, usize) {
        let ratio = size.width as f64 / size.height as f64;
        let (mut best, mut best_distance) = ((1, 1), f64::INFINITY);
        for n_tiles in self.min_tiles..=self.max_tiles {
            for cols in (1..=n_tiles).filter(|cols| n_tiles % cols == 0) {
                let rows = n_tiles / cols;
                let distance = (ratio - cols as f64 / rows as f64).abs();
                let area = (self.tile_side * self.tile_side * n_tiles) as f64;
                let is_as_close = distance == best_distance && size.n_pixels() as f64 > 0.5 * area;
                if distance < best_distance || is_as_close {
                    (best, best_distance) = ((cols, rows), distance);
                }
            }
        }
        best
    }

    fn expanded_text(&self, tiles: &[TileLayout], rows: usize, cols: usize) -> String {
        let marker = |text: &str| if self.has_markers { text.to_owned() } else { String::new() };
        let mut text = marker(Self::BEGIN);
        for (i, tile) in tiles.iter().enumerate() {
            if i < rows * cols && tiles.len() > 1 {
                text += &marker(&format!("<|img_row_{}_col_{}|>", i / cols + 1, i % cols + 1));
            } else if tiles.len() > 1 {
                text += &marker(Self::OVERVIEW);
            }
            text += &Self::PLACEHOLDER.repeat(tile.n_tokens());
        }
        text + &marker(Self::END)
    }

    /// The pictures of the layout's tiles.
    pub(crate) fn cut(
        &self,
        picture: &Picture,
        layout: &ImageLayout,
        resize: &dyn Fn(&Picture, PictureSize) -> Picture,
    ) -> Vec<Picture> {
        let n_tiles = layout.tile_rows * layout.tile_cols;
        let whole = resize(picture, layout.resized);
        let side = layout.tiles[0].size;
        let at = |i: usize| (i % layout.tile_cols * side.width, i / layout.tile_cols * side.height);
        let mut pictures: Vec<Picture> = (0..n_tiles).map(at).map(|(x, y)| whole.crop(x, y, side)).collect();
        // The overview comes from the picture itself.
        pictures.extend(layout.tiles[n_tiles..].iter().map(|overview| resize(picture, overview.size)));
        pictures
    }

    pub(crate) fn cap_tokens(&mut self, max_tokens: usize) {
        self.max_tokens = self.max_tokens.min(max_tokens).max(self.min_tokens);
        let tile_side = (self.tile_side / self.patch).div_ceil(self.merge);
        let left = max_tokens.saturating_sub(if self.has_overview { self.max_tokens } else { 0 });
        let max_tiles = left / tile_side.pow(2).max(1);
        self.is_split &= max_tiles >= self.min_tiles.max(2);
        if self.is_split {
            self.max_tiles = self.max_tiles.min(max_tiles);
        }
    }
}
