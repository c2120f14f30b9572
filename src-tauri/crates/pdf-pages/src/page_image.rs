//! A page as the file of an image: PNG, or JPEG where that would be large.

use hayro::vello_cpu::Pixmap;
use vision::{Picture, PictureSize, ThumbnailFormat, VisionError, thumbnail};

/// A larger PNG is a photo or a colour scan: JPEG takes a tenth of it. Bytes.
const MAX_PNG_BYTES: usize = 1 << 20;

/// Small print stays readable.
const JPEG_QUALITY: u8 = 90;

/// A page as an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageImage {
    /// From 1.
    pub page: u32,
    /// Pixels per row.
    pub width: u32,
    /// Rows of pixels.
    pub height: u32,
    /// A PNG or JPEG file.
    pub file: Vec<u8>,
}

impl PageImage {
    /// Encodes what was drawn on white.
    ///
    /// Errors: an empty pixmap.
    pub(crate) fn encode(page: u32, pixmap: &Pixmap) -> Result<Self, VisionError> {
        let (width, height) = (pixmap.width(), pixmap.height());
        let rgb = pixmap.data_as_u8_slice().chunks_exact(4).flat_map(|rgba| [rgba[0], rgba[1], rgba[2]]);
        let picture = Picture::new(PictureSize::new(width.into(), height.into()), rgb.collect())?;
        let longest = usize::from(width.max(height));
        let mut file = thumbnail(&picture, longest, ThumbnailFormat::Png)?;
        if file.len() > MAX_PNG_BYTES {
            file = thumbnail(&picture, longest, ThumbnailFormat::Jpeg { quality: JPEG_QUALITY })?;
        }
        Ok(Self { page, width: width.into(), height: height.into(), file })
    }
}
