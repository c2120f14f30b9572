//! Grammars in llama.cpp's GBNF, converted to llguidance's variant of Lark.
//!
//! GBNF describes characters, while Lark has lexemes of which the longest wins. So every lexeme of a converted grammar
//! is one character: then both accept the same texts.

mod parser;
mod syntax;

use std::collections::HashMap;
use std::fmt::Write;

use crate::error::ConstraintError;
use parser::parse;
use syntax::{CharSet, Expression, Grammar, Position};

/// Rule with which a text begins.
const ROOT: &str = "root";

/// A fault of a grammar and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GbnfFault {
    at: Position,
    what: String,
}

impl From<GbnfFault> for ConstraintError {
    fn from(GbnfFault { at, what }: GbnfFault) -> Self {
        let message = format!("The grammar is wrong at line {}, column {}: {what}", at.line, at.column);
        let remedy = "Correct it: GBNF is described in llama.cpp's grammars/README.md.";
        Self::new("constraint.invalid", message, remedy)
    }
}

/// Converts a grammar in GBNF to Lark.
///
/// Errors: `constraint.invalid` with line and column.
pub fn lark_of_gbnf(text: &str) -> Result<String, ConstraintError> {
    let grammar = parse(text)?;
    let names = lark_names(&grammar)?;
    let mut lark = String::new();
    for rule in &grammar.rules {
        let body = lark_of(&rule.body, &names)?;
        // Writing to a String can't fail.
        let _ = writeln!(lark, "{}: {body}", names[rule.name.as_str()]);
    }
    Ok(lark)
}

/// Names that Lark takes for rules: `start` for the root, and numbers for the others.
fn lark_names(grammar: &Grammar) -> Result<HashMap<&str, String>, GbnfFault> {
    let mut names = HashMap::new();
    for (number, rule) in grammar.rules.iter().enumerate() {
        let name = if rule.name == ROOT { "start".to_owned() } else { format!("rule_{number}") };
        if names.insert(rule.name.as_str(), name).is_some() {
            return Err(GbnfFault { at: rule.at, what: format!("the rule {} is defined twice.", rule.name) });
        }
    }
    match names.contains_key(ROOT) {
        true => Ok(names),
        false => {
            let what = format!("there is no rule {ROOT}, with which every text begins.");
            Err(GbnfFault { at: Position::START, what })
        }
    }
}

fn lark_of(expression: &Expression, names: &HashMap<&str, String>) -> Result<String, GbnfFault> {
    let all =
        |parts: &[Expression]| parts.iter().map(|part| lark_of(part, names)).collect::<Result<Vec<_>, _>>();
    Ok(match expression {
        Expression::Char(c) => regex_of(&CharSet::one(*c)),
        Expression::Set(set) => regex_of(set),
        Expression::Rule { name, at } => match names.get(name.as_str()) {
            Some(name) => name.clone(),
            None => return Err(GbnfFault { at: *at, what: format!("the rule {name} is not defined.") }),
        },
        Expression::Sequence(parts) if parts.is_empty() => "\"\"".to_owned(),
        Expression::Sequence(parts) => all(parts)?.join(" "),
        Expression::Alternatives(parts) => format!("({})", all(parts)?.join(" | ")),
        Expression::Repetition { part, min, max } => {
            let part = lark_of(part, names)?;
            match (min, max) {
                (_, Some(0)) => "\"\"".to_owned(),
                (0, None) => format!("({part})*"),
                (1, None) => format!("({part})+"),
                (0, Some(1)) => format!("({part})?"),
                (min, None) => format!("({part}){{{min},}}"),
                (min, Some(max)) => format!("({part}){{{min},{max}}}"),
            }
        }
    })
}

/// A regular expression for one character, with every character as its number.
fn regex_of(set: &CharSet) -> String {
    let code = |c: char| format!("\\u{{{:X}}}", u32::from(c));
    if set.is_negated && set.ranges.is_empty() {
        return "/(?s:.)/".to_owned();
    }
    let range = |(from, to): &(char, char)| match from == to {
        true => code(*from),
        false => format!("{}-{}", code(*from), code(*to)),
    };
    let ranges: String = set.ranges.iter().map(range).collect();
    format!("/[{}{ranges}]/", if set.is_negated { "^" } else { "" })
}

#[cfg(test)]
mod tests;
