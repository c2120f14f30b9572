//! Vision: pictures in; layouts, placeholder texts and the pixel values of patches out. Runs no model.
//!
//! 1. [`decode`] turns the bytes of a file into a [`Picture`] within [`DecodeLimits`]; [`measure`] reads its size only.
//! 2. [`ImageSettings`] come from a repository's JSON files ([`ImageSettings::from_json`]) or from the metadata of an
//!    `mmproj` GGUF ([`ImageSettings::from_gguf`]); [`ImageSettings::with_detail`] lowers their limits.
//! 3. [`ImageSettings::layout`] knows tiles, grids and token counts from the picture's size alone. Its
//!    [`ImageLayout::expanded_text`] replaces [`ImageSettings::placeholder`] in the prompt's text before tokenization.
//! 4. [`ImageSettings::preprocess`] gives the [`PatchPixels`] that a vision tower takes: one row of float32 per patch,
//!    tiles one after the other, in the order of the family. One embedding per image token comes back, in that order.
//!
//! The rules are those of the published processors (transformers); resizing is Pillow's to the bit.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod decode;
mod detail;
mod error;
mod families;
mod layout;
mod normalize;
mod patches;
mod picture;
mod resample;
mod settings;
mod thumbnail;

pub use decode::{DecodeLimits, decode, has_image_head, measure};
pub use detail::Detail;
pub use error::{VisionError, VisionErrorKind};
pub use families::gemma3::Gemma3Settings;
pub use families::gemma4::Gemma4Settings;
pub use families::idefics3::Idefics3Settings;
pub use families::lfm2::Lfm2Settings;
pub use families::pixtral::PixtralSettings;
pub use families::qwen_vl::QwenVlSettings;
pub use layout::{ImageLayout, TileLayout};
pub use patches::{PatchOrder, PatchPixels, PatchSequence};
pub use picture::{Picture, PictureSize};
pub use resample::{ResampleArithmetic, ResampleFilter, resize};
pub use settings::{FamilySettings, GgufValue, ImageFamily, ImageSettings};
pub use thumbnail::{ThumbnailFormat, thumbnail};
