//! Splits a template into text and tokens, as Jinja does with `trim_blocks` and `lstrip_blocks`.

use crate::failure::SyntaxError;

#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    Text(String),
    PrintBegin,
    PrintEnd,
    BlockBegin,
    BlockEnd,
    Name(String),
    String(String),
    Int(i128),
    Float(f64),
    /// An operator or bracket.
    Sign(&'static str),
    End,
}

/// Operators, the longest first.
const SIGNS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "*", "/", "~", "%", ">", "<", "=", ".", ":", "|", ",", ";",
    "(", ")", "[", "]", "{", "}",
];

pub struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line: u32,
    tokens: Vec<(Token, u32)>,
    /// What precedes is the start of a line.
    starts_line: bool,
}

type Step = Result<(), SyntaxError>;

/// Returns the tokens with their lines.
pub fn tokens(source: &str) -> Result<Vec<(Token, u32)>, SyntaxError> {
    let mut lexer = Lexer { source, at: 0, line: 1, tokens: Vec::new(), starts_line: true };
    while lexer.at < source.len() {
        lexer.outside()?;
    }
    let line = lexer.line;
    lexer.tokens.push((Token::End, line));
    Ok(lexer.tokens)
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, SyntaxError> {
        Err(SyntaxError { message: message.into(), line: self.line })
    }

    fn advance(&mut self, n: usize) {
        let passed = &self.source.as_bytes()[self.at..self.at + n];
        self.line += passed.iter().filter(|byte| **byte == b'\n').count() as u32;
        self.at += n;
        if let Some(last) = passed.last() {
            self.starts_line = *last == b'\n';
        }
    }

    fn push(&mut self, token: Token) {
        self.tokens.push((token, self.line));
    }

    /// Text up to the next tag, and that tag.
    fn outside(&mut self) -> Step {
        let rest = self.rest();
        let tag = rest
            .match_indices('{')
            .find(|(at, _)| matches!(rest.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#')));
        let Some((at, _)) = tag else {
            self.push(Token::Text(rest.to_owned()));
            self.advance(rest.len());
            return Ok(());
        };
        let kind = rest.as_bytes()[at + 1];
        let sign = rest.as_bytes().get(at + 2).copied().filter(|sign| matches!(sign, b'-' | b'+'));
        let text = self.before_tag(&rest[..at], kind, sign);
        if !text.is_empty() {
            self.push(Token::Text(text.to_owned()));
        }
        self.advance(at);
        let opening = 2 + usize::from(sign.is_some());
        match kind {
            b'#' => self.comment(),
            b'%' => match raw_begin(&rest[at + opening..]) {
                Some(n) => self.raw(opening + n),
                None => {
                    self.push(Token::BlockBegin);
                    self.advance(opening);
                    self.inside(b'%')
                }
            },
            _ => {
                self.push(Token::PrintBegin);
                self.advance(opening);
                self.inside(b'}')
            }
        }
    }

    fn before_tag<'t>(&self, text: &'t str, kind: u8, sign: Option<u8>) -> &'t str {
        match sign {
            Some(b'-') => text.trim_end(),
            None if kind != b'{' => {
                let line = text.rfind('\n').map_or(0, |at| at + 1);
                let is_blank = text[line..].chars().all(char::is_whitespace);
                if is_blank && (line > 0 || self.starts_line) { &text[..line] } else { text }
            }
            _ => text,
        }
    }

    fn comment(&mut self) -> Step {
        let Some(end) = self.rest()[2..].find("#}").map(|end| end + 4) else {
            return self.error("a comment is not closed");
        };
        let sign = self.rest().as_bytes()[end - 3];
        self.advance(end);
        self.after_tag(sign, true);
        Ok(())
    }

    /// Removes white space after a tag whose last sign is given.
    fn after_tag(&mut self, sign: u8, trims_line: bool) {
        let rest = self.rest();
        match sign {
            b'-' => self.advance(rest.len() - rest.trim_start().len()),
            b'+' => {}
            _ if trims_line && rest.starts_with('\n') => self.advance(1),
            _ => {}
        }
    }

    /// `opening`: bytes of the whole opening tag.
    fn raw(&mut self, opening: usize) -> Step {
        let is_trimmed = self.rest().as_bytes()[opening - 3] == b'-';
        self.advance(opening);
        self.after_tag(if is_trimmed { b'-' } else { b'+' }, false);
        let rest = self.rest();
        let ends = rest.match_indices("{%").find_map(|(at, _)| {
            let tag = &rest[at + 2..];
            let sign = tag.as_bytes().first().copied().filter(|sign| matches!(sign, b'-' | b'+'));
            let inner = tag[usize::from(sign.is_some())..].trim_start().strip_prefix("endraw")?.trim_start();
            let end_sign = inner.as_bytes().first().copied().filter(|sign| matches!(sign, b'-' | b'+'));
            let after = inner[usize::from(end_sign.is_some())..].strip_prefix("%}")?;
            Some((at, sign, end_sign, rest.len() - after.len()))
        });
        let Some((at, sign, end_sign, end)) = ends else { return self.error("a raw block is not closed") };
        let text = self.before_tag(&rest[..at], b'%', sign);
        if !text.is_empty() {
            self.push(Token::Text(text.to_owned()));
        }
        self.advance(end);
        self.after_tag(end_sign.unwrap_or(b' '), true);
        Ok(())
    }

    /// Tokens up to the end of the tag.
    fn inside(&mut self, kind: u8) -> Step {
        let mut open: Vec<u8> = Vec::new();
        loop {
            let rest = self.rest();
            let space = rest.len() - rest.trim_start().len();
            self.advance(space);
            let rest = self.rest();
            let Some(c) = rest.chars().next() else { return self.error("a tag is not closed") };
            if open.is_empty()
                && let Some((n, sign)) = tag_end(rest, kind)
            {
                self.push(if kind == b'%' { Token::BlockEnd } else { Token::PrintEnd });
                self.advance(n);
                self.after_tag(sign, kind == b'%');
                return Ok(());
            }
            match c {
                '"' | '\'' => self.string(c)?,
                '0'..='9' => self.number()?,
                c if c.is_alphabetic() || c == '_' => {
                    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                    self.push(Token::Name(rest[..end].to_owned()));
                    self.advance(end);
                }
                _ => self.sign(&mut open)?,
            }
        }
    }

    fn sign(&mut self, open: &mut Vec<u8>) -> Step {
        let rest = self.rest();
        let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) else {
            return self.error(format!("unexpected character {:?}", rest.chars().next().unwrap_or(' ')));
        };
        match sign.as_bytes() {
            [bracket @ (b'(' | b'[' | b'{')] => open.push(*bracket),
            [bracket @ (b')' | b']' | b'}')] => {
                let fits = matches!(
                    (open.pop(), bracket),
                    (Some(b'('), b')') | (Some(b'['), b']') | (Some(b'{'), b'}')
                );
                if !fits {
                    return self.error(format!("unexpected '{sign}'"));
                }
            }
            _ => {}
        }
        self.push(Token::Sign(sign));
        self.advance(sign.len());
        Ok(())
    }

    fn number(&mut self) -> Step {
        let rest = self.rest();
        let radix = match rest.get(..2) {
            Some("0x" | "0X") => 16,
            Some("0o" | "0O") => 8,
            Some("0b" | "0B") => 2,
            _ => 10,
        };
        if radix != 10 {
            let digits = &rest[2..];
            let end = digits.find(|c: char| !c.is_digit(radix) && c != '_').unwrap_or(digits.len());
            let value = i128::from_str_radix(&digits[..end].replace('_', ""), radix);
            let Ok(value) = value else { return self.error("a number is not valid") };
            self.push(Token::Int(value));
            self.advance(2 + end);
            return Ok(());
        }
        let digits = |from: usize| {
            let end = rest[from..].find(|c: char| !c.is_ascii_digit() && c != '_');
            end.map_or(rest.len(), |end| from + end)
        };
        let (mut end, mut is_float) = (digits(0), false);
        if rest[end..].starts_with('.') && rest.as_bytes().get(end + 1).is_some_and(u8::is_ascii_digit) {
            (end, is_float) = (digits(end + 1), true);
        }
        if rest[end..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
            if rest.as_bytes().get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
                (end, is_float) = (digits(end + 1 + sign), true);
            }
        }
        let text = rest[..end].replace('_', "");
        let token = match is_float {
            true => text.parse().ok().map(Token::Float),
            false => text.parse().ok().map(Token::Int),
        };
        let Some(token) = token else { return self.error("a number is too large") };
        self.push(token);
        self.advance(end);
        Ok(())
    }

    fn string(&mut self, quote: char) -> Step {
        let rest = self.rest();
        let mut text = String::new();
        let mut chars = rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.push(Token::String(text));
                    self.advance(at + 1);
                    return Ok(());
                }
                '\\' => escape(&mut chars, &mut text),
                c => text.push(c),
            }
        }
        self.error("a string is not closed")
    }
}

