//! Memory estimate of a model from its structure and tensor formats. Loads nothing: a header is enough.
//!
//! Plain data that can be stored. A test holds it within a few percent of what loading plans
//! (`model/memory_plan.rs`).

use std::collections::BTreeMap;
use std::ops::Range;

use kernels::ops::attention::partials;
use kernels::{KvDType, KvLayerLayout, KvLayout, KvPrecision, PAGE_LEN};
use serde::{Deserialize, Serialize};
use weights::WeightFile;

use crate::arch;
use crate::decoder;
use crate::error::Result;
use crate::kv::size::{Geometry, KvBytes};
use crate::model::{DEFAULT_CTX, DEFAULT_MAX_ROWS, FIXED_BYTES, MemoryNeeds, TOKEN_BYTES};
use crate::spec::{ModelSpec, Role};
use crate::vision::TowerBytes;

/// Sizes of one model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryEstimate {
    /// Bytes of all weights as stored.
    pub weights: u64,
    /// Weight bytes that one token reads, by format.
    pub read: BTreeMap<String, u64>,
    /// Weight bytes per layer, in order. Empty if unknown.
    #[serde(default)]
    pub layer_weights: Vec<u64>,
    /// Bytes before the first layer: embedding tables.
    #[serde(default)]
    pub before_layers: u64,
    /// Bytes after the last layer: output norm and matrix, including a tied one, and a draft block.
    #[serde(default)]
    pub behind_layers: u64,
    /// Layers with keys and values, equal ones grouped.
    pub layers: Vec<KvLayerGroup>,
    /// Floats of all recurrent states.
    pub state_floats: u64,
    /// Floats alive at once while one token is computed.
    pub row_floats: u64,
    /// Heads of the widest attention, and their size.
    pub n_heads: usize,
    /// Size of a head of the widest attention.
    pub head_dim: usize,
    /// Rows of one run.
    pub max_rows: usize,
    /// Tokens in the vocabulary.
    pub n_vocab: usize,
    /// Positions the model was trained for.
    pub context_length: usize,
    /// Whether it outputs text embeddings.
    #[serde(default)]
    pub embeds: bool,
    /// Bytes of the vision tower's weights as stored.
    #[serde(default)]
    pub vision_weights: u64,
    /// Bytes of what the tower computes for the largest image.
    #[serde(default)]
    pub vision_activations: u64,
}

/// A number of layers with equal keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvLayerGroup {
    /// Number of layers.
    pub n: usize,
    /// Key-value heads per layer.
    pub n_kv_heads: usize,
    /// Size of a head.
    pub head_dim: usize,
    /// Positions that a query reaches; `None` for full attention.
    pub window: Option<usize>,
}

impl MemoryEstimate {
    /// Estimates a file, with its draft block if it has one: models are loaded with it where it fits.
    ///
    /// Errors: `model.architecture_unknown`, `model.tensor_missing`.
    pub fn of(file: &WeightFile) -> Result<Self> {
        let family = arch::find(file)?;
        let mut spec = arch::spec(file, family)?;
        spec.draft = arch::draft_block(file, family, &spec)?;
        Ok(Self::new(&spec, &arch::stored_tensors(file, family, &spec)?).with_tower(file))
    }

    /// Derives the estimate from a spec and the tensors of its file.
    pub fn new(spec: &ModelSpec, stored: &[arch::StoredTensor]) -> Self {
        let layout = decoder::kv_layout(spec, KvDType::F16.both());
        let attentions = || spec.layers.iter().filter_map(|layer| layer.mixer.attention());
        let mut read = BTreeMap::new();
        for part in stored {
            *read.entry(part.dtype.name().to_owned()).or_insert(0) += read_of(spec, part);
        }
        read.retain(|_, n_bytes| *n_bytes > 0);
        let of = |meant: &dyn Fn(&arch::StoredTensor) -> bool| -> u64 {
            stored.iter().filter(|part| meant(part)).map(|part| part.n_bytes).sum()
        };
        let is_table = |role: Role| {
            matches!(role, Role::TokenEmbedding | Role::PositionEmbedding | Role::PerLayerEmbedding)
        };
        let is_tied = |role: Role| spec.tied_embeddings && role == Role::TokenEmbedding;
        Self {
            layer_weights: (0..spec.layers.len())
                .map(|layer| of(&|part| part.layer == Some(layer)))
                .collect(),
            before_layers: of(&|part| part.layer.is_none() && is_table(part.role)),
            behind_layers: of(&|part| match part.layer {
                None => !is_table(part.role) || is_tied(part.role),
                Some(layer) => layer >= spec.layers.len(), // a draft block
            }),
            weights: stored.iter().map(|part| part.n_bytes).sum(),
            read,
            layers: grouped(&layout.layers),
            state_floats: layout.states.iter().map(|n| *n as u64).sum(),
            row_floats: row_floats(spec),
            n_heads: attentions().map(|a| a.n_heads).max().unwrap_or(0),
            head_dim: attentions().map(|a| a.head_dim).max().unwrap_or(0),
            max_rows: if spec.is_bidirectional() {
                spec.context_length.min(DEFAULT_CTX)
            } else {
                DEFAULT_MAX_ROWS
            },
            n_vocab: spec.n_vocab,
            context_length: spec.context_length,
            embeds: spec.embeds.is_some(),
            vision_weights: 0,
            vision_activations: 0,
        }
    }

