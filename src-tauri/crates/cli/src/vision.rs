//! `nook vision`: what a model's vision tower makes of an image.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::vision::{DecodeLimits, ImageSettings, Picture, PictureSize, decode};
use clap::Args;
use contract::Result;
use engine::vision::{VisionTower, image_settings, tiles};
use engine::{BackendKind, Devices, EngineError};
use kernels::CpuOptions;
use kernels::backends::BackendOptions;
use serde::Serialize;
use weights::WeightFile;

use crate::args::Global;
use crate::{open_model, out};

#[derive(Debug, Args)]
pub struct VisionArgs {
    /// Library id or path
    #[arg(long)]
    pub model: String,
    /// GGUF file with the vision tower [default: the model's own, or the mmproj file beside it]
    #[arg(long, value_name = "F")]
    pub mmproj: Option<PathBuf>,
    #[command(flatten)]
    pub source: ImageSource,
    /// Print the pixel values that the tower takes
    #[arg(long, conflicts_with = "size")]
    pub pixels: bool,
    /// Run the tower and print the embedding of every image token
    #[arg(long, conflicts_with = "size")]
    pub embeddings: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct ImageSource {
    /// Image file
    #[arg(long, value_name = "F")]
    pub image: Option<PathBuf>,
    /// Width and height of an image, to count its tokens only
    #[arg(long, value_name = "WxH", value_parser = size)]
    pub size: Option<PictureSize>,
}

/// Parses `1024x768`. Errors: a message for the user.
pub fn size(text: &str) -> Result<PictureSize, String> {
    let side = |text: &str| text.trim().parse::<usize>().ok().filter(|n| *n > 0);
    let sides = text.split_once(['x', '×']).and_then(|(width, height)| Some((side(width)?, side(height)?)));
    let (width, height) = sides.ok_or("write width and height in pixels, such as 1024x768")?;
    Ok(PictureSize::new(width, height))
}

#[derive(Serialize)]
struct VisionReport {
    tokens: usize,
    width: usize,
    height: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pixels: Option<PixelValues>,
    #[serde(skip_serializing_if = "Option::is_none")]
    embeddings: Option<Vec<Vec<f32>>>,
}

#[derive(Serialize)]
struct PixelValues {
    shape: Vec<usize>,
    values: Vec<f32>,
}

pub fn vision(global: &Global, args: &VisionArgs) -> Result<()> {
    let tower = open_model::tower_file(&args.model, args.mmproj.as_deref(), global)?;
    let settings = image_settings(&tower)?;
    let picture = args.source.image.as_deref().map(picture).transpose()?;
    let size = match (&picture, args.source.size) {
        (Some(picture), _) => picture.size(),
        (None, Some(size)) => size,
        (None, None) => unreachable!("the command line demands one of them"),
    };
    let layout = settings.layout(size).map_err(EngineError::from)?;
    let (mut pixels, mut embeddings) = (None, None);
    if let Some(picture) = picture.filter(|_| args.pixels || args.embeddings) {
        let patches = settings.preprocess(&picture).map_err(EngineError::from)?;
        if args.embeddings {
            embeddings = Some(embed(&tower, &patches, global)?);
        }
        if args.pixels {
            let (shape, values) = patches.in_processor_layout();
            pixels = Some(PixelValues { shape, values });
        }
    }
    let report = VisionReport {
        tokens: layout.n_tokens(),
        width: layout.resized.width,
        height: layout.resized.height,
        pixels,
        embeddings,
    };
    if global.json {
        out::json(&report);
    } else {
        show(&report, size, &settings);
    }
    Ok(())
}

/// Number of elements of an embedding in the text output.
const N_SHOWN: usize = 8;

fn show(report: &VisionReport, size: PictureSize, settings: &ImageSettings) {
    let VisionReport { tokens, width, height, pixels, embeddings } = report;
    out::line(&format!(
        "{size} pixels → {width}×{height} pixels, {tokens} tokens {}",
        settings.image_token()
    ));
    if let Some(PixelValues { shape, values }) = pixels {
        let (min, max) = values.iter().fold((f32::MAX, f32::MIN), |(min, max), x| (min.min(*x), max.max(*x)));
        out::line(&format!("pixel values: shape {shape:?}, from {min:.4} to {max:.4}"));
    }
    for (index, row) in embeddings.iter().flatten().enumerate() {
        let shown: Vec<String> = row.iter().take(N_SHOWN).map(|x| format!("{x:.4}")).collect();
        out::line(&format!("{index:>5}  {} …", shown.join(", ")));
    }
}

/// Reads an image file.
fn picture(path: &Path) -> Result<Picture> {
    decoded(&open_model::read_bytes(path)?)
}

/// Decodes the bytes of an image file within the limits of the program.
pub fn decoded(bytes: &[u8]) -> Result<Picture> {
    Ok(decode(bytes, &DecodeLimits::default()).map_err(EngineError::from)?)
}

/// Runs the tower on every tile, without the language model. (tokens, width)
fn embed(tower: &Arc<WeightFile>, patches: &::vision::PatchPixels, global: &Global) -> Result<Vec<Vec<f32>>> {
    let options = open_model::load_options(global, contract::protocol::Kv::F32, 1)?;
    let kind = match options.devices {
        Devices::Scalar => BackendKind::Scalar,
        _ => BackendKind::Cpu,
    };
    let cpu = CpuOptions { threads: options.threads, cpus: options.cpus.clone(), ..CpuOptions::default() };
    let backend = BackendOptions { cpu, ..BackendOptions::default() };
    let Some(mut tower) = VisionTower::load(tower, kind, backend)? else {
        unreachable!("only files with a tower are opened")
    };
    let mut rows = Vec::new();
    for tile in tiles(patches) {
        let values = tower.embed(&tile)?;
        let (width, row_width) = (tower.spec().projector.d_out, tower.spec().row_width());
        // Behind the embedding are the rows that inner layers of the text model add.
        rows.extend(values.chunks_exact(row_width).map(|row| row[..width].to_vec()));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_two_numbers() {
        assert_eq!(size("1024x768"), Ok(PictureSize::new(1024, 768)));
        assert_eq!(size("1×9"), Ok(PictureSize::new(1, 9)));
        for wrong in ["", "1024", "0x5", "5x0", "-1x5", "axb", "1x2x3"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
