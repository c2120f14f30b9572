//! Settings from the metadata of an `mmproj` GGUF.
//!
//! A GGUF carries no filter and seldom limits of pixels. Those of tokens and tiles are the published processor's: the
//! same model has the same tokens in both containers. llama.cpp's own limits differ for qwen (8 to 4096 tokens)
//! and gemma4 (70 to 1120), and it pads where the processors stretch; neither is followed.

use crate::error::{VisionError, VisionErrorKind};
use crate::families::gemma3::Gemma3Settings;
use crate::families::gemma4::Gemma4Settings;
use crate::families::idefics3::Idefics3Settings;
use crate::families::lfm2::Lfm2Settings;
use crate::families::pixtral::PixtralSettings;
use crate::families::qwen_vl::QwenVlSettings;
use crate::settings::{FamilySettings, ImageFamily, ImageSettings};

/// `clip.projector_type`, or `clip.vision.projector_type`.
const PROJECTOR_TYPES: &[(&str, ImageFamily)] = &[
    ("gemma3", ImageFamily::Gemma3),
    ("gemma4v", ImageFamily::Gemma4),
    ("gemma4uv", ImageFamily::Gemma4Unified),
    ("qwen3vl_merger", ImageFamily::QwenVl),
    ("pixtral", ImageFamily::Pixtral),
    ("lfm2", ImageFamily::Lfm2),
    ("idefics3", ImageFamily::Idefics3),
];

/// A metadata value, as far as pictures need it.
#[derive(Debug, Clone, PartialEq)]
pub enum GgufValue {
    /// Any integer type.
    Integer(u64),
    /// A string.
    Text(String),
    /// An array of floats.
    Floats(Vec<f32>),
}

/// Looks up a key of the metadata.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<GgufValue>;

impl ImageSettings {
    /// Reads the settings of an `mmproj` GGUF; `lookup` gives the value of a metadata key.
    ///
    /// # Errors
    /// If the projector is of no family that is read here, or a value cannot be used.
    pub fn from_gguf(lookup: Lookup) -> Result<Self, VisionError> {
        let family = projector_family(lookup)?;
        let defaults = family.samples();
        let (mean, std) = if defaults.normalizes {
            let channels = |key, default| channels(lookup, key, default);
            (
                channels("clip.vision.image_mean", defaults.mean)?,
                channels("clip.vision.image_std", defaults.std)?,
            )
        } else {
            (defaults.mean, defaults.std)
        };
        let settings = ImageSettings {
            family: family_settings(family, lookup)?,
            filter: defaults.filter,
            arithmetic: family.arithmetic(),
            rescale: 1.0 / 255.0,
            mean,
            std,
        };
        settings.checked()
    }
}

fn projector_family(lookup: Lookup) -> Result<ImageFamily, VisionError> {
    let named = ["clip.projector_type", "clip.vision.projector_type"].into_iter().find_map(lookup);
    let Some(GgufValue::Text(name)) = named else {
        return Err(VisionError::setting("clip.projector_type", "is missing"));
    };
    let known = PROJECTOR_TYPES.iter().find(|(known, _)| *known == name);
    known.map(|(_, family)| *family).ok_or_else(|| {
        VisionError::new(
            VisionErrorKind::InvalidSettings,
            format!("The projector type \"{name}\" of the mmproj file is not supported."),
            "Choose another model that sees images.",
        )
    })
}

