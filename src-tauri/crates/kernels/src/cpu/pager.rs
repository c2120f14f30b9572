//! Keeps the weights of a graph within a budget of memory: tells the system what to read from disk ahead of the
//! step that needs it, and gives back what will be needed last. What is computed does not depend on it: a page that
//! was given back comes back when it is read.

use weights::Advice;

use super::memory::ValueArena;
use crate::graph::{DeviceId, Graph, Op, ValueId};
use crate::ops::moe_route;
use crate::plan::fuse::Step;
use crate::plan::resident::{Piece, Shelf};
use crate::tensor::Tensor;

/// How much of a model's weights may be in memory at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    pub n_bytes: u64,
    /// the machine has no room for the rest either, in what it keeps of files
    pub is_tight: bool,
}

/// Part of the budget for what is read ahead: two in flight are enough to keep a disk busy, more only crowd out what
/// could stay.
const AHEAD_SHARE: u64 = 16;
/// Part of the budget for rows of embeddings that were looked up: then their table is given back.
const TABLE_SHARE: u64 = 16;
/// What the system maps around a byte that is read, and so around the ends of each piece.
const AROUND: u64 = 64 << 10;

/// The weights of one device.
pub struct Pager {
    shelf: Shelf,
    /// by piece
    tensors: Vec<Tensor>,
    /// by node: its first piece; a product of experts has one for each
    first: Vec<Option<usize>>,
    /// pieces of the products that every run needs, in their order
    dense: Vec<usize>,
    /// routing nodes, each with a product of experts that follows it
    routed: Vec<(usize, usize)>,
    tables: Vec<LookupTable>,
    /// what becomes of weights that have to go
    gone: Advice,
    /// bytes that are read ahead
    ahead: u64,
    /// bytes of a table that may be looked up before it is given back
    most_looked_up: u64,
}

/// A table of embeddings that is no product as well.
struct LookupTable {
    node: usize,
    tensor: Tensor,
    /// bytes that came into memory since it was given back, at most
    looked_up: u64,
}

impl Pager {
    /// For the weights of `graph` on `device`.
    pub fn new(graph: &Graph, device: DeviceId, limit: Resident) -> Self {
        let budget = limit.n_bytes;
        let (mut pieces, mut tensors) = (Vec::new(), Vec::<Tensor>::new());
        let mut first = vec![None; graph.nodes().len()];
        let (mut dense, mut routed, mut tables) = (Vec::new(), Vec::new(), Vec::new());
        let here = || graph.nodes().iter().enumerate().filter(|(_, node)| node.device == device);
        for (i, node) in here() {
            let mut add = |tensor: &Tensor, likely| {
                first[i].get_or_insert(pieces.len());
                pieces.push(Piece { n_bytes: tensor.bytes().len() as u64 + AROUND, place: i as u32, likely });
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
                    let router = here().find(|(_, node)| node.output == Some(*route));
                    routed.extend(router.map(|(router, _)| (router, i)));
                }
                _ => {}
            }
        }
        for (node, op) in here().map(|(i, node)| (i, &node.op)) {
            let Op::Embed { table, .. } = op else { continue };
            if !tensors.iter().any(|tensor| tensor.bytes().as_ptr() == table.bytes().as_ptr()) {
                tables.push(LookupTable { node, tensor: table.clone(), looked_up: 0 });
            }
        }
        let (ahead, most_looked_up) = (budget / AHEAD_SHARE, budget / TABLE_SHARE);
        let gone = if limit.is_tight { Advice::Forget } else { Advice::Release };
        let shelf = Shelf::new(pieces, budget.saturating_sub(tables.len() as u64 * most_looked_up));
        Self { shelf, tensors, gone, first, dense, routed, tables, ahead, most_looked_up }
    }

    /// Before a step: what it multiplies by is asked for, and what comes next.
    pub fn before(&mut self, step: &Step) {
        let (Step::MatMuls { nodes, .. } | Step::Experts { nodes, .. }) = step else { return };
        self.shelf.arrive(nodes[0] as u32);
        let Step::MatMuls { .. } = step else { return };
        for node in nodes {
            let Some(piece) = self.first[*node] else { continue };
            self.ask(piece, Urgency::Now);
        }
        let last = nodes.iter().filter_map(|node| self.first[*node]).max();
        let Some(at) = last.and_then(|last| self.dense.binary_search(&last).ok()) else { return };
        let mut ahead = self.ahead;
        for i in 1..self.dense.len() {
            let piece = self.dense[(at + i) % self.dense.len()];
            let Some(left) = ahead.checked_sub(self.tensors[piece].bytes().len() as u64) else { return };
            ahead = left;
            self.ask(piece, Urgency::Soon);
        }
    }

    /// After a step of a single node: experts that it chose are asked for; rows that it looked up are counted.
    pub fn after(&mut self, step: &Step, graph: &Graph, values: &ValueArena) {
        let Step::Node(node) = step else { return };
        match &graph.nodes()[*node].op {
            Op::MoeRoute { .. } => {
                if let Some(route) = graph.nodes()[*node].output {
                    self.chosen(*node, route, values);
                }
            }
            Op::Embed { .. } => {
                let Some(table) = self.tables.iter_mut().find(|table| table.node == *node) else { return };
                let n_rows = graph.nodes()[*node].output.map_or(0, |out| values.n_rows(out));
                table.looked_up += n_rows as u64 * (table.tensor.row_bytes() as u64 + AROUND);
                if table.looked_up > self.most_looked_up {
                    table.tensor.advise(self.gone);
                    table.looked_up = 0;
                }
            }
            _ => {}
        }
    }

    fn chosen(&mut self, router: usize, route: ValueId, values: &ValueArena) {
        let (n_used, rows) = (values.width(route) / 2, values.read(route, values.n_rows(route)));
        for at in 0..self.routed.len() {
            let (_, node) = self.routed[at];
            let Some(first) = self.first[node].filter(|_| self.routed[at].0 == router) else { continue };
            let same_node = |piece: &usize| self.shelf.place_of(*piece) == Some(node as u32);
            let n_experts = (first..self.tensors.len()).take_while(same_node).count();
            let is_chosen = |expert: usize| {
                let mut tokens = rows.chunks_exact(2 * n_used);
                tokens.any(|r| (0..n_used).any(|slot| moe_route::expert(r, slot, n_experts) == expert))
            };
            self.shelf.learn(first..first + n_experts, &is_chosen);
            for expert in (0..n_experts).filter(|expert| is_chosen(*expert)) {
                self.ask(first + expert, Urgency::Now);
            }
        }
    }

    fn ask(&mut self, piece: usize, urgency: Urgency) {
        let Self { shelf, tensors, gone, .. } = self;
        let release = &mut |piece: usize| _ = tensors[piece].advise(*gone);
        let is_missing = match urgency {
            Urgency::Now => shelf.need(piece, release),
            Urgency::Soon => shelf.expect(piece, release),
        };
        if is_missing {
            tensors[piece].advise(Advice::Soon);
        }
    }
}

#[derive(Clone, Copy)]
enum Urgency {
    Now,
    Soon,
}
