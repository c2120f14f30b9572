//! A sequence as pieces of bytes, and back: for checkpoint files.
//!
//! Whole stretches of tokens are pieces by themselves, named by the tokens that they end with: conversations that begin
//! alike share them, and a longer conversation adds only what is new. What is left at a position, the tokens after the
//! last whole stretch, windows, recurrent states, is its head. What has aged is a piece of another name than what is
//! exact, and so is all that saw it; a head tells how far its sequence had aged, and with that which stretches lead to it.
//! `format` lays the bytes out and is the one judge: it
//! sees every piece before it leaves and after it comes in. Whatever doesn't fit is refused with its own message, and
//! the caller computes the tokens again.

use kernels::ops::kv_rows::aged_page;
use kernels::{Executor, Retention};

use super::aging::{Aged, Aging};
use super::cache::{KvCache, SequenceId};
use super::pool::Pages;
use super::size::PieceBytes;
use crate::TokenId;
use crate::error::Result;

mod format;
mod key;

pub use format::{FORMAT_VERSION, GLIMPSE_LEN};
use format::{HEADER_LEN, Kind, Label, check, refused, seal};
pub use key::Key;

/// Tokens of a stretch: whole pages, some megabytes.
pub const STRETCH: usize = 256;

/// Code of the error for a piece that is sound, but follows other tokens.
pub const FOREIGN: &str = "snapshot.prefix";

/// What must agree for the bytes of one process to mean the same in another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// `WeightFile::fingerprint`, hashed.
    pub model: u64,
    /// Hash of the spec: the same file read by another version of its architecture is another model.
    pub spec: u64,
    /// Hash of the backend of each layer and its instruction set: page layouts are theirs, and roundings.
    pub backends: u64,
    /// Hash of the precision of each layer's keys and values.
    pub kv: u64,
    /// Of a page, and of a state, all layers.
    pub bytes: PieceBytes,
}

/// A piece of a sequence, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Letters, digits, one hyphen in that of a head.
    pub name: String,
    /// A piece that serves as well: the same stretch before it aged.
    pub instead: Option<String>,
    /// Tokens up to its end.
    pub position: usize,
    part: Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Stretch,
    Head,
}

/// Where stored pieces lead on the way through some tokens.
pub struct Way {
    /// of exact stretches: what heads are found by, whatever leads to them
    exact: Vec<Key>,
    /// of stretches as they are, or as length has them age
    own: Vec<Key>,
    aging: Aging,
}

/// How far pieces lead, and by which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leads {
    pub n_tokens: usize,
    /// Of each stretch on the way the names of which one is needed.
    pub stretches: Vec<Vec<String>>,
}

impl Way {
    /// As a sequence goes that ages by its length alone.
    pub(crate) fn new(identity: &Identity, aging: Aging, tokens: &[TokenId]) -> Self {
        Self::of(identity, aging, tokens, &Aged::on_time(aging, tokens.len()))
    }

    fn of(identity: &Identity, aging: Aging, tokens: &[TokenId], aged: &Aged) -> Self {
        let exact = key::chain(identity, tokens, &Aged::default());
        let own = if aged.seen.is_empty() { exact.clone() } else { key::chain(identity, tokens, aged) };
        Self { exact, own, aging }
    }

    /// Whole stretches.
    pub fn n_stretches(&self) -> usize {
        self.exact.len() - 1
    }

    /// Name of the stretch that is the `index`-th, before it ages.
    pub fn stretch(&self, index: usize) -> String {
        self.own[index + 1].to_string()
    }

    /// And since.
    fn aged_stretch(&self, index: usize) -> String {
        self.own[index + 1].aged().to_string()
    }

    /// The first `n` stretches, of which `n_aged` have aged: those serve as they were too.
    fn leads(&self, n: usize, n_aged: usize) -> Vec<Vec<String>> {
        let names = |index: usize| match index < n_aged {
            true => vec![self.aged_stretch(index), self.stretch(index)],
            false => vec![self.stretch(index)],
        };
        (0..n).map(names).collect()
    }

    /// What leads to the end of the `n`-th stretch without a head.
    pub fn bare(&self, n: usize) -> Leads {
        let n_tokens = n * STRETCH;
        let n_aged = self.aging.due(n_tokens.saturating_sub(1));
        Leads { n_tokens, stretches: self.leads(n, n_aged) }
    }

    /// What the names of heads begin with that need the first `n` stretches, and no more.
    pub fn heads_after(&self, n: usize) -> String {
        format!("{}-", self.exact[n])
    }

    fn head(&self, tokens: &[TokenId], aged: &Aged) -> String {
        let (n, tail) = (tokens.len() / STRETCH, &tokens[tokens.len() / STRETCH * STRETCH..]);
        let mut bytes = Vec::new();
        if !aged.is_exact() {
            bytes.extend_from_slice(&self.aging.word().to_le_bytes());
            bytes.extend_from_slice(&(aged.n as u64).to_le_bytes());
            bytes.extend(aged.seen_by(n * STRETCH, tokens.len().max(n * STRETCH + 1)));
        }
        format!("{}-{}", self.exact[n], self.own[n].head(&bytes, tail))
    }
}

