//! Where the time of answers went: measured while it is switched on, kept in memory alone, of the last answer.

use std::path::Path;

use crate::App;
use crate::error::{Error, Result};
use crate::types::{Exported, ProfileInfo};
use crate::worker::protocol::Profiled;

const FILE_NAME: &str = "inglenook-trace.json";

/// Whether answers are measured, and what came of the last one.
#[derive(Default)]
pub struct Profiles {
    is_on: bool,
    last: Option<Profiled>,
}

impl Profiles {
    pub fn found(&mut self, found: Profiled) {
        self.last = Some(found);
    }

    fn info(&self) -> ProfileInfo {
        let answer = self.last.as_ref().map(|found| found.answer.clone());
        ProfileInfo { is_on: self.is_on, answer }
    }
}

impl App {
    pub fn profile(&self) -> ProfileInfo {
        self.shared().state().profiles.info()
    }

    /// From the next answer on; one that is being written stays as it is. What was found goes when it is switched off.
    pub fn profile_switch(&self, on: bool) -> ProfileInfo {
        let mut state = self.shared().state();
        state.profiles.is_on = on;
        state.profiles.last.take_if(|_| !on);
        state.profiles.info()
    }

    /// The steps of the last answer that was measured on a line of time, as a text for a file, or (with a path) as that
    /// file: whole or not at all.
    pub fn profile_trace(&self, path: Option<&str>) -> Result<Exported> {
        let trace = self.shared().state().profiles.last.as_ref().map(|found| found.trace.clone());
        let text = trace.ok_or_else(|| {
            let message = "No answer has been profiled yet.";
            Error::not_found("profile.none", message, "Turn on profiling, then send a message.")
        })?;
        let name = FILE_NAME.to_owned();
        match path {
            None => Ok(Exported { name, text }),
            Some(path) => {
                self.shared().io.write_atomic(Path::new(path), text.as_bytes())?;
                Ok(Exported { name, text: String::new() })
            }
        }
    }

    pub(crate) fn is_profiling(&self) -> bool {
        self.shared().state().profiles.is_on
    }
}
