//! Parses GBNF, as llama.cpp's grammars/README.md describes it.

use super::GbnfFault;
use super::syntax::{CharSet, Expression, Grammar, GrammarRule, Position};

/// Deepest nesting of parentheses: the parser calls itself for each.
const MAX_DEPTH: usize = 100;

/// Largest count of a repetition, as in llama.cpp.
const MAX_REPETITIONS: u32 = 2000;

type Result<T> = std::result::Result<T, GbnfFault>;

/// Parses a whole grammar.
pub fn parse(text: &str) -> Result<Grammar> {
    let mut parser = GbnfParser { rest: text, at: Position::START, depth: 0 };
    let mut rules = Vec::new();
    parser.skip_space(Newlines::Skipped);
    while parser.peek().is_some() {
        rules.push(parser.rule()?);
        parser.skip_space(Newlines::Skipped);
    }
    Ok(Grammar { rules })
}

/// What a line end means: the end of a rule, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Newlines {
    Skipped,
    Kept,
}

struct GbnfParser<'a> {
    rest: &'a str,
    at: Position,
    depth: usize,
}

impl GbnfParser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        match c {
            '\n' => self.at = Position { line: self.at.line + 1, column: 1 },
            _ => self.at.column += 1,
        }
        Some(c)
    }

    fn take(&mut self, wanted: &str) -> bool {
        let is_next = self.rest.starts_with(wanted);
        if is_next {
            wanted.chars().for_each(|_| _ = self.next());
        }
        is_next
    }

    fn fault<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(GbnfFault { at: self.at, what: what.into() })
    }

    /// A fault that names what stands here instead.
    fn expected<T>(&self, what: &str) -> Result<T> {
        match self.peek() {
            Some(c) => self.fault(format!("expected {what}, found {c:?}.")),
            None => self.fault(format!("expected {what}, but the grammar ends.")),
        }
    }

    /// Skips white space and comments.
    fn skip_space(&mut self, newlines: Newlines) {
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' => _ = self.next(),
                '\r' | '\n' if newlines == Newlines::Skipped => _ = self.next(),
                '#' => {
                    while self.peek().is_some_and(|c| !matches!(c, '\r' | '\n')) {
                        self.next();
                    }
                }
                _ => return,
            }
        }
    }

    fn name(&mut self) -> Result<String> {
        let is_name = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name: String = self.rest.chars().take_while(is_name).collect();
        if name.is_empty() {
            return self.expected("the name of a rule");
        }
        self.take(&name);
        Ok(name)
    }

    fn rule(&mut self) -> Result<GrammarRule> {
        let at = self.at;
        let name = self.name()?;
        self.skip_space(Newlines::Kept);
        if !self.take("::=") {
            return self.expected("`::=`");
        }
        self.skip_space(Newlines::Skipped);
        let body = self.alternatives(Newlines::Kept)?;
        match self.peek() {
            None | Some('\r' | '\n') => Ok(GrammarRule { name, at, body }),
            Some(_) => self.expected("the end of the rule"),
        }
    }

    fn alternatives(&mut self, newlines: Newlines) -> Result<Expression> {
        let mut all = vec![self.sequence(newlines)?];
        while self.take("|") {
            // A rule goes on behind a bar, also on the next line.
            self.skip_space(Newlines::Skipped);
            all.push(self.sequence(newlines)?);
        }
        Ok(if all.len() > 1 { Expression::Alternatives(all) } else { all.remove(0) })
    }

    fn sequence(&mut self, newlines: Newlines) -> Result<Expression> {
        let mut parts = Vec::new();
        loop {
            let at = self.at;
            let part = match self.peek() {
                Some('"') => self.literal()?,
                Some('[') => self.char_set()?,
                Some('(') => self.group()?,
                Some('.') => {
                    self.next();
                    Expression::Set(CharSet::any())
                }
                Some(c) if c.is_ascii_alphanumeric() => Expression::Rule { name: self.name()?, at },
                Some('<' | '!') => return self.fault("tokens in grammars are not supported."),
                Some('*' | '+' | '?' | '{') => return self.fault("nothing stands before the repetition."),
                Some(_) | None => break,
            };
            self.skip_space(newlines);
            let part = self.repeated(part, newlines)?;
            parts.push(part);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Sequence(parts) })
    }

    fn group(&mut self) -> Result<Expression> {
        let opened = self.at;
        self.next();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fault(format!("parentheses are nested more than {MAX_DEPTH} deep."));
        }
        self.skip_space(Newlines::Skipped);
        let inner = self.alternatives(Newlines::Skipped)?;
        self.depth -= 1;
        match (self.take(")"), self.peek()) {
            (true, _) => Ok(inner),
            (false, None) => Err(GbnfFault { at: opened, what: "the parenthesis is not closed.".into() }),
            (false, Some(_)) => self.expected("`)`"),
        }
    }

    /// The repetitions behind a part, of which there may be several.
    fn repeated(&mut self, mut part: Expression, newlines: Newlines) -> Result<Expression> {
        loop {
            let (min, max) = match self.peek() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => self.bounds()?,
                Some(_) | None => return Ok(part),
            };
            self.next();
            self.skip_space(newlines);
            part = Expression::Repetition { part: Box::new(part), min, max };
        }
    }

    /// `{m}`, `{m,}`, `{m,n}` or `{,n}`, up to the brace that closes it.
    fn bounds(&mut self) -> Result<(u32, Option<u32>)> {
        let opened = self.at;
        self.next();
        self.skip_space(Newlines::Kept);
        let min = self.count()?;
        self.skip_space(Newlines::Kept);
        let (min, max) = match (self.take(","), min) {
            (false, Some(min)) => (min, Some(min)),
            (false, None) => return self.expected("a count"),
            (true, min) => {
                self.skip_space(Newlines::Kept);
                (min.unwrap_or(0), self.count()?)
            }
        };
        self.skip_space(Newlines::Kept);
        if self.peek() != Some('}') {
            return self.expected("`}`");
        }
        if max.is_some_and(|max| max < min) {
            return Err(GbnfFault { at: opened, what: "the second count is smaller than the first.".into() });
        }
        Ok((min, max))
    }

    fn count(&mut self) -> Result<Option<u32>> {
        let digits: String = self.rest.chars().take_while(char::is_ascii_digit).collect();
        if digits.is_empty() {
            return Ok(None);
        }
        match digits.parse().ok().filter(|count| *count <= MAX_REPETITIONS) {
            Some(count) => {
                self.take(&digits);
                Ok(Some(count))
            }
            None => self.fault(format!("a part may be repeated at most {MAX_REPETITIONS} times.")),
        }
    }

    fn literal(&mut self) -> Result<Expression> {
        let opened = self.at;
        self.next();
        let mut chars = Vec::new();
        loop {
            match self.peek() {
                Some('"') => break,
                Some('\r' | '\n') | None => {
                    return Err(GbnfFault {
                        at: opened,
                        what: "the text is not closed by a quotation mark.".into(),
                    });
                }
                Some(_) => chars.push(Expression::Char(self.char()?)),
            }
        }
        self.next();
        Ok(if chars.len() == 1 { chars.remove(0) } else { Expression::Sequence(chars) })
    }

    fn char_set(&mut self) -> Result<Expression> {
        let opened = self.at;
        self.next();
        let is_negated = self.take("^");
        let mut ranges = Vec::new();
        loop {
            match self.peek() {
                Some(']') => break,
                Some('\r' | '\n') | None => {
                    return Err(GbnfFault { at: opened, what: "the set is not closed by `]`.".into() });
                }
                Some(_) => {}
            }
            let at = self.at;
            let from = self.char()?;
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            let to = match is_range && self.take("-") {
                true => self.char()?,
                false => from,
            };
            if to < from {
                return Err(GbnfFault { at, what: format!("the range {from:?}-{to:?} is backwards.") });
            }
            ranges.push((from, to));
        }
        self.next();
        if ranges.is_empty() && !is_negated {
            return Err(GbnfFault { at: opened, what: "the set has no character.".into() });
        }
        Ok(Expression::Set(CharSet { is_negated, ranges }))
    }

    /// One character, which may be escaped.
    fn char(&mut self) -> Result<char> {
        let at = self.at;
        match self.next() {
            Some('\\') => {}
            Some(c) => return Ok(c),
            None => return self.expected("a character"),
        }
        let n_digits = match self.next() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            Some('t') => return Ok('\t'),
            Some('r') => return Ok('\r'),
            Some('n') => return Ok('\n'),
            Some(c @ ('\\' | '"' | '[' | ']' | '-' | '^' | '.' | '/')) => return Ok(c),
            Some(c) => return Err(GbnfFault { at, what: format!("`\\{c}` is no escape.") }),
            None => return self.expected("an escaped character"),
        };
        let digits: String = self.rest.chars().take(n_digits).collect();
        let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == n_digits);
        match code.and_then(char::from_u32) {
            Some(c) => {
                self.take(&digits);
                Ok(c)
            }
            None => Err(GbnfFault {
                at,
                what: format!("an escape needs {n_digits} digits of a character's number."),
            }),
        }
    }
}
