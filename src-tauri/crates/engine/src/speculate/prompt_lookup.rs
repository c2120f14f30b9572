//! Prompt lookup: what followed the last tokens when they stood in the text before is guessed to follow again.
//!
//! The longest earlier stretch that equals the end of the text wins, of equals the latest. Where a copy has just left
//! its source, the place in the source is not forgotten: edits are short, and the copy goes on behind them. Knows
//! nothing of models; a guess is only a guess.

use crate::TokenId;

/// Longer matches are not told apart.
pub const LONGEST_MATCH: usize = 64;

/// Fewer equal tokens are chance.
const SHORTEST_MATCH: usize = 2;

/// Earlier places that are compared for one guess.
const N_COMPARED: usize = 64;

/// A match of so many tokens is a copy, whose place is worth remembering when it ends.
const IS_COPY: usize = 5;

/// Tokens after a copy left its source within which it is expected back there.
const LONGEST_EDIT: usize = 6;

/// How far behind the place that it left a copy is looked for.
const LONGEST_SKIP: usize = 12;

/// Empty places of the tables.
const NONE: u32 = u32::MAX;

/// Where the guesses come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LookupSource {
    /// the place of the next guess
    next: usize,
    /// tokens before it that equal the end of the text; 0: a copy is expected back
    n_matched: usize,
}

/// A copy that left its source.
#[derive(Debug, Clone, Copy)]
struct InterruptedCopy {
    /// the first place of the source that was not copied
    at: usize,
    /// tokens since
    age: usize,
}

/// Places of all pairs of tokens in a text that grows.
#[derive(Debug)]
pub struct PromptLookup {
    /// The last place behind a pair, by the pair's hash. A power of two.
    heads: Vec<u32>,
    /// For each place the one before it with the same hash. (places)
    earlier: Vec<u32>,
    source: Option<LookupSource>,
    lost: Option<InterruptedCopy>,
}

impl PromptLookup {
    /// For texts of up to `n_ctx` tokens; grows no more.
    pub fn new(n_ctx: usize) -> Self {
        let n_heads = n_ctx.clamp(256, 1 << 20).next_power_of_two();
        let earlier = Vec::with_capacity(n_ctx + 1);
        Self { heads: vec![NONE; n_heads], earlier, source: None, lost: None }
    }

    /// How many tokens before the guess equal the end of the text; None: there is no guess. 0: a copy is expected
    /// back in its source.
    pub fn n_matched(&self) -> Option<usize> {
        self.source.map(|source| source.n_matched)
    }

    /// The guess for the next token.
    pub fn next(&self, history: &[TokenId]) -> Option<TokenId> {
        self.source.and_then(|source| history.get(source.next)).copied()
    }

    /// Appends up to `n` guesses to `draft`. A source that reaches the end of the text goes on in the draft itself.
    pub fn guess(&self, history: &[TokenId], n: usize, draft: &mut Vec<TokenId>) {
        let Some(LookupSource { next, .. }) = self.source else { return };
        let n_before = draft.len();
        for at in next..next + n {
            let guess = history.get(at).or_else(|| draft.get(n_before + at - history.len()));
            let Some(&guess) = guess else { return };
            draft.push(guess);
        }
    }

    /// The text has grown to `history`, by any number of tokens; finds the source of the next guess.
    pub fn observe(&mut self, history: &[TokenId]) {
        let n_before = self.earlier.len();
        self.index(history);
        if history.len() != n_before + 1 {
            // the first time, or after a leap
            (self.source, self.lost) = (self.find(history), None);
            return;
        }
        let token = history[n_before];
        let kept = self.source.filter(|source| history[source.next] == token);
        match (kept, self.source) {
            (Some(LookupSource { next, n_matched }), _) => {
                let n_matched = if n_matched == 0 { SHORTEST_MATCH - 1 } else { n_matched } + 1;
                let source = LookupSource { next: next + 1, n_matched: n_matched.min(LONGEST_MATCH) };
                self.source = Some(source);
                if n_matched >= IS_COPY {
                    self.lost = None;
                }
            }
            (None, before) => {
                self.lost = match (before, self.lost) {
                    (Some(LookupSource { next, n_matched }), _) if n_matched >= IS_COPY => {
                        Some(InterruptedCopy { at: next, age: 1 })
                    }
                    (_, Some(InterruptedCopy { at, age })) if age < LONGEST_EDIT => {
                        Some(InterruptedCopy { at, age: age + 1 })
                    }
                    (_, Some(_) | None) => None,
                };
                self.source = self.find_or_return(history);
            }
        }
    }

    /// The best source; while a copy is away from its own, that has precedence before short matches elsewhere.
    fn find_or_return(&self, history: &[TokenId]) -> Option<LookupSource> {
        let found = self.find(history);
        let Some(InterruptedCopy { at, age }) = self.lost else { return found };
        let is_near = |source: &LookupSource| (at..=at + age + LONGEST_SKIP).contains(&source.next);
        if found.is_some_and(|source| source.n_matched >= IS_COPY || is_near(&source)) {
            return found;
        }
        // the last token stands a little further on: tokens were left out, or put in before it; else as many were
        // replaced as have come
        let end = (at + age + LONGEST_SKIP).min(history.len() - 1);
        let last = history[history.len() - 1];
        let behind = history[at.min(end)..end].iter().position(|&token| token == last);
        let next = behind.map_or(at + age, |n| at + n + 1);
        (next < history.len()).then_some(LookupSource { next, n_matched: 0 })
    }

