//! Metadata of an `mmproj` GGUF, under the keys of llama.cpp.

use ::vision::{FamilySettings, ImageSettings, Lfm2Settings};
use kernels::Activation;
use serde_json::Value;
use weights::WeightFile;
use weights::write::OwnedValue;

use super::metadata::name;
use crate::error::{EngineError, Result};
use crate::spec::{Ffn, Norm, PatchGrid, TowerSpec};

/// Side that llama.cpp names for towers without a table of positions per side.
const NOMINAL_SIDE: u32 = 224;
/// Side that LFM2's processor knows where its config has none.
const LFM2_SIDE: u32 = 256;
/// Blocks of gemma3 and gemma4, which their readers know.
const GEMMA3_BLOCK: usize = 4;
const GEMMA4_BLOCK: usize = 3;

/// Returns the pairs of a tower.
///
/// Errors: `convert.tower` if a number has no key.
pub(super) fn pairs(
    file: &WeightFile,
    spec: &TowerSpec,
    settings: &ImageSettings,
    file_type: u32,
) -> Result<Vec<(String, OwnedValue)>> {
    let text = |text: &str| OwnedValue::Str(text.to_owned());
    let number = |n: usize| OwnedValue::U32(u32::try_from(n).unwrap_or(u32::MAX));
    let attention = spec.layers.first().and_then(|layer| layer.mixer.attention());
    let (n_heads, d_ff, activation) = match (attention, spec.layers.first().map(|layer| &layer.ffn)) {
        (Some(attention), Some(Ffn::Plain(dense) | Ffn::Gated(dense))) => {
            (attention.n_heads, dense.d_ff, dense.activation)
        }
        _ => return Err(no_key(spec, "its layers")),
    };
    check_lfm2(spec, settings)?;
    let vision = |key: &str, value: OwnedValue| (format!("clip.vision.{key}"), value);
    let mut pairs = vec![
        ("general.architecture".to_owned(), text("clip")),
        ("general.type".to_owned(), text("mmproj")),
        ("general.name".to_owned(), text(&name(file))),
        ("general.file_type".to_owned(), OwnedValue::U32(file_type)),
        ("clip.has_vision_encoder".to_owned(), OwnedValue::Bool(true)),
        (projector_key(settings).to_owned(), text(spec.family)),
        vision("projection_dim", number(spec.projector.d_out)),
        vision("image_size", OwnedValue::U32(image_size(file, spec, settings))),
        vision("patch_size", number(spec.patches.size)),
        vision("embedding_length", number(spec.d_model)),
        vision("feed_forward_length", number(d_ff)),
        vision("block_count", number(spec.layers.len())),
        vision("attention.head_count", number(n_heads)),
        vision("attention.layer_norm_epsilon", OwnedValue::F32(eps(spec)?)),
        vision("image_mean", OwnedValue::F32s(settings.mean.to_vec())),
        vision("image_std", OwnedValue::F32s(settings.std.to_vec())),
    ];
    match activation {
        _ if matches!(settings.family, FamilySettings::Gemma4(_)) => {}
        Activation::Silu => pairs.push(("clip.use_silu".into(), OwnedValue::Bool(true))),
        _ => pairs.push(("clip.use_gelu".into(), OwnedValue::Bool(true))),
    }
    pairs.extend(of_family(spec, settings).into_iter().map(|(key, value)| vision(key, value)));
    pairs.push(("general.quantization_version".into(), OwnedValue::U32(super::QUANTIZATION_VERSION)));
    Ok(pairs)
}

/// Refuses settings of LFM2 that have no key and that its readers take as published.
fn check_lfm2(spec: &TowerSpec, settings: &ImageSettings) -> Result<()> {
    let FamilySettings::Lfm2(lfm2) = &settings.family else { return Ok(()) };
    let published = Lfm2Settings::published();
    let is_single = !lfm2.is_split || (lfm2.min_tiles, lfm2.max_tiles) == (1, 1);
    if lfm2.has_markers != published.has_markers {
        return Err(no_key(spec, "image tokens without markers (use_image_special_tokens)"));
    }
    if !is_single && lfm2.has_overview != published.has_overview {
        return Err(no_key(spec, "tiles without an overview (use_thumbnail)"));
    }
    if !is_single && lfm2.tolerance != published.tolerance {
        return Err(no_key(spec, "another size from which pictures are split (max_pixels_tolerance)"));
    }
    Ok(())
}

