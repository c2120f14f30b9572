//! Rotations of the Qwen family by time, row and column (M-RoPE): which pairs of a head turn by which.

use serde_json::Value;
use weights::write::OwnedValue;
use weights::{Container, WeightFile};

use super::Family;
use super::numbers::wrong;
use crate::error::Result;

/// Pairs that turn by time, row and column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RopeSections([u64; 3]);

impl RopeSections {
    /// Reads the sections of a file. `None`: all pairs turn by the position.
    ///
    /// Errors: `model.hyperparameter`.
    pub fn read(file: &WeightFile, family: Family) -> Result<Option<Self>> {
        let (name, counts) = match file.container() {
            Container::Gguf { .. } => {
                let name = format!("{}.rope.dimension_sections", family.gguf_name());
                let Some(array) = file.metadata().opt_array(&name)? else { return Ok(None) };
                (name, array.u32s()?.into_iter().map(u64::from).collect::<Vec<_>>())
            }
            Container::Safetensors => {
                let config = file.metadata().config();
                let text = config.get("text_config").unwrap_or(config);
                let of = |key: &str| text.get(key)?.get("mrope_section")?.as_array();
                let Some(list) = of("rope_parameters").or_else(|| of("rope_scaling")) else {
                    return Ok(None);
                };
                let counts: Option<Vec<u64>> = list.iter().map(Value::as_u64).collect();
                ("mrope_section".to_owned(), counts.unwrap_or_default())
            }
        };
        // GGUF files add a fourth section, which is empty.
        match counts[..] {
            [time, row, column] | [time, row, column, 0] => Ok(Some(Self([time, row, column]))),
            _ => Err(wrong(&name, format!("{counts:?} are not three sections"))),
        }
    }

    /// Returns the numbers of sections as a GGUF states them.
    pub(super) fn gguf_value(self) -> OwnedValue {
        let n = |section: u64| i32::try_from(section).unwrap_or(i32::MAX);
        let [time, row, column] = self.0;
        OwnedValue::I32s(vec![n(time), n(row), n(column), 0])
    }

    /// Returns the coordinate that each of `n_pairs` turns by: 0 the time, 1 the row, 2 the column, in turn until a
    /// section is used up.
    pub fn axes(&self, n_pairs: usize) -> Vec<u8> {
        let [_, rows, columns] = self.0;
        let axis = |pair: u64| match pair % 3 {
            1 if pair < rows.saturating_mul(3) => 1,
            2 if pair < columns.saturating_mul(3) => 2,
            _ => 0,
        };
        (0..n_pairs as u64).map(axis).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_take_turns_until_they_are_used_up() {
        assert_eq!(RopeSections([3, 3, 2]).axes(8), [0, 1, 2, 0, 1, 2, 0, 1]);
        assert_eq!(RopeSections([4, 2, 1]).axes(8), [0, 1, 2, 0, 1, 0, 0, 0]);
    }
}
