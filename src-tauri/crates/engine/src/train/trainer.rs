//! A model with pairs of matrices in training: losses, gradients and steps.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::time::Duration;

use kernels::backends::BackendOptions;
use kernels::{Interrupt, KvDType};
use weights::{Container, WeightFile};

use super::adapter_file;
use super::lora::{self, LoraPair, LoraShape, PairNames};
use super::optimizer::{self, AdamW, Moments};
use super::pass::{
    GradientSums, MemoryUse, Parameter, PassOptions, ProductPrecision, TrainingBatch, TrainingPass,
};
use super::weight_source::TrainedWeights;
use crate::adapter::{Adapter, AdapterBase};
use crate::arch::{self, ContextFit, Family};
use crate::convert;
use crate::decoder::{self, Placement};
use crate::error::{EngineError, Result};
use crate::spec::ModelSpec;
use crate::tokenizer::TokenId;

#[cfg(test)]
mod tests;

/// Tokens of a training text, and which of them are learned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainingExample {
    /// Token ids.
    pub ids: Vec<TokenId>,
    /// (tokens) whether the token is to be predicted; the first never is.
    pub is_learned: Vec<bool>,
}

impl TrainingExample {
    /// Returns the number of tokens that are predicted.
    pub fn n_learned(&self) -> usize {
        self.is_learned.iter().skip(1).filter(|is_learned| **is_learned).count()
    }
}

/// What a trainer may use.
#[derive(Debug, Clone)]
pub struct TrainerOptions {
    /// Threads. `None`: all cores.
    pub threads: Option<usize>,
    /// Longest text in tokens.
    pub n_ctx: usize,
    /// Bytes of values that one pass may keep; beyond it layers are computed twice.
    pub max_kept_bytes: u64,
    /// Tokens of one pass. A longer text has a pass to itself.
    pub pass_tokens: usize,
    /// Ends a pass early.
    pub interrupt: Option<Interrupt>,
    /// How products with the model's matrices are computed on the CPU. Those of floats are always exact.
    pub precision: ProductPrecision,
    /// The GPU that computes these products, in float32. `None`: the CPU does.
    pub gpu: Option<BackendOptions>,
}

/// Values that a pass may keep on any machine, and at most.
const KEPT_BYTES: RangeInclusive<u64> = 1 << 30..=4 << 30;

/// The part of the free memory that they may take.
const KEPT_SHARE: u64 = 4;

impl TrainerOptions {
    /// Options for a machine with this much free memory. `None`: unknown. What a pass keeps changes its speed, not its
    /// numbers.
    pub fn for_memory(free_bytes: Option<u64>) -> Self {
        let kept = free_bytes.unwrap_or(0) / KEPT_SHARE;
        Self { max_kept_bytes: kept.clamp(*KEPT_BYTES.start(), *KEPT_BYTES.end()), ..Self::default() }
    }
}

impl Default for TrainerOptions {
    fn default() -> Self {
        Self {
            threads: None,
            n_ctx: 2048,
            max_kept_bytes: *KEPT_BYTES.start(),
            pass_tokens: 1024,
            interrupt: None,
            precision: ProductPrecision::default(),
            gpu: None,
        }
    }
}

/// Bytes of a number in training: itself, its copy in the graph, its gradient, two moments, and what is written of it.
const BYTES_PER_PARAMETER: u64 = 8 * 4;

/// A model in training.
pub struct Trainer {
    family: Family,
    file: Arc<WeightFile>,
    spec: ModelSpec,
    pass: TrainingPass,
    pairs: Vec<LoraPair>,
    parameters: Vec<Parameter>,
    gradients: Vec<Parameter>,
    moments: Moments,
    options: TrainerOptions,
}

/// Makes the pairs that a training starts with.
type FirstAdapter<'a> = dyn Fn(&WeightFile, AdapterBase<'_>) -> Result<(Vec<LoraPair>, Vec<Parameter>)> + 'a;

