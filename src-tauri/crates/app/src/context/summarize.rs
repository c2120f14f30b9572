//! Has summaries written: for a waiting turn, on request, or ahead of need. Those made ahead yield to every answer.

use contract::protocol::{
    FitOutcome, GenerateRequest, Step, Strategy, SummaryTask, SummaryText, TurnResult, WorkerRequest,
};
use contract::types::{CompactionStrategy, Finish};
use contract::{Error, Result};
use session::CompactionRow;

use super::stored_compactions::fit_request;
use super::summary_jobs::{SummaryJob, SummaryReason};
use crate::Services;
use crate::turns::turn_plan::TurnPlan;

impl Services {
    /// Has a summary written.
    pub fn begin_summary(&self, setup: &TurnPlan, job: SummaryJob) -> Result<()> {
        let mut chat = setup.chat.clone();
        chat.kwargs.insert("enable_thinking".into(), false.into());
        let (messages, max_tokens) = (job.wanted.messages.clone(), job.wanted.n_tokens);
        let turn = self.store().new_id();
        self.summaries.jobs().insert(turn.clone(), job);
        let request = setup.side_request(turn, messages, max_tokens, chat);
        self.ctx.backends.ask(WorkerRequest::Generate(Box::new(request)))
    }

    /// A turn waits for a summary.
    pub fn want_summary(&self, request: Box<GenerateRequest>, wanted: SummaryTask) -> Result<()> {
        let setup = TurnPlan {
            conversation: request.conversation.clone().unwrap_or_default(),
            model: request.model.clone(),
            load: request.load.clone(),
            chat: request.chat.clone(),
            // The task has its messages.
            system: None,
            max_tokens: request.max_tokens,
            default: CompactionStrategy::Summary,
            one_off: None,
            next: None,
        };
        let job = SummaryJob::new(&setup.conversation, wanted, SummaryReason::Turn(request));
        self.begin_summary(&setup, job)
    }

    /// After an answer: is there a summary to be made before it is needed?
    pub fn look_ahead(&self, setup: Box<TurnPlan>) {
        let fit = fit_request(&self.store(), &setup, true);
        let asked = fit.and_then(|fit| match fit.count.compression.as_ref().map(|it| it.strategy) {
            Some(Strategy::Summary) => {
                let request = self.ctx.backends.replies.next_request();
                self.summaries.ahead().insert(request, setup);
                self.ctx.backends.ask(WorkerRequest::Fit { request, fit: Box::new(fit) })
            }
            Some(Strategy::Window | Strategy::Attention) | None => Ok(()),
        });
        if let Err(error) = asked {
            tracing::debug!("no summary is made ahead: {error}");
        }
    }

    /// What `look_ahead` asked.
    pub fn looked_ahead(&self, setup: Box<TurnPlan>, fitted: Result<FitOutcome>) {
        let is_idle = self.store().active_turns().is_ok_and(|turns| turns.is_empty());
        let begun = match fitted {
            Ok(FitOutcome::Wanting { wanted }) if is_idle => {
                let job = SummaryJob::new(&setup.conversation, *wanted, SummaryReason::Ahead(setup.clone()));
                self.begin_summary(&setup, job)
            }
            Ok(FitOutcome::Wanting { .. } | FitOutcome::Nothing | FitOutcome::Compacted { .. }) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = begun {
            tracing::debug!("no summary is made ahead: {error}");
        }
    }

    /// A step of a turn that writes a summary: what it means for the turn that waits for it. The step comes back where
    /// it is none of a summary.
    pub fn summary_step(&self, id: &str, step: Step) -> Result<Vec<(String, Step)>, Step> {
        let mut jobs = self.summaries.jobs();
        let Some(job) = jobs.get_mut(id) else { return Err(step) };
        let ended = match step {
            Step::Token { text, .. } | Step::Rest { text, .. } => {
                job.text.push_str(&text);
                return Ok(Vec::new());
            }
            Step::Began { text, .. } => {
                job.text = text;
                return Ok(Vec::new());
            }
            Step::Done(finished) if finished.finish == Finish::Cancelled => SummaryEnd::Cancelled(finished),
            Step::Done(_) => SummaryEnd::Written,
            Step::Failed { error } => SummaryEnd::Failed(error),
            Step::Queued { .. }
            | Step::Loading { .. }
            | Step::Prefill { .. }
            | Step::ToolCall { .. }
            | Step::Notice { .. }
            | Step::Compacted { .. }
            | Step::Wanting { .. } => return Ok(Vec::new()),
        };
        let Some(job) = jobs.remove(id) else { return Ok(Vec::new()) };
        drop(jobs);
        Ok(self.summary_ended(job, ended))
    }

    fn summary_ended(&self, job: SummaryJob, ended: SummaryEnd) -> Vec<(String, Step)> {
        let saved = match ended {
            SummaryEnd::Written => self.save_summary(&job),
            SummaryEnd::Failed(error) => Err(error),
            SummaryEnd::Cancelled(finished) => {
                return match job.reason {
                    SummaryReason::Turn(request) => vec![(request.turn, Step::Done(finished))],
                    SummaryReason::Caller(asked) => {
                        // The caller may have given up.
                        let _ = asked.send(Err(no_summary()));
                        Vec::new()
                    }
                    SummaryReason::Ahead(_) => Vec::new(),
                };
            }
        };
        match job.reason {
            SummaryReason::Turn(request) => self.go_on(request, saved),
            SummaryReason::Caller(asked) => {
                // As above.
                let _ = asked.send(saved.map(drop));
                Vec::new()
            }
            SummaryReason::Ahead(setup) => {
                if saved.is_ok() {
                    self.look_ahead(setup);
                }
                Vec::new()
            }
        }
    }

    /// Resumes the turn with the summary; without one, its oldest messages are left out and the
    /// turn is notified.
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
        if let Err(error) = self.ctx.backends.ask(WorkerRequest::Generate(request)) {
            steps.push((turn, Step::Failed { error }));
        }
        steps
    }

    fn save_summary(&self, job: &SummaryJob) -> Result<SummaryText> {
        let text = job.text.trim();
        if text.is_empty() {
            return Err(no_summary());
        }
        let SummaryTask { first, until, level, .. } = &job.wanted;
        let mut store = self.store();
        let row = CompactionRow {
            id: store.new_id(),
            first: first.clone(),
            message: until.clone(),
            strategy: Strategy::Summary.name().into(),
            level: *level,
            summary: Some(text.into()),
            is_used: false,
            tokens_before: 0,
            tokens_after: 0,
            created_ms: self.ctx.clock.now_utc_ms(),
        };
        store.add_compaction(&row)?;
        tracing::info!(conversation = job.conversation, level, "summarised");
        Ok(SummaryText { first: first.clone(), until: until.clone(), level: *level, text: text.into() })
    }
}

/// How the writing of a summary ended.
enum SummaryEnd {
    Written,
    Cancelled(Box<TurnResult>),
    Failed(Error),
}

fn no_summary() -> Error {
    Error::input(
        "compress.no_summary",
        "The model wrote no summary.",
        "Leave out older messages instead (\"When the context is full\" in the settings).",
    )
}
