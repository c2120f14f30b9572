//! How a snapshot lies in bytes, and whether some bytes are one.
//!
//! Little-endian: magic, format version, identity (which model, spec, kernels and precision wrote it), counts, token
//! hash, checksum; then the token ids; then the bytes of each layer for each page: of the layers that keep everything,
//! of the layers with a window, of the kept position where its pages are others; then the recurrent state, and the
//! kept position's.

use std::ops::Range;

use super::super::checksum::xxh64;
use super::super::kept::Shared;
use super::super::size::{Geometry, PieceBytes};
use crate::TokenId;
use crate::error::{EngineError, Result};

const MAGIC: [u8; 8] = *b"INGLEKV\0";

/// Raised whenever the layout, or what page bytes mean, changes.
pub const FORMAT_VERSION: u64 = 3;

/// What must agree for the bytes of one process to mean the same in another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// `WeightFile::fingerprint`, hashed.
    pub model: u64,
    /// Hash of the spec: the same file read by another version of its architecture is another model.
    pub spec: u64,
    /// Hash of the backend kind of each layer: page layouts are theirs.
    pub backends: u64,
    /// Hash of the precision of each layer's keys and values.
    pub kv: u64,
    /// Of a page, and of a state, all layers.
    pub bytes: PieceBytes,
}

/// The header, field by field in file order after magic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    version: u64,
    model: u64,
    spec: u64,
    backends: u64,
    kv: u64,
    page_len: u64,
    page_bytes: u64,
    window_page_bytes: u64,
    state_bytes: u64,
    n_tokens: u64,
    first_window_page: u64,
    /// 0: nothing was kept
    kept_position: u64,
    kept_first: u64,
    shared_start: u64,
    shared_end: u64,
    token_hash: u64,
    checksum: u64,
}

const N_WORDS: usize = 17;

/// Bytes before the token ids.
pub(super) const HEADER_LEN: usize = MAGIC.len() + N_WORDS * 8;

