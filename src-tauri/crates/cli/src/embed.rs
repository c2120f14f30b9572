//! `nook embed`: embedding vectors of texts.

use app::App;
use contract::Result;
use serde_json::json;

use crate::args::{EmbedArgs, Global};
use crate::{open_model, out};

/// Number of vector elements in the text output.
const SHOWN: usize = 8;

pub fn embed(global: &Global, args: &EmbedArgs) -> Result<()> {
    let app = App::open(global.app_config()?)?;
    let many = args.input.jsonl.is_some();
    for text in open_model::texts(&args.input)? {
        let embedded = app.embed(&args.model, args.kind.into(), &[text])?;
        let vector = embedded.vectors.first().map_or(&[][..], Vec::as_slice);
        if global.json || many {
            out::json(&json!({ "vector": vector, "tokens": embedded.tokens }));
        } else {
            let shown: Vec<String> = vector.iter().take(SHOWN).map(|x| format!("{x:.4}")).collect();
            let more = if vector.len() > SHOWN { ", …" } else { "" };
            out::line(&format!("{} numbers: {}{more}", vector.len(), shown.join(", ")));
        }
    }
    Ok(())
}
