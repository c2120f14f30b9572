//! The forward pass as data: a flat list of operations in execution order, with every shape checked at construction.
//! The same graph runs on every backend. The number of tokens is an input of a run, not part of the graph.

mod build;
mod kv_layout;
mod op;
mod routing;

pub use build::{GraphBuilder, MAX_HEAD_DIM};
pub use kv_layout::{
    KvDType, KvLayerLayout, KvLayout, KvPrecision, NO_PAGE, PAGE_LEN, Retention, rotation_width,
};
pub use op::{
    Activation, AttentionShape, Columns, ConvShape, DeltaShape, Experts, HeadOrder, Lookup,
    MAX_DELTA_HEAD_DIM, MAX_HADAMARD_WIDTH, Mask, MixFactors, N_COORDINATES, Op, RopeShape, RopeStyle,
    RowMerge, SsmShape,
};
pub use routing::{ExpertChoice, ExpertScoring, GroupLimit, GroupScore, MAX_EXPERT_GROUPS, Routing};

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
    /// rows of the smallest table of kinds
    pub(crate) n_kinds: Option<usize>,
    /// width of given rows
    pub(crate) given_width: Option<usize>,
    pub(crate) draft: Option<DraftPart>,
}

/// The last nodes of a graph, which run on their own: a draft block. They read no value of the nodes before them, but
/// the same keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftPart {
    /// first node of the part
    pub first_node: usize,
    /// value before the part that stays readable beside the output: (outputs, width)
    pub hidden: ValueId,
    /// result of the part: (outputs, width)
    pub output: ValueId,
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

    /// Rows of the embedding table; token ids must be smaller. 1 without such a table, so that all ids are 0.
    pub fn n_vocab_in(&self) -> usize {
        self.n_vocab_in
    }

    /// Rows of the table of learned positions; positions must be smaller. None: no such table.
    pub fn n_positions(&self) -> Option<usize> {
        self.n_positions
    }

    /// Rows of the table of kinds; kinds must be smaller. None: no such table, so that all kinds are 0.
    pub fn n_kinds(&self) -> Option<usize> {
        self.n_kinds
    }

    /// Width of the rows that a batch may give. None: nothing reads them.
    pub fn given_width(&self) -> Option<usize> {
        self.given_width
    }

    /// The nodes that run on their own. None: all run together.
    pub fn draft(&self) -> Option<DraftPart> {
        self.draft
    }

    /// Rows from each output row on that the graph merges; 1: only the output row itself.
    pub fn n_merged_rows(&self) -> usize {
        let merged = self.nodes.iter().map(|node| match node.op {
            Op::MergeRows { n, .. } => n,
            _ => 1,
        });
        merged.max().unwrap_or(1)
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