    /// Adds the vision tower of a file: the model's own, or its mmproj file.
    #[must_use]
    pub fn with_tower(self, file: &WeightFile) -> Self {
        let TowerBytes { weights, activations } = TowerBytes::of(file);
        Self { vision_weights: weights, vision_activations: activations, ..self }
    }

    /// Adds an assistant, whose weights are loaded behind the last layer. It computes with the model's own context.
    #[must_use]
    pub fn with_assistant(self, assistant: &Self) -> Self {
        Self {
            weights: self.weights + assistant.weights,
            behind_layers: self.behind_layers + assistant.weights,
            ..self
        }
    }

    /// Returns the memory for the model and its draft model, each with one whole context of `n_ctx` tokens, or as many as
    /// the draft model was trained for.
    pub fn needs_with_draft(&self, draft: Option<&Self>, n_ctx: usize, kv: KvPrecision) -> MemoryNeeds {
        let own = self.needs(n_ctx, kv);
        draft.map_or(own, |draft| own + draft.needs(n_ctx.min(draft.context_length), kv))
    }

    /// Returns the memory for the model and one whole context of `n_ctx` tokens.
    pub fn needs(&self, n_ctx: usize, kv: KvPrecision) -> MemoryNeeds {
        let layout = self.layout(kv);
        let geometry = Geometry::new(&layout, n_ctx.max(1), 1, self.max_rows, 0);
        MemoryNeeds {
            weights: self.weights + self.vision_weights,
            context: KvBytes::of(&layout, &geometry).total(),
            activations: self.activations(n_ctx) + self.vision_activations,
            vocabulary: self.n_vocab as u64 * TOKEN_BYTES,
        }
    }

    /// Returns the bytes on a device that computes the first `n_layers`, with one whole context of `n_ctx` tokens.
    /// `None` if layer sizes are unknown.
    pub fn first_layers(&self, n_layers: usize, n_ctx: usize, kv: KvPrecision) -> Option<u64> {
        self.layers_on(0..n_layers, n_ctx, kv)
    }

    /// Returns the bytes on a device that computes these layers. 0 for no layers, `None` if layer sizes are unknown.
    pub fn layers_on(&self, layers: Range<usize>, n_ctx: usize, kv: KvPrecision) -> Option<u64> {
        let weights: u64 = self.layer_weights.get(layers.clone())?.iter().sum();
        let all = self.layer_weights.len();
        if layers.is_empty() {
            return Some(0);
        }
        let needs = self.needs(n_ctx, kv);
        // Layers of different context sizes alternate, so the context is divided evenly.
        let context = (u128::from(needs.context) * layers.len() as u128).div_ceil(all as u128) as u64;
        let before = if layers.start == 0 { self.before_layers } else { 0 };
        let behind = if layers.end == all { self.behind_layers } else { 0 };
        let parts = partials::partials_bytes(self.n_heads, self.head_dim, n_ctx);
        // The tower is computed by the CPU.
        Some(weights + before + behind + context + self.activations(n_ctx) + parts)
    }

    /// Returns how many of the first layers fit into `bytes`. `None` if layer sizes are unknown.
    pub fn layers_within(&self, bytes: u64, n_ctx: usize, kv: KvPrecision) -> Option<usize> {
        let all = self.layer_weights.len();
        if all == 0 {
            return None;
        }
        (0..=all).rev().find(|n| self.first_layers(*n, n_ctx, kv).is_some_and(|taken| taken <= bytes))
    }

