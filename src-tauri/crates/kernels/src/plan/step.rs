//! One step of a plan: the nodes that a device runs together.

/// Largest number of multiplications in one step: q, k, v and some spare. Fixed, so that a step needs no allocation.
pub const MAX_MATMULS: usize = 8;

/// What a device runs between two barriers. Numbers are indices into `Graph::nodes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Node(usize),
    /// norm(a + b), with the sum kept. `before` is a norm of one of the two, whose own value is not written.
    AddNorm {
        before: Option<usize>,
        add: usize,
        norm: usize,
    },
    /// multiplications of one x; `glu` joins exactly two of them
    MatMuls {
        nodes: Vec<usize>,
        glu: Option<usize>,
    },
    /// Keys rotated on their way into the KV store, and queries with the same rotation. `norms` of the heads of each come
    /// first; their own values are not written.
    RopeKvWrite {
        norms: Vec<usize>,
        q: Option<usize>,
        k: usize,
        write: usize,
    },
    /// multiplications with experts: one, or two of one x under one route that `glu` joins
    ExpertMatMuls {
        nodes: Vec<usize>,
        glu: Option<usize>,
    },
}

impl Step {
    /// The node whose value completes the step.
    pub fn last(&self) -> usize {
        match self {
            Self::Node(i) => *i,
            Self::AddNorm { norm, .. } => *norm,
            Self::RopeKvWrite { write, .. } => *write,
            Self::MatMuls { nodes, glu } | Self::ExpertMatMuls { nodes, glu } => {
                glu.unwrap_or(nodes[nodes.len() - 1])
            }
        }
    }

    /// The first node, in graph order.
    pub fn first(&self) -> usize {
        match self {
            Self::Node(i) => *i,
            Self::AddNorm { before, add, .. } => before.unwrap_or(*add),
            Self::RopeKvWrite { norms, q, k, .. } => norms.first().copied().or(*q).unwrap_or(*k),
            Self::MatMuls { nodes, .. } | Self::ExpertMatMuls { nodes, .. } => nodes[0],
        }
    }

    /// All nodes, in graph order.
    pub fn nodes(&self) -> Vec<usize> {
        match self {
            Self::Node(i) => vec![*i],
            Self::AddNorm { before, add, norm } => before.iter().copied().chain([*add, *norm]).collect(),
            Self::RopeKvWrite { norms, q, k, write } => {
                let mut nodes: Vec<usize> = norms.iter().chain(q).copied().chain([*k, *write]).collect();
                nodes.sort_unstable();
                nodes
            }
            Self::MatMuls { nodes, glu } | Self::ExpertMatMuls { nodes, glu } => {
                nodes.iter().chain(glu).copied().collect()
            }
        }
    }
}
