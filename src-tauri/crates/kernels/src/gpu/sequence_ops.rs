//! Operations on what sequences keep as kernels of a card: pages of keys and values, recurrent states.

use super::buffers::Span;
use super::cost::{Cost, PER_BYTE, Sees};
use super::device::Device;
use super::inputs;
use super::kept::Pages;
use super::nodes::{Made, act_words, defined, norm_weight, plain, style_word};
use super::program::{Bound, Extent, Maker, PerRow};
use super::shader;
use super::splits::Split;
use crate::graph::{
    AttentionShape, ConvShape, DeltaShape, HeadOrder, Mask, Op, PAGE_LEN, Retention, Rows, ValueId,
};
use crate::ops::attention::parts::MOST_ROWS;
use crate::ops::attention::{CARD_QUERIES, CARD_QUERY_FLOATS, CHUNK, WIDE_BYTES, shader_defines};
use crate::ops::{kv_write, short_conv};
use crate::plan::Capacity;
use crate::plan::fuse::Step;

use Bound::Value;

/// Lanes of a workgroup of attention: as in its WGSL, which has as many for the longest head.
const ATTENTION_LANES: usize = 128;

/// The queries of a workgroup.
#[derive(Clone, Copy)]
struct Tile {
    is_wide: bool,
    heads: usize,
    rows: usize,
}

impl Tile {
    fn queries(gpu: &Device, shape: &AttentionShape, wanted: usize) -> (bool, usize) {
        let [wide, narrow] = CARD_QUERIES;
        let fits = wide * shape.head_dim <= CARD_QUERY_FLOATS
            && gpu.limits.max_compute_workgroup_storage_size >= WIDE_BYTES;
        match wanted > narrow && fits {
            true => (true, wide),
            false => (false, narrow),
        }
    }

    /// For a row that has a workgroup to itself.
    fn of_a_row(gpu: &Device, shape: &AttentionShape) -> Self {
        let group = shape.n_heads / shape.n_kv_heads;
        let (is_wide, n) = Self::queries(gpu, shape, group);
        Self { is_wide, heads: group.min(n), rows: 1 }
    }

    /// For as many rows as there is room for.
    fn of_rows(gpu: &Device, shape: &AttentionShape) -> Self {
        let group = shape.n_heads / shape.n_kv_heads;
        let (is_wide, n) = Self::queries(gpu, shape, usize::MAX);
        let heads = group.min(n);
        Self { is_wide, heads, rows: n / heads }
    }
}

/// Positions that go through the values at the same time: as many as there are lanes for, four elements each.
fn strands(head_dim: usize) -> u32 {
    let n = ATTENTION_LANES / head_dim.div_ceil(4);
    1 << n.ilog2()
}

fn window_word(shape: &AttentionShape) -> u32 {
    shape.window.map_or(0, |window| u32::try_from(window).unwrap_or(u32::MAX))
}

fn ahead_word(shape: &AttentionShape) -> u32 {
    match shape.mask {
        Mask::Causal => 0,
        Mask::Bidirectional => 1,
    }
}

/// Of the pages of a layer: heads, their length, words of a block and of a page, where rows' pages are.
fn store_params(pages: &Pages) -> [u32; 5] {
    let layout = pages.layout;
    let section = match layout.retention() {
        Retention::All => inputs::PAGES,
        Retention::Window => inputs::WINDOW_PAGES,
    };
    let page_words = (pages.page_bytes / 4) as u32;
    let n_heads = layout.n_kv_heads as u32;
    [n_heads, layout.head_dim as u32, page_words / (2 * n_heads), page_words, section]
}

/// Of a row, over pages of so many bytes that `blocks` workgroups read, for `n_rows` rows each.
fn attention_cost(shape: &AttentionShape, page_bytes: u64, (blocks, n_rows): (usize, usize)) -> Cost {
    let multiplied = 2 * (shape.n_heads * shape.head_dim) as u64;
    let read = PER_BYTE * (page_bytes * blocks as u64).div_ceil((PAGE_LEN * n_rows) as u64);
    let most = shape.window.map_or(u64::MAX, |window| window as u64);
    Cost { position: multiplied.max(read), sees: Sees { most, mask: shape.mask }, ..Cost::default() }
}

