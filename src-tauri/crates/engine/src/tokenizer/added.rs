//! Added tokens: control and user-defined tokens that are matched as a whole before merging.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::Range;

use super::TokenId;
use super::pair_hash::PairHasher;

/// A token that is matched by its text.
#[derive(Debug, Clone)]
pub struct AddedToken {
    pub text: String,
    pub id: TokenId,
    pub is_control: bool,
    /// Whether it includes white space before it, and after it.
    pub takes_left: bool,
    pub takes_right: bool,
    /// Whether it is not matched inside a word.
    pub single_word: bool,
}

impl AddedToken {
    pub fn new(text: &str, id: TokenId, is_control: bool) -> Self {
        let text = text.to_string();
        Self { text, id, is_control, takes_left: false, takes_right: false, single_word: false }
    }

    /// Returns whether a model may read this as a command: markup, except HTML tags that some vocabularies contain.
    pub fn may_steer(&self) -> bool {
        let text = self.text.trim();
        let is_markup = (text.starts_with('<') && text.ends_with('>'))
            || (text.starts_with('[') && text.ends_with(']'))
            || text.contains('|');
        let name = text.trim_matches(['<', '>', '/']);
        self.is_control || (is_markup && !HTML_TAGS.split_whitespace().any(|tag| tag == name))
    }
}

const HTML_TAGS: &str = "a b blockquote br caption code del div em h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre \
    s small span strong sub sup table tbody td tfoot th thead tr tt u ul";

/// A match in a text.
#[derive(Debug)]
pub struct AddedTokenMatch<'a> {
    /// Bytes of the text, including white space that belongs to the token.
    pub range: Range<usize>,
    pub added: &'a AddedToken,
}

/// All added tokens of a model, as a trie over bytes.
#[derive(Debug, Default)]
pub struct AddedTokens {
    all: Vec<AddedToken>,
    /// Node and byte → node. Node 0 is the root.
    children: HashMap<(u32, u8), u32, BuildHasherDefault<PairHasher>>,
    /// The token that ends at a node: an index into `all`.
    ends: Vec<Option<u32>>,
    /// Bytes that begin a token. Most positions of a text begin none.
    begins: Vec<bool>,
}

impl AddedTokens {
    /// Builds the trie. Empty texts are dropped; of equal texts the first stays.
    pub fn new(all: Vec<AddedToken>) -> Self {
        let mut tokens =
            Self { all, children: HashMap::default(), ends: vec![None], begins: vec![false; 256] };
        for index in 0..tokens.all.len() {
            let mut node = 0;
            if let Some(&first) = tokens.all[index].text.as_bytes().first() {
                tokens.begins[first as usize] = true;
            }
            for &byte in tokens.all[index].text.as_bytes() {
                let next = tokens.ends.len() as u32;
                let child = *tokens.children.entry((node, byte)).or_insert(next);
                if child == next {
                    tokens.ends.push(None);
                }
                node = child;
            }
            if node != 0 {
                tokens.ends[node as usize].get_or_insert(index as u32);
            }
        }
        tokens
    }

    /// Returns the bytes of the longest token.
    pub fn longest(&self) -> usize {
        self.all.iter().map(|added| added.text.len()).max().unwrap_or(0)
    }

    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|added| added.text.as_str())
    }

    /// Returns whether a match depends on text before it: on white space, of a token that may be typed, or on a word.
    ///
    /// White space that a control token includes is known by the time a restart after it is valid.
    pub fn depend_on_surroundings(&self) -> bool {
        self.all.iter().any(|it| it.single_word || (!it.is_control && (it.takes_left || it.takes_right)))
    }

    /// Returns the first match at or after byte `from` that `accept` permits: leftmost, then longest.
    pub fn find(
        &self,
        text: &str,
        from: usize,
        accept: &dyn Fn(&AddedToken, &Range<usize>) -> bool,
    ) -> Option<AddedTokenMatch<'_>> {
        if self.all.is_empty() {
            return None;
        }
        let may_begin = |at: &usize| self.begins[text.as_bytes()[*at] as usize];
        (from..text.len()).filter(may_begin).find_map(|start| {
            let (mut node, mut best) = (0, None);
            for (at, &byte) in text.as_bytes().iter().enumerate().skip(start) {
                let Some(&child) = self.children.get(&(node, byte)) else { break };
                node = child;
                let Some(index) = self.ends[node as usize] else { continue };
                let (added, range) = (&self.all[index as usize], start..at + 1);
                if fits(added, text, &range) && accept(added, &range) {
                    best = Some((added, range));
                }
            }
            best.map(|(added, range)| AddedTokenMatch { range: widen(added, text, range, from), added })
        })
    }
}

fn fits(added: &AddedToken, text: &str, range: &Range<usize>) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    !added.single_word
        || !(text[..range.start].chars().next_back().is_some_and(is_word)
            || text[range.end..].chars().next().is_some_and(is_word))
}

fn widen(added: &AddedToken, text: &str, range: Range<usize>, from: usize) -> Range<usize> {
    let start = if added.takes_left { from + text[from..range.start].trim_end().len() } else { range.start };
    let after = &text[range.end..];
    let taken = if added.takes_right { after.len() - after.trim_start().len() } else { 0 };
    start..range.end + taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> AddedTokens {
        let mut all = vec![
            AddedToken::new("<a>", 1, true),
            AddedToken::new("<a><b>", 2, true),
            AddedToken::new("  ", 3, false),
            AddedToken::new("é", 4, false),
            AddedToken::new("", 5, true),
        ];
        all.push(AddedToken { takes_left: true, takes_right: true, ..AddedToken::new("<m>", 6, true) });
        all.push(AddedToken { single_word: true, ..AddedToken::new("word", 7, false) });
        AddedTokens::new(all)
    }

    fn check(text: &str, from: usize, expected: Option<(Range<usize>, TokenId)>) {
        let tokens = tokens();
        let found = tokens.find(text, from, &|_, _| true).map(|m| (m.range, m.added.id));
        assert_eq!(found, expected, "{text:?} from {from}");
    }

    #[test]
    fn finds_leftmost_longest() {
        check("x<a>y", 0, Some((1..4, 1)));
        check("x<a><b>y", 0, Some((1..7, 2)));
        check("x<a><c>y", 0, Some((1..4, 1)));
        check("<a><a>", 1, Some((3..6, 1)));
        check("<a", 0, None);
        check("", 0, None);
        check("日é", 0, Some((3..5, 4)));
        check("x \n<m> y", 0, Some((1..7, 6)));
        check("a   b", 0, Some((1..3, 3)));
        check("words word", 0, Some((6..10, 7)));
        check("sword", 0, None);
    }

    #[test]
    fn a_refused_match_allows_a_shorter_one() {
        let tokens = tokens();
        let found = tokens.find("<a><b>", 0, &|added, _| added.id != 2).map(|m| m.added.id);
        assert_eq!(found, Some(1));
        assert!(tokens.find("<a><b>", 0, &|added, _| !added.is_control).is_none());
    }

    #[test]
    fn web_markup_does_not_steer() {
        let steers = |text: &str| AddedToken::new(text, 0, false).may_steer();
        assert!(steers("</think>") && steers("<tool_call>") && steers("<|x|>") && steers("[INST]"));
        assert!(!steers("<table>") && !steers("</h1>") && !steers("  ") && !steers("\n\n"));
    }
}
