//! Fine-tuning: runs that train an adapter for a model of the library, one at a time, each in its folder.
//!
//! Guarantees that a run survives the end of the application, however it comes: it is paused then.

mod data;
mod models;
mod running;
mod table;

use std::sync::Arc;

use contract::protocol::{Location, ModelRef};
use contract::types::{AppEvent, TuneArgs, TuneDetails, TuneInfo, TunePreview};
use contract::{Error, ErrorKind, Responder, Result};
use engine::train::RunSettings;
use inference::tune::{self, TuneDevice, TuneJob, run_folder};
use platform::calendar;
use weights::WeightFile;

use crate::App;

pub(crate) use table::Tunes;

/// Longest name: it is part of model ids and a folder.
const MAX_NAME_BYTES: usize = 64;

/// A run that was asked for, checked.
struct PlannedTune {
    file: Arc<WeightFile>,
    data: data::TuneText,
    job: TuneJob,
}

impl App {
    /// All runs, the latest first.
    pub fn tunes_list(&self) -> Result<Vec<TuneInfo>> {
        self.services().tune_infos()
    }

    /// A run with all its steps and answers.
    ///
    /// Errors: `tune.not_found`.
    pub fn tune_get(&self, id: &str) -> Result<TuneDetails> {
        let (folder, disk) = (self.services().tune_folder(id)?, &*self.ctx().io);
        let info = self.services().tune_info(id)?;
        Ok(TuneDetails {
            info,
            steps: run_folder::steps(&folder, disk)?,
            answers: run_folder::answers(&folder, disk),
        })
    }

    /// What a run would learn, and what it would take. Nothing is stored. Measures a short step.
    ///
    /// Errors: as `tune_start`.
    pub fn tune_preview(&self, args: &TuneArgs) -> Result<TunePreview> {
        let PlannedTune { file, data, job } = self.planned_tune(args)?;
        let preview = inference::guarded(|| {
            let dataset = tune::read_data(&data.text, &data.file, &file, &job.settings, &job.now)?;
            tune::preview(&file, &dataset, job.settings, &job.device, &*self.ctx().clock)
        })?;
        Ok(TunePreview { chats: data.chats, ..preview })
    }

    /// Starts a run.
    ///
    /// Errors: `tune.*` for a name that is taken, data that cannot be used, and models that cannot be trained;
    /// `tune.busy` while another run goes on.
    pub fn tune_start(&self, args: &TuneArgs) -> Result<TuneInfo> {
        check_name(&args.name)?;
        let services = self.services();
        services.check_no_tune_runs()?;
        let folder = services.tunes_folder().join(&args.name);
        let disk = &*self.ctx().io;
        if disk.exists(&folder)? {
            let message = format!("There is already a fine-tuning run called {}.", args.name);
            return Err(Error::input("tune.name_taken", message, "Choose another name, or remove that run."));
        }
        let PlannedTune { file, data, job } = self.planned_tune(args)?;
        // Faults of the data or the model are reported before anything is stored.
        inference::guarded(|| tune::read_data(&data.text, &data.file, &file, &job.settings, &job.now))?;
        disk.create_dir_all(&folder)?;
        disk.write_atomic(&folder.join(&data.file), data.text.as_bytes())?;
        job.write(&folder, disk)?;
        self.run_tune(&args.name)
    }

    /// Pauses a run. At most the step that it is in is lost. No error if it does not run.
    pub fn tune_pause(&self, id: &str) -> Result<TuneInfo> {
        let services = self.services();
        services.tune_folder(id)?;
        services.tunes.pause(id);
        self.published_tune(id)
    }

    /// Continues a run that was paused or has failed.
    ///
    /// Errors: `tune.complete`, `tune.busy`.
    pub fn tune_resume(&self, id: &str) -> Result<TuneInfo> {
        let services = self.services();
        let folder = services.tune_folder(id)?;
        services.check_no_tune_runs()?;
        if run_folder::report(&folder, &*self.ctx().io)?.is_some() {
            let message = format!("The run {id} is complete.");
            let remedy = "Start a new run with another name.";
            return Err(Error::new(ErrorKind::Conflict, "tune.complete", message, remedy));
        }
        let job = TuneJob::read(&folder, &*self.ctx().io)?;
        if job.is_ending {
            TuneJob { is_ending: false, ..job }.write(&folder, &*self.ctx().io)?;
        }
        self.run_tune(id)
    }

    /// Ends a run now, with what it has learned so far.
    ///
    /// Errors: `tune.nothing_learned` before its first step.
    pub fn tune_stop(&self, id: &str) -> Result<TuneInfo> {
        let services = self.services();
        let (folder, disk) = (services.tune_folder(id)?, &*self.ctx().io);
        services.tunes.pause(id);
        if run_folder::report(&folder, disk)?.is_some() {
            return self.published_tune(id);
        }
        if run_folder::steps(&folder, disk)?.is_empty() {
            let message = format!("The run {id} has not learned anything yet.");
            return Err(Error::input("tune.nothing_learned", message, "Let it do a step, or remove it."));
        }
        let job = TuneJob { is_ending: true, ..TuneJob::read(&folder, disk)? };
        job.write(&folder, disk)?;
        self.run_tune(id)
    }

