//! Memory plan of a model, made before anything is allocated: weights, context, activations, vocabulary.
//!
//! Within a bound, fewer rows run at once and fewer contexts live. What cannot fit is refused, with its numbers and
//! the context that would fit.

use kernels::{Backend, Capacity, DeviceId, Graph};

use super::{DEFAULT_MAX_ROWS, LoadOptions, MAX_OUTPUT_BYTES};
use crate::error::{EngineError, Result};
use crate::kv::requantize::KvRequantize;
use crate::kv::size::{Geometry, KvBytes};
use crate::spec::ModelSpec;
use crate::vision::TowerBytes;

/// Below this, weights would be read for too few prompt tokens.
const MIN_ROWS: usize = 8;

/// Rows of logits within a bound: one token and a few drafted ones.
const MIN_OUTPUTS: usize = 4;

/// Per vocabulary token: text, lookup tables, merge, logit and sampling candidate.
pub(crate) const TOKEN_BYTES: u64 = 160;

/// Plans, page tables, templates and thread scratch of any model.
pub(crate) const FIXED_BYTES: u64 = 512 << 10;

/// Memory a model needs, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryNeeds {
    /// Weights in memory at once.
    pub weights: u64,
    /// One whole context, with windows and states.
    pub context: u64,
    /// Activations of one run.
    pub activations: u64,
    /// Texts, lookup tables, logits and sampling candidates of the vocabulary.
    pub vocabulary: u64,
}

impl MemoryNeeds {
    /// Returns the bytes of all parts.
    pub fn total(&self) -> u64 {
        self.weights + self.context + self.activations + self.vocabulary
    }
}

impl std::ops::Add for MemoryNeeds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            weights: self.weights + other.weights,
            context: self.context + other.context,
            activations: self.activations + other.activations,
            vocabulary: self.vocabulary + other.vocabulary,
        }
    }
}

/// Rows, pages and states that a model is loaded with.
pub(super) struct MemoryPlan {
    pub geometry: Geometry,
    pub capacity: Capacity,
}

/// What the plan is made from.
pub(super) struct MemoryPlanInput<'a> {
    pub graph: &'a Graph,
    pub spec: &'a ModelSpec,
    pub options: &'a LoadOptions,
    pub requantize: KvRequantize,
    pub n_ctx: usize,
    pub n_weight_bytes: u64,
    pub devices: &'a [Box<dyn Backend>],
    /// The vision tower, where the model has one.
    pub tower: TowerBytes,
}