/// Reads what follows a backslash, as in Python's strings. An unknown escape stays as it is.
fn escape(chars: &mut (impl Iterator<Item = (usize, char)> + Clone), text: &mut String) {
    let Some((_, c)) = chars.next() else { return };
    let mut code = |n: usize, radix: u32, first: Option<char>| {
        let mut ahead = chars.clone();
        let mut digits: String = first.into_iter().collect();
        while digits.len() < n
            && let Some((_, digit)) = ahead.next()
            && digit.is_digit(radix)
        {
            digits.push(digit);
        }
        let is_whole = digits.len() == n || (radix == 8 && !digits.is_empty());
        let found = u32::from_str_radix(&digits, radix).ok().filter(|_| is_whole)?;
        let taken = digits.len() - usize::from(first.is_some());
        (0..taken).for_each(|_| _ = chars.next());
        // half of a surrogate pair is no character
        Some(char::from_u32(found).unwrap_or(char::REPLACEMENT_CHARACTER))
    };
    let found = match c {
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'v' => Some('\u{b}'),
        'a' => Some('\u{7}'),
        '\\' | '\'' | '"' => Some(c),
        '\n' => return,
        'x' => code(2, 16, None),
        'u' => code(4, 16, None),
        'U' => code(8, 16, None),
        '0'..='7' => code(3, 8, Some(c)),
        _ => None,
    };
    match found {
        Some(found) => text.push(found),
        None => text.extend(['\\', c]),
    }
}

/// Returns the bytes of a tag's end and its sign.
fn tag_end(rest: &str, kind: u8) -> Option<(usize, u8)> {
    let close = if kind == b'%' { "%}" } else { "}}" };
    let sign = rest.as_bytes().first().copied().filter(|sign| matches!(sign, b'-' | b'+'));
    let from = usize::from(sign.is_some());
    rest[from..].starts_with(close).then_some((from + 2, sign.unwrap_or(b' ')))
}

/// Returns the bytes from after `{%` to the end of the tag, if it is `{% raw %}`.
fn raw_begin(tag: &str) -> Option<usize> {
    let inner = tag.trim_start().strip_prefix("raw")?.trim_start();
    let after = inner.strip_prefix('-').unwrap_or(inner).strip_prefix("%}")?;
    Some(tag.len() - after.len())
}
