//! A growing answer: how much of it has been published, and how much has been saved. Watchers get
//! the first token at once and then about 30 updates a second; the disk is at most `SAVE_EVERY`
//! behind. Pure: time is an argument; the caller publishes and saves.

use std::time::Duration;

use session::AnswerChunk;

use contract::types::{TokenAlternatives, TurnEventKind};

/// About 30 events a second: more would flood a window and show nothing more.
pub const TELL_EVERY: Duration = Duration::from_millis(30);

/// A killed program loses no more than this and the time of one write.
pub const SAVE_EVERY: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
pub struct Answer {
    /// The answer so far.
    pub text: String,
    /// The thinking before it.
    pub reasoning: String,
    /// Everything that was generated of it, and whose ids they are.
    ids: Vec<u32>,
    fingerprint: String,
    /// Bytes of the texts and ids that are on disk.
    saved: (usize, usize, usize),
    untold: Untold,
    /// Watchers have heard some of it.
    is_told: bool,
    told_at: Option<Duration>,
    saved_at: Option<Duration>,
}

/// What the beginning of an answer means for what is kept and told of it.
#[derive(Debug, PartialEq)]
pub struct AnswerStart {
    /// What is on disk is something else.
    pub differs: bool,
    /// What watchers must hear, since they have heard something else.
    pub event: Option<TurnEventKind>,
}

#[derive(Debug, Default)]
struct Untold {
    text: String,
    reasoning: String,
    ids: Vec<u32>,
    logprobs: Vec<TokenAlternatives>,
}

impl Answer {
    /// One that goes on: what it has is on disk, and told once the model has read it.
    pub fn with(text: &str, reasoning: &str, ids: &[u32], fingerprint: &str) -> Self {
        Self {
            text: text.into(),
            reasoning: reasoning.into(),
            ids: ids.into(),
            fingerprint: fingerprint.into(),
            saved: (text.len(), reasoning.len(), ids.len()),
            ..Self::default()
        }
    }

    /// The model has begun, with exactly this.
    pub fn begin(
        &mut self,
        text: String,
        reasoning: String,
        ids: Vec<u32>,
        fingerprint: String,
    ) -> AnswerStart {
        let differs = self.text != text || self.reasoning != reasoning || self.ids != ids;
        let is_told = self.is_told;
        *self = Self { is_told, ..Self::with(&text, &reasoning, &ids, &fingerprint) };
        if is_told && differs {
            return AnswerStart { differs, event: Some(TurnEventKind::Revised { text, reasoning }) };
        }
        self.untold = Untold { text, reasoning, ids, ..Untold::default() };
        AnswerStart { differs, event: None }
    }

    /// All there is.
    pub fn whole(&self) -> AnswerChunk<'_> {
        let Self { text, reasoning, ids, fingerprint, .. } = self;
        AnswerChunk { text, reasoning, ids, fingerprint }
    }

    /// Appends text, with the logprobs of its tokens. Returns the events that must precede it: a change from
    /// reasoning to text starts a new one.
    pub fn push(
        &mut self,
        id: Option<u32>,
        text: &str,
        reasoning: &str,
        logprobs: Vec<TokenAlternatives>,
    ) -> Vec<TurnEventKind> {
        self.text.push_str(text);
        self.reasoning.push_str(reasoning);
        let changes = !text.is_empty() && !self.untold.reasoning.is_empty()
            || !reasoning.is_empty() && !self.untold.text.is_empty();
        let before = if changes { self.take_untold() } else { Vec::new() };
        self.untold.text.push_str(text);
        self.untold.reasoning.push_str(reasoning);
        self.untold.ids.extend(id);
        self.untold.logprobs.extend(logprobs);
        self.ids.extend(id);
        before
    }

    /// What watchers should hear now.
    pub fn tell(&mut self, now: Duration) -> Vec<TurnEventKind> {
        let due = self.tell_due().is_some_and(|due| due <= now);
        let events = if due { self.take_untold() } else { Vec::new() };
        if !events.is_empty() {
            self.told_at = Some(now);
        }
        events
    }

    /// All that watchers have not heard yet, ids without text included.
    pub fn take_untold(&mut self) -> Vec<TurnEventKind> {
        let Untold { text, reasoning, mut ids, logprobs } = std::mem::take(&mut self.untold);
        self.is_told |= !text.is_empty() || !reasoning.is_empty();
        let mut events = Vec::new();
        if !reasoning.is_empty() {
            // A token may end the reasoning and begin the text: its id goes with the reasoning.
            events.push(TurnEventKind::Reasoning { text: reasoning, ids: std::mem::take(&mut ids) });
        }
        if !logprobs.is_empty() {
            events.push(TurnEventKind::Logprobs { tokens: logprobs });
        }
        if !text.is_empty() || !ids.is_empty() {
            events.push(TurnEventKind::Text { text, ids });
        }
        events
    }

    /// What should be saved now. Call `saved` once it is.
    pub fn unsaved(&self, now: Duration) -> Option<AnswerChunk<'_>> {
        if self.save_due().is_some_and(|due| due <= now) { Some(self.tail()) } else { None }
    }

    fn tail(&self) -> AnswerChunk<'_> {
        AnswerChunk {
            text: &self.text[self.saved.0..],
            reasoning: &self.reasoning[self.saved.1..],
            ids: &self.ids[self.saved.2..],
            fingerprint: &self.fingerprint,
        }
    }

    /// All there is now has been saved, or (`done` false) could not be and is tried again later.
    pub fn saved(&mut self, now: Duration, done: bool) {
        self.saved_at = Some(now);
        if done {
            self.saved = (self.text.len(), self.reasoning.len(), self.ids.len());
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
        let nothing = (self.saved.0, self.saved.1) == (self.text.len(), self.reasoning.len());
        (!nothing).then(|| self.saved_at.map_or(Duration::ZERO, |at| at + SAVE_EVERY))
    }
}