    /// The longest match of the text's end.
    fn find(&self, history: &[TokenId]) -> Option<LookupSource> {
        let end = history.len();
        let [.., a, b] = history else { return None };
        let mut best: Option<LookupSource> = None;
        let mut at = self.heads[self.hash(*a, *b)];
        for _ in 0..N_COMPARED {
            let Some(&before) = self.earlier.get(at as usize) else { break };
            let next = at as usize;
            if next < end {
                let pairs = history[..next].iter().rev().zip(history.iter().rev());
                let n_matched = pairs.take(LONGEST_MATCH).take_while(|(a, b)| a == b).count();
                if n_matched >= SHORTEST_MATCH && best.is_none_or(|best| n_matched > best.n_matched) {
                    best = Some(LookupSource { next, n_matched });
                }
                if n_matched == LONGEST_MATCH {
                    break;
                }
            }
            at = before;
        }
        best
    }

    /// Enters the places behind every pair that has a token behind it. `earlier` is as long as the text was.
    fn index(&mut self, history: &[TokenId]) {
        for place in self.earlier.len()..history.len() {
            let before = match place {
                0 | 1 => NONE,
                _ => {
                    let hash = self.hash(history[place - 2], history[place - 1]);
                    std::mem::replace(&mut self.heads[hash], u32::try_from(place).unwrap_or(NONE))
                }
            };
            self.earlier.push(before);
        }
    }

    fn hash(&self, a: TokenId, b: TokenId) -> usize {
        let mixed = (u64::from(a) << 32 | u64::from(b)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.heads.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text a character a token: after all of it but the last `n_single`, which come one by one.
    fn after(text: &str, n_single: usize) -> (PromptLookup, Vec<TokenId>) {
        let ids: Vec<TokenId> = text.chars().map(u32::from).collect();
        let mut lookup = PromptLookup::new(64);
        for n in ids.len().saturating_sub(n_single)..=ids.len() {
            lookup.observe(&ids[..n]);
        }
        (lookup, ids)
    }

    fn check(text: &str, n_matched: Option<usize>, guesses: &str) {
        for n_single in [0, 1, 3, text.chars().count()] {
            let (lookup, ids) = after(text, n_single);
            let mut draft = Vec::new();
            lookup.guess(&ids, 8, &mut draft);
            let draft: String = draft.into_iter().filter_map(char::from_u32).collect();
            assert_eq!((lookup.n_matched(), draft.as_str()), (n_matched, guesses), "{text:?} {n_single}");
            assert_eq!(lookup.next(&ids).and_then(char::from_u32), guesses.chars().next());
        }
    }

    #[test]
    fn the_longest_match_wins_and_of_equals_the_latest() {
        check("", None, "");
        check("a", None, "");
        check("ab", None, "");
        check("abcdefgh", None, "");
        check("abcdefghijkl.ab", Some(2), "cdefghij");
        check("xab1 yab2 yab", Some(4), "2 yab2 y");
        check("xab1 yab2 zab", Some(2), "2 zab2 z");
        // the draft goes on in itself
        check("ababab", Some(4), "abababab");
        check("aaaa", Some(3), "aaaaaaaa");
        // one token alone is no match
        check("abcd xd", None, "");
    }

    /// What is guessed at the end of a copy of `source` that has come to `copy`.
    fn check_copy(source: &str, copy: &str, n_matched: Option<usize>, guesses: &str) {
        let text = format!("{source}|{copy}");
        let (lookup, ids) = after(&text, copy.len());
        let mut draft = Vec::new();
        lookup.guess(&ids, guesses.len(), &mut draft);
        let draft: String = draft.into_iter().filter_map(char::from_u32).collect();
        assert_eq!((lookup.n_matched(), draft.as_str()), (n_matched, guesses), "{copy:?}");
    }

    #[test]
    fn a_copy_is_expected_back_behind_an_edit() {
        let source = "0123456789abcdefghijklmnopqrstuvwxyz";
        check_copy(source, "01234567", Some(8), "89abc");
        // replaced, by one and by three
        check_copy(source, "01234567*", Some(0), "9abcd");
        check_copy(source, "01234567***", Some(0), "bcdef");
        // put in
        check_copy(source, "01234567*8", Some(0), "9abcd");
        check_copy(source, "01234567*89", Some(2), "abcde");
        // left out
        check_copy(source, "01234567d", Some(0), "efghi");
        check_copy(source, "01234567de", Some(2), "fghij");
        // gone for good
        check_copy(source, "01234567!@#$%^&", None, "");
        // was no copy
        check_copy(source, "012*", None, "");
    }

    #[test]
    fn long_texts_are_searched_in_bounded_time() {
        let ids: Vec<TokenId> = (0..5000).map(|i| i % 2).collect();
        let mut lookup = PromptLookup::new(5000);
        lookup.observe(&ids);
        assert_eq!((lookup.n_matched(), lookup.next(&ids)), (Some(LONGEST_MATCH), Some(0)));
        lookup.observe(&[&ids[..], &[7, 7]].concat());
        assert_eq!(lookup.n_matched(), None);
    }
}
