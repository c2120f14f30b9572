//! `nook schema`: which texts a JSON schema accepts, by the same constraint that answers are generated under.

use std::path::{Path, PathBuf};

use clap::Args;
use contract::{Error, Result};
use engine::constraint::{TextChecker, TextForm};
use serde_json::{Value, json};

use crate::args::Global;
use crate::{open_model, out};

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// File with a JSON schema
    #[arg(long, value_name = "F")]
    pub schema: PathBuf,
    /// File with one JSON instance per line; - reads standard input
    #[arg(long, value_name = "F")]
    pub jsonl: PathBuf,
}

pub fn schema(global: &Global, args: &SchemaArgs) -> Result<()> {
    let checker = TextChecker::new(&TextForm::JsonSchema(read_schema(&args.schema)?))?;
    let instances = open_model::read_text(&args.jsonl)?;
    for line in instances.lines().filter(|line| !line.trim().is_empty()) {
        let is_accepted = checker.accepts(line)?;
        match global.json {
            true => out::json(&json!({ "accepted": is_accepted })),
            false => out::line(&json!({ "accepted": is_accepted }).to_string()),
        }
    }
    Ok(())
}

/// Reads a JSON schema. Error `input.not_json`.
pub fn read_schema(path: &Path) -> Result<Value> {
    let text = open_model::read_text(path)?;
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("{} is not JSON: {error}.", path.display());
        Error::input("input.not_json", message, "Write a JSON schema.")
    })
}
