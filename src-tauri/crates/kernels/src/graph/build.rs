//! Builds a `Graph` node by node and rejects every shape that does not fit.

use super::{
    Activation, AttentionShape, DeviceId, DraftPart, Graph, KvLayout, KvPrecision, Lookup, Mask,
    N_COORDINATES, Node, Op, PAGE_LEN, RopeShape, Rows, Value, ValueId,
};
use crate::error::KernelError;
use crate::tensor::Tensor;

mod checks;
mod columns;
mod draft;
mod experts;
mod given;
mod recurrent;
mod tower;

use checks::{check, check_groups, check_product, gated, unary};

/// Largest attention head: kernels have scratch buffers of this size. The largest published one is the latent of
/// DeepSeek-V3 with its rotated part.
pub const MAX_HEAD_DIM: usize = 576;

/// Appends nodes to a graph. Nodes go to the device last set with `on`; `name` is the node's name.
pub struct GraphBuilder {
    values: Vec<Value>,
    nodes: Vec<Node>,
    kv: KvLayout,
    kv_devices: Vec<Option<DeviceId>>,
    state_devices: Vec<Option<DeviceId>>,
    device: DeviceId,
    n_vocab_in: Option<usize>,
    n_positions: Option<usize>,
    n_kinds: Option<usize>,
    given_width: Option<usize>,
    draft: Option<draft::DraftBegin>,
}

type NodeResult = Result<ValueId, KernelError>;

impl GraphBuilder {
    /// Begins a graph. Errors: a page length other than `PAGE_LEN`, an empty or oversized head, a head the KV dtype cannot block.
    pub fn new(kv: KvLayout) -> Result<Self, KernelError> {
        if kv.page_len != PAGE_LEN {
            return Err(KernelError::mismatch("kv", "page length", PAGE_LEN, kv.page_len));
        }
        for layer in &kv.layers {
            let KvPrecision { keys, values } = layer.precision;
            let block = keys.block_len().max(values.block_len());
            if layer.n_kv_heads == 0 || layer.head_dim == 0 || layer.head_dim > MAX_HEAD_DIM {
                return Err(KernelError::mismatch(
                    "kv",
                    "head size",
                    format!("1..={MAX_HEAD_DIM}"),
                    layer.head_dim,
                ));
            }
            if layer.head_dim % block != 0 {
                let expected = format!("a multiple of {block}");
                return Err(KernelError::mismatch(
                    "kv",
                    "head size for this KV type",
                    expected,
                    layer.head_dim,
                ));
            }
        }
        if kv.states.contains(&0) {
            return Err(KernelError::mismatch("kv", "floats of a recurrent state", "at least 1", 0));
        }
        Ok(Self {
            values: Vec::new(),
            nodes: Vec::new(),
            kv_devices: vec![None; kv.layers.len()],
            state_devices: vec![None; kv.states.len()],
            kv,
            device: DeviceId(0),
            n_vocab_in: None,
            n_positions: None,
            n_kinds: None,
            given_width: None,
            draft: None,
        })
    }

    /// Assigns the following nodes to `device`; their inputs must be copied there first.
    pub fn on(&mut self, device: DeviceId) -> &mut Self {
        self.device = device;
        self
    }

    /// The device of the next node.
    pub fn device(&self) -> DeviceId {
        self.device
    }

    /// Width in elements of an existing value.
    pub fn width(&self, x: ValueId) -> usize {
        self.values[x.index()].width
    }

    /// Token embedding: table [n_vocab, d] → (tokens, d)
    pub fn embed(&mut self, name: impl Into<String>, table: &Tensor, scale: f32) -> NodeResult {
        let name = name.into();
        let [n_vocab, d] = self.matrix(&name, table)?;
        if self.n_vocab_in.replace(n_vocab).is_some_and(|n| n != n_vocab) {
            return Err(KernelError::mismatch(&name, "rows of a second table", "the same", n_vocab));
        }
        let op = Op::Embed { table: table.clone(), scale, by: Lookup::Token };
        Ok(self.push(name, op, Rows::Tokens, d))
    }

