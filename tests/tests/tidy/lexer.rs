//! Rust source as tokens with line numbers; comments apart. As much of the grammar as the rules need:
//! strings, raw strings, characters, lifetimes, nested comments; everything else is a word or a sign.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Word,
    /// Contents of a string literal, quotes off.
    Text,
    /// Number, character, lifetime.
    Other,
    Sign,
}

#[derive(Debug, Clone)]
pub struct Token {
    pub kind: Kind,
    pub text: String,
    /// From 1.
    pub line: usize,
    /// Part of a test: never shipped.
    pub test: bool,
}

#[derive(Debug, Clone)]
pub struct Comment {
    pub line: usize,
    pub text: String,
}

/// Two-character signs that rules look at; all others are taken one by one.
const PAIRS: [&str; 6] = ["::", "=>", "==", "!=", "->", "&&"];

pub fn lex(source: &str) -> (Vec<Token>, Vec<Comment>) {
    let mut lexer = Lexer { rest: source, line: 1, tokens: Vec::new(), comments: Vec::new() };
    while !lexer.rest.is_empty() {
        lexer.step();
    }
    mark_tests(&mut lexer.tokens);
    (lexer.tokens, lexer.comments)
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    tokens: Vec<Token>,
    comments: Vec<Comment>,
}

impl Lexer<'_> {
    fn step(&mut self) {
        let first = self.rest.chars().next().expect("not empty: checked by the caller");
        if first.is_whitespace() {
            self.take(first.len_utf8());
        } else if self.rest.starts_with("//") {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.comment(end);
        } else if self.rest.starts_with("/*") {
            self.comment(block_comment_len(self.rest));
        } else if let Some((open, close, len)) = string_len(self.rest) {
            let line = self.line;
            let whole = self.take(len);
            self.push(Kind::Text, whole[open..whole.len() - close].to_string(), line);
        } else if let Some(len) = quote_len(self.rest) {
            let line = self.line;
            let text = self.take(len);
            self.push(Kind::Other, text, line);
        } else if first.is_alphabetic() || first == '_' {
            let len = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
            let line = self.line;
            let text = self.take(len);
            self.push(Kind::Word, text, line);
        } else if first.is_ascii_digit() {
            let len = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
            let line = self.line;
            let text = self.take(len);
            self.push(Kind::Other, text, line);
        } else {
            let pair = PAIRS.iter().any(|p| self.rest.starts_with(p));
            let line = self.line;
            let text = self.take(if pair { 2 } else { first.len_utf8() });
            self.push(Kind::Sign, text, line);
        }
    }

    fn take(&mut self, len: usize) -> String {
        let (taken, rest) = self.rest.split_at(len);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken.to_string()
    }

    fn push(&mut self, kind: Kind, text: String, line: usize) {
        self.tokens.push(Token { kind, text, line, test: false });
    }

    fn comment(&mut self, len: usize) {
        let line = self.line;
        let text = self.take(len);
        for (i, part) in text.lines().enumerate() {
            self.comments.push(Comment { line: line + i, text: part.to_string() });
        }
    }
}

fn block_comment_len(rest: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0usize);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// (opening length, closing length, whole length) of a string literal of any kind at the start.
fn string_len(rest: &str) -> Option<(usize, usize, usize)> {
    let prefix = ["br", "cr", "b", "c", "r"].iter().find(|p| {
        rest.strip_prefix(**p).is_some_and(|r| r.starts_with('"') || (p.ends_with('r') && r.starts_with('#')))
    });
    let after = &rest[prefix.map_or(0, |p| p.len())..];
    let start = rest.len() - after.len();
    if prefix.is_some_and(|p| p.ends_with('r')) {
        let hashes = after.len() - after.trim_start_matches('#').len();
        if !after[hashes..].starts_with('"') {
            return None; // r#keyword
        }
        let close = format!("\"{}", "#".repeat(hashes));
        let open = start + hashes + 1;
        let end = rest[open..].find(&close).map_or(rest.len(), |i| open + i + close.len());
        return Some((open, close.len(), end));
    }
    if !after.starts_with('"') {
        return None;
    }
    let mut escaped = false;
    for (i, c) in after.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some((start + 1, 1, start + i + 1)),
            _ => {}
        }
    }
    Some((start + 1, 0, rest.len()))
}

/// Length of a character literal or a lifetime at the start.
fn quote_len(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix("b'").or_else(|| rest.strip_prefix('\''))?;
    let start = rest.len() - body.len();
    let mut chars = body.char_indices();
    let (_, first) = chars.next()?;
    if first == '\\' {
        // '\'' and '\\' first, then '\u{…}'
        let from = 2.min(body.len());
        return body[from..].find('\'').map(|i| start + from + i + 1);
    }
    match chars.next() {
        Some((i, '\'')) => Some(start + i + 1),
        _ => {
            let name = body.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(body.len());
            Some(start + name.max(1))
        }
    }
}

/// Marks what stands under `#[cfg(test)]` or `#[test]`: the item up to its closing brace or semicolon.
fn mark_tests(tokens: &mut [Token]) {
    let mut at = 0;
    while at < tokens.len() {
        if !is_test_attribute(tokens, at) {
            at += 1;
            continue;
        }
        let mut end = closing(tokens, at + 1) + 1; // past `#[…]`
        while end < tokens.len() && tokens[end].text == "#" {
            end = closing(tokens, end + 1) + 1;
        }
        while end < tokens.len() && tokens[end].text != "{" && tokens[end].text != ";" {
            end = if matches!(tokens[end].text.as_str(), "(" | "[") { closing(tokens, end) } else { end } + 1;
        }
        if end < tokens.len() && tokens[end].text == "{" {
            end = closing(tokens, end);
        }
        let end = (end + 1).min(tokens.len());
        tokens[at..end].iter_mut().for_each(|t| t.test = true);
        at = end;
    }
}

fn is_test_attribute(tokens: &[Token], at: usize) -> bool {
    let text = |i: usize| tokens.get(at + i).map_or("", |t| t.text.as_str());
    if text(0) != "#" || text(1) != "[" {
        return false;
    }
    (text(2) == "test" && text(3) == "]")
        || (text(2) == "cfg" && text(4) == "test" && text(5) == ")")
        || (text(2) == "cfg" && text(4) == "all" && text(6) == "test")
}

/// Index of the bracket that closes the one at `open`; the last token if none does.
pub fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        if token.kind != Kind::Sign {
            continue;
        }
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return i;
                }
            }
            _ => {}
        }
    }
    tokens.len().saturating_sub(1)
}
