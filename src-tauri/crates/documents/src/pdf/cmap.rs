//! Reads CMaps: what a font's codes mean as text (`ToUnicode`) and which glyphs (CIDs) they stand for.
//! What can't be read of one costs that entry. Entries are bounded.

use std::collections::HashSet;

use super::glyph_names;

/// Entries of one map: each code of two bytes has one.
const MAX_ENTRIES: usize = 70_000;

/// Ranges may overlap: the last few that begin before a code are searched.
const MAX_OVERLAP: usize = 8;

/// Codes of one range that are looked at for a character.
const MAX_RANGE: u32 = 0x100;

/// Longest text of one code; a ligature has a few letters.
const MAX_TEXT_BYTES: usize = 128;

/// Operands of one section. The specification allows 100 entries, and files write more.
const MAX_OPERANDS: usize = 4 * MAX_ENTRIES;

/// A range of codes and what the first of them means.
#[derive(Debug, Clone)]
struct CodeRange<T> {
    first: u32,
    last: u32,
    target: T,
}

/// Byte length and bounds of valid codes.
#[derive(Debug, Clone, Copy)]
struct CodeSpace {
    n_bytes: usize,
    low: u32,
    high: u32,
}

impl CodeSpace {
    /// Each byte of a code lies between those of the bounds.
    fn holds(self, code: u32, n_bytes: usize) -> bool {
        let byte = |of: u32, at: usize| of >> (8 * at) & 0xff;
        n_bytes == self.n_bytes
            && (0..n_bytes).all(|at| (byte(self.low, at)..=byte(self.high, at)).contains(&byte(code, at)))
    }
}

/// A map that was read.
#[derive(Debug, Clone, Default)]
pub struct CMap {
    spaces: Vec<CodeSpace>,
    texts: Vec<CodeRange<String>>,
    cids: Vec<CodeRange<u32>>,
    /// Codes of which the map says that they have no text.
    empty: HashSet<u32>,
    /// A map that this one completes.
    pub base: Option<Vec<u8>>,
    pub is_vertical: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Bytes(Vec<u8>),
    Name(Vec<u8>),
    Number(i64),
    Open,
    Close,
    Operator(Vec<u8>),
}

