//! Gemma 3n: several residual streams (AltUp), a low-rank branch beside attention (Laurel), sparse gates in the first
//! layers, and per-layer embeddings. The last layers share keys and values with earlier ones.

use kernels::{Activation, RopeStyle};
use weights::Container;
use weights::write::OwnedValue;

use super::hparams::{
    HParamKey, HParams, MAX_FACTOR, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH,
};
use super::tensor_names::TensorName;
use super::{Architecture, gemma, gemma4, keys, llama, rope};
use crate::error::Result;
use crate::spec::{
    AltUp, Attention, Dense, Embedding, Ffn, KvSource, Laurel, LayerSpec, Mixer, ModelSpec, Norm, NormPosition,
    PerLayerEmbedding, PerLayerInput, Role, Rope, Rotary,
};

pub(super) struct Gemma3n;

const N_STREAMS: HParamKey = HParamKey { gguf: "altup.num_inputs", hf: "altup_num_inputs" };
const ACTIVE_STREAM: HParamKey = HParamKey { gguf: "altup.active_idx", hf: "altup_active_idx" };
const LAUREL_RANK: HParamKey = HParamKey { gguf: "", hf: "laurel_rank" };
const N_LAYER_INPUT_ROWS: HParamKey = HParamKey { gguf: "", hf: "vocab_size_per_layer_input" };
/// In a GGUF the number of standard deviations, in a config the share of zeros.
const SPARSITY: (&str, &str) = ("activation_sparsity_scale", "activation_sparsity_pattern");

/// Published models have 4.
const MAX_STREAMS: usize = 64;
const DEFAULT_N_STREAMS: usize = 4;
/// Of files that do not say: interval of layers without a window.
const FULL_INTERVAL: usize = 5;
/// Of files that do not say: the first layers of deeper models are sparse.
const N_SPARSE_LAYERS: usize = 10;
const DEFAULT_SPARSITY: f64 = 0.95;
/// Of GGUFs that do not say, as in llama.cpp: later layers share keys and values.
const N_OWN_KEYS: usize = 20;
/// Of GGUFs that do not say, as in llama.cpp.
const DEFAULT_SOFTCAP: f64 = 30.0;
const DEFAULT_LAUREL_RANK: usize = 64;

impl Architecture for Gemma3n {
    fn gguf_name(&self) -> &'static str {
        "gemma3n"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["gemma3n_text", "gemma3n"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[
            ("num_hidden_layers", 35.0),
            ("hidden_size", 2048.0),
            ("intermediate_size", 16_384.0),
            ("num_attention_heads", 8.0),
            ("num_key_value_heads", 2.0),
            ("head_dim", 256.0),
            ("sliding_window", 512.0),
            ("max_position_embeddings", 32_768.0),
            ("rms_norm_eps", 1e-6),
            ("final_logit_softcapping", 30.0),
            ("num_kv_shared_layers", 15.0),
            ("hidden_size_per_layer_input", 256.0),
            ("vocab_size_per_layer_input", 262_144.0),
            ("altup_num_inputs", 4.0),
            ("altup_active_idx", 0.0),
            ("laurel_rank", 64.0),
        ]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let n_layers = hparams.count(keys::N_LAYERS, MAX_LAYERS)?;
        let d_model = hparams.count(keys::D_MODEL, MAX_WIDTH)?;
        let n_vocab = hparams.n_vocab()?;
        let norm = Norm::rms(hparams.real(keys::RMS_EPS, 0.0, 1.0)? as f32);
        let activation = hparams.activation("hidden_activation", Activation::GeluTanh)?;
        let mixers = attentions(hparams, d_model, n_layers, norm)?;
        let ffns = ffns(hparams, n_layers, activation)?;
        let per_layer = per_layer_embedding(hparams, (n_vocab, d_model), norm)?;
        let laurel = Laurel { rank: laurel_rank(hparams)?, norm };
        let layer = |(attention, ffn): (Attention, Ffn)| LayerSpec {
            norms: NormPosition::Before,
            mixer_norm: norm,
            mixer: Mixer::Attention(attention),
            mixer_post_norm: Some(norm),
            ffn_norm: norm,
            ffn,
            ffn_post_norm: Some(norm),
            per_layer_input: Some(PerLayerInput { width: per_layer.width, activation, norm }),
            output_scale: false,
            residual_scale: None,
            laurel: Some(laurel),
        };
        Ok(ModelSpec {
            architecture: self.gguf_name(),
            n_vocab,
            d_model,
            context_length: hparams.count(keys::CONTEXT, MAX_POSITIONS)?,
            embedding: Embedding {
                scale: (d_model as f32).sqrt(),
                per_layer: Some(per_layer),
                ..Embedding::PLAIN
            },
            layers: mixers.into_iter().zip(ffns).map(layer).collect(),
            output_norm: norm,
            tied_embeddings: hparams.tied_embeddings(true)?,
            output_softcap: output_softcap(hparams)?,
            embeds: None,
            output_scale: None,
            output_bias: false,
            draft: None,
            assistance: None,
            streams: Some(altup(hparams, (n_layers, d_model), norm)?),
        })
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        gemma::tensor_names(container, role)
    }
}

