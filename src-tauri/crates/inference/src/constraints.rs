//! Constraints as plain data, and their check without a model.

use contract::protocol::Constraint;
use contract::{Error, Result};
use engine::constraint::{TextChecker, TextForm, lark_of_gbnf};

/// The engine's form of a constraint. None: it depends on the model and the request's tools.
pub fn text_form(constraint: &Constraint) -> Option<TextForm> {
    match constraint {
        Constraint::JsonObject => Some(TextForm::JsonObject),
        Constraint::JsonSchema(schema) => Some(TextForm::JsonSchema(schema.clone())),
        Constraint::Regex(regex) => Some(TextForm::Regex(regex.clone())),
        Constraint::Lark(grammar) => Some(TextForm::Lark(grammar.clone())),
        Constraint::ToolCall { .. } => None,
    }
}

/// The constraint of a grammar in llama.cpp's GBNF.
///
/// Errors: `constraint.invalid` with line and column.
pub fn gbnf_constraint(grammar: &str) -> Result<Constraint> {
    Ok(Constraint::Lark(lark_of_gbnf(grammar)?))
}

/// The constraint of a JSON schema that a user wrote.
///
/// Errors: `constraint.not_json`, and those of `check_constraint`.
pub fn schema_constraint(text: &str) -> Result<Constraint> {
    let schema: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).map_err(|error| {
        let message = format!("The JSON schema can't be read: {error}.");
        Error::input("constraint.not_json", message, "Enter a JSON object such as {\"type\": \"object\"}.")
    })?;
    let constraint = Constraint::JsonSchema(schema.into());
    check_constraint(&constraint)?;
    Ok(constraint)
}

/// Checks what can be checked before a model is asked: that a schema or regular expression compiles. Grammars may name
/// the model's tokens.
///
/// Errors: `constraint.invalid` with the reason, `constraint.too_large`.
pub fn check_constraint(constraint: &Constraint) -> Result<()> {
    match constraint {
        Constraint::JsonSchema(_) | Constraint::Regex(_) => {
            let form = text_form(constraint).ok_or_else(|| Error::bug("a constraint without a form"))?;
            TextChecker::new(&form)?;
            Ok(())
        }
        Constraint::JsonObject | Constraint::Lark(_) | Constraint::ToolCall { .. } => Ok(()),
    }
}
