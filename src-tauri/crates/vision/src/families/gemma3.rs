//! Gemma 3: stretched to one square, whatever the picture's shape.

use crate::error::VisionError;
use crate::families::sides;
use crate::layout::{ImageLayout, TileLayout};
use crate::picture::PictureSize;

/// Fixed size and token count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gemma3Settings {
    /// Pixels per side of the square.
    pub side: usize,
    /// Pixels per side of a patch.
    pub patch: usize,
    /// Patches per side that are averaged to one token.
    pub pool: usize,
}

impl Gemma3Settings {
    /// What the chat template writes for an image.
    pub const PLACEHOLDER: &str = "<start_of_image>";
    /// The token that receives an embedding.
    pub const IMAGE_TOKEN: &str = "<image_soft_token>";
    /// [`Gemma3Settings::pool`] where a GGUF does not say it.
    pub(crate) const PUBLISHED_POOL: usize = 4;
    const END: &str = "<end_of_image>";

    pub(crate) fn layout(&self, size: PictureSize) -> Result<ImageLayout, VisionError> {
        sides(size)?;
        let tile = TileLayout::new(PictureSize::new(self.side, self.side), self.patch, self.pool);
        let soft = Self::IMAGE_TOKEN.repeat(tile.n_tokens());
        Ok(ImageLayout::single(tile, format!("\n\n{}{soft}{}\n\n", Self::PLACEHOLDER, Self::END)))
    }
}
