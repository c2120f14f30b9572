//! Small pictures for lists.

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder, ImageError};

use crate::error::{VisionError, VisionErrorKind};
use crate::picture::{Picture, PictureSize};
use crate::resample::{ResampleArithmetic, ResampleFilter, resize};

/// How a thumbnail is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThumbnailFormat {
    /// Without loss.
    Png,
    /// With loss; `quality` from 1 to 100.
    Jpeg {
        /// From 1, smallest, to 100, best.
        quality: u8,
    },
}

/// The file of a copy whose longer side has at most `longest_side` pixels. Small pictures keep their size.
///
/// # Errors
/// If the encoder refuses the size: JPEG holds at most 65,535 pixels per side.
pub fn thumbnail(
    picture: &Picture,
    longest_side: usize,
    format: ThumbnailFormat,
) -> Result<Vec<u8>, VisionError> {
    let size = thumbnail_size(picture.size(), longest_side);
    let small = resize(picture, size, ResampleFilter::Bicubic, ResampleArithmetic::Pillow);
    encode(&small, format).map_err(|e| {
        VisionError::new(
            VisionErrorKind::TooLarge,
            format!("The thumbnail of {size} pixels cannot be written: {e}."),
            "Crop the picture.",
        )
    })
}

fn thumbnail_size(size: PictureSize, longest_side: usize) -> PictureSize {
    let longest = size.width.max(size.height);
    if longest <= longest_side {
        return size;
    }
    let side = |side: usize| (side * longest_side + longest / 2).checked_div(longest).unwrap_or(0).max(1);
    PictureSize::new(side(size.width), side(size.height))
}

fn encode(picture: &Picture, format: ThumbnailFormat) -> Result<Vec<u8>, ImageError> {
    let mut file = Vec::new();
    let (width, height) = (picture.size().width as u32, picture.size().height as u32);
    match format {
        ThumbnailFormat::Png => {
            PngEncoder::new(&mut file).write_image(picture.rgb(), width, height, ExtendedColorType::Rgb8)?;
        }
        ThumbnailFormat::Jpeg { quality } => {
            let quality = quality.clamp(1, 100);
            JpegEncoder::new_with_quality(&mut file, quality).write_image(
                picture.rgb(),
                width,
                height,
                ExtendedColorType::Rgb8,
            )?;
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{DecodeLimits, decode};

    fn grey(width: usize, height: usize) -> Picture {
        let size = PictureSize::new(width, height);
        Picture::new(size, vec![90; size.n_pixels() * 3]).unwrap()
    }

    #[test]
    fn the_longer_side_is_limited_and_nothing_is_enlarged() {
        let cases = [
            ((300, 200), 60, (60, 40)),
            ((200, 300), 60, (40, 60)),
            ((50, 20), 60, (50, 20)),
            ((1000, 1), 60, (60, 1)),
            ((10, 10), 0, (1, 1)),
        ];
        for ((width, height), longest, expected) in cases {
            for format in [ThumbnailFormat::Png, ThumbnailFormat::Jpeg { quality: 80 }] {
                let file = thumbnail(&grey(width, height), longest, format).unwrap();
                let picture = decode(&file, &DecodeLimits::default()).unwrap();
                assert_eq!(picture.size(), PictureSize::new(expected.0, expected.1), "{width}×{height}");
                assert!(picture.rgb().iter().all(|sample| sample.abs_diff(90) <= 1));
            }
        }
    }
}
