//! Follows a turn to its end, and shows and collects its events.

use std::io::IsTerminal;

use app::App;
use contract::Error;
use contract::Result;
use contract::types::{
    Citation, CompactionInfo, CompactionStrategy, Finish, TokenAlternatives, ToolCall, TurnEventKind,
    TurnStats,
};
use documents::prompt_injection;

use crate::interrupt::Interrupt;
use crate::markdown_style::MarkdownStyle;
use crate::out;
use crate::tool_approval::shorten_arguments;

/// Whether to show an answer while it is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerOutput {
    Hidden,
    /// Text on stdout; reasoning and progress on stderr if it is a terminal.
    Live,
}

/// A complete answer.
#[derive(Debug, Default)]
pub struct TurnAnswer {
    pub text: String,
    pub reasoning: String,
    /// All generated tokens, including the one that ended the answer.
    pub ids: Vec<u32>,
    pub calls: Vec<ToolCall>,
    /// Of the text's tokens, where the request wanted them.
    pub logprobs: Vec<TokenAlternatives>,
    pub stats: Option<TurnStats>,
}

impl TurnAnswer {
    /// Reason for the end; `None` if unknown.
    pub fn finish(&self) -> Option<Finish> {
        self.stats.as_ref().map(|stats| stats.finish)
    }
}

/// Waits for the end of the turn; Ctrl+C stops it. Errors: those of the turn.
pub fn follow(app: &App, turn: &str, interrupt: &Interrupt, show: AnswerOutput) -> Result<TurnAnswer> {
    interrupt.begin(app, turn);
    let answer = watch(app, turn, show);
    interrupt.end();
    answer
}

fn watch(app: &App, turn: &str, show: AnswerOutput) -> Result<TurnAnswer> {
    let mut answer = TurnAnswer::default();
    let mut screen = AnswerScreen::new(show);
    for events in app.watch_turn(turn, 0)? {
        for event in events {
            match event.kind {
                TurnEventKind::Queued { .. } => {}
                TurnEventKind::Loading { fraction } => screen.progress("loading the model", fraction),
                TurnEventKind::Prefill { done, total } => {
                    screen.progress("reading", done as f32 / total.max(1) as f32);
                }
                TurnEventKind::Compacting { messages } => {
                    screen.end();
                    out::log(&format!("summarizing {messages} older messages that no longer fit"));
                }
                TurnEventKind::Compacted { compaction } => {
                    screen.end();
                    out::log(&describe_compaction(&compaction));
                }
                TurnEventKind::Logprobs { tokens } => answer.logprobs.extend(tokens),
                TurnEventKind::Text { text, ids } => {
                    screen.text(&text);
                    answer.text.push_str(&text);
                    answer.ids.extend(ids);
                }
                TurnEventKind::Reasoning { text, ids } => {
                    screen.reasoning(&text);
                    answer.reasoning.push_str(&text);
                    answer.ids.extend(ids);
                }
                TurnEventKind::Revised { text, reasoning } => {
                    // What is on the screen can't be taken back.
                    screen.end();
                    (answer.text, answer.reasoning) = (text, reasoning);
                }
                TurnEventKind::ToolCall { call } => {
                    screen.call(&call);
                    answer.calls.push(call);
                }
                TurnEventKind::Notice { error } => {
                    screen.end();
                    out::log(&format!("{} {}", error.message, error.remedy));
                }
                TurnEventKind::Done { stats } => answer.stats = Some(stats),
                TurnEventKind::Failed { error } => {
                    screen.end();
                    return Err(Error::from(error));
                }
            }
        }
    }
    screen.end();
    Ok(answer)
}

/// Describes a compaction in one sentence.
pub fn describe_compaction(compaction: &CompactionInfo) -> String {
    let (before, after) = (compaction.tokens_before, compaction.tokens_after);
    match compaction.strategy {
        CompactionStrategy::Off | CompactionStrategy::Window => {
            format!("older messages are left out: from {before} to {after} tokens")
        }
        CompactionStrategy::Summary => {
            format!("older messages are summarized: from {before} to {after} tokens")
        }
        CompactionStrategy::Attention => {
            format!("the least relevant tokens are removed: from {before} to {after} tokens")
        }
    }
}

/// One line that names the files an answer relies on, and the passages in them.
pub fn format_sources(sources: &[Citation]) -> String {
    let cite = |source: &Citation| match &source.passage {
        Some(passage) => format!("{} ({})", source.name, passage.place()),
        None => source.name.clone(),
    };
    format!("sources: {}", sources.iter().map(cite).collect::<Vec<_>>().join(", "))
}

struct AnswerScreen {
    show: AnswerOutput,
    stderr_is_terminal: bool,
    /// A progress line is visible on stderr.
    has_progress: bool,
    in_reasoning: bool,
    /// The last line on stdout has no line end yet.
    open_line: bool,
    /// Colours of Markdown, on a terminal.
    style: Option<MarkdownStyle>,
}

impl AnswerScreen {
    fn new(show: AnswerOutput) -> Self {
        let stderr_is_terminal = show == AnswerOutput::Live && std::io::stderr().is_terminal();
        let style = (show == AnswerOutput::Live).then(MarkdownStyle::for_stdout).flatten();
        Self { show, stderr_is_terminal, has_progress: false, in_reasoning: false, open_line: false, style }
    }

    fn progress(&mut self, what: &str, fraction: f32) {
        if self.stderr_is_terminal && fraction < 1.0 {
            out::hint(&format!("\r\x1b[2K{what} … {:.0} %", fraction * 100.0));
            self.has_progress = true;
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.has_progress) {
            out::hint("\r\x1b[2K");
        }
    }

    fn text(&mut self, text: &str) {
        if self.show == AnswerOutput::Hidden || text.is_empty() {
            return;
        }
        self.clear();
        if std::mem::take(&mut self.in_reasoning) {
            out::hint("\x1b[0m\n\n");
        }
        match &mut self.style {
            Some(style) => out::styled(&style.add(&out::harmless(text))),
            None => out::text(text),
        }
        self.open_line = !text.ends_with('\n');
    }

    fn call(&mut self, call: &ToolCall) {
        if self.show == AnswerOutput::Live {
            self.end();
            let line = format!("→ {}({})", call.name, shorten_arguments(&call.arguments)).replace('\n', " ");
            out::line(&prompt_injection::reveal_hidden(&line));
        }
    }

    fn reasoning(&mut self, text: &str) {
        if !self.stderr_is_terminal {
            return;
        }
        self.clear();
        if !std::mem::replace(&mut self.in_reasoning, true) {
            out::hint("\x1b[2m");
        }
        out::hint(&out::harmless(text));
    }

    fn end(&mut self) {
        self.clear();
        if std::mem::take(&mut self.in_reasoning) {
            out::hint("\x1b[0m\n");
        }
        if let Some(style) = &mut self.style {
            out::styled(&style.end());
        }
        if std::mem::take(&mut self.open_line) {
            out::line("");
        }
    }
}
