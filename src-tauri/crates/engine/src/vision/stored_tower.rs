//! A tower as its file stores it, for writing it into another container.

use weights::{Container, TensorView, WeightFile};

use super::params::TowerParams;
use super::{TowerFamily, tensors};
use crate::arch::{LocatedTensor, TensorForm, TensorPart};
use crate::error::Result;
use crate::spec::{Role, TowerSpec};

/// A tower's structure and tensors, all of them found.
pub(crate) struct StoredTower<'a> {
    file: &'a WeightFile,
    /// Names its tensors in every container.
    pub family: &'static dyn TowerFamily,
    /// The tower.
    pub spec: TowerSpec,
    parts: Vec<LocatedTensor>,
}

impl<'a> StoredTower<'a> {
    /// Finds the tower of a file and every tensor of it. `None`: the file has none, whatever its config says.
    ///
    /// Errors: those of loading it.
    pub fn open(file: &'a WeightFile) -> Result<Option<Self>> {
        let Some(family) = super::find(file)? else { return Ok(None) };
        let spec = family.spec(&TowerParams::new(file))?;
        if tensors::find(file, family, &spec, Role::PatchEmbedding, None).is_none() {
            return Ok(None);
        }
        let parts = tensors::locate_as_stored(file, family, &spec)?;
        Ok(Some(Self { file, family, spec, parts }))
    }

    /// Reads the structure of the tower of a file whose tensors may have no data. `None`: the file has none.
    pub fn read_spec(file: &WeightFile) -> Result<Option<TowerSpec>> {
        let Some(family) = super::find(file)? else { return Ok(None) };
        family.spec(&TowerParams::new(file)).map(Some)
    }

    /// The stored tensor of a role, and what of it the role occupies.
    pub fn find(&self, role: Role, layer: Option<usize>) -> Option<(TensorView<'a>, TensorForm)> {
        tensors::find(self.file, self.family, &self.spec, role, layer)
    }

    /// What of a stored tensor a role occupies.
    pub fn part(&self, role: Role, layer: Option<usize>) -> Option<&TensorPart> {
        let located = self.parts.iter().find(|located| (located.role, located.layer) == (role, layer));
        located.and_then(|located| located.parts.first())
    }

    /// The bounds of the layers' products, by their names in a GGUF.
    ///
    /// Errors: a bound that is no number.
    pub fn bounds(&self) -> Result<Vec<(String, f32)>> {
        let bounds = tensors::bounds(self.file, self.family, &self.spec)?;
        let mut named = Vec::with_capacity(4 * bounds.len());
        for (layer, role) in
            (0..self.spec.layers.len()).flat_map(|layer| tensors::BOUNDED.map(|role| (layer, role)))
        {
            let name = self.family.tensor_names(Container::Gguf { version: 3 }, role).into_iter().next();
            let (Some(bounds), Some(name)) = (bounds.get(&(role, layer)), name) else { continue };
            let name = name.name.replace('#', &layer.to_string());
            let stem = name.strip_suffix(".weight").unwrap_or(&name);
            for (what, value) in [
                ("input_max", bounds.input.1),
                ("input_min", bounds.input.0),
                ("output_max", bounds.output.1),
                ("output_min", bounds.output.0),
            ] {
                named.push((format!("{stem}.{what}"), value));
            }
        }
        Ok(named)
    }
}
