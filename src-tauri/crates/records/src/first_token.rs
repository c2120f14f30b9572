//! Expected time until the first token of a draft's answer, by what the newest answers of its model took.
//!
//! Never guesses: where a part of the work was not measured with that model, the time is unknown.

use contract::types::{AttachmentKind, TurnStats};
use file_search::citations::is_image;
use session::{AttachmentRow, BranchMessage, MessageState, Role, Session};

/// Answers that read fewer tokens say little about the rate: their time is mostly that of a single step.
const MIN_READ: u32 = 64;

/// A prompt that ends with a draft.
pub struct DraftPrompt<'a> {
    /// Library id.
    pub model: &'a str,
    /// The model is in memory.
    pub is_loaded: bool,
    /// Of the whole prompt.
    pub tokens: u32,
    /// The conversation before the draft.
    pub branch: &'a [BranchMessage],
    /// Files that the draft gives, with their tokens.
    pub files: &'a [AttachmentRow],
}

/// What a model does before its first token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Work {
    /// Tokens that it reads.
    tokens: u32,
    /// Tokens of images that its vision tower sees.
    image_tokens: u32,
    is_loaded: bool,
}

impl DraftPrompt<'_> {
    /// Milliseconds until the first token. None: unknown.
    ///
    /// Errors: those of the database.
    pub fn first_token_ms(&self, session: &Session) -> session::Result<Option<u32>> {
        let Some(work) = self.work() else { return Ok(None) };
        let stats = session.newest_stats(self.model)?;
        let answers: Vec<TurnStats> =
            stats.iter().filter_map(|json| serde_json::from_str(json).ok()).collect();
        Ok(expected_ms(&answers, work))
    }

    /// What is left to do. None: unknown.
    ///
    /// What the conversation's last answer read and wrote counts as cached, if this model wrote it. Its reasoning is no
    /// part of the next prompt, so of an answer with reasoning only its prompt does. A prompt that is shorter than that
    /// was compacted since, and is read from the beginning.
    fn work(&self) -> Option<Work> {
        let last = self.branch.iter().rev().find(|it| it.row.role == Role::Assistant);
        let last = last.filter(|it| it.row.state != MessageState::Streaming);
        let of_model = last.filter(|it| it.row.model.as_deref() == Some(self.model));
        let stats = of_model.and_then(|it| serde_json::from_str::<TurnStats>(it.row.stats.as_deref()?).ok());
        let cached = stats.map_or(0, |stats| match last.is_some_and(|it| it.row.reasoning.is_empty()) {
            true => stats.context_tokens,
            false => stats.prompt_tokens,
        });
        let cached = if cached <= self.tokens { cached } else { 0 };
        // What another model was given of earlier images says nothing about this one.
        let has_images = self.branch.iter().any(|it| it.attachments.files.iter().any(is_image));
        if cached == 0 && has_images {
            return None;
        }
        let images =
            self.files.iter().filter(|file| AttachmentKind::of_name(&file.kind) == AttachmentKind::Image);
        let image_tokens = images.map(|image| image.tokens.unwrap_or(0)).sum();
        Some(Work { tokens: self.tokens - cached, image_tokens, is_loaded: self.is_loaded })
    }
}

/// `answers`: newest first.
fn expected_ms(answers: &[TurnStats], work: Work) -> Option<u32> {
    let here = || answers.iter().filter(|it| it.answered_by.is_none() && !it.is_about);
    let read = here().map(|it| (it.prompt_tokens.saturating_sub(it.reused_tokens), it.prefill_tok_s));
    let read_s = f64::from(work.tokens) / median_rate(read.filter(|(n, _)| *n >= MIN_READ).collect())?;
    let image_s = match work.image_tokens {
        0 => 0.0,
        n => {
            let rate = |it: &TurnStats| (it.image_tokens, f64::from(it.image_tokens) / it.image_ms * 1e3);
            f64::from(n) / median_rate(here().filter(|it| it.image_ms > 0.0).map(rate).collect())?
        }
    };
    let load_ms = match work.is_loaded {
        true => 0.0,
        false => here().map(|it| it.load_ms).find(|ms| *ms > 0.0)?,
    };
    // Saturates; a negative or unreadable number would become 0.
    Some((load_ms + (image_s + read_s) * 1e3).round() as u32)
}

/// The rate that half of the tokens were at least as slow as: one answer beside another program's work changes little.
/// None: nothing was measured.
fn median_rate(mut measured: Vec<(u32, f64)>) -> Option<f64> {
    measured.retain(|(n, rate)| *n > 0 && rate.is_finite() && *rate > 0.0);
    measured.sort_by(|a, b| a.1.total_cmp(&b.1));
    let half = measured.iter().map(|(n, _)| u64::from(*n)).sum::<u64>().div_ceil(2);
    let mut seen = 0;
    measured.into_iter().find_map(|(n, rate)| {
        seen += u64::from(n);
        (seen >= half).then_some(rate)
    })
}

