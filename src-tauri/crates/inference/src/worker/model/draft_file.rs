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
    /// Opens the draft model that is asked for, or returns the notice that it is left out.
    pub fn open(load: &LoadSpec) -> Result<(Option<Self>, Option<Error>)> {
        let Some(draft) = &load.draft else { return Ok((None, None)) };
        let file = match crate::model_file::open(&draft.location) {
            Ok(file) => Arc::new(file),
            Err(error) if load.draft_required => return Err(error),
            Err(error) => return Ok((None, Some(without_draft(&error)))),
        };
        let draft = match engine::arch::is_assistant(&file) {
            true => Self::Assistant(AssistantFile(file)),
            false => Self::Model(file),
        };
        Ok((Some(draft), None))
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

/// A scheduler, with the draft model that is asked for. One that cannot draft for the model is left out, unless it is
/// required; `left_out` gets the reason.
pub(super) fn scheduler_with_draft(
    draft: Option<DraftFile>,
    shares: MemoryShares,
    options: LoadOptions,
    (model, required): (&Model, bool),
    left_out: &mut Option<Error>,
) -> Result<Scheduler> {
    let mut scheduler = Scheduler::new();
    match draft {
        Some(DraftFile::Model(file)) => {
            // the larger model has the GPU's memory
            let devices = if options.devices == Devices::Scalar { Devices::Scalar } else { Devices::Cpu };
            let (vision, draft_block, memory) = (None, DraftBlockUse::Off, shares.draft);
            let options = LoadOptions { devices, vision, draft_block, memory, ..options };
            let loaded = Model::load(file, &options, &mut |_| {});
            match loaded.and_then(|draft| scheduler.draft_with(draft, model)) {
                Ok(()) => {}
                Err(error) if required => return Err(error.into()),
                Err(error) => *left_out = Some(without_draft(&error.into())),
            }
        }
        Some(DraftFile::Assistant(_)) | None => {}
    }
    Ok(scheduler)
}

/// Loads a model with the assistant of the options. Where its layers would be separated from those that it reads, the
/// model is loaded without it; so it is where the assistant is another model's, unless it is `required`. `left_out` gets
/// the reason.
pub(super) fn load_or_without_assistant<T>(
    options: &mut LoadOptions,
    required: bool,
    load: &mut dyn FnMut(&mut LoadOptions) -> Result<T>,
    left_out: &mut Option<Error>,
) -> Result<T> {
    let error = match load(options) {
        Ok(loaded) => return Ok(loaded),
        Err(error) => error,
    };
    match error.code() {
        "model.draft_split" => {}
        "model.draft_target" | "model.draft_vocabulary" if !required => {}
        _ => return Err(error),
    }
    options.assistant = None;
    *left_out = Some(without_draft(&error));
    load(options)
}

/// The notice of a model that was loaded without its draft model.
fn without_draft(reason: &Error) -> Error {
    let message = format!("The model was loaded without the draft model: {}", reason.message());
    Error::new(reason.kind, "model.draft_left_out", message, reason.remedy())
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
    fn an_assistant_that_cannot_draft_is_left_out_with_a_notice() {
        let load_failing = |code: &'static str, required: bool| {
            let file = Arc::new(WeightFile::from_static("starter", crate::starter::bytes()).unwrap());
            let mut options = LoadOptions { assistant: Some(AssistantFile(file)), ..LoadOptions::default() };
            let mut load = |options: &mut LoadOptions| match options.assistant {
                Some(_) => Err(Error::new(ErrorKind::Usage, code, "It failed.", "Try again.")),
                None => Ok(()),
            };
            let mut notice = None;
            let loaded = load_or_without_assistant(&mut options, required, &mut load, &mut notice);
            (loaded.is_ok(), notice.map(|notice| notice.message().to_owned()))
        };
        let left_out = (true, Some("The model was loaded without the draft model: It failed.".to_owned()));
        for required in [false, true] {
            assert_eq!(load_failing("model.draft_split", required), left_out);
            assert_eq!(load_failing("model.memory", required), (false, None));
        }
        for of_another_model in ["model.draft_target", "model.draft_vocabulary"] {
            assert_eq!(load_failing(of_another_model, false), left_out);
            assert_eq!(load_failing(of_another_model, true), (false, None));
        }
    }
}
