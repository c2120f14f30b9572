//! Files to pictures, within limits of bytes, pixels and memory. Time is bounded by these.

mod tiff_lists;
mod to_rgb;

use std::io::Cursor;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};

use crate::error::{VisionError, VisionErrorKind};
use crate::picture::{Picture, PictureSize};

/// What decoding one picture may take at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Bytes of the file.
    pub max_file_bytes: usize,
    /// Pixels of the picture.
    pub max_pixels: usize,
    /// Memory at the peak: the file's copy, the decoder's buffers, and the picture.
    pub max_memory_bytes: usize,
}

impl Default for DecodeLimits {
    /// Photos of 64 megapixels; those that are turned or progressive need more memory and end at about 40 or 25.
    fn default() -> Self {
        Self { max_file_bytes: 48 << 20, max_pixels: 64_000_000, max_memory_bytes: 256 << 20 }
    }
}

/// Reads PNG, JPEG, WebP, GIF and the first frame of animations, BMP or TIFF. The picture is turned upright as its EXIF
/// data say, lies on white where it is transparent, and keeps the high byte of 16-bit samples.
///
/// # Errors
/// If the format is unknown, the file is damaged, or a limit is exceeded.
pub fn decode(bytes: &[u8], limits: &DecodeLimits) -> Result<Picture, VisionError> {
    let (mut decoder, format) = open(bytes, limits)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    check_memory(bytes, format, &decoder, orientation, limits)?;
    let image = DynamicImage::from_decoder(decoder).map_err(|e| unreadable(format, &e))?;
    let mut image = DynamicImage::ImageRgb8(to_rgb::to_rgb(image, format)?);
    image.apply_orientation(orientation);
    let size = PictureSize::new(image.width() as usize, image.height() as usize);
    Picture::new(size, image.into_rgb8().into_raw())
}

/// The size that [`decode`] will give the picture, from the file's head alone.
///
/// # Errors
/// If the format is unknown, the head is damaged, or a limit is exceeded.
pub fn measure(bytes: &[u8], limits: &DecodeLimits) -> Result<PictureSize, VisionError> {
    let (mut decoder, _) = open(bytes, limits)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let (width, height) = decoder.dimensions();
    let (width, height) = if is_transposed(orientation) { (height, width) } else { (width, height) };
    Ok(PictureSize::new(width as usize, height as usize))
}

/// Whether a file begins as the formats do that [`decode`] reads. Nothing is decoded.
pub fn has_image_head(bytes: &[u8]) -> bool {
    known_format(bytes).is_ok()
}

fn open<'a>(
    bytes: &'a [u8],
    limits: &DecodeLimits,
) -> Result<(impl ImageDecoder + 'a, ImageFormat), VisionError> {
    if bytes.len() > limits.max_file_bytes {
        let (mb, max_mb) = (bytes.len() >> 20, limits.max_file_bytes >> 20);
        return Err(too_large(format!("The picture's file has {mb} MB; the maximum is {max_mb} MB.")));
    }
    let format = known_format(bytes)?;
    if format == ImageFormat::Tiff {
        check_tiff_lists(bytes, limits)?;
    }
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut of_decoder = Limits::default();
    of_decoder.max_alloc = Some(limits.max_memory_bytes as u64);
    reader.limits(of_decoder);
    let decoder = reader.into_decoder().map_err(|e| unreadable(format, &e))?;
    let (width, height) = decoder.dimensions();
    let size = PictureSize::new(width as usize, height as usize);
    if size.n_pixels() > limits.max_pixels {
        let max = limits.max_pixels / 1_000_000;
        return Err(too_large(format!("The picture has {size} pixels; the maximum is {max} megapixels.")));
    }
    Ok((decoder, format))
}

