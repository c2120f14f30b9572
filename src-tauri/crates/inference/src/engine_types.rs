//! Converts the engine's types from and to the plain ones of `contract`.

use contract::protocol::{GpuPrecision, Kv, KvFormat, ProbabilityReport, ProbabilityStage};
use contract::types::Finish;
use contract::{
    DraftLength, DraftSource, DrySampling, KvAging, KvLayerGroup, LogitBias, ModelSizes, Result, RopeScaling,
    Sampling, Speculation, TemplateCapabilities, ThinkingSupport,
};
use engine::capabilities::{ModelCapabilities, Thinking};
use engine::kv::requantize::KvRequantize;
use engine::memory_estimate::{KvLayerGroup as EngineLayerGroup, MemoryEstimate};
use engine::sampler::{DrySettings, SequenceBreakers, XtcSettings};
use engine::speculate;
use engine::tokenizer::Tokenizer;
use engine::{KvDType, KvPrecision};

/// A scaling of positions as users write it, such as `yarn:2`. Error `request.rope_scaling`.
pub fn parse_rope_scaling(text: &str) -> Result<RopeScaling> {
    let engine::RopeScaling::Yarn { percent } = engine::RopeScaling::parse(text)?;
    Ok(RopeScaling::Yarn { percent })
}

/// YaRN to `factor` times the trained context. None: no factor that models take.
pub fn yarn(factor: f64) -> Option<RopeScaling> {
    let engine::RopeScaling::Yarn { percent } = engine::RopeScaling::yarn(factor)?;
    Some(RopeScaling::Yarn { percent })
}

/// When contexts age, as users write it: `off`, `pressure` or `after:N`. Error `request.kv_aging`.
pub fn parse_kv_aging(text: &str) -> Result<KvAging> {
    Ok(match text.parse::<KvRequantize>()? {
        KvRequantize::Off => KvAging::Off,
        KvRequantize::Pressure => KvAging::Pressure,
        KvRequantize::After(n) => KvAging::After(n),
    })
}

/// The engine's scaling of positions.
pub fn rope_scaling(scaling: RopeScaling) -> engine::RopeScaling {
    match scaling {
        RopeScaling::Yarn { percent } => engine::RopeScaling::Yarn { percent },
    }
}

/// When the engine requantises old positions.
pub fn kv_aging(aging: KvAging) -> KvRequantize {
    match aging {
        KvAging::Off => KvRequantize::Off,
        KvAging::Pressure => KvRequantize::Pressure,
        KvAging::After(n) => KvRequantize::After(n),
    }
}

/// The probabilities that an answer reports.
pub fn logprobs(report: ProbabilityReport) -> engine::logprobs::LogprobsReport {
    engine::logprobs::LogprobsReport {
        n_top: report.n_alternatives as usize,
        stage: match report.stage {
            ProbabilityStage::BeforeSampling => engine::logprobs::ProbabilityStage::BeforeSampling,
            ProbabilityStage::AfterSampling => engine::logprobs::ProbabilityStage::AfterSampling,
        },
    }
}

/// The precision of keys and values.
pub fn kv_precision(kv: Kv) -> KvPrecision {
    KvPrecision { keys: kv_dtype(kv.keys), values: kv_dtype(kv.values) }
}

fn kv_dtype(format: KvFormat) -> KvDType {
    match format {
        KvFormat::F32 => KvDType::F32,
        KvFormat::F16 => KvDType::F16,
        KvFormat::Q8_0 => KvDType::Q8_0,
        KvFormat::Q4_0 => KvDType::Q4_0,
    }
}

/// The engine's precision of GPU matrix multiplications.
pub fn gpu_precision(precision: GpuPrecision) -> engine::Precision {
    match precision {
        GpuPrecision::Auto => engine::Precision::Auto,
        GpuPrecision::F32 => engine::Precision::F32,
        GpuPrecision::F16 => engine::Precision::F16,
        GpuPrecision::Matrices => engine::Precision::Matrices,
    }
}

/// The engine's sampling; `tokenizer` finds the tokens of texts that end repetitions. A model without one answers nothing.
pub(crate) fn sampling(sampling: &Sampling, tokenizer: Option<&Tokenizer>) -> engine::Sampling {
    let &Sampling { temperature, top_k, top_p, min_p, repeat_penalty, repeat_last_n, seed, .. } = sampling;
    let &Sampling { presence_penalty, frequency_penalty, .. } = sampling;
    let bias = |&LogitBias { token, bias }: &LogitBias| engine::sampler::LogitBias { token, bias };
    engine::Sampling {
        temperature,
        top_k,
        top_p,
        min_p,
        repeat_penalty,
        repeat_last_n,
        presence_penalty,
        frequency_penalty,
        dry: dry(&sampling.dry, tokenizer),
        xtc: XtcSettings { probability: sampling.xtc.probability, threshold: sampling.xtc.threshold },
        logit_bias: sampling.logit_bias.iter().map(bias).collect(),
        seed,
    }
}

fn dry(dry: &DrySampling, tokenizer: Option<&Tokenizer>) -> DrySettings {
    let &DrySampling { multiplier, base, allowed_length, last_n, .. } = dry;
    let settings =
        DrySettings { multiplier, base, allowed_length, last_n, breakers: SequenceBreakers::default() };
    match tokenizer.filter(|_| settings.is_on()) {
        Some(tokenizer) => {
            DrySettings { breakers: SequenceBreakers::new(tokenizer, &dry.sequence_breakers), ..settings }
        }
        None => settings,
    }
}