    /// Further token embedding: table [n, d] → (tokens, d). Tokens that the table lacks have its first row.
    pub fn embed_or_first(&mut self, name: impl Into<String>, table: &Tensor, scale: f32) -> NodeResult {
        let name = name.into();
        let [_, d] = self.matrix(&name, table)?;
        let op = Op::Embed { table: table.clone(), scale, by: Lookup::TokenOrFirst };
        Ok(self.push(name, op, Rows::Tokens, d))
    }

    /// Learned position embedding: table [n_positions, d] → (tokens, d); batches must stay below n_positions
    pub fn embed_position(&mut self, name: impl Into<String>, table: &Tensor) -> NodeResult {
        let name = name.into();
        let [n_positions, d] = self.matrix(&name, table)?;
        self.n_positions = Some(self.n_positions.map_or(n_positions, |n| n.min(n_positions)));
        let op = Op::Embed { table: table.clone(), scale: 1.0, by: Lookup::Position };
        Ok(self.push(name, op, Rows::Tokens, d))
    }

    /// Embedding of the token's kind: table [n_kinds, d] → (tokens, d)
    pub fn embed_kind(&mut self, name: impl Into<String>, table: &Tensor) -> NodeResult {
        let name = name.into();
        let [n_kinds, d] = self.matrix(&name, table)?;
        self.n_kinds = Some(self.n_kinds.map_or(n_kinds, |n| n.min(n_kinds)));
        let op = Op::Embed { table: table.clone(), scale: 1.0, by: Lookup::Kind };
        Ok(self.push(name, op, Rows::Tokens, d))
    }

    /// Root mean square norm; weight [width of x]
    pub fn rms_norm(&mut self, name: impl Into<String>, x: ValueId, weight: &Tensor, eps: f32) -> NodeResult {
        let name = name.into();
        let value = self.input(&name, x)?;
        self.vector(&name, "norm weight", weight, value.width)?;
        let op = Op::RmsNorm { x, weight: Some(weight.clone()), offset: 0.0, eps, width: value.width };
        Ok(self.push(name, op, value.rows, value.width))
    }

    /// Root mean square norm of each group of `width` columns; weight [width], to which `offset` is added.
    pub fn rms_norm_groups(
        &mut self,
        name: impl Into<String>,
        x: ValueId,
        weight: Option<&Tensor>,
        offset: f32,
        eps: f32,
        width: usize,
    ) -> NodeResult {
        let name = name.into();
        let value = self.input(&name, x)?;
        check_groups(&name, width, value.width)?;
        if let Some(weight) = weight {
            self.vector(&name, "norm weight", weight, width)?;
        }
        let op = Op::RmsNorm { x, weight: weight.cloned(), offset, eps, width };
        Ok(self.push(name, op, value.rows, value.width))
    }

    /// Layer norm; weight, bias [width of x]
    pub fn layer_norm(
        &mut self,
        name: impl Into<String>,
        x: ValueId,
        weight: &Tensor,
        bias: Option<&Tensor>,
        eps: f32,
    ) -> NodeResult {
        let width = self.width(x);
        self.layer_norm_groups(name, x, weight, bias, eps, width)
    }

    /// Layer norm of each group of `width` columns; weight, bias [width of x]
    pub fn layer_norm_groups(
        &mut self,
        name: impl Into<String>,
        x: ValueId,
        weight: &Tensor,
        bias: Option<&Tensor>,
        eps: f32,
        width: usize,
    ) -> NodeResult {
        let name = name.into();
        let value = self.input(&name, x)?;
        check_groups(&name, width, value.width)?;
        self.vector(&name, "norm weight", weight, value.width)?;
        if let Some(bias) = bias {
            self.vector(&name, "norm bias", bias, value.width)?;
        }
        let op = Op::LayerNorm { x, weight: weight.clone(), bias: bias.cloned(), eps, width };
        Ok(self.push(name, op, value.rows, value.width))
    }