/// The pieces that lead to each of `positions`, which are within the sequence: stretches first. What has aged too often
/// for a head to tell has none.
pub fn pieces(
    identity: &Identity,
    cache: &KvCache,
    seq: SequenceId,
    positions: &[usize],
) -> Result<Vec<Piece>> {
    let (tokens, aged) = (cache.tokens(seq)?, cache.aged(seq)?);
    let way = Way::of(identity, cache.geometry().ages.when, tokens, aged);
    let last = positions.iter().copied().max().unwrap_or(0).min(tokens.len());
    let stretch = |index| {
        let (name, instead) = match index < aged.n {
            true => (way.aged_stretch(index), Some(way.stretch(index))),
            false => (way.stretch(index), None),
        };
        Piece { name, instead, position: (index + 1) * STRETCH, part: Part::Stretch }
    };
    let n_stretches = if identity.bytes.page > 0 { last / STRETCH } else { 0 };
    let mut pieces: Vec<Piece> = (0..n_stretches).map(stretch).collect();
    for &position in positions.iter().filter(|&&position| position > 0 && position <= tokens.len()) {
        let at = aged.at(position);
        // of layers that forget, what had aged since can't be told from what is kept
        if at.seen.len() <= format::MAX_SEEN && aged.reach(position) == position {
            let name = way.head(&tokens[..position], &at);
            pieces.push(Piece { name, instead: None, position, part: Part::Head });
        }
    }
    Ok(pieces)
}

/// The same piece as it is by now: it may have aged since it was named.
pub fn renewed(identity: &Identity, cache: &KvCache, seq: SequenceId, piece: &Piece) -> Option<Piece> {
    let all = pieces(identity, cache, seq, &[piece.position]).ok()?;
    all.into_iter().rfind(|other| other.position == piece.position && other.part == piece.part)
}