    /// Deletes a run with its adapter.
    pub fn tune_remove(&self, id: &str) -> Result<()> {
        let services = self.services();
        let (folder, disk) = (services.tune_folder(id)?, &*self.ctx().io);
        // Of a damaged one only the name is known.
        let tuned = services.tune_info(id).ok().and_then(|info| info.tuned);
        services.tunes.pause(id);
        if let Some(model) = &tuned {
            self.ask(contract::protocol::WorkerRequest::Unload { model: model.clone() })?;
        }
        for file in disk.list(&folder)? {
            disk.remove_file(&file)?;
        }
        disk.remove_folder(&folder)?;
        services.tunes.forget(id);
        self.ctx().events.publish(AppEvent::TuneRemoved { id: id.into() });
        if let Some(id) = tuned {
            self.ctx().events.publish(AppEvent::ModelRemoved { id });
        }
        Ok(())
    }

    fn run_tune(&self, id: &str) -> Result<TuneInfo> {
        running::start(self.services(), id)?;
        self.published_tune(id)
    }

    fn published_tune(&self, id: &str) -> Result<TuneInfo> {
        let tune = self.services().tune_info(id)?;
        self.ctx().events.publish(AppEvent::TuneChanged { tune: tune.clone() });
        Ok(tune)
    }

    fn planned_tune(&self, args: &TuneArgs) -> Result<PlannedTune> {
        let location = self.trainable(&args.model)?;
        let usual = RunSettings::default();
        let whole = |asked: Option<u32>, usual: usize| asked.map_or(usual, |n| n as usize);
        let file = Arc::new(inference::guarded(|| inference::model_file::open(&location))?);
        let longest = args.max_tokens.map(|n| n as usize);
        let rank = whole(args.rank, usual.rank);
        let settings = RunSettings {
            rank,
            alpha: args.alpha.unwrap_or(2.0 * rank as f64),
            lr: args.lr.unwrap_or(usual.lr),
            epochs: whole(args.epochs, usual.epochs),
            max_tokens: inference::guarded(|| tune::max_tokens(&file, longest))?,
            step_examples: whole(args.step_examples, usual.step_examples),
            seed: args.seed.unwrap_or(usual.seed),
            ..usual
        };
        let data = self.tune_text(&args.data)?;
        let load = self.load_spec_of(&args.model)?;
        let now_ms = self.ctx().clock.now_utc_ms();
        let job = TuneJob {
            model: args.model.clone(),
            location,
            data: data.file.clone(),
            data_name: data.name.clone(),
            chats: data.chats.as_ref().map(|counts| counts.chats),
            settings,
            device: TuneDevice {
                threads: load.machine.threads,
                backend: load.backend,
                gpus: load.gpus,
                folder: load.machine.folder,
            },
            now: calendar::date_time(now_ms),
            created_ms: now_ms,
            is_ending: false,
        };
        Ok(PlannedTune { file, data, job })
    }

    /// Where a model of the library lies.
    fn trainable(&self, model: &str) -> Result<Location> {
        if models::split(model).is_some_and(|(_, name)| self.services().tune_folder(name).is_ok()) {
            let message = format!("{model} is the result of a fine-tuning run and can't be trained again.");
            return Err(Error::input("tune.tuned", message, "Choose the model that it was made from."));
        }
        match self.responder(model)? {
            Responder::Local(ModelRef { location, .. }) => Ok(location),
            Responder::Remote(reference) => Err(inference::model_file::not_here(&reference.id)),
        }
    }
}

/// Errors: `tune.name`.
fn check_name(name: &str) -> Result<()> {
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.chars().all(is_known) && !name.starts_with('.') {
        return Ok(());
    }
    let message = format!("\"{name}\" can't be the name of a fine-tuning run.");
    let remedy = format!("Use 1 to {MAX_NAME_BYTES} letters of the English alphabet, digits, -, _ and dots.");
    Err(Error::input("tune.name", message, remedy))
}

fn busy(id: &str) -> Error {
    Error::new(
        ErrorKind::Conflict,
        "tune.busy",
        format!("The run {id} is training now. One run at a time uses the whole processor."),
        "Pause it, or wait until it has finished.",
    )
}

fn not_found(id: &str) -> Error {
    let message = format!("There is no fine-tuning run called \"{id}\".");
    Error::not_found("tune.not_found", message, "Open the list of runs again.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folders_and_parts_of_ids() {
        for name in ["pirate", "v1.2_x-Y"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", ".hidden", "a/b", "a+b", "..", "ä", "a b", &"x".repeat(65)] {
            assert_eq!(check_name(name).unwrap_err().code(), "tune.name", "{name}");
        }
    }
}
