//! JSON schemas: what a grammar can express of them, and the check of the rest.

mod any_order;
mod checker;
mod dialect;
mod formats;
mod pointer;
mod relax;
mod relaxation;
mod scanner;

pub(crate) use checker::InstanceChecker;
pub(crate) use dialect::normalized;
pub(crate) use relax::RelaxedSchema;
pub(crate) use relaxation::Relaxation;
