//! Pixtral (Ministral 3, Mistral Small): shrunk to a longest side, each row of tokens ended by a marker.

use crate::error::VisionError;
use crate::families::sides;
use crate::layout::{ImageLayout, TileLayout};
use crate::picture::PictureSize;

/// Patches, the longest side, and the marker texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PixtralSettings {
    /// Pixels per side of a patch.
    pub patch: usize,
    /// Patches per side that are merged to one token.
    pub merge: usize,
    /// Pixels of the longer side at most, before rounding up to merged patches.
    pub longest_side: usize,
    /// What the chat template writes for an image; also the image token.
    pub image_token: String,
    /// Ends each row but the last.
    pub break_token: String,
    /// Ends the last row.
    pub end_token: String,
}

impl PixtralSettings {
    /// The published text of [`PixtralSettings::image_token`].
    pub const IMAGE_TOKEN: &str = "[IMG]";
    /// The published text of [`PixtralSettings::break_token`].
    pub const BREAK_TOKEN: &str = "[IMG_BREAK]";
    /// The published text of [`PixtralSettings::end_token`].
    pub const END_TOKEN: &str = "[IMG_END]";

    pub(crate) const PUBLISHED_LONGEST_SIDE: usize = 1540;

    pub(crate) fn layout(&self, size: PictureSize) -> Result<ImageLayout, VisionError> {
        let (width, height) = sides(size)?;
        let longest = self.longest_side as f64;
        let ratio = (height / longest).max(width / longest);
        let (width, height) =
            if ratio > 1.0 { ((width / ratio).floor(), (height / ratio).floor()) } else { (width, height) };
        // A side that became zero makes the published processor fail; one unit is the nearest that works.
        let unit = self.patch * self.merge;
        let side = |side: f64| (side.max(1.0) as usize).div_ceil(unit) * unit;
        let tile = TileLayout::new(PictureSize::new(side(width), side(height)), self.patch, self.merge);
        Ok(ImageLayout::single(tile, self.expanded_text(&tile)))
    }

    fn expanded_text(&self, tile: &TileLayout) -> String {
        let row = self.image_token.repeat(tile.token_cols);
        let upper = format!("{row}{}", self.break_token).repeat(tile.token_rows - 1);
        format!("{upper}{row}{}", self.end_token)
    }

    pub(crate) fn cap_tokens(&mut self, max_tokens: usize) {
        let unit = self.patch * self.merge;
        self.longest_side = self.longest_side.min(max_tokens.isqrt().max(1) * unit);
    }
}
