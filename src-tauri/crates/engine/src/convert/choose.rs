//! Chooses each tensor's format by measured error: samples of every matrix are encoded in every candidate format, and
//! bits go where they reduce error most per byte.
//!
//! The steps form one sequence from the smallest model to the finest. Error is each tensor's noise-to-signal ratio,
//! independent of the size of its weights.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use weights::quant::presets::{QuantPreset, fitting_dtype};
use weights::{DType, WeightFile};

use super::{ConversionSource, ConversionTarget, Formats, n_cores, quantize};
use crate::error::{EngineError, Result};

/// Candidate formats, smallest first.
const OFFERED: [DType; 6] = [DType::Q2_K, DType::Q3_K, DType::Q4_K, DType::Q5_K, DType::Q6_K, DType::Q8_0];

/// Sampled rows per matrix.
const SAMPLE_ROWS: usize = 48;

/// Bytes that padding may add to a tensor.
const PADDING: u64 = 32;

/// Cost of one format for a tensor.
#[derive(Debug, Clone, Copy)]
struct FormatLevel {
    dtype: DType,
    bytes: u64,
    /// Noise-to-signal ratio, squared.
    error: f64,
}

/// One tensor gets a finer format.
#[derive(Debug, Clone, Copy)]
struct RefinementStep {
    tensor: usize,
    level: FormatLevel,
    extra_bytes: u64,
    /// Error reduction per additional byte.
    gain: f64,
}

/// The sequence of refinements for one model.
pub struct FormatChoice {
    /// Names and coarsest levels of the tensors with a choice.
    tensors: Vec<(String, FormatLevel)>,
    steps: Vec<RefinementStep>,
    /// Bytes of the file with all tensors at their coarsest.
    min_bytes: u64,
}

impl FormatChoice {
    /// Measures a model.
    ///
    /// Errors: those of opening it.
    pub fn measure(file: &WeightFile, threads: Option<usize>) -> Result<Self> {
        let source = ConversionSource::read(file)?;
        let mut targets = source.targets()?;
        // What a mix of block formats keeps in floats has no choice, nor has what is coarser in the source.
        Formats::Mix(QuantPreset::Q8_0).assign(&mut targets, &source.spec)?;
        let has_choice = |target: &ConversionTarget| target.dtype == QuantPreset::Q8_0.base();
        let chosen: Vec<&ConversionTarget> = targets.iter().filter(|target| has_choice(target)).collect();
        let levels = in_parallel(&chosen, threads.unwrap_or_else(n_cores), &|target: &&ConversionTarget| {
            levels(target)
        });
        let tensors: Vec<(String, FormatLevel)> =
            chosen.iter().zip(&levels).map(|(target, levels)| (target.name.clone(), levels[0])).collect();
        let coarsest = tensors.iter().map(|(name, level)| (name.clone(), level.dtype)).collect();
        let min_bytes = super::plan(file, &Formats::Each(coarsest), threads)?.n_bytes();
        let mut steps: Vec<RefinementStep> =
            levels.iter().enumerate().flat_map(|(tensor, levels)| steps(tensor, levels)).collect();
        // Within a tensor, gains fall from step to step, so sorting keeps their order.
        steps.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        Ok(Self { tensors, steps, min_bytes })
    }

    /// Returns the number of steps from the smallest model to the finest.
    pub fn n_steps(&self) -> usize {
        self.steps.len()
    }

    /// Returns the formats after `n_steps` steps.
    pub fn after(&self, n_steps: usize) -> Formats {
        let mut dtypes: Vec<DType> = self.tensors.iter().map(|(_, level)| level.dtype).collect();
        self.steps.iter().take(n_steps).for_each(|step| dtypes[step.tensor] = step.level.dtype);
        self.named(&dtypes)
    }

    /// Returns the finest formats with a file of at most `max_bytes`.
    ///
    /// Errors: `convert.too_small`.
    pub fn within(&self, max_bytes: u64) -> Result<Formats> {
        if self.min_bytes > max_bytes {
            return Err(EngineError::new(
                "convert.too_small",
                format!("the model needs at least {} bytes, but {max_bytes} are allowed", self.min_bytes),
                "Allow more bytes, or choose a smaller model.",
            ));
        }
        let mut left = max_bytes - self.min_bytes;
        let mut dtypes: Vec<DType> = self.tensors.iter().map(|(_, level)| level.dtype).collect();
        let mut stopped = vec![false; dtypes.len()];
        for step in &self.steps {
            // After a step that does not fit, the tensor stays: later steps build on it.
            if stopped[step.tensor] || step.extra_bytes + PADDING > left {
                stopped[step.tensor] = true;
                continue;
            }
            left -= step.extra_bytes + PADDING;
            dtypes[step.tensor] = step.level.dtype;
        }
        Ok(self.named(&dtypes))
    }