impl Maker<'_> {
    pub(super) fn kv_write(&mut self, i: usize, [k, v]: [ValueId; 2], layer: usize) -> Made {
        let pages = self.kept.pages(layer);
        let bound = [Bound::Rows, Value(k), Value(v), Bound::Buffer(Span::whole(&pages.buffer))];
        let extent = Extent::elements(kv_write::shader_lanes(&pages.layout), Rows::Tokens);
        let variant = defined(kv_write::shader_define(pages.layout.dtype));
        let params = store_params(pages);
        self.add(i, (&shader::KV_WRITE, variant), &params, &bound, extent)
    }

    /// Keys and values into the store, and rotated on the way: keys, and queries beside them; normed before that, where
    /// `norms` are there.
    pub(super) fn rotate(
        &mut self,
        step: &Step,
        norms: &[usize],
        q: Option<usize>,
        [k, write]: [usize; 2],
    ) -> Made {
        let nodes = self.graph.nodes();
        let (Op::KvWrite { v, layer, .. }, Op::Rope { x, rope }, Some(k_out)) =
            (&nodes[write].op, &nodes[k].op, nodes[k].output)
        else {
            unreachable!("`fuse` joins a rotation with the writing of what it makes");
        };
        if !self.takes(if norms.is_empty() { 7 } else { 8 }) {
            return step.nodes().into_iter().try_for_each(|i| self.node(i));
        }
        let q = q.map(|q| match (&nodes[q].op, nodes[q].output) {
            (Op::Rope { x, rope }, Some(out)) => (self.before(norms, *x), out, rope.n_heads),
            _ => unreachable!("`fuse` joins rotations"),
        });
        let pages = self.kept.pages(*layer);
        let n_q_heads = q.map_or(0, |(_, _, n_heads)| n_heads);
        let n_pairs = rope.n_rot / 2;
        let of_rope = [n_q_heads as u32, n_pairs as u32, style_word(rope.style), self.inputs.first_angle(k)];
        let mut params = [&store_params(pages)[..], &of_rope].concat();
        let store = Bound::Buffer(Span::whole(&pages.buffer));
        // where there are no queries nothing of theirs is touched
        let spare = || Bound::Buffer(Span::whole(&self.splits.parts));
        let (q_in, q_out) = q.map_or_else(|| (Bound::Rows, spare()), |(x, out, _)| (Value(x), Value(out)));
        let x = Value(self.before(norms, *x));
        let mut bound = vec![Bound::Rows, x, Value(*v), store, q_in, Value(k_out), q_out];
        let variant = defined(kv_write::shader_define(pages.layout.dtype));
        if norms.is_empty() {
            let n_lanes = kv_write::shader_lanes(&pages.layout) + n_q_heads * (rope.head_dim - n_pairs);
            let extent = Extent::elements(n_lanes, Rows::Tokens);
            return self.add(write, (&shader::ROTATE, variant), &params, &bound, extent);
        }
        let extent = Extent::groups(n_q_heads + 2 * rope.n_heads, Rows::Tokens);
        let (weights, eps) = self.weights_of(norms, rope.head_dim);
        params.push(eps.to_bits());
        bound.push(self.vector(&weights)?);
        self.add(write, (&shader::NORM_ROTATE, variant), &params, &bound, extent)
    }

    /// What a norm among `norms` makes `value` of; itself where none does.
    fn before(&self, norms: &[usize], value: ValueId) -> ValueId {
        let nodes = self.graph.nodes();
        let made = norms.iter().find(|norm| nodes[**norm].output == Some(value));
        made.map_or(value, |norm| match &nodes[*norm].op {
            Op::RmsNorm { x, .. } => *x,
            _ => unreachable!("`fuse` joins norms"),
        })
    }

    /// (2, width) of queries and of keys, which are the last; their epsilon
    fn weights_of(&self, norms: &[usize], width: usize) -> (Vec<f32>, f32) {
        let weights = norms.iter().map(|norm| match &self.graph.nodes()[*norm].op {
            Op::RmsNorm { weight, offset, eps, .. } => (norm_weight(weight.as_ref(), *offset, width), *eps),
            _ => unreachable!("`fuse` joins norms"),
        });
        let (mut weights, all_eps): (Vec<_>, Vec<_>) = weights.unzip();
        if let [_] = weights[..] {
            // there are no queries
            weights.insert(0, vec![0.0; width]);
        }
        (weights.concat(), all_eps[0])
    }

    /// Three kernels, of which a batch runs the first two or the last: see `splits`.
    pub(super) fn attention(&mut self, i: usize, q: ValueId, shape: &AttentionShape, out: ValueId) -> Made {
        let split = Split { from: self.shapes.split_from(), limit: self.splits.limit };
        let n_heads = shape.n_heads;
        // as much ahead as behind, where a row looks ahead
        let chunks = |window: usize| u32::try_from(window.saturating_mul(2) / CHUNK + 2).unwrap_or(u32::MAX);
        let most = shape.window.map_or(u32::MAX, chunks);
        let parts = || Bound::Buffer(Span::whole(&self.splits.parts));
        let (bound, merged) = (parts(), parts());
        self.attend(i, q, shape, Tile::of_a_row(self.gpu, shape), PerRow::Chunks { most, split }, bound)?;
        let flags = [u32::from(shape.sinks.is_some()), ahead_word(shape)];
        let params = [n_heads as u32, shape.head_dim as u32, window_word(shape), flags[0], flags[1]];
        let sinks = self.vector(shape.sinks.as_deref().unwrap_or(&[0.0]))?;
        let extent = Extent::new([n_heads as u32, 1], PerRow::Merge { split });
        self.add(i, (&shader::MERGE, plain()), &params, &[Bound::Rows, merged, sinks, Value(out)], extent)?;
        let tile = Tile::of_rows(self.gpu, shape);
        self.attend(i, q, shape, tile, PerRow::Whole { rows: tile.rows as u32, split }, Value(out))
    }

    fn attend(
        &mut self,
        i: usize,
        q: ValueId,
        shape: &AttentionShape,
        tile: Tile,
        rows: PerRow,
        out: Bound,
    ) -> Made {
        let sinks = self.vector(shape.sinks.as_deref().unwrap_or(&[0.0]))?;
        let pages = self.kept.pages(shape.layer);
        let layout = pages.layout;
        let section = match layout.retention() {
            Retention::All => inputs::TABLES,
            Retention::Window => inputs::WINDOW_TABLES,
        };
        let is_part = matches!(rows, PerRow::Chunks { .. });
        let group = shape.n_heads / shape.n_kv_heads;
        let blocks = group.div_ceil(tile.heads);
        let words_of = |page_bytes: u64| (page_bytes / 4) as u32;
        let per_block = 2 * layout.n_kv_heads as u32;
        let params = [
            shape.n_heads as u32,
            group as u32,
            shape.head_dim as u32,
            shape.n_kv_heads as u32,
            words_of(pages.page_bytes) / per_block,
            words_of(pages.page_bytes),
            section,
            window_word(shape),
            shape.scale.to_bits(),
            shape.softcap.unwrap_or(0.0).to_bits(),
            u32::from(shape.sinks.is_some()),
            ahead_word(shape),
            tile.heads as u32,
            blocks as u32,
            tile.rows as u32,
            strands(shape.head_dim),
            u32::from(is_part),
            pages.n_exact,
            words_of(pages.first_aged()),
            words_of(pages.aged.map_or(0, |aged| aged.page_bytes)) / per_block,
        ];
        let kv = Bound::Buffer(Span::whole(&pages.buffer));
        let defines = shader_defines(layout.dtype, pages.aged.is_some(), tile.is_wide);
        let cost = attention_cost(shape, pages.page_bytes, (blocks, tile.rows));
        let groups = [(shape.n_kv_heads * blocks) as u32, 1];
        let Capacity { max_rows, .. } = *self.capacity;
        let n_positions = self.capacity.all_pages(layout.retention()) * PAGE_LEN;
        // a batch with chunks of its own has few rows
        let n_rows = if is_part { max_rows.min(MOST_ROWS) } else { max_rows };
        let n_groups = n_rows.div_ceil(tile.rows) as u32;
        let worst = cost.at_most(n_rows as u64, n_positions as u64, n_groups.into());
        let extent = (Extent { cost, ..Extent::new(groups, rows) }, n_groups, worst);
        let bound = [Bound::Rows, Value(q), kv, sinks, out];
        self.add_in_parts(i, (&shader::ATTENTION, defined(defines)), &params, &bound, extent)
    }

    pub(super) fn short_conv(&mut self, i: usize, x: ValueId, conv: &ConvShape, out: ValueId) -> Made {
        let n = self.graph.value(x).width;
        let taps = self.vector(&short_conv::by_tap(conv))?;
        let bias = conv.bias.as_ref().map_or_else(|| vec![0.0; n], |bias| bias.to_vec());
        let bias = self.vector(&bias)?;
        let states = Bound::Buffer(Span::whole(&self.kept.states(conv.state).buffer));
        let params = [n as u32, conv.kernel as u32, act_words(conv.act)[0]];
        let bound = [Bound::Rows, Value(x), taps, bias, states, Value(out)];
        let extent = Extent { cost: Cost::of_row((n * conv.kernel) as u64), ..Extent::once(n.div_ceil(64)) };
        self.add(i, (&shader::SHORT_CONV, plain()), &params, &bound, extent)
    }

    pub(super) fn delta_net(
        &mut self,
        i: usize,
        [qkv, beta, alpha]: [ValueId; 3],
        delta: &DeltaShape,
        out: ValueId,
    ) -> Made {
        let gates = self.vector(&[&delta.decay[..], &delta.dt_bias[..]].concat())?;
        let states = Bound::Buffer(Span::whole(&self.kept.states(delta.state).buffer));
        let tiled = match delta.order {
            HeadOrder::Tiled => 1,
            HeadOrder::Grouped => 0,
        };
        let dims = [delta.n_k_heads, delta.n_v_heads, delta.k_dim, delta.v_dim].map(|n| n as u32);
        let params = [&dims[..], &[tiled]].concat();
        let bound = [Bound::Rows, Value(qkv), Value(beta), Value(alpha), gates, states, Value(out)];
        // decayed, read, written and read again
        let row = 4 * delta.n_v_heads * delta.k_dim * delta.v_dim;
        let extent = Extent { cost: Cost::of_row(row as u64), ..Extent::once(delta.n_v_heads) };
        self.add(i, (&shader::DELTA_NET, plain()), &params, &bound, extent)
    }
}
