//! Gemma 4: scaled up or down to fill a number of patches, with the picture's own shape.

use crate::error::VisionError;
use crate::families::{floor_to, refused, sides};
use crate::layout::{ImageLayout, TileLayout};
use crate::picture::PictureSize;

/// Patches and the number of tokens to fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gemma4Settings {
    /// Pixels per side of a patch.
    pub patch: usize,
    /// Patches per side that are averaged to one token.
    pub pool: usize,
    /// Image tokens at most: one of [`Gemma4Settings::SUPPORTED_TOKENS`].
    pub max_tokens: usize,
}

impl Gemma4Settings {
    /// The values of `max_soft_tokens` that the model was trained for.
    pub const SUPPORTED_TOKENS: [usize; 5] = [70, 140, 280, 560, 1120];
    /// What the chat template writes for an image; also the image token.
    pub const PLACEHOLDER: &str = "<|image|>";
    pub(crate) const PUBLISHED_POOL: usize = 3;
    pub(crate) const PUBLISHED_TOKENS: usize = 280;
    const BEGIN: &str = "<|image>";
    const END: &str = "<image|>";

    /// The settings of a model without a tower: a patch is as large as a token.
    pub(crate) fn unified(self) -> Self {
        Self { patch: self.patch.saturating_mul(self.pool), pool: 1, ..self }
    }

    pub(crate) fn layout(&self, size: PictureSize) -> Result<ImageLayout, VisionError> {
        let (width, height) = sides(size)?;
        let tile = TileLayout::new(self.resized(size, width, height)?, self.patch, self.pool);
        let soft = Self::PLACEHOLDER.repeat(tile.n_tokens());
        Ok(ImageLayout::single(tile, format!("{}{soft}{}", Self::BEGIN, Self::END)))
    }

    fn resized(&self, size: PictureSize, width: f64, height: f64) -> Result<PictureSize, VisionError> {
        let unit = self.pool * self.patch;
        let max_pixels = self.max_tokens * unit * unit;
        let scale = (max_pixels as f64 / (height * width)).sqrt();
        let (mut to_width, mut to_height) = (floor_to(scale * width, unit), floor_to(scale * height, unit));
        // A side that became zero is one unit, and the other follows the whole ratio.
        let other = |ratio: f64| (ratio.floor() as usize).saturating_mul(unit).min(self.max_tokens * unit);
        match (to_width, to_height) {
            (0, 0) => return Err(refused(size, "both sides are rounded to zero")),
            (_, 0) => (to_width, to_height) = (other(width / height), unit),
            (0, _) => (to_width, to_height) = (unit, other(height / width)),
            _ => {}
        }
        let resized = PictureSize::new(to_width, to_height);
        if resized.n_pixels() > max_pixels || resized.n_pixels() == 0 {
            return Err(refused(size, format_args!("it would be resized to {resized}")));
        }
        Ok(resized)
    }

    pub(crate) fn cap_tokens(&mut self, max_tokens: usize) {
        let smaller = Self::SUPPORTED_TOKENS.into_iter().filter(|&n| n <= max_tokens).max();
        self.max_tokens = self.max_tokens.min(smaller.unwrap_or(Self::SUPPORTED_TOKENS[0]));
    }
}
