//! The operands of a graph's matrix products.

use crate::graph::{Graph, Op, ValueId};
use crate::tensor::Tensor;

/// Returns input, weight and output of a product.
pub fn matmul_operands(graph: &Graph, i: usize) -> (ValueId, &Tensor, ValueId) {
    let node = &graph.nodes()[i];
    match (&node.op, node.output) {
        (Op::MatMul { x, weight, .. }, Some(out)) => (*x, weight, out),
        _ => unreachable!("`fuse` groups matrix products only"),
    }
}
