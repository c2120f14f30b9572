//! Checkpoints: a sequence as pieces of bytes for files, and back.
//!
//! Whole chunks are separate pieces, named by the tokens they end with: conversations with a common prefix share
//! them. The rest at a position (tokens after the last chunk, windows, recurrent states) is its head. Requantized
//! chunks and all that saw them have other names.
//!
//! `format` checks every piece before it leaves and after it returns. A rejected piece has its own message, and the
//! caller recomputes the tokens.

use kernels::ops::kv_rows::requantized_page;
use kernels::{Executor, Retention};

use super::CHECKPOINT_CHUNK_TOKENS;
use super::cache::KvCache;
use super::pool::PageTable;
use super::requantize::{KvRequantize, Requantized};
use super::sequence_id::SequenceId;
use super::size::{Geometry, KvUnitBytes};
use crate::TokenId;
use crate::error::{EngineError, Result};

mod format;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod key;

pub use format::HEAD_PREVIEW_BYTES;
use format::{HEADER_LEN, PieceLabel, RecordKind, check, refused, seal};
pub use key::ChunkKey;

/// Version of the format of pieces. Increased whenever the layout or the meaning of page bytes changes.
pub const FORMAT_VERSION: u64 = 5;

/// Error code of a valid piece that follows other tokens.
pub const PREFIX_MISMATCH: &str = "snapshot.prefix";

/// What must agree for the bytes of one process to be valid in another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointIdentity {
    /// Hash of `WeightFile::fingerprint`.
    pub model: u64,
    /// Hash of the spec's Debug text: the same file read by another version of its architecture is another model.
    pub spec: u64,
    /// Hash of each layer's backend and instruction set: they determine page layouts and rounding.
    pub backends: u64,
    /// Hash of each layer's key-value precision.
    pub kv: u64,
    /// Bytes per page and state, all layers together.
    pub bytes: KvUnitBytes,
}

/// A named piece of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointPiece {
    /// File name: hexadecimal digits, in a head's name also one hyphen.
    pub name: String,
    /// Name of a piece that serves as well: the same chunk before requantization.
    pub fallback: Option<String>,
    /// Tokens up to its end.
    pub position: usize,
    part: PieceKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceKind {
    Chunk,
    Head,
}

/// Chunk keys along a token prefix: which stored checkpoint chunks can serve it.
pub struct ChunkKeys {
    /// Keys of exact chunks. Heads are found by these, whatever form the chunks have.
    exact: Vec<ChunkKey>,
    /// Keys of the chunks as they are, or as requantization by length makes them.
    actual: Vec<ChunkKey>,
    requantize: KvRequantize,
}

/// How far stored chunks match a token prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkMatch {
    /// Tokens of the match.
    pub n_tokens: usize,
    /// For each chunk the names that can serve it; any one suffices.
    pub chunks: Vec<Vec<String>>,
}

impl ChunkKeys {
    /// Computes the keys of a sequence that is requantized by length alone.
    pub(crate) fn new(identity: &CheckpointIdentity, requantize: KvRequantize, tokens: &[TokenId]) -> Self {
        Self::of(identity, requantize, tokens, &Requantized::by_length(requantize, tokens.len()))
    }

    fn of(
        identity: &CheckpointIdentity,
        requantize: KvRequantize,
        tokens: &[TokenId],
        requantized: &Requantized,
    ) -> Self {
        let exact = key::chain(identity, tokens, &Requantized::default());
        let actual = if requantized.views.is_empty() {
            exact.clone()
        } else {
            key::chain(identity, tokens, requantized)
        };
        Self { exact, actual, requantize }
    }

    /// Returns the number of whole chunks.
    pub fn n_chunks(&self) -> usize {
        self.exact.len() - 1
    }

    /// Returns the name of chunk `index` in its exact form.
    pub fn chunk(&self, index: usize) -> String {
        self.actual[index + 1].to_string()
    }

    /// Returns the name of chunk `index` in its requantized form.
    fn requantized_chunk(&self, index: usize) -> String {
        self.actual[index + 1].requantized().to_string()
    }

