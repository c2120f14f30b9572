//! Which format each tensor of a converted model gets.

use std::collections::HashMap;
use std::sync::Arc;

use weights::DType;

use super::Target;
use crate::error::{EngineError, Result};
use crate::shape::Mix;
use crate::spec::{ModelSpec, Role};

/// What was asked for.
#[derive(Debug, Clone)]
pub enum Formats {
    /// By a mix as published files have them, such as `q4_k_m`.
    Mix(Mix),
    /// For each tensor by its name in the new file; tensors that are not named stay as the mix of `f16` has them.
    Each(HashMap<String, DType>),
}

impl Formats {
    /// `q4_k_m`, `q8_0`, `f16` … Error `convert.dtype`.
    pub fn parse(name: &str) -> Result<Self> {
        let unknown = |error: EngineError| {
            EngineError::new("convert.dtype", format!("no weights can be made as \"{name}\""), error.remedy())
        };
        Mix::parse(name).map(Self::Mix).map_err(unknown)
    }

    /// Sets every target's format. Returns how many stay as they are because the source has them more coarsely.
    pub(super) fn assign(&self, targets: &mut [Target], spec: &ModelSpec) -> Result<usize> {
        let mut n_coarser = 0;
        for target in targets {
            let source = target.job.dtype;
            let wanted = fitting(self.wanted(target, spec), target.n_cols());
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

    fn wanted(&self, target: &Target, spec: &ModelSpec) -> DType {
        let (Some(role), true) = (target.role, target.is_matrix()) else { return DType::F32 };
        match self {
            Self::Mix(mix) => of_mix(*mix, role, target.layer, spec),
            Self::Each(by_name) => by_name.get(&target.name).copied().unwrap_or(DType::F16),
        }
    }

    /// The number that `general.file_type` has for most of the tensors' bytes.
    pub(super) fn file_type(&self, targets: &[Arc<Target>]) -> u32 {
        let mut bytes_of: HashMap<DType, u64> = HashMap::new();
        for target in targets {
            *bytes_of.entry(target.dtype).or_default() += target.n_bytes(target.dtype);
        }
        let most = bytes_of.into_iter().max_by_key(|&(dtype, n_bytes)| (n_bytes, dtype));
        most.and_then(|(dtype, _)| FILE_TYPES.iter().find(|row| row.0 == dtype.name())).map_or(0, |row| row.1)
    }
}

fn of_mix(mix: Mix, role: Role, layer: Option<usize>, spec: &ModelSpec) -> DType {
    mix.dtype(role, layer, spec.layers.len(), spec.tied_embeddings)
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

/// Blocks of one value: nothing is lost or gained by their neighbours.
fn is_float(dtype: DType) -> bool {
    dtype.block_len() == 1
}

/// Bits per value, in sixteenths.
fn bits(dtype: DType) -> usize {
    dtype.block_bytes() * 128 / dtype.block_len()
}

/// The format, or the next better one whose blocks rows of `n_cols` are a whole number of.
pub(super) fn fitting(wanted: DType, n_cols: usize) -> DType {
    let fits = |dtype: DType| n_cols.is_multiple_of(dtype.block_len());
    if fits(wanted) {
        return wanted;
    }
    let smaller_blocks = ["Q4_0", "Q5_0", "Q8_0", "F16"].into_iter().filter_map(DType::from_name);
    smaller_blocks.filter(|&dtype| fits(dtype)).find(|&dtype| bits(dtype) > bits(wanted)).unwrap_or(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_hold_no_whole_blocks_get_a_finer_format() {
        let check = |wanted: &str, n_cols, expected: &str| {
            let wanted = DType::from_name(wanted).unwrap();
            assert_eq!(fitting(wanted, n_cols).name(), expected, "{wanted} for {n_cols}");
        };
        check("Q4_K", 256, "Q4_K");
        check("Q4_K", 64, "Q5_0");
        check("Q6_K", 64, "Q8_0");
        check("Q4_K", 172, "F16");
        check("Q8_0", 172, "F16");
        check("F32", 3, "F32");
    }
}
