//! A model's settings for pictures, whichever container they come from.

mod from_gguf;
mod from_json;
mod limits;

pub use from_gguf::GgufValue;

use crate::detail::Detail;
use crate::error::VisionError;
use crate::families::gemma3::Gemma3Settings;
use crate::families::gemma4::Gemma4Settings;
use crate::families::idefics3::Idefics3Settings;
use crate::families::lfm2::Lfm2Settings;
use crate::families::pixtral::PixtralSettings;
use crate::families::qwen_vl::QwenVlSettings;
use crate::layout::ImageLayout;
use crate::normalize::Normalization;
use crate::patches::{PatchOrder, PatchPixels, PatchSequence};
use crate::picture::{Picture, PictureSize};
use crate::resample::{ResampleArithmetic, ResampleFilter, resize};

/// The image processors that are implemented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageFamily {
    /// Gemma 3.
    Gemma3,
    /// Qwen3-VL, Qwen3.5 and their mixtures of experts.
    QwenVl,
    /// Gemma 4 with a vision tower.
    Gemma4,
    /// Gemma 4 without one: patches of the size of a token go straight to the projector.
    Gemma4Unified,
    /// Ministral 3, Mistral Small.
    Pixtral,
    /// LFM2-VL.
    Lfm2,
    /// Idefics3 and SmolVLM.
    Idefics3,
}

/// The numbers of a family's rule.
#[derive(Debug, Clone, PartialEq)]
pub enum FamilySettings {
    /// Gemma 3.
    Gemma3(Gemma3Settings),
    /// Qwen3-VL, Qwen3.5.
    QwenVl(QwenVlSettings),
    /// Gemma 4, with a vision tower or without.
    Gemma4(Gemma4Settings),
    /// Ministral 3, Mistral Small.
    Pixtral(PixtralSettings),
    /// LFM2-VL.
    Lfm2(Lfm2Settings),
    /// Idefics3 and SmolVLM.
    Idefics3(Idefics3Settings),
}

impl FamilySettings {
    fn gemma4(family: ImageFamily, with_tower: Gemma4Settings) -> Self {
        Self::Gemma4(if family == ImageFamily::Gemma4Unified { with_tower.unified() } else { with_tower })
    }
}

/// Everything that turns a picture into patches.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageSettings {
    /// The rule for sizes, tiles and placeholders.
    pub family: FamilySettings,
    /// The kernel of every resize.
    pub filter: ResampleFilter,
    /// How the kernel's weights are rounded.
    pub arithmetic: ResampleArithmetic,
    /// Factor of the 8-bit samples, usually 1/255.
    pub rescale: f64,
    /// Subtracted from the rescaled samples, per channel.
    pub mean: [f32; 3],
    /// Divides the difference, per channel.
    pub std: [f32; 3],
}

impl ImageSettings {
    /// What the chat template writes for an image. It is replaced by [`ImageLayout::expanded_text`], which may contain
    /// it again: replace by position, not repeatedly.
    pub fn placeholder(&self) -> &str {
        match &self.family {
            FamilySettings::Gemma3(_) => Gemma3Settings::PLACEHOLDER,
            FamilySettings::QwenVl(_) => QwenVlSettings::PLACEHOLDER,
            FamilySettings::Gemma4(_) => Gemma4Settings::PLACEHOLDER,
            FamilySettings::Pixtral(pixtral) => &pixtral.image_token,
            FamilySettings::Lfm2(_) => Lfm2Settings::PLACEHOLDER,
            FamilySettings::Idefics3(_) => Idefics3Settings::PLACEHOLDER,
        }
    }

    /// The token of the expanded text that receives an embedding, [`ImageLayout::n_tokens`] times.
    pub fn image_token(&self) -> &str {
        match &self.family {
            FamilySettings::Gemma3(_) => Gemma3Settings::IMAGE_TOKEN,
            _ => self.placeholder(),
        }
    }

    /// Whether [`Detail`] changes the number of tokens.
    pub fn is_dynamic(&self) -> bool {
        !matches!(self.family, FamilySettings::Gemma3(_))
    }

    /// Whether larger pictures take more tokens, so that a cap can keep them down.
    pub fn has_detail(&self) -> bool {
        match self.family {
            FamilySettings::Gemma3(_) => false,
            FamilySettings::QwenVl(_)
            | FamilySettings::Gemma4(_)
            | FamilySettings::Pixtral(_)
            | FamilySettings::Lfm2(_)
            | FamilySettings::Idefics3(_) => true,
        }
    }

