//! What a draft model adds to the memory that its target takes.

use std::borrow::Cow;

use engine::arch;
use engine::memory_estimate::MemoryEstimate;
use weights::WeightFile;

use contract::Result;

/// Sizes of a draft model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftEstimate {
    /// Its weights are loaded with those of its target, and it needs no context.
    Assistant(MemoryEstimate),
    /// It runs by itself on the CPU, with a context as long as its target's.
    Model(MemoryEstimate),
}

impl DraftEstimate {
    /// Estimates an opened file, without its vision tower and draft block: a draft model uses neither.
    ///
    /// Errors: as for `MemoryEstimate::of`.
    pub fn of(file: &WeightFile) -> Result<Self> {
        let family = arch::find(file)?;
        let spec = arch::spec(file, family)?;
        let estimate = MemoryEstimate::new(&spec, &arch::stored_tensors(file, family, &spec)?);
        Ok(Self::new(spec.architecture, estimate))
    }

    /// `estimate`: kept of a model of that architecture.
    pub fn new(architecture: &str, estimate: MemoryEstimate) -> Self {
        let estimate = MemoryEstimate { vision_weights: 0, vision_activations: 0, ..estimate };
        match arch::only_drafts(architecture) {
            true => Self::Assistant(estimate),
            false => Self::Model(estimate),
        }
    }

    /// The sizes of a draft model that runs by itself. None: it is part of its target.
    pub fn separate(&self) -> Option<&MemoryEstimate> {
        match self {
            Self::Assistant(_) => None,
            Self::Model(estimate) => Some(estimate),
        }
    }

    /// The sizes of a target with its assistant, where an assistant drafts for it.
    pub fn with_target<'a>(draft: Option<&Self>, target: &'a MemoryEstimate) -> Cow<'a, MemoryEstimate> {
        match draft {
            Some(Self::Assistant(assistant)) => Cow::Owned(target.clone().with_assistant(assistant)),
            Some(Self::Model(_)) | None => Cow::Borrowed(target),
        }
    }
}
