//! Columns of values: selected, joined, multiplied, rotated.

use std::sync::Arc;

use super::{GraphBuilder, NodeResult, check, check_groups, check_product};
use crate::error::KernelError;
use crate::graph::{Columns, KvDType, MAX_HADAMARD_WIDTH, MixFactors, Op, ValueId, rotation_width};

impl GraphBuilder {
    /// Selects columns: (rows, n_groups · stride) → (rows, n_groups · width)
    pub fn columns(&mut self, name: impl Into<String>, x: ValueId, columns: Columns) -> NodeResult {
        let name = name.into();
        let value = self.input(&name, x)?;
        let Columns { n_groups, stride, start, width } = columns;
        check_product(&name, "width of x", n_groups, stride, value.width)?;
        if width == 0 || start.checked_add(width).is_none_or(|end| end > stride) {
            return Err(KernelError::mismatch(
                &name,
                "columns",
                format!("within {stride}"),
                format!("{start} + {width}"),
            ));
        }
        Ok(self.push(name, Op::Columns { x, columns }, value.rows, n_groups * width))
    }

    /// Multiplies column by column; factors (width of x)
    pub fn scale_columns(&mut self, name: impl Into<String>, x: ValueId, factors: Arc<[f32]>) -> NodeResult {
        let name = name.into();
        let value = self.input(&name, x)?;
        check(&name, "factors of columns", value.width, factors.len())?;
        Ok(self.push(name, Op::ScaleColumns { x, factors }, value.rows, value.width))
    }

    /// Mixtures: base (rows, n · width), x (rows, m · width), factors (n · m) → base[j] + Σᵢ factors[j, i] · x[i]
    pub fn mix(
        &mut self,
        name: impl Into<String>,
        base: ValueId,
        x: ValueId,
        factors: MixFactors,
        width: usize,
    ) -> NodeResult {
        let name = name.into();
        let (to, from) = (self.input(&name, base)?, self.input(&name, x)?);
        let mut rows = vec![from.rows];
        for value in [to, from] {
            check_groups(&name, width, value.width)?;
        }
        let n_factors = match &factors {
            MixFactors::Same(factors) => factors.len(),
            MixFactors::OfRow(factors) => {
                let value = self.input(&name, *factors)?;
                rows.push(value.rows);
                value.width
            }
        };
        if let Some(other) = rows.into_iter().find(|rows| *rows != to.rows) {
            let (expected, found) = (format!("{:?}", to.rows), format!("{other:?}"));
            return Err(KernelError::mismatch(&name, "rows of an operand", expected, found));
        }
        let (n, m) = (to.width / width, from.width / width);
        check(&name, "factors of a mixture", n.saturating_mul(m), n_factors)?;
        Ok(self.push(name, Op::Mix { base, x, factors, width }, to.rows, to.width))
    }

    /// Scales each group of x (rows, n · w) to the root mean square of `of` (rows, w). `least` bounds the mean square
    /// that divides.
    pub fn match_rms(&mut self, name: impl Into<String>, x: ValueId, of: ValueId, least: f32) -> NodeResult {
        let name = name.into();
        let (value, other) = (self.input(&name, x)?, self.input(&name, of)?);
        check_groups(&name, other.width, value.width)?;
        if value.rows != other.rows {
            let (expected, found) = (format!("{:?}", value.rows), format!("{:?}", other.rows));
            return Err(KernelError::mismatch(&name, "rows of an operand", expected, found));
        }
        Ok(self.push(name, Op::MatchRms { x, of, least }, value.rows, value.width))
    }

    /// Largest elements: max(x − mean − deviations · standard deviation, 0), both of all elements of the row
    pub fn gaussian_top_k(&mut self, name: impl Into<String>, x: ValueId, deviations: f32) -> NodeResult {
        let name = name.into();
        let value = self.input(&name, x)?;
        if !deviations.is_finite() {
            return Err(KernelError::mismatch(&name, "standard deviations", "a finite number", deviations));
        }
        Ok(self.push(name, Op::GaussianTopK { x, deviations }, value.rows, value.width))
    }

    /// Hadamard transform of each group of `width` columns: a rotation that is its own inverse.
    /// Errors: a `width` that is no power of two above 1 or that does not divide the width of x.
    pub fn hadamard(&mut self, name: impl Into<String>, x: ValueId, width: usize) -> NodeResult {
        let name = name.into();
        let value = self.input(&name, x)?;
        check_groups(&name, width, value.width)?;
        if !width.is_power_of_two() || !(2..=MAX_HADAMARD_WIDTH).contains(&width) {
            let expected = format!("a power of two from 2 to {MAX_HADAMARD_WIDTH}");
            return Err(KernelError::mismatch(&name, "width of a group", expected, width));
        }
        Ok(self.push(name, Op::Hadamard { x, width }, value.rows, value.width))
    }

    /// Heads of x (rows, n · head_dim) as they are stored in `dtype`, or as queries meet such keys: rotated if it is
    /// quantized, since quantization loses less then. Rotates results of attention back in the same way.
    pub fn rotate_heads(
        &mut self,
        name: impl Into<String>,
        x: ValueId,
        head_dim: usize,
        dtype: KvDType,
    ) -> NodeResult {
        match dtype.is_quantized() {
            true => self.hadamard(name, x, rotation_width(head_dim)),
            false => Ok(x),
        }
    }

    /// Joins columns: (rows, n_groups · w) and (rows, n_groups · v) → (rows, n_groups · (w + v))
    pub fn join_columns(
        &mut self,
        name: impl Into<String>,
        a: ValueId,
        b: ValueId,
        n_groups: usize,
    ) -> NodeResult {
        let name = name.into();
        let (left, right) = (self.input(&name, a)?, self.input(&name, b)?);
        if left.rows != right.rows {
            let (expected, found) = (format!("{:?}", left.rows), format!("{:?}", right.rows));
            return Err(KernelError::mismatch(&name, "rows of the second operand", expected, found));
        }
        for width in [left.width, right.width] {
            if n_groups == 0 || !width.is_multiple_of(n_groups) {
                let expected = format!("a multiple of {n_groups}");
                return Err(KernelError::mismatch(&name, "width of an operand", expected, width));
            }
        }
        Ok(self.push(name, Op::JoinColumns { a, b, n_groups }, left.rows, left.width + right.width))
    }
}