    /// Returns the bytes of keys, values and states that a token after `depth` others reads.
    pub fn kv_read(&self, depth: usize, kv: KvPrecision) -> u64 {
        let layers = self.layout(kv).layers.into_iter().map(|layer| {
            let n = layer.window.map_or(depth, |window| depth.min(window)) as u64;
            layer.page_bytes() as u64 * n / PAGE_LEN as u64
        });
        layers.sum::<u64>() + 2 * self.state_floats * size_of::<f32>() as u64
    }

    /// Returns the query-key multiplications of a token after `depth` others, over all layers and heads.
    pub fn attended(&self, depth: usize) -> u64 {
        let of = |kept: &KvLayerGroup| {
            let n_heads = self.n_heads.max(kept.n_kv_heads);
            let n_seen = kept.window.map_or(depth, |window| depth.min(window));
            (kept.n * n_heads * kept.head_dim) as u64 * n_seen as u64
        };
        self.layers.iter().map(of).sum()
    }

    /// Returns the number of layers.
    pub fn n_layers(&self) -> usize {
        match self.layer_weights.len() {
            0 => self.layers.iter().map(|kept| kept.n).sum(),
            n => n,
        }
    }

    /// Returns the longest context with which the model and its draft model fit into `bytes`, at most the model's own, in
    /// whole pages.
    pub fn longest_within(&self, draft: Option<&Self>, bytes: u64, kv: KvPrecision) -> Option<usize> {
        let (mut fits, mut too_long) = (0, self.context_length / PAGE_LEN + 1);
        while too_long - fits > 1 {
            let middle = fits + (too_long - fits) / 2;
            match self.needs_with_draft(draft, middle * PAGE_LEN, kv).total() <= bytes {
                true => fits = middle,
                false => too_long = middle,
            }
        }
        (fits > 0).then_some(fits * PAGE_LEN)
    }

    /// Values of one run, their form for the kernels, one row of logits, attention scratch per thread, plans.
    fn activations(&self, n_ctx: usize) -> u64 {
        let values = self.row_floats * self.max_rows as u64 * size_of::<f32>() as u64;
        let shared = kernels::cpu::shared_attention_bytes(self.n_heads, self.head_dim, n_ctx);
        values + values / 2 + (self.n_vocab * size_of::<f32>()) as u64 + shared + FIXED_BYTES
    }

    /// Rounds head sizes up to whole blocks of the precision. Loading refuses such heads.
    fn layout(&self, precision: KvPrecision) -> KvLayout {
        let of = |kept: &KvLayerGroup| {
            let KvLayerGroup { n, n_kv_heads, head_dim, window } = *kept;
            let head_dim =
                head_dim.next_multiple_of(precision.keys.block_len().max(precision.values.block_len()));
            std::iter::repeat_n(KvLayerLayout { n_kv_heads, head_dim, precision, window }, n)
        };
        let states = Some(usize::try_from(self.state_floats).unwrap_or(usize::MAX)).filter(|n| *n > 0);
        KvLayout {
            page_len: PAGE_LEN,
            layers: self.layers.iter().flat_map(of).collect(),
            states: states.into_iter().collect(),
        }
    }
}

/// Of an untied embedding table one row is read, of experts the chosen ones.
fn read_of(spec: &ModelSpec, part: &arch::StoredTensor) -> u64 {
    match part.role {
        Role::TokenEmbedding if !spec.tied_embeddings => 0,
        Role::PositionEmbedding | Role::PerLayerEmbedding => 0,
        // For each token a draft block writes keys and values; the rest is read when it drafts.
        role if part.layer.is_some_and(|layer| layer >= spec.layers.len()) => match role {
            Role::DraftProjection | Role::Key | Role::Value => part.n_bytes,
            _ => 0,
        },
        role => match part.layer.and_then(|layer| spec.layers.get(layer)?.ffn.experts()) {
            Some(experts) if role.is_routed_matrix() => {
                (u128::from(part.n_bytes) * experts.n_used as u128 / experts.n_experts.max(1) as u128) as u64
            }
            _ => part.n_bytes,
        },
    }
}

fn grouped(layers: &[KvLayerLayout]) -> Vec<KvLayerGroup> {
    let mut groups: Vec<KvLayerGroup> = Vec::new();
    for &KvLayerLayout { n_kv_heads, head_dim, window, .. } in layers {
        let same = |kept: &&mut KvLayerGroup| {
            (kept.n_kv_heads, kept.head_dim, kept.window) == (n_kv_heads, head_dim, window)
        };
        match groups.iter_mut().find(same) {
            Some(kept) => kept.n += 1,
            None => groups.push(KvLayerGroup { n: 1, n_kv_heads, head_dim, window }),
        }
    }
    groups
}

