//! The parts of a grammar in GBNF.

/// A place in the text of a grammar; both numbers count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    /// In characters.
    pub column: usize,
}

impl Position {
    pub const START: Self = Self { line: 1, column: 1 };
}

/// A whole grammar.
#[derive(Debug, Clone, PartialEq)]
pub struct Grammar {
    pub rules: Vec<GrammarRule>,
}

/// `name ::= body`.
#[derive(Debug, Clone, PartialEq)]
pub struct GrammarRule {
    pub name: String,
    pub at: Position,
    pub body: Expression,
}

/// What a rule describes.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    Char(char),
    Set(CharSet),
    Rule { name: String, at: Position },
    Sequence(Vec<Expression>),
    Alternatives(Vec<Expression>),
    Repetition { part: Box<Expression>, min: u32, max: Option<u32> },
}

/// One character of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CharSet {
    /// The set holds what is not in the ranges.
    pub is_negated: bool,
    /// Both ends are in the range.
    pub ranges: Vec<(char, char)>,
}

impl CharSet {
    /// Exactly this character.
    pub fn one(c: char) -> Self {
        Self { is_negated: false, ranges: vec![(c, c)] }
    }

    /// Any character.
    pub fn any() -> Self {
        Self { is_negated: true, ranges: Vec::new() }
    }
}