impl Header {
    fn encode(&self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        out[..8].copy_from_slice(&MAGIC);
        let h = *self;
        let words: [u64; N_WORDS] = [
            h.version,
            h.model,
            h.spec,
            h.backends,
            h.kv,
            h.page_len,
            h.page_bytes,
            h.window_page_bytes,
            h.state_bytes,
            h.n_tokens,
            h.first_window_page,
            h.kept_position,
            h.kept_first,
            h.shared_start,
            h.shared_end,
            h.token_hash,
            h.checksum,
        ];
        for (field, word) in out[8..].chunks_exact_mut(8).zip(words) {
            field.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// `bytes` begin with magic.
    fn decode(bytes: &[u8; HEADER_LEN]) -> Self {
        let mut words = bytes[8..]
            .chunks_exact(8)
            .map(|field| u64::from_le_bytes(field.try_into().expect("chunks of 8 bytes")));
        let mut next = || words.next().expect("a header has all its words");
        Self {
            version: next(),
            model: next(),
            spec: next(),
            backends: next(),
            kv: next(),
            page_len: next(),
            page_bytes: next(),
            window_page_bytes: next(),
            state_bytes: next(),
            n_tokens: next(),
            first_window_page: next(),
            kept_position: next(),
            kept_first: next(),
            shared_start: next(),
            shared_end: next(),
            token_hash: next(),
            checksum: next(),
        }
    }
}

/// A checked snapshot.
pub(super) struct Contents<'a> {
    pub tokens: Vec<TokenId>,
    pub first_window_page: usize,
    pub kept: Option<Shared>,
    /// (pages of the tokens, page bytes)
    pub pages: &'a [u8],
    /// (pages from the first window page on, window page bytes)
    pub window_pages: &'a [u8],
    /// (pages of the kept position that aren't the sequence's, window page bytes)
    pub kept_pages: &'a [u8],
    pub state: &'a [u8],
    pub kept_state: &'a [u8],
}

/// Writes the header over the first `HEADER_LEN` bytes of a snapshot whose body stands behind it.
pub(super) fn seal(
    identity: &Identity,
    n_tokens: usize,
    first_window_page: usize,
    kept: Option<&Shared>,
    out: &mut [u8],
) {
    let (header, body) = out.split_at_mut(HEADER_LEN);
    let none = Shared { position: 0, first: 0, pages: 0..0 };
    let kept = kept.unwrap_or(&none);
    let mut fields = Header {
        version: FORMAT_VERSION,
        model: identity.model,
        spec: identity.spec,
        backends: identity.backends,
        kv: identity.kv,
        page_len: kernels::PAGE_LEN as u64,
        page_bytes: identity.bytes.page,
        window_page_bytes: identity.bytes.window_page,
        state_bytes: identity.bytes.state,
        n_tokens: n_tokens as u64,
        first_window_page: first_window_page as u64,
        kept_position: kept.position as u64,
        kept_first: kept.first as u64,
        shared_start: kept.pages.start as u64,
        shared_end: kept.pages.end as u64,
        token_hash: xxh64(&body[..n_tokens * 4]),
        checksum: 0,
    };
    fields.checksum = checksum(&fields, body);
    header.copy_from_slice(&fields.encode());
}

/// Hash over the header with its checksum as 0, chained with the body's.
fn checksum(header: &Header, body: &[u8]) -> u64 {
    let head = xxh64(&Header { checksum: 0, ..*header }.encode());
    xxh64(&[head.to_le_bytes(), xxh64(body).to_le_bytes()].concat())
}

/// Judges a snapshot wholly: who wrote it, whether its counts agree with each other and with the context, and whether
/// every byte is as it was.
pub(super) fn check<'a>(identity: &Identity, geometry: &Geometry, bytes: &'a [u8]) -> Result<Contents<'a>> {
    let Some((head, body)) = bytes.split_first_chunk::<HEADER_LEN>() else {
        return Err(refused("snapshot.truncated", format!("the snapshot has only {} bytes", bytes.len())));
    };
    if head[..8] != MAGIC {
        return Err(refused("snapshot.magic", "this is not a snapshot".into()));
    }
    let header = Header::decode(head);
    check_writer(identity, &header)?;
    let (n_tokens, first, kept) = counts(geometry, &header)?;
    let n_kept_pages = kept.as_ref().map_or(0, |kept| {
        let end = if geometry.window.is_some() { geometry.pages_for(kept.position) } else { 0 };
        end - kept.first - kept.pages.len()
    });
    let n_pages = geometry.pages_for(n_tokens);
    let n_window_pages = if geometry.window.is_some() { n_pages - first } else { 0 };
    let n_states = usize::from(n_tokens > 0) + usize::from(kept.is_some());
    // All counts are bounded by the context now, so these are small.
    let PieceBytes { page, window_page, state } = identity.bytes;
    let [page, window_page, state] = [page, window_page, state].map(|bytes| bytes as usize);
    let lengths = [n_tokens * 4, n_pages * page, n_window_pages * window_page, n_kept_pages * window_page];
    let n_bytes = lengths.iter().sum::<usize>() + n_states * state;
    if body.len() != n_bytes {
        let message = format!("the snapshot's body has {} bytes, not {n_bytes}", body.len());
        return Err(refused("snapshot.length", message));
    }
    let mut rest = body;
    let [tokens, pages, window_pages, kept_pages] = lengths.map(|n| {
        let (part, after) = rest.split_at(n);
        rest = after;
        part
    });
    let (state, kept_state) = rest.split_at(if n_tokens > 0 { state } else { 0 });
    if xxh64(tokens) != header.token_hash {
        let message = "the snapshot's tokens are not those it was written with";
        return Err(refused("snapshot.tokens", message.into()));
    }
    if checksum(&header, body) != header.checksum {
        let message = "the snapshot's bytes have changed since it was written";
        return Err(refused("snapshot.checksum", message.into()));
    }
    let id = |bytes: &[u8]| TokenId::from_le_bytes(bytes.try_into().expect("chunks of 4 bytes"));
    let tokens = tokens.chunks_exact(4).map(id).collect();
    Ok(Contents {
        tokens,
        first_window_page: first,
        kept,
        pages,
        window_pages,
        kept_pages,
        state,
        kept_state,
    })
}