    /// Matrix multiplication; weight [out, width of x], bias [out] → (rows of x, out)
    pub fn matmul(
        &mut self,
        name: impl Into<String>,
        x: ValueId,
        weight: &Tensor,
        bias: Option<&Tensor>,
    ) -> NodeResult {
        let name = name.into();
        let value = self.input(&name, x)?;
        let [n_out, n_in] = self.matrix(&name, weight)?;
        check(&name, "columns of the weight", value.width, n_in)?;
        if let Some(bias) = bias {
            self.vector(&name, "bias", bias, n_out)?;
        }
        let op = Op::MatMul { x, weight: weight.clone(), bias: bias.cloned() };
        Ok(self.push(name, op, value.rows, n_out))
    }

    /// Rotary embedding; x (tokens, n_heads · head_dim)
    pub fn rope(&mut self, name: impl Into<String>, x: ValueId, rope: &RopeShape) -> NodeResult {
        let name = name.into();
        let value = self.token_input(&name, x)?;
        check_product(&name, "width of x", rope.n_heads, rope.head_dim, value.width)?;
        if rope.n_rot > rope.head_dim || !rope.n_rot.is_multiple_of(2) || rope.n_rot == 0 {
            let expected = format!("even, at most {}", rope.head_dim);
            return Err(KernelError::mismatch(&name, "rotated elements", expected, rope.n_rot));
        }
        check(&name, "inverse frequencies", rope.n_rot / 2, rope.inv_freq.len())?;
        if !rope.axes.is_empty() {
            check(&name, "axes of pairs", rope.n_rot / 2, rope.axes.len())?;
        }
        if let Some(axis) = rope.axes.iter().find(|axis| usize::from(**axis) >= N_COORDINATES) {
            return Err(KernelError::mismatch(&name, "axis", format!("below {N_COORDINATES}"), axis));
        }
        let op = Op::Rope { x, rope: rope.clone() };
        Ok(self.push(name, op, value.rows, value.width))
    }

    /// Position-dependent scale: x · (1 + beta · ln(1 + ⌊position / original_context⌋))
    pub fn position_scale(
        &mut self,
        name: impl Into<String>,
        x: ValueId,
        beta: f32,
        original_context: u32,
    ) -> NodeResult {
        let name = name.into();
        let value = self.token_input(&name, x)?;
        if original_context == 0 {
            return Err(KernelError::mismatch(&name, "original context", "at least 1", 0));
        }
        Ok(self.push(name, Op::PositionScale { x, beta, original_context }, value.rows, value.width))
    }

    /// Stores k, v (tokens, n_kv_heads · head_dim) of KV layer `layer`
    pub fn kv_write(
        &mut self,
        name: impl Into<String>,
        k: ValueId,
        v: ValueId,
        layer: usize,
    ) -> Result<(), KernelError> {
        let name = name.into();
        let Some(layout) = self.kv.layers.get(layer).copied() else {
            return Err(KernelError::mismatch(
                &name,
                "KV layer",
                format!("below {}", self.kv.layers.len()),
                layer,
            ));
        };
        for x in [k, v] {
            let value = self.token_input(&name, x)?;
            check_product(&name, "width of keys or values", layout.n_kv_heads, layout.head_dim, value.width)?;
        }
        if self.kv_devices[layer].is_some() {
            return Err(KernelError::mismatch(&name, "writers of this KV layer", 1, 2));
        }
        self.kv_devices[layer] = Some(self.device);
        self.nodes.push(Node { name, device: self.device, op: Op::KvWrite { k, v, layer }, output: None });
        Ok(())
    }

