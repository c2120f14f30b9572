//! Pictures: what is decoded has the size that was measured, and the layouts of all families fit it.

use vision::{DecodeLimits, ThumbnailFormat, decode, measure, thumbnail};

use crate::FuzzTarget;

/// Decodes pictures.
pub static IMAGE: FuzzTarget = FuzzTarget { name: "image", read, max_bytes: MAX_MEMORY_BYTES + (8 << 20) };

/// What a picture may take while it is decoded.
const MAX_MEMORY_BYTES: usize = 32 << 20;

const LIMITS: DecodeLimits =
    DecodeLimits { max_file_bytes: 1 << 20, max_pixels: 1 << 20, max_memory_bytes: MAX_MEMORY_BYTES };

/// Pixels of a thumbnail's longer side.
const THUMBNAIL_SIDE: usize = 64;

fn read(input: &[u8]) {
    let measured = measure(input, &LIMITS);
    let Ok(picture) = decode(input, &LIMITS) else { return };
    assert_eq!(measured.ok(), Some(picture.size()), "the size is known from the head");
    assert_eq!(picture.rgb().len(), picture.size().n_pixels() * 3);
    let _ = thumbnail(&picture, THUMBNAIL_SIDE, ThumbnailFormat::Png);
}
