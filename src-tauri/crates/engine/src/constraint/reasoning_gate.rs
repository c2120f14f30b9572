//! Watches for the end of the reasoning, where a constraint begins.

use crate::TokenId;
use crate::stop::held_suffix;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GateState {
    /// Nothing has come; this token would open a reasoning block.
    Start(TokenId),
    Reasoning,
    Behind,
}

/// The reasoning before the text that a constraint applies to.
#[derive(Debug, Clone)]
pub struct ReasoningGate {
    state: GateState,
    /// Text that ends the reasoning, with control tokens written out.
    close: String,
    /// End of the reasoning so far that may become `close`.
    tail: String,
}

impl ReasoningGate {
    /// The constraint applies from the first token.
    pub fn none() -> Self {
        Self { state: GateState::Behind, close: String::new(), tail: String::new() }
    }

    /// The prompt has begun the reasoning.
    pub fn inside(close: &str) -> Self {
        Self { state: GateState::Reasoning, close: close.into(), tail: String::new() }
    }

    /// The first token may begin the reasoning.
    pub fn optional(open: TokenId, close: &str) -> Self {
        Self { state: GateState::Start(open), close: close.into(), tail: String::new() }
    }

    pub(super) fn is_reasoning(&self) -> bool {
        self.state == GateState::Reasoning
    }

    /// Returns the token that may still begin the reasoning.
    pub(super) fn may_open(&self) -> Option<TokenId> {
        match self.state {
            GateState::Start(open) => Some(open),
            GateState::Reasoning | GateState::Behind => None,
        }
    }

    pub(super) fn open(&mut self) {
        self.state = GateState::Reasoning;
    }

    pub(super) fn close(&mut self) {
        self.state = GateState::Behind;
    }

    /// Reads a token of the reasoning.
    pub(super) fn observe(&mut self, text: &str) {
        self.tail.push_str(text);
        if self.tail.contains(&self.close) {
            self.tail.clear();
            return self.close();
        }
        let kept = held_suffix(&self.tail, &self.close);
        self.tail.drain(..self.tail.len() - kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_reasoning_may_be_spread_over_tokens() {
        let mut gate = ReasoningGate::inside("</think>");
        for piece in ["a <", "/th", "ought </", "think"] {
            gate.observe(piece);
            assert!(gate.is_reasoning(), "{piece}");
        }
        gate.observe(">\n");
        assert!(!gate.is_reasoning());
    }

    #[test]
    fn reasoning_may_begin_only_with_the_first_token() {
        let mut gate = ReasoningGate::optional(7, "</think>");
        assert_eq!((gate.may_open(), gate.is_reasoning()), (Some(7), false));
        gate.open();
        assert_eq!((gate.may_open(), gate.is_reasoning()), (None, true));
        gate.observe("</think>");
        assert_eq!((gate.may_open(), gate.is_reasoning()), (None, false));
        let mut gate = ReasoningGate::optional(7, "</think>");
        gate.close();
        assert_eq!(gate.may_open(), None);
    }
}
