//! Builds the operations on per-sequence state: KV writes, attention, recurrent layers.

use super::buffers::BufferSpan;
use super::cost::{COST_PER_BYTE, KernelCost, VisiblePositions};
use super::device::Device;
use super::inputs;
use super::kv_buffers::LayerPages;
use super::nodes::{BuildResult, act_words, defined, norm_weight, plain, style_word};
use super::pipeline::ShaderVariant;
use super::program::{Batches, Binding, Extent, ProgramBuilder, RowGroups};
use super::shader;
use super::split_kv::SplitRule;
use crate::capacity::Capacity;
use crate::fault::GpuFault;
use crate::graph::{
    AttentionShape, ConvShape, DeltaShape, HeadOrder, KvLayerLayout, Mask, Op, PAGE_LEN, Retention, Rows,
    SsmShape, ValueId,
};
use crate::ops::attention::lanes::{MAX_HEAD_DIM, Specialization, shared_bytes};
use crate::ops::attention::partials::MAX_SPLIT_ROWS;
use crate::ops::attention::prompt;
use crate::ops::attention::{CHUNK, GPU_QUERIES, shader_defines};
use crate::ops::{kv_write, short_conv};
use crate::plan::step::Step;

use Binding::Value;

/// The queries that a workgroup takes: heads of one KV head, and rows.
#[derive(Clone, Copy)]
struct QueryTile {
    is_wide: bool,
    heads: usize,
    rows: usize,
}

impl QueryTile {
    /// Whether the wide kernel fits, and how many queries a workgroup takes.
    fn queries(gpu: &Device, shape: &AttentionShape, wanted: usize) -> (bool, usize) {
        let [wide, narrow] = GPU_QUERIES;
        let fits = shared_bytes(shape.head_dim, wide) <= gpu.limits.max_compute_workgroup_storage_size;
        match wanted > narrow && fits {
            true => (true, wide),
            false => (false, narrow),
        }
    }

    /// For one row per workgroup.
    fn single_row(gpu: &Device, shape: &AttentionShape) -> Self {
        let group = shape.n_heads / shape.n_kv_heads;
        let (is_wide, n) = Self::queries(gpu, shape, group);
        Self { is_wide, heads: group.min(n), rows: 1 }
    }

    /// For as many rows as fit.
    fn many_rows(gpu: &Device, shape: &AttentionShape) -> Self {
        let group = shape.n_heads / shape.n_kv_heads;
        let (is_wide, n) = Self::queries(gpu, shape, usize::MAX);
        let heads = group.min(n);
        Self { is_wide, heads, rows: n / heads }
    }
}

/// The WGSL word of a sliding window; 0: unlimited.
fn window_word(shape: &AttentionShape) -> u32 {
    shape.window.map_or(0, |window| u32::try_from(window).unwrap_or(u32::MAX))
}

/// The WGSL word of a mask; 1: rows see positions ahead; 2: those of their image; 3: all but the first position.
fn ahead_word(shape: &AttentionShape) -> u32 {
    match shape.mask {
        Mask::Causal => 0,
        Mask::Bidirectional => 1,
        Mask::CausalImages => 2,
        Mask::CausalAfterFirst => 3,
    }
}

/// Words of the keys and of the values of one head in one page.
fn block_words(layout: &KvLayerLayout) -> [u32; 2] {
    [layout.key_bytes(), layout.value_bytes()].map(|n_bytes| (n_bytes / 4) as u32)
}

/// Parameters of a layer's pages: heads, head size, words of one head's keys, of its values and of a page, section of the
/// rows' pages.
fn store_params(pages: &LayerPages) -> [u32; 6] {
    let layout = pages.layout;
    let section = match layout.retention() {
        Retention::All => inputs::PAGES,
        Retention::Window => inputs::WINDOW_PAGES,
    };
    let [key_words, value_words] = block_words(&layout);
    let page_words = (pages.page_bytes / 4) as u32;
    [layout.n_kv_heads as u32, layout.head_dim as u32, key_words, value_words, page_words, section]
}

/// Section of the rows' page tables.
fn table_section(layout: &KvLayerLayout) -> u32 {
    match layout.retention() {
        Retention::All => inputs::TABLES,
        Retention::Window => inputs::WINDOW_TABLES,
    }
}