fn family_settings(family: ImageFamily, lookup: Lookup) -> Result<FamilySettings, VisionError> {
    let number = |key: &str, default: usize| Ok(optional(lookup, key)?.unwrap_or(default));
    let patch = required(lookup, "clip.vision.patch_size")?;
    Ok(match family {
        ImageFamily::Gemma3 => FamilySettings::Gemma3(Gemma3Settings {
            side: required(lookup, "clip.vision.image_size")?,
            patch,
            pool: number("clip.vision.projector.scale_factor", Gemma3Settings::PUBLISHED_POOL)?,
        }),
        ImageFamily::QwenVl => FamilySettings::QwenVl(QwenVlSettings {
            patch,
            merge: number("clip.vision.spatial_merge_size", 2)?,
            min_pixels: number("clip.vision.image_min_pixels", QwenVlSettings::PUBLISHED_MIN_PIXELS)?,
            max_pixels: number("clip.vision.image_max_pixels", QwenVlSettings::PUBLISHED_MAX_PIXELS)?,
        }),
        ImageFamily::Gemma4 | ImageFamily::Gemma4Unified => {
            let pool = number("clip.vision.projector.scale_factor", Gemma4Settings::PUBLISHED_POOL)?;
            let most = optional(lookup, "clip.vision.image_max_pixels")?;
            let area = patch.saturating_mul(pool).saturating_pow(2).max(1);
            let max_tokens = most.map_or(Gemma4Settings::PUBLISHED_TOKENS, |most| most / area);
            FamilySettings::gemma4(family, Gemma4Settings { patch, pool, max_tokens })
        }
        ImageFamily::Pixtral => FamilySettings::Pixtral(PixtralSettings {
            patch,
            merge: number("clip.vision.spatial_merge_size", 2)?,
            // The tower's largest side is also the processor's limit.
            longest_side: number("clip.vision.image_size", PixtralSettings::PUBLISHED_LONGEST_SIDE)?,
            image_token: PixtralSettings::IMAGE_TOKEN.to_owned(),
            break_token: PixtralSettings::BREAK_TOKEN.to_owned(),
            end_token: PixtralSettings::END_TOKEN.to_owned(),
        }),
        ImageFamily::Lfm2 => {
            let published = Lfm2Settings::published();
            let merge = number("clip.vision.projector.scale_factor", published.merge)?;
            let area = patch.saturating_mul(merge).saturating_pow(2).max(1);
            let tokens = |key, usual| Ok(optional(lookup, key)?.map_or(usual, |n_pixels| n_pixels / area));
            FamilySettings::Lfm2(Lfm2Settings {
                patch,
                merge,
                min_tokens: tokens("clip.vision.image_min_pixels", published.min_tokens)?,
                max_tokens: tokens("clip.vision.image_max_pixels", published.max_tokens)?,
                min_tiles: number("clip.vision.preproc_min_tiles", published.min_tiles)?,
                max_tiles: number("clip.vision.preproc_max_tiles", published.max_tiles)?,
                tile_side: number("clip.vision.preproc_image_size", published.tile_side)?,
                ..published
            })
        }
        ImageFamily::Idefics3 => {
            let tile_side = required(lookup, "clip.vision.image_size")?;
            FamilySettings::Idefics3(Idefics3Settings {
                patch,
                scale: number("clip.vision.projector.scale_factor", 2)?,
                longest_side: number("clip.vision.preproc_image_size", tile_side.saturating_mul(4))?,
                tile_side,
                is_split: true,
            })
        }
    })
}

fn optional(lookup: Lookup, key: &str) -> Result<Option<usize>, VisionError> {
    match lookup(key) {
        None => Ok(None),
        Some(GgufValue::Integer(number)) => usize::try_from(number)
            .map(Some)
            .map_err(|_| VisionError::setting(key, format_args!("is {number}, which is too large"))),
        Some(_) => Err(VisionError::setting(key, "is not an integer")),
    }
}

fn required(lookup: Lookup, key: &str) -> Result<usize, VisionError> {
    optional(lookup, key)?.ok_or_else(|| VisionError::setting(key, "is missing"))
}

fn channels(lookup: Lookup, key: &str, default: [f32; 3]) -> Result<[f32; 3], VisionError> {
    match lookup(key) {
        None => Ok(default),
        Some(GgufValue::Floats(values)) => <[f32; 3]>::try_from(values)
            .map_err(|_| VisionError::setting(key, "is not a list of three numbers")),
        Some(_) => Err(VisionError::setting(key, "is not a list of numbers")),
    }
}
