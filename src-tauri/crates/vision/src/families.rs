//! The rules of each family of vision models: a file per published image processor.

pub(crate) mod gemma3;
pub(crate) mod gemma4;
pub(crate) mod idefics3;
pub(crate) mod lfm2;
pub(crate) mod pixtral;
pub(crate) mod qwen_vl;

use crate::error::{VisionError, VisionErrorKind};
use crate::picture::PictureSize;

/// The picture's sides as float64, which all rules divide; refuses an empty picture.
fn sides(size: PictureSize) -> Result<(f64, f64), VisionError> {
    if size.n_pixels() == 0 {
        return Err(refused(size, "it has no pixels"));
    }
    Ok((size.width as f64, size.height as f64))
}

/// A picture that the family's processor refuses.
fn refused(size: PictureSize, why: impl std::fmt::Display) -> VisionError {
    VisionError::new(
        VisionErrorKind::RefusedShape,
        format!("This model does not take a picture of {size} pixels: {why}."),
        "Crop the picture so that its sides are less different.",
    )
}

/// `side / factor`, rounded half to even, in units of `factor`.
fn round_to(side: f64, factor: usize) -> usize {
    (side / factor as f64).round_ties_even() as usize * factor
}

/// The largest multiple of `factor` at or below `side`.
fn floor_to(side: f64, factor: usize) -> usize {
    (side / factor as f64).floor() as usize * factor
}

/// The smallest multiple of `factor` at or above `side`.
fn ceil_to(side: f64, factor: usize) -> usize {
    (side / factor as f64).ceil() as usize * factor
}
