//! The error of this crate: what is wrong with a constraint, and what can be done about it.

/// A constraint that cannot be compiled, or that stopped while it was applied. `Display` gives cause and place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConstraintError {
    code: &'static str,
    message: String,
    remedy: &'static str,
}

/// Longest message of the library that is passed on; its grammars can be much longer.
const MAX_REASON_CHARS: usize = 400;

impl ConstraintError {
    pub(crate) fn new(code: &'static str, message: impl Into<String>, remedy: &'static str) -> Self {
        Self { code, message: message.into(), remedy }
    }

    /// A schema, regular expression or grammar that does not compile.
    pub(crate) fn uncompilable(what: &str, reason: &str) -> Self {
        let reason = shorten(reason);
        let remedy = "Change it, or leave the constraint out.";
        Self::new("constraint.invalid", format!("The {what} does not compile: {reason}"), remedy)
    }

    /// A constraint that exceeded a limit of the library while it was applied.
    pub(crate) fn stopped(reason: &str) -> Self {
        let reason = shorten(reason);
        let message = format!("The constraint could not be applied any further: {reason}");
        Self::new("constraint.stopped", message, "Simplify the schema or grammar.")
    }

    /// No token can follow.
    pub(crate) fn dead_end() -> Self {
        let message = "Nothing that the model could write next satisfies the constraint.";
        let remedy = "Try again, or simplify the parts of the schema that only whole values show: not, uniqueItems, \
                      contains, oneOf, if.";
        Self::new("constraint.dead_end", message, remedy)
    }

    /// Returns the stable code, such as `constraint.invalid`.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Returns what the user can do about it.
    pub fn remedy(&self) -> &'static str {
        self.remedy
    }
}

/// One line of limited length.
fn shorten(reason: &str) -> String {
    let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_REASON_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