/// Cost of attention where `blocks` workgroups read pages of `page_bytes` for `n_rows` rows each.
fn attention_cost(shape: &AttentionShape, page_bytes: u64, (blocks, n_rows): (usize, usize)) -> KernelCost {
    let multiplied = 2 * (shape.n_heads * shape.head_dim) as u64;
    let read = COST_PER_BYTE * (page_bytes * blocks as u64).div_ceil((PAGE_LEN * n_rows) as u64);
    let max = shape.window.map_or(u64::MAX, |window| window as u64);
    let visible = VisiblePositions { max, mask: shape.mask };
    KernelCost { position: multiplied.max(read), visible, ..KernelCost::default() }
}

impl ProgramBuilder<'_> {
    pub(super) fn kv_write(&mut self, i: usize, [k, v]: [ValueId; 2], layer: usize) -> BuildResult {
        let pages = self.sequences.pages(layer);
        let bindings = [Binding::Rows, Value(k), Value(v), Binding::Buffer(BufferSpan::whole(&pages.buffer))];
        let extent = Extent::elements(kv_write::shader_lanes(&pages.layout), Rows::Tokens);
        let variant = defined(kv_write::shader_defines(pages.layout.precision));
        let params = store_params(pages);
        self.add(i, (&shader::KV_WRITE, variant), &params, &bindings, extent)
    }

    /// Rotates keys on their way into the store, and queries beside them; `norms`, if any, are applied first.
    pub(super) fn rope_kv_write(
        &mut self,
        step: &Step,
        norms: &[usize],
        q: Option<usize>,
        [k, write]: [usize; 2],
    ) -> BuildResult {
        let nodes = self.graph.nodes();
        let (Op::KvWrite { v, layer, .. }, Op::Rope { x, rope }, Some(k_out)) =
            (&nodes[write].op, &nodes[k].op, nodes[k].output)
        else {
            unreachable!("`fuse` joins a rotation with the writing of what it makes");
        };
        if !self.can_bind(if norms.is_empty() { 7 } else { 8 }) {
            return step.nodes().into_iter().try_for_each(|i| self.node(i));
        }
        let q = q.map(|q| match (&nodes[q].op, nodes[q].output) {
            (Op::Rope { x, rope }, Some(out)) => (self.norm_input(norms, *x), out, rope.n_heads),
            _ => unreachable!("`fuse` joins rotations"),
        });
        let pages = self.sequences.pages(*layer);
        let n_q_heads = q.map_or(0, |(_, _, n_heads)| n_heads);
        let n_pairs = rope.n_rot / 2;
        let of_rope = [n_q_heads as u32, n_pairs as u32, style_word(rope.style), self.inputs.first_angle(k)];
        let mut params = [&store_params(pages)[..], &of_rope].concat();
        let store = Binding::Buffer(BufferSpan::whole(&pages.buffer));
        // a placeholder: without queries the kernel does not access these bindings
        let spare = || Binding::Buffer(BufferSpan::whole(&self.split_kv.partials));
        let (q_in, q_out) = q.map_or_else(|| (Binding::Rows, spare()), |(x, out, _)| (Value(x), Value(out)));
        let x = Value(self.norm_input(norms, *x));
        let mut bindings = vec![Binding::Rows, x, Value(*v), store, q_in, Value(k_out), q_out];
        let variant = defined(kv_write::shader_defines(pages.layout.precision));
        if norms.is_empty() {
            let n_lanes = kv_write::shader_lanes(&pages.layout) + n_q_heads * (rope.head_dim - n_pairs);
            let extent = Extent::elements(n_lanes, Rows::Tokens);
            return self.add(write, (&shader::ROPE_KV_WRITE, variant), &params, &bindings, extent);
        }
        let extent = Extent::groups(n_q_heads + 2 * rope.n_heads, Rows::Tokens);
        let (weights, eps) = self.norm_weights(norms, rope.head_dim);
        params.push(eps.to_bits());
        bindings.push(self.vector(&weights)?);
        self.add(write, (&shader::NORM_ROPE_KV_WRITE, variant), &params, &bindings, extent)
    }

    /// The input of the norm among `norms` that computes `value`; `value` itself if none does.
    fn norm_input(&self, norms: &[usize], value: ValueId) -> ValueId {
        let nodes = self.graph.nodes();
        let made = norms.iter().find(|norm| nodes[**norm].output == Some(value));
        made.map_or(value, |norm| match &nodes[*norm].op {
            Op::RmsNorm { x, .. } => *x,
            _ => unreachable!("`fuse` joins norms"),
        })
    }

    /// (2, width) norm weights of queries, then keys; and their epsilon
    fn norm_weights(&self, norms: &[usize], width: usize) -> (Vec<f32>, f32) {
        let weights = norms.iter().map(|norm| match &self.graph.nodes()[*norm].op {
            Op::RmsNorm { weight, offset, eps, .. } => (norm_weight(weight.as_ref(), *offset, width), *eps),
            _ => unreachable!("`fuse` joins norms"),
        });
        let (mut weights, all_eps): (Vec<_>, Vec<_>) = weights.unzip();
        if let [_] = weights[..] {
            // no queries
            weights.insert(0, vec![0.0; width]);
        }
        (weights.concat(), all_eps[0])
    }

    /// Adds some kernels, of which a batch runs the first two or one of the others: see `split_kv`.
    pub(super) fn attention(
        &mut self,
        i: usize,
        q: ValueId,
        shape: &AttentionShape,
        out: ValueId,
    ) -> BuildResult {
        let (head_dim, [_, narrow]) = (shape.head_dim, GPU_QUERIES);
        let max_bytes = self.gpu.limits.max_compute_workgroup_storage_size;
        if head_dim > MAX_HEAD_DIM || shared_bytes(head_dim, narrow) > max_bytes {
            let message = format!(
                "attention heads of {head_dim} elements exceed its kernel's {MAX_HEAD_DIM}, or the {max_bytes} bytes \
                 of memory that a workgroup has"
            );
            return Err(self.gpu.error(GpuFault::Invalid, message));
        }
        let split = SplitRule {
            min_chunks: self.shapes.min_split_chunks(),
            max_partials: self.split_kv.max_partials,
        };
        let n_heads = shape.n_heads;
        // a bidirectional row sees as many positions ahead as behind
        let chunks = |window: usize| u32::try_from(window.saturating_mul(2) / CHUNK + 2).unwrap_or(u32::MAX);
        let max = shape.window.map_or(u32::MAX, chunks);
        let partials = || Binding::Buffer(BufferSpan::whole(&self.split_kv.partials));
        let (written, merged) = (partials(), partials());
        self.attend(
            i,
            q,
            shape,
            QueryTile::single_row(self.gpu, shape),
            RowGroups::Chunks { max, split },
            written,
        )?;
        let flags = [u32::from(shape.sinks.is_some()), ahead_word(shape)];
        let params = [n_heads as u32, shape.head_dim as u32, window_word(shape), flags[0], flags[1]];
        let sinks = self.vector(shape.sinks.as_deref().unwrap_or(&[0.0]))?;
        let extent = Extent::new([n_heads as u32, 1], RowGroups::Merge { split });
        self.add(i, (&shader::MERGE, plain()), &params, &[Binding::Rows, merged, sinks, Value(out)], extent)?;
        let others = match self.multiplies_matrices(shape) {
            true => {
                self.attend_prompts(i, q, shape, split, out)?;
                Batches::Others
            }
            false => Batches::Any,
        };
        // a single row needs no kernel for several
        for (tile, min, max, batches) in [
            (QueryTile::single_row(self.gpu, shape), 1, 1, Batches::Any),
            (QueryTile::many_rows(self.gpu, shape), 2, usize::MAX, others),
        ] {
            let rows = RowGroups::Whole { rows: tile.rows as u32, min, max, split, batches };
            self.attend(i, q, shape, tile, rows, Value(out))?;
        }
        Ok(())
    }

    /// Whether prompts get the kernel of cooperative matrices.
    fn multiplies_matrices(&self, shape: &AttentionShape) -> bool {
        let pages = self.sequences.pages(shape.layer);
        self.gpu.features().matrices
            && prompt::supports(&pages.layout, pages.requantized.is_some())
            && prompt::shared_bytes(shape.head_dim) <= self.gpu.limits.max_compute_workgroup_storage_size
    }

    fn attend_prompts(
        &mut self,
        i: usize,
        q: ValueId,
        shape: &AttentionShape,
        split: SplitRule,
        out: ValueId,
    ) -> BuildResult {
        let sinks = self.vector(shape.sinks.as_deref().unwrap_or(&[0.0]))?;
        let pages = self.sequences.pages(shape.layer);
        let [key_words, value_words] = block_words(&pages.layout);
        let params = [
            shape.n_heads as u32,
            (shape.n_heads / shape.n_kv_heads) as u32,
            shape.n_kv_heads as u32,
            key_words,
            value_words,
            (pages.page_bytes / 4) as u32,
            table_section(&pages.layout),
            window_word(shape),
            shape.scale.to_bits(),
            shape.softcap.unwrap_or(0.0).to_bits(),
            u32::from(shape.sinks.is_some()),
        ];
        let sizes = prompt::constants(shape.head_dim, ahead_word(shape));
        let variant = ShaderVariant { defines: &["COOPERATIVE"], weight: None, sizes };
        let rows = RowGroups::Whole {
            rows: prompt::ROWS,
            min: 1,
            max: usize::MAX,
            split,
            batches: Batches::Prompts,
        };
        let cost = attention_cost(shape, pages.page_bytes, (shape.n_heads, prompt::ROWS as usize));
        let n_positions = self.capacity.all_pages(pages.layout.retention()) * PAGE_LEN;
        let n_rows = self.capacity.max_rows;
        let n_groups = (n_rows as u32).div_ceil(prompt::ROWS);
        let worst = cost.upper_bound(n_rows as u64, n_positions as u64, n_groups.into());
        let extent = (Extent { cost, ..Extent::new([shape.n_heads as u32, 1], rows) }, n_groups, worst);
        let kv = Binding::Buffer(BufferSpan::whole(&pages.buffer));
        let bindings = [Binding::Rows, Value(q), kv, sinks, Value(out)];
        self.add_split(i, (&shader::ATTENTION_OF_PROMPTS, variant), &params, &bindings, extent)
    }

    fn attend(
        &mut self,
        i: usize,
        q: ValueId,
        shape: &AttentionShape,
        tile: QueryTile,
        rows: RowGroups,
        out: Binding,
    ) -> BuildResult {
        let sinks = self.vector(shape.sinks.as_deref().unwrap_or(&[0.0]))?;
        let pages = self.sequences.pages(shape.layer);
        let layout = pages.layout;
        let is_split = matches!(rows, RowGroups::Chunks { .. });
        let group = shape.n_heads / shape.n_kv_heads;
        let blocks = group.div_ceil(tile.heads);
        let words_of = |page_bytes: u64| (page_bytes / 4) as u32;
        let [key_words, value_words] = block_words(&layout);
        // keys and values of requantized pages have one format
        let requantized_words = layout.requantized().map_or(0, |layout| block_words(&layout)[0]);
        let params = [
            shape.n_heads as u32,
            group as u32,
            shape.n_kv_heads as u32,
            key_words,
            value_words,
            words_of(pages.page_bytes),
            table_section(&layout),
            window_word(shape),
            shape.scale.to_bits(),
            shape.softcap.unwrap_or(0.0).to_bits(),
            tile.heads as u32,
            blocks as u32,
            pages.n_exact,
            words_of(pages.first_requantized()),
            requantized_words,
        ];
        let kv = Binding::Buffer(BufferSpan::whole(&pages.buffer));
        let specialization = Specialization {
            head_dim: shape.head_dim,
            n_rows: tile.rows,
            is_capped: shape.softcap.is_some(),
            has_sinks: shape.sinks.is_some(),
            ahead: ahead_word(shape),
            is_part: is_split,
        };
        let defines = shader_defines(layout.precision, pages.requantized.is_some(), tile.is_wide);
        let variant = ShaderVariant { defines, weight: None, sizes: specialization.constants() };
        let cost = attention_cost(shape, pages.page_bytes, (blocks, tile.rows));
        let groups = [(shape.n_kv_heads * blocks) as u32, 1];
        let Capacity { max_rows, .. } = *self.capacity;
        let n_positions = self.capacity.all_pages(layout.retention()) * PAGE_LEN;
        // split attention is for few rows
        let n_rows = if is_split { max_rows.min(MAX_SPLIT_ROWS) } else { max_rows };
        let n_groups = n_rows.div_ceil(tile.rows) as u32;
        let worst = cost.upper_bound(n_rows as u64, n_positions as u64, n_groups.into());
        let extent = (Extent { cost, ..Extent::new(groups, rows) }, n_groups, worst);
        let bindings = [Binding::Rows, Value(q), kv, sinks, out];
        self.add_split(i, (&shader::ATTENTION, variant), &params, &bindings, extent)
    }

    pub(super) fn short_conv(&mut self, i: usize, x: ValueId, conv: &ConvShape, out: ValueId) -> BuildResult {
        let n = self.graph.value(x).width;
        let taps = self.vector(&short_conv::by_tap(conv))?;
        let bias = conv.bias.as_ref().map_or_else(|| vec![0.0; n], |bias| bias.to_vec());
        let bias = self.vector(&bias)?;
        let states = Binding::Buffer(BufferSpan::whole(&self.sequences.states(conv.state).buffer));
        let params = [n as u32, conv.kernel as u32, act_words(conv.act)[0]];
        let bindings = [Binding::Rows, Value(x), taps, bias, states, Value(out)];
        let extent =
            Extent { cost: KernelCost::of_row((n * conv.kernel) as u64), ..Extent::once(n.div_ceil(64)) };
        self.add(i, (&shader::SHORT_CONV, plain()), &params, &bindings, extent)
    }

    pub(super) fn delta_net(
        &mut self,
        i: usize,
        [qkv, beta, alpha]: [ValueId; 3],
        delta: &DeltaShape,
        out: ValueId,
    ) -> BuildResult {
        let gates = self.vector(&[&delta.decay[..], &delta.dt_bias[..]].concat())?;
        let states = Binding::Buffer(BufferSpan::whole(&self.sequences.states(delta.state).buffer));
        let tiled = match delta.order {
            HeadOrder::Tiled => 1,
            HeadOrder::Grouped => 0,
        };
        let dims = [delta.n_k_heads, delta.n_v_heads, delta.k_dim, delta.v_dim].map(|n| n as u32);
        let params = [&dims[..], &[tiled]].concat();
        let bindings = [Binding::Rows, Value(qkv), Value(beta), Value(alpha), gates, states, Value(out)];
        // decayed, read, written and read again
        let row = 4 * delta.n_v_heads * delta.k_dim * delta.v_dim;
        let extent = Extent { cost: KernelCost::of_row(row as u64), ..Extent::once(delta.n_v_heads) };
        self.add(i, (&shader::DELTA_NET, plain()), &params, &bindings, extent)
    }

    pub(super) fn ssm(
        &mut self,
        i: usize,
        [xbc, dt]: [ValueId; 2],
        ssm: &SsmShape,
        out: ValueId,
    ) -> BuildResult {
        let heads = self.vector(&[&ssm.decay[..], &ssm.skip[..], &ssm.dt_bias[..]].concat())?;
        let states = Binding::Buffer(BufferSpan::whole(&self.sequences.states(ssm.state).buffer));
        let dims = [ssm.n_heads, ssm.head_dim, ssm.n_groups, ssm.d_state].map(|n| n as u32);
        // WGSL has no infinity; a limit of f32::MAX clamps nothing
        let limits = ssm.dt_limits.map(|limit| limit.clamp(f32::MIN, f32::MAX).to_bits());
        let params = [&dims[..], &limits].concat();
        let bindings = [Binding::Rows, Value(xbc), Value(dt), heads, states, Value(out)];
        // read, decayed and written
        let row = 3 * ssm.n_heads * ssm.head_dim * ssm.d_state;
        let extent = Extent { cost: KernelCost::of_row(row as u64), ..Extent::once(ssm.n_heads) };
        self.add(i, (&shader::SSM, plain()), &params, &bindings, extent)
    }
}
