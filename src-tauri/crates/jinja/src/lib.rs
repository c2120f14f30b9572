//! Jinja templates as Python's jinja2 renders them in its sandbox, bounded in time, memory and depth.
//!
//! Guarantees that no template, whatever it says, takes more than its [`Limits`], overflows the stack, or changes
//! anything but its variables.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod arguments;
mod ast;
mod call;
mod changes;
mod eval;
mod failure;
mod filters;
mod format;
mod globals;
mod json;
mod lexer;
mod meter;
mod methods;
mod names;
mod ops;
mod parser;
mod predicates;
mod python;
mod render;
mod slices;
mod sorting;
mod value;
mod variables;

use std::collections::HashSet;
use std::sync::Arc;

pub use failure::{Failure, RenderError, SyntaxError};
pub use json::{JsonStyle, dumps, escaped};
pub use meter::{Limits, Stop, StopCheck};
pub use python::repr_json;
pub use value::HostFunction;

use ast::{Body, Symbol};

/// Names with a meaning of their own. Their symbols are their places here.
const SPECIAL_NAMES: [&str; 4] = ["loop", "caller", "varargs", "kwargs"];

fn special(name: &str) -> Symbol {
    Symbol(SPECIAL_NAMES.iter().position(|known| *known == name).unwrap_or(0) as u32)
}

/// A parsed template.
#[derive(Debug)]
pub struct Template {
    body: Body,
    names: Vec<Arc<str>>,
}

/// A variable given to a template.
#[derive(Clone)]
pub enum Variable<'a> {
    /// Converted from JSON.
    Json(&'a serde_json::Value),
    /// A list, converted from JSON.
    List(&'a [serde_json::Value]),
    /// A text.
    Text(&'a str),
    /// A function from text to text.
    Function(HostFunction),
}

/// A rendering and what it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateOutput {
    /// The output.
    pub text: String,
    /// Units of work.
    pub work: u64,
    /// The most bytes that were alive at once.
    pub peak_bytes: usize,
}

impl Template {
    /// Parses a template.
    ///
    /// Errors: it is no template, or nested too deeply.
    pub fn parse(source: &str) -> Result<Self, SyntaxError> {
        // As Python reads it: one kind of line end, and none at the very end.
        let source = source.replace("\r\n", "\n").replace('\r', "\n");
        let source = source.strip_suffix('\n').unwrap_or(&source);
        let parsed = parser::parse(lexer::tokens(source)?)?;
        Ok(Self { body: parsed.body, names: parsed.names.into_iter().map(Arc::from).collect() })
    }

    /// Renders the template on a separate thread, whose stack is large enough for all that is allowed to nest.
    ///
    /// Errors: what the template raised or did wrong, or a limit that it met.
    pub fn render(
        &self,
        variables: &[(&str, Variable<'_>)],
        limits: &Limits,
    ) -> Result<TemplateOutput, RenderError> {
        render::on_own_stack(self, variables, limits)
    }

    /// Returns the variables that the template reads and does not set.
    pub fn variables(&self) -> HashSet<String> {
        let mut reads = variables::Reads::default();
        reads.body(&self.body);
        reads.into_found().into_iter().map(|symbol| self.names[symbol.0 as usize].to_string()).collect()
    }
}
