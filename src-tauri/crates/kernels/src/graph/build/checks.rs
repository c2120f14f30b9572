//! Checks of shapes, rows and devices. Every error names the node.

use super::GraphBuilder;
use crate::error::KernelError;
use crate::graph::{Activation, Rows, Value, ValueId};
use crate::tensor::Tensor;

impl GraphBuilder {
    pub(super) fn input(&self, name: &str, x: ValueId) -> Result<Value, KernelError> {
        let value = self.values[x.index()];
        self.check_part(name, x)?;
        check(name, "device of an input (copy it first)", self.device.0, value.device.0)?;
        Ok(value)
    }

    pub(super) fn token_input(&self, name: &str, x: ValueId) -> Result<Value, KernelError> {
        let value = self.input(name, x)?;
        match value.rows {
            Rows::Tokens => Ok(value),
            Rows::Outputs => Err(KernelError::mismatch(name, "rows of an input", "tokens", "output rows")),
        }
    }

    pub(super) fn same_shape(&self, name: &str, a: ValueId, b: ValueId) -> Result<Value, KernelError> {
        let (va, vb) = (self.input(name, a)?, self.input(name, b)?);
        check(name, "width of the second operand", va.width, vb.width)?;
        if va.rows != vb.rows {
            let found = format!("{:?}", vb.rows);
            return Err(KernelError::mismatch(
                name,
                "rows of the second operand",
                format!("{:?}", va.rows),
                found,
            ));
        }
        Ok(va)
    }

    pub(super) fn matrix(&self, name: &str, weight: &Tensor) -> Result<[usize; 2], KernelError> {
        match *weight.shape() {
            [rows, cols] if rows > 0 && cols > 0 => Ok([rows, cols]),
            _ => Err(KernelError::mismatch(name, "weight", "a matrix", format!("{:?}", weight.shape()))),
        }
    }

    pub(super) fn vector(
        &self,
        name: &str,
        what: &'static str,
        weight: &Tensor,
        len: usize,
    ) -> Result<(), KernelError> {
        if weight.shape() != [len] {
            return Err(KernelError::mismatch(
                name,
                what,
                format!("[{len}]"),
                format!("{:?}", weight.shape()),
            ));
        }
        Ok(())
    }
}

pub(super) fn check(
    name: &str,
    what: &'static str,
    expected: usize,
    found: usize,
) -> Result<(), KernelError> {
    if expected != found {
        return Err(KernelError::mismatch(name, what, expected, found));
    }
    Ok(())
}

/// Rejects gated activations.
pub(super) fn unary(name: &str, act: Activation) -> Result<(), KernelError> {
    match act {
        Activation::ClampedSwish { .. } => {
            Err(KernelError::mismatch(name, "activation", "one of a single operand", "a gated one"))
        }
        Activation::Identity
        | Activation::Sigmoid
        | Activation::Silu
        | Activation::Gelu
        | Activation::GeluTanh
        | Activation::ReluSquared
        | Activation::XIelu { .. } => Ok(()),
    }
}

/// Rejects activations that no gated unit has.
pub(super) fn gated(name: &str, act: Activation) -> Result<(), KernelError> {
    match act {
        Activation::XIelu { .. } => {
            Err(KernelError::mismatch(name, "activation", "one of a gated unit", "one of a single operand"))
        }
        Activation::Identity
        | Activation::Sigmoid
        | Activation::Silu
        | Activation::Gelu
        | Activation::GeluTanh
        | Activation::ReluSquared
        | Activation::ClampedSwish { .. } => Ok(()),
    }
}

/// Rejects groups of columns that do not divide the width of x.
pub(super) fn check_groups(name: &str, width: usize, found: usize) -> Result<(), KernelError> {
    if width == 0 || !found.is_multiple_of(width) {
        return Err(KernelError::mismatch(name, "width of x", format!("a multiple of {width}"), found));
    }
    Ok(())
}

pub(super) fn check_product(
    name: &str,
    what: &'static str,
    n_heads: usize,
    head_dim: usize,
    found: usize,
) -> Result<(), KernelError> {
    if n_heads.checked_mul(head_dim) != Some(found) {
        return Err(KernelError::mismatch(name, what, format!("{n_heads} heads of {head_dim}"), found));
    }
    Ok(())
}
