//! Reasoning budget: ends the model's reasoning after a number of tokens.
//!
//! Watches one reply's tokens and says which must come next instead of a sampled one. Knows nothing of sampling or
//! batches.

use std::collections::VecDeque;

use crate::TokenId;
use crate::stop::held_suffix;

/// Limit on the reasoning in one reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasoningBudget {
    /// Tokens between the tags, over all blocks.
    pub max_tokens: usize,
    /// Text that opens a reasoning block, with control tokens written out.
    pub open: String,
    /// Text that closes a reasoning block.
    pub close: String,
    /// Whether the prompt has opened the first block.
    pub begins_inside: bool,
    /// Tokens that replace sampled ones once the budget is spent: the end of the reasoning.
    pub ending: Vec<TokenId>,
}

/// Counts the reasoning of one reply.
#[derive(Debug, Clone)]
pub struct BudgetWatch {
    budget: ReasoningBudget,
    is_inside: bool,
    n_thought: usize,
    forced: VecDeque<TokenId>,
    /// End of the reply that may become a tag.
    tail: String,
}

impl BudgetWatch {
    /// Creates a watch at the beginning of a reply.
    pub fn new(budget: ReasoningBudget) -> Self {
        let is_inside = budget.begins_inside;
        let mut watch =
            Self { budget, is_inside, n_thought: 0, forced: VecDeque::new(), tail: String::new() };
        watch.end_if_spent();
        watch
    }

    /// Returns the token that must come next, if any.
    pub fn forced(&mut self) -> Option<TokenId> {
        self.forced.pop_front()
    }

    /// Records a token, sampled or forced, by its text with control tokens written out.
    pub fn observe(&mut self, text: &str) {
        if !self.forced.is_empty() {
            return;
        }
        self.tail.push_str(text);
        self.n_thought += usize::from(self.is_inside);
        loop {
            let tag = if self.is_inside { &self.budget.close } else { &self.budget.open };
            let Some(at) = self.tail.find(tag.as_str()) else {
                let kept = held_suffix(&self.tail, tag);
                self.tail.drain(..self.tail.len() - kept);
                break;
            };
            self.tail.drain(..at + tag.len());
            self.is_inside = !self.is_inside;
        }
        self.end_if_spent();
    }

    fn end_if_spent(&mut self) {
        if self.is_inside && self.n_thought >= self.budget.max_tokens {
            self.forced = self.budget.ending.iter().copied().collect();
            self.is_inside = false;
            self.tail.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks after which tokens the ending 7, 8 is forced, if the model says `reply` one character per token.
    fn check(max_tokens: usize, begins_inside: bool, reply: &str, forced_after: &[usize]) {
        let (open, close) = ("<think>".to_string(), "</think>".to_string());
        let budget = ReasoningBudget { max_tokens, open, close, begins_inside, ending: vec![7, 8] };
        let mut watch = BudgetWatch::new(budget);
        let mut forced = Vec::new();
        let mut look = |watch: &mut BudgetWatch, n: usize| {
            if let Some(first) = watch.forced() {
                assert_eq!((first, watch.forced(), watch.forced()), (7, Some(8), None));
                forced.push(n);
            }
        };
        look(&mut watch, 0);
        for (n, c) in reply.chars().enumerate() {
            watch.observe(c.encode_utf8(&mut [0; 4]));
            look(&mut watch, n + 1);
        }
        assert_eq!(forced, forced_after, "{reply:?}");
    }

    #[test]
    fn thinking_ends_when_the_budget_is_spent() {
        check(3, true, "abcdef", &[3]);
        check(0, true, "abc", &[0]);
        check(3, false, "abcdef", &[]);
        check(2, false, "<think>abcd", &[9]);
        check(0, false, "<think>abcd", &[7]);
        check(20, true, "ab</think>cd", &[]);
        check(12, true, "ab</think>c<think>de", &[20]);
    }
}
