//! The draft model of a load: a smaller model of its kind, or an assistant that is part of its target.

use std::sync::Arc;

use contract::protocol::LoadSpec;
use contract::settings::DEFAULT_CONTEXT;
use contract::{Error, Result};
use engine::memory_estimate::MemoryEstimate;
use engine::{AssistantFile, Devices, DraftBlockUse, LoadOptions, Model, Scheduler};
use weights::WeightFile;

use crate::estimate::DraftEstimate;

/// The opened file of a draft model.
pub(super) enum DraftFile {
    /// It is loaded with its target.
    Assistant(AssistantFile),
    /// It runs by itself.
    Model(Arc<WeightFile>),
}

impl DraftFile {
    /// Opens the draft model that is asked for. None: there is none.
    pub fn open(load: &LoadSpec) -> Result<Option<Self>> {
        let Some(draft) = &load.draft else { return Ok(None) };
        let file = Arc::new(crate::model_file::open(&draft.location)?);
        Ok(Some(match engine::arch::is_assistant(&file) {
            true => Self::Assistant(AssistantFile(file)),
            false => Self::Model(file),
        }))
    }

    pub fn len_bytes(&self) -> u64 {
        match self {
            Self::Assistant(AssistantFile(file)) | Self::Model(file) => file.len_bytes(),
        }
    }

    pub fn assistant(&self) -> Option<AssistantFile> {
        match self {
            Self::Assistant(file) => Some(file.clone()),
            Self::Model(_) => None,
        }
    }
}

/// How a bound of memory is divided between a model and the draft model that runs beside it. An assistant is part of the
/// model, and has no share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryShares {
    /// None: there is no bound.
    pub target: Option<u64>,
    draft: Option<u64>,
    /// Bytes of the draft model with one context.
    draft_needs: u64,
}

impl MemoryShares {
    /// Errors: files that no family knows, or that lack tensors.
    pub fn new(draft: Option<&DraftFile>, target: &WeightFile, options: &LoadOptions) -> Result<Self> {
        let Some((DraftFile::Model(file), bound)) = draft.zip(options.memory) else {
            return Ok(Self { target: options.memory, draft: options.memory, draft_needs: 0 });
        };
        let n_ctx = options.ctx.unwrap_or(DEFAULT_CONTEXT as usize);
        let needs = |estimate: &MemoryEstimate| {
            estimate.needs(n_ctx.min(estimate.context_length), options.kv).total()
        };
        let draft_needs = DraftEstimate::of(file)?.separate().map_or(0, needs);
        Ok(Self::of(bound, draft_needs, needs(&MemoryEstimate::of(target)?)))
    }

    /// The target may take all but what the draft model needs. It leaves a quarter of what exceeds its own needs: see
    /// `MemoryPlanInput::plan`.
    fn of(bound: u64, draft_needs: u64, target_needs: u64) -> Self {
        let target = bound.saturating_sub(draft_needs);
        let draft = draft_needs + target.saturating_sub(target_needs) / 4;
        Self { target: Some(target), draft: Some(draft), draft_needs }
    }

    /// Names the draft model in the error of a target that lacks memory beside it.
    pub fn explain(&self, error: Error) -> Error {
        if self.draft_needs == 0 || error.code() != "model.memory" {
            return error;
        }
        let mib = self.draft_needs as f64 / f64::from(1u32 << 20);
        let message = format!("{} The draft model takes another {mib:.1} MiB.", error.message());
        Error::new(error.kind, "model.memory", message, error.remedy())
    }
}

/// A scheduler, with the draft model that is asked for.
pub(super) fn scheduler_with_draft(
    draft: Option<DraftFile>,
    shares: MemoryShares,
    options: LoadOptions,
    model: &Model,
) -> Result<Scheduler> {
    let mut scheduler = Scheduler::new();
    match draft {
        Some(DraftFile::Model(file)) => {
            // the larger model has the GPU's memory
            let devices = if options.devices == Devices::Scalar { Devices::Scalar } else { Devices::Cpu };
            let (vision, draft_block, memory) = (None, DraftBlockUse::Off, shares.draft);
            let options = LoadOptions { devices, vision, draft_block, memory, ..options };
            scheduler.draft_with(Model::load(file, &options, &mut |_| {})?, model)?;
        }
        Some(DraftFile::Assistant(_)) | None => {}
    }
    Ok(scheduler)
}

/// Loads a model with the assistant of the options. Where the assistant's layers would be separated from those that it
/// reads, loads without it and returns why.
pub(super) fn load_or_without_assistant<T>(
    options: &mut LoadOptions,
    load: &mut dyn FnMut(&mut LoadOptions) -> Result<T>,
) -> (Result<T>, Option<Error>) {
    match load(options) {
        Err(error) if error.code() == "model.draft_split" => {
            options.assistant = None;
            (load(options), Some(error))
        }
        loaded => (loaded, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::ErrorKind;

    #[test]
    fn a_bound_of_memory_holds_for_a_model_and_its_draft_model_together() {
        let check = |bound: u64, (draft_needs, target_needs): (u64, u64), expected: (u64, u64)| {
            let shares = MemoryShares::of(bound, draft_needs, target_needs);
            assert_eq!((shares.target, shares.draft), (Some(expected.0), Some(expected.1)), "{bound}");
        };
        check(1000, (200, 400), (800, 300));
        check(600, (200, 400), (400, 200));
        check(500, (200, 400), (300, 200));
        check(100, (200, 400), (0, 200));
        let file = || Arc::new(WeightFile::from_static("starter", crate::starter::bytes()).unwrap());
        let options = LoadOptions { memory: Some(1 << 30), ctx: Some(256), ..LoadOptions::default() };
        let of = |draft: &DraftFile| MemoryShares::new(Some(draft), &file(), &options).unwrap();
        let beside = of(&DraftFile::Model(file()));
        assert!(beside.draft_needs > file().len_bytes() / 2, "{beside:?}");
        assert_eq!(beside.target, Some((1 << 30) - beside.draft_needs));
        let assisted = of(&DraftFile::Assistant(AssistantFile(file())));
        assert_eq!((assisted.target, assisted.draft_needs), (Some(1 << 30), 0));
        let lacking = Error::new(ErrorKind::Limit, "model.memory", "It needs more.", "Take less.");
        assert!(beside.explain(lacking.clone()).message().contains("The draft model takes another"));
        assert_eq!(assisted.explain(lacking.clone()), lacking);
    }

    #[test]
    fn an_assistant_whose_layers_are_separated_is_left_out_with_a_notice() {
        let load_failing = |code: &'static str| {
            let file = Arc::new(WeightFile::from_static("starter", crate::starter::bytes()).unwrap());
            let mut options = LoadOptions { assistant: Some(AssistantFile(file)), ..LoadOptions::default() };
            let mut load = |options: &mut LoadOptions| match options.assistant {
                Some(_) => Err(Error::new(ErrorKind::Usage, code, "It failed.", "Try again.")),
                None => Ok(()),
            };
            let (loaded, notice) = load_or_without_assistant(&mut options, &mut load);
            (loaded.is_ok(), notice.map(|error| error.code().to_owned()))
        };
        assert_eq!(load_failing("model.draft_split"), (true, Some("model.draft_split".into())));
        assert_eq!(load_failing("model.draft_target"), (false, None));
    }
}