/// The clip of the coefficients (altup_coef_clip) is one of training: it bounds the weights as they are stored.
fn altup(hparams: &HParams<'_>, (n_layers, d_model): (usize, usize), norm: Norm) -> Result<AltUp> {
    let n_streams = hparams.optional_count(N_STREAMS, MAX_STREAMS)?.unwrap_or(DEFAULT_N_STREAMS);
    let active = hparams.optional_unbounded(ACTIVE_STREAM)?.unwrap_or(0);
    let gate_scale = hparams.flag("altup_correct_scale", true)?;
    // Every GGUF multiplies by these.
    for layer in (0..n_layers).filter(|_| !gate_scale) {
        hparams.note_tensor(format!("blk.{layer}.altup_correct_scale.weight"), vec![1.0; d_model]);
    }
    match usize::try_from(active) {
        Ok(active) if active < n_streams => Ok(AltUp {
            n_streams,
            active,
            router_norm: norm,
            router_scale: (d_model as f32).recip(),
            gate_scale,
        }),
        _ => {
            let message = format!("{active} is not below the number of streams, {n_streams}");
            Err(hparams.wrong(&hparams.name(ACTIVE_STREAM), message))
        }
    }
}

/// Reads the width between the projections of the low-rank branch. A GGUF says it by the first of them.
fn laurel_rank(hparams: &HParams<'_>) -> Result<usize> {
    match hparams.is_gguf() {
        true => {
            let n_rows = hparams.n_rows(Role::LaurelDown, Some(0)).unwrap_or(DEFAULT_LAUREL_RANK);
            hparams.bounded("rows of laurel_l.weight", n_rows, MAX_WIDTH)
        }
        false => hparams.count(LAUREL_RANK, MAX_WIDTH),
    }
}

/// Reads the per-layer embedding. Its table may be shorter than the vocabulary: ids of images and sounds are not in it.
fn per_layer_embedding(
    hparams: &HParams<'_>,
    (n_vocab, d_model): (usize, usize),
    norm: Norm,
) -> Result<PerLayerEmbedding> {
    let width = hparams.count(gemma4::LAYER_INPUT_WIDTH, MAX_WIDTH / MAX_LAYERS)?;
    let n_rows = match hparams.is_gguf() {
        true => hparams.n_rows(Role::PerLayerEmbedding, None),
        false => Some(hparams.count(N_LAYER_INPUT_ROWS, MAX_WIDTH * MAX_LAYERS)?),
    };
    let n_rows = n_rows.filter(|n| *n != n_vocab);
    Ok(PerLayerEmbedding { n_rows, ..gemma4::layer_inputs(width, d_model, norm) })
}

fn output_softcap(hparams: &HParams<'_>) -> Result<Option<f32>> {
    let softcap = hparams.optional_real(gemma4::OUTPUT_SOFTCAP, f64::MIN_POSITIVE, MAX_FACTOR)?;
    Ok(softcap.or(hparams.is_gguf().then_some(DEFAULT_SOFTCAP)).map(|cap| cap as f32))
}

