//! Any samples to 8-bit RGB on white.

use image::{DynamicImage, ImageBuffer, ImageFormat, Rgb, RgbImage};

use crate::error::{VisionError, VisionErrorKind};

/// Grey is repeated, 16 bits keep their high byte, transparency lies on white.
pub fn to_rgb(image: DynamicImage, format: ImageFormat) -> Result<RgbImage, VisionError> {
    let (width, height) = (image.width(), image.height());
    let rgb: Vec<u8> = match image {
        DynamicImage::ImageRgb8(image) => return Ok(image),
        DynamicImage::ImageLuma8(image) => image.iter().flat_map(|&grey| [grey; 3]).collect(),
        DynamicImage::ImageLumaA8(image) => {
            image.pixels().flat_map(|p| over_white([p.0[0]; 3], p.0[1])).collect()
        }
        DynamicImage::ImageRgba8(image) => image.pixels().flat_map(|p| opaque(p.0)).collect(),
        DynamicImage::ImageLuma16(image) => image.iter().flat_map(|&grey| [high_byte(grey); 3]).collect(),
        DynamicImage::ImageLumaA16(image) => {
            image.pixels().flat_map(|p| over_white([high_byte(p.0[0]); 3], high_byte(p.0[1]))).collect()
        }
        DynamicImage::ImageRgb16(image) => image.iter().map(|&sample| high_byte(sample)).collect(),
        DynamicImage::ImageRgba16(image) => image.pixels().flat_map(|p| opaque(p.0.map(high_byte))).collect(),
        DynamicImage::ImageRgb32F(image) => image.iter().map(|&sample| of_unit(sample)).collect(),
        DynamicImage::ImageRgba32F(image) => image.pixels().flat_map(|p| opaque(p.0.map(of_unit))).collect(),
        _ => return Err(unsupported(format)),
    };
    ImageBuffer::<Rgb<u8>, _>::from_raw(width, height, rgb).ok_or_else(|| unsupported(format))
}

fn unsupported(format: ImageFormat) -> VisionError {
    VisionError::new(
        VisionErrorKind::UnreadableFile,
        format!("The {format:?} file has samples of a kind that is not read."),
        "Open it in another program and save it again as PNG or JPEG.",
    )
}

fn high_byte(sample: u16) -> u8 {
    (sample >> 8) as u8
}

/// A sample from 0 to 1; NaN becomes 0.
fn of_unit(sample: f32) -> u8 {
    (sample.clamp(0.0, 1.0) * 255.0).round() as u8
}

fn opaque([red, green, blue, alpha]: [u8; 4]) -> [u8; 3] {
    over_white([red, green, blue], alpha)
}

/// The fixed-point arithmetic of Pillow's `alpha_composite` over opaque white.
fn over_white(rgb: [u8; 3], alpha: u8) -> [u8; 3] {
    const FRACTION_BITS: u32 = 7;
    if alpha == 0 {
        return [255; 3];
    }
    let alpha = u32::from(alpha);
    rgb.map(|sample| {
        let blended = (u32::from(sample) * alpha + 255 * (255 - alpha)) << FRACTION_BITS;
        let rounded = blended + (0x80 << FRACTION_BITS);
        ((((rounded >> 8) + rounded) >> 8) >> FRACTION_BITS) as u8
    })
}
