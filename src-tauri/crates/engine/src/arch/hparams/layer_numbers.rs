//! Numbers of each layer outside the usual keys: arrays of a GGUF's metadata, and tensors with one value.

use super::HParams;
use crate::arch::{codec, wrong_shape};
use crate::error::Result;

impl HParams<'_> {
    /// Reads a number per layer under a key without an architecture prefix. One number stands for all layers.
    ///
    /// Errors: a list of another length.
    pub(in crate::arch) fn global_reals(&self, key: &str, n_layers: usize) -> Result<Option<Vec<f32>>> {
        let metadata = self.file.metadata();
        let Some(array) = metadata.get(key).and_then(|value| value.as_array()) else {
            return Ok(metadata.opt_f32(key)?.map(|x| vec![x; n_layers]));
        };
        let numbers = array.f32s()?;
        match numbers.len() == n_layers {
            true => Ok(Some(numbers)),
            false => Err(self.wrong(key, format!("{} numbers for {n_layers} layers", numbers.len()))),
        }
    }

    /// Reads a tensor of one value from each layer. `None` if the first layer lacks it.
    pub(in crate::arch) fn numbers_by_layer(
        &self,
        tensor: &str,
        n_layers: usize,
    ) -> Result<Option<Vec<f32>>> {
        let name = |layer: usize| format!("model.layers.{layer}.{tensor}");
        if self.file.tensor(&name(0)).is_none() {
            return Ok(None);
        }
        let one = |layer: usize| {
            let name = name(layer);
            let view = self.file.tensor(&name).ok_or_else(|| crate::arch::tensor_missing(&name))?;
            if view.shape.iter().product::<usize>() != 1 {
                return Err(wrong_shape(&view, &[1]));
            }
            let mut number = [0.0];
            (codec(&view)?.decode)(&view.data, &mut number);
            Ok(number[0])
        };
        (0..n_layers).map(one).collect::<Result<_>>().map(Some)
    }
}
