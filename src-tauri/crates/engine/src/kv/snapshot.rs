//! A sequence as pieces of bytes, and back: for checkpoint files.
//!
//! Whole chunks of tokens are pieces by themselves, named by the tokens that they end with: conversations that begin
//! alike share them, and a longer conversation adds only what is new. What is left at a position, the tokens after the
//! last whole chunk, windows, recurrent states, is its head. What has aged is a piece of another name than what is
//! exact, and so is all that saw it; a head tells how far its sequence had aged, and with that which chunks lead to it.
//! `format` lays the bytes out and is the one judge: it
//! sees every piece before it leaves and after it comes in. Whatever doesn't fit is refused with its own message, and
//! the caller computes the tokens again.

use kernels::ops::kv_rows::requantized_page;
use kernels::{Executor, Retention};

use super::CHECKPOINT_CHUNK_TOKENS;
use super::cache::KvCache;
use super::pool::PageTable;
use super::requantize::{KvRequantize, Requantized};
use super::sequence_id::SequenceId;
use super::size::KvUnitBytes;
use crate::TokenId;
use crate::error::Result;

mod format;
mod key;

pub use format::{FORMAT_VERSION, HEAD_PREVIEW_BYTES};
use format::{HEADER_LEN, PieceLabel, RecordKind, check, refused, seal};
pub use key::ChunkKey;

/// Code of the error for a piece that is sound, but follows other tokens.
pub const PREFIX_MISMATCH: &str = "snapshot.prefix";

/// What must agree for the bytes of one process to mean the same in another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointIdentity {
    /// `WeightFile::fingerprint`, hashed.
    pub model: u64,
    /// Hash of the spec: the same file read by another version of its architecture is another model.
    pub spec: u64,
    /// Hash of the backend of each layer and its instruction set: page layouts are theirs, and roundings.
    pub backends: u64,
    /// Hash of the precision of each layer's keys and values.
    pub kv: u64,
    /// Of a page, and of a state, all layers.
    pub bytes: KvUnitBytes,
}

/// A piece of a sequence, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointPiece {
    /// Letters, digits, one hyphen in that of a head.
    pub name: String,
    /// A piece that serves as well: the same chunk before it aged.
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

/// Where stored pieces lead on the keys through some tokens.
pub struct ChunkKeys {
    /// of exact chunks: what heads are found by, whatever leads to them
    exact: Vec<ChunkKey>,
    /// of chunks as they are, or as length has them age
    own: Vec<ChunkKey>,
    aging: KvRequantize,
}

/// How far pieces lead, and by which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkMatch {
    pub n_tokens: usize,
    /// Of each chunk on the keys the names of which one is needed.
    pub chunks: Vec<Vec<String>>,
}

impl ChunkKeys {
    /// As a sequence goes that ages by its length alone.
    pub(crate) fn new(identity: &CheckpointIdentity, aging: KvRequantize, tokens: &[TokenId]) -> Self {
        Self::of(identity, aging, tokens, &Requantized::by_length(aging, tokens.len()))
    }

    fn of(
        identity: &CheckpointIdentity,
        aging: KvRequantize,
        tokens: &[TokenId],
        aged: &Requantized,
    ) -> Self {
        let exact = key::chain(identity, tokens, &Requantized::default());
        let own = if aged.views.is_empty() { exact.clone() } else { key::chain(identity, tokens, aged) };
        Self { exact, own, aging }
    }

    /// Whole chunks.
    pub fn n_chunks(&self) -> usize {
        self.exact.len() - 1
    }

    /// Name of the chunk that is the `index`-th, before it ages.
    pub fn chunk(&self, index: usize) -> String {
        self.own[index + 1].to_string()
    }

    /// And since.
    fn requantized_chunk(&self, index: usize) -> String {
        self.own[index + 1].aged().to_string()
    }

    /// The first `n` chunks, of which `n_requantized` have aged: those serve as they were too.
    fn chunk_names(&self, n: usize, n_requantized: usize) -> Vec<Vec<String>> {
        let names = |index: usize| match index < n_requantized {
            true => vec![self.requantized_chunk(index), self.chunk(index)],
            false => vec![self.chunk(index)],
        };
        (0..n).map(names).collect()
    }