/// Reads every layer's attention. All have heads of one kind; windowed ones turn by another base.
fn attentions(hparams: &HParams<'_>, d_model: usize, n_layers: usize, norm: Norm) -> Result<Vec<Attention>> {
    let slides = slides(hparams, n_layers)?;
    let window = hparams.optional_count(keys::WINDOW, MAX_POSITIONS)?;
    let n_shared = match hparams.optional_unbounded(gemma4::N_SHARED_KV)? {
        Some(n) => n,
        None => n_layers.saturating_sub(N_OWN_KEYS) as u64,
    };
    let sources = gemma4::key_sources(hparams, &slides, n_shared)?;
    let heads = llama::AttentionHeads::read_by_layer(hparams, d_model, n_layers)?;
    let qkv_bias = hparams.has_bias("attention_bias", Role::QueryBias)?;
    let out_bias = hparams.has_bias("attention_bias", Role::AttentionOutBias)?;
    let eps = hparams.real(keys::RMS_EPS, 0.0, 1.0)? as f32;
    let full = rope::RopeKind { default_base: 1e6, ..rope::FULL };
    let mut all = Vec::with_capacity(n_layers);
    for ((slides_here, heads), keys) in slides.into_iter().zip(heads).zip(sources) {
        let kind = if slides_here { rope::SLIDING } else { full };
        let rotary = rope::of_kind(hparams, heads.head_dim, &kind)?;
        all.push(Attention {
            scale: 1.0,
            window: window.filter(|_| slides_here),
            qk_norm: Some(norm),
            value_norm: Some(Norm::PlainRms { eps }),
            // Values have a projection of their own in every layer that has keys.
            keys: if keys == KvSource::SharedByValues { KvSource::Projected } else { keys },
            qkv_bias,
            out_bias,
            ..llama::plain_attention(heads, Rope::Rotary(Rotary { style: RopeStyle::Half, ..rotary }))
        });
    }
    note_heads(hparams, &all);
    Ok(all)
}

/// Reads which layers have a window.
fn slides(hparams: &HParams<'_>, n_layers: usize) -> Result<Vec<bool>> {
    if let Some(flags) = hparams.flags_by_layer(gemma4::SLIDING_PATTERN, n_layers)? {
        return Ok(flags);
    }
    let slides: Vec<bool> = match hparams.layer_types(n_layers)? {
        Some(types) => types.into_iter().map(|kind| slides_of(hparams, kind)).collect::<Result<_>>()?,
        None => (1..=n_layers).map(|n| n % FULL_INTERVAL != 0).collect(),
    };
    hparams.note_flags(gemma4::SLIDING_PATTERN, &slides);
    Ok(slides)
}

fn slides_of(hparams: &HParams<'_>, kind: &str) -> Result<bool> {
    match kind {
        "sliding_attention" => Ok(true),
        "full_attention" => Ok(false),
        other => Err(hparams.unsupported(&format!("layers of the type \"{other}\""))),
    }
}

/// Notes the head size twice, as a GGUF has it.
fn note_heads(hparams: &HParams<'_>, attentions: &[Attention]) {
    if let Some(attention) = attentions.first() {
        [keys::HEAD_DIM, keys::VALUE_DIM].into_iter().for_each(|key| hparams.note_count(key, attention.head_dim));
    }
}

/// Reads the feed-forward parts: their widths, and which of them are sparse.
fn ffns(hparams: &HParams<'_>, n_layers: usize, activation: Activation) -> Result<Vec<Ffn>> {
    let widths = hparams.positive_counts_by_layer(keys::D_FF, n_layers, MAX_WIDTH)?;
    let Some(widths) = widths else { return Err(hparams.missing(&hparams.name(keys::D_FF))) };
    hparams.note_counts(keys::D_FF, &widths);
    let deviations = deviations(hparams, n_layers)?;
    hparams.note(SPARSITY.0, OwnedValue::F32s(deviations.clone()));
    let ffn = |(d_ff, deviations): (usize, f32)| {
        let dense = Dense { d_ff, activation, bias: false };
        match deviations == f32::NEG_INFINITY {
            true => Ffn::Gated(dense),
            false => Ffn::Sparse { dense, deviations },
        }
    };
    Ok(widths.into_iter().zip(deviations).map(ffn).collect())
}

