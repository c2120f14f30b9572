//! The forward pass as data: a flat list of operations in execution order, every shape checked as it is built.
//! The same graph runs on every backend. Knows nothing of rows: how many tokens there are is a run-time input.

use crate::error::KernelError;

mod build;
mod kv_layout;
mod op;

pub use build::{GraphBuilder, MAX_HEAD_DIM};
pub use kv_layout::{KvDType, KvLayerLayout, KvLayout, NO_PAGE, PAGE_LEN, Retention};
pub use op::{
    Activation, AttentionShape, Columns, ConvShape, DeltaShape, Experts, HeadOrder, Lookup,
    MAX_DELTA_HEAD_DIM, Mask, Op, RopeShape, RopeStyle, Routing,
};

/// Index into `Graph::values`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

impl ValueId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index into the devices of the executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub usize);

/// How many rows a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// One for each token of the batch.
    Tokens,
    /// One for each token whose logits are wanted.
    Outputs,
}

/// A (rows, width) matrix of f32 activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    pub rows: Rows,
    pub width: usize,
    pub device: DeviceId,
}

/// One operation with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// "layers.3.ffn.down": errors, profiles and `Compare` speak of it
    pub name: String,
    pub device: DeviceId,
    pub op: Op,
    /// None for `KvWrite` only
    pub output: Option<ValueId>,
}

/// A whole forward pass, checked. Made by `GraphBuilder`.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(crate) values: Vec<Value>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) kv: KvLayout,
    /// device of each KV layer
    pub(crate) kv_devices: Vec<DeviceId>,
    /// device of each recurrent layer's state
    pub(crate) state_devices: Vec<DeviceId>,
    pub(crate) output: ValueId,
    pub(crate) n_vocab_in: usize,
    /// rows of the smallest table of learned positions
    pub(crate) n_positions: Option<usize>,
}

impl Graph {
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// In execution order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn kv(&self) -> &KvLayout {
        &self.kv
    }

    /// Where each KV layer lives.
    pub fn kv_devices(&self) -> &[DeviceId] {
        &self.kv_devices
    }

    /// Where each recurrent layer's state lives.
    pub fn state_devices(&self) -> &[DeviceId] {
        &self.state_devices
    }

    /// The value that `Executor::output` returns: (outputs, width).
    pub fn output(&self) -> ValueId {
        self.output
    }

    /// Rows of the embedding table: token ids must be below it.
    pub fn n_vocab_in(&self) -> usize {
        self.n_vocab_in
    }

    /// Positions must be below it; None: there is no table of positions.
    pub fn n_positions(&self) -> Option<usize> {
        self.n_positions
    }

    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// One more than the largest device used.
    pub fn n_devices(&self) -> usize {
        self.nodes.iter().map(|n| n.device.0 + 1).max().unwrap_or(0)
    }

    /// The first error of a builder method, spelled once.
    pub(crate) fn mismatch(
        node: &str,
        what: &'static str,
        expected: impl ToString,
        found: impl ToString,
    ) -> KernelError {
        KernelError::Shape {
            node: node.to_owned(),
            what,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}
