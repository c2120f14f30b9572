//! Builds the dispatches of each operation: parameters and operands in the order of its WGSL. This file has the row-wise
//! operations; matrices and sequences have their own.

use super::device::max_lanes;
use super::pipeline::ShaderVariant;
use super::program::{Binding, Extent, ProgramBuilder};
use super::shader;
use crate::error::KernelError;
use crate::graph::{
    Activation, Columns, ExpertChoice, ExpertScoring, GroupScore, Op, RopeShape, RopeStyle, Routing,
    RowMerge, ValueId,
};
use crate::ops::attention::lanes::MAX_HEAD_DIM;
use crate::plan::step::Step;
use crate::tensor::Tensor;

use Binding::Value;

pub(super) type BuildResult = Result<(), KernelError>;

/// The WGSL number of a nonlinearity, and its limit.
pub(super) fn act_words(act: Activation) -> [u32; 2] {
    match act {
        Activation::Identity => [0, 0],
        Activation::Sigmoid => [1, 0],
        Activation::Silu => [2, 0],
        Activation::Gelu => [3, 0],
        Activation::GeluTanh => [4, 0],
        // WGSL has no infinity; a limit of f32::MAX clamps nothing
        Activation::ClampedSwish { limit } => [5, limit.min(f32::MAX).to_bits()],
        Activation::ReluSquared => [6, 0],
        Activation::XIelu { eps, .. } => [7, eps.to_bits()],
    }
}

/// The factors of a nonlinearity of one operand that has some.
fn act_factors(act: Activation) -> [u32; 3] {
    match act {
        Activation::XIelu { alpha_p, alpha_n, beta, .. } => [alpha_p, alpha_n, beta].map(f32::to_bits),
        Activation::Identity
        | Activation::Sigmoid
        | Activation::Silu
        | Activation::Gelu
        | Activation::GeluTanh
        | Activation::ReluSquared
        | Activation::ClampedSwish { .. } => [0; 3],
    }
}

/// The WGSL number of a rotation style; 1: interleaved.
pub(super) fn style_word(style: RopeStyle) -> u32 {
    match style {
        RopeStyle::Interleaved => 1,
        RopeStyle::Half => 0,
    }
}

/// A variant with these definitions.
pub(super) fn defined(defines: &'static [&'static str]) -> ShaderVariant {
    ShaderVariant { defines, ..ShaderVariant::default() }
}

/// (width) norm weight plus offset; 1 without a weight.
pub(super) fn norm_weight(weight: Option<&Tensor>, offset: f32, width: usize) -> Vec<f32> {
    match weight {
        Some(weight) => weight.decode().iter().map(|w| w + offset).collect(),
        None => vec![1.0; width],
    }
}

/// Lanes of a norm over the width of a head, as in `ops/kv_write.wgsl`.
const HEAD_NORM_LANES: u32 = 128;
/// Lanes of a norm over the width of a model: more, since a single row has no other work for them.
const MODEL_NORM_LANES: u32 = 512;
/// The most elements that a lane of a norm holds: those of wider rows are read a second time.
const MAX_NORM_READS: usize = 8;

/// The variant of a norm. Equal widths have equal lanes, and so equal sums.
pub(super) fn norm_variant(limits: &wgpu::Limits, width: usize) -> ShaderVariant {
    let is_narrow = width <= MAX_HEAD_DIM || max_lanes(limits) < MODEL_NORM_LANES;
    let lanes = if is_narrow { HEAD_NORM_LANES } else { MODEL_NORM_LANES };
    let reads = width.div_ceil(lanes as usize).clamp(1, MAX_NORM_READS) as u32;
    ShaderVariant { sizes: vec![("LANES", lanes), ("READS", reads)], ..ShaderVariant::default() }
}

/// The only variant of a shader.
pub(super) fn plain() -> ShaderVariant {
    ShaderVariant::default()
}