/// Reads how many standard deviations above the mean the gates of each layer begin. −∞: they are not sparse.
fn deviations(hparams: &HParams<'_>, n_layers: usize) -> Result<Vec<f32>> {
    let by_default = |layer: usize| match n_layers > N_SPARSE_LAYERS && layer < N_SPARSE_LAYERS {
        true => DEFAULT_SPARSITY,
        false => 0.0,
    };
    let shares = match hparams.value(SPARSITY.1) {
        Some(pattern) => shares(hparams, pattern, n_layers)?,
        None if hparams.is_gguf() => {
            let key = hparams.name(HParamKey { gguf: SPARSITY.0, hf: "" });
            if let Some(deviations) = hparams.global_reals(&key, n_layers)? {
                return match deviations.iter().find(|x| x.is_nan() || **x == f32::INFINITY) {
                    Some(bad) => Err(hparams.wrong(&key, format!("{bad} is no number of standard deviations"))),
                    None => Ok(deviations),
                };
            }
            (0..n_layers).map(by_default).collect()
        }
        None => (0..n_layers).map(by_default).collect(),
    };
    Ok(shares.into_iter().map(deviations_of).collect())
}

/// Reads the share of zeros in each layer.
fn shares(hparams: &HParams<'_>, pattern: &serde_json::Value, n_layers: usize) -> Result<Vec<f64>> {
    let list = pattern.as_array().filter(|list| list.len() == n_layers);
    let Some(list) = list else {
        return Err(hparams.wrong(SPARSITY.1, format!("it is not a list of {n_layers} numbers")));
    };
    let share = |value: &serde_json::Value| match value.as_f64() {
        Some(share) if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err(hparams.wrong(SPARSITY.1, format!("{value} is no share from 0 to below 1"))),
    };
    list.iter().map(share).collect()
}

/// Returns the standard deviations below which that share of a normal distribution is. −∞ for none of it.
fn deviations_of(share: f64) -> f32 {
    /// Beyond it the distribution has nothing that a double could show.
    const END: f64 = 40.0;
    if share == 0.0 {
        return f32::NEG_INFINITY;
    }
    let (mut low, mut high) = (-END, END);
    // Halves the interval until its ends are neighbors.
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle as f32;
        }
        match 0.5 * libm::erfc(-middle * std::f64::consts::FRAC_1_SQRT_2) < share {
            true => low = middle,
            false => high = middle,
        }
    }
}

#[cfg(test)]
mod tests {
    use weights::quant::presets::QuantPreset;
    use weights::write::GgufWriter;
    use weights::{SharedBytes, WeightFile};

    use super::*;
    use crate::arch;
    use crate::shape::{RopeDivisors, Shape, ShapeFact, tiny, writer};

    /// Nine layers, the last three of which share keys and values.
    fn small() -> GgufWriter {
        let shape = Shape {
            rope_divisors: RopeDivisors::None,
            more: &[&[
                ("embedding_length_per_layer_input", ShapeFact::Count(32)),
                ("attention.shared_kv_layers", ShapeFact::Count(3)),
            ]],
            ..tiny("gemma3n", true)
        };
        writer(&shape, QuantPreset::F32, 1).unwrap()
    }

    fn read(writer: &GgufWriter) -> Result<ModelSpec> {
        let file = WeightFile::from_bytes("tiny", SharedBytes::from_vec(writer.to_bytes()))?;
        let family = arch::find(&file)?;
        let spec = arch::spec(&file, family)?;
        arch::tensors(&file, family, &spec)?;
        Ok(spec)
    }

    fn with(key: &str, value: OwnedValue) -> Result<ModelSpec> {
        read(small().set(&format!("gemma3n.{key}"), value))
    }