fn check_writer(identity: &Identity, header: &Header) -> Result<()> {
    if header.version != FORMAT_VERSION {
        let version = header.version;
        let message = format!("the snapshot has format {version}, this program writes {FORMAT_VERSION}");
        return Err(refused("snapshot.version", message));
    }
    let bytes = PieceBytes {
        page: header.page_bytes,
        window_page: header.window_page_bytes,
        state: header.state_bytes,
    };
    let same = [
        ("snapshot.model", "by another model file", header.model == identity.model),
        ("snapshot.spec", "for another reading of this model", header.spec == identity.spec),
        ("snapshot.backend", "on another kind of device", header.backends == identity.backends),
        ("snapshot.kv_dtype", "with another key-value precision", header.kv == identity.kv),
        (
            "snapshot.page_layout",
            "with other pages",
            header.page_len == kernels::PAGE_LEN as u64 && bytes == identity.bytes,
        ),
    ];
    match same.iter().find(|(_, _, same)| !same) {
        Some((code, how, _)) => Err(refused(code, format!("the snapshot was written {how}"))),
        None => Ok(()),
    }
}

/// Tokens, first window page, and the kept position, each within what a sequence of this model can hold.
fn counts(geometry: &Geometry, header: &Header) -> Result<(usize, usize, Option<Shared>)> {
    if header.n_tokens > geometry.n_ctx as u64 {
        let (n_tokens, n_ctx) = (header.n_tokens, geometry.n_ctx);
        return Err(refused(
            "snapshot.context",
            format!("the snapshot holds {n_tokens} tokens, the context {n_ctx}"),
        ));
    }
    let n_tokens = header.n_tokens as usize;
    let first = window_start(geometry, header.first_window_page, n_tokens)?;
    if header.kept_position == 0 && [header.kept_first, header.shared_start, header.shared_end] == [0; 3] {
        return Ok((n_tokens, first, None));
    }
    if header.kept_position == 0 || header.kept_position >= header.n_tokens || !geometry.can_lose() {
        let message = format!("position {} of {n_tokens} tokens cannot be kept", header.kept_position);
        return Err(refused("snapshot.counts", message));
    }
    let position = header.kept_position as usize;
    let kept_first = window_start(geometry, header.kept_first, position)?;
    let pages = Range { start: header.shared_start, end: header.shared_end };
    let held = first.max(kept_first) as u64..geometry.pages_for(position) as u64;
    let is_none = pages == (0..0);
    let is_within = held.start <= pages.start && pages.start < pages.end && pages.end <= held.end;
    if !is_none && (!is_within || geometry.window.is_none()) {
        let message = format!("pages {pages:?} cannot be shared by a position that holds {held:?}");
        return Err(refused("snapshot.counts", message));
    }
    let pages = pages.start as usize..pages.end as usize;
    Ok((n_tokens, first, Some(Shared { position, first: kept_first, pages })))
}

/// A window that is held from a page on reaches `n_held`, and no more is held than a live sequence may.
fn window_start(geometry: &Geometry, first: u64, n_held: usize) -> Result<usize> {
    let index = usize::try_from(first).unwrap_or(usize::MAX);
    let fits = match geometry.window {
        Some(_) => geometry.first_window_page(n_held) <= index && geometry.is_covered(index, n_held),
        None => index == 0,
    };
    match fits && index <= geometry.pages_for(n_held) {
        true => Ok(index),
        false => Err(refused(
            "snapshot.counts",
            format!("{n_held} tokens cannot begin their window at page {first}"),
        )),
    }
}

fn refused(code: &'static str, message: String) -> EngineError {
    EngineError::new(code, message, "It is dropped; the conversation is read again from its text.")
}

#[cfg(test)]
mod tests;