    /// Returns the names of the first `n` chunks. The exact form also serves for the first `n_requantized`.
    fn chunk_names(&self, n: usize, n_requantized: usize) -> Vec<Vec<String>> {
        let names = |index: usize| match index < n_requantized {
            true => vec![self.requantized_chunk(index), self.chunk(index)],
            false => vec![self.chunk(index)],
        };
        (0..n).map(names).collect()
    }

    /// Returns the match up to the end of chunk `n` without a head.
    pub fn match_without_head(&self, n: usize) -> ChunkMatch {
        let n_tokens = n * CHECKPOINT_CHUNK_TOKENS;
        let n_requantized = self.requantize.due(n_tokens.saturating_sub(1));
        ChunkMatch { n_tokens, chunks: self.chunk_names(n, n_requantized) }
    }

    /// Returns the name prefix of heads that follow exactly the first `n` chunks.
    pub fn head_prefix(&self, n: usize) -> String {
        format!("{}-", self.exact[n])
    }

    fn head(&self, tokens: &[TokenId], requantized: &Requantized) -> String {
        let (n, tail) = (
            tokens.len() / CHECKPOINT_CHUNK_TOKENS,
            &tokens[tokens.len() / CHECKPOINT_CHUNK_TOKENS * CHECKPOINT_CHUNK_TOKENS..],
        );
        let mut bytes = Vec::new();
        if !requantized.is_exact() {
            bytes.extend_from_slice(&self.requantize.identity_word().to_le_bytes());
            bytes.extend_from_slice(&(requantized.n_chunks as u64).to_le_bytes());
            bytes.extend(requantized.views_within(
                n * CHECKPOINT_CHUNK_TOKENS,
                tokens.len().max(n * CHECKPOINT_CHUNK_TOKENS + 1),
            ));
        }
        format!("{}-{}", self.exact[n], self.actual[n].head(&bytes, tail))
    }
}

/// Returns the pieces for each of `positions`, chunks first. A position that was requantized too often for a head has
/// none.
pub fn pieces(
    identity: &CheckpointIdentity,
    cache: &KvCache,
    seq: SequenceId,
    positions: &[usize],
) -> Result<Vec<CheckpointPiece>> {
    let (tokens, requantized) = (cache.tokens(seq)?, cache.requantized(seq)?);
    let keys = ChunkKeys::of(identity, cache.geometry().requantize.when, tokens, requantized);
    let last = positions.iter().copied().max().unwrap_or(0).min(tokens.len());
    let chunk = |index| {
        let (name, fallback) = match index < requantized.n_chunks {
            true => (keys.requantized_chunk(index), Some(keys.chunk(index))),
            false => (keys.chunk(index), None),
        };
        CheckpointPiece {
            name,
            fallback,
            position: (index + 1) * CHECKPOINT_CHUNK_TOKENS,
            part: PieceKind::Chunk,
        }
    };
    let n_chunks = if identity.bytes.page > 0 { last / CHECKPOINT_CHUNK_TOKENS } else { 0 };
    let mut pieces: Vec<CheckpointPiece> = (0..n_chunks).map(chunk).collect();
    for &position in positions.iter().filter(|&&position| position > 0 && position <= tokens.len()) {
        let at = requantized.at(position);
        // Windows and states do not tell what was requantized after the position.
        if at.views.len() <= format::MAX_VIEWS && requantized.reach(position) == position {
            let name = keys.head(&tokens[..position], &at);
            pieces.push(CheckpointPiece { name, fallback: None, position, part: PieceKind::Head });
        }
    }
    Ok(pieces)
}

/// Returns the piece under its current name: it may have been requantized since.
pub fn refresh(
    identity: &CheckpointIdentity,
    cache: &KvCache,
    seq: SequenceId,
    piece: &CheckpointPiece,
) -> Option<CheckpointPiece> {
    let all = pieces(identity, cache, seq, &[piece.position]).ok()?;
    all.into_iter().rfind(|other| other.position == piece.position && other.part == piece.part)
}

