//! Benchmarks a GPU against the processor on a few layers of a synthetic model. It runs a whole
//! prompt and whole tokens, since bandwidth or arithmetic alone would mislead.

use std::sync::Arc;
use std::time::Duration;

use engine::{Chunk, LoadOptions, LogitsSelection, Model, TokenId};
use io::Clock;
use serde::{Deserialize, Serialize};
use weights::WeightFile;

use contract::{Error, Result};

/// Tokens of a question with what stands before it, and of its answer.
const QUESTION: f64 = 512.0;
const ANSWER: f64 = 256.0;

/// Tokens per measured prompt and answer; rounds repeat until both a minimum count and a minimum
/// time are reached.
const PROMPT: usize = 128;
const TOKENS: usize = 8;
const ROUNDS: usize = 3;
const BUDGET: Duration = Duration::from_millis(300);

/// Seconds, of the measured layers alone: they say which of two is faster, not how fast a model is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Of one token of a prompt.
    pub prompt_s: f64,
    /// Of one token of an answer.
    pub token_s: f64,
}

impl Rates {
    /// Of a question and its answer.
    pub fn turn_s(&self) -> f64 {
        QUESTION * self.prompt_s + ANSWER * self.token_s
    }

    /// Figures that can be compared.
    pub fn is_sound(&self) -> bool {
        [self.prompt_s, self.token_s].iter().all(|s| s.is_finite() && *s > 0.0)
    }
}

/// One race.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Race {
    /// Which processor it was against, on how many threads.
    pub processor: String,
    #[serde(rename = "of_card")]
    pub gpu: Rates,
    #[serde(rename = "of_cpu")]
    pub cpu: Rates,
}

/// As it is shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GpuMeasurement {
    pub name: String,
    pub card: Rates,
    pub processor: Rates,
}

impl Race {
    /// Whether the GPU was faster.
    pub fn is_won(&self) -> bool {
        self.gpu.turn_s() < self.cpu.turn_s()
    }

    pub fn told(&self, name: &str) -> GpuMeasurement {
        GpuMeasurement { name: name.to_owned(), card: self.gpu, processor: self.cpu }
    }
}

/// The processor as the options have it.
pub fn processor(options: &LoadOptions) -> String {
    let name = kernels::devices::describe().map(|cpu| cpu.name).unwrap_or_default();
    let level = options.isa.map_or("", |level| level.name());
    format!("{name}, {level}, {} threads", options.threads.unwrap_or(0))
}

/// Rates of the GPU and of the processor. Errors: a GPU failure, or too little memory.
pub fn run(
    layers: Result<WeightFile>,
    cpu: &LoadOptions,
    card: &LoadOptions,
    clock: &dyn Clock,
) -> Result<(Rates, Rates)> {
    let file = Arc::new(layers?);
    Ok((rates(&file, card, clock)?, rates(&file, cpu, clock)?))
}

fn rates(file: &Arc<WeightFile>, options: &LoadOptions, clock: &dyn Clock) -> Result<Rates> {
    let options = LoadOptions {
        max_sequences: 1,
        ctx: Some(2 * PROMPT),
        resident: None,
        memory: None,
        promote_large_pages: false,
        ..options.clone()
    };
    let mut model = Model::load(Arc::clone(file), &options, &mut |_| {})?;
    if let Some(error) = model.info().fallback_error.clone() {
        return Err(Error::from(error));
    }
    let seq = model.new_sequence()?;
    let prompt: Vec<TokenId> = (0..PROMPT).map(|at| (at % 64) as TokenId).collect();
    let mut best = [Duration::MAX; 2];
    let begin = clock.monotonic();
    for round in 0.. {
        let start = clock.monotonic();
        model.forward(&[Chunk { seq, tokens: &prompt, logits: LogitsSelection::Last }])?;
        let middle = clock.monotonic();
        for token in 0..TOKENS {
            model.forward(&[Chunk { seq, tokens: &[token as TokenId], logits: LogitsSelection::Last }])?;
        }
        let end = clock.monotonic();
        model.truncate(seq, 0)?;
        if let Some(trouble) = model.take_gpu_incident() {
            return Err(Error::from(trouble.error));
        }
        // the first makes what later ones find
        if round > 0 {
            let took = [middle.saturating_sub(start), end.saturating_sub(middle)];
            best = [best[0].min(took[0]), best[1].min(took[1])];
        }
        if round + 1 >= ROUNDS && end.saturating_sub(begin) >= BUDGET {
            break;
        }
    }
    let [prompt, tokens] = best.map(|it| it.as_secs_f64().max(1e-9));
    Ok(Rates { prompt_s: prompt / PROMPT as f64, token_s: tokens / TOKENS as f64 })
}
