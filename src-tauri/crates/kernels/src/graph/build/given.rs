//! Rows that a batch gives, and rows that become one.

use super::{GraphBuilder, NodeResult};
use crate::error::KernelError;
use crate::graph::{Op, RowMerge, Rows, ValueId};

impl GraphBuilder {
    /// Given rows: their columns `start..start + width`, and zero for rows that are not given → (tokens, width)
    pub fn given(&mut self, name: impl Into<String>, start: usize, width: usize) -> NodeResult {
        let name = name.into();
        self.reads_given(&name, start, width)?;
        Ok(self.push(name, Op::Given { start, width }, Rows::Tokens, width))
    }

    /// x (tokens, w), but columns `start..start + w` of the rows that the batch gives → same shape
    pub fn replace_given(&mut self, name: impl Into<String>, x: ValueId, start: usize) -> NodeResult {
        let name = name.into();
        let value = self.token_input(&name, x)?;
        self.reads_given(&name, start, value.width)?;
        Ok(self.push(name, Op::ReplaceGiven { x, start }, value.rows, value.width))
    }

    /// Merges each output row with the `n` − 1 rows after it: (tokens, w) → (outputs, w), or (outputs, n · w)
    pub fn merge_rows(
        &mut self,
        name: impl Into<String>,
        x: ValueId,
        n: usize,
        merge: RowMerge,
    ) -> NodeResult {
        let name = name.into();
        let value = self.token_input(&name, x)?;
        if n == 0 {
            return Err(KernelError::mismatch(&name, "rows to merge", "at least 1", 0));
        }
        let width = match merge {
            RowMerge::Mean => Some(value.width),
            RowMerge::Concat => value.width.checked_mul(n),
        };
        let Some(width) = width else {
            return Err(KernelError::mismatch(&name, "rows to merge", "fewer", n));
        };
        Ok(self.push(name, Op::MergeRows { x, n, merge }, Rows::Outputs, width))
    }

    /// Notes that columns of given rows are read.
    fn reads_given(&mut self, name: &str, start: usize, width: usize) -> Result<(), KernelError> {
        let end = start.checked_add(width).filter(|_| width > 0);
        let Some(end) = end else {
            return Err(KernelError::mismatch(name, "columns of given rows", "at least 1", width));
        };
        self.given_width = Some(self.given_width.map_or(end, |width| width.max(end)));
        Ok(())
    }
}
