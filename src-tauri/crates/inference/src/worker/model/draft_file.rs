//! The draft model of a load: a smaller model of its kind, or an assistant that is part of its target.

use std::sync::Arc;

use contract::protocol::LoadSpec;
use contract::{Error, Result};
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

    pub fn assistant(&self) -> Option<AssistantFile> {
        match self {
            Self::Assistant(file) => Some(file.clone()),
            Self::Model(_) => None,
        }
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