/// Returns the bytes of a piece.
///
/// Errors: `snapshot.moved` if the sequence no longer holds it.
pub fn write(
    identity: &CheckpointIdentity,
    cache: &KvCache,
    executor: &Executor,
    seq: SequenceId,
    piece: &CheckpointPiece,
) -> Result<Vec<u8>> {
    let moved_error =
        || refused("snapshot.moved", format!("position {} is no longer available", piece.position));
    if cache.is_lost(seq) {
        return Err(moved_error());
    }
    let tokens = cache.tokens(seq)?.get(..piece.position).ok_or_else(moved_error)?;
    let requantized = cache.requantized(seq)?.at(piece.position);
    let requantize = cache.geometry().requantize.when;
    let keys = ChunkKeys::of(identity, requantize, tokens, &requantized);
    let index = piece.position.saturating_sub(1) / CHECKPOINT_CHUNK_TOKENS;
    let (kind, name, base) = match piece.part {
        PieceKind::Chunk if index < requantized.n_chunks => {
            (RecordKind::RequantizedChunk, keys.requantized_chunk(index), index * CHECKPOINT_CHUNK_TOKENS)
        }
        PieceKind::Chunk => (RecordKind::Chunk, keys.chunk(index), index * CHECKPOINT_CHUNK_TOKENS),
        PieceKind::Head => (
            RecordKind::Head,
            keys.head(tokens, &requantized),
            piece.position / CHECKPOINT_CHUNK_TOKENS * CHECKPOINT_CHUNK_TOKENS,
        ),
    };
    if name != piece.name || cache.requantized(seq)?.reach(piece.position) != piece.position {
        return Err(moved_error());
    }
    let geometry = cache.geometry();
    let page = |n| geometry.pages_for(n);
    let mut out = vec![0; HEADER_LEN];
    tokens[base..].iter().for_each(|token| out.extend_from_slice(&token.to_le_bytes()));
    let requantized = if kind == RecordKind::Head { requantized } else { Requantized::default() };
    requantized.views.iter().for_each(|view| out.extend_from_slice(&view.bytes()));
    add(executor, Retention::All, &cache.pages(seq)?[page(base)..page(piece.position)], &mut out)?;
    let mut first_window_page = 0;
    match kind {
        RecordKind::Chunk | RecordKind::RequantizedChunk => {}
        RecordKind::Head => {
            let (window, state) = state_at(cache, seq, piece.position)?.ok_or_else(moved_error)?;
            first_window_page = window.first();
            let end = if geometry.window.is_some() { page(piece.position) } else { 0 };
            let held: Vec<u32> = (window.first()..end).filter_map(|index| window.get(index)).collect();
            add(executor, Retention::Window, &held, &mut out)?;
            if let Some(slot) = state {
                out.extend_from_slice(&executor.state(slot)?);
            }
        }
    }
    let before = keys.actual[base / CHECKPOINT_CHUNK_TOKENS];
    let label = PieceLabel { kind, base, end: piece.position, first_window_page, before, requantized };
    seal(identity, requantize, &label, &mut out);
    check(identity, geometry, &out)?;
    Ok(out)
}

/// Returns windows and state of a sequence at a position, if they are still held.
fn state_at(cache: &KvCache, seq: SequenceId, position: usize) -> Result<Option<(&PageTable, Option<u32>)>> {
    let (geometry, n_held) = (cache.geometry(), cache.tokens(seq)?.len());
    if let Some(point) = cache.rewind_points(seq)?.iter().find(|point| point.position == position) {
        return Ok(Some((&point.window, point.state)));
    }
    let window = cache.window_pages(seq)?;
    let is_there = position == n_held || !geometry.recurrent && geometry.is_covered(window.first(), position);
    Ok(is_there.then_some((window, cache.state(seq)?)))
}

fn add(executor: &Executor, retention: Retention, pages: &[u32], out: &mut Vec<u8>) -> Result<()> {
    for &page in pages {
        for layer in layers(executor, retention) {
            out.extend_from_slice(&executor.kv_page(layer, page)?);
        }
    }
    Ok(())
}

/// Returns the KV layers of that kind.
fn layers(executor: &Executor, retention: Retention) -> impl Iterator<Item = usize> {
    let layers = executor.graph().kv().layers.iter().enumerate();
    layers.filter(move |(_, layout)| layout.retention() == retention).map(|(layer, _)| layer)
}

