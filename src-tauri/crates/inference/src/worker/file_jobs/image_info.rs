//! What lists show of an image: its size, and a small copy.

use contract::protocol::Base64Text;
use contract::types::ImageInfo;
use contract::{Error, Result};
use documents::base64;
use prompt::images::unusable;
use vision::{DecodeLimits, ThumbnailFormat, VisionErrorKind, decode, measure, thumbnail};

/// Pixels of a thumbnail's longer side: twice what is shown, for dense screens.
const THUMBNAIL_SIDE: usize = 384;
/// Enough for a photo of that size; about 15 KB.
const THUMBNAIL_QUALITY: u8 = 75;

/// As [`of`], of a file in base64.
pub fn read(file: &Base64Text) -> Result<Option<ImageInfo>> {
    of(&base64::decode(&file.0).ok_or_else(|| Error::bug("an image is not valid base64"))?)
}

/// The size and the thumbnail of an image's file. None: it is no image.
///
/// Errors: `image.unreadable`, `image.too_large`.
pub fn of(bytes: &[u8]) -> Result<Option<ImageInfo>> {
    let limits = DecodeLimits::default();
    match measure(bytes, &limits) {
        Ok(_) => {}
        // Two letters alone tell a BMP: it may be a text.
        Err(error) if error.kind == VisionErrorKind::UnknownFormat || bytes.starts_with(b"BM") => {
            return Ok(None);
        }
        Err(error) => return Err(unusable(&error)),
    }
    let picture = decode(bytes, &limits).map_err(|error| unusable(&error))?;
    let format = ThumbnailFormat::Jpeg { quality: THUMBNAIL_QUALITY };
    let small = thumbnail(&picture, THUMBNAIL_SIDE, format).map_err(|error| unusable(&error))?;
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
    Ok(Some(ImageInfo {
        width: side(picture.size().width),
        height: side(picture.size().height),
        thumbnail: format!("data:image/jpeg;base64,{}", base64::encode(&small)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One black pixel.
    const PNG: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";

    #[test]
    fn an_image_has_a_size_and_a_thumbnail() {
        let info = read(&Base64Text(PNG.into())).unwrap().unwrap();
        assert_eq!((info.width, info.height), (1, 1));
        let digits = info.thumbnail.strip_prefix("data:image/jpeg;base64,").unwrap();
        let small = decode(&base64::decode(digits).unwrap(), &DecodeLimits::default()).unwrap();
        assert_eq!(small.rgb(), [0, 0, 0]);
    }

    #[test]
    fn what_is_no_image_is_told_from_what_is_damaged() {
        let png = base64::decode(PNG).unwrap();
        let cases: [(&[u8], Option<&str>); 5] = [
            (b"", None),
            (b"BMW is a car", None),
            (b"%PDF-1.4", None),
            (&png[..20], Some("image.unreadable")),
            (&png[..png.len() - 20], Some("image.unreadable")),
        ];
        for (bytes, code) in cases {
            match (of(bytes), code) {
                (Ok(None), None) => {}
                (Err(error), Some(code)) => assert_eq!(error.code(), code, "{error}"),
                (other, _) => panic!("{bytes:?}: {other:?}"),
            }
        }
    }
}