pub(crate) fn speculation(speculation: Speculation, has_draft_block: bool) -> engine::speculate::Speculation {
    engine::speculate::Speculation {
        source: match speculation.guesses {
            // The draft model that was asked for may be an assistant, which drafts as a block does.
            DraftSource::Lookup | DraftSource::Model if has_draft_block => speculate::DraftSource::Block,
            DraftSource::Lookup => speculate::DraftSource::Lookup,
            DraftSource::Model => speculate::DraftSource::Model,
        },
        length: match speculation.length {
            DraftLength::Paying(n) => engine::speculate::DraftLength::Paying(n),
            DraftLength::Always(n) => engine::speculate::DraftLength::Always(n),
        },
    }
}

pub(crate) fn finish(finish: engine::Finish) -> Finish {
    match finish {
        engine::Finish::Stop => Finish::Stop,
        engine::Finish::Length => Finish::Length,
        engine::Finish::Cancelled => Finish::Cancelled,
        engine::Finish::ContextFull => Finish::ContextFull,
        engine::Finish::TimeUp => Finish::TimeUp,
    }
}

pub(crate) fn model_sizes(sizes: MemoryEstimate) -> ModelSizes {
    let layers = sizes.layers.into_iter();
    ModelSizes {
        weights: sizes.weights,
        read: sizes.read,
        layer_weights: sizes.layer_weights,
        before_layers: sizes.before_layers,
        behind_layers: sizes.behind_layers,
        layers: layers
            .map(|EngineLayerGroup { n, n_kv_heads, head_dim, window }| KvLayerGroup {
                n,
                n_kv_heads,
                head_dim,
                window,
            })
            .collect(),
        state_floats: sizes.state_floats,
        row_floats: sizes.row_floats,
        n_heads: sizes.n_heads,
        head_dim: sizes.head_dim,
        max_rows: sizes.max_rows,
        n_vocab: sizes.n_vocab,
        context_length: sizes.context_length,
        embeds: sizes.embeds,
        vision_weights: sizes.vision_weights,
        vision_activations: sizes.vision_activations,
    }
}

/// The engine's arithmetic over stored sizes.
pub fn engine_sizes(sizes: &ModelSizes) -> MemoryEstimate {
    let layers = sizes.layers.iter();
    MemoryEstimate {
        weights: sizes.weights,
        read: sizes.read.clone(),
        layer_weights: sizes.layer_weights.clone(),
        before_layers: sizes.before_layers,
        behind_layers: sizes.behind_layers,
        layers: layers
            .map(|&KvLayerGroup { n, n_kv_heads, head_dim, window }| EngineLayerGroup {
                n,
                n_kv_heads,
                head_dim,
                window,
            })
            .collect(),
        state_floats: sizes.state_floats,
        row_floats: sizes.row_floats,
        n_heads: sizes.n_heads,
        head_dim: sizes.head_dim,
        max_rows: sizes.max_rows,
        n_vocab: sizes.n_vocab,
        context_length: sizes.context_length,
        embeds: sizes.embeds,
        vision_weights: sizes.vision_weights,
        vision_activations: sizes.vision_activations,
    }
}

pub(crate) fn template_capabilities(skills: ModelCapabilities) -> TemplateCapabilities {
    let thinking = match skills.thinking {
        Thinking::Never => ThinkingSupport::Never,
        Thinking::Always => ThinkingSupport::Always,
        Thinking::Switched => ThinkingSupport::Switched,
        Thinking::Graded => ThinkingSupport::Graded,
    };
    TemplateCapabilities { tools: skills.tools, thinking }
}

#[cfg(test)]
mod tests {
    use engine::kv::requantize::{DEFAULT_REQUANTIZE_AFTER_TOKENS, MIN_EXACT_TOKENS};

    use super::*;

    #[test]
    fn the_contract_names_the_engines_constants() {
        assert_eq!(KvAging::MIN_EXACT_TOKENS, MIN_EXACT_TOKENS);
        assert_eq!(KvAging::DEFAULT_AFTER_TOKENS, DEFAULT_REQUANTIZE_AFTER_TOKENS);
        assert_eq!(DraftLength::DEFAULT_TOKENS, engine::speculate::DEFAULT_DRAFT_TOKENS);
    }

    #[test]
    fn sizes_survive_both_ways_and_as_json() {
        let sizes = MemoryEstimate {
            weights: 3,
            read: [("Q8_0".to_owned(), 2)].into(),
            layers: vec![EngineLayerGroup { n: 1, n_kv_heads: 2, head_dim: 4, window: Some(5) }],
            embeds: true,
            vision_weights: 17,
            vision_activations: 19,
            ..MemoryEstimate::default()
        };
        let plain = model_sizes(sizes.clone());
        assert_eq!(engine_sizes(&plain), sizes);
        assert_eq!(serde_json::to_value(&plain).unwrap(), serde_json::to_value(&sizes).unwrap());
        let skills = ModelCapabilities { tools: true, thinking: Thinking::Graded };
        let plain = serde_json::to_value(template_capabilities(skills)).unwrap();
        assert_eq!(plain, serde_json::to_value(skills).unwrap());
    }
}
