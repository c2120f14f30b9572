//! Weights for a graph whose low-rank matrices are trained: frozen ones borrowed from the file, and placeholders.

use std::collections::HashMap;
use std::sync::Arc;

use kernels::{DeviceId, Tensor};
use weights::{DType, SharedBytes, TensorView};

use super::lora::LoraPair;
use super::pass::TrainedRows;
use crate::arch::LocatedTensor;
use crate::decoder::{LowRankUpdate, WeightSource};
use crate::error::Result;
use crate::spec::Role;

/// Gives the decoder every weight, and remembers which are trained.
pub(super) struct TrainedWeights<'a> {
    placed: &'a [LocatedTensor],
    pairs: &'a [LoraPair],
    /// As many zeros as the largest placeholder has bytes.
    zeros: SharedBytes,
    /// By the name of the placeholder.
    pub trained: HashMap<String, TrainedRows>,
}

impl<'a> TrainedWeights<'a> {
    pub fn new(placed: &'a [LocatedTensor], pairs: &'a [LoraPair]) -> Self {
        let longest = pairs.iter().map(|pair| pair.rank * pair.n_in.max(pair.n_out)).max().unwrap_or(0);
        let zeros = SharedBytes::from_vec(vec![0; longest * size_of::<f32>()]);
        Self { placed, pairs, zeros, trained: HashMap::new() }
    }

    fn placeholder(&mut self, name: String, shape: [usize; 2], trained: TrainedRows) -> Result<Tensor> {
        let data = self.zeros.slice(0..shape[0] * shape[1] * size_of::<f32>());
        let tensor = Tensor::host(&TensorView { name: &name, dtype: DType::F32, shape: &shape, data })?;
        self.trained.insert(name, trained);
        Ok(tensor)
    }
}

impl WeightSource for TrainedWeights<'_> {
    fn get(&mut self, role: Role, layer: Option<usize>, device: DeviceId) -> Result<Tensor> {
        let [tensor] = <[Tensor; 1]>::try_from(self.experts(role, layer, device)?)
            .expect("only expert matrices have several parts");
        Ok(tensor)
    }

    fn experts(&mut self, role: Role, layer: Option<usize>, _device: DeviceId) -> Result<Vec<Tensor>> {
        let found = self.placed.iter().find(|p| p.role == role && p.layer == layer);
        let LocatedTensor { parts, .. } =
            found.expect("the spec lists every tensor that the decoder requests");
        parts.iter().map(|part| Ok(Tensor::host(&part.view())?)).collect()
    }

    fn adapters(
        &mut self,
        role: Role,
        layer: Option<usize>,
        _device: DeviceId,
    ) -> Result<Vec<LowRankUpdate>> {
        let pairs = self.pairs;
        let mut updates = Vec::new();
        for (index, pair) in pairs.iter().enumerate() {
            for user in pair.users.iter().filter(|user| user.role == role && Some(user.layer) == layer) {
                let all_rows: Arc<[usize]> = (0..pair.rank).collect();
                let a = TrainedRows { parameter: 2 * index, rows: all_rows };
                let b = TrainedRows { parameter: 2 * index + 1, rows: user.rows.clone() };
                let shape = [user.rows.len(), pair.rank];
                updates.push(LowRankUpdate {
                    a: self.placeholder(format!("{}.lora_A", pair.module), [pair.rank, pair.n_in], a)?,
                    b: self.placeholder(format!("{}.lora_B.{role:?}", pair.module), shape, b)?,
                    scale: pair.scale,
                });
            }
        }
        Ok(updates)
    }
}