impl CMap {
    /// Reads whatever is readable.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut map = Self::default();
        let mut operands: Vec<Token> = Vec::new();
        let mut section: Vec<u8> = Vec::new();
        for token in (Tokens { bytes, at: 0 }) {
            let Token::Operator(operator) = token else {
                if operands.len() < MAX_OPERANDS {
                    operands.push(token);
                }
                continue;
            };
            match (operator.as_slice(), operands.as_slice()) {
                (b"usecmap", [.., Token::Name(name)]) => map.base = Some(name.clone()),
                (b"def", [.., Token::Name(name), Token::Number(1)]) if name == b"WMode" => {
                    map.is_vertical = true
                }
                _ => map.add(&section, &operands),
            }
            section = operator.strip_prefix(b"begin").map(<[u8]>::to_vec).unwrap_or_default();
            operands.clear();
        }
        map.add(&section, &operands);
        // of two entries for a code the later one counts
        map.texts.reverse();
        map.texts.sort_by_key(|range| range.first);
        map.cids.reverse();
        map.cids.sort_by_key(|range| range.first);
        map
    }

    fn add(&mut self, section: &[u8], operands: &[Token]) {
        match section {
            b"codespacerange" => self.add_spaces(operands),
            b"bfchar" => self.add_texts(operands, false),
            b"bfrange" => self.add_texts(operands, true),
            b"cidchar" => self.add_cids(operands, false),
            b"cidrange" => self.add_cids(operands, true),
            _ => {}
        }
    }

    fn add_spaces(&mut self, operands: &[Token]) {
        for pair in operands.chunks_exact(2).take(MAX_TEXT_BYTES) {
            let [Token::Bytes(low), Token::Bytes(high)] = pair else { continue };
            let n_bytes = low.len();
            if (1..=4).contains(&n_bytes) && high.len() == n_bytes {
                self.spaces.push(CodeSpace { n_bytes, low: code(low), high: code(high) });
            }
        }
    }

    fn add_texts(&mut self, mut operands: &[Token], has_last: bool) {
        while let [Token::Bytes(first), rest @ ..] = operands {
            let (last, rest) = match (has_last, rest) {
                (true, [Token::Bytes(last), rest @ ..]) => (code(last), rest),
                (true, _) => return,
                (false, rest) => (code(first), rest),
            };
            let first = code(first);
            operands = match rest {
                [Token::Open, list @ ..] => {
                    let n = list.iter().position(|it| *it == Token::Close).unwrap_or(list.len());
                    for (at, target) in (first..=last).zip(&list[..n]) {
                        self.add_text(at, at, target);
                    }
                    list.get(n + 1..).unwrap_or_default()
                }
                [target, rest @ ..] => {
                    self.add_text(first, last, target);
                    rest
                }
                [] => return,
            };
        }
    }

    fn add_text(&mut self, first: u32, last: u32, target: &Token) {
        let text = match target {
            Token::Bytes(bytes) => text_of(bytes),
            Token::Name(name) => glyph_names::text_of(name, false),
            Token::Number(_) | Token::Open | Token::Close | Token::Operator(_) => None,
        };
        if first == last && *target == Token::Bytes(Vec::new()) && self.empty.len() < MAX_ENTRIES {
            self.empty.insert(first);
        }
        if let Some(target) = text
            && first <= last
            && self.texts.len() < MAX_ENTRIES
        {
            self.texts.push(CodeRange { first, last, target });
        }
    }

    fn add_cids(&mut self, mut operands: &[Token], has_last: bool) {
        while let [Token::Bytes(first), rest @ ..] = operands {
            let (last, cid, rest) = match (has_last, rest) {
                (true, [Token::Bytes(last), Token::Number(cid), rest @ ..]) => (code(last), *cid, rest),
                (false, [Token::Number(cid), rest @ ..]) => (code(first), *cid, rest),
                _ => return,
            };
            operands = rest;
            let first = code(first);
            if let Ok(target) = u32::try_from(cid)
                && first <= last
                && self.cids.len() < MAX_ENTRIES
            {
                self.cids.push(CodeRange { first, last, target });
            }
        }
    }

    /// It says what codes mean as text.
    pub fn has_texts(&self) -> bool {
        !self.texts.is_empty()
    }

    /// Codes of which the map says that they have no text.
    pub fn has_empty_texts(&self) -> bool {
        !self.empty.is_empty()
    }

    /// The map says that this code has no text.
    pub fn is_empty_text(&self, code: u32) -> bool {
        self.empty.contains(&code)
    }

    /// Texts that the map holds, each of a code or of the first one of a range.
    pub fn texts(&self) -> impl Iterator<Item = (u32, &str)> {
        self.texts.iter().map(|range| (range.first, range.target.as_str()))
    }

    /// The map has a text with such a character. Ranges count up the last one.
    pub fn has_char(&self, is_wanted: impl Fn(char) -> bool) -> bool {
        let in_range = |range: &CodeRange<String>| {
            let length = (range.last - range.first).min(MAX_RANGE);
            let last = range.target.chars().next_back().map_or(0, u32::from);
            let counted = (1..=length).filter_map(|n| char::from_u32(last.checked_add(n)?));
            range.target.chars().chain(counted).any(&is_wanted)
        };
        self.texts.iter().any(in_range)
    }

    /// What a code means. None: the map doesn't say.
    pub fn text(&self, code: u32) -> Option<String> {
        let range = find(&self.texts, code)?;
        let offset = code - range.first;
        if offset == 0 {
            return Some(range.target.clone());
        }
        // ranges count up the last character
        let mut text = range.target.clone();
        let last = text.pop()?;
        text.push(char::from_u32(u32::from(last).checked_add(offset)?)?);
        Some(text)
    }

    /// The CID of a code.
    pub fn cid(&self, code: u32) -> Option<u32> {
        let range = find(&self.cids, code)?;
        range.target.checked_add(code - range.first)
    }

    /// Length of the code at the front of `bytes`. None: the map doesn't say.
    pub fn code_bytes(&self, bytes: &[u8]) -> Option<usize> {
        let lengths = 1..=bytes.len().min(4);
        let mut lengths = lengths.filter(|n| self.spaces.iter().any(|it| it.holds(code(&bytes[..*n]), *n)));
        // a code outside of all spaces is as long as the shortest
        lengths.next().or_else(|| self.spaces.iter().map(|space| space.n_bytes).min())
    }
}

fn find<T>(ranges: &[CodeRange<T>], code: u32) -> Option<&CodeRange<T>> {
    let end = ranges.partition_point(|range| range.first <= code);
    let before = &ranges[end.saturating_sub(MAX_OVERLAP)..end];
    // equal beginnings: the first of them was written last
    let begins = before.iter().rev().find(|range| range.last >= code)?.first;
    before.iter().find(|range| range.first == begins && range.last >= code)
}

/// Bytes as a number; of more than four the last four count.
pub fn code(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |code, byte| code << 8 | u32::from(*byte))
}

/// UTF-16BE; a single byte is one character. None: nothing that is text.
fn text_of(bytes: &[u8]) -> Option<String> {
    let bytes = &bytes[..bytes.len().min(MAX_TEXT_BYTES)];
    let text = match bytes {
        [] => return None,
        [byte] => char::from(*byte).to_string(),
        bytes => {
            let units: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|it| u16::from_be_bytes(*it)).collect();
            String::from_utf16_lossy(&units)
        }
    };
    let text = text.trim_end_matches('\0');
    (!text.is_empty()).then(|| text.to_owned())
}