impl ProgramBuilder<'_> {
    /// Builds a step, by one fused kernel where there is one.
    pub fn step(&mut self, step: &Step) -> BuildResult {
        match step {
            Step::Node(i) => self.node(*i),
            Step::AddNorm { before: None, add, norm } => self.add_norm(*add, *norm),
            Step::AddNorm { before: Some(before), add, norm } => self.norm_add_norm(*before, *add, *norm),
            Step::RopeKvWrite { norms, q, k, write } => self.rope_kv_write(step, norms, *q, [*k, *write]),
            Step::MatMuls { nodes, glu: Some(glu) } => self.gated(nodes, *glu),
            Step::MatMuls { nodes, glu } | Step::ExpertMatMuls { nodes, glu } => {
                nodes.iter().chain(glu).try_for_each(|i| self.node(*i))
            }
        }
    }

    fn add_norm(&mut self, add: usize, norm: usize) -> BuildResult {
        let nodes = self.graph.nodes();
        let (Op::Add { a, b }, Op::RmsNorm { weight, offset, eps, width, .. }) =
            (&nodes[add].op, &nodes[norm].op)
        else {
            unreachable!("`fuse` pairs an addition with a norm");
        };
        let (Some(sum), Some(out)) = (nodes[add].output, nodes[norm].output) else {
            unreachable!("additions and norms have values");
        };
        let weight = self.vector(&norm_weight(weight.as_ref(), *offset, *width))?;
        let bindings = [Value(*a), Value(*b), weight, Value(sum), Value(out)];
        let extent = Extent::groups(1, self.graph.value(out).rows);
        let variant = norm_variant(&self.gpu.limits, *width);
        self.add(norm, (&shader::ADD_NORM, variant), &[*width as u32, eps.to_bits()], &bindings, extent)
    }

    fn norm_add_norm(&mut self, before: usize, add: usize, norm: usize) -> BuildResult {
        let nodes = self.graph.nodes();
        let (Op::RmsNorm { x, weight: first, offset: first_offset, eps: first_eps, width }, Op::Add { a, b }) =
            (&nodes[before].op, &nodes[add].op)
        else {
            unreachable!("`fuse` joins a norm with an addition");
        };
        let Op::RmsNorm { weight, offset, eps, .. } = &nodes[norm].op else {
            unreachable!("`fuse` pairs an addition with a norm");
        };
        let (Some(sum), Some(out)) = (nodes[add].output, nodes[norm].output) else {
            unreachable!("additions and norms have values");
        };
        let other = if nodes[before].output == Some(*a) { *b } else { *a };
        let weight = self.vector(&norm_weight(weight.as_ref(), *offset, *width))?;
        let first = self.vector(&norm_weight(first.as_ref(), *first_offset, *width))?;
        let bindings = [Value(other), Value(*x), weight, Value(sum), Value(out), first];
        let params = [*width as u32, eps.to_bits(), first_eps.to_bits()];
        let extent = Extent::groups(1, self.graph.value(out).rows);
        let variant = norm_variant(&self.gpu.limits, *width);
        self.add(norm, (&shader::NORM_ADD_NORM, variant), &params, &bindings, extent)
    }

    /// Builds one node.
    pub fn node(&mut self, i: usize) -> BuildResult {
        let graph = self.graph;
        let node = &graph.nodes()[i];
        let Some(out) = node.output else {
            let Op::KvWrite { k, v, layer } = &node.op else {
                unreachable!("all operations but KV writes have a value");
            };
            return self.kv_write(i, [*k, *v], *layer);
        };
        match &node.op {
            Op::Embed { table, scale, by } => self.embed(i, table, *scale, *by, out),
            Op::Given { start, .. } => self.given(i, None, *start, out),
            Op::ReplaceGiven { x, start } => self.given(i, Some(*x), *start, out),
            Op::RmsNorm { x, weight, offset, eps, width } => {
                self.rms_norm(i, *x, &norm_weight(weight.as_ref(), *offset, *width), *eps, out)
            }
            Op::LayerNorm { x, weight, bias, eps, width } => {
                let weight = weight.decode();
                let bias = bias.as_ref().map_or_else(|| vec![0.0; weight.len()], Tensor::decode);
                self.layer_norm(i, *x, [&weight, &bias], (*eps, *width), out)
            }
            Op::MatMul { x, weight, bias } => self.matmul(i, *x, weight, bias.as_ref(), out),
            Op::Rope { x, rope } => self.rope(i, *x, rope, out),
            Op::PositionScale { x, beta, original_context } => {
                let words = [beta.to_bits(), *original_context];
                self.scale(i, *x, &["BY_POSITION"], words, Binding::Rows, out)
            }
            Op::RowGate { gate, x } => self.scale(i, *x, &["BY_GATE"], [0, 1], Value(*gate), out),
            Op::Scale { x, factor } => self.scale(i, *x, &[], [factor.to_bits(), 1], Value(*x), out),
            Op::Attention { q, attention } => self.attention(i, *q, attention, out),
            Op::Add { a, b } => self.elements(i, (&shader::ADD, plain()), &[], [Value(*a), Value(*b)], out),
            Op::Softcap { x, cap } => {
                self.elements(i, (&shader::SOFTCAP, plain()), &[cap.to_bits()], [Value(*x)], out)
            }
            Op::Clamp { x, low, high } => {
                let words = [low.to_bits(), high.to_bits()];
                self.elements(i, (&shader::CLAMP, plain()), &words, [Value(*x)], out)
            }
            Op::Hadamard { x, width } => self.hadamard(i, *x, *width, out),
            Op::Activate { x, act } => self.activate(i, *x, *act, out),
            Op::Glu { gate, up, act } => {
                let operands = [Value(*gate), Value(*up)];
                self.elements(i, (&shader::GLU, plain()), &act_words(*act), operands, out)
            }
            Op::ScaleColumns { .. }
            | Op::Columns { .. }
            | Op::JoinColumns { .. }
            | Op::Mix { .. }
            | Op::RouteAll { .. } => self.on_columns(i, &node.op, out),
            Op::MatchRms { x, of, least } => self.match_rms(i, [*x, *of], *least, out),
            Op::GaussianTopK { x, deviations } => self.gaussian_top_k(i, *x, *deviations, out),
            Op::MoeRoute { logits, routing } => self.route(i, *logits, routing, out),
            Op::ExpertMatMul { x, route, experts } => self.expert_matmul(i, [*x, *route], experts, out),
            Op::ExpertSum { x, route } => {
                let n_used = (graph.value(*route).width / 2) as u32;
                let operands = [Value(*x), Value(*route)];
                self.elements(i, (&shader::EXPERT_SUM, plain()), &[n_used], operands, out)
            }
            Op::ShortConv { x, conv } => self.short_conv(i, *x, conv, out),
            Op::DeltaNet { qkv, beta, alpha, delta } => self.delta_net(i, [*qkv, *beta, *alpha], delta, out),
            Op::Ssm { xbc, dt, ssm } => self.ssm(i, [*xbc, *dt], ssm, out),
            Op::OutputRows { x } => {
                self.elements(i, (&shader::OUTPUT_ROWS, plain()), &[], [Value(*x), Binding::Rows], out)
            }
            Op::MergeRows { x, n, merge } => self.merge_rows(i, *x, *n, *merge, out),
            Op::KvWrite { .. } | Op::Copy { .. } => {
                unreachable!("KV writes have no value; the executor copies")
            }
        }
    }

    fn hadamard(&mut self, i: usize, x: ValueId, width: usize, out: ValueId) -> BuildResult {
        let n_groups = self.graph.value(x).width / width;
        let params = [width as u32, n_groups as u32, (1.0 / (width as f32).sqrt()).to_bits()];
        let extent = Extent::groups(n_groups, self.graph.value(x).rows);
        self.add(i, (&shader::HADAMARD, plain()), &params, &[Value(x), Value(out)], extent)
    }

    fn merge_rows(&mut self, i: usize, x: ValueId, n: usize, merge: RowMerge, out: ValueId) -> BuildResult {
        let variant = match merge {
            RowMerge::Mean => defined(&["MEAN"]),
            RowMerge::Concat => plain(),
        };
        let words = [self.graph.value(x).width, n].map(|n| n as u32);
        self.elements(i, (&shader::MERGE_ROWS, variant), &words, [Value(x), Binding::Rows], out)
    }

    /// Builds an operation that selects, joins or multiplies columns, or makes them.
    fn on_columns(&mut self, i: usize, op: &Op, out: ValueId) -> BuildResult {
        match op {
            Op::ScaleColumns { x, factors } => {
                let factors = self.vector(factors)?;
                self.scale(i, *x, &["BY_COLUMN"], [0, 1], factors, out)
            }
            Op::Columns { x, columns } => self.columns(i, *x, *columns, out),
            Op::JoinColumns { a, b, n_groups } => {
                let [of_a, of_b] = [*a, *b].map(|x| (self.graph.value(x).width / n_groups) as u32);
                let words = [*n_groups as u32, of_a, of_b];
                self.elements(i, (&shader::JOIN_COLUMNS, plain()), &words, [Value(*a), Value(*b)], out)
            }
            Op::Mix { base, x, factors, width } => self.mix(i, [*base, *x], factors, *width, out),
            Op::RouteAll { .. } => self.elements(i, (&shader::ROUTE_ALL, plain()), &[], [], out),
            _ => unreachable!("the caller passes operations on columns"),
        }
    }

    fn given(&mut self, i: usize, x: Option<ValueId>, start: usize, out: ValueId) -> BuildResult {
        let row_len = self.graph.given_width().unwrap_or(0);
        let words = [start, row_len].map(|n| n as u32);
        // without x the kernel does not access the binding
        let (variant, x) = match x {
            Some(x) => (defined(&["REPLACE"]), Value(x)),
            None => (plain(), Binding::Rows),
        };
        self.elements(i, (&shader::GIVEN, variant), &words, [Binding::Rows, x], out)
    }

    /// Adds an element-wise kernel: one lane per element of `out`, whose width is the first parameter.
    pub(super) fn elements<const N: usize>(
        &mut self,
        i: usize,
        shader: (&'static shader::Shader, ShaderVariant),
        words: &[u32],
        operands: [Binding; N],
        out: ValueId,
    ) -> BuildResult {
        let value = *self.graph.value(out);
        let params = [&[value.width as u32], words].concat();
        let bindings: Vec<Binding> = operands.into_iter().chain([Value(out)]).collect();
        self.add(i, shader, &params, &bindings, Extent::elements(value.width, value.rows))
    }

    fn scale(
        &mut self,
        i: usize,
        x: ValueId,
        defines: &'static [&'static str],
        words: [u32; 2],
        by: Binding,
        out: ValueId,
    ) -> BuildResult {
        self.elements(i, (&shader::SCALE, defined(defines)), &words, [Value(x), by], out)
    }

    fn rms_norm(&mut self, i: usize, x: ValueId, weight: &[f32], eps: f32, out: ValueId) -> BuildResult {
        let n_groups = self.graph.value(x).width / weight.len();
        let params = [weight.len() as u32, n_groups as u32, eps.to_bits()];
        let bindings = [Value(x), self.vector(weight)?, Value(out)];
        let extent = Extent::groups(n_groups, self.graph.value(out).rows);
        let variant = norm_variant(&self.gpu.limits, weight.len());
        self.add(i, (&shader::RMS_NORM, variant), &params, &bindings, extent)
    }

    fn layer_norm(
        &mut self,
        i: usize,
        x: ValueId,
        [weight, bias]: [&[f32]; 2],
        (eps, width): (f32, usize),
        out: ValueId,
    ) -> BuildResult {
        let n_groups = weight.len() / width;
        let params = [width as u32, n_groups as u32, eps.to_bits()];
        let bindings = [Value(x), self.vector(weight)?, self.vector(bias)?, Value(out)];
        let extent = Extent::groups(n_groups, self.graph.value(out).rows);
        self.add(i, (&shader::LAYER_NORM, plain()), &params, &bindings, extent)
    }

    fn rope(&mut self, i: usize, x: ValueId, rope: &RopeShape, out: ValueId) -> BuildResult {
        let n_pairs = rope.n_rot / 2;
        let [heads, dim, pairs] = [rope.n_heads, rope.head_dim, n_pairs].map(|n| n as u32);
        let params = [heads, dim, pairs, style_word(rope.style), self.inputs.first_angle(i)];
        let extent = Extent::elements(rope.n_heads * (rope.head_dim - n_pairs), self.graph.value(out).rows);
        self.add(i, (&shader::ROPE, plain()), &params, &[Value(x), Binding::Rows, Value(out)], extent)
    }

    fn activate(&mut self, i: usize, x: ValueId, act: Activation, out: ValueId) -> BuildResult {
        let words = [&act_words(act)[..], &act_factors(act)].concat();
        self.elements(i, (&shader::ACTIVATE, defined(&["MAIN"])), &words, [Value(x)], out)
    }

    fn columns(&mut self, i: usize, x: ValueId, columns: Columns, out: ValueId) -> BuildResult {
        let Columns { n_groups, stride, start, width } = columns;
        let params = [n_groups, stride, start, width].map(|n| n as u32);
        let value = self.graph.value(out);
        let extent = Extent::elements(value.width, value.rows);
        self.add(i, (&shader::COLUMNS, plain()), &params, &[Value(x), Value(out)], extent)
    }

    fn route(&mut self, i: usize, logits: ValueId, routing: &Routing, out: ValueId) -> BuildResult {
        let choice = &routing.choice;
        let factors = self.vector(routing.expert_scale.as_deref().unwrap_or(&[1.0]))?;
        let params = [
            routing.n_experts as u32,
            routing.n_used as u32,
            u32::from(routing.renormalize),
            u32::from(routing.expert_scale.is_some()),
        ];
        let extent = Extent::groups(1, self.graph.value(out).rows);
        if *choice == ExpertChoice::default() {
            let bindings = [Value(logits), factors, Value(out)];
            return self.add(i, (&shader::MOE_ROUTE, plain()), &params, &bindings, extent);
        }
        let (scoring, jitter) = match choice.scoring {
            ExpertScoring::Softmax => (0, 0.0),
            ExpertScoring::Sigmoid => (1, 0.0),
            ExpertScoring::SparseMixer { jitter } => (2, jitter),
        };
        let [n_groups, n_groups_used, top_two] = match choice.groups {
            None => [1, 1, 0],
            Some(groups) => {
                let top_two = u32::from(groups.score == GroupScore::TopTwo);
                [groups.n_groups as u32, groups.n_used as u32, top_two]
            }
        };
        let reals = [jitter, choice.sum_epsilon, choice.scale.unwrap_or(1.0)].map(f32::to_bits);
        let is_biased = u32::from(choice.selection_bias.is_some());
        let more = [&[scoring, is_biased, n_groups, n_groups_used, top_two], &reals[..]].concat();
        let bias = self.vector(choice.selection_bias.as_deref().unwrap_or(&[0.0]))?;
        let bindings = [Value(logits), factors, bias, Value(out)];
        let shader = (&shader::MOE_ROUTE_BY_SCORE, plain());
        self.add(i, shader, &[&params[..], &more].concat(), &bindings, extent)
    }
}
