//! Answers conversations with the built-in model from the user guide: articles as they are, at once, without a worker.

use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use contract::protocol::{Ids, Location, Step, TurnResult, WorkerEvent};
use contract::types::{Finish, GuideReply};
use contract::{Error, Responder, Result};
use guide::{Guide, Language, Reply};

use crate::App;
use crate::settings::TypedSettings;

/// Bytes of text that count as a token.
const BYTES_PER_TOKEN: usize = 4;

/// Bytes at the beginning of a message that are read for what it asks, so that a pasted book takes no longer.
const MAX_QUESTION: usize = 4096;

/// Sends the guide's answers as the worker sends a model's.
#[derive(Default)]
pub(crate) struct GuideResponder {
    /// None: the program ends.
    events: Mutex<Option<SyncSender<WorkerEvent>>>,
}

impl GuideResponder {
    /// Where answers go from now on.
    pub fn connect(&self, events: SyncSender<WorkerEvent>) {
        *self.events.lock().unwrap_or_else(PoisonError::into_inner) = Some(events);
    }

    /// Nothing is answered any more.
    pub fn stop(&self) {
        *self.events.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn send(&self, turn: &str, steps: impl Iterator<Item = Step>) -> Result<()> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let events = events.ok_or_else(|| Error::bug("an answer was asked for while the program ends"))?;
        for step in steps {
            let event = WorkerEvent::Turn { turn: turn.into(), step };
            events.send(event).map_err(|_| Error::bug("the receiver of the answer is gone"))?;
        }
        Ok(())
    }
}

/// An answer of the guide.
struct GuideText {
    text: String,
    reply: GuideReply,
}

impl App {
    /// Whether a conversation with this responder is answered from the guide.
    pub(crate) fn is_guided(&self, responder: &Responder) -> Result<bool> {
        let is_built_in = matches!(responder, Responder::Local(model) if model.location == Location::BuiltIn);
        Ok(is_built_in && self.ctx().settings.guide_answers()?)
    }

    /// Answers a turn from the guide. `had`: what its message has already.
    pub(crate) fn answer_from_guide(&self, turn: &str, question: &str, had: &str) -> Result<()> {
        let began = self.ctx().clock.monotonic();
        let GuideText { text, reply } = self.guide_text(question)?;
        let rest = text.strip_prefix(had).unwrap_or_default();
        let result = result_of(question, rest, reply, self.ctx().clock.monotonic().saturating_sub(began));
        let first = Step::Began {
            had: Ids { fingerprint: String::new(), ids: Vec::new() },
            text: had.into(),
            reasoning: String::new(),
        };
        let pieces = rest.split_inclusive(' ').map(|it| Step::Rest {
            text: it.into(),
            reasoning: String::new(),
            logprobs: Vec::new(),
        });
        let steps = std::iter::once(first).chain(pieces).chain([Step::Done(Box::new(result))]);
        self.ctx().backends.guide.send(turn, steps)
    }

    /// In the question's language; in the interface's where it can be any.
    fn guide_text(&self, message: &str) -> Result<GuideText> {
        let question = &message[..message.floor_char_boundary(MAX_QUESTION)];
        let languages = match Language::of_question(question) {
            Some(language) => vec![language],
            None => vec![self.interface_language()?, Language::English],
        };
        let mut replies =
            languages.iter().map(|&language| (language, Guide::in_language(language).reply(question)));
        let found = replies.find(|(_, reply)| !matches!(reply, Reply::OutOfScope));
        Ok(match found {
            Some((_, Reply::Article { answer, see_also })) => GuideText {
                text: answer.text,
                reply: GuideReply::Article { article: answer.article, see_also },
            },
            Some((_, Reply::SmallTalk { text })) => {
                GuideText { text: text.into(), reply: GuideReply::SmallTalk }
            }
            Some((_, Reply::OutOfScope)) | None => self.declined(languages[0])?,
        })
    }

    /// Says what the guide is for, and offers the model that is recommended here.
    fn declined(&self, language: Language) -> Result<GuideText> {
        let guide = Guide::in_language(language);
        Ok(match self.known_recommendation()? {
            Some((offer, bytes)) => GuideText {
                text: guide.decline_with_offer(&offer.name, bytes),
                reply: GuideReply::OutOfScope { model: Some(offer.id.clone()) },
            },
            None => GuideText { text: guide.decline().into(), reply: GuideReply::OutOfScope { model: None } },
        })
    }

    /// The setting's, else the system's, else English.
    fn interface_language(&self) -> Result<Language> {
        let chosen = self.ctx().settings.language()?;
        let system = || {
            let variables = ["LC_ALL", "LC_MESSAGES", "LANG"];
            variables.iter().find_map(|name| (self.ctx().environment.0)(name).filter(|it| !it.is_empty()))
        };
        let code = if chosen == "system" { system() } else { Some(chosen) };
        Ok(code.and_then(|code| Language::from_code(&code)).unwrap_or(Language::English))
    }
}

/// The figures of an answer; tokens by the length of the texts.
fn result_of(question: &str, text: &str, reply: GuideReply, took: Duration) -> TurnResult {
    let tokens = |text: &str| u32::try_from(text.len().div_ceil(BYTES_PER_TOKEN)).unwrap_or(u32::MAX);
    TurnResult {
        finish: Finish::Stop,
        prompt_tokens: tokens(question),
        generated_tokens: tokens(text),
        ttft_ms: took.as_secs_f64() * 1000.0,
        is_about: true,
        guide: Some(reply),
        ..TurnResult::never_started()
    }
}