    /// What leads to the end of the `n`-th chunk without a head.
    pub fn match_without_head(&self, n: usize) -> ChunkMatch {
        let n_tokens = n * CHECKPOINT_CHUNK_TOKENS;
        let n_requantized = self.aging.due(n_tokens.saturating_sub(1));
        ChunkMatch { n_tokens, chunks: self.chunk_names(n, n_requantized) }
    }

    /// What the names of heads begin with that need the first `n` chunks, and no more.
    pub fn head_prefix(&self, n: usize) -> String {
        format!("{}-", self.exact[n])
    }

    fn head(&self, tokens: &[TokenId], aged: &Requantized) -> String {
        let (n, tail) = (
            tokens.len() / CHECKPOINT_CHUNK_TOKENS,
            &tokens[tokens.len() / CHECKPOINT_CHUNK_TOKENS * CHECKPOINT_CHUNK_TOKENS..],
        );
        let mut bytes = Vec::new();
        if !aged.is_exact() {
            bytes.extend_from_slice(&self.aging.identity_word().to_le_bytes());
            bytes.extend_from_slice(&(aged.n_chunks as u64).to_le_bytes());
            bytes.extend(aged.views_within(
                n * CHECKPOINT_CHUNK_TOKENS,
                tokens.len().max(n * CHECKPOINT_CHUNK_TOKENS + 1),
            ));
        }
        format!("{}-{}", self.exact[n], self.own[n].head(&bytes, tail))
    }
}

