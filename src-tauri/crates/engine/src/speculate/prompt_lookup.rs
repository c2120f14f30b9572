//! Prompt lookup: drafts what followed the last tokens where they stood in the text before.
//!
//! The longest earlier match of the text's end wins, ties go to the latest. When a copy leaves its source, the
//! position there is remembered: edits are short, and the copy usually resumes behind them.

use crate::TokenId;

/// Longer matches are not distinguished.
pub const MAX_MATCH_TOKENS: usize = 64;

/// Shorter matches are chance.
const MIN_MATCH_TOKENS: usize = 2;

/// Earlier positions that are compared for one draft.
const N_COMPARED: usize = 64;

/// A match of this length is a copy, whose position is remembered when it ends.
const IS_COPY: usize = 5;

/// Tokens after leaving its source within which a copy is expected back.
const MAX_EDIT_TOKENS: usize = 6;

/// Distance behind the position it left within which a copy may resume.
const MAX_SKIP_TOKENS: usize = 12;

/// Marks empty table entries.
const NONE: u32 = u32::MAX;

/// Where drafts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LookupSource {
    /// Position of the next drafted token.
    next: usize,
    /// Tokens before it that equal the end of the text. 0: a copy is expected to resume.
    n_matched: usize,
}

/// A copy that has left its source.
#[derive(Debug, Clone, Copy)]
struct InterruptedCopy {
    /// First position of the source that was not copied.
    at: usize,
    /// Tokens since.
    age: usize,
}

/// Index of all token pairs in a growing text.
#[derive(Debug)]
pub struct PromptLookup {
    /// Last position behind each pair, by the pair's hash. The length is a power of two.
    heads: Vec<u32>,
    /// For each position the previous one with the same hash. (positions)
    earlier: Vec<u32>,
    source: Option<LookupSource>,
    lost: Option<InterruptedCopy>,
}

impl PromptLookup {
    /// Creates an index for texts of up to `n_ctx` tokens. Never grows beyond that.
    pub fn new(n_ctx: usize) -> Self {
        let n_heads = n_ctx.clamp(256, 1 << 20).next_power_of_two();
        let earlier = Vec::with_capacity(n_ctx + 1);
        Self { heads: vec![NONE; n_heads], earlier, source: None, lost: None }
    }

    /// Returns how many tokens before the draft equal the end of the text. `None` without a draft; 0 if a copy is
    /// expected to resume.
    pub fn n_matched(&self) -> Option<usize> {
        self.source.map(|source| source.n_matched)
    }

    /// Returns the draft for the next token.
    pub fn next(&self, history: &[TokenId]) -> Option<TokenId> {
        self.source.and_then(|source| history.get(source.next)).copied()
    }

    /// Appends up to `n` tokens to `draft`. A source that reaches the end of the text continues in the draft itself.
    pub fn propose(&self, history: &[TokenId], n: usize, draft: &mut Vec<TokenId>) {
        let Some(LookupSource { next, .. }) = self.source else { return };
        let n_before = draft.len();
        for at in next..next + n {
            let token = history.get(at).or_else(|| draft.get(n_before + at - history.len()));
            let Some(&token) = token else { return };
            draft.push(token);
        }
    }

