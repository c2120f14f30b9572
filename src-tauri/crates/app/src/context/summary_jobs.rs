//! Summaries that are being written, and who waits for them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

use contract::protocol::{GenerateRequest, SummaryTask};
use contract::{Error, ErrorKind, Result};

use crate::turns::turn_plan::TurnPlan;

/// Summaries that are being written, by the turn that writes them.
#[derive(Default)]
pub(crate) struct Summaries {
    jobs: Mutex<HashMap<String, SummaryJob>>,
    /// Questions whether a summary is worth making ahead, by their request.
    ahead: Mutex<HashMap<u64, Box<TurnPlan>>>,
}

/// One summary that is being written.
pub(crate) struct SummaryJob {
    pub(super) conversation: String,
    pub(super) wanted: SummaryTask,
    /// What there is of it.
    pub(super) text: String,
    pub(super) reason: SummaryReason,
}

/// Who wants a summary.
pub(crate) enum SummaryReason {
    /// This turn continues once the summary is there.
    Turn(Box<GenerateRequest>),
    /// A caller waits for it.
    Caller(mpsc::SyncSender<Result<()>>),
    /// It is made before it is needed.
    Ahead(Box<TurnPlan>),
}

impl SummaryJob {
    pub fn new(conversation: &str, wanted: SummaryTask, reason: SummaryReason) -> Self {
        Self { conversation: conversation.into(), wanted, text: String::new(), reason }
    }

    fn is_ahead(&self) -> bool {
        match self.reason {
            SummaryReason::Ahead(_) => true,
            SummaryReason::Turn(_) | SummaryReason::Caller(_) => false,
        }
    }
}

impl Summaries {
    pub(super) fn jobs(&self) -> MutexGuard<'_, HashMap<String, SummaryJob>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ahead(&self) -> MutexGuard<'_, HashMap<u64, Box<TurnPlan>>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn that writes the summary which `turn` waits for.
    pub fn awaited_by(&self, turn: &str) -> Option<String> {
        let waits = |job: &SummaryJob| match &job.reason {
            SummaryReason::Turn(request) => request.turn == turn,
            SummaryReason::Caller(_) | SummaryReason::Ahead(_) => false,
        };
        self.jobs().iter().find(|(_, job)| waits(job)).map(|(id, _)| id.clone())
    }

    /// Gives up the summaries of a conversation that are being written: their turns, which are to be cancelled. Error:
    /// somebody waits for one.
    pub fn give_up(&self, conversation: &str) -> Result<Vec<String>> {
        let mut jobs = self.jobs();
        let is_its = |job: &SummaryJob| job.conversation == conversation;
        if jobs.values().any(|job| is_its(job) && !job.is_ahead()) {
            return Err(Error::new(
                ErrorKind::Conflict,
                "session.answering",
                "This chat is being summarized.",
                "Wait until it is done, or stop it.",
            ));
        }
        Ok(jobs.extract_if(|_, job| is_its(job)).map(|(id, _)| id).collect())
    }

    /// Turns of summaries that are made ahead: they give way to answers.
    pub fn turns_ahead(&self) -> Vec<String> {
        self.jobs().iter().filter(|(_, job)| job.is_ahead()).map(|(id, _)| id.clone()).collect()
    }

    /// The plan for which a summary ahead of need was asked about by this request.
    pub fn take_ahead(&self, request: u64) -> Option<Box<TurnPlan>> {
        self.ahead().remove(&request)
    }
}
