//! Which format each tensor of a converted model gets.

use std::collections::HashMap;
use std::sync::Arc;

use weights::DType;
use weights::quant::presets::{ModelDims, QuantPreset, TensorDesc, fitting_dtype};

use super::ConversionTarget;
use crate::error::{EngineError, Result};
use crate::spec::ModelSpec;

/// What was asked for.
#[derive(Debug, Clone)]
pub enum Formats {
    /// By a mix as published files have them, such as `q4_k_m`.
    Mix(QuantPreset),
    /// For each tensor by its name in the new file; tensors that are not named stay as the mix of `f16` has them.
    Each(HashMap<String, DType>),
}

impl Formats {
    /// `q4_k_m`, `q8_0`, `f16` … Error `convert.dtype`.
    pub fn parse(name: &str) -> Result<Self> {
        QuantPreset::from_name(name).map(Self::Mix).ok_or_else(|| {
            EngineError::new(
                "convert.dtype",
                format!("no weights can be made as \"{name}\""),
                format!("These can: {}.", QuantPreset::names().collect::<Vec<_>>().join(", ")),
            )
        })
    }

    /// Sets every target's format. Returns how many stay as they are because the source has them more coarsely.
    pub(super) fn assign(&self, targets: &mut [ConversionTarget], spec: &ModelSpec) -> Result<usize> {
        let mut n_coarser = 0;
        let wanted = self.wanted(targets, spec);
        for (target, wanted) in targets.iter_mut().zip(wanted) {
            let source = target.job.dtype;
            let is_coarser = !is_float(source) && !is_float(wanted) && bits(source) <= bits(wanted);
            n_coarser += usize::from(is_coarser && source != wanted && target.is_matrix());
            target.dtype = match target.role {
                // rows that nobody knows anything of stay what they are
                None => source,
                Some(_) if is_coarser => source,
                Some(_) => wanted,
            };
        }
        Ok(n_coarser)
    }

    fn wanted(&self, targets: &[ConversionTarget], spec: &ModelSpec) -> Vec<DType> {
        let tensors: Vec<TensorDesc> =
            targets.iter().map(|t| TensorDesc { name: &t.name, dims: &t.shape }).collect();
        let of_mix = |mix: QuantPreset| mix.dtypes(&tensors, &facts(spec));
        match self {
            Self::Mix(mix) => of_mix(*mix),
            Self::Each(by_name) => {
                let named =
                    targets.iter().map(|target| by_name.get(&target.name).map(|d| (d, target.n_cols())));
                let or = |(named, other): (Option<(&DType, usize)>, DType)| {
                    named.map_or(other, |(&dtype, n_cols)| fitting_dtype(dtype, n_cols))
                };
                named.zip(of_mix(QuantPreset::F16)).map(or).collect()
            }
        }
    }

    /// The number that `general.file_type` has for most of the tensors' bytes.
    pub(super) fn file_type(&self, targets: &[Arc<ConversionTarget>]) -> u32 {
        let mut bytes_of: HashMap<DType, u64> = HashMap::new();
        for target in targets {
            *bytes_of.entry(target.dtype).or_default() += target.n_bytes(target.dtype);
        }
        let most = bytes_of.into_iter().max_by_key(|&(dtype, n_bytes)| (n_bytes, dtype));
        if let (Self::Mix(mix), Some((dtype, _))) = (self, most)
            && mix.base() == dtype
        {
            return mix.file_type();
        }
        most.and_then(|(dtype, _)| FILE_TYPES.iter().find(|row| row.0 == dtype.name())).map_or(0, |row| row.1)
    }
}

/// `general.file_type` by the format that most bytes have; where there are several mixes of it, the middle one.
const FILE_TYPES: &[(&str, u32)] = &[
    ("F32", 0),
    ("F16", 1),
    ("Q4_0", 2),
    ("Q4_1", 3),
    ("Q8_0", 7),
    ("Q5_0", 8),
    ("Q5_1", 9),
    ("Q2_K", 10),
    ("Q3_K", 12),
    ("Q4_K", 15),
    ("Q5_K", 17),
    ("Q6_K", 18),
    ("IQ4_NL", 25),
    ("IQ4_XS", 30),
    ("BF16", 32),
    ("TQ1_0", 36),
    ("TQ2_0", 37),
    ("MXFP4", 38),
];

fn facts(spec: &ModelSpec) -> ModelDims {
    let attention = spec.layers.iter().find_map(|layer| layer.mixer.attention());
    ModelDims {
        n_layers: spec.layers.len(),
        n_queries_per_kv: attention.map_or(1, |attention| attention.n_heads / attention.n_kv_heads),
    }
}

/// Blocks of one value: nothing is lost or gained by their neighbours.
fn is_float(dtype: DType) -> bool {
    dtype.block_len() == 1
}

/// Bits per value, in sixteenths.
fn bits(dtype: DType) -> usize {
    dtype.block_bytes() * 128 / dtype.block_len()
}
