//! `nook logits`: logits of a model after given tokens.

use contract::Error;
use contract::Result;
use contract::protocol::Kv;
use engine::{Chunk, LogitsSelection, TokenId};
use serde::Serialize;

use crate::args::{Global, LogitsArgs};
use crate::{open_model, out};

#[derive(Serialize)]
struct LogitsReport {
    n_vocab: usize,
    positions: Vec<PositionRow>,
}

#[derive(Serialize)]
struct PositionRow {
    pos: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    logits: Option<Vec<f32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top: Option<Vec<(TokenId, f32)>>,
}

pub fn logits(global: &Global, args: &LogitsArgs) -> Result<()> {
    let ids = open_model::ids(&args.ids)?;
    if ids.is_empty() {
        return Err(Error::input(
            "request.empty",
            "There are no token ids.",
            "Give at least one, such as --ids 1.",
        ));
    }
    let options = open_model::load_options(global, Kv::F32, ids.len())?;
    let mut model = open_model::model(open_model::open_to_run(&args.model, global)?, &options, global)?;
    let seq = model.new_sequence()?;
    let wanted = if args.all { LogitsSelection::All } else { LogitsSelection::Last };
    let n_vocab = model.info().n_vocab;
    let rows = model.forward(&[Chunk { seq, tokens: &ids, logits: wanted }])?;
    let first = ids.len() - rows.n_rows();
    let mut positions = Vec::with_capacity(rows.n_rows());
    for row in 0..rows.n_rows() {
        let logits = rows.row(row)?;
        let top = args.top.map(|k| largest(logits, k));
        let logits = top.is_none().then(|| logits.to_vec());
        positions.push(PositionRow { pos: first + row, logits, top });
    }
    if global.json {
        out::json(&LogitsReport { n_vocab, positions });
        return Ok(());
    }
    for PositionRow { pos, logits, top } in positions {
        let top = top.unwrap_or_else(|| largest(&logits.unwrap_or_default(), N_SHOWN_TOKENS));
        out::line(&format!("after position {pos}:"));
        for (id, logit) in top {
            let text = model.tokenizer().map_or(String::new(), |tokenizer| tokenizer.decode(&[id]));
            out::line(&format!("{id:>8}  {logit:>10.4}  {text:?}"));
        }
    }
    Ok(())
}

/// Number of tokens in the text output.
const N_SHOWN_TOKENS: usize = 10;

/// The `k` largest logits in descending order; ties go to the lower id.
fn largest(logits: &[f32], k: usize) -> Vec<(TokenId, f32)> {
    let mut all: Vec<(TokenId, f32)> = (0..).zip(logits.iter().copied()).collect();
    all.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all.truncate(k);
    all
}