impl Trainer {
    /// Starts with fresh pairs; `seed` determines them.
    ///
    /// Errors: `tune.*` for settings and families that cannot be trained; those of opening a model.
    pub fn start(
        file: Arc<WeightFile>,
        shape: LoraShape,
        seed: u64,
        options: TrainerOptions,
    ) -> Result<Self> {
        lora::check(shape)?;
        Self::open(file, options, &|file, base| {
            let pairs = lora::pairs(file, base, shape);
            let parameters = lora::initial_parameters(&pairs, seed);
            Ok((pairs, parameters))
        })
    }

    /// Continues from an adapter in PEFT's format.
    ///
    /// Errors: `adapter.*` if it is for another model; as for `start`.
    pub fn from_adapter(file: Arc<WeightFile>, adapter: &Adapter, options: TrainerOptions) -> Result<Self> {
        Self::open(file, options, &|file, base| lora::read(file, base, adapter))
    }

    fn open(file: Arc<WeightFile>, options: TrainerOptions, first: &FirstAdapter<'_>) -> Result<Self> {
        let family = arch::find(&file)?;
        check_family(family)?;
        let fit = ContextFit { n_ctx: options.n_ctx, rope_factor: None };
        let spec = arch::spec_for(&file, family, fit)?;
        if spec.embeds.is_some() {
            return Err(unfit("this model yields embeddings, not text"));
        }
        let placed = arch::tensors(&file, family, &spec)?;
        let base = AdapterBase { family, container: file.container(), spec: &spec };
        let (pairs, parameters) = first(&file, base)?;
        let mut source = TrainedWeights::new(&placed, &pairs);
        let placement = Placement::single(spec.layers.len());
        let graph = decoder::build(&spec, &placement, KvDType::F32.both(), &mut source)?;
        let pass_options = PassOptions {
            threads: options.threads,
            interrupt: options.interrupt.clone(),
            precision: options.precision,
            gpu: options.gpu.clone(),
        };
        let pass = TrainingPass::new(Arc::new(graph), &source.trained, &pass_options)?;
        let gradients = parameters.iter().map(|p| vec![0.0; p.len()]).collect();
        let moments = Moments::new(&parameters);
        Ok(Self { family, file, spec, pass, pairs, parameters, gradients, moments, options })
    }

    /// Returns the names of the trained matrices.
    pub fn names(&self) -> Vec<PairNames> {
        self.pairs.iter().map(LoraPair::names).collect()
    }

    /// Returns the name of the GPU that computes products. `None`: the CPU does.
    pub fn gpu_name(&self) -> Option<&str> {
        self.pass.gpu_name()
    }

    /// Lets the GPU go if the CPU computes a product faster.
    ///
    /// Errors: `kernels.*`.
    pub fn keep_faster(&mut self, now: &dyn Fn() -> Duration) -> Result<()> {
        Ok(self.pass.keep_faster(now)?)
    }

    /// Returns why the GPU has failed since the last call. The CPU has gone on.
    pub fn take_gpu_incident(&mut self) -> Option<EngineError> {
        self.pass.take_gpu_incident().map(EngineError::from)
    }

    /// Returns how many numbers are trained.
    pub fn n_parameters(&self) -> usize {
        self.parameters.iter().map(Vec::len).sum()
    }

    /// Returns the numbers in training, A and B of each pair in turn.
    pub(super) fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    pub(super) fn moments(&self) -> &Moments {
        &self.moments
    }

    /// Replaces numbers and moments. Returns whether they fit; if not, nothing has changed.
    pub(super) fn restore(&mut self, parameters: Vec<Parameter>, moments: Moments) -> bool {
        let lengths = |all: &[Parameter]| all.iter().map(Vec::len).collect::<Vec<_>>();
        let fits = [&parameters, &moments.mean, &moments.square]
            .iter()
            .all(|numbers| lengths(numbers) == lengths(&self.parameters));
        if fits {
            (self.parameters, self.moments) = (parameters, moments);
        }
        fits
    }