fn check_tiff_lists(bytes: &[u8], limits: &DecodeLimits) -> Result<(), VisionError> {
    match tiff_lists::n_list_bytes(bytes) {
        Some(n_bytes) if n_bytes <= limits.max_memory_bytes => Ok(()),
        Some(_) => Err(too_large("The Tiff file needs more memory than a picture may take.".to_owned())),
        None => Err(damaged(ImageFormat::Tiff, "it ends before its lists do")),
    }
}

fn known_format(bytes: &[u8]) -> Result<ImageFormat, VisionError> {
    use ImageFormat::{Bmp, Gif, Jpeg, Png, Tiff, WebP};
    let format = image::guess_format(bytes).ok().filter(|f| [Bmp, Gif, Jpeg, Png, Tiff, WebP].contains(f));
    format.ok_or_else(|| {
        let what = foreign_format(bytes).unwrap_or("of an unknown format");
        VisionError::new(
            VisionErrorKind::UnknownFormat,
            format!("The file is {what}; PNG, JPEG, WebP, GIF, BMP and TIFF are read."),
            "Convert it to PNG or JPEG.",
        )
    })
}

/// Formats that people try, by their first bytes.
fn foreign_format(bytes: &[u8]) -> Option<&'static str> {
    let brand = bytes.get(4..12)?;
    let is_box = brand.starts_with(b"ftyp");
    if is_box && [b"heic", b"heix", b"mif1", b"msf1", b"hevc"].iter().any(|b| brand.ends_with(*b)) {
        return Some("HEIC");
    }
    if is_box && [b"avif", b"avis"].iter().any(|b| brand.ends_with(*b)) {
        return Some("AVIF");
    }
    let starts: [(&[u8], &str); 5] = [
        (b"%PDF-", "PDF"),
        (b"<svg", "SVG"),
        (b"<?xml", "SVG or XML"),
        (b"8BPS", "Photoshop"),
        (b"\xff\x0a", "JPEG XL"),
    ];
    starts.iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, name)| *name)
}

/// Estimates the peak from the head, so that nothing large is allocated in vain.
fn check_memory(
    bytes: &[u8],
    format: ImageFormat,
    decoder: &impl ImageDecoder,
    orientation: Orientation,
    limits: &DecodeLimits,
) -> Result<(), VisionError> {
    let (width, height) = decoder.dimensions();
    let n_pixels = (width as usize).saturating_mul(height as usize);
    let decoded = usize::try_from(decoder.total_bytes()).unwrap_or(usize::MAX);
    let rgb = n_pixels.saturating_mul(3);
    // A picture that is RGB already is not copied.
    let converted = if decoder.color_type() == image::ColorType::Rgb8 { 0 } else { rgb };
    let decoding = decoded.saturating_add(working_bytes(bytes, format, n_pixels, decoded));
    let converting = decoded.saturating_add(converted);
    let turning = if is_transposed(orientation) { rgb.saturating_mul(2) } else { rgb };
    let peak = decoding.max(converting).max(turning);
    if peak <= limits.max_memory_bytes {
        return Ok(());
    }
    let (mb, max_mb) = (peak >> 20, limits.max_memory_bytes >> 20);
    Err(too_large(format!(
        "Decoding the picture of {width}×{height} pixels takes {mb} MB of memory; the maximum is {max_mb} MB."
    )))
}

/// What a decoder holds beside its output, at most; read from the decoders' sources.
fn working_bytes(bytes: &[u8], format: ImageFormat, n_pixels: usize, decoded: usize) -> usize {
    match format {
        // Copies the file; keeps 16-bit coefficients of up to four components if the picture is progressive.
        ImageFormat::Jpeg if is_progressive(bytes) => bytes.len().saturating_add(n_pixels.saturating_mul(8)),
        ImageFormat::Jpeg => bytes.len(),
        // Planes of luma and chroma, or a separate frame.
        ImageFormat::WebP => n_pixels.saturating_mul(8),
        // A frame that is smaller than the picture.
        ImageFormat::Gif => n_pixels.saturating_mul(4),
        // Decodes into a second buffer first.
        ImageFormat::Tiff => decoded,
        _ => 0,
    }
}