    fn named(&self, dtypes: &[DType]) -> Formats {
        let names = self.tensors.iter().map(|(name, _)| name.clone());
        Formats::Each(names.zip(dtypes.iter().copied()).collect::<HashMap<_, _>>())
    }
}

/// Returns the formats worth choosing for a tensor, smallest first: those on the convex hull of bytes and error, with
/// falling gains per byte.
fn levels(target: &ConversionTarget) -> Vec<FormatLevel> {
    let (n_rows, n_cols) = (target.n_rows(), target.n_cols());
    let step = n_rows.div_ceil(SAMPLE_ROWS).max(1);
    let sample: Vec<f32> =
        (0..n_rows).step_by(step).flat_map(|row| target.job.decode(row..row + 1, n_cols)).collect();
    let mut found: Vec<FormatLevel> = Vec::new();
    for offered in OFFERED {
        let dtype = fitting_dtype(offered, n_cols);
        let (_, error) = quantize::encoded(&sample, n_cols, dtype);
        let level = FormatLevel { dtype, bytes: target.n_bytes(dtype), error: error.relative_square() };
        if found.last().is_some_and(|last| last.bytes >= level.bytes || last.error <= level.error) {
            continue;
        }
        while let [.., a, b] = found[..] {
            if gain(&a, &b) >= gain(&b, &level) {
                break;
            }
            found.pop();
        }
        found.push(level);
    }
    found
}

fn gain(from: &FormatLevel, to: &FormatLevel) -> f64 {
    (from.error - to.error) / (to.bytes - from.bytes).max(1) as f64
}

fn steps(tensor: usize, levels: &[FormatLevel]) -> Vec<RefinementStep> {
    let step = |pair: &[FormatLevel]| RefinementStep {
        tensor,
        level: pair[1],
        extra_bytes: pair[1].bytes - pair[0].bytes,
        gain: gain(&pair[0], &pair[1]),
    };
    levels.windows(2).map(step).collect()
}

/// Maps the items on several threads. Results keep the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], threads: usize, work: &(impl Fn(&T) -> R + Sync)) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let share = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return done };
            done.push((index, work(item)));
        }
    };
    let mut all = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads.clamp(1, items.len().max(1))).map(|_| scope.spawn(share)).collect();
        let joined = running.into_iter().map(|thread| thread.join());
        joined
            .flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Vec<_>>()
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice() -> FormatChoice {
        let level = |dtype, bytes, error| FormatLevel { dtype, bytes, error };
        let fine = [level(DType::Q2_K, 100, 0.5), level(DType::Q4_K, 200, 0.1), level(DType::Q8_0, 400, 0.0)];
        let easy = [level(DType::Q2_K, 100, 0.01), level(DType::Q8_0, 400, 0.0)];
        let mut all = [steps(0, &fine), steps(1, &easy)].concat();
        all.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        let tensors = vec![("a".to_owned(), fine[0]), ("b".to_owned(), easy[0])];
        FormatChoice { tensors, steps: all, min_bytes: 1000 }
    }

    fn dtypes(formats: &Formats) -> [DType; 2] {
        let Formats::Each(by_name) = formats else { panic!("a choice names each tensor") };
        [by_name["a"], by_name["b"]]
    }

    #[test]
    fn bits_go_where_they_reduce_error_most() {
        let choice = choice();
        assert_eq!(choice.n_steps(), 3);
        let check = |max, expected| assert_eq!(dtypes(&choice.within(max).unwrap()), expected, "{max}");
        check(1000, [DType::Q2_K, DType::Q2_K]);
        check(1140, [DType::Q4_K, DType::Q2_K]);
        check(1370, [DType::Q8_0, DType::Q2_K]);
        check(2000, [DType::Q8_0, DType::Q8_0]);
        assert_eq!(choice.within(999).unwrap_err().code(), "convert.too_small");
        assert_eq!(dtypes(&choice.after(1)), [DType::Q4_K, DType::Q2_K]);
        assert_eq!(dtypes(&choice.after(9)), [DType::Q8_0, DType::Q8_0]);
    }
}