    /// Returns an upper bound of the bytes that a step needs beside the model's file, if its longest example has `longest`
    /// tokens and all of them together `step_tokens`.
    pub fn peak_bytes(&self, longest: usize, step_tokens: usize) -> u64 {
        let n_rows = longest.max(step_tokens.min(self.options.pass_tokens));
        let kept = self.pass.kept_bytes(n_rows, MemoryUse::KeepAll);
        let peak = match kept <= self.options.max_kept_bytes {
            true => self.pass.peak_bytes(n_rows, MemoryUse::KeepAll),
            // A shorter pass may keep all that is allowed.
            false => self.pass.peak_bytes(n_rows, MemoryUse::RecomputeLayers) + self.options.max_kept_bytes,
        };
        peak + self.n_parameters() as u64 * BYTES_PER_PARAMETER
    }

    /// Returns the number of positions that the model was trained for.
    pub fn context_length(&self) -> usize {
        self.spec.context_length
    }

    /// Returns the mean loss over all learned tokens.
    ///
    /// Errors: `tune.nothing_to_learn`, `tune.token`, `kernels.*`.
    pub fn loss(&mut self, examples: &[TrainingExample]) -> Result<f64> {
        self.check_ids(examples)?;
        let n_learned = n_learned(examples)?;
        let mut loss = 0.0;
        for part in passes(examples, self.options.pass_tokens) {
            let rows = PassRows::of(&examples[part]);
            loss += self.pass.run(&rows.batch(), &self.parameters, None)?;
        }
        Ok(loss / n_learned as f64)
    }

    /// Computes the gradient of the mean loss over all learned tokens. Returns that loss.
    ///
    /// Errors: as for `loss`; `tune.diverged` if it is not finite.
    pub fn compute_gradients(&mut self, examples: &[TrainingExample]) -> Result<f64> {
        self.check_ids(examples)?;
        let n_learned = n_learned(examples)?;
        self.gradients.iter_mut().for_each(|g| g.fill(0.0));
        let mut loss = 0.0;
        for part in passes(examples, self.options.pass_tokens) {
            let rows = PassRows::of(&examples[part]);
            let kept = self.pass.kept_bytes(rows.tokens.len(), MemoryUse::KeepAll);
            let memory = match kept <= self.options.max_kept_bytes {
                true => MemoryUse::KeepAll,
                false => MemoryUse::RecomputeLayers,
            };
            let scale = (1.0 / n_learned as f64) as f32;
            let gradients = GradientSums { sums: &mut self.gradients, scale, memory };
            loss += self.pass.run(&rows.batch(), &self.parameters, Some(gradients))?;
        }
        let loss = loss / n_learned as f64;
        if !loss.is_finite() || !optimizer::norm(&self.gradients).is_finite() {
            return Err(EngineError::new(
                "tune.diverged",
                format!("the loss became {loss}"),
                "Use a smaller learning rate.",
            ));
        }
        Ok(loss)
    }

    /// Errors: `tune.token`.
    fn check_ids(&self, examples: &[TrainingExample]) -> Result<()> {
        let largest = examples.iter().flat_map(|example| &example.ids).max();
        match largest.filter(|id| **id as usize >= self.spec.n_vocab) {
            None => Ok(()),
            Some(id) => Err(EngineError::new(
                "tune.token",
                format!("the model has no token {id}; it has {}", self.spec.n_vocab),
                "Use ids of this model's own vocabulary.",
            )),
        }
    }

    /// Shortens the gradients to a length of `limit`. Returns their length before.
    pub fn clip(&mut self, limit: f64) -> f64 {
        optimizer::clip(&mut self.gradients, limit)
    }

    /// Changes the matrices by one step along the gradients.
    pub fn step(&mut self, adam: &AdamW, lr: f64) {
        adam.step(lr, &mut self.moments, &self.gradients, &mut self.parameters);
    }

    /// Returns the gradients as safetensors with PEFT's names.
    pub fn gradients_file(&self) -> Vec<u8> {
        adapter_file::safetensors(&self.pairs, &self.gradients)
    }

