//! Memory of a vision tower, from its file's header alone.

use std::collections::HashSet;

use ::vision::{ImageSettings, PictureSize};
use weights::WeightFile;

use super::params::TowerParams;
use super::{TowerFamily, image_settings, tensors};
use crate::error::Result;
use crate::spec::{PatchGrid, TowerSpec};

/// Sides of a picture that no tower takes whole.
const LARGE: PictureSize = PictureSize::new(1 << 13, 1 << 13);

/// Bytes of a tower.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TowerBytes {
    /// Weights as stored.
    pub weights: u64,
    /// What it computes for the largest image that the model's settings allow.
    pub activations: u64,
}

impl TowerBytes {
    /// Estimates the tower of a file: 0 where it has none that runs here.
    pub fn of(file: &WeightFile) -> Self {
        let Ok(Some(family)) = super::find(file) else { return Self::default() };
        Self::of_family(file, family).unwrap_or_default()
    }

    fn of_family(file: &WeightFile, family: &dyn TowerFamily) -> Result<Self> {
        let spec = family.spec(&TowerParams::new(file))?;
        let mut seen = HashSet::new();
        let mut weights = 0;
        for view in tensors::stored(file, family, &spec) {
            if seen.insert(view.name.to_owned()) {
                let (n_cols, outer) = view.shape.split_last().unwrap_or((&1, &[]));
                let n_rows = outer.iter().fold(1u64, |product, n| product.saturating_mul(*n as u64));
                weights += n_rows.saturating_mul(view.dtype.row_bytes(*n_cols) as u64);
            }
        }
        Ok(Self { weights, activations: activations(&spec, image_settings(file).ok().as_ref()) })
    }

    /// Estimates a tower that is loaded.
    pub(crate) fn of_spec(weights: u64, spec: &TowerSpec, settings: Option<&ImageSettings>) -> Self {
        Self { weights, activations: activations(spec, settings) }
    }
}

/// The patches with their places, the residual stream, the widest part of a layer, rounded keys and values, and their form
/// for the kernels.
fn activations(spec: &TowerSpec, settings: Option<&ImageSettings>) -> u64 {
    let layout = settings.and_then(|settings| settings.layout(LARGE).ok());
    let largest = layout.and_then(|layout| layout.tiles.iter().map(|tile| tile.n_patches()).max());
    let n_patches = largest.unwrap_or(match spec.patches.grid {
        PatchGrid::Square { side } | PatchGrid::Resampled { side, .. } => side * side,
        PatchGrid::Axes { .. } | PatchGrid::Plain => 0,
    });
    let widest = spec.layers.iter().map(|layer| layer.row_floats(spec.d_model)).max().unwrap_or(0);
    let floats = spec.patch_len() + 5 * spec.d_model + widest;
    (floats as u64 * n_patches as u64).saturating_mul(size_of::<f32>() as u64 * 3 / 2)
}
