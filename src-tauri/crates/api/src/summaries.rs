//! Summaries in the making: for a turn that waits for one, for somebody who asked, or ahead of need. Those made ahead
//! give way to every answer.

use std::sync::mpsc;

use engine::{Finish, Sampling};
use session::CompactionRow;
use session::compress::Strategy;

use crate::compress::Asker;
use crate::error::{Error, ErrorKind, Result};
use crate::tools::Next;
use crate::types::{CompactionStrategy, Once};
use crate::worker::protocol::{
    ChatOptions, Fitted, GenerateRequest, LoadSpec, ModelRef, Prompt, Step, SummaryText, Wanted,
    WorkerRequest,
};
use crate::{Shared, State};

/// What summaries of a conversation are made with.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub conversation: String,
    pub model: ModelRef,
    pub load: LoadSpec,
    pub chat: ChatOptions,
    pub max_tokens: Option<usize>,
    /// Where the conversation chooses none.
    pub default: CompactionStrategy,
    /// What the answer alone was asked for otherwise.
    pub once: Option<Once>,
    /// What calls of tools are answered with.
    pub next: Option<Box<Next>>,
}

/// One summary that is being written.
pub(crate) struct Job {
    conversation: String,
    wanted: Wanted,
    text: String,
    reason: Reason,
}

pub(crate) enum Reason {
    /// This turn goes on when it is there.
    Turn(Box<GenerateRequest>),
    Asked(mpsc::Sender<Result<()>>),
    Ahead(Box<Setup>),
}

impl Job {
    pub fn new(conversation: &str, wanted: Wanted, reason: Reason) -> Self {
        Self { conversation: conversation.into(), wanted, text: String::new(), reason }
    }

    fn is_ahead(&self) -> bool {
        match self.reason {
            Reason::Ahead(_) => true,
            Reason::Turn(_) | Reason::Asked(_) => false,
        }
    }
}

impl State {
    /// The summary that a turn waits for, by the name of its own turn.
    pub fn summary_for(&self, turn: &str) -> Option<String> {
        let waits = |job: &Job| match &job.reason {
            Reason::Turn(request) => request.turn == turn,
            Reason::Asked(_) | Reason::Ahead(_) => false,
        };
        self.jobs.iter().find(|(_, job)| waits(job)).map(|(id, _)| id.clone())
    }

    /// Gives up summaries and titles that are being written of a conversation: names of their turns, which are to be
    /// cancelled. Error: somebody waits for one.
    pub fn give_up_writing(&mut self, conversation: &str) -> Result<Vec<String>> {
        let is_it = |job: &Job| job.conversation == conversation;
        if self.jobs.values().any(|job| is_it(job) && !job.is_ahead()) {
            return Err(Error::new(
                ErrorKind::Conflict,
                "session.answering",
                "This chat is being summarized.",
                "Wait until it is done, or stop it.",
            ));
        }
        let summaries = self.jobs.extract_if(|_, job| is_it(job)).map(|(id, _)| id);
        let mut turns: Vec<String> = summaries.collect();
        turns.extend(self.give_up_titles(conversation));
        Ok(turns)
    }

    /// Summaries that nobody waits for.
    pub fn summaries_ahead(&self) -> Vec<String> {
        self.jobs.iter().filter(|(_, job)| job.is_ahead()).map(|(id, _)| id.clone()).collect()
    }
}

impl Shared {
    /// Has a summary written.
    pub fn begin_summary(&self, setup: &Setup, job: Job) -> Result<()> {
        let mut chat = setup.chat.clone();
        chat.kwargs.insert("enable_thinking".into(), false.into());
        chat.reasoning_budget = Some(0);
        let (prompt, max_tokens) = (Prompt::Chat(job.wanted.messages.clone()), Some(job.wanted.n_tokens));
        let turn = {
            let mut state = self.state();
            let turn = state.session.new_id();
            state.jobs.insert(turn.clone(), job);
            turn
        };
        self.ask(WorkerRequest::Generate(Box::new(GenerateRequest {
            turn,
            model: setup.model.clone(),
            load: setup.load.clone(),
            conversation: None,
            prompt,
            sampling: Sampling { temperature: 0.0, ..Sampling::default() },
            max_tokens,
            stop: Vec::new(),
            ignore_eos: false,
            chat,
            speculation: None,
            had: None,
            resume: None,
            bounds: Default::default(),
            compression: None,
            keeping: None,
            profile: false,
        })))
    }

    /// A turn waits for a summary.
    pub fn want_summary(&self, request: Box<GenerateRequest>, wanted: Wanted) -> Result<()> {
        let setup = Setup {
            conversation: request.conversation.clone().unwrap_or_default(),
            model: request.model.clone(),
            load: request.load.clone(),
            chat: request.chat.clone(),
            max_tokens: request.max_tokens,
            default: CompactionStrategy::Summary,
            once: None,
            next: None,
        };
        let job = Job::new(&setup.conversation, wanted, Reason::Turn(request));
        self.begin_summary(&setup, job)
    }