/// Whether the first frame header of a JPEG is a progressive one.
fn is_progressive(bytes: &[u8]) -> bool {
    let mut at = 2;
    while let Some(&[0xff, marker, high, low]) = bytes.get(at..at + 4) {
        match marker {
            0xc2 | 0xc6 | 0xca | 0xce => return true,
            0xc0 | 0xc1 | 0xda => return false,
            // A fill byte.
            0xff => at += 1,
            _ => at += 2 + usize::from(u16::from_be_bytes([high, low])),
        }
    }
    // Not walkable: assume what needs more.
    true
}

fn is_transposed(orientation: Orientation) -> bool {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    [Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH].contains(&orientation)
}

fn too_large(message: String) -> VisionError {
    VisionError::new(VisionErrorKind::TooLarge, message, "Make the picture smaller.")
}

fn unreadable(format: ImageFormat, error: &ImageError) -> VisionError {
    if let ImageError::Limits(_) = error {
        return too_large(format!("The {format:?} file needs more memory than a picture may take."));
    }
    damaged(format, error)
}

fn damaged(format: ImageFormat, why: impl std::fmt::Display) -> VisionError {
    VisionError::new(
        VisionErrorKind::UnreadableFile,
        format!("The {format:?} file cannot be read: {why}."),
        "Open it in another program and save it again as PNG or JPEG.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PNG's head that announces `side × side` pixels of RGB, with nothing behind it.
    fn announced(side: u32) -> Vec<u8> {
        let mut file = Vec::new();
        let encoder = image::codecs::png::PngEncoder::new(&mut file);
        let size = (1, 1, image::ExtendedColorType::Rgb8);
        image::ImageEncoder::write_image(encoder, &[1, 2, 3], size.0, size.1, size.2).unwrap();
        let side = side.to_be_bytes();
        file[16..20].copy_from_slice(&side);
        file[20..24].copy_from_slice(&side);
        let checksum = file[12..29].iter().fold(!0_u32, |crc, &byte| {
            (0..8)
                .fold(crc ^ u32::from(byte), |c, _| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 })
        });
        file[29..33].copy_from_slice(&(!checksum).to_be_bytes());
        file
    }

    #[test]
    fn errors_name_the_cause_and_a_remedy() {
        let limits = DecodeLimits { max_file_bytes: 1 << 20, ..DecodeLimits::default() };
        let cases: [(&[u8], VisionErrorKind, &str); 7] = [
            (b"", VisionErrorKind::UnknownFormat, "unknown format"),
            (b"\0\0\0\x18ftypheic\0\0", VisionErrorKind::UnknownFormat, "is HEIC"),
            (b"<svg xmlns='...'>", VisionErrorKind::UnknownFormat, "is SVG"),
            (b"%PDF-1.7 and more", VisionErrorKind::UnknownFormat, "is PDF"),
            (b"\x89PNG\r\n\x1a\n\0\0", VisionErrorKind::UnreadableFile, "Png"),
            (&[0xff; 2 << 20], VisionErrorKind::TooLarge, "2 MB; the maximum is 1 MB"),
            (&announced(60_000), VisionErrorKind::TooLarge, "60000×60000"),
        ];
        for (bytes, kind, named) in cases {
            let error = decode(bytes, &limits).unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.message.contains(named), "{error}");
            assert!(error.remedy.ends_with('.'));
        }
    }

    #[test]
    fn memory_is_estimated_before_it_is_taken() {
        let limits = DecodeLimits { max_memory_bytes: 1 << 20, ..DecodeLimits::default() };
        let error = decode(&announced(1000), &limits).unwrap_err();
        assert_eq!(error.kind, VisionErrorKind::TooLarge);
        assert!(error.message.contains("takes 2 MB of memory; the maximum is 1 MB"), "{error}");
    }
}
