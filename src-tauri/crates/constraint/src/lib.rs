//! Constrained generation: which tokens may come next, so that a text has a given form.
//!
//! llguidance computes token masks from a grammar. What grammars cannot say of JSON schemas (`uniqueItems`, most of
//! `not`, overlapping patterns) is checked at the end of each value, before its last byte is accepted. A text that
//! is accepted to its end always has the form.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod compiler;
mod error;
mod form;
mod gbnf;
mod schema;
mod state;
mod vocabulary;

pub use compiler::{Compiler, Whitespace};
pub use error::ConstraintError;
pub use form::{TextForm, TextPart};
pub use gbnf::lark_of_gbnf;
pub use state::{TokenConstraint, Verdict};
pub use vocabulary::{TokenText, Vocabulary};

#[cfg(test)]
mod tests;
