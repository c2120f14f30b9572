//! The part of a graph that runs on its own.

use super::GraphBuilder;
use crate::error::KernelError;
use crate::graph::{DraftPart, Graph, ValueId};

/// Where the part begins.
#[derive(Clone, Copy)]
pub(super) struct DraftBegin {
    node: usize,
    value: usize,
}

impl GraphBuilder {
    /// Begins the part that runs on its own. Nodes after this read no value of those before.
    pub fn begin_draft(&mut self) {
        self.draft = Some(DraftBegin { node: self.nodes.len(), value: self.values.len() });
    }

    /// Finishes the graph as `finish` does, with `hidden` (outputs, width) readable beside `output`, and `draft`
    /// (outputs, width) as the result of the part that runs on its own.
    /// Errors: those of `finish`; no such part, or one on several devices.
    pub fn finish_with_draft(
        self,
        output: ValueId,
        hidden: ValueId,
        draft: ValueId,
    ) -> Result<Graph, KernelError> {
        let Some(begin) = self.draft.filter(|begin| draft.index() >= begin.value) else {
            return Err(KernelError::mismatch("graph", "nodes of a draft block", "at least 1", 0));
        };
        let part = &self.nodes[begin.node..];
        let n_other = part.iter().filter(|node| node.device != part[0].device).count();
        if n_other > 0 {
            return Err(KernelError::mismatch("graph", "devices of a draft block", 1, n_other + 1));
        }
        self.finish_with(output, Some(DraftPart { first_node: begin.node, hidden, output: draft }))
    }

    /// Errors: a node of the draft block that reads an earlier value.
    pub(super) fn check_part(&self, name: &str, x: ValueId) -> Result<(), KernelError> {
        match self.draft {
            Some(begin) if x.index() < begin.value => {
                let found = format!("value {}", x.index());
                Err(KernelError::mismatch(name, "input", "a value of the draft block", found))
            }
            Some(_) | None => Ok(()),
        }
    }
}
