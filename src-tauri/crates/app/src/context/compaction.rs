//! Conversations longer than their model's context: how each is made to fit, what was compacted,
//! undoing it, and compacting on request. The messages themselves are never touched.

use std::sync::mpsc;

use contract::protocol::{FitOutcome, WorkerRequest};
use contract::types::{AppEvent, CompactionInfo, CompactionStrategy, Conversation};
use contract::{Error, ErrorKind, Responder, Result};

use super::stored_compactions::{compactions, fit_request, keep_compaction};
use super::summary;
use super::summary_jobs::{SummaryJob, SummaryReason};
use crate::App;
use crate::settings::TypedSettings;
use crate::turns::turn_plan::TurnPlan;

/// Summaries that one command may have made: each covers more, so there are fewer.
const MAX_SUMMARIES: usize = 1000;

impl App {
    /// The strategy of conversations that don't choose.
    pub(crate) fn default_strategy(&self) -> Result<CompactionStrategy> {
        let name = self.ctx().settings.compression()?;
        Ok(CompactionStrategy::of_name(&name).unwrap_or(CompactionStrategy::Window))
    }

    /// How this conversation is made to fit; None: as the setting says.
    pub fn conversation_set_compression(&self, id: &str, strategy: Option<CompactionStrategy>) -> Result<()> {
        let model = self.store().conversation(id)?.model;
        if strategy == Some(CompactionStrategy::Attention)
            && let Ok(Responder::Remote(_)) = self.responder(&model)
        {
            return Err(Error::new(
                ErrorKind::Conflict,
                "remote.no_attention",
                "Models on other servers can't forget tokens selectively, because their state is not on this computer.",
                "Leave out or summarize older messages instead, or choose a model on this computer.",
            ));
        }
        let mut store = self.store();
        Ok(store.set_compaction_strategy(id, strategy.map(CompactionStrategy::name))?)
    }

    /// Has older messages left out, or summarised, from now on, though everything may fit still.
    pub fn conversation_compact(&self, id: &str) -> Result<CompactionInfo> {
        for _ in 0..MAX_SUMMARIES {
            let setup = self.setup(id)?;
            let fit = fit_request(&self.store(), &setup, false)?;
            let backends = &self.ctx().backends;
            let fitted = backends.replies.call(&backends.replies.fits, |request| {
                backends.ask(WorkerRequest::Fit { request, fit: Box::new(fit) })
            })??;
            match fitted {
                FitOutcome::Nothing => return Err(nothing()),
                FitOutcome::Compacted { range } => {
                    let now_ms = self.ctx().clock.now_utc_ms();
                    let info = keep_compaction(&mut self.store(), &range, now_ms)?;
                    self.compaction_changed(id)?;
                    return Ok(info);
                }
                FitOutcome::Wanting { wanted } => {
                    // One outcome, so that the thread that writes the summary never waits.
                    let (send, made) = mpsc::sync_channel(1);
                    let job = SummaryJob::new(id, *wanted, SummaryReason::Caller(send));
                    self.services().begin_summary(&setup, job)?;
                    made.recv().map_err(|_| Error::bug("the worker ended while it summarised"))??;
                }
            }
        }
        Err(Error::bug("summaries without end"))
    }

    /// Everything is shown to the model again, as far as it fits. Summaries stay for another time.
    pub fn conversation_undo_compaction(&self, id: &str) -> Result<Conversation> {
        {
            let mut store = self.store();
            let branch = store.branch(id)?.messages;
            let mut compactions = compactions(&store, id, &branch)?;
            compactions.retain(|row| row.is_used);
            store.remove_compactions(&compactions)?;
        }
        self.compaction_changed(id)?;
        self.conversation_get(id)
    }

    fn compaction_changed(&self, id: &str) -> Result<()> {
        let store = self.store();
        let row = store.conversation(id)?;
        let conversation = summary(&store, row)?;
        drop(store);
        self.ctx().events.publish(AppEvent::ConversationChanged { conversation });
        Ok(())
    }

    /// What summaries of a conversation are made with. Error: it is being answered in, or has no strategy.
    fn setup(&self, id: &str) -> Result<TurnPlan> {
        let (model, active) = {
            let store = self.store();
            (store.conversation(id)?.model, store.active_turn(id)?)
        };
        if active.is_some() {
            let remedy = "Wait until the answer is done, or stop it.";
            let message = "This chat is still generating an answer.";
            return Err(Error::new(ErrorKind::Conflict, "session.answering", message, remedy));
        }
        let responder = self.responder(&model)?;
        let load = self.load_spec_for(&responder)?;
        // An explicit request always removes the oldest messages, whatever happens automatically.
        let default = match self.default_strategy()? {
            CompactionStrategy::Off | CompactionStrategy::Attention => CompactionStrategy::Window,
            chosen @ (CompactionStrategy::Window | CompactionStrategy::Summary) => chosen,
        };
        let options = self.options_of(id)?;
        let tools = self.tools_offer(Some(&options))?.definitions();
        Ok(TurnPlan {
            conversation: id.into(),
            model: responder.reference(),
            load,
            chat: self.chat_options_with(&model, &options, tools)?,
            system: self.system_of(&options)?,
            max_tokens: self.max_tokens()?,
            default,
            one_off: None,
            next: None,
        })
    }
}

fn nothing() -> Error {
    Error::new(
        ErrorKind::Conflict,
        "compress.nothing",
        "There is nothing to summarize in this chat yet.",
        "Older messages can be summarized once newer ones follow them.",
    )
}
