//! The forward pass as data: a flat list of operations in execution order, with every shape checked at construction.
//! The same graph runs on every backend. The number of tokens is an input of a run, not part of the graph.

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
    /// The index as `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index into the devices of the executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub usize);

/// Number of rows of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// one per token of the batch
    Tokens,
    /// one per token whose logits are computed
    Outputs,
}

/// A (rows, width) matrix of f32 activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// number of rows
    pub rows: Rows,
    /// number of columns
    pub width: usize,
    /// device that holds it
    pub device: DeviceId,
}

/// One operation on one device.
#[derive(Clone, Debug)]
pub struct Node {
    /// name for errors, profiles and comparisons: "layers.3.ffn.down"
    pub name: String,
    /// device that runs it
    pub device: DeviceId,
    /// the operation
    pub op: Op,
    /// its result; None for `KvWrite` only
    pub output: Option<ValueId>,
}

/// A checked forward pass, built by `GraphBuilder`.
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
    /// All values, indexed by `ValueId`.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// All nodes in execution order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Layout of keys, values and recurrent states.
    pub fn kv(&self) -> &KvLayout {
        &self.kv
    }

    /// Device of each KV layer.
    pub fn kv_devices(&self) -> &[DeviceId] {
        &self.kv_devices
    }

    /// Device of each recurrent layer's state.
    pub fn state_devices(&self) -> &[DeviceId] {
        &self.state_devices
    }

    /// The value that `Executor::output` returns: (outputs, width).
    pub fn output(&self) -> ValueId {
        self.output
    }

    /// Rows of the embedding table; token ids must be smaller.
    pub fn n_vocab_in(&self) -> usize {
        self.n_vocab_in
    }

    /// Rows of the table of learned positions; positions must be smaller. None: no such table.
    pub fn n_positions(&self) -> Option<usize> {
        self.n_positions
    }

    /// The value with this id.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// Largest device index used, plus one.
    pub fn n_devices(&self) -> usize {
        self.nodes.iter().map(|n| n.device.0 + 1).max().unwrap_or(0)
    }
}