/// Returns how far along `tokens`, at most `max_tokens`, a sequence could continue from a head, and the chunks it needs.
/// `bytes` are its first `HEAD_PREVIEW_BYTES`.
///
/// Errors: `snapshot.*` if it cannot serve.
pub fn reach(
    identity: &CheckpointIdentity,
    cache: &KvCache,
    tokens: &[TokenId],
    max_tokens: usize,
    bytes: &[u8],
) -> Result<ChunkMatch> {
    let geometry = cache.geometry();
    let head = format::preview_head(identity, geometry, bytes)?;
    let base = head.end - head.tokens.len();
    let rest = tokens.get(base..).unwrap_or_default();
    let n_same = head.tokens.iter().zip(rest).take_while(|(a, b)| a == b).count();
    let n = (base + n_same).min(max_tokens);
    let is_there = match geometry.recurrent {
        true => n == head.end,
        false => n >= base && geometry.is_covered(head.first_window_page, n),
    };
    let keys = ChunkKeys::of(
        identity,
        geometry.requantize.when,
        &tokens[..base.min(tokens.len())],
        &head.requantized,
    );
    let is_after = keys.actual.last() == Some(&head.before);
    let n_chunks = if identity.bytes.page > 0 { base / CHECKPOINT_CHUNK_TOKENS } else { 0 };
    match is_there && is_after && n > 0 {
        true => Ok(ChunkMatch { n_tokens: n, chunks: keys.chunk_names(n_chunks, head.requantized.n_chunks) }),
        false => Err(other_prefix()),
    }
}

/// Creates a sequence that holds `tokens` from a head and the chunks before it, which `read` loads by name.
///
/// Without a head the tokens must be whole chunks, and all layers full attention. Exact chunks serve where
/// requantized ones are missing. On error nothing has changed.
pub fn restore(
    identity: &CheckpointIdentity,
    cache: &mut KvCache,
    executor: &mut Executor,
    tokens: &[TokenId],
    head: Option<&[u8]>,
    read: &mut dyn FnMut(&str) -> Result<Vec<u8>>,
) -> Result<SequenceId> {
    let n = tokens.len();
    let contents = head.map(|bytes| check(identity, cache.geometry(), bytes)).transpose()?;
    let first = first_restored_page(cache.geometry(), tokens, contents.as_ref())?;
    let base = contents.as_ref().map_or(n, |head| head.base);
    let requantize = cache.geometry().requantize.when;
    let mut requantized = match &contents {
        Some(head) => head.requantized.at(n),
        None => Requantized::by_length(requantize, n),
    };
    // The next token would requantize these anyway, so they need not be exact until then.
    requantized.n_chunks = requantized.n_chunks.max(requantize.due(n.saturating_sub(1)));
    let (n_requantized, keys) =
        (requantized.n_chunks, ChunkKeys::of(identity, requantize, &tokens[..base], &requantized));
    if contents.as_ref().is_some_and(|head| keys.actual.last() != Some(&head.before)) {
        return Err(other_prefix());
    }
    let seq = cache.create_held(tokens, first, requantized)?;
    let filled = match &contents {
        Some(head) => fill_head(identity, cache, executor, seq, head),
        None => Ok(()),
    };
    let filled =
        filled.and_then(|()| fill_chunks(identity, cache, executor, seq, &keys, n_requantized, read));
    if filled.is_err() {
        cache.free(seq);
    }
    filled.map(|()| seq)
}

fn other_prefix() -> EngineError {
    refused(PREFIX_MISMATCH, "the checkpoint piece follows other tokens".into())
}

/// Returns the first window page of a sequence restored from `head` and the chunks before it.
///
/// Errors: `PREFIX_MISMATCH` if they cannot hold `tokens`.
fn first_restored_page(
    geometry: &Geometry,
    tokens: &[TokenId],
    head: Option<&format::PieceContents>,
) -> Result<usize> {
    let n = tokens.len();
    let Some(head) = head else {
        // Windows and states are in heads only.
        let is_bare = geometry.window.is_none() && !geometry.recurrent;
        return match n.is_multiple_of(CHECKPOINT_CHUNK_TOKENS) && n > 0 && is_bare {
            true => Ok(0),
            false => Err(other_prefix()),
        };
    };
    let end = head.base + head.tokens.len();
    let is_state = !geometry.recurrent || n == end;
    let is_there = head.kind == RecordKind::Head && head.base <= n && n <= end && is_state;
    let covered = geometry.is_covered(head.first_window_page, n);
    if !is_there || !covered || head.tokens[..n - head.base] != tokens[head.base..] {
        return Err(other_prefix());
    }
    Ok(head.first_window_page.max(geometry.first_window_page(n)))
}

