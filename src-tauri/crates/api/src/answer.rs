//! An answer that grows: what watchers have been told of it, and what has been saved.
//!
//! Watchers hear of the first token at once and then about 30 times a second; what is on disk is at most
//! `SAVE_EVERY` behind. Pure: time is handed in, telling and saving are the caller's.

use std::time::Duration;

use crate::types::TurnEventKind;

/// About 30 events a second: more would flood a window and show nothing more.
pub const TELL_EVERY: Duration = Duration::from_millis(30);

/// A killed program loses no more than this and the time of one write.
pub const SAVE_EVERY: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
pub struct Answer {
    pub text: String,
    pub reasoning: String,
    /// Bytes of both that are on disk.
    saved: (usize, usize),
    untold: Untold,
    told_at: Option<Duration>,
    saved_at: Option<Duration>,
}

#[derive(Debug, Default)]
struct Untold {
    text: String,
    reasoning: String,
    ids: Vec<u32>,
}

impl Answer {
    /// More of it. Returns what must be told before: a change from reasoning to text is a new event.
    pub fn push(&mut self, id: Option<u32>, text: &str, reasoning: &str) -> Option<TurnEventKind> {
        self.text.push_str(text);
        self.reasoning.push_str(reasoning);
        let changes = !text.is_empty() && !self.untold.reasoning.is_empty()
            || !reasoning.is_empty() && !self.untold.text.is_empty();
        let before = if changes { self.take_untold() } else { None };
        self.untold.text.push_str(text);
        self.untold.reasoning.push_str(reasoning);
        self.untold.ids.extend(id);
        before
    }

    /// What watchers should hear now.
    pub fn tell(&mut self, now: Duration) -> Option<TurnEventKind> {
        let due = self.tell_due().is_some_and(|due| due <= now);
        let event = if due { self.take_untold() } else { None };
        if event.is_some() {
            self.told_at = Some(now);
        }
        event
    }

    /// All that watchers have not heard yet, ids without text included.
    pub fn take_untold(&mut self) -> Option<TurnEventKind> {
        let Untold { text, reasoning, ids } = std::mem::take(&mut self.untold);
        if !reasoning.is_empty() {
            // A token may end the reasoning and begin the text: its id goes with the reasoning.
            self.untold.text = text;
            return Some(TurnEventKind::Reasoning { text: reasoning, ids });
        }
        if text.is_empty() && ids.is_empty() {
            return None;
        }
        Some(TurnEventKind::Text { text, ids })
    }

    /// What should be saved now: text and reasoning. Call `saved` once it is.
    pub fn unsaved(&self, now: Duration) -> Option<(&str, &str)> {
        if self.save_due().is_some_and(|due| due <= now) { Some(self.tail()) } else { None }
    }

    fn tail(&self) -> (&str, &str) {
        (&self.text[self.saved.0..], &self.reasoning[self.saved.1..])
    }

    /// All there is now has been saved, or (`done` false) could not be and is tried again later.
    pub fn saved(&mut self, now: Duration, done: bool) {
        self.saved_at = Some(now);
        if done {
            self.saved = (self.text.len(), self.reasoning.len());
        }
    }

    /// When there is something to tell or to save without another event.
    pub fn due(&self) -> Option<Duration> {
        self.tell_due().into_iter().chain(self.save_due()).min()
    }

    fn tell_due(&self) -> Option<Duration> {
        let nothing = self.untold.text.is_empty() && self.untold.reasoning.is_empty();
        (!nothing).then(|| self.told_at.map_or(Duration::ZERO, |at| at + TELL_EVERY))
    }

    fn save_due(&self) -> Option<Duration> {
        let nothing = self.saved == (self.text.len(), self.reasoning.len());
        (!nothing).then(|| self.saved_at.map_or(Duration::ZERO, |at| at + SAVE_EVERY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn text(text: &str, ids: &[u32]) -> Option<TurnEventKind> {
        Some(TurnEventKind::Text { text: text.into(), ids: ids.into() })
    }

    #[test]
    fn the_first_token_at_once_then_in_pieces() {
        let mut answer = Answer::default();
        assert_eq!(answer.due(), None);
        answer.push(Some(1), "A", "");
        assert_eq!(answer.tell(ms(5)), text("A", &[1]));
        answer.push(Some(2), "b", "");
        assert_eq!(answer.tell(ms(10)), None);
        answer.push(Some(3), "c", "");
        assert_eq!(answer.tell(ms(35)), text("bc", &[2, 3]));
        assert_eq!(answer.tell(ms(99)), None);
    }

    #[test]
    fn reasoning_and_text_are_told_in_order() {
        let mut answer = Answer::default();
        let before = answer.push(Some(1), "", "think");
        assert_eq!(before, None);
        let before = answer.push(Some(2), "Say", "");
        assert_eq!(before, Some(TurnEventKind::Reasoning { text: "think".into(), ids: vec![1] }));
        answer.push(Some(3), "", "");
        assert_eq!(answer.take_untold(), text("Say", &[2, 3]));
        assert_eq!(answer.push(Some(4), "x", "y"), None);
        assert_eq!(answer.take_untold(), Some(TurnEventKind::Reasoning { text: "y".into(), ids: vec![4] }));
        assert_eq!(answer.take_untold(), text("x", &[]));
        assert_eq!((answer.text.as_str(), answer.reasoning.as_str()), ("Sayx", "thinky"));
    }

    #[test]
    fn what_grows_is_saved_in_time_and_again_after_a_failure() {
        let mut answer = Answer::default();
        answer.push(Some(1), "A", "");
        assert_eq!(answer.unsaved(ms(1)), Some(("A", "")));
        answer.saved(ms(1), true);
        assert_eq!(answer.unsaved(ms(900)), None);
        answer.push(Some(2), "b", "r");
        assert_eq!(answer.unsaved(ms(250)), None);
        assert_eq!(answer.unsaved(ms(251)), Some(("b", "r")));
        answer.saved(ms(251), false);
        answer.push(Some(3), "c", "");
        assert_eq!(answer.unsaved(ms(400)), None);
        assert_eq!(answer.unsaved(ms(501)), Some(("bc", "r")));
        answer.saved(ms(501), true);
        answer.tell(ms(501));
        answer.take_untold();
        assert_eq!(answer.due(), None);
    }
}