/// The pieces that lead to each of `positions`, which are within the sequence: chunks first. What has aged too often
/// for a head to tell has none.
pub fn pieces(
    identity: &CheckpointIdentity,
    cache: &KvCache,
    seq: SequenceId,
    positions: &[usize],
) -> Result<Vec<CheckpointPiece>> {
    let (tokens, aged) = (cache.tokens(seq)?, cache.aged(seq)?);
    let keys = ChunkKeys::of(identity, cache.geometry().requantize.when, tokens, aged);
    let last = positions.iter().copied().max().unwrap_or(0).min(tokens.len());
    let chunk = |index| {
        let (name, fallback) = match index < aged.n_chunks {
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
        let at = aged.at(position);
        // of layers that forget, what had aged since can't be told from what is kept
        if at.views.len() <= format::MAX_VIEWS && aged.reach(position) == position {
            let name = keys.head(&tokens[..position], &at);
            pieces.push(CheckpointPiece { name, fallback: None, position, part: PieceKind::Head });
        }
    }
    Ok(pieces)
}

/// The same piece as it is by now: it may have aged since it was named.
pub fn refresh(
    identity: &CheckpointIdentity,
    cache: &KvCache,
    seq: SequenceId,
    piece: &CheckpointPiece,
) -> Option<CheckpointPiece> {
    let all = pieces(identity, cache, seq, &[piece.position]).ok()?;
    all.into_iter().rfind(|other| other.position == piece.position && other.part == piece.part)
}

/// The bytes of a piece that `pieces` named. Error `snapshot.moved`: the sequence holds it no more.
pub fn write(
    identity: &CheckpointIdentity,
    cache: &KvCache,
    executor: &Executor,
    seq: SequenceId,
    piece: &CheckpointPiece,
) -> Result<Vec<u8>> {
    let moved = || refused("snapshot.moved", format!("position {} has been left", piece.position));
    if cache.is_lost(seq) {
        return Err(moved());
    }
    let tokens = cache.tokens(seq)?.get(..piece.position).ok_or_else(moved)?;
    let aged = cache.aged(seq)?.at(piece.position);
    let aging = cache.geometry().requantize.when;
    let keys = ChunkKeys::of(identity, aging, tokens, &aged);
    let index = piece.position.saturating_sub(1) / CHECKPOINT_CHUNK_TOKENS;
    let (kind, name, base) = match piece.part {
        PieceKind::Chunk if index < aged.n_chunks => {
            (RecordKind::RequantizedChunk, keys.requantized_chunk(index), index * CHECKPOINT_CHUNK_TOKENS)
        }
        PieceKind::Chunk => (RecordKind::Chunk, keys.chunk(index), index * CHECKPOINT_CHUNK_TOKENS),
        PieceKind::Head => (
            RecordKind::Head,
            keys.head(tokens, &aged),
            piece.position / CHECKPOINT_CHUNK_TOKENS * CHECKPOINT_CHUNK_TOKENS,
        ),
    };
    if name != piece.name || cache.aged(seq)?.reach(piece.position) != piece.position {
        return Err(moved());
    }
    let geometry = cache.geometry();
    let page = |n| geometry.pages_for(n);
    let mut out = vec![0; HEADER_LEN];
    tokens[base..].iter().for_each(|token| out.extend_from_slice(&token.to_le_bytes()));
    let aged = if kind == RecordKind::Head { aged } else { Requantized::default() };
    aged.views.iter().for_each(|seen| out.extend_from_slice(&seen.bytes()));
    add(executor, Retention::All, &cache.pages(seq)?[page(base)..page(piece.position)], &mut out)?;
    let mut first_window_page = 0;
    match kind {
        RecordKind::Chunk | RecordKind::RequantizedChunk => {}
        RecordKind::Head => {
            let (window, state) = held_at(cache, seq, piece.position)?.ok_or_else(moved)?;
            first_window_page = window.first();
            let end = if geometry.window.is_some() { page(piece.position) } else { 0 };
            let held: Vec<u32> = (window.first()..end).filter_map(|index| window.get(index)).collect();
            add(executor, Retention::Window, &held, &mut out)?;
            if let Some(slot) = state {
                out.extend_from_slice(&executor.state(slot)?);
            }
        }
    }
    let before = keys.own[base / CHECKPOINT_CHUNK_TOKENS];
    let label = PieceLabel { kind, base, end: piece.position, first_window_page, before, aged };
    seal(identity, aging, &label, &mut out);
    check(identity, geometry, &out)?;
    Ok(out)
}

/// Windows and state of a sequence as they are, or were, at a position. None: they are gone.
fn held_at(cache: &KvCache, seq: SequenceId, position: usize) -> Result<Option<(&PageTable, Option<u32>)>> {
    let (geometry, n_held) = (cache.geometry(), cache.tokens(seq)?.len());
    if let Some(kept) = cache.rewind_points(seq)?.iter().find(|kept| kept.position == position) {
        return Ok(Some((&kept.window, kept.state)));
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

/// KV layers of that kind.
fn layers(executor: &Executor, retention: Retention) -> impl Iterator<Item = usize> {
    let layers = executor.graph().kv().layers.iter().enumerate();
    layers.filter(move |(_, layout)| layout.retention() == retention).map(|(layer, _)| layer)
}

/// How far along `tokens` a sequence could go on from a head, of which `bytes` are the first `HEAD_PREVIEW_BYTES`, and what
/// leads there; at most to `most`. Error: from nowhere.
pub fn reach(
    identity: &CheckpointIdentity,
    cache: &KvCache,
    tokens: &[TokenId],
    most: usize,
    bytes: &[u8],
) -> Result<ChunkMatch> {
    let geometry = cache.geometry();
    let head = format::preview_head(identity, geometry, bytes)?;
    let base = head.end - head.tokens.len();
    let rest = tokens.get(base..).unwrap_or_default();
    let n_same = head.tokens.iter().zip(rest).take_while(|(a, b)| a == b).count();
    let n = (base + n_same).min(most);
    let is_there = match geometry.recurrent {
        true => n == head.end,
        false => n >= base && geometry.is_covered(head.first_window_page, n),
    };
    let keys =
        ChunkKeys::of(identity, geometry.requantize.when, &tokens[..base.min(tokens.len())], &head.aged);
    let is_after = keys.own.last() == Some(&head.before);
    let n_chunks = if identity.bytes.page > 0 { base / CHECKPOINT_CHUNK_TOKENS } else { 0 };
    match is_there && is_after && n > 0 {
        true => Ok(ChunkMatch { n_tokens: n, chunks: keys.chunk_names(n_chunks, head.aged.n_chunks) }),
        false => Err(refused(PREFIX_MISMATCH, "the piece follows other tokens".into())),
    }
}

/// A new sequence that holds `tokens`, from a head (none: they are whole chunks, and no layer forgets) and from the
/// chunks before it, which `read` brings by name: of those that have aged as they were too, where they are not
/// there otherwise. On error nothing has changed.
pub fn restore(
    identity: &CheckpointIdentity,
    cache: &mut KvCache,
    executor: &mut Executor,
    tokens: &[TokenId],
    head: Option<&[u8]>,
    read: &mut dyn FnMut(&str) -> Result<Vec<u8>>,
) -> Result<SequenceId> {
    let n = tokens.len();
    let foreign = || refused(PREFIX_MISMATCH, "the piece follows other tokens".into());
    let contents = head.map(|bytes| check(identity, cache.geometry(), bytes)).transpose()?;
    // windows and states are in heads alone
    let is_bare = cache.geometry().window.is_none() && !cache.geometry().recurrent;
    let first = match &contents {
        Some(head) => {
            let end = head.base + head.tokens.len();
            let is_state = !cache.geometry().recurrent || n == end;
            let is_there = head.kind == RecordKind::Head && head.base <= n && n <= end && is_state;
            let covered = cache.geometry().is_covered(head.first_window_page, n);
            if !is_there || !covered || head.tokens[..n - head.base] != tokens[head.base..] {
                return Err(foreign());
            }
            head.first_window_page.max(cache.geometry().first_window_page(n))
        }
        None if n.is_multiple_of(CHECKPOINT_CHUNK_TOKENS) && n > 0 && is_bare => 0,
        None => return Err(foreign()),
    };
    let base = contents.as_ref().map_or(n, |head| head.base);
    let aging = cache.geometry().requantize.when;
    let mut aged = match &contents {
        Some(head) => head.aged.at(n),
        None => Requantized::by_length(aging, n),
    };
    // the next token would have it so: what is due needn't be held exactly until then
    aged.n_chunks = aged.n_chunks.max(aging.due(n.saturating_sub(1)));
    let (n_requantized, keys) = (aged.n_chunks, ChunkKeys::of(identity, aging, &tokens[..base], &aged));
    if contents.as_ref().is_some_and(|head| keys.own.last() != Some(&head.before)) {
        return Err(foreign());
    }
    let seq = cache.create_held(tokens, first, aged)?;
    let mut fill = || -> Result<()> {
        if let Some(head) = &contents {
            fill_head(identity, cache, executor, seq, head)?;
        }
        for index in 0..if identity.bytes.page > 0 { keys.n_chunks() } else { 0 } {
            let has_aged = index < n_requantized;
            let aged = if has_aged { read(&keys.requantized_chunk(index)).ok() } else { None };
            let bytes = aged.map_or_else(|| read(&keys.chunk(index)), Ok)?;
            let chunk = check(identity, cache.geometry(), &bytes)?;
            let own = index * CHECKPOINT_CHUNK_TOKENS..(index + 1) * CHECKPOINT_CHUNK_TOKENS;
            let is_kind =
                chunk.kind == RecordKind::Chunk || has_aged && chunk.kind == RecordKind::RequantizedChunk;
            let is_it = is_kind && chunk.base == own.start;
            if !is_it || chunk.before != keys.own[index] || chunk.tokens != tokens[own.clone()] {
                return Err(foreign());
            }
            let page = |n| cache.geometry().pages_for(n);
            let pages = &cache.pages(seq)?[page(own.start)..page(own.end)];
            match has_aged && chunk.kind == RecordKind::Chunk {
                true => age_pages(executor, pages, chunk.pages)?,
                false => fill_pages(executor, Retention::All, pages, chunk.pages)?,
            }
        }
        Ok(())
    };
    let filled = fill();
    if filled.is_err() {
        cache.free(seq);
    }
    filled.map(|()| seq)
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

/// `bytes` hold as many pages, or more.
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

/// Requantized pages of what `bytes` hold exactly.
fn age_pages(executor: &mut Executor, pages: &[u32], bytes: &[u8]) -> Result<()> {
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