    /// Returns the pairs as a GGUF adapter, which llama.cpp and Inglenook load.
    ///
    /// Errors: `convert.*` if the family's GGUF files cannot be described.
    pub fn gguf_adapter(&self, alpha: f64) -> Result<Vec<u8>> {
        let spec = match self.file.container() {
            Container::Gguf { .. } => self.spec.clone(),
            Container::Safetensors => convert::gguf_spec(&self.file)?,
        };
        adapter_file::gguf((&self.pairs, &self.parameters), self.family, &spec, alpha)
    }

    /// Returns the settings that PEFT keeps beside the matrices.
    pub fn peft_config(&self, shape: LoraShape) -> String {
        let base = self.file.path().file_stem().unwrap_or_default().to_string_lossy();
        adapter_file::peft_config(&self.pairs, shape, &base)
    }

    /// Returns the matrices as safetensors with PEFT's names.
    pub fn weights_file(&self) -> Vec<u8> {
        adapter_file::safetensors(&self.pairs, &self.parameters)
    }
}

/// Errors: `tune.family`, naming those that can be trained.
fn check_family(family: Family) -> Result<()> {
    if family.is_trainable() {
        return Ok(());
    }
    let mut known: Vec<&str> = Vec::new();
    for name in arch::ARCHITECTURES.iter().filter(|a| a.is_trainable()).flat_map(|a| a.hf_names()) {
        known.push(name);
    }
    Err(EngineError::new(
        "tune.family",
        format!("{} models cannot be fine-tuned yet", family.gguf_name()),
        format!("Choose a model of one of these families: {}.", known.join(", ")),
    ))
}

fn unfit(why: &str) -> EngineError {
    EngineError::new("tune.model", why, "Choose a model that answers in text.")
}

/// Errors: `tune.nothing_to_learn`.
fn n_learned(examples: &[TrainingExample]) -> Result<usize> {
    match examples.iter().map(TrainingExample::n_learned).sum() {
        0 => Err(EngineError::new(
            "tune.nothing_to_learn",
            "no token of these examples is to be learned",
            "Add answers of the assistant to the data.",
        )),
        n => Ok(n),
    }
}

/// Examples side by side, in order, as long as they fit into one pass.
fn passes(examples: &[TrainingExample], max_tokens: usize) -> Vec<Range<usize>> {
    let (mut all, mut start, mut n_tokens) = (Vec::new(), 0, 0);
    for (i, example) in examples.iter().enumerate() {
        if i > start && n_tokens + example.ids.len() > max_tokens {
            all.push(start..i);
            (start, n_tokens) = (i, 0);
        }
        n_tokens += example.ids.len();
    }
    all.push(start..examples.len());
    // A pass without a learned token changes nothing.
    all.retain(|part| examples[part.clone()].iter().any(|example| example.n_learned() > 0));
    all
}

/// Examples as rows: row t predicts token t + 1, so that the last token needs none.
struct PassRows {
    tokens: Vec<TokenId>,
    targets: Vec<Option<TokenId>>,
    sequences: Vec<Range<usize>>,
}

impl PassRows {
    fn of(examples: &[TrainingExample]) -> Self {
        let mut rows = Self { tokens: Vec::new(), targets: Vec::new(), sequences: Vec::new() };
        for TrainingExample { ids, is_learned } in examples {
            // Rows after the last learned token change nothing.
            let n = is_learned.iter().rposition(|is_learned| *is_learned).unwrap_or(0);
            if n == 0 {
                continue;
            }
            let start = rows.tokens.len();
            rows.tokens.extend(&ids[..n]);
            let next = ids[1..].iter().zip(&is_learned[1..]).take(n);
            rows.targets.extend(next.map(|(id, is_learned)| is_learned.then_some(*id)));
            rows.sequences.push(start..start + n);
        }
        rows
    }

    fn batch(&self) -> TrainingBatch<'_> {
        TrainingBatch { tokens: &self.tokens, targets: &self.targets, sequences: &self.sequences }
    }
}
