//! Answers: starts a turn, passes its text on, and stops it when the caller says so.

use app::{App, GenerateArgs, SamplingArgs};
use contract::protocol::{ChatOptions, Prompt, PromptMessage};
use contract::types::{Finish, TurnEventKind, TurnStats};
use contract::{Error, Result};

use crate::open_models::OpenModel;

/// Whether a prompt goes through the model's chat template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptForm {
    /// As a question in a chat.
    Chat,
    /// Continued as it is.
    Raw,
}

/// What the caller says about an answer; the settings say the rest.
#[derive(Debug, Clone, Default)]
pub struct AnswerOptions {
    pub max_tokens: Option<u32>,
    pub sampling: SamplingArgs,
}

/// A complete answer.
#[derive(Debug)]
pub struct CompleteAnswer {
    pub text: String,
    pub reasoning: String,
    pub stats: TurnStats,
}

/// Answers a prompt outside any session. `pass_on` gets each piece of text; false stops the answer.
pub fn generate(
    model: &OpenModel,
    prompt: String,
    form: PromptForm,
    options: AnswerOptions,
    pass_on: &mut dyn FnMut(&str) -> bool,
) -> Result<CompleteAnswer> {
    let prompt = match form {
        PromptForm::Raw => Prompt::Raw(prompt),
        PromptForm::Chat => Prompt::Chat(vec![PromptMessage {
            role: "user".into(),
            content: prompt,
            ..PromptMessage::default()
        }]),
    };
    let turn = model.app.generate(GenerateArgs {
        model: Some(model.id.clone()),
        prompt,
        sampling: options.sampling,
        max_tokens: options.max_tokens.and_then(|n| usize::try_from(n).ok()),
        stop: Vec::new(),
        ignore_eos: false,
        chat: ChatOptions::default(),
        constraint: None,
        logprobs: None,
    })?;
    follow(&model.app, &turn, pass_on)
}

/// Waits for the end of a turn.
pub fn follow(app: &App, turn: &str, pass_on: &mut dyn FnMut(&str) -> bool) -> Result<CompleteAnswer> {
    let (mut written, mut reasoning, mut is_stopped) = (String::new(), String::new(), false);
    for events in app.watch_turn(turn, 0)? {
        for event in events {
            match event.kind {
                TurnEventKind::Text { text, .. } => {
                    written.push_str(&text);
                    if !is_stopped && !text.is_empty() && !pass_on(&text) {
                        is_stopped = true;
                        app.turn_cancel(turn)?;
                    }
                }
                TurnEventKind::Reasoning { text, .. } => reasoning.push_str(&text),
                TurnEventKind::Revised { text, reasoning: thought } => (written, reasoning) = (text, thought),
                TurnEventKind::Done { stats } => {
                    return Ok(CompleteAnswer { text: written, reasoning, stats });
                }
                TurnEventKind::Failed { error } => return Err(Error::from(error)),
                TurnEventKind::Queued { .. }
                | TurnEventKind::Loading { .. }
                | TurnEventKind::Prefill { .. }
                | TurnEventKind::Compacting { .. }
                | TurnEventKind::Compacted { .. }
                | TurnEventKind::Logprobs { .. }
                | TurnEventKind::ToolCall { .. }
                | TurnEventKind::Notice { .. } => {}
            }
        }
    }
    Err(Error::bug("an answer ended without its end"))
}

/// The name of an end, as every interface has it.
pub fn finish_name(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::Cancelled => "cancelled",
        Finish::ContextFull => "context_full",
        Finish::TimeUp => "time_up",
    }
}