/// Fills the pages of the whole chunks of `seq`. Requantized pieces are preferred where the sequence is requantized.
fn fill_chunks(
    identity: &CheckpointIdentity,
    cache: &KvCache,
    executor: &mut Executor,
    seq: SequenceId,
    keys: &ChunkKeys,
    n_requantized: usize,
    read: &mut dyn FnMut(&str) -> Result<Vec<u8>>,
) -> Result<()> {
    let geometry = cache.geometry();
    for index in 0..if identity.bytes.page > 0 { keys.n_chunks() } else { 0 } {
        let has_requantized = index < n_requantized;
        let requantized = if has_requantized { read(&keys.requantized_chunk(index)).ok() } else { None };
        let bytes = requantized.map_or_else(|| read(&keys.chunk(index)), Ok)?;
        let chunk = check(identity, geometry, &bytes)?;
        let own = index * CHECKPOINT_CHUNK_TOKENS..(index + 1) * CHECKPOINT_CHUNK_TOKENS;
        let is_kind =
            chunk.kind == RecordKind::Chunk || has_requantized && chunk.kind == RecordKind::RequantizedChunk;
        let is_it = is_kind && chunk.base == own.start;
        if !is_it || chunk.before != keys.actual[index] || chunk.tokens != cache.tokens(seq)?[own.clone()] {
            return Err(other_prefix());
        }
        let pages = &cache.pages(seq)?[geometry.pages_for(own.start)..geometry.pages_for(own.end)];
        match has_requantized && chunk.kind == RecordKind::Chunk {
            true => requantize_pages(executor, pages, chunk.pages)?,
            false => fill_pages(executor, Retention::All, pages, chunk.pages)?,
        }
    }
    Ok(())
}

fn fill_head(
    identity: &CheckpointIdentity,
    cache: &KvCache,
    executor: &mut Executor,
    seq: SequenceId,
    head: &format::PieceContents,
) -> Result<()> {
    let tail = &cache.pages(seq)?[cache.geometry().pages_for(head.base)..];
    fill_pages(executor, Retention::All, tail, head.pages)?;
    let window = cache.window_pages(seq)?;
    let n_passed = window.first().saturating_sub(head.first_window_page);
    let own = head.window_pages.get(n_passed * identity.bytes.window_page as usize..).unwrap_or_default();
    fill_pages(executor, Retention::Window, window.held(), own)?;
    if let Some(slot) = cache.state(seq)? {
        executor.write_state(slot, head.state)?;
    }
    Ok(())
}

/// Fills pages from `bytes`, which may hold more.
fn fill_pages(executor: &mut Executor, retention: Retention, pages: &[u32], bytes: &[u8]) -> Result<()> {
    let layers: Vec<usize> = layers(executor, retention).collect();
    let mut rest = bytes;
    for &page in pages {
        for &layer in &layers {
            let (bytes, after) = rest.split_at(executor.kv_layout(layer, page).page_bytes());
            executor.write_kv_page(layer, page, bytes)?;
            rest = after;
        }
    }
    Ok(())
}

/// Fills requantized pages from exact `bytes`.
fn requantize_pages(executor: &mut Executor, pages: &[u32], bytes: &[u8]) -> Result<()> {
    let layers: Vec<usize> = layers(executor, Retention::All).collect();
    let mut rest = bytes;
    for &page in pages {
        for &layer in &layers {
            let layout = executor.graph().kv().layers[layer];
            let (bytes, after) = rest.split_at(layout.page_bytes());
            executor.write_kv_page(layer, page, &requantized_page(layout, bytes))?;
            rest = after;
        }
    }
    Ok(())
}