/// The bytes of a piece that `pieces` named. Error `snapshot.moved`: the sequence holds it no more.
pub fn write(
    identity: &Identity,
    cache: &KvCache,
    executor: &Executor,
    seq: SequenceId,
    piece: &Piece,
) -> Result<Vec<u8>> {
    let moved = || refused("snapshot.moved", format!("position {} has been left", piece.position));
    if cache.is_lost(seq) {
        return Err(moved());
    }
    let tokens = cache.tokens(seq)?.get(..piece.position).ok_or_else(moved)?;
    let aged = cache.aged(seq)?.at(piece.position);
    let aging = cache.geometry().ages.when;
    let way = Way::of(identity, aging, tokens, &aged);
    let index = piece.position.saturating_sub(1) / STRETCH;
    let (kind, name, base) = match piece.part {
        Part::Stretch if index < aged.n => (Kind::AgedStretch, way.aged_stretch(index), index * STRETCH),
        Part::Stretch => (Kind::Stretch, way.stretch(index), index * STRETCH),
        Part::Head => (Kind::Head, way.head(tokens, &aged), piece.position / STRETCH * STRETCH),
    };
    if name != piece.name || cache.aged(seq)?.reach(piece.position) != piece.position {
        return Err(moved());
    }
    let geometry = cache.geometry();
    let page = |n| geometry.pages_for(n);
    let mut out = vec![0; HEADER_LEN];
    tokens[base..].iter().for_each(|token| out.extend_from_slice(&token.to_le_bytes()));
    let aged = if kind == Kind::Head { aged } else { Aged::default() };
    aged.seen.iter().for_each(|seen| out.extend_from_slice(&seen.bytes()));
    add(executor, Retention::All, &cache.pages(seq)?[page(base)..page(piece.position)], &mut out)?;
    let mut first_window_page = 0;
    match kind {
        Kind::Stretch | Kind::AgedStretch => {}
        Kind::Head => {
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
    let before = way.own[base / STRETCH];
    let label = Label { kind, base, end: piece.position, first_window_page, before, aged };
    seal(identity, aging, &label, &mut out);
    check(identity, geometry, &out)?;
    Ok(out)
}

/// Windows and state of a sequence as they are, or were, at a position. None: they are gone.
fn held_at(cache: &KvCache, seq: SequenceId, position: usize) -> Result<Option<(&Pages, Option<u32>)>> {
    let (geometry, n_held) = (cache.geometry(), cache.tokens(seq)?.len());
    if let Some(kept) = cache.kept(seq)?.iter().find(|kept| kept.position == position) {
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

/// How far along `tokens` a sequence could go on from a head, of which `bytes` are the first `GLIMPSE_LEN`, and what
/// leads there; at most to `most`. Error: from nowhere.
pub fn reach(
    identity: &Identity,
    cache: &KvCache,
    tokens: &[TokenId],
    most: usize,
    bytes: &[u8],
) -> Result<Leads> {
    let geometry = cache.geometry();
    let head = format::glimpse(identity, geometry, bytes)?;
    let base = head.end - head.tokens.len();
    let rest = tokens.get(base..).unwrap_or_default();
    let n_same = head.tokens.iter().zip(rest).take_while(|(a, b)| a == b).count();
    let n = (base + n_same).min(most);
    let is_there = match geometry.recurrent {
        true => n == head.end,
        false => n >= base && geometry.is_covered(head.first_window_page, n),
    };
    let way = Way::of(identity, geometry.ages.when, &tokens[..base.min(tokens.len())], &head.aged);
    let is_after = way.own.last() == Some(&head.before);
    let n_stretches = if identity.bytes.page > 0 { base / STRETCH } else { 0 };
    match is_there && is_after && n > 0 {
        true => Ok(Leads { n_tokens: n, stretches: way.leads(n_stretches, head.aged.n) }),
        false => Err(refused(FOREIGN, "the piece follows other tokens".into())),
    }
}

/// A new sequence that holds `tokens`, from a head (none: they are whole stretches, and no layer forgets) and from the
/// stretches before it, which `read` brings by name: of those that have aged as they were too, where they are not
/// there otherwise. On error nothing has changed.
pub fn restore(
    identity: &Identity,
    cache: &mut KvCache,
    executor: &mut Executor,
    tokens: &[TokenId],
    head: Option<&[u8]>,
    read: &mut dyn FnMut(&str) -> Result<Vec<u8>>,
) -> Result<SequenceId> {
    let n = tokens.len();
    let foreign = || refused(FOREIGN, "the piece follows other tokens".into());
    let contents = head.map(|bytes| check(identity, cache.geometry(), bytes)).transpose()?;
    // windows and states are in heads alone
    let is_bare = cache.geometry().window.is_none() && !cache.geometry().recurrent;
    let first = match &contents {
        Some(head) => {
            let end = head.base + head.tokens.len();
            let is_state = !cache.geometry().recurrent || n == end;
            let is_there = head.kind == Kind::Head && head.base <= n && n <= end && is_state;
            let covered = cache.geometry().is_covered(head.first_window_page, n);
            if !is_there || !covered || head.tokens[..n - head.base] != tokens[head.base..] {
                return Err(foreign());
            }
            head.first_window_page.max(cache.geometry().first_window_page(n))
        }
        None if n.is_multiple_of(STRETCH) && n > 0 && is_bare => 0,
        None => return Err(foreign()),
    };
    let base = contents.as_ref().map_or(n, |head| head.base);
    let aging = cache.geometry().ages.when;
    let mut aged = match &contents {
        Some(head) => head.aged.at(n),
        None => Aged::on_time(aging, n),
    };
    // the next token would have it so: what is due needn't be held exactly until then
    aged.n = aged.n.max(aging.due(n.saturating_sub(1)));
    let (n_aged, way) = (aged.n, Way::of(identity, aging, &tokens[..base], &aged));
    if contents.as_ref().is_some_and(|head| way.own.last() != Some(&head.before)) {
        return Err(foreign());
    }
    let seq = cache.create_held(tokens, first, aged)?;
    let mut fill = || -> Result<()> {
        if let Some(head) = &contents {
            fill_head(identity, cache, executor, seq, head)?;
        }
        for index in 0..if identity.bytes.page > 0 { way.n_stretches() } else { 0 } {
            let has_aged = index < n_aged;
            let aged = if has_aged { read(&way.aged_stretch(index)).ok() } else { None };
            let bytes = aged.map_or_else(|| read(&way.stretch(index)), Ok)?;
            let stretch = check(identity, cache.geometry(), &bytes)?;
            let own = index * STRETCH..(index + 1) * STRETCH;
            let is_kind = stretch.kind == Kind::Stretch || has_aged && stretch.kind == Kind::AgedStretch;
            let is_it = is_kind && stretch.base == own.start;
            if !is_it || stretch.before != way.own[index] || stretch.tokens != tokens[own.clone()] {
                return Err(foreign());
            }
            let page = |n| cache.geometry().pages_for(n);
            let pages = &cache.pages(seq)?[page(own.start)..page(own.end)];
            match has_aged && stretch.kind == Kind::Stretch {
                true => age_pages(executor, pages, stretch.pages)?,
                false => fill_pages(executor, Retention::All, pages, stretch.pages)?,
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
    identity: &Identity,
    cache: &KvCache,
    executor: &mut Executor,
    seq: SequenceId,
    head: &format::Contents,
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
            executor.kv_write_page(layer, page, bytes)?;
            rest = after;
        }
    }
    Ok(())
}

/// Aged pages of what `bytes` hold exactly.
fn age_pages(executor: &mut Executor, pages: &[u32], bytes: &[u8]) -> Result<()> {
    let layers: Vec<usize> = layers(executor, Retention::All).collect();
    let mut rest = bytes;
    for &page in pages {
        for &layer in &layers {
            let layout = executor.graph().kv().layers[layer];
            let (bytes, after) = rest.split_at(layout.page_bytes());
            executor.kv_write_page(layer, page, &aged_page(layout, bytes))?;
            rest = after;
        }
    }
    Ok(())
}