/// The residual stream, its normed copy and the addend, beside the widest part of a layer.
fn row_floats(spec: &ModelSpec) -> u64 {
    let widest = spec.layers.iter().map(|layer| layer.row_floats(spec.d_model)).max().unwrap_or(0);
    let per_layer = spec.embedding.per_layer.map_or(0, |table| table.width * spec.layers.len());
    // Each layer makes new ones of all streams.
    let streams = spec.streams.map_or(0, |altup| 2 * altup.width(spec.d_model));
    (3 * spec.d_model + widest + per_layer + streams) as u64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{LoadOptions, Model};
    use crate::shape::{self, SHAPES};

    /// The header of a shape's file; its tensors have no data.
    fn outlined(name: &str, mix: &str) -> WeightFile {
        shape::outline(&shape::find(name).unwrap(), shape::mix(mix).unwrap()).unwrap()
    }

    #[test]
    fn every_published_shape_has_the_bytes_of_its_published_file() {
        // Megabytes of the published files, and of what a token reads of them.
        for (name, mix, whole, read) in [
            ("llama-3.2-1b", "q4_k_m", 808, 808),
            ("llama-3.1-8b", "q4_k_m", 4921, 4625),
            ("smollm3-3b", "q4_k_m", 1915, 1915),
            ("gpt-oss-20b", "mxfp4_moe", 12_110, 2600),
            ("qwen3.5-4b", "q4_k_m", 2730, 2730),
        ] {
            let sizes = MemoryEstimate::of(&outlined(name, mix)).unwrap();
            let near = |n: u64, expected: u64| n.abs_diff(expected * 1_000_000) * 50 < expected * 1_000_000;
            let n_read: u64 = sizes.read.values().sum();
            assert!(near(sizes.weights, whole), "{name}: {}", sizes.weights);
            assert!(n_read.abs_diff(read * 1_000_000) * 8 < read * 1_000_000, "{name}: {n_read} read");
        }
        for shape in SHAPES {
            assert!(MemoryEstimate::of(&outlined(shape.name, "q8_0")).is_ok(), "{}", shape.name);
        }
    }

    #[test]
    fn context_bytes_follow_the_layers() {
        let llama = MemoryEstimate::of(&outlined("llama-3.1-8b", "q4_k_m")).unwrap();
        assert_eq!(llama.needs(8192, KvDType::F16.both()).context, 8192 * 131_072);
        assert_eq!(llama.needs(8192, KvDType::F32.both()).context, 8192 * 262_144);
        assert_eq!(llama.kv_read(1000, KvDType::F16.both()), 1000 * 131_072);
        assert_eq!((llama.n_layers(), llama.attended(1000)), (32, 1000 * 32 * 32 * 128));
        let gemma = MemoryEstimate::of(&outlined("gemma-3-1b", "q8_0")).unwrap();
        assert_eq!(gemma.attended(1000), 4 * 256 * (4 * 1000 + 22 * 512));
        let of = |n| gemma.needs(n, KvDType::F16.both()).context;
        assert_eq!(
            (of(32_768) - of(16_384)) / 16_384,
            4 * 2 * 256 * 2,
            "four of 26 layers have full attention"
        );
        assert!(gemma.kv_read(32_768, KvDType::F16.both()) < gemma.kv_read(32_768, KvDType::F32.both()));
    }

    #[test]
    fn layers_on_a_gpu_add_up() {
        let sizes = MemoryEstimate::of(&outlined("llama-3.1-8b", "q4_k_m")).unwrap();
        let (n_ctx, kv) = (8192, KvDType::F16.both());
        assert_eq!(sizes.layer_weights.len(), 32);
        let parts = sizes.layer_weights.iter().sum::<u64>() + sizes.before_layers + sizes.behind_layers;
        assert_eq!(parts, sizes.weights, "no embedding is tied there");
        let needs = sizes.needs(n_ctx, kv);
        let all = sizes.first_layers(32, n_ctx, kv).unwrap();
        let parts = partials::partials_bytes(32, 128, n_ctx);
        assert_eq!(all, needs.weights + needs.context + needs.activations + parts);
        assert_eq!(parts, 8 * 32 * 32 * 130 * 4, "of eight rows, by 32 chunks and 32 heads");
        let check = |bytes: u64, expected: usize| {
            assert_eq!(sizes.layers_within(bytes, n_ctx, kv), Some(expected), "{bytes}");
        };
        check(all, 32);
        check(all - 1, 31);
        check(0, 0);
        check(sizes.first_layers(10, n_ctx, kv).unwrap(), 10);
        assert_eq!(sizes.first_layers(33, n_ctx, kv), None);
        let tied = MemoryEstimate::of(&outlined("smollm3-3b", "q4_k_m")).unwrap();
        let parts = tied.layer_weights.iter().sum::<u64>() + tied.before_layers + tied.behind_layers;
        assert!(parts > tied.weights && tied.before_layers > 0, "the table is needed at both ends");
        assert_eq!(MemoryEstimate::default().layers_within(u64::MAX, n_ctx, kv), None);
    }

    #[test]
    fn the_longest_context_just_fits() {
        let sizes = MemoryEstimate::of(&outlined("llama-3.2-1b", "q4_k_m")).unwrap();
        let check = |bytes: u64, expected: Option<usize>| {
            assert_eq!(sizes.longest_within(None, bytes, KvDType::F16.both()), expected, "{bytes}");
        };
        let at = |n| sizes.needs(n, KvDType::F16.both()).total();
        check(at(4096), Some(4096));
        check(at(4096) - 1, Some(4096 - PAGE_LEN));
        check(u64::MAX, Some(131_072));
        check(0, None);
        check(at(PAGE_LEN) - 1, None);
    }

    #[test]
    fn a_draft_model_has_its_own_weights_and_context_and_an_assistant_only_weights() {
        let sizes = MemoryEstimate::of(&outlined("llama-3.1-8b", "q4_k_m")).unwrap();
        let draft = MemoryEstimate::of(&outlined("llama-3.2-1b", "q4_k_m")).unwrap();
        let kv = KvDType::F16.both();
        let (own, of_draft) = (sizes.needs(8192, kv), draft.needs(8192, kv));
        let both = sizes.needs_with_draft(Some(&draft), 8192, kv);
        assert_eq!(both.total(), own.total() + of_draft.total());
        assert_eq!(both.context, 8192 * (131_072 + 32_768));
        let short = MemoryEstimate { context_length: 1024, ..draft.clone() };
        let with_short = sizes.needs_with_draft(Some(&short), 8192, kv);
        assert_eq!(with_short.context, 8192 * 131_072 + 1024 * 32_768, "as long as it was trained for");
        assert_eq!(sizes.longest_within(Some(&draft), both.total(), kv), Some(8192));
        assert_eq!(sizes.longest_within(Some(&draft), both.total() - 1, kv), Some(8192 - PAGE_LEN));
        let assisted = sizes.clone().with_assistant(&draft).needs(8192, kv);
        assert_eq!(assisted, MemoryNeeds { weights: own.weights + draft.weights, ..own });
        let on_gpu = |sizes: &MemoryEstimate| sizes.first_layers(32, 8192, kv).unwrap();
        assert_eq!(on_gpu(&sizes.clone().with_assistant(&draft)) - on_gpu(&sizes), draft.weights);
    }

    /// What a small Gemma 3n needs beside the numbers that every model has.
    const STREAMS: &[&[(&str, shape::ShapeFact)]] =
        &[&[("embedding_length_per_layer_input", shape::ShapeFact::Count(32))]];

    #[test]
    fn loading_plans_about_what_is_estimated() {
        let streams = shape::Shape {
            rope_divisors: shape::RopeDivisors::None,
            more: STREAMS,
            ..shape::tiny("gemma3n", true)
        };
        for shape in [shape::tiny("llama", false), shape::tiny("smollm3", true), streams] {
            let architecture = shape.architecture;
            let shape = shape::Shape { d_ff: 2048, ..shape };
            let mut bytes = Vec::new();
            shape::write(&shape, shape::mix("q8_0").unwrap(), 1, &mut bytes).unwrap();
            let file = WeightFile::from_bytes("tiny", weights::SharedBytes::from_vec(bytes)).unwrap();
            let sizes = MemoryEstimate::of(&file).unwrap();
            let model = Model::load(Arc::new(file), &LoadOptions::default(), &mut |_| {}).unwrap();
            let info = model.info();
            assert_eq!((sizes.weights, sizes.n_vocab), (info.n_weight_bytes, info.n_vocab));
            let context = sizes.needs(512, KvDType::F16.both()).context;
            assert_eq!(context, info.kv_bytes_per_token * 512 + info.kv_fixed_bytes);
            let planned = model.activation_bytes();
            let foretold = sizes.row_floats * sizes.max_rows as u64 * 4;
            assert!(
                foretold.abs_diff(planned) * 4 < planned,
                "{architecture}: {foretold} foretold, {planned} planned"
            );
        }
    }
}
