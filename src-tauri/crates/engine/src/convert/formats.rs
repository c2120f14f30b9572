//! Tensor formats of a converted model.

use std::collections::HashMap;
use std::sync::Arc;

use weights::DType;
use weights::quant::presets::{ModelDims, QuantPreset, TensorDesc, fitting_dtype};

use super::ConversionTarget;
use crate::error::{EngineError, Result};
use crate::spec::ModelSpec;

/// Requested formats.
#[derive(Debug, Clone)]
pub enum Formats {
    /// A mix as in published files, such as `q4_k_m`.
    Mix(QuantPreset),
    /// A format per tensor, by its name in the new file. Others are stored as in the mix `f16`.
    Each(HashMap<String, DType>),
}

impl Formats {
    /// Parses `q4_k_m`, `q8_0`, `f16` …
    ///
    /// Errors: `convert.dtype`.
    pub fn parse(name: &str) -> Result<Self> {
        QuantPreset::from_name(name).map(Self::Mix).ok_or_else(|| {
            EngineError::new(
                "convert.dtype",
                format!("weights cannot be written as \"{name}\""),
                format!("Choose one of: {}.", QuantPreset::names().collect::<Vec<_>>().join(", ")),
            )
        })
    }

    /// Sets every target's format. Returns how many stay because the source stores them more coarsely.
    pub(super) fn assign(&self, targets: &mut [ConversionTarget], spec: &ModelSpec) -> Result<usize> {
        let mut n_coarser = 0;
        let wanted = self.wanted_dtypes(targets, spec);
        for (target, wanted) in targets.iter_mut().zip(wanted) {
            let source = target.job.dtype;
            let is_coarser = !is_float(source) && !is_float(wanted) && bits(source) <= bits(wanted);
            n_coarser += usize::from(is_coarser && source != wanted && target.is_matrix());
            target.dtype = match target.role {
                // Tensors without a known role stay as they are.
                None => source,
                Some(_) if is_coarser => source,
                Some(_) => wanted,
            };
        }
        Ok(n_coarser)
    }

    fn wanted_dtypes(&self, targets: &[ConversionTarget], spec: &ModelSpec) -> Vec<DType> {
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

    /// Returns the format of a vision tower's matrices: float32 and bfloat16 where these are requested for the model, else
    /// float16. Block formats lose detail of images.
    pub(super) fn tower_dtype(&self) -> DType {
        match self {
            Self::Mix(QuantPreset::F32) => DType::F32,
            Self::Mix(QuantPreset::BF16) => DType::BF16,
            Self::Mix(_) | Self::Each(_) => DType::F16,
        }
    }

    /// Returns the format of a vision tower's convolutions. Those of llama.cpp take no bfloat16.
    pub(super) fn tower_convolution_dtype(&self) -> DType {
        match self {
            Self::Mix(QuantPreset::F32 | QuantPreset::BF16) => DType::F32,
            Self::Mix(_) | Self::Each(_) => DType::F16,
        }
    }

    /// Returns the name of that format in file names.
    pub fn tower_format(&self) -> &'static str {
        match self {
            Self::Mix(QuantPreset::F32) => "f32",
            Self::Mix(QuantPreset::BF16) => "bf16",
            Self::Mix(_) | Self::Each(_) => "f16",
        }
    }

    /// Returns `general.file_type` of a vision tower.
    pub(super) fn tower_file_type(&self) -> u32 {
        let dtype = self.tower_dtype();
        FILE_TYPES.iter().find(|row| row.0 == dtype.name()).map_or(0, |row| row.1)
    }

    /// Returns `general.file_type` for the format with the most bytes.
    pub(super) fn file_type(&self, targets: &[Arc<ConversionTarget>]) -> u32 {
        let mut bytes_of: HashMap<DType, u64> = HashMap::new();
        for target in targets {
            *bytes_of.entry(target.dtype).or_default() += target.n_bytes(target.dtype);
        }
        let main_dtype = bytes_of.into_iter().max_by_key(|&(dtype, n_bytes)| (n_bytes, dtype));
        if let (Self::Mix(mix), Some((dtype, _))) = (self, main_dtype)
            && mix.base() == dtype
        {
            return mix.file_type();
        }
        main_dtype
            .and_then(|(dtype, _)| FILE_TYPES.iter().find(|row| row.0 == dtype.name()))
            .map_or(0, |row| row.1)
    }
}

/// `general.file_type` by format. If a format has several mixes, the middle one.
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

/// Returns whether each value is stored alone, without a block.
fn is_float(dtype: DType) -> bool {
    dtype.block_len() == 1
}

/// Returns the bits per value, in sixteenths.
fn bits(dtype: DType) -> usize {
    dtype.block_bytes() * 128 / dtype.block_len()
}