    /// As `kv_write`, replacing keys and values that nothing needs any more: for texts that are one batch.
    pub fn kv_rewrite(
        &mut self,
        name: impl Into<String>,
        k: ValueId,
        v: ValueId,
        layer: usize,
    ) -> Result<(), KernelError> {
        if let Some(device) = self.kv_devices.get_mut(layer)
            && *device == Some(self.device)
        {
            *device = None;
        }
        self.kv_write(name, k, v, layer)
    }

    /// Attention; q (tokens, n_heads · head_dim) → same shape; sees the keys and values that `kv_write` of the layer stored
    pub fn attention(
        &mut self,
        name: impl Into<String>,
        q: ValueId,
        attention: AttentionShape,
    ) -> NodeResult {
        let name = name.into();
        let value = self.token_input(&name, q)?;
        let a = &attention;
        check_product(&name, "width of q", a.n_heads, a.head_dim, value.width)?;
        let Some(layout) = self.kv.layers.get(a.layer) else {
            let expected = format!("below {}", self.kv.layers.len());
            return Err(KernelError::mismatch(&name, "KV layer", expected, a.layer));
        };
        check(&name, "head size", layout.head_dim, a.head_dim)?;
        check(&name, "KV heads", layout.n_kv_heads, a.n_kv_heads)?;
        if a.n_heads == 0 || !a.n_heads.is_multiple_of(a.n_kv_heads) {
            let expected = format!("a multiple of {}", a.n_kv_heads);
            return Err(KernelError::mismatch(&name, "query heads", expected, a.n_heads));
        }
        if a.window == Some(0) {
            return Err(KernelError::mismatch(&name, "window", "at least 1", 0));
        }
        if let Some(kept) = layout.window
            && a.window.is_none_or(|seen| seen > kept)
        {
            let found = format!("{:?}", a.window);
            return Err(KernelError::mismatch(
                &name,
                "window",
                format!("at most the {kept} that are kept"),
                found,
            ));
        }
        if a.mask == Mask::Bidirectional && layout.window.is_some() {
            let expected = "none where attention looks ahead";
            return Err(KernelError::mismatch(
                &name,
                "window of what is kept",
                expected,
                format!("{:?}", layout.window),
            ));
        }
        if let Some(sinks) = &a.sinks {
            check(&name, "sinks", a.n_heads, sinks.len())?;
        }
        if self.kv_devices[a.layer] != Some(self.device) {
            return Err(KernelError::mismatch(
                &name,
                "KV layer",
                "written before on the same device",
                a.layer,
            ));
        }
        Ok(self.push(name, Op::Attention { q, attention }, value.rows, value.width))
    }

    /// a + b, same shape
    pub fn add(&mut self, name: impl Into<String>, a: ValueId, b: ValueId) -> NodeResult {
        let name = name.into();
        let value = self.same_shape(&name, a, b)?;
        Ok(self.push(name, Op::Add { a, b }, value.rows, value.width))
    }

    /// x · factor
    pub fn scale(&mut self, name: impl Into<String>, x: ValueId, factor: f32) -> NodeResult {
        let name = name.into();
        let value = self.input(&name, x)?;
        Ok(self.push(name, Op::Scale { x, factor }, value.rows, value.width))
    }

    /// Soft cap: cap · tanh(x / cap)
    pub fn softcap(&mut self, name: impl Into<String>, x: ValueId, cap: f32) -> NodeResult {
        let name = name.into();
        let value = self.input(&name, x)?;
        Ok(self.push(name, Op::Softcap { x, cap }, value.rows, value.width))
    }

    /// Nonlinearity: act(x)
    pub fn activate(&mut self, name: impl Into<String>, x: ValueId, act: Activation) -> NodeResult {
        let name = name.into();
        let value = self.input(&name, x)?;
        unary(&name, act)?;
        Ok(self.push(name, Op::Activate { x, act }, value.rows, value.width))
    }

