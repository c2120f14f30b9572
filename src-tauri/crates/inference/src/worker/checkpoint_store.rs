//! Contexts in files: which states of a sequence are worth a file, which files match most of a
//! prompt, and restoring them. The engine validates every file that is read; an invalid one is
//! removed, and the next best is tried. Losing one costs time, never words.

use std::collections::{BTreeSet, VecDeque};

use engine::kv::CHECKPOINT_CHUNK_TOKENS;
use engine::kv::size::Rewind;
use engine::kv::snapshot::{CheckpointPiece, ChunkMatch, HEAD_PREVIEW_BYTES, PREFIX_MISMATCH};
use engine::{EngineError, Model, SequenceId, TokenId};
pub use io::CheckpointDir;

use contract::Error;
use contract::protocol::{Checkpoints, StoredFile};

/// Maximum positions stored per turn besides its end: before its answer, and before what opens
/// that.
const MAX_BEFORE: usize = 3;

/// Files that are tried for one prompt before it is computed after all.
const MAX_TRIES: usize = 8;

/// What is still to be written of a sequence, and what has been.
#[derive(Default)]
pub struct PendingCheckpoint {
    pieces: VecDeque<CheckpointPiece>,
    pub told: Checkpoints,
}

impl PendingCheckpoint {
    /// Positions of a sequence whose last turn reused `n_reused` tokens of a prompt of `n_prompt`.
    /// They are its end, and where a template that drops old reasoning, or another version of the
    /// answer, returns to.
    pub fn of(model: &Model, sequence: SequenceId, (n_reused, n_prompt): (usize, usize)) -> Self {
        let n_held = model.len(sequence).unwrap_or(0);
        let kept = model.rewind_positions(sequence).unwrap_or_default();
        let since = kept.into_iter().rev().filter(|&at| at > n_reused && at < n_held).take(MAX_BEFORE);
        let mut positions: Vec<usize> = since.collect();
        let is_tail = n_prompt / CHECKPOINT_CHUNK_TOKENS == n_held / CHECKPOINT_CHUNK_TOKENS;
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
    pub fn store_one(&mut self, model: &Model, sequence: SequenceId, folder: &CheckpointDir) -> bool {
        let Some(piece) = self.pieces.pop_front() else { return false };
        // one that the sequence has left is not missed
        let Some(piece) = model.refresh_piece(sequence, &piece) else { return true };
        let is_there = |name: &&String| folder.has(name);
        let stored = Some(&piece.name).filter(is_there).or(piece.fallback.as_ref().filter(is_there));
        if let Some(name) = stored {
            self.told.read.push(name.clone());
            return true;
        }
        let Ok(bytes) = model.piece_bytes(sequence, &piece) else { return true };
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
pub struct CheckpointMatch {
    pub n_tokens: usize,
    /// None: whole stretches only.
    head: Option<String>,
    /// Of each stretch on the way the names of which one is there.
    stretches: Vec<Vec<String>>,
}

/// The files that lead furthest along a prompt, its last token left out. What is seen to be no good is removed.
pub fn find(
    model: &Model,
    folder: &CheckpointDir,
    prompt: &[TokenId],
    told: &mut Checkpoints,
) -> Option<CheckpointMatch> {
    let names = folder.names().ok().filter(|names| !names.is_empty())?;
    let most = prompt.len().saturating_sub(1);
    let keys = model.chunk_keys(prompt);
    let has_all =
        |leads: &ChunkMatch| leads.chunks.iter().all(|any| any.iter().any(|name| names.contains(name)));
    let mut heads = |n: usize| {
        let start = keys.head_prefix(n);
        let mut best = None;
        for name in starting_with(&names, &start) {
            let Ok(bytes) = folder.read_start(name, HEAD_PREVIEW_BYTES) else { continue };
            match model.match_head(prompt, most, &bytes) {
                Ok(leads) if has_all(&leads) => {
                    best = best.max(Some((leads.n_tokens, name.clone(), leads.chunks)))
                }
                Ok(_) => {}
                Err(error) if error.code() == PREFIX_MISMATCH => {}
                Err(error) => drop_file(folder, name, error, told),
            }
        }
        best
    };
    (0..=keys.n_chunks()).rev().find_map(|n| {
        if let Some((n_tokens, head, stretches)) = heads(n) {
            return Some(CheckpointMatch { n_tokens, head: Some(head), stretches });
        }
        let bare = keys.match_without_head(n);
        let ChunkMatch { n_tokens, .. } = bare;
        let is_enough = model.has_complete_chunks() && n_tokens <= most && n_tokens > 0 && has_all(&bare);
        is_enough.then_some(CheckpointMatch { n_tokens, head: None, stretches: bare.chunks })
    })
}

fn starting_with<'a>(names: &'a BTreeSet<String>, start: &str) -> impl Iterator<Item = &'a String> {
    let start = start.to_owned();
    names.range(start.clone()..).take_while(move |name| name.starts_with(&start))
}

/// A sequence from what was found, or from what is found next where that is no good; `least` tokens or none.
pub fn restore(
    model: &mut Model,
    folder: &CheckpointDir,
    prompt: &[TokenId],
    found: CheckpointMatch,
    least: usize,
    told: &mut Checkpoints,
) -> Option<SequenceId> {
    let mut found = Some(found);
    for _ in 0..MAX_TRIES {
        let CheckpointMatch { n_tokens, head, stretches } =
            found.take().filter(|found| found.n_tokens >= least)?;
        let mut reading = head.clone().unwrap_or_default();
        let mut read = Vec::new();
        let brought = restore_one(
            model,
            folder,
            &prompt[..n_tokens],
            head.as_deref(),
            &mut |name| reading = name.into(),
            &mut |name| read.push(name.into()),
        );
        match brought {
            Ok(sequence) => {
                told.read.append(&mut read);
                return Some(sequence);
            }
            Err(error) => {
                // everything after it is recomputed and rewritten too
                let failed = stretches.iter().position(|names| names.contains(&reading)).unwrap_or(0);
                let after = stretches.into_iter().skip(failed).flatten().chain(head);
                let after = after.filter(|name| !read.contains(name) && *name != reading);
                after.for_each(|name| drop_file(folder, &name, error.clone(), told));
                drop_file(folder, &reading, error, told);
                found = find(model, folder, prompt, told);
            }
        }
    }
    None
}

/// A disk that can't be read now may be later: the name goes in any case, and is written again.
fn drop_file(folder: &CheckpointDir, name: &str, error: EngineError, told: &mut Checkpoints) {
    _ = folder.remove(name);
    told.gone.push(name.into());
    told.error = Some(Error::from(error));
}

fn restore_one(
    model: &mut Model,
    folder: &CheckpointDir,
    tokens: &[TokenId],
    head: Option<&str>,
    begins: &mut dyn FnMut(&str),
    ends: &mut dyn FnMut(&str),
) -> Result<SequenceId, EngineError> {
    let mut read = |name: &str| -> Result<Vec<u8>, EngineError> {
        begins(name);
        let bytes = folder.read(name);
        let bytes =
            bytes.map_err(|error| EngineError::new(error.code(), error.to_string(), error.remedy()))?;
        ends(name);
        Ok(bytes)
    };
    let head = head.map(&mut read).transpose()?;
    model.restore(tokens, head.as_deref(), &mut read)
}
