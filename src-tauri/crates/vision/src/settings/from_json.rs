//! Settings from `preprocessor_config.json`, `processor_config.json` and `config.json` of a safetensors repository.
//!
//! What a file leaves out has the default of the published processor's class, as transformers reads it.

use serde_json::Value;

use crate::error::{VisionError, VisionErrorKind};
use crate::families::gemma3::Gemma3Settings;
use crate::families::gemma4::Gemma4Settings;
use crate::families::idefics3::Idefics3Settings;
use crate::families::lfm2::Lfm2Settings;
use crate::families::pixtral::PixtralSettings;
use crate::families::qwen_vl::QwenVlSettings;
use crate::resample::{ResampleArithmetic, ResampleFilter};
use crate::settings::{FamilySettings, ImageFamily, ImageSettings};

/// `model_type` of `config.json`.
const MODEL_TYPES: &[(&str, ImageFamily)] = &[
    ("gemma3", ImageFamily::Gemma3),
    ("gemma4", ImageFamily::Gemma4),
    ("gemma4_unified", ImageFamily::Gemma4Unified),
    ("qwen3_vl", ImageFamily::QwenVl),
    ("qwen3_vl_moe", ImageFamily::QwenVl),
    ("qwen3_5", ImageFamily::QwenVl),
    ("qwen3_5_moe", ImageFamily::QwenVl),
    ("mistral3", ImageFamily::Pixtral),
    ("lfm2_vl", ImageFamily::Lfm2),
    ("idefics3", ImageFamily::Idefics3),
    ("smolvlm", ImageFamily::Idefics3),
];

const CLIP_MEAN: [f32; 3] = [0.481_454_66, 0.457_827_5, 0.408_210_73];
const CLIP_STD: [f32; 3] = [0.268_629_54, 0.261_302_6, 0.275_777_1];

/// The files' keys, each looked up where the processors look.
struct SettingsFiles<'a> {
    /// `image_processor` of `processor_config.json`, else `preprocessor_config.json`.
    image: &'a Value,
    processor: &'a Value,
    config: &'a Value,
}

impl ImageSettings {
    /// Reads the settings of a repository. `preprocessor` and `processor` are the files of those names, if there are
    /// any; `config` is `config.json`.
    ///
    /// # Errors
    /// If the model has no vision tower that is read here, or a setting cannot be used.
    pub fn from_json(
        preprocessor: Option<&Value>,
        processor: Option<&Value>,
        config: &Value,
    ) -> Result<Self, VisionError> {
        let model_type = config["model_type"].as_str().unwrap_or("");
        let family = MODEL_TYPES.iter().find(|(name, _)| *name == model_type).map(|(_, family)| *family);
        let sees = config["vision_config"].is_object();
        let family = family.filter(|_| sees).ok_or_else(|| blind(model_type))?;
        let processor = processor.unwrap_or(&Value::Null);
        let nested = &processor["image_processor"];
        let image = if nested.is_object() { nested } else { preprocessor.unwrap_or(&Value::Null) };
        SettingsFiles { image, processor, config }.read(family)?.checked()
    }
}

fn blind(model_type: &str) -> VisionError {
    VisionError::new(
        VisionErrorKind::InvalidSettings,
        format!("config.json describes no model that sees (model_type \"{model_type}\")."),
        "Choose a model with the badge \"images\".",
    )
}

