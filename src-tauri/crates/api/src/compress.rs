//! Conversations that are longer than their model's context: how each is made to fit, what was done to it, undoing it,
//! and doing it now. The messages themselves are never touched.

use std::sync::mpsc;

use session::compress::Strategy;
use session::{Branch, BranchMessage, CompactionRow};

use crate::chat::{Responder, history, with_system};
use crate::error::{Error, ErrorKind, Result};
use crate::summaries::{Job, Reason, Setup};
use crate::types::{CompactionInfo, CompactionStrategy, Conversation};
use crate::worker::protocol::{
    ChatOptions, Compression, CountRequest, FitRequest, Fitted, Folded, SummaryText, WorkerRequest,
};
use crate::{App, Shared, State};

/// Summaries that one command may have made: each covers something more, so there are fewer.
const MOST_SUMMARIES: usize = 1000;

/// Who waits for what a conversation's fitting comes to.
pub(crate) enum Asker {
    Caller(mpsc::Sender<Result<Fitted>>),
    /// Nobody: a summary is made ahead.
    Ahead(Box<Setup>),
}

impl CompactionStrategy {
    pub(crate) fn strategy(self) -> Option<Strategy> {
        match self {
            Self::Off => None,
            Self::Window => Some(Strategy::Window),
            Self::Summary => Some(Strategy::Summary),
            Self::Attention => Some(Strategy::Attention),
        }
    }

    fn of(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Window => Self::Window,
            Strategy::Summary => Self::Summary,
            Strategy::Attention => Self::Attention,
        }
    }

    /// As it is kept in the database and in settings.
    pub(crate) fn name(self) -> &'static str {
        self.strategy().map_or("off", Strategy::name)
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        if name == "off" { Some(Self::Off) } else { Strategy::of_name(name).map(Self::of) }
    }
}

impl State {
    /// The conversation's own choice.
    pub(crate) fn own_strategy(&self, conversation: &str) -> Result<Option<CompactionStrategy>> {
        let name = self.session.compaction_strategy(conversation)?;
        Ok(name.and_then(|name| CompactionStrategy::of_name(&name)))
    }

    fn compactions(&self, conversation: &str, branch: &[BranchMessage]) -> Result<Vec<CompactionRow>> {
        let ids: Vec<&str> = branch.iter().map(|message| message.row.id.as_str()).collect();
        Ok(self.session.compactions(conversation, &ids)?)
    }

    /// How a branch is made to fit. `default`: where the conversation says nothing. None: not at all.
    pub(crate) fn compression_of(
        &self,
        conversation: &str,
        branch: &[BranchMessage],
        default: CompactionStrategy,
    ) -> Result<Option<Compression>> {
        let own = self.own_strategy(conversation)?;
        let Some(strategy) = own.unwrap_or(default).strategy() else { return Ok(None) };
        let compactions = self.compactions(conversation, branch)?;
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
        &self,
        conversation: &str,
        branch: &[BranchMessage],
    ) -> Result<Option<CompactionInfo>> {
        Ok(last_used(&self.compactions(conversation, branch)?, branch, |_| true).map(info))
    }