    /// After an answer: is there a summary to be made before it is needed?
    pub fn look_ahead(&self, setup: Box<Setup>) {
        let fit = self.state().fit_request(&setup, true);
        let asked = fit.and_then(|fit| match fit.count.compression.as_ref().map(|it| it.strategy) {
            Some(Strategy::Summary) => self.ask_fit(fit, Asker::Ahead(setup)),
            Some(Strategy::Window | Strategy::Attention) | None => Ok(()),
        });
        if let Err(error) = asked {
            tracing::debug!("no summary is made ahead: {error}");
        }
    }

    /// What `look_ahead` asked.
    pub fn looked_ahead(&self, setup: Box<Setup>, fitted: Result<Fitted>) {
        let is_idle = self.state().session.active_turns().is_ok_and(|turns| turns.is_empty());
        let begun = match fitted {
            Ok(Fitted::Wanting { wanted }) if is_idle => {
                let job = Job::new(&setup.conversation, *wanted, Reason::Ahead(setup.clone()));
                self.begin_summary(&setup, job)
            }
            Ok(Fitted::Wanting { .. } | Fitted::Nothing | Fitted::Folded { .. }) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = begun {
            tracing::debug!("no summary is made ahead: {error}");
        }
    }

    /// A step of a turn that writes a summary: what it means for the turn that waits for it. The step comes back where
    /// it is none of a summary.
    pub fn summary_step(&self, id: &str, step: Step) -> Result<Vec<(String, Step)>, Step> {
        let mut state = self.state();
        let Some(job) = state.jobs.get_mut(id) else { return Err(step) };
        let ended = match step {
            Step::Token { text, .. } | Step::Rest { text, .. } => {
                job.text.push_str(&text);
                return Ok(Vec::new());
            }
            Step::Done(finished) if finished.finish == Finish::Cancelled => Ended::Cancelled(finished),
            Step::Done(_) => Ended::Written,
            Step::Failed { error } => Ended::Failed(error),
            Step::Queued { .. }
            | Step::Began { .. }
            | Step::Loading { .. }
            | Step::Prefill { .. }
            | Step::ToolCall { .. }
            | Step::Notice { .. }
            | Step::Compacted { .. }
            | Step::Wanting { .. } => return Ok(Vec::new()),
        };
        let Some(job) = state.jobs.remove(id) else { return Ok(Vec::new()) };
        drop(state);
        Ok(self.summary_ended(job, ended))
    }

    fn summary_ended(&self, job: Job, ended: Ended) -> Vec<(String, Step)> {
        let saved = match ended {
            Ended::Written => self.save_summary(&job),
            Ended::Failed(error) => Err(error),
            Ended::Cancelled(finished) => {
                return match job.reason {
                    Reason::Turn(request) => vec![(request.turn, Step::Done(finished))],
                    Reason::Asked(asked) => {
                        // Whoever asked may have gone.
                        let _ = asked.send(Err(no_summary()));
                        Vec::new()
                    }
                    Reason::Ahead(_) => Vec::new(),
                };
            }
        };
        match job.reason {
            Reason::Turn(request) => self.go_on(request, saved),
            Reason::Asked(asked) => {
                // As above.
                let _ = asked.send(saved.map(drop));
                Vec::new()
            }
            Reason::Ahead(setup) => {
                if saved.is_ok() {
                    self.look_ahead(setup);
                }
                Vec::new()
            }
        }
    }

    /// The turn again, with the summary; without one, its oldest messages are left out, which it is told.
    fn go_on(&self, mut request: Box<GenerateRequest>, saved: Result<SummaryText>) -> Vec<(String, Step)> {
        let turn = request.turn.clone();
        let mut steps = Vec::new();
        if let Some(compression) = &mut request.compression {
            match saved {
                Ok(summary) => compression.summaries.push(summary),
                Err(error) => {
                    compression.strategy = Strategy::Window;
                    let message = format!(
                        "Older messages could not be summarized and are left out: {}",
                        error.message()
                    );
                    let error = Error::new(error.kind, "compress.no_summary", message, error.remedy());
                    steps.push((turn.clone(), Step::Notice { error }));
                }
            }
        }
        if let Err(error) = self.ask(WorkerRequest::Generate(request)) {
            steps.push((turn, Step::Failed { error }));
        }
        steps
    }

    fn save_summary(&self, job: &Job) -> Result<SummaryText> {
        let text = job.text.trim();
        if text.is_empty() {
            return Err(no_summary());
        }
        let Wanted { first, until, level, .. } = &job.wanted;
        let mut state = self.state();
        let row = CompactionRow {
            id: state.session.new_id(),
            first: first.clone(),
            message: until.clone(),
            strategy: Strategy::Summary.name().into(),
            level: *level,
            summary: Some(text.into()),
            is_used: false,
            tokens_before: 0,
            tokens_after: 0,
            created_ms: self.clock.now_utc_ms(),
        };
        state.session.add_compaction(&row)?;
        tracing::info!(conversation = job.conversation, level, "summarised");
        Ok(SummaryText { first: first.clone(), until: until.clone(), level: *level, text: text.into() })
    }
}

/// How the writing of a summary ended.
enum Ended {
    Written,
    Cancelled(Box<crate::worker::protocol::Finished>),
    Failed(Error),
}

fn no_summary() -> Error {
    Error::input(
        "compress.no_summary",
        "The model wrote no summary.",
        "Leave out older messages instead (\"When the context is full\" in the settings).",
    )
}
