//! Contexts in files: what of a sequence is worth a file, which files lead furthest along a prompt, and back.
//!
//! Every file that is read is judged by `engine`; one that is no good is removed, and the next best is tried. Losing one
//! costs time, never words.

use std::collections::{BTreeSet, VecDeque};

use engine::kv::size::Rewind;
use engine::kv::snapshot::{FOREIGN, GLIMPSE_LEN, Piece, STRETCH};
use engine::{EngineError, Model, SequenceId, TokenId};
pub use session::CheckpointFolder;

use super::protocol::{Checkpoints, StoredFile};
use crate::error::Error;

/// Positions of one turn that are stored beside its end, at most: before its answer, and before what opens that.
const MAX_BEFORE: usize = 3;

/// Files that are tried for one prompt before it is computed after all.
const MAX_TRIES: usize = 8;

/// What is still to be written of a sequence, and what has been.
#[derive(Default)]
pub struct Due {
    pieces: VecDeque<Piece>,
    pub told: Checkpoints,
}

impl Due {
    /// Of a sequence whose last turn went on from `n_reused` tokens and asked `n_prompt`: its end, and where a template
    /// that drops old reasoning, or a new version of the answer, goes back to.
    pub fn of(model: &Model, sequence: SequenceId, (n_reused, n_prompt): (usize, usize)) -> Self {
        let n_held = model.len(sequence).unwrap_or(0);
        let kept = model.kept(sequence).unwrap_or_default();
        let since = kept.into_iter().rev().filter(|&at| at > n_reused && at < n_held).take(MAX_BEFORE);
        let mut positions: Vec<usize> = since.collect();
        let is_tail = n_prompt / STRETCH == n_held / STRETCH;
        if model.rewind() == Rewind::Anywhere && n_prompt < n_held && !is_tail {
            positions.push(n_prompt);
        }
        positions.push(n_held);
        let pieces = model.pieces(sequence, &positions).unwrap_or_default();
        Self { pieces: pieces.into(), told: Checkpoints::default() }
    }

    pub fn is_done(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Writes the next one, unless it is there. False: there was none.
    pub fn store_one(&mut self, model: &Model, sequence: SequenceId, folder: &CheckpointFolder) -> bool {
        let Some(piece) = self.pieces.pop_front() else { return false };
        if folder.has(&piece.name) {
            self.told.read.push(piece.name);
            return true;
        }
        // one that the sequence has left is not missed
        let Ok(bytes) = model.piece(sequence, &piece) else { return true };
        match folder.write(&piece.name, &bytes) {
            Ok(()) => self.told.written.push(StoredFile {
                path: folder.path().join(format!("{}.kv", piece.name)),
                key: piece.name,
                bytes: bytes.len() as u64,
                position: piece.position as u64,
            }),
            Err(error) => {
                // what comes after it leads nowhere without it
                self.pieces.clear();
                self.told.error = Some(error.into());
            }
        }
        true
    }
}

/// Where files lead to along a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub n_tokens: usize,
    /// None: whole stretches only.
    head: Option<String>,
}

/// The files that lead furthest along a prompt, its last token left out. What is seen to be no good is removed.
pub fn find(
    model: &Model,
    folder: &CheckpointFolder,
    prompt: &[TokenId],
    told: &mut Checkpoints,
) -> Option<Found> {
    let names = folder.names().ok().filter(|names| !names.is_empty())?;
    let most = prompt.len().saturating_sub(1);
    let way = model.way(prompt);
    let has = |index: &usize| !model.has_stretches() || names.contains(&way.stretch(*index));
    let n_stretches = (0..way.n_stretches()).take_while(has).count();
    let mut heads = |n: usize| {
        let start = way.heads_after(n);
        let mut best = None;
        for name in starting_with(&names, &start) {
            let Ok(bytes) = folder.read_start(name, GLIMPSE_LEN) else { continue };
            match model.head_reach(prompt, most, &bytes) {
                Ok(n_tokens) => best = best.max(Some((n_tokens, name.clone()))),
                Err(error) if error.code() == FOREIGN => {}
                Err(error) => drop_file(folder, name, error, told),
            }
        }
        best
    };
    (0..=n_stretches).rev().find_map(|n| {
        let bare = n * STRETCH;
        let is_enough = model.rewind() == Rewind::Anywhere && bare <= most && bare > 0;
        match heads(n) {
            Some((n_tokens, head)) => Some(Found { n_tokens, head: Some(head) }),
            None => is_enough.then_some(Found { n_tokens: bare, head: None }),
        }
    })
}

fn starting_with<'a>(names: &'a BTreeSet<String>, start: &str) -> impl Iterator<Item = &'a String> {
    let start = start.to_owned();
    names.range(start.clone()..).take_while(move |name| name.starts_with(&start))
}

/// A sequence from what was found, or from what is found next where that is no good; `least` tokens or none.
pub fn restore(
    model: &mut Model,
    folder: &CheckpointFolder,
    prompt: &[TokenId],
    found: Found,
    least: usize,
    told: &mut Checkpoints,
) -> Option<SequenceId> {
    let mut found = Some(found);
    for _ in 0..MAX_TRIES {
        let Found { n_tokens, head } = found.take().filter(|found| found.n_tokens >= least)?;
        let mut reading = head.clone().unwrap_or_default();
        let mut read = Vec::new();
        let brought = restore_one(model, folder, &prompt[..n_tokens], head.as_deref(), &mut |name| {
            reading = name.into();
            read.push(reading.clone());
        });
        match brought {
            Ok(sequence) => {
                told.read.append(&mut read);
                return Some(sequence);
            }
            Err(error) => {
                // what comes after it is computed again too, and written anew
                let way = model.way(&prompt[..n_tokens]);
                let stretches = (0..way.n_stretches()).map(|index| way.stretch(index));
                let after = stretches.chain(head).filter(|name| !read.contains(name) && *name != reading);
                after.for_each(|name| drop_file(folder, &name, error.clone(), told));
                drop_file(folder, &reading, error, told);
                found = find(model, folder, prompt, told);
            }
        }
    }
    None
}

/// A disk that can't be read now may be later: the name goes in any case, and is written again.
fn drop_file(folder: &CheckpointFolder, name: &str, error: EngineError, told: &mut Checkpoints) {
    _ = folder.remove(name);
    told.gone.push(name.into());
    told.error = Some(Error::from(error));
}

fn restore_one(
    model: &mut Model,
    folder: &CheckpointFolder,
    tokens: &[TokenId],
    head: Option<&str>,
    begins: &mut dyn FnMut(&str),
) -> Result<SequenceId, EngineError> {
    let mut read = |name: &str| {
        begins(name);
        folder.read(name).map_err(|error| EngineError::new(error.code(), error.to_string(), error.remedy()))
    };
    let head = head.map(&mut read).transpose()?;
    model.restore(tokens, head.as_deref(), &mut read)
}
