//! Cuts a graph into segments that communicate through one value, and finds what the backward pass needs of each.

use std::collections::HashMap;
use std::ops::Range;

use kernels::{Activation, Graph, KernelError, Lookup, Mask, Op, ValueId};

/// What a pass needs to know of a graph.
pub(super) struct PassPlan {
    /// Nodes of each segment, in order; together all nodes before `head`.
    pub segments: Vec<Range<usize>>,
    /// Nodes from the selection of output rows on; these treat every row alone.
    pub head: Range<usize>,
    /// The value whose rows are selected.
    pub head_input: ValueId,
    /// Keys and values of each layer of the cache.
    pub kv: HashMap<usize, (ValueId, ValueId)>,
    /// (n_values) whether a trained matrix is behind it
    pub has_gradient: Vec<bool>,
    /// (n_values) whether the backward pass reads it
    pub is_saved: Vec<bool>,
    /// (n_values) whether a later segment reads it
    pub is_pinned: Vec<bool>,
    /// (n_values) last node that reads it
    pub last_use: Vec<usize>,
    /// The trained product that a sum adds to its other operand in place, by the sum.
    pub product_of_sum: HashMap<usize, usize>,
}

impl PassPlan {
    /// Plans a graph; `is_trained` tells which products have a trained matrix.
    ///
    /// Errors: an operation without a gradient.
    pub fn new(graph: &Graph, is_trained: &dyn Fn(usize) -> bool) -> Result<Self, KernelError> {
        let nodes = graph.nodes();
        let head = nodes.iter().position(|node| matches!(node.op, Op::OutputRows { .. }));
        let Some((at, head_input)) = head.and_then(|at| match nodes[at].op {
            Op::OutputRows { x } => Some((at, x)),
            _ => None,
        }) else {
            return Err(refused("graph", "no selection of output rows"));
        };
        let mut plan = Self {
            segments: Vec::new(),
            head: at..nodes.len(),
            head_input,
            kv: HashMap::new(),
            has_gradient: vec![false; graph.values().len()],
            is_saved: vec![false; graph.values().len()],
            is_pinned: vec![false; graph.values().len()],
            last_use: vec![0; graph.values().len()],
            product_of_sum: HashMap::new(),
        };
        for (i, node) in nodes.iter().enumerate() {
            check(&node.name, &node.op, i >= at)?;
            if let Op::KvWrite { k, v, layer } = &node.op {
                plan.kv.insert(*layer, (*k, *v));
            }
            let inputs = plan.inputs(&node.op);
            let has_gradient = is_trained(i) || inputs.iter().any(|v| plan.has_gradient[v.index()]);
            inputs.iter().for_each(|v| plan.last_use[v.index()] = i);
            let Some(output) = node.output else { continue };
            plan.has_gradient[output.index()] = has_gradient;
            if has_gradient {
                plan.save_operands(&node.op, is_trained(i));
            }
        }
        plan.join_products(graph, is_trained);
        plan.cut(graph);
        Ok(plan)
    }

    /// Returns whether a node is computed by the sum that it is joined with.
    pub fn is_joined(&self, product: usize) -> bool {
        self.product_of_sum.values().any(|joined| *joined == product)
    }

    /// Finds the sums y + low · B whose operands nothing else reads. They need no memory for low · B.
    fn join_products(&mut self, graph: &Graph, is_trained: &dyn Fn(usize) -> bool) {
        let nodes = graph.nodes();
        let mut n_uses = vec![0; graph.values().len()];
        nodes.iter().flat_map(|node| self.inputs(&node.op)).for_each(|v| n_uses[v.index()] += 1);
        for (i, node) in nodes[..self.head.start].iter().enumerate() {
            let Op::Add { a, b } = node.op else { continue };
            let is_only_added = |v: ValueId| n_uses[v.index()] == 1 && !self.is_saved[v.index()];
            let product = nodes[..i].iter().position(|node| node.output == Some(b));
            let Some(product) = product.filter(|p| is_trained(*p) && is_only_added(a) && is_only_added(b))
            else {
                continue;
            };
            if let Op::MatMul { x, bias: None, .. } = nodes[product].op {
                self.product_of_sum.insert(i, product);
                self.last_use[x.index()] = self.last_use[x.index()].max(i);
            }
        }
    }

