//! Limits of the numbers in a model's files: every one is checked before it is used.

use crate::error::VisionError;
use crate::families::gemma4::Gemma4Settings;
use crate::settings::{FamilySettings, ImageSettings};

/// Pixels per side of a patch at most; published ones have 14 to 48.
const MAX_PATCH: usize = 256;
/// Patches per side that become one token at most; published ones have 2 to 4.
const MAX_MERGE: usize = 64;
/// Pixels per side of a tile or of a resized picture at most; published ones have up to 2048.
const MAX_SIDE: usize = 16_384;
/// Pixels of a resized picture at most, over all tiles: 12 bytes each as float32. Published: 2^24.
const MAX_RESIZED_PIXELS: usize = 1 << 25;
/// Tiles of a split picture at most; published: 10.
const MAX_TILES: usize = 256;

/// Refuses `value` outside `1..=max`.
fn check(key: &str, value: usize, max: usize) -> Result<(), VisionError> {
    if (1..=max).contains(&value) {
        return Ok(());
    }
    Err(VisionError::setting(key, format_args!("is {value}, outside 1 to {max}")))
}

/// Refuses a length that is not a whole number of `unit`.
fn check_multiple(key: &str, value: usize, unit: usize) -> Result<(), VisionError> {
    if value.is_multiple_of(unit) {
        return Ok(());
    }
    Err(VisionError::setting(key, format_args!("is {value}, which is not a multiple of {unit}")))
}

fn check_tokens(key: &str, n_tokens: usize, unit: usize) -> Result<(), VisionError> {
    check(key, n_tokens, MAX_RESIZED_PIXELS / (unit * unit))
}

impl ImageSettings {
    /// Refuses numbers that the rules cannot work with, so that a layout never divides by zero or grows without bound.
    pub(super) fn checked(self) -> Result<Self, VisionError> {
        match &self.family {
            FamilySettings::Gemma3(gemma3) => {
                check_patch(gemma3.patch, gemma3.pool)?;
                check("size", gemma3.side, MAX_SIDE)?;
                check_multiple("size", gemma3.side, gemma3.patch * gemma3.pool)?;
            }
            FamilySettings::QwenVl(qwen_vl) => {
                check_patch(qwen_vl.patch, qwen_vl.merge)?;
                check("size.longest_edge", qwen_vl.max_pixels, MAX_RESIZED_PIXELS)?;
                check("size.shortest_edge", qwen_vl.min_pixels, qwen_vl.max_pixels)?;
            }
            FamilySettings::Gemma4(gemma4) => {
                check_patch(gemma4.patch, gemma4.pool)?;
                if !Gemma4Settings::SUPPORTED_TOKENS.contains(&gemma4.max_tokens) {
                    let why = format_args!("is {}, which is not supported", gemma4.max_tokens);
                    return Err(VisionError::setting("max_soft_tokens", why));
                }
                check_tokens("max_soft_tokens", gemma4.max_tokens, gemma4.patch * gemma4.pool)?;
            }
            FamilySettings::Pixtral(pixtral) => {
                check_patch(pixtral.patch, pixtral.merge)?;
                check("size.longest_edge", pixtral.longest_side, MAX_RESIZED_PIXELS.isqrt())?;
            }
            FamilySettings::Lfm2(lfm2) => {
                let unit = lfm2.patch * lfm2.merge;
                check_patch(lfm2.patch, lfm2.merge)?;
                check_tokens("max_image_tokens", lfm2.max_tokens, unit)?;
                check("min_image_tokens", lfm2.min_tokens, lfm2.max_tokens)?;
                check("tile_size", lfm2.tile_side, MAX_SIDE)?;
                check_multiple("tile_size", lfm2.tile_side, lfm2.patch)?;
                check("max_tiles", lfm2.max_tiles, MAX_TILES)?;
                check("max_tiles", lfm2.max_tiles, MAX_RESIZED_PIXELS / lfm2.tile_side.pow(2))?;
                check("min_tiles", lfm2.min_tiles, lfm2.max_tiles)?;
                if !(lfm2.tolerance >= 0.0 && lfm2.tolerance.is_finite()) {
                    let why = format_args!("is {}, not a positive number", lfm2.tolerance);
                    return Err(VisionError::setting("max_pixels_tolerance", why));
                }
            }
            FamilySettings::Idefics3(idefics3) => {
                check_patch(idefics3.patch, idefics3.scale)?;
                check("size.longest_edge", idefics3.longest_side, MAX_SIDE)?;
                check("max_image_size.longest_edge", idefics3.tile_side, MAX_RESIZED_PIXELS.isqrt())?;
                let unit = idefics3.patch * idefics3.scale;
                check_multiple("max_image_size.longest_edge", idefics3.tile_side, unit)?;
            }
        }
        self.check_samples()
    }

    fn check_samples(self) -> Result<Self, VisionError> {
        let usable = |std: &f32| std.is_finite() && *std != 0.0;
        if !self.std.iter().all(usable) {
            return Err(VisionError::setting("image_std", "has a zero or a value that is not a number"));
        }
        if !self.mean.iter().all(|mean| mean.is_finite()) || !self.rescale.is_finite() {
            return Err(VisionError::setting("image_mean", "has a value that is not a number"));
        }
        Ok(self)
    }
}

fn check_patch(patch: usize, merge: usize) -> Result<(), VisionError> {
    check("patch_size", patch, MAX_PATCH)?;
    check("merge_size", merge, MAX_MERGE)
}