impl MemoryPlanInput<'_> {
    /// Makes the plan.
    ///
    /// Errors: `model.memory` if the bound is too small.
    pub fn plan(&self) -> Result<MemoryPlan> {
        let options = self.options;
        let is_bidirectional = self.spec.is_bidirectional();
        let wanted_rows = match is_bidirectional {
            true => self.n_ctx,
            false => options.max_rows.unwrap_or_else(|| self.default_rows()).max(1),
        };
        let Some(bound) = options.memory else {
            return Ok(self.with_rows(wanted_rows, options.kv_bytes, options.rewind_bytes, wanted_rows));
        };
        let mut rows = wanted_rows;
        loop {
            let needs = self.needs(rows, wanted_rows);
            let left = bound.checked_sub(needs.total());
            // More than half of the remaining memory would go to longer runs.
            if left.is_some_and(|left| needs.activations <= left + needs.context)
                || rows <= MIN_ROWS
                || is_bidirectional
            {
                let left = left.ok_or_else(|| self.memory_error(&needs, bound))?;
                // The rest serves further contexts, rewind points and concurrent requests.
                let contexts = options.kv_bytes.unwrap_or(u64::MAX).min(needs.context + left / 2);
                let rewind_bytes = options.rewind_bytes.min(left / 4);
                let outputs = outputs(rows, wanted_rows);
                return Ok(self.with_rows(rows, Some(contexts), rewind_bytes, outputs));
            }
            rows = (rows / 2).max(MIN_ROWS);
        }
    }

    /// Returns the rows of one run that suit all devices.
    fn default_rows(&self) -> usize {
        let preferred = self.devices.iter().map(|device| device.preferred_rows());
        preferred.map(|rows| rows.unwrap_or(DEFAULT_MAX_ROWS)).min().unwrap_or(DEFAULT_MAX_ROWS)
    }

    fn with_rows(
        &self,
        max_rows: usize,
        kv_bytes: Option<u64>,
        rewind_bytes: u64,
        max_outputs_wanted: usize,
    ) -> MemoryPlan {
        let max_sequences = self.options.max_sequences.max(1);
        let geometry = Geometry::new(self.graph.kv(), self.n_ctx, max_sequences, max_rows, rewind_bytes)
            .with_requantize(self.requantize, self.graph.kv())
            .within(kv_bytes, self.graph.kv());
        let max_outputs = match self.spec.is_bidirectional() {
            true => max_rows,
            false => (MAX_OUTPUT_BYTES / (4 * self.spec.output_width())).clamp(1, max_outputs_wanted),
        };
        MemoryPlan { geometry, capacity: capacity(&geometry, max_rows, max_outputs) }
    }

    /// Returns what the model needs with one context of `n_ctx`.
    fn needs(&self, max_rows: usize, wanted_rows: usize) -> MemoryNeeds {
        let one = self.one(self.n_ctx, max_rows);
        let resident = self.options.resident.map_or(u64::MAX, |resident| resident.n_bytes);
        let outputs = outputs(max_rows, wanted_rows);
        let capacity = capacity(&one, max_rows, outputs);
        let devices = (0..self.devices.len()).map(DeviceId);
        let arena: u64 = devices.map(|device| kernels::arena_bytes(self.graph, device, &capacity)).sum();
        MemoryNeeds {
            weights: self.n_weight_bytes.min(resident) + self.tower.weights,
            context: KvBytes::of(self.graph.kv(), &one).total(),
            // Beside the values themselves: matmul inputs in the form that the kernels expect.
            activations: arena + arena / 2 + self.tower.activations + FIXED_BYTES,
            vocabulary: self.spec.n_vocab as u64 * TOKEN_BYTES,
        }
    }

    fn memory_error(&self, needs: &MemoryNeeds, bound: u64) -> EngineError {
        let MemoryNeeds { weights, context, activations, vocabulary } = *needs;
        let [w, c, a, v, total, bound_text] =
            [weights, context, activations, vocabulary, needs.total(), bound].map(mebibytes);
        let message = format!(
            "the model needs {total} of memory: {w} for weights, {c} for a context of {} tokens, {a} for what is computed \
             and {v} for the vocabulary; there are {bound_text}",
            self.n_ctx
        );
        let without = needs.total() - context;
        let remedy = match self.longest_within(bound.saturating_sub(without)) {
            Some(n) => format!("A context of {n} tokens fits: choose it with --ctx {n} or in the settings."),
            None => format!(
                "Close other programs, give it at least {}, or choose a smaller model.",
                mebibytes(without + self.context_bytes(kernels::PAGE_LEN))
            ),
        };
        EngineError::new("model.memory", message, remedy)
    }

    fn context_bytes(&self, n_ctx: usize) -> u64 {
        KvBytes::of(self.graph.kv(), &self.one(n_ctx, MIN_ROWS)).total()
    }

    /// Geometry of one context without rewind points.
    fn one(&self, n_ctx: usize, max_rows: usize) -> Geometry {
        Geometry::new(self.graph.kv(), n_ctx, 1, max_rows, 0)
            .with_requantize(self.requantize, self.graph.kv())
    }

    /// Returns the longest context within `bytes`, in whole pages.
    fn longest_within(&self, bytes: u64) -> Option<usize> {
        let (mut fits, mut too_long) = (0, self.n_ctx / kernels::PAGE_LEN + 1);
        while too_long - fits > 1 {
            let middle = fits + (too_long - fits) / 2;
            match self.context_bytes(middle * kernels::PAGE_LEN) <= bytes {
                true => fits = middle,
                false => too_long = middle,
            }
        }
        (fits > 0).then_some(fits * kernels::PAGE_LEN)
    }
}

#[cfg(test)]
impl super::Model {
    /// Bytes of the activations of one run with one row of logits.
    pub(crate) fn activation_bytes(&self) -> u64 {
        let capacity = Capacity { max_outputs: 1, ..self.replicas[0].executor.capacity() };
        kernels::arena_bytes(self.graph(), DeviceId(0), &capacity)
    }
}

/// Returns the rows of logits: as many as rows, unless memory is short.
fn outputs(rows: usize, most: usize) -> usize {
    if rows == most { most } else { MIN_OUTPUTS.min(rows) }
}

fn capacity(geometry: &Geometry, max_rows: usize, max_outputs: usize) -> Capacity {
    Capacity {
        n_pages: geometry.n_pages(),
        n_requantized_pages: geometry.n_requantized_pages(),
        n_window_pages: geometry.n_window_pages(),
        max_rows,
        max_outputs,
        n_states: geometry.n_states(),
    }
}

fn mebibytes(n: u64) -> String {
    format!("{:.1} MiB", n as f64 / f64::from(1u32 << 20))
}
