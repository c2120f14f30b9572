//! Where the time of the last answer went: measured only while switched on, kept in memory alone.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::App;
use contract::protocol::MeasuredAnswer;
use contract::types::{ExportedFile, ProfileInfo};
use contract::{Error, Result};

const FILE_NAME: &str = "inglenook-trace.json";

/// Whether answers are measured, and the measurements of the last one.
#[derive(Default)]
pub(crate) struct Profiling {
    profile: Mutex<LastProfile>,
}

#[derive(Default)]
struct LastProfile {
    is_on: bool,
    answer: Option<MeasuredAnswer>,
}

impl Profiling {
    fn lock(&self) -> MutexGuard<'_, LastProfile> {
        self.profile.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the measurements of an answer.
    pub fn keep(&self, measured: MeasuredAnswer) {
        self.lock().answer = Some(measured);
    }

    fn info(&self) -> ProfileInfo {
        let profile = self.lock();
        let answer = profile.answer.as_ref().map(|measured| measured.answer.clone());
        ProfileInfo { is_on: profile.is_on, answer }
    }
}

impl App {
    pub fn profile(&self) -> ProfileInfo {
        self.services().profiling.info()
    }

    /// From the next answer on; one that is being written stays as it is. What was found goes when it is switched off.
    pub fn profile_switch(&self, on: bool) -> ProfileInfo {
        let profiling = &self.services().profiling;
        {
            let mut profile = profiling.lock();
            profile.is_on = on;
            profile.answer.take_if(|_| !on);
        }
        profiling.info()
    }

    /// Exports the timeline of the last measured answer: as text, or (with a path) as a file that
    /// is written completely or not at all.
    pub fn profile_trace(&self, path: Option<&str>) -> Result<ExportedFile> {
        let trace = self.services().profiling.lock().answer.as_ref().map(|measured| measured.trace.clone());
        let text = trace.ok_or_else(|| {
            let message = "No answer has been profiled yet.";
            Error::not_found("profile.none", message, "Turn on profiling, then send a message.")
        })?;
        let name = FILE_NAME.to_owned();
        match path {
            None => Ok(ExportedFile { name, text }),
            Some(path) => {
                self.ctx().io.write_atomic(Path::new(path), text.as_bytes())?;
                Ok(ExportedFile { name, text: String::new() })
            }
        }
    }

    pub(crate) fn is_profiling(&self) -> bool {
        self.services().profiling.lock().is_on
    }
}
