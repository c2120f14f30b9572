//! Conversations that are longer than their model's context: how each is made to fit, what was done to it, undoing it,
//! and doing it now. The messages themselves are never touched.

use std::sync::mpsc;

use contract::protocol::{
    ChatOptions, Compression, CountRequest, FitRequest, Fitted, Folded, Strategy, SummaryText, WorkerRequest,
};
use contract::types::{AppEvent, CompactionInfo, CompactionStrategy, Conversation};
use contract::{Error, ErrorKind, Responder, Result};
use prompt::history::{history, with_system};
use session::{Branch, BranchMessage, CompactionRow, Session};

use super::summary;
use super::summary_jobs::{SummaryJob, SummaryReason};
use crate::App;
use crate::conversations::rows_to_types::{self, history_messages};
use crate::retrieval::injected::with_files;
use crate::settings::TypedSettings;
use crate::turns::turn_plan::TurnPlan;

/// Summaries that one command may have made: each covers more, so there are fewer.
const MAX_SUMMARIES: usize = 1000;

/// The conversation's own choice.
pub(crate) fn own_choice(session: &Session, conversation: &str) -> Result<Option<CompactionStrategy>> {
    let name = session.compaction_strategy(conversation)?;
    Ok(name.and_then(|name| CompactionStrategy::of_name(&name)))
}

fn compactions(
    session: &Session,
    conversation: &str,
    branch: &[BranchMessage],
) -> Result<Vec<CompactionRow>> {
    let ids: Vec<&str> = branch.iter().map(|message| message.row.id.as_str()).collect();
    Ok(session.compactions(conversation, &ids)?)
}

/// How a branch is made to fit. `default`: where the conversation says nothing. None: not at all.
pub(crate) fn compression_of(
    session: &Session,
    conversation: &str,
    branch: &[BranchMessage],
    default: CompactionStrategy,
) -> Result<Option<Compression>> {
    let own = own_choice(session, conversation)?;
    let Some(strategy) = own.unwrap_or(default).strategy() else { return Ok(None) };
    let compactions = compactions(session, conversation, branch)?;
    let folded = last_used(&compactions, branch, |row| row.strategy != Strategy::Attention.name());
    let folded = folded.map(|row| row.message.clone());
    let summaries = compactions.into_iter().filter(|row| !row.is_used).filter_map(|row| {
        let CompactionRow { first, message: until, level, summary, .. } = row;
        summary.map(|text| SummaryText { first, until, level, text })
    });
    Ok(Some(Compression { strategy, folded, summaries: summaries.collect() }))
}

/// What a reader is shown of it.
pub(crate) fn compaction_info(
    session: &Session,
    conversation: &str,
    branch: &[BranchMessage],
) -> Result<Option<CompactionInfo>> {
    Ok(last_used(&compactions(session, conversation, branch)?, branch, |_| true).map(info))
}

/// Keeps the place up to which prompts leave messages out.
pub(crate) fn keep_compaction(session: &mut Session, folded: &Folded, now_ms: i64) -> Result<CompactionInfo> {
    let row = CompactionRow {
        id: session.new_id(),
        first: folded.first.clone(),
        message: folded.until.clone(),
        strategy: folded.strategy.name().into(),
        level: 0,
        summary: folded.summary.clone(),
        is_used: true,
        tokens_before: folded.tokens_before,
        tokens_after: folded.tokens_after,
        created_ms: now_ms,
    };
    session.add_compaction(&row)?;
    Ok(info(&row))
}

/// The place that lies furthest down the branch; of several the newest.
fn last_used<'a>(
    compactions: &'a [CompactionRow],
    branch: &[BranchMessage],
    counts: impl Fn(&CompactionRow) -> bool,
) -> Option<&'a CompactionRow> {
    let place = |row: &&CompactionRow| branch.iter().position(|message| message.row.id == row.message);
    compactions.iter().filter(|row| row.is_used && counts(row)).max_by_key(place)
}

fn info(row: &CompactionRow) -> CompactionInfo {
    CompactionInfo {
        until: row.message.clone(),
        strategy: CompactionStrategy::of_name(&row.strategy).unwrap_or(CompactionStrategy::Window),
        summary: row.summary.clone(),
        tokens_before: row.tokens_before,
        tokens_after: row.tokens_after,
        created_ms: row.created_ms,
    }
}

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
                Fitted::Nothing => return Err(nothing()),
                Fitted::Folded { folded } => {
                    let now_ms = self.ctx().clock.now_utc_ms();
                    let info = keep_compaction(&mut self.store(), &folded, now_ms)?;
                    self.compaction_changed(id)?;
                    return Ok(info);
                }
                Fitted::Wanting { wanted } => {
                    let (send, made) = mpsc::channel();
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
        // Whoever asks for it wants the oldest messages out of the way, whatever happens by itself.
        let default = match self.default_strategy()? {
            CompactionStrategy::Off | CompactionStrategy::Attention => CompactionStrategy::Window,
            chosen @ (CompactionStrategy::Window | CompactionStrategy::Summary) => chosen,
        };
        let tools = self.tools_offer(Some(&self.options_of(id)?))?.definitions();
        Ok(TurnPlan {
            conversation: id.into(),
            model: responder.reference(),
            load,
            chat: self.chat_options(&model, ChatOptions { tools, ..ChatOptions::default() })?,
            max_tokens: self.max_tokens()?,
            default,
            one_off: None,
            next: None,
        })
    }
}

/// The conversation as it is now, for the worker to make fit.
pub(crate) fn fit_request(session: &Session, setup: &TurnPlan, ahead: bool) -> Result<FitRequest> {
    let Branch { conversation, messages: branch } = session.branch(&setup.conversation)?;
    let system = rows_to_types::options(conversation.options).system_prompt;
    let compaction_strategy = compression_of(session, &setup.conversation, &branch, setup.default)?;
    let mut compaction_strategy = compaction_strategy.unwrap_or(Compression {
        strategy: Strategy::Window,
        folded: None,
        summaries: Vec::new(),
    });
    if compaction_strategy.strategy == Strategy::Attention {
        compaction_strategy.strategy = Strategy::Window;
    }
    let count = CountRequest {
        model: setup.model.clone(),
        load: setup.load.clone(),
        conversation: Some(setup.conversation.clone()),
        messages: with_system(history(history_messages(with_files(session, branch)?)), system),
        chat: setup.chat.clone(),
        compression: Some(compaction_strategy),
        texts: Vec::new(),
    };
    Ok(FitRequest { count, max_tokens: setup.max_tokens, ahead })
}

fn nothing() -> Error {
    Error::new(
        ErrorKind::Conflict,
        "compress.nothing",
        "There is nothing to summarize in this chat yet.",
        "Older messages can be summarized once newer ones follow them.",
    )
}
