//! Qwen3-VL, Qwen3.5: sides rounded to merged patches, within limits of the picture's area.

use crate::error::VisionError;
use crate::families::{ceil_to, floor_to, refused, round_to, sides};
use crate::layout::{ImageLayout, TileLayout};
use crate::picture::PictureSize;

/// The processor refuses pictures that are more elongated.
const MAX_ASPECT_RATIO: f64 = 200.0;

/// Patches and the limits of the resized area.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QwenVlSettings {
    /// Pixels per side of a patch.
    pub patch: usize,
    /// Patches per side that are merged to one token.
    pub merge: usize,
    /// Pixels of the resized picture at least (`size.shortest_edge`).
    pub min_pixels: usize,
    /// Pixels of the resized picture at most (`size.longest_edge`).
    pub max_pixels: usize,
}

impl QwenVlSettings {
    /// What the chat template writes between `<|vision_start|>` and `<|vision_end|>`; also the image token.
    pub const PLACEHOLDER: &str = "<|image_pad|>";

    /// 64 tokens of 32 × 32 pixels.
    pub(crate) const PUBLISHED_MIN_PIXELS: usize = 1 << 16;
    /// 16,384 tokens of 32 × 32 pixels.
    pub(crate) const PUBLISHED_MAX_PIXELS: usize = 1 << 24;

    pub(crate) fn layout(&self, size: PictureSize) -> Result<ImageLayout, VisionError> {
        let (width, height) = sides(size)?;
        let ratio = width.max(height) / width.min(height);
        if ratio > MAX_ASPECT_RATIO {
            return Err(refused(size, format_args!("its long side is {ratio:.0} times the short one")));
        }
        let resized = self.resized(width, height);
        if resized.n_pixels() == 0 {
            return Err(refused(size, "a side is rounded to zero"));
        }
        let tile = TileLayout::new(resized, self.patch, self.merge);
        Ok(ImageLayout::single(tile, Self::PLACEHOLDER.repeat(tile.n_tokens())))
    }

    fn resized(&self, width: f64, height: f64) -> PictureSize {
        let factor = self.patch * self.merge;
        let rounded = PictureSize::new(round_to(width, factor), round_to(height, factor));
        if rounded.n_pixels() > self.max_pixels {
            let shrink = (height * width / self.max_pixels as f64).sqrt();
            let side = |side: f64| floor_to(side / shrink, factor).max(factor);
            PictureSize::new(side(width), side(height))
        } else if rounded.n_pixels() < self.min_pixels {
            let grow = (self.min_pixels as f64 / (height * width)).sqrt();
            PictureSize::new(ceil_to(width * grow, factor), ceil_to(height * grow, factor))
        } else {
            rounded
        }
    }

    pub(crate) fn cap_tokens(&mut self, max_tokens: usize) {
        let max_pixels = max_tokens * (self.patch * self.merge).pow(2);
        self.max_pixels = self.max_pixels.min(max_pixels).max(self.min_pixels);
    }
}