impl SettingsFiles<'_> {
    fn read(&self, family: ImageFamily) -> Result<ImageSettings, VisionError> {
        for key in ["do_resize", "do_rescale"] {
            if self.image[key].as_bool() == Some(false) {
                return Err(VisionError::setting(key, "is off, which is not supported"));
            }
        }
        let settings = match family {
            ImageFamily::Gemma3 => self.gemma3()?,
            ImageFamily::QwenVl => self.qwen_vl()?,
            ImageFamily::Gemma4 | ImageFamily::Gemma4Unified => self.gemma4(family)?,
            ImageFamily::Pixtral => self.pixtral()?,
            ImageFamily::Lfm2 => self.lfm2()?,
            ImageFamily::Idefics3 => self.idefics3()?,
        };
        let defaults = family.samples();
        let normalizes = self.image["do_normalize"].as_bool().unwrap_or(defaults.normalizes);
        let (mean, std) = if normalizes {
            (self.channels("image_mean", defaults.mean)?, self.channels("image_std", defaults.std)?)
        } else {
            ([0.0; 3], [1.0; 3])
        };
        let rescale = self.image["rescale_factor"].as_f64().unwrap_or(1.0 / 255.0);
        let (filter, arithmetic) = (self.filter(defaults.filter)?, family.arithmetic());
        Ok(ImageSettings { family: settings, filter, arithmetic, rescale, mean, std })
    }

    fn gemma3(&self) -> Result<FamilySettings, VisionError> {
        if self.image["do_pan_and_scan"].as_bool() == Some(true) {
            return Err(VisionError::setting("do_pan_and_scan", "is on, which is not supported"));
        }
        let size = &self.image["size"];
        let side = length("size.height", &size["height"])?.unwrap_or(224);
        if length("size.width", &size["width"])?.is_some_and(|width| width != side) {
            return Err(VisionError::setting("size", "is not a square"));
        }
        let patch = self.of_vision("patch_size")?.unwrap_or(14);
        let n_tokens = first(&[
            length("image_seq_length", &self.processor["image_seq_length"])?,
            length("image_seq_length", &self.image["image_seq_length"])?,
            length("mm_tokens_per_image", &self.config["mm_tokens_per_image"])?,
        ]);
        let n_tokens = n_tokens.unwrap_or(256);
        let per_side = n_tokens.isqrt();
        if patch == 0 || per_side == 0 || per_side * per_side != n_tokens {
            let why = format_args!("is {n_tokens}, which is not a square number");
            return Err(VisionError::setting("image_seq_length", why));
        }
        Ok(FamilySettings::Gemma3(Gemma3Settings { side, patch, pool: side / patch / per_side }))
    }

    fn qwen_vl(&self) -> Result<FamilySettings, VisionError> {
        let patch = first(&[self.of_image("patch_size")?, self.of_vision("patch_size")?]).unwrap_or(16);
        let merge =
            first(&[self.of_image("merge_size")?, self.of_vision("spatial_merge_size")?]).unwrap_or(2);
        let size = &self.image["size"];
        let min =
            first(&[self.of_image("min_pixels")?, length("size.shortest_edge", &size["shortest_edge"])?]);
        let max = first(&[self.of_image("max_pixels")?, length("size.longest_edge", &size["longest_edge"])?]);
        let min_pixels = min.unwrap_or(QwenVlSettings::PUBLISHED_MIN_PIXELS);
        let max_pixels = max.unwrap_or(QwenVlSettings::PUBLISHED_MAX_PIXELS);
        Ok(FamilySettings::QwenVl(QwenVlSettings { patch, merge, min_pixels, max_pixels }))
    }

    fn gemma4(&self, family: ImageFamily) -> Result<FamilySettings, VisionError> {
        let patch = first(&[self.of_image("patch_size")?, self.of_vision("patch_size")?]).unwrap_or(16);
        let pool = first(&[self.of_image("pooling_kernel_size")?, self.of_vision("pooling_kernel_size")?]);
        let max_tokens = first(&[
            self.of_image("max_soft_tokens")?,
            length("vision_soft_tokens_per_image", &self.config["vision_soft_tokens_per_image"])?,
        ]);
        let pool = pool.unwrap_or(Gemma4Settings::PUBLISHED_POOL);
        let max_tokens = max_tokens.unwrap_or(Gemma4Settings::PUBLISHED_TOKENS);
        Ok(FamilySettings::gemma4(family, Gemma4Settings { patch, pool, max_tokens }))
    }

    fn pixtral(&self) -> Result<FamilySettings, VisionError> {
        let patch = first(&[
            patch_side(&self.processor["patch_size"])?,
            patch_side(&self.image["patch_size"])?,
            self.of_vision("patch_size")?,
        ]);
        let merge = first(&[
            length("spatial_merge_size", &self.processor["spatial_merge_size"])?,
            length("spatial_merge_size", &self.config["spatial_merge_size"])?,
        ]);
        let longest = length("size.longest_edge", &self.image["size"]["longest_edge"])?;
        let text = |key: &str, default: &str| self.processor[key].as_str().unwrap_or(default).to_owned();
        Ok(FamilySettings::Pixtral(PixtralSettings {
            patch: patch.unwrap_or(14),
            merge: merge.unwrap_or(2),
            longest_side: first(&[longest, self.of_vision("image_size")?])
                .unwrap_or(PixtralSettings::PUBLISHED_LONGEST_SIDE),
            image_token: text("image_token", PixtralSettings::IMAGE_TOKEN),
            break_token: text("image_break_token", PixtralSettings::BREAK_TOKEN),
            end_token: text("image_end_token", PixtralSettings::END_TOKEN),
        }))
    }

    fn lfm2(&self) -> Result<FamilySettings, VisionError> {
        let number = |key: &str| -> Result<Option<usize>, VisionError> {
            Ok(first(&[self.of_image(key)?, length(key, &self.config[key])?]))
        };
        let flag = |key: &str| self.image[key].as_bool().or(self.config[key].as_bool());
        let published = Lfm2Settings::published();
        let tolerance = self.image["max_pixels_tolerance"].as_f64();
        Ok(FamilySettings::Lfm2(Lfm2Settings {
            patch: number("encoder_patch_size")?.unwrap_or(published.patch),
            merge: number("downsample_factor")?.unwrap_or(published.merge),
            min_tokens: number("min_image_tokens")?.unwrap_or(published.min_tokens),
            max_tokens: number("max_image_tokens")?.unwrap_or(published.max_tokens),
            tolerance: tolerance
                .or(self.config["max_pixels_tolerance"].as_f64())
                .unwrap_or(published.tolerance),
            is_split: flag("do_image_splitting").unwrap_or(published.is_split),
            min_tiles: number("min_tiles")?.unwrap_or(published.min_tiles),
            max_tiles: number("max_tiles")?.unwrap_or(published.max_tiles),
            tile_side: number("tile_size")?.unwrap_or(published.tile_side),
            has_overview: flag("use_thumbnail").unwrap_or(published.has_overview),
            has_markers: self.processor["use_image_special_tokens"]
                .as_bool()
                .or(self.config["use_image_special_tokens"].as_bool())
                .unwrap_or(published.has_markers),
        }))
    }

    fn idefics3(&self) -> Result<FamilySettings, VisionError> {
        let longest = length("size.longest_edge", &self.image["size"]["longest_edge"])?;
        let tile = &self.image["max_image_size"]["longest_edge"];
        let tile = first(&[length("max_image_size.longest_edge", tile)?, self.of_vision("image_size")?]);
        let settings = Idefics3Settings {
            patch: self.of_vision("patch_size")?.unwrap_or(14),
            scale: length("scale_factor", &self.config["scale_factor"])?.unwrap_or(2),
            longest_side: longest.unwrap_or(Idefics3Settings::PUBLISHED_LONGEST_SIDE),
            tile_side: tile.unwrap_or(Idefics3Settings::PUBLISHED_TILE_SIDE),
            is_split: self.image["do_image_splitting"].as_bool().unwrap_or(true),
        };
        let stated = length("image_seq_len", &self.processor["image_seq_len"])?;
        let n_tokens = settings.n_tile_tokens();
        if let Some(stated) = stated.filter(|&stated| stated != n_tokens) {
            let why = format_args!("is {stated}, but a tile has {n_tokens} tokens");
            return Err(VisionError::setting("image_seq_len", why));
        }
        Ok(FamilySettings::Idefics3(settings))
    }

    fn of_image(&self, key: &str) -> Result<Option<usize>, VisionError> {
        length(key, &self.image[key])
    }

    fn of_vision(&self, key: &str) -> Result<Option<usize>, VisionError> {
        length(key, &self.config["vision_config"][key])
    }

    fn filter(&self, default: ResampleFilter) -> Result<ResampleFilter, VisionError> {
        let Some(code) = length("resample", &self.image["resample"])? else { return Ok(default) };
        ResampleFilter::from_pillow_code(code as u64).ok_or_else(|| {
            VisionError::setting("resample", format_args!("is {code}, which is no known filter"))
        })
    }

    fn channels(&self, key: &str, default: [f32; 3]) -> Result<[f32; 3], VisionError> {
        let value = &self.image[key];
        if value.is_null() {
            return Ok(default);
        }
        let numbers: Option<Vec<f32>> =
            value.as_array().and_then(|a| a.iter().map(|v| v.as_f64().map(|v| v as f32)).collect());
        let three = numbers.and_then(|numbers| <[f32; 3]>::try_from(numbers).ok());
        three.ok_or_else(|| VisionError::setting(key, "is not a list of three numbers"))
    }
}