    /// The same settings with a cap on the tokens of a picture. Never raises a limit of the model.
    #[must_use]
    pub fn with_detail(&self, detail: Detail) -> Self {
        let mut settings = self.clone();
        let Some(max_tokens) = detail.max_tokens() else { return settings };
        match &mut settings.family {
            FamilySettings::Gemma3(_) => {}
            FamilySettings::QwenVl(qwen_vl) => qwen_vl.cap_tokens(max_tokens),
            FamilySettings::Gemma4(gemma4) => gemma4.cap_tokens(max_tokens),
            FamilySettings::Pixtral(pixtral) => pixtral.cap_tokens(max_tokens),
            FamilySettings::Lfm2(lfm2) => lfm2.cap_tokens(max_tokens),
            FamilySettings::Idefics3(idefics3) => idefics3.cap_tokens(max_tokens),
        }
        settings
    }

    /// Tiles, grids, token counts and the expanded text for a picture of `size`, without its pixels.
    ///
    /// # Errors
    /// If the family refuses the shape.
    pub fn layout(&self, size: PictureSize) -> Result<ImageLayout, VisionError> {
        match &self.family {
            FamilySettings::Gemma3(gemma3) => gemma3.layout(size),
            FamilySettings::QwenVl(qwen_vl) => qwen_vl.layout(size),
            FamilySettings::Gemma4(gemma4) => gemma4.layout(size),
            FamilySettings::Pixtral(pixtral) => pixtral.layout(size),
            FamilySettings::Lfm2(lfm2) => lfm2.layout(size),
            FamilySettings::Idefics3(idefics3) => idefics3.layout(size),
        }
    }

    /// The patches of the picture, as the vision tower takes them.
    ///
    /// # Errors
    /// If the family refuses the shape.
    pub fn preprocess(&self, picture: &Picture) -> Result<PatchPixels, VisionError> {
        let layout = self.layout(picture.size())?;
        let resize = |picture: &Picture, to: PictureSize| resize(picture, to, self.filter, self.arithmetic);
        let pictures = match &self.family {
            FamilySettings::Lfm2(lfm2) => lfm2.cut(picture, &layout, &resize),
            FamilySettings::Idefics3(idefics3) => idefics3.cut(picture, &layout, &resize),
            FamilySettings::Gemma3(_)
            | FamilySettings::QwenVl(_)
            | FamilySettings::Gemma4(_)
            | FamilySettings::Pixtral(_) => vec![resize(picture, layout.resized)],
        };
        let (patch, order, sequence) = self.patch_shape();
        let normalization = Normalization::new(self.rescale, self.mean, self.std);
        let mut patches = PatchPixels::empty(patch, order, sequence);
        for (tile, picture) in layout.tiles.iter().zip(&pictures) {
            patches.push_tile(*tile, picture, &normalization);
        }
        Ok(patches)
    }

    /// Pixels per side of a patch.
    pub fn patch_side(&self) -> usize {
        self.patch_shape().0
    }

    /// Patches per side of the block that becomes one image token.
    pub fn patches_per_token(&self) -> usize {
        match &self.family {
            FamilySettings::Gemma3(gemma3) => gemma3.pool,
            FamilySettings::QwenVl(qwen_vl) => qwen_vl.merge,
            FamilySettings::Gemma4(gemma4) => gemma4.pool,
            FamilySettings::Pixtral(pixtral) => pixtral.merge,
            FamilySettings::Lfm2(lfm2) => lfm2.merge,
            FamilySettings::Idefics3(idefics3) => idefics3.scale,
        }
    }

    /// Pixels per side of a patch, and the orders within and among patches.
    fn patch_shape(&self) -> (usize, PatchOrder, PatchSequence) {
        use PatchOrder::{ChannelFirst, ChannelLast};
        match &self.family {
            FamilySettings::Gemma3(gemma3) => (gemma3.patch, ChannelFirst, PatchSequence::Raster),
            FamilySettings::QwenVl(qwen_vl) => {
                (qwen_vl.patch, ChannelFirst, PatchSequence::MergeBlocks { merge: qwen_vl.merge })
            }
            FamilySettings::Gemma4(gemma4) => (gemma4.patch, ChannelLast, PatchSequence::Raster),
            FamilySettings::Pixtral(pixtral) => (pixtral.patch, ChannelFirst, PatchSequence::Raster),
            FamilySettings::Lfm2(lfm2) => (lfm2.patch, ChannelLast, PatchSequence::Raster),
            FamilySettings::Idefics3(idefics3) => (idefics3.patch, ChannelFirst, PatchSequence::Raster),
        }
    }
}