    /// Records that the text has grown to `history`, and finds the source of the next draft.
    pub fn observe(&mut self, history: &[TokenId]) {
        let n_before = self.earlier.len();
        self.index(history);
        if history.len() != n_before + 1 {
            // The first call, or after a jump.
            (self.source, self.lost) = (self.find(history), None);
            return;
        }
        let token = history[n_before];
        let kept = self.source.filter(|source| history[source.next] == token);
        match (kept, self.source) {
            (Some(LookupSource { next, n_matched }), _) => {
                let n_matched = if n_matched == 0 { MIN_MATCH_TOKENS - 1 } else { n_matched } + 1;
                let source = LookupSource { next: next + 1, n_matched: n_matched.min(MAX_MATCH_TOKENS) };
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
                    (_, Some(InterruptedCopy { at, age })) if age < MAX_EDIT_TOKENS => {
                        Some(InterruptedCopy { at, age: age + 1 })
                    }
                    (_, Some(_) | None) => None,
                };
                self.source = self.find_or_return(history);
            }
        }
    }

    /// Returns the best source. An interrupted copy takes precedence over short matches elsewhere.
    fn find_or_return(&self, history: &[TokenId]) -> Option<LookupSource> {
        let found = self.find(history);
        let Some(InterruptedCopy { at, age }) = self.lost else { return found };
        let is_near = |source: &LookupSource| (at..=at + age + MAX_SKIP_TOKENS).contains(&source.next);
        if found.is_some_and(|source| source.n_matched >= IS_COPY || is_near(&source)) {
            return found;
        }
        // If the last token stands further on, tokens were removed or inserted before it. Otherwise as many were
        // replaced as have come.
        let end = (at + age + MAX_SKIP_TOKENS).min(history.len() - 1);
        let last = history[history.len() - 1];
        let behind = history[at.min(end)..end].iter().position(|&token| token == last);
        let next = behind.map_or(at + age, |n| at + n + 1);
        (next < history.len()).then_some(LookupSource { next, n_matched: 0 })
    }

    /// Returns the longest match of the text's end.
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
                let n_matched = pairs.take(MAX_MATCH_TOKENS).take_while(|(a, b)| a == b).count();
                if n_matched >= MIN_MATCH_TOKENS && best.is_none_or(|best| n_matched > best.n_matched) {
                    best = Some(LookupSource { next, n_matched });
                }
                if n_matched == MAX_MATCH_TOKENS {
                    break;
                }
            }
            at = before;
        }
        best
    }

    /// Indexes the positions behind every pair. `earlier` is as long as the text was.
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

    /// The text with one token per character: first all but the last `n_single`, then those one by one.
    fn after(text: &str, n_single: usize) -> (PromptLookup, Vec<TokenId>) {
        let ids: Vec<TokenId> = text.chars().map(u32::from).collect();
        let mut lookup = PromptLookup::new(64);
        for n in ids.len().saturating_sub(n_single)..=ids.len() {
            lookup.observe(&ids[..n]);
        }
        (lookup, ids)
    }

    fn check(text: &str, n_matched: Option<usize>, drafts: &str) {
        for n_single in [0, 1, 3, text.chars().count()] {
            let (lookup, ids) = after(text, n_single);
            let mut draft = Vec::new();
            lookup.propose(&ids, 8, &mut draft);
            let draft: String = draft.into_iter().filter_map(char::from_u32).collect();
            assert_eq!((lookup.n_matched(), draft.as_str()), (n_matched, drafts), "{text:?} {n_single}");
            assert_eq!(lookup.next(&ids).and_then(char::from_u32), drafts.chars().next());
        }
    }

    #[test]
    fn the_longest_and_then_latest_match_wins() {
        check("", None, "");
        check("a", None, "");
        check("ab", None, "");
        check("abcdefgh", None, "");
        check("abcdefghijkl.ab", Some(2), "cdefghij");
        check("xab1 yab2 yab", Some(4), "2 yab2 y");
        check("xab1 yab2 zab", Some(2), "2 zab2 z");
        // The draft continues in itself.
        check("ababab", Some(4), "abababab");
        check("aaaa", Some(3), "aaaaaaaa");
        // One token alone is no match.
        check("abcd xd", None, "");
    }

    /// The draft at the end of a copy of `source` that has come to `copy`.
    fn check_copy(source: &str, copy: &str, n_matched: Option<usize>, drafts: &str) {
        let text = format!("{source}|{copy}");
        let (lookup, ids) = after(&text, copy.len());
        let mut draft = Vec::new();
        lookup.propose(&ids, drafts.len(), &mut draft);
        let draft: String = draft.into_iter().filter_map(char::from_u32).collect();
        assert_eq!((lookup.n_matched(), draft.as_str()), (n_matched, drafts), "{copy:?}");
    }

    #[test]
    fn copies_resume_behind_an_edit() {
        let source = "0123456789abcdefghijklmnopqrstuvwxyz";
        check_copy(source, "01234567", Some(8), "89abc");
        // Replaced: one, then three.
        check_copy(source, "01234567*", Some(0), "9abcd");
        check_copy(source, "01234567***", Some(0), "bcdef");
        // Inserted.
        check_copy(source, "01234567*8", Some(0), "9abcd");
        check_copy(source, "01234567*89", Some(2), "abcde");
        // Removed.
        check_copy(source, "01234567d", Some(0), "efghi");
        check_copy(source, "01234567de", Some(2), "fghij");
        // Unrelated from here on.
        check_copy(source, "01234567!@#$%^&", None, "");
        // Was no copy.
        check_copy(source, "012*", None, "");
    }

    #[test]
    fn long_texts_are_searched_in_bounded_time() {
        let ids: Vec<TokenId> = (0..5000).map(|i| i % 2).collect();
        let mut lookup = PromptLookup::new(5000);
        lookup.observe(&ids);
        assert_eq!((lookup.n_matched(), lookup.next(&ids)), (Some(MAX_MATCH_TOKENS), Some(0)));
        lookup.observe(&[&ids[..], &[7, 7]].concat());
        assert_eq!(lookup.n_matched(), None);
    }
}