/// The defaults that a family's image processor has for samples.
pub(super) struct SampleDefaults {
    pub filter: ResampleFilter,
    pub normalizes: bool,
    pub mean: [f32; 3],
    pub std: [f32; 3],
}

impl ImageFamily {
    pub(super) fn samples(self) -> SampleDefaults {
        let (filter, normalizes, mean, std) = match self {
            ImageFamily::Gemma3 | ImageFamily::Lfm2 => (ResampleFilter::Bilinear, true, [0.5; 3], [0.5; 3]),
            ImageFamily::QwenVl => (ResampleFilter::Bicubic, true, [0.5; 3], [0.5; 3]),
            ImageFamily::Gemma4 | ImageFamily::Gemma4Unified => {
                (ResampleFilter::Bicubic, false, [0.0; 3], [1.0; 3])
            }
            ImageFamily::Pixtral => (ResampleFilter::Bicubic, true, CLIP_MEAN, CLIP_STD),
            ImageFamily::Idefics3 => (ResampleFilter::Lanczos, true, [0.5; 3], [0.5; 3]),
        };
        SampleDefaults { filter, normalizes, mean, std }
    }

    /// Two of the published processors exist for torchvision only.
    pub(super) fn arithmetic(self) -> ResampleArithmetic {
        match self {
            ImageFamily::Lfm2 | ImageFamily::Gemma4Unified => ResampleArithmetic::Torchvision,
            ImageFamily::Gemma3
            | ImageFamily::QwenVl
            | ImageFamily::Gemma4
            | ImageFamily::Pixtral
            | ImageFamily::Idefics3 => ResampleArithmetic::Pillow,
        }
    }
}

fn first(candidates: &[Option<usize>]) -> Option<usize> {
    candidates.iter().copied().flatten().next()
}

/// A whole number that is not negative; null and a missing key are `None`.
fn length(key: &str, value: &Value) -> Result<Option<usize>, VisionError> {
    if value.is_null() {
        return Ok(None);
    }
    let number = value.as_u64().and_then(|n| usize::try_from(n).ok());
    number.map(Some).ok_or_else(|| VisionError::setting(key, format_args!("is {value}, not a whole number")))
}

/// A patch size: a number, or an object with equal `height` and `width`.
fn patch_side(value: &Value) -> Result<Option<usize>, VisionError> {
    if !value.is_object() {
        return length("patch_size", value);
    }
    let side = length("patch_size.height", &value["height"])?;
    if length("patch_size.width", &value["width"])? != side {
        return Err(VisionError::setting("patch_size", "is not a square"));
    }
    Ok(side)
}
