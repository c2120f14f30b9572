//! Limits of one turn and of all together, and the one place that enforces them. Every refusal
//! names the limit, the request, and how to raise it. Memory is planned in `memory_budget.rs`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result};

/// Limits in force.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// None: what the context holds.
    pub prompt_tokens: Option<usize>,
    /// Maximum characters of a message.
    pub characters: Option<usize>,
    /// Maximum tokens of an answer. None: no limit.
    pub answer_tokens: Option<usize>,
    /// Maximum time of a turn. None: no limit.
    pub seconds: Option<u64>,
    /// Maximum concurrent answers.
    pub concurrent: usize,
    /// Maximum waiting answers.
    pub waiting: usize,
}

/// Named sets of limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitPreset {
    /// For servers that are open to strangers.
    Bounded,
}

impl LimitPreset {
    /// The limits of this preset.
    pub fn limits(self) -> Limits {
        match self {
            Self::Bounded => Limits {
                prompt_tokens: Some(2048),
                characters: Some(10_000),
                answer_tokens: Some(512),
                seconds: Some(30),
                concurrent: 32,
                waiting: 256,
            },
        }
    }
}

/// The limits that the worker enforces, since only it knows tokens and time. The default bounds nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Maximum prompt tokens. None: what the context holds.
    pub prompt_tokens: Option<usize>,
    /// Maximum time of a turn. None: no limit.
    pub seconds: Option<u64>,
    /// None: as many as fit.
    pub concurrent: Option<usize>,
}

impl Limits {
    /// Checks a turn before anything of it is saved. `n_open` turns have not ended; `texts` are its new messages.
    pub fn admit<'a>(&self, n_open: usize, texts: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let n_chars: usize = texts.into_iter().map(|text| text.chars().count()).sum();
        match self.characters {
            Some(most) if n_chars > most => {
                return Err(refused(
                    "limit.characters",
                    format!("The message has {n_chars} characters; the limit is {most}."),
                    "Shorten it, or raise \"Maximum message length\"",
                    "limit_characters",
                ));
            }
            Some(_) | None => {}
        }
        let most = self.concurrent.saturating_add(self.waiting);
        if n_open >= most {
            return Err(refused(
                "limit.turns",
                format!("{n_open} answers are running or queued; the limit is {most}."),
                "Try again later, or raise \"Concurrent answers\" or \"Queue length\"",
                "limit_waiting",
            ));
        }
        Ok(())
    }

    /// Maximum tokens of an answer for which `asked` were requested.
    pub fn answer(&self, asked: Option<usize>) -> Option<usize> {
        asked.into_iter().chain(self.answer_tokens).min()
    }

    /// The bounds for the worker.
    pub fn bounds(&self) -> Bounds {
        Bounds { prompt_tokens: self.prompt_tokens, seconds: self.seconds, concurrent: Some(self.concurrent) }
    }
}

impl Bounds {
    /// Checks a whole prompt of `n` tokens.
    pub fn check_prompt(&self, n: usize) -> Result<()> {
        match self.prompt_tokens {
            Some(most) if n > most => Err(refused(
                "limit.prompt_tokens",
                format!("The prompt has {n} tokens; the limit is {most}."),
                "Shorten it, start a new chat, or raise \"Maximum prompt length\"",
                "limit_prompt_tokens",
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Deadline of a turn that came at `arrived`.
    pub fn deadline(&self, arrived: Duration) -> Option<Duration> {
        self.seconds.map(|seconds| arrived.saturating_add(Duration::from_secs(seconds)))
    }

    /// The error of a turn that did not begin in time.
    pub fn time_up(&self) -> Error {
        refused(
            "limit.seconds",
            format!("The request timed out in the queue after {} seconds.", self.seconds.unwrap_or(0)),
            "Try again when the server is less busy, or raise \"Answer timeout\"",
            "limit_seconds",
        )
    }
}

fn refused(code: &str, message: String, remedy: &str, key: &str) -> Error {
    let remedy = format!(
        "{remedy} in the settings (nook settings set {key} N). The Strict limits can't be changed one by one."
    );
    Error::new(ErrorKind::Limit, code, message, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(outcome: Result<()>) -> Option<String> {
        outcome.err().map(|error| {
            assert!(error.kind == ErrorKind::Limit && error.remedy().contains("settings set limit_"));
            error.info.code
        })
    }

    #[test]
    fn each_limit_holds_at_itself_and_not_beyond() {
        let limits = LimitPreset::Bounded.limits();
        let long = "é".repeat(10_000);
        assert_eq!(code(limits.admit(0, [long.as_str()])), None, "characters, not bytes");
        assert_eq!(code(limits.admit(0, [&long, "x"])).as_deref(), Some("limit.characters"));
        assert_eq!(code(limits.admit(287, ["x"])), None);
        assert_eq!(code(limits.admit(288, ["x"])).as_deref(), Some("limit.turns"));
        assert_eq!(code(limits.bounds().check_prompt(2048)), None);
        assert_eq!(code(limits.bounds().check_prompt(2049)).as_deref(), Some("limit.prompt_tokens"));
        assert_eq!(
            [None, Some(0), Some(512), Some(513), Some(usize::MAX)].map(|asked| limits.answer(asked)),
            [Some(512), Some(0), Some(512), Some(512), Some(512)]
        );
        assert_eq!(limits.bounds().deadline(Duration::from_secs(1)), Some(Duration::from_secs(31)));
        let most = Bounds { seconds: Some(u64::MAX), ..Bounds::default() };
        assert!(most.deadline(Duration::MAX).is_some());
    }

    #[test]
    fn without_limits_nothing_is_refused() {
        let limits = Limits { concurrent: 1, waiting: usize::MAX, ..Limits::default() };
        assert_eq!(code(limits.admit(usize::MAX - 1, ["x"])), None);
        assert_eq!(limits.answer(Some(7)), Some(7));
        assert_eq!(limits.answer(None), None);
        assert_eq!(code(Bounds::default().check_prompt(usize::MAX)), None);
        assert_eq!(Bounds::default().deadline(Duration::ZERO), None);
    }
}