    /// Keeps the place up to which prompts leave messages out.
    pub(crate) fn save_compaction(&mut self, folded: &Folded, now_ms: i64) -> Result<CompactionInfo> {
        let row = CompactionRow {
            id: self.session.new_id(),
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
        self.session.add_compaction(&row)?;
        Ok(info(&row))
    }
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

impl Shared {
    /// Asks the worker to make a conversation fit.
    pub(crate) fn ask_fit(&self, fit: FitRequest, asker: Asker) -> Result<()> {
        let request = {
            let mut state = self.state();
            state.n_asked += 1;
            let request = state.n_asked;
            state.fits.insert(request, asker);
            request
        };
        self.ask(WorkerRequest::Fit { request, fit: Box::new(fit) })
    }
}

impl App {
    /// The strategy of conversations that don't choose.
    pub(crate) fn default_strategy(&self) -> Result<CompactionStrategy> {
        let name = self.settings_get("compression")?.value;
        Ok(name.as_str().and_then(CompactionStrategy::of_name).unwrap_or(CompactionStrategy::Window))
    }

    /// How this conversation is made to fit; None: as the setting says.
    pub fn conversation_set_compression(&self, id: &str, strategy: Option<CompactionStrategy>) -> Result<()> {
        let model = self.shared().state().session.conversation(id)?.model;
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
        let mut state = self.shared().state();
        Ok(state.session.set_compaction_strategy(id, strategy.map(CompactionStrategy::name))?)
    }

    /// Has older messages left out, or summarised, from now on, though everything may fit still.
    pub fn conversation_compact(&self, id: &str) -> Result<CompactionInfo> {
        for _ in 0..MOST_SUMMARIES {
            let setup = self.setup(id)?;
            let fit = self.shared().state().fit_request(&setup, false)?;
            let (send, answer) = mpsc::channel();
            self.shared().ask_fit(fit, Asker::Caller(send))?;
            let fitted = answer.recv().map_err(|_| Error::bug("the worker ended while it counted"))??;
            match fitted {
                Fitted::Nothing => return Err(nothing()),
                Fitted::Folded { folded } => {
                    let now_ms = self.shared().clock.now_utc_ms();
                    let info = self.shared().state().save_compaction(&folded, now_ms)?;
                    self.compaction_changed(id)?;
                    return Ok(info);
                }
                Fitted::Wanting { wanted } => {
                    let (send, made) = mpsc::channel();
                    let job = Job::new(id, *wanted, Reason::Asked(send));
                    self.shared().begin_summary(&setup, job)?;
                    made.recv().map_err(|_| Error::bug("the worker ended while it summarised"))??;
                }
            }
        }
        Err(Error::bug("summaries without end"))
    }

    /// Everything is shown to the model again, as far as it fits. Summaries stay for another time.
    pub fn conversation_undo_compaction(&self, id: &str) -> Result<Conversation> {
        {
            let mut state = self.shared().state();
            let branch = state.session.branch(id)?.messages;
            let mut compactions = state.compactions(id, &branch)?;
            compactions.retain(|row| row.is_used);
            state.session.remove_compactions(&compactions)?;
        }
        self.compaction_changed(id)?;
        self.conversation_get(id)
    }

    fn compaction_changed(&self, id: &str) -> Result<()> {
        let state = self.shared().state();
        let conversation = state.summary(state.session.conversation(id)?)?;
        drop(state);
        self.shared().tell(crate::types::AppEvent::ConversationChanged { conversation });
        Ok(())
    }

    /// What summaries of a conversation are made with. Error: it is being answered in, or has no strategy.
    fn setup(&self, id: &str) -> Result<Setup> {
        let (model, active) = {
            let state = self.shared().state();
            (state.session.conversation(id)?.model, state.session.active_turn(id)?)
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
        Ok(Setup {
            conversation: id.into(),
            model: responder.reference(),
            load,
            chat: self.chat_options(&model, ChatOptions { tools, ..ChatOptions::default() })?,
            max_tokens: self.max_tokens()?,
            default,
            once: None,
            next: None,
        })
    }
}

impl State {
    /// The conversation as it is now, for the worker to make fit.
    pub(crate) fn fit_request(&self, setup: &Setup, ahead: bool) -> Result<FitRequest> {
        let Branch { conversation, messages: branch } = self.session.branch(&setup.conversation)?;
        let system = crate::convert::options(conversation.options).system_prompt;
        let compression = self.compression_of(&setup.conversation, &branch, setup.default)?;
        let mut compression = compression.unwrap_or(Compression {
            strategy: Strategy::Window,
            folded: None,
            summaries: Vec::new(),
        });
        if compression.strategy == Strategy::Attention {
            compression.strategy = Strategy::Window;
        }
        let count = CountRequest {
            model: setup.model.clone(),
            load: setup.load.clone(),
            conversation: Some(setup.conversation.clone()),
            messages: with_system(history(self.with_files(branch)?), system),
            chat: setup.chat.clone(),
            compression: Some(compression),
            texts: Vec::new(),
        };
        Ok(FitRequest { count, max_tokens: setup.max_tokens, ahead })
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
