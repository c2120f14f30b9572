//! A decoded picture: upright, 8 bits per channel, without transparency.

use crate::error::{VisionError, VisionErrorKind};

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PictureSize {
    /// Pixels per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl PictureSize {
    /// A size; zero is allowed here and refused by [`Picture::new`] and the layouts.
    pub const fn new(width: usize, height: usize) -> Self {
        Self { width, height }
    }

    /// Number of pixels, saturating.
    pub const fn n_pixels(self) -> usize {
        self.width.saturating_mul(self.height)
    }
}

impl std::fmt::Display for PictureSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}×{}", self.width, self.height)
    }
}

/// Interleaved RGB samples, `(height, width, 3)`; never empty.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    size: PictureSize,
    rgb: Vec<u8>,
}

impl Picture {
    /// Takes interleaved RGB samples, `(height, width, 3)`.
    ///
    /// # Errors
    /// If a side is zero or the number of samples does not match the size.
    pub fn new(size: PictureSize, rgb: Vec<u8>) -> Result<Self, VisionError> {
        let n_samples = size.width.checked_mul(size.height).and_then(|n| n.checked_mul(3));
        if rgb.is_empty() || n_samples != Some(rgb.len()) {
            return Err(VisionError::new(
                VisionErrorKind::UnreadableFile,
                format!("A picture of {size} pixels cannot have {} samples.", rgb.len()),
                "Save the picture again as PNG or JPEG.",
            ));
        }
        Ok(Self { size, rgb })
    }

    /// Width and height in pixels.
    pub fn size(&self) -> PictureSize {
        self.size
    }

    /// Interleaved RGB samples, `(height, width, 3)`.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// The rectangle of `size` at column `x` and row `y`. Panics if it leaves the picture.
    pub(crate) fn crop(&self, x: usize, y: usize, size: PictureSize) -> Self {
        assert!(x + size.width <= self.size.width && y + size.height <= self.size.height);
        let mut rgb = Vec::with_capacity(size.n_pixels() * 3);
        for row in y..y + size.height {
            let start = (row * self.size.width + x) * 3;
            rgb.extend_from_slice(&self.rgb[start..start + size.width * 3]);
        }
        Self { size, rgb }
    }
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Picture({})", self.size)
    }
}
