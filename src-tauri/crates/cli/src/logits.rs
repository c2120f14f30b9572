//! `nook logits`: logits of a model after given tokens.

use std::path::PathBuf;

use contract::Error;
use contract::Result;
use contract::protocol::Kv;
use engine::vision::sha256;
use engine::{Chunk, CpuPrecision, LogitsSelection, Model, TokenId, VisionFile};
use serde::Serialize;

use crate::args::{Global, LogitsArgs};
use crate::{open_model, out, vision};

#[derive(Serialize)]
struct LogitsReport {
    n_vocab: usize,
    positions: Vec<PositionRow>,
}

#[derive(Serialize)]
struct PositionRow {
    pos: usize,
    #[serde(flatten)]
    of_model: LogitsEntry,
    /// Chained drafts of the model's draft block or assistant after the most likely token.
    #[serde(skip_serializing_if = "Option::is_none")]
    mtp: Option<Vec<LogitsEntry>>,
}

#[derive(Serialize)]
struct LogitsEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    logits: Option<Vec<f32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top: Option<Vec<(TokenId, f32)>>,
}

impl LogitsEntry {
    /// Returns all logits, or the `k` largest.
    fn of(logits: Vec<f32>, k: Option<usize>) -> Self {
        match k.map(|k| largest(&logits, k)) {
            Some(top) => Self { logits: None, top: Some(top) },
            None => Self { logits: Some(logits), top: None },
        }
    }

    /// Returns the largest logits to show.
    fn shown(&self) -> Vec<(TokenId, f32)> {
        match (&self.top, &self.logits) {
            (Some(top), _) => top.clone(),
            (None, logits) => largest(logits.as_deref().unwrap_or_default(), N_SHOWN_TOKENS),
        }
    }
}

pub fn logits(global: &Global, args: &LogitsArgs) -> Result<()> {
    let mut ids = open_model::ids(&args.ids)?;
    if ids.is_empty() {
        return Err(Error::input(
            "request.empty",
            "There are no token ids.",
            "Give at least one, such as --ids 1.",
        ));
    }
    let n_drafted = usize::from(args.mtp.unwrap_or(0));
    let mut options = open_model::load_options(global, Kv::F32, ids.len() + n_drafted)?;
    if args.mtp.is_some() {
        open_model::require_drafts(&mut options, global)?;
        // All logits of a draft are shown.
        options.common_tokens = usize::MAX;
    }
    if !args.image.is_empty() {
        let tower = open_model::tower_file(&args.model, args.mmproj.as_deref(), global)?;
        options.vision = Some(VisionFile(tower));
        options.vision_precision = CpuPrecision::F32;
    }
    let mut model = open_model::model(open_model::open_to_run(&args.model, global)?, &options, global)?;
    fill_image_tokens(&mut model, &args.image, &mut ids)?;
    let seq = model.new_sequence()?;
    let wanted = if args.all { LogitsSelection::All } else { LogitsSelection::Last };
    let n_vocab = model.info().n_vocab;
    let rows = model.forward(&[Chunk { seq, tokens: &ids, logits: wanted }])?;
    let first = ids.len() - rows.n_rows();
    let mut positions = Vec::with_capacity(rows.n_rows());
    let mut hidden = Vec::new();
    for row in 0..rows.n_rows() {
        let logits = rows.row(row)?;
        hidden.push((largest(logits, 1), rows.hidden(row).map(<[f32]>::to_vec)));
        let of_model = LogitsEntry::of(logits.to_vec(), args.top);
        positions.push(PositionRow { pos: first + row, of_model, mtp: None });
    }
    // From back to front: drafts overwrite what the block knows of later positions.
    for (position, (likeliest, hidden)) in positions.iter_mut().zip(hidden).rev() {
        if let (Some(hidden), Some(&(token, _))) = (hidden, likeliest.first()) {
            let drafts = model.draft_logits(seq, (position.pos + 1, token), &hidden, n_drafted)?;
            let entries = drafts.into_iter().map(|logits| LogitsEntry::of(logits, args.top));
            position.mtp = Some(entries.collect());
        }
    }
    if global.json {
        out::json(&LogitsReport { n_vocab, positions });
        return Ok(());
    }
    for PositionRow { pos, of_model, mtp } in positions {
        out::line(&format!("after position {pos}:"));
        show(&model, &of_model);
        for (index, draft) in mtp.unwrap_or_default().iter().enumerate() {
            out::line(&format!("draft {} after position {pos}:", index + 1));
            show(&model, draft);
        }
    }
    Ok(())
}

/// Shows the most likely tokens of an entry.
fn show(model: &Model, entry: &LogitsEntry) {
    for (id, logit) in entry.shown() {
        let text = model.tokenizer().map_or(String::new(), |tokenizer| tokenizer.decode(&[id]));
        out::line(&format!("{id:>8}  {logit:>10.4}  {text:?}"));
    }
}

/// Puts the rows of the images in the place of the image tokens, in order.
///
/// Errors: those of the images; `request.image_tokens` where their numbers differ.
fn fill_image_tokens(model: &mut Model, images: &[PathBuf], ids: &mut [TokenId]) -> Result<()> {
    let Some(settings) = model.image_settings()?.cloned() else { return Ok(()) };
    let name = settings.image_token();
    let placeholder = model.image_token().ok_or_else(|| {
        Error::input(
            "request.image_tokens",
            format!("The model's vocabulary has no token {name}."),
            "Choose the mmproj file that belongs to the model.",
        )
    })?;
    let mut rows = Vec::new();
    for path in images {
        let bytes = open_model::read_bytes(path)?;
        let picture = vision::decoded(&bytes)?;
        rows.extend(model.embed_picture(&sha256(&bytes), &picture, &settings)?);
    }
    let places = ids.iter_mut().filter(|id| **id == placeholder).collect::<Vec<_>>();
    if places.len() != rows.len() {
        return Err(Error::input(
            "request.image_tokens",
            format!(
                "The ids hold {} times the token {placeholder} ({name}), but the images have {} rows.",
                places.len(),
                rows.len()
            ),
            "Give the ids with every image expanded to the tokens that `nook vision` counts.",
        ));
    }
    places.into_iter().zip(rows).for_each(|(id, row)| *id = row);
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
