//! Results of runs as models: `MODEL+NAME` is a model with its adapter.

use std::path::PathBuf;

use contract::protocol::ModelRef;
use contract::types::{ModelEntry, TuneState};
use contract::{Responder, Result};

use crate::{App, Services};

/// Between a model's id and the name of a run.
const JOINT: char = '+';

/// The model and the run of an id that has both.
pub(super) fn split(id: &str) -> Option<(&str, &str)> {
    id.rsplit_once(JOINT)
}

/// The id of a run's result.
pub(super) fn tuned_id(model: &str, name: &str) -> String {
    format!("{model}{JOINT}{name}")
}

impl App {
    /// The model that an id of a run's result names. None: it names none.
    pub(crate) fn tuned_model(&self, id: &str) -> Result<Option<Responder>> {
        let Some((base, _)) = split(id).filter(|_| self.adapter_of(id).is_some()) else { return Ok(None) };
        Ok(match self.responder(base)? {
            Responder::Local(reference) => {
                Some(Responder::Local(ModelRef { id: id.into(), location: reference.location }))
            }
            Responder::Remote(_) => None,
        })
    }

    /// The folder of the adapter of a run's result. None: the id names none.
    pub(crate) fn adapter_of(&self, id: &str) -> Option<PathBuf> {
        let (base, name) = split(id)?;
        let tune = self.services().tune_info(name).ok()?;
        let is_it = tune.model == base && matches!(tune.state, TuneState::Done { .. });
        is_it.then(|| PathBuf::from(tune.folder))
    }
}

impl Services {
    /// Entries of the results of runs whose models are among `entries`.
    pub(crate) fn tuned_entries(&self, entries: &[ModelEntry]) -> Result<Vec<ModelEntry>> {
        let tunes = self.tune_infos()?;
        let entry = |tune: contract::types::TuneInfo| {
            let id = tune.tuned?;
            let base = entries.iter().find(|entry| entry.id == tune.model)?;
            let name = format!("{} {JOINT} {}", base.name, tune.id);
            Some(ModelEntry { state: self.models.state(&id), id, name, disk_bytes: 0, ..base.clone() })
        };
        Ok(tunes.into_iter().filter_map(entry).collect())
    }
}