    fn deviations_in(spec: &ModelSpec) -> Vec<Option<f32>> {
        let of = |layer: &LayerSpec| match layer.ffn {
            Ffn::Sparse { deviations, .. } => Some(deviations),
            _ => None,
        };
        spec.layers.iter().map(of).collect()
    }

    #[test]
    fn layers_share_keys_with_the_last_of_their_kind_that_has_some() {
        let spec = read(&small()).unwrap();
        let attention = |layer: usize| spec.layers[layer].mixer.attention().unwrap();
        let windows: Vec<bool> = (0..9).map(|layer| attention(layer).window.is_some()).collect();
        // the tiny shape has no window
        assert_eq!(windows, [false; 9]);
        let keys: Vec<KvSource> = (4..9).map(|layer| attention(layer).keys).collect();
        assert_eq!(keys[..2], [KvSource::Projected; 2]);
        assert_eq!(keys[2..], [KvSource::OfLayer(5); 3]);
        assert_eq!(attention(0).scale, 1.0);
        let altup = spec.streams.unwrap();
        assert_eq!((altup.n_streams, altup.active, altup.gate_scale), (4, 0, true));
    }

    #[test]
    fn sparsity_is_a_number_of_deviations_in_each_layer() {
        assert_eq!(deviations_in(&read(&small()).unwrap()), [None; 9], "too few layers for a default");
        let (no, inf) = (f32::NEG_INFINITY, f32::INFINITY);
        let given = vec![1.5, no, -0.5, no, no, no, no, no, no];
        let spec = with("activation_sparsity_scale", OwnedValue::F32s(given)).unwrap();
        let expected = [Some(1.5), None, Some(-0.5), None, None, None, None, None, None];
        assert_eq!(deviations_in(&spec), expected);
        for wrong in [vec![1.5; 8], vec![1.5; 10], vec![f32::NAN; 9], [vec![inf], vec![no; 8]].concat()] {
            let error = with("activation_sparsity_scale", OwnedValue::F32s(wrong.clone())).unwrap_err();
            assert_eq!(error.code(), "model.hyperparameter", "{wrong:?}: {error}");
            assert!(error.to_string().contains("gemma3n.activation_sparsity_scale"), "{error}");
        }
    }

    #[test]
    fn wrong_numbers_are_named() {
        let cases = [
            ("altup.active_idx", 4, "model.hyperparameter"),
            ("altup.active_idx", u32::MAX, "model.hyperparameter"),
            ("altup.num_inputs", 0, "model.hyperparameter"),
            ("altup.num_inputs", 65, "model.hyperparameter"),
            ("altup.num_inputs", 5, "model.tensor_shape"),
            ("attention.shared_kv_layers", 9, "model.hyperparameter"),
            ("embedding_length_per_layer_input", 0, "model.hyperparameter"),
            ("embedding_length_per_layer_input", 33, "model.tensor_shape"),
        ];
        for (key, value, code) in cases {
            let error = with(key, OwnedValue::U32(value)).unwrap_err();
            assert_eq!(error.code(), code, "{key} = {value}: {error}");
            assert!(!error.remedy().is_empty());
        }
        assert!(with("altup.active_idx", OwnedValue::U32(3)).is_ok());
        // only the last layer has no window, and it would take the keys of another
        let pattern = OwnedValue::Bools([vec![true; 8], vec![false]].concat());
        let error = with("attention.sliding_window_pattern", pattern).unwrap_err();
        assert!(error.to_string().contains("no earlier layer of its kind"), "{error}");
    }

    /// Quantiles from printed tables, and from torch.distributions for the published models' share.
    #[test]
    fn shares_become_standard_deviations() {
        let table = [
            (0.95, 1.644_853_6),
            (0.975, 1.959_964),
            (0.9, 1.281_551_6),
            (0.5, 0.0),
            (0.1, -1.281_551_6),
            (0.999, 3.090_232_3),
            (1e-9, -5.997_807),
        ];
        for (share, expected) in table {
            let found = deviations_of(share);
            assert!((found - expected).abs() < 1e-6, "{share}: {found}");
        }
        assert_eq!(deviations_of(0.0), f32::NEG_INFINITY);
    }
}
