//! Keeps the weights of a graph within a memory budget: tells the system what to read from disk before a step
//! needs it, and evicts what is needed last.
//! Never changes results: an evicted page is read from disk again when it is accessed.

use weights::Advice;

use super::memory::ValueArena;
use crate::graph::{DeviceId, Graph, Op, ValueId};
use crate::ops::moe_route;
use crate::plan::step::Step;
use crate::plan::weight_cache::{WeightCache, WeightGroup};
use crate::tensor::Tensor;

/// How much of a model's weights may be in memory at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightBudget {
    /// Budget in bytes.
    pub n_bytes: u64,
    /// The page cache has no space for the rest either.
    pub is_tight: bool,
}

/// Share of the budget for reading ahead (1/n). Two reads in flight keep a disk busy; more would
/// evict useful weights.
const READ_AHEAD_DIVISOR: u64 = 16;
/// Share of the budget (1/n) for looked-up embedding rows; beyond it their table is evicted.
const LOOKUP_DIVISOR: u64 = 16;
/// Bytes that the system maps around a byte that is read, and so around the ends of each piece.
const READ_AROUND_BYTES: u64 = 64 << 10;

/// Tracks the weights of one device.
pub struct Pager {
    cache: WeightCache,
    /// By piece.
    tensors: Vec<Tensor>,
    /// By node: its first piece. An expert product has one piece per expert.
    first: Vec<Option<usize>>,
    /// Pieces of the products that every run needs, in order.
    dense: Vec<usize>,
    /// Routing nodes, each with an expert product that follows it.
    routed: Vec<(usize, usize)>,
    tables: Vec<LookupTable>,
    /// Advice for evicted weights.
    eviction_advice: Advice,
    /// Bytes to read ahead.
    read_ahead_bytes: u64,
    /// Bytes of a table that may be looked up before it is evicted.
    max_looked_up_bytes: u64,
}

/// An embedding table that is not also used in a product.
struct LookupTable {
    node: usize,
    tensor: Tensor,
    /// Upper bound of the bytes loaded since it was last evicted.
    looked_up_bytes: u64,
}

impl Pager {
    /// Tracks the weights of `graph` on `device`.
    pub fn new(graph: &Graph, device: DeviceId, limit: WeightBudget) -> Self {
        let budget = limit.n_bytes;
        let (mut pieces, mut tensors) = (Vec::new(), Vec::<Tensor>::new());
        let mut first = vec![None; graph.nodes().len()];
        let (mut dense, mut routed, mut tables) = (Vec::new(), Vec::new(), Vec::new());
        let on_device = || graph.nodes().iter().enumerate().filter(|(_, node)| node.device == device);
        for (i, node) in on_device() {
            let mut add = |tensor: &Tensor, likely| {
                first[i].get_or_insert(pieces.len());
                pieces.push(WeightGroup {
                    n_bytes: tensor.bytes().len() as u64 + READ_AROUND_BYTES,
                    position: i as u32,
                    use_probability: likely,
                });
                tensors.push(tensor.clone());
            };
            match &node.op {
                Op::MatMul { weight, .. } => {
                    add(weight, 1.0);
                    dense.push(tensors.len() - 1);
                }
                Op::ExpertMatMul { route, experts, .. } => {
                    let n_used = graph.value(*route).width / 2;
                    let likely = n_used as f32 / experts.weights.len() as f32;
                    experts.weights.iter().for_each(|tensor| add(tensor, likely));
                    let router = on_device().find(|(_, node)| node.output == Some(*route));
                    routed.extend(router.map(|(router, _)| (router, i)));
                }
                _ => {}
            }
        }
        for (node, op) in on_device().map(|(i, node)| (i, &node.op)) {
            let Op::Embed { table, .. } = op else { continue };
            if !tensors.iter().any(|tensor| tensor.bytes().as_ptr() == table.bytes().as_ptr()) {
                tables.push(LookupTable { node, tensor: table.clone(), looked_up_bytes: 0 });
            }
        }
        let (read_ahead_bytes, max_looked_up_bytes) = (budget / READ_AHEAD_DIVISOR, budget / LOOKUP_DIVISOR);
        let eviction_advice = if limit.is_tight { Advice::Forget } else { Advice::Release };
        let cache =
            WeightCache::new(pieces, budget.saturating_sub(tables.len() as u64 * max_looked_up_bytes));
        Self {
            cache,
            tensors,
            eviction_advice,
            first,
            dense,
            routed,
            tables,
            read_ahead_bytes,
            max_looked_up_bytes,
        }
    }