#[cfg(test)]
mod tests {
    use contract::types::TokenShare;

    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn text(text: &str, ids: &[u32]) -> Vec<TurnEventKind> {
        vec![TurnEventKind::Text { text: text.into(), ids: ids.into() }]
    }

    fn push(answer: &mut Answer, id: Option<u32>, text: &str, reasoning: &str) -> Vec<TurnEventKind> {
        answer.push(id, text, reasoning, Vec::new())
    }

    #[test]
    fn the_first_token_at_once_then_in_pieces() {
        let mut answer = Answer::default();
        assert_eq!(answer.due(), None);
        push(&mut answer, Some(1), "A", "");
        assert_eq!(answer.tell(ms(5)), text("A", &[1]));
        push(&mut answer, Some(2), "b", "");
        assert_eq!(answer.tell(ms(10)), []);
        push(&mut answer, Some(3), "c", "");
        assert_eq!(answer.tell(ms(35)), text("bc", &[2, 3]));
        assert_eq!(answer.tell(ms(99)), []);
    }

    #[test]
    fn reasoning_and_text_are_told_in_order() {
        let mut answer = Answer::default();
        let before = push(&mut answer, Some(1), "", "think");
        assert_eq!(before, []);
        let before = push(&mut answer, Some(2), "Say", "");
        assert_eq!(before, [TurnEventKind::Reasoning { text: "think".into(), ids: vec![1] }]);
        push(&mut answer, Some(3), "", "");
        assert_eq!(answer.take_untold(), text("Say", &[2, 3]));
        assert_eq!(push(&mut answer, Some(4), "x", "y"), []);
        let mut both = vec![TurnEventKind::Reasoning { text: "y".into(), ids: vec![4] }];
        both.extend(text("x", &[]));
        assert_eq!(answer.take_untold(), both);
        assert_eq!((answer.text.as_str(), answer.reasoning.as_str()), ("Sayx", "thinky"));
    }

    #[test]
    fn logprobs_come_before_the_text_that_they_describe() {
        let token =
            TokenShare { id: 7, text: "A".into(), probability: 0.5, logprob: -0.7, bytes: Vec::new() };
        let seen = |id| TokenAlternatives { token: TokenShare { id, ..token.clone() }, others: Vec::new() };
        let mut answer = Answer::default();
        answer.push(Some(1), "", "Hm", Vec::new());
        let before = answer.push(Some(7), "A", "", vec![seen(7)]);
        assert!(matches!(before[..], [TurnEventKind::Reasoning { .. }]), "{before:?}");
        answer.push(Some(8), "b", "", vec![seen(8)]);
        let mut expected = vec![TurnEventKind::Logprobs { tokens: vec![seen(7), seen(8)] }];
        expected.extend(text("Ab", &[7, 8]));
        assert_eq!(answer.tell(ms(1)), expected);
        assert_eq!(answer.take_untold(), []);
    }

    #[test]
    fn what_watchers_have_heard_is_replaced_where_it_is_something_else() {
        let begin = |answer: &mut Answer, text: &str, reasoning: &str| {
            answer.begin(text.into(), reasoning.into(), Vec::new(), String::new())
        };
        let mut answer = Answer::default();
        assert_eq!(begin(&mut answer, "", ""), AnswerStart { differs: false, event: None });
        push(&mut answer, None, "Hm.", "");
        assert_eq!(begin(&mut answer, "", "Hm."), AnswerStart { differs: true, event: None });
        assert!(matches!(answer.take_untold()[..], [TurnEventKind::Reasoning { .. }]));
        push(&mut answer, None, "So", "");
        assert_eq!(answer.take_untold(), text("So", &[]));
        let event = Some(TurnEventKind::Revised { text: "".into(), reasoning: "Hm. So".into() });
        assert_eq!(begin(&mut answer, "", "Hm. So"), AnswerStart { differs: true, event });
        assert_eq!(answer.take_untold(), []);
        push(&mut answer, None, "Yes", "");
        assert_eq!(answer.take_untold(), text("Yes", &[]));
    }

    #[test]
    fn f38_what_grows_is_saved_in_time_and_again_after_a_failure() {
        let mut answer = Answer::default();
        let unsaved = |answer: &Answer, now| {
            answer
                .unsaved(now)
                .map(|piece| (piece.text.to_owned(), piece.reasoning.to_owned(), piece.ids.to_vec()))
        };
        let piece =
            |text: &str, reasoning: &str, ids: &[u32]| Some((text.into(), reasoning.into(), ids.to_vec()));
        push(&mut answer, Some(1), "A", "");
        assert_eq!(unsaved(&answer, ms(1)), piece("A", "", &[1]));
        answer.saved(ms(1), true);
        assert_eq!(unsaved(&answer, ms(900)), None);
        push(&mut answer, Some(2), "b", "r");
        assert_eq!(unsaved(&answer, ms(250)), None);
        assert_eq!(unsaved(&answer, ms(251)), piece("b", "r", &[2]));
        answer.saved(ms(251), false);
        push(&mut answer, Some(3), "c", "");
        assert_eq!(unsaved(&answer, ms(400)), None);
        assert_eq!(unsaved(&answer, ms(501)), piece("bc", "r", &[2, 3]));
        answer.saved(ms(501), true);
        answer.tell(ms(501));
        answer.take_untold();
        assert_eq!(answer.due(), None);
    }
}
