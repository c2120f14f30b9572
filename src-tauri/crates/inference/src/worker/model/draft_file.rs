//! The draft model of a load: a smaller model of its kind, or an assistant that is part of its target.

use std::sync::Arc;

use contract::Result;
use contract::protocol::LoadSpec;
use engine::{AssistantFile, Devices, DraftBlockUse, LoadOptions, Model, Scheduler};
use weights::WeightFile;

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
}

/// A scheduler, with the draft model that is asked for.
pub(super) fn scheduler_with_draft(
    draft: Option<DraftFile>,
    options: LoadOptions,
    model: &Model,
) -> Result<Scheduler> {
    let mut scheduler = Scheduler::new();
    match draft {
        Some(DraftFile::Model(file)) => {
            // the larger model has the GPU's memory
            let devices = if options.devices == Devices::Scalar { Devices::Scalar } else { Devices::Cpu };
            let options = LoadOptions { devices, vision: None, draft_block: DraftBlockUse::Off, ..options };
            scheduler.draft_with(Model::load(file, &options, &mut |_| {})?, model)?;
        }
        Some(DraftFile::Assistant(_)) | None => {}
    }
    Ok(scheduler)
}