    /// Before a step: requests the weights it multiplies by, and those of the steps to come.
    pub fn before_step(&mut self, step: &Step) {
        let (Step::MatMuls { nodes, .. } | Step::ExpertMatMuls { nodes, .. }) = step else { return };
        self.cache.advance_to(nodes[0] as u32);
        let Step::MatMuls { .. } = step else { return };
        for node in nodes {
            let Some(piece) = self.first[*node] else { continue };
            self.request(piece, Urgency::Now);
        }
        let last = nodes.iter().filter_map(|node| self.first[*node]).max();
        let Some(at) = last.and_then(|last| self.dense.binary_search(&last).ok()) else { return };
        let mut read_ahead_bytes = self.read_ahead_bytes;
        for i in 1..self.dense.len() {
            let piece = self.dense[(at + i) % self.dense.len()];
            let Some(left) = read_ahead_bytes.checked_sub(self.tensors[piece].bytes().len() as u64) else {
                return;
            };
            read_ahead_bytes = left;
            self.request(piece, Urgency::Soon);
        }
    }

    /// After a step of a single node: requests the experts that it chose, and counts the rows that it looked
    /// up.
    pub fn after_step(&mut self, step: &Step, graph: &Graph, values: &ValueArena) {
        let Step::Node(node) = step else { return };
        match &graph.nodes()[*node].op {
            Op::MoeRoute { .. } | Op::RouteAll { .. } => {
                if let Some(route) = graph.nodes()[*node].output {
                    self.request_experts(*node, route, values);
                }
            }
            Op::Embed { .. } => {
                let Some(table) = self.tables.iter_mut().find(|table| table.node == *node) else { return };
                let n_rows = graph.nodes()[*node].output.map_or(0, |out| values.n_rows(out));
                table.looked_up_bytes +=
                    n_rows as u64 * (table.tensor.row_bytes() as u64 + READ_AROUND_BYTES);
                if table.looked_up_bytes > self.max_looked_up_bytes {
                    table.tensor.advise(self.eviction_advice);
                    table.looked_up_bytes = 0;
                }
            }
            _ => {}
        }
    }

    /// Requests the experts that `router` chose, for all products that it routes.
    fn request_experts(&mut self, router: usize, route: ValueId, values: &ValueArena) {
        let (n_used, rows) = (values.width(route) / 2, values.read(route, values.n_rows(route)));
        for at in 0..self.routed.len() {
            let (_, node) = self.routed[at];
            let Some(first) = self.first[node].filter(|_| self.routed[at].0 == router) else { continue };
            let same_node = |piece: &usize| self.cache.position_of(*piece) == Some(node as u32);
            let n_experts = (first..self.tensors.len()).take_while(same_node).count();
            let is_chosen = |expert: usize| {
                let mut tokens = rows.chunks_exact(2 * n_used);
                tokens.any(|r| (0..n_used).any(|slot| moe_route::expert(r, slot, n_experts) == expert))
            };
            self.cache.record_routing(first..first + n_experts, &is_chosen);
            for expert in (0..n_experts).filter(|expert| is_chosen(*expert)) {
                self.request(first + expert, Urgency::Now);
            }
        }
    }

    /// Requests a piece from disk, unless it is in memory.
    fn request(&mut self, piece: usize, urgency: Urgency) {
        let Self { cache, tensors, eviction_advice, .. } = self;
        let release = &mut |piece: usize| _ = tensors[piece].advise(*eviction_advice);
        let is_missing = match urgency {
            Urgency::Now => cache.require(piece, release),
            Urgency::Soon => cache.prefetch(piece, release),
        };
        if is_missing {
            tensors[piece].advise(Advice::Soon);
        }
    }
}

/// When a piece is needed.
#[derive(Clone, Copy)]
enum Urgency {
    Now,
    Soon,
}