#[cfg(test)]
mod tests {
    use contract::protocol::TurnResult;
    use session::{MessageAttachments, MessageRow};

    use super::*;
    use crate::conversations::stats;

    fn answer(read: u32, prefill_tok_s: f64) -> TurnStats {
        stats(&TurnResult { prompt_tokens: read, prefill_tok_s, ..TurnResult::never_started() })
    }

    #[test]
    fn time_is_what_was_measured() {
        let (slow, fast, short) = (answer(1000, 100.0), answer(900, 400.0), answer(63, 1.0));
        let saw = |n, ms| TurnStats { image_tokens: n, image_ms: ms, ..fast.clone() };
        let elsewhere = TurnStats { answered_by: Some("host".into()), ..fast.clone() };
        let loaded = |ms| TurnStats { load_ms: ms, ..fast.clone() };
        // (answers, (tokens to read, image tokens to see, is loaded), milliseconds)
        let cases = [
            (vec![], (500, 0, true), None),
            // 500 tokens at 400 tokens a second.
            (vec![fast.clone()], (500, 0, true), Some(1250)),
            (vec![short, elsewhere], (500, 0, true), None),
            // Most tokens were read at 100 tokens a second.
            (vec![fast.clone(), slow.clone()], (500, 0, true), Some(5000)),
            (vec![fast.clone(), slow, fast.clone()], (500, 0, true), Some(1250)),
            (vec![fast.clone()], (500, 256, true), None),
            // 256 image tokens at 128 in 500 ms, and 500 tokens read.
            (vec![saw(128, 500.0)], (500, 256, true), Some(2250)),
            (vec![fast.clone()], (500, 0, false), None),
            (vec![fast.clone(), loaded(700.0), loaded(9000.0)], (500, 0, false), Some(1950)),
            (vec![answer(500, 0.0)], (500, 0, true), None),
        ];
        for (at, (answers, (tokens, image_tokens, is_loaded), expected)) in cases.iter().enumerate() {
            let work = Work { tokens: *tokens, image_tokens: *image_tokens, is_loaded: *is_loaded };
            assert_eq!(expected_ms(answers, work), *expected, "case {at}");
        }
    }

    fn message(role: Role, model: Option<&str>, stats: Option<&TurnStats>, reasoning: &str) -> BranchMessage {
        let row = MessageRow {
            role,
            model: model.map(Into::into),
            stats: stats.and_then(|stats| serde_json::to_string(stats).ok()),
            reasoning: reasoning.into(),
            ..MessageRow::new("id".into())
        };
        BranchMessage {
            row,
            version: 1,
            versions: 1,
            logs: Vec::new(),
            attachments: MessageAttachments::default(),
        }
    }

    fn image(tokens: u32) -> AttachmentRow {
        AttachmentRow {
            id: "i".into(),
            message: String::new(),
            document: String::new(),
            name: "a.png".into(),
            kind: "image".into(),
            bytes: 1,
            findings: None,
            is_whole: true,
            tokens: Some(tokens),
            is_about: false,
            from_project: false,
        }
    }

    #[test]
    fn what_the_conversation_has_in_the_cache_is_not_read_again() {
        let done = TurnStats { prompt_tokens: 300, context_tokens: 340, ..answer(300, 1.0) };
        let question = || message(Role::User, None, None, "");
        let of = |model, reasoning| {
            vec![question(), message(Role::Assistant, Some(model), Some(&done), reasoning)]
        };
        let mut seen = of("other", "");
        seen[0].attachments.files.push(image(256));
        let mut again = of("m", "");
        again[0].attachments.files.push(image(256));
        // (branch, tokens of the prompt, tokens that are left)
        let cases = [
            (Vec::new(), 400, Some(400)),
            (of("m", ""), 400, Some(60)),
            (of("m", "So."), 400, Some(100)),
            (of("m", ""), 339, Some(339)),
            (of("other", ""), 400, Some(400)),
            (vec![question()], 400, Some(400)),
            (seen, 400, None),
            (again, 400, Some(60)),
        ];
        for (at, (branch, tokens, expected)) in cases.iter().enumerate() {
            let draft =
                DraftPrompt { model: "m", is_loaded: true, tokens: *tokens, branch, files: &[image(16)] };
            let expected = expected.map(|tokens| Work { tokens, image_tokens: 16, is_loaded: true });
            assert_eq!(draft.work(), expected, "case {at}");
        }
    }
}