/// Gemma 4 names its projector per kind of input.
fn projector_key(settings: &ImageSettings) -> &'static str {
    match settings.family {
        FamilySettings::Gemma4(_) => "clip.vision.projector_type",
        _ => "clip.projector_type",
    }
}

fn of_family(spec: &TowerSpec, settings: &ImageSettings) -> Vec<(&'static str, OwnedValue)> {
    let number = |n: usize| OwnedValue::U32(u32::try_from(n).unwrap_or(u32::MAX));
    let block = number(spec.projector.block_side);
    let unless = |usual: usize| (spec.projector.block_side != usual).then(|| block.clone());
    match &settings.family {
        FamilySettings::Gemma3(_) => {
            unless(GEMMA3_BLOCK).map(|block| ("projector.scale_factor", block)).into_iter().collect()
        }
        FamilySettings::Gemma4(gemma4) => {
            let side = gemma4.patch.saturating_mul(gemma4.pool);
            let most = gemma4.max_tokens.saturating_mul(side).saturating_mul(side);
            let block = unless(GEMMA4_BLOCK).map(|block| ("projector.scale_factor", block));
            block.into_iter().chain([("image_max_pixels", number(most))]).collect()
        }
        FamilySettings::QwenVl(qwen) => {
            let is_deep = |layer| spec.deepstack.taps.iter().any(|tap| tap.layer == layer);
            vec![
                ("spatial_merge_size", block),
                ("is_deepstack_layers", OwnedValue::Bools((0..spec.layers.len()).map(is_deep).collect())),
                ("image_min_pixels", number(qwen.min_pixels)),
                ("image_max_pixels", number(qwen.max_pixels)),
            ]
        }
        FamilySettings::Pixtral(_) => vec![("spatial_merge_size", block)],
        FamilySettings::Lfm2(lfm2) => {
            let side = lfm2.patch.saturating_mul(lfm2.merge);
            let pixels = |tokens: usize| number(tokens.saturating_mul(side).saturating_mul(side));
            // A picture that is never split is one tile.
            let (min_tiles, max_tiles) =
                if lfm2.is_split { (lfm2.min_tiles, lfm2.max_tiles) } else { (1, 1) };
            vec![
                ("projector.scale_factor", block),
                ("image_min_pixels", pixels(lfm2.min_tokens)),
                ("image_max_pixels", pixels(lfm2.max_tokens)),
                ("preproc_min_tiles", number(min_tiles)),
                ("preproc_max_tiles", number(max_tiles)),
                ("preproc_image_size", number(lfm2.tile_side)),
            ]
        }
        FamilySettings::Idefics3(idefics3) => {
            vec![("projector.scale_factor", block), ("preproc_image_size", number(idefics3.longest_side))]
        }
    }
}

/// Samples per side of the picture that the table of positions is for.
fn image_size(file: &WeightFile, spec: &TowerSpec, settings: &ImageSettings) -> u32 {
    let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    match (&settings.family, spec.patches.grid) {
        (FamilySettings::Pixtral(pixtral), _) => narrow(pixtral.longest_side),
        (FamilySettings::Lfm2(_), _) => {
            let stated = file.metadata().config()["vision_config"].get("image_size").and_then(Value::as_u64);
            stated.and_then(|n| u32::try_from(n).ok()).unwrap_or(LFM2_SIDE)
        }
        (_, PatchGrid::Square { side } | PatchGrid::Resampled { side, .. }) => {
            narrow(side.saturating_mul(spec.patches.size))
        }
        (_, PatchGrid::Axes { .. } | PatchGrid::Plain) => NOMINAL_SIDE,
    }
}

/// The number that is added to the variance in every norm of the layers.
fn eps(spec: &TowerSpec) -> Result<f32> {
    match spec.layers.first().map(|layer| layer.mixer_norm) {
        Some(Norm::Rms { eps, .. } | Norm::PlainRms { eps } | Norm::Layer { eps, .. }) => Ok(eps),
        Some(Norm::None) | None => Err(no_key(spec, "layers without norms")),
    }
}

fn no_key(spec: &TowerSpec, what: &str) -> EngineError {
    EngineError::new(
        "convert.tower",
        format!("a vision tower of the family {} cannot be written as an mmproj file: {what}", spec.family),
        "Use the repository as it is, or convert without the tower (--no-mmproj).",
    )
}