    /// Row gate: σ(gate) · x; gate (rows of x, 1)
    pub fn row_gate(&mut self, name: impl Into<String>, gate: ValueId, x: ValueId) -> NodeResult {
        let name = name.into();
        let (value, gates) = (self.input(&name, x)?, self.input(&name, gate)?);
        check(&name, "width of the gate", 1, gates.width)?;
        if gates.rows != value.rows {
            let found = format!("{:?}", gates.rows);
            return Err(KernelError::mismatch(&name, "rows of the gate", format!("{:?}", value.rows), found));
        }
        Ok(self.push(name, Op::RowGate { gate, x }, value.rows, value.width))
    }

    /// Gated unit: act(gate) · up, same shape
    pub fn glu(
        &mut self,
        name: impl Into<String>,
        gate: ValueId,
        up: ValueId,
        act: Activation,
    ) -> NodeResult {
        let name = name.into();
        let value = self.same_shape(&name, gate, up)?;
        gated(&name, act)?;
        Ok(self.push(name, Op::Glu { gate, up, act }, value.rows, value.width))
    }

    /// Selects the output rows: (tokens, w) → (outputs, w)
    pub fn output_rows(&mut self, name: impl Into<String>, x: ValueId) -> NodeResult {
        let name = name.into();
        let value = self.token_input(&name, x)?;
        Ok(self.push(name, Op::OutputRows { x }, Rows::Outputs, value.width))
    }

    /// Copies `x` to the current device; returns `x` itself if it is there already.
    pub fn copy(&mut self, name: impl Into<String>, x: ValueId) -> NodeResult {
        let value = self.values[x.index()];
        if value.device == self.device {
            return Ok(x);
        }
        Ok(self.push(name.into(), Op::Copy { x }, value.rows, value.width))
    }

    /// Finishes the graph with `output` (outputs, width) as its result.
    /// Errors: no embedding, an output that is not of output rows, a KV layer that nothing writes.
    pub fn finish(self, output: ValueId) -> Result<Graph, KernelError> {
        self.finish_with(output, None)
    }

    fn finish_with(self, output: ValueId, draft: Option<DraftPart>) -> Result<Graph, KernelError> {
        if self.n_vocab_in.is_none() && self.given_width.is_none() {
            return Err(KernelError::mismatch("graph", "embeddings", "at least 1", 0));
        }
        let of_draft = draft.map(|draft| [draft.hidden, draft.output]);
        for output in [output].into_iter().chain(of_draft.into_iter().flatten()) {
            if self.values[output.index()].rows != Rows::Outputs {
                return Err(KernelError::mismatch("graph", "rows of the output", "output rows", "tokens"));
            }
        }
        let kv_devices: Option<Vec<_>> = self.kv_devices.iter().copied().collect();
        let Some(kv_devices) = kv_devices else {
            return Err(KernelError::mismatch(
                "graph",
                "KV layers",
                "all written",
                "one that nothing writes",
            ));
        };
        let state_devices: Option<Vec<_>> = self.state_devices.iter().copied().collect();
        let Some(state_devices) = state_devices else {
            return Err(KernelError::mismatch(
                "graph",
                "recurrent states",
                "all in use",
                "one that nothing uses",
            ));
        };
        Ok(Graph {
            values: self.values,
            nodes: self.nodes,
            kv: self.kv,
            kv_devices,
            state_devices,
            output,
            n_vocab_in: self.n_vocab_in.unwrap_or(1),
            n_positions: self.n_positions,
            n_kinds: self.n_kinds,
            given_width: self.given_width,
            draft,
        })
    }

    fn push(&mut self, name: String, op: Op, rows: Rows, width: usize) -> ValueId {
        let id = ValueId(u32::try_from(self.values.len()).expect("a graph has far fewer than 2^32 values"));
        self.values.push(Value { rows, width, device: self.device });
        self.nodes.push(Node { name, device: self.device, op, output: Some(id) });
        id
    }
}