    /// The values an operation reads; attention also reads keys and values.
    pub fn inputs(&self, op: &Op) -> Vec<ValueId> {
        let mut all = Vec::new();
        if !matches!(op, Op::KvWrite { .. }) {
            op.for_each_input(|v| all.push(v));
        }
        if let Op::Attention { attention, .. } = op
            && let Some((k, v)) = self.kv.get(&attention.layer)
        {
            all.extend([*k, *v]);
        }
        all
    }

    fn save_operands(&mut self, op: &Op, is_trained: bool) {
        match op {
            Op::MatMul { x, .. } if is_trained => self.is_saved[x.index()] = true,
            Op::RmsNorm { .. }
            | Op::LayerNorm { .. }
            | Op::Softcap { .. }
            | Op::Activate { .. }
            | Op::Glu { .. }
            | Op::Attention { .. } => {
                for v in self.inputs(op) {
                    self.is_saved[v.index()] = true;
                }
            }
            _ => {}
        }
    }

    /// Cuts where one value is alive, at most once per attention.
    fn cut(&mut self, graph: &Graph) {
        let mut live: Vec<ValueId> = Vec::new();
        let mut cuts = vec![0];
        for i in 0..self.head.start {
            live.extend(graph.nodes()[i].output);
            live.retain(|v| self.last_use[v.index()] > i);
            if live.len() == 1 {
                cuts.push(i + 1);
            }
        }
        let has_attention = |range: Range<usize>| {
            graph.nodes()[range].iter().any(|node| matches!(node.op, Op::Attention { .. }))
        };
        let mut start = 0;
        for pair in cuts.windows(2) {
            if has_attention(start..pair[0]) && has_attention(pair[0]..pair[1]) {
                self.segments.push(start..pair[0]);
                start = pair[0];
            }
        }
        self.segments.push(start..self.head.start);
        for segment in &self.segments {
            for v in graph.nodes()[segment.clone()].iter().filter_map(|node| node.output) {
                self.is_pinned[v.index()] = self.last_use[v.index()] >= segment.end;
            }
        }
    }
}

/// Errors: an operation without a gradient, or one after the selection of rows that mixes them.
fn check(name: &str, op: &Op, in_head: bool) -> Result<(), KernelError> {
    let refuse = |found: &str| Err(refused(name, found));
    let found = kernels::ops::row(op).name;
    match op {
        Op::RmsNorm { .. }
        | Op::LayerNorm { .. }
        | Op::MatMul { .. }
        | Op::Scale { .. }
        | Op::Softcap { .. }
        | Op::OutputRows { .. } => Ok(()),
        _ if in_head => refuse(found),
        Op::Embed { by: Lookup::Token, .. } | Op::Rope { .. } | Op::PositionScale { .. } => Ok(()),
        Op::Add { .. } | Op::KvWrite { .. } => Ok(()),
        Op::Activate { act, .. } | Op::Glu { act, .. }
            if matches!(act, Activation::ClampedSwish { .. } | Activation::XIelu { .. }) =>
        {
            refuse("an activation without a gradient")
        }
        Op::Activate { .. } | Op::Glu { .. } => Ok(()),
        Op::Attention { attention, .. } if attention.sinks.is_some() => refuse("attention with sinks"),
        Op::Attention { attention, .. } if attention.mask != Mask::Causal => {
            refuse("attention that is not causal")
        }
        Op::Attention { .. } => Ok(()),
        _ => refuse(found),
    }
}

fn refused(node: &str, found: &str) -> KernelError {
    KernelError::Shape {
        node: node.to_owned(),
        what: "operation",
        expected: "one that can be trained".to_owned(),
        found: found.to_owned(),
    }
}