/// PostScript as far as CMaps use it.
struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Tokens<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take_while(&mut self, is_wanted: impl Fn(u8) -> bool) -> &[u8] {
        let start = self.at;
        while self.peek().is_some_and(&is_wanted) {
            self.at += 1;
        }
        &self.bytes[start..self.at]
    }

    fn hex(&mut self) -> Token {
        let digits: Vec<u8> = self.take_while(|c| c != b'>').iter().filter_map(|c| nibble(*c)).collect();
        self.at += 1;
        let pairs = digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0));
        Token::Bytes(pairs.collect())
    }

    /// Strings in parentheses: only names of registries.
    fn skip_string(&mut self) {
        let mut depth = 1;
        while let Some(c) = self.peek()
            && depth > 0
        {
            self.at += 1;
            match c {
                b'\\' => self.at += 1,
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
        }
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let is_regular = |c: u8| !c.is_ascii_whitespace() && c != 0 && !b"()<>[]{}/%".contains(&c);
        loop {
            let c = self.peek()?;
            if is_regular(c) {
                let word = self.take_while(is_regular).to_vec();
                let number = std::str::from_utf8(&word).ok().and_then(|word| word.parse().ok());
                return Some(number.map_or(Token::Operator(word), Token::Number));
            }
            self.at += 1;
            match c {
                b'<' if self.peek() == Some(b'<') => self.at += 1,
                b'<' => return Some(self.hex()),
                b'/' => return Some(Token::Name(self.take_while(is_regular).to_vec())),
                b'[' => return Some(Token::Open),
                b']' => return Some(Token::Close),
                b'(' => self.skip_string(),
                b'%' => drop(self.take_while(|c| c != b'\n' && c != b'\r')),
                _ => {}
            }
        }
    }
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|it| u8::try_from(it).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_mean_what_the_map_says() {
        let map = CMap::parse(
            b"/CIDInit /ProcSet findresource begin << /Registry (Ad(o)be) >> def
            1 begincodespacerange <00> <ff> endcodespacerange
            2 beginbfchar <01> <0041> <0002> <d83dde00> endbfchar
            3 beginbfrange <10> <12> <0061> <20><21>[<0066 0066><0078>] <30> <30> /eacute endbfrange
            1 beginbfchar % a remark
            <03> <42> <04> <> <01> <0043> endbfchar",
        );
        let cases: &[(u32, Option<&str>)] = &[
            (1, Some("C")),
            (2, Some("😀")),
            (3, Some("B")),
            (4, None),
            (0x10, Some("a")),
            (0x12, Some("c")),
            (0x13, None),
            (0x20, Some("ff")),
            (0x21, Some("x")),
            (0x30, Some("é")),
        ];
        for (code, expected) in cases {
            assert_eq!(map.text(*code).as_deref(), *expected, "{code:x}");
        }
        assert_eq!(map.code_bytes(b"\x10\x11"), Some(1));
        assert_eq!((map.is_empty_text(4), map.is_empty_text(3)), (true, false));
    }

    #[test]
    fn codes_of_several_lengths_are_told_apart() {
        let map = CMap::parse(
            b"/WMode 1 def /90ms-RKSJ-H usecmap
            2 begincodespacerange <00> <80> <8140> <9ffc> endcodespacerange
            1 begincidrange <8140> <817e> 633 endcidrange 1 begincidchar <20> 231 endcidchar",
        );
        assert_eq!((map.code_bytes(b"\x20\x81"), map.code_bytes(b"\x81\x40")), (Some(1), Some(2)));
        assert_eq!((map.cid(0x8142), map.cid(0x20), map.cid(0x21)), (Some(635), Some(231), None));
        assert_eq!((map.base.as_deref(), map.is_vertical), (Some(b"90ms-RKSJ-H".as_slice()), true));
    }

    #[test]
    fn broken_maps_cost_what_is_broken() {
        let map = CMap::parse(b"beginbfchar <01> <0041> oops <02> <0042> endbfchar beginbfchar <03> <0043>");
        assert_eq!((map.text(1).as_deref(), map.text(3).as_deref()), (Some("A"), Some("C")));
        let ranges = CMap::parse(b"beginbfrange <00000000> <ffffffff> <0041> <05> <01> <0042> endbfrange");
        assert_eq!(ranges.text(1).as_deref(), Some("B"));
        assert_eq!(ranges.text(u32::MAX), None);
        for odd in
            [b"<".as_slice(), b"(", b"beginbfrange <00> [", b"beginbfchar <", b"begincodespacerange <> <>"]
        {
            assert!(!CMap::parse(odd).has_texts());
        }
    }
}
