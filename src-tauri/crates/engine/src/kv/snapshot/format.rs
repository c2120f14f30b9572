//! Binary format of checkpoint pieces, and its validation.
//!
//! Little-endian: magic, format version, identity, kind, counts, key of the tokens before, token hash, checksum. Then
//! token ids; in a head what its tokens saw of requantization; then each page's bytes layer by layer, window pages
//! last; then the recurrent state.

use super::super::CHECKPOINT_CHUNK_TOKENS;
use super::super::checksum::xxh64;
use super::super::requantize::{KvRequantize, Requantized, RequantizedView};
use super::super::size::{Geometry, KvUnitBytes};
use super::key::ChunkKey;
use super::{CheckpointIdentity, FORMAT_VERSION, PREFIX_MISMATCH};
use crate::TokenId;
use crate::error::{EngineError, Result};

const MAGIC: [u8; 8] = *b"INGLEKV\0";

/// Kind of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// Keys and values of `CHECKPOINT_CHUNK_TOKENS` tokens in full-attention layers.
    Chunk,
    /// The same after requantization.
    RequantizedChunk,
    /// What continuing needs beyond whole chunks: keys and values of the remaining tokens, windows, recurrent state.
    Head,
}

impl RecordKind {
    fn code(self) -> u64 {
        match self {
            Self::Chunk => 1,
            Self::Head => 2,
            Self::RequantizedChunk => 3,
        }
    }
}

/// Header fields in file order, after the magic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PieceHeader {
    version: u64,
    model: u64,
    spec: u64,
    backends: u64,
    kv: u64,
    page_len: u64,
    page_bytes: u64,
    window_page_bytes: u64,
    state_bytes: u64,
    kind: u64,
    /// Tokens before the piece.
    pub base: u64,
    /// Tokens up to its end.
    pub end: u64,
    first_window_page: u64,
    /// In a head: requantization mode, requantized chunks, and number of views.
    requantize: u64,
    n_requantized: u64,
    n_views: u64,
    /// Key of the tokens before.
    before: [u64; 2],
    pub token_hash: u64,
    pub checksum: u64,
}

const N_WORDS: usize = 20;

/// Views that a head can hold: enough for a hundred thousand tokens requantized by length.
pub(super) const MAX_VIEWS: usize = 512;

/// Bytes before the token ids.
pub(super) const HEADER_LEN: usize = MAGIC.len() + N_WORDS * 8;

impl PieceHeader {
    pub fn encode(&self) -> [u8; HEADER_LEN] {
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
            h.kind,
            h.base,
            h.end,
            h.first_window_page,
            h.requantize,
            h.n_requantized,
            h.n_views,
            h.before[0],
            h.before[1],
            h.token_hash,
            h.checksum,
        ];
        for (field, word) in out[8..].chunks_exact_mut(8).zip(words) {
            field.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// Decodes a header. `bytes` begin with the magic.
    pub fn decode(bytes: &[u8; HEADER_LEN]) -> Self {
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
            kind: next(),
            base: next(),
            end: next(),
            first_window_page: next(),
            requantize: next(),
            n_requantized: next(),
            n_views: next(),
            before: [next(), next()],
            token_hash: next(),
            checksum: next(),
        }
    }
}

/// A validated piece.
#[derive(Debug)]
pub(super) struct PieceContents<'a> {
    pub kind: RecordKind,
    /// Tokens before it.
    pub base: usize,
    pub before: ChunkKey,
    /// Its own tokens.
    pub tokens: Vec<TokenId>,
    pub requantized: Requantized,
    pub first_window_page: usize,
    /// (pages of its tokens, page bytes)
    pub pages: &'a [u8],
    /// (pages from the first window page on, window page bytes)
    pub window_pages: &'a [u8],
    pub state: &'a [u8],
}

/// What the header of a piece says.
#[derive(Debug, Clone)]
pub(super) struct PieceLabel {
    pub kind: RecordKind,
    pub base: usize,
    pub end: usize,
    pub first_window_page: usize,
    pub before: ChunkKey,
    /// Only in a head.
    pub requantized: Requantized,
}

/// Writes the header over the first `HEADER_LEN` bytes of a piece whose body follows them.
pub(super) fn seal(
    identity: &CheckpointIdentity,
    requantize: KvRequantize,
    label: &PieceLabel,
    out: &mut [u8],
) {
    let (header, body) = out.split_at_mut(HEADER_LEN);
    let mut fields = PieceHeader {
        version: FORMAT_VERSION,
        model: identity.model,
        spec: identity.spec,
        backends: identity.backends,
        kv: identity.kv,
        page_len: kernels::PAGE_LEN as u64,
        page_bytes: identity.bytes.page,
        window_page_bytes: identity.bytes.window_page,
        state_bytes: identity.bytes.state,
        kind: label.kind.code(),
        base: label.base as u64,
        end: label.end as u64,
        first_window_page: label.first_window_page as u64,
        requantize: if label.requantized.is_exact() { 0 } else { requantize.identity_word() },
        n_requantized: label.requantized.n_chunks as u64,
        n_views: label.requantized.views.len() as u64,
        before: label.before.words(),
        token_hash: xxh64(&body[..(label.end - label.base) * 4]),
        checksum: 0,
    };
    fields.checksum = checksum(&fields, body);
    header.copy_from_slice(&fields.encode());
}

/// Hash of the header with checksum 0, chained with the hash of the body.
pub(super) fn checksum(header: &PieceHeader, body: &[u8]) -> u64 {
    let head = xxh64(&PieceHeader { checksum: 0, ..*header }.encode());
    xxh64(&[head.to_le_bytes(), xxh64(body).to_le_bytes()].concat())
}

/// Validates a whole piece: its writer, its counts against each other and the context, and every byte.
pub(super) fn check<'a>(
    identity: &CheckpointIdentity,
    geometry: &Geometry,
    bytes: &'a [u8],
) -> Result<PieceContents<'a>> {
    let (header, body) = open(identity, bytes)?;
    let PieceCounts { kind, base, end, first, n_views } = counts(geometry, &header)?;
    let n_pages = geometry.pages_for(end) - geometry.pages_for(base);
    let (n_window_pages, n_states) = match kind {
        RecordKind::Chunk | RecordKind::RequantizedChunk => (0, 0),
        RecordKind::Head => (geometry.window.map_or(0, |_| geometry.pages_for(end) - first), 1),
    };
    // All counts are bounded by the context here, so the products stay small.
    let KvUnitBytes { page, requantized_page, window_page, state } = identity.bytes;
    let page = if kind == RecordKind::RequantizedChunk { requantized_page } else { page };
    let [page, window_page, state] = [page, window_page, state].map(|bytes| bytes as usize);
    let [tokens, views] = [(end - base) * 4, n_views * RequantizedView::N_BYTES];
    let lengths = [tokens, views, n_pages * page, n_window_pages * window_page, n_states * state];
    let n_bytes = lengths.iter().sum::<usize>();
    if body.len() != n_bytes {
        let message = format!("the checkpoint piece has a body of {} bytes instead of {n_bytes}", body.len());
        return Err(refused("snapshot.length", message));
    }
    let mut rest = body;
    let [tokens, views, pages, window_pages, state] = lengths.map(|n| {
        let (part, after) = rest.split_at(n);
        rest = after;
        part
    });
    if xxh64(tokens) != header.token_hash {
        let message = "the tokens of the checkpoint piece differ from those it was written with";
        return Err(refused("snapshot.tokens", message.into()));
    }
    if checksum(&header, body) != header.checksum {
        let message = "the checkpoint piece has changed since it was written";
        return Err(refused("snapshot.checksum", message.into()));
    }
    let requantized = requantized(geometry, &header, views)?;
    let (tokens, before) = (ids(tokens), ChunkKey::of_words(header.before));
    Ok(PieceContents {
        kind,
        base,
        before,
        tokens,
        requantized,
        first_window_page: first,
        pages,
        window_pages,
        state,
    })
}

/// Splits header and body, if they have this format and model.
fn open<'a>(identity: &CheckpointIdentity, bytes: &'a [u8]) -> Result<(PieceHeader, &'a [u8])> {
    let Some((head, body)) = bytes.split_first_chunk::<HEADER_LEN>() else {
        return Err(refused(
            "snapshot.truncated",
            format!("the checkpoint piece has only {} bytes", bytes.len()),
        ));
    };
    if head[..8] != MAGIC {
        return Err(refused("snapshot.magic", "this is not a checkpoint piece".into()));
    }
    let header = PieceHeader::decode(head);
    check_writer(identity, &header)?;
    Ok((header, body))
}

/// Contents of a head's first bytes, not yet covered by a checksum.
pub(super) struct HeadPreview {
    pub end: usize,
    pub before: ChunkKey,
    pub first_window_page: usize,
    pub tokens: Vec<TokenId>,
    pub requantized: Requantized,
}

/// Bytes of a head that `preview_head` reads. A head may be shorter.
pub const HEAD_PREVIEW_BYTES: usize =
    HEADER_LEN + CHECKPOINT_CHUNK_TOKENS * 4 + MAX_VIEWS * RequantizedView::N_BYTES;

/// Reads the beginning of a head.
///
/// Errors: `snapshot.*` if it is no head for this model.
pub(super) fn preview_head(
    identity: &CheckpointIdentity,
    geometry: &Geometry,
    bytes: &[u8],
) -> Result<HeadPreview> {
    let (header, body) = open(identity, bytes)?;
    let PieceCounts { kind, base, end, first, n_views } = counts(geometry, &header)?;
    let own = body.split_at_checked((end - base) * 4);
    let own = own.and_then(|(tokens, rest)| Some((tokens, rest.get(..n_views * RequantizedView::N_BYTES)?)));
    let (RecordKind::Head, Some((tokens, views))) = (kind, own) else {
        return Err(refused("snapshot.kind", "this checkpoint piece is not the end of a context".into()));
    };
    let (tokens, requantized) = (ids(tokens), requantized(geometry, &header, views)?);
    Ok(HeadPreview {
        end,
        before: ChunkKey::of_words(header.before),
        first_window_page: first,
        tokens,
        requantized,
    })
}

/// Reads how far a head's sequence is requantized.
///
/// Errors: `snapshot.aged` for impossible values, `PREFIX_MISMATCH` for another requantization mode.
fn requantized(geometry: &Geometry, header: &PieceHeader, views: &[u8]) -> Result<Requantized> {
    let of = |bytes: &[u8]| RequantizedView::of_bytes(bytes.try_into().expect("chunks of their length"));
    let views: Vec<RequantizedView> = views.chunks_exact(RequantizedView::N_BYTES).map(of).collect();
    let is_increasing = views.is_sorted_by(|a, b| a.from < b.from && a.n_requantized != b.n_requantized);
    let within = |view: &RequantizedView| {
        u64::from(view.from) < header.end
            && (view.n_requantized as usize) * CHECKPOINT_CHUNK_TOKENS <= geometry.n_ctx
    };
    let requantized =
        Requantized { n_chunks: usize::try_from(header.n_requantized).unwrap_or(usize::MAX), views };
    if !is_increasing
        || !requantized.views.iter().all(within)
        || requantized.n_chunks > header.base as usize / CHECKPOINT_CHUNK_TOKENS
    {
        return Err(refused(
            "snapshot.aged",
            "the checkpoint piece describes an impossible requantization".into(),
        ));
    }
    match requantized.is_exact() || header.requantize == geometry.requantize.when.identity_word() {
        true => Ok(requantized),
        false => {
            Err(refused(PREFIX_MISMATCH, "the checkpoint piece was requantized under another setting".into()))
        }
    }
}

fn ids(bytes: &[u8]) -> Vec<TokenId> {
    let id = |bytes: &[u8]| TokenId::from_le_bytes(bytes.try_into().expect("chunks of 4 bytes"));
    bytes.chunks_exact(4).map(id).collect()
}

fn check_writer(identity: &CheckpointIdentity, header: &PieceHeader) -> Result<()> {
    if header.version != FORMAT_VERSION {
        let version = header.version;
        let message =
            format!("the checkpoint piece has format {version}, this program writes {FORMAT_VERSION}");
        return Err(refused("snapshot.version", message));
    }
    let KvUnitBytes { page, requantized_page: _, window_page, state } = identity.bytes;
    let same = [
        ("snapshot.model", "with another model file", header.model == identity.model),
        ("snapshot.spec", "with another interpretation of this model", header.spec == identity.spec),
        ("snapshot.backend", "on another kind of device", header.backends == identity.backends),
        ("snapshot.kv_dtype", "with another key-value precision", header.kv == identity.kv),
        ("snapshot.page_len", "with another page length", header.page_len == kernels::PAGE_LEN as u64),
        ("snapshot.page_bytes", "with another page size", header.page_bytes == page),
        (
            "snapshot.window_page_bytes",
            "with another size of window pages",
            header.window_page_bytes == window_page,
        ),
        ("snapshot.state_bytes", "with another size of recurrent states", header.state_bytes == state),
    ];
    match same.iter().find(|(_, _, same)| !same) {
        Some((code, how, _)) => Err(refused(code, format!("the checkpoint piece was written {how}"))),
        None => Ok(()),
    }
}

struct PieceCounts {
    kind: RecordKind,
    base: usize,
    end: usize,
    first: usize,
    n_views: usize,
}

/// Reads the counts, each checked against what a sequence of this model can hold.
fn counts(geometry: &Geometry, header: &PieceHeader) -> Result<PieceCounts> {
    let kind = [RecordKind::Chunk, RecordKind::Head, RecordKind::RequantizedChunk]
        .into_iter()
        .find(|kind| kind.code() == header.kind);
    let Some(kind) = kind else {
        return Err(refused(
            "snapshot.kind",
            format!("there is no kind {} of checkpoint pieces", header.kind),
        ));
    };
    if header.end > geometry.n_ctx as u64 {
        let (end, n_ctx) = (header.end, geometry.n_ctx);
        return Err(refused(
            "snapshot.context",
            format!("the checkpoint piece ends after {end} tokens, but the context has {n_ctx}"),
        ));
    }
    let end = header.end as usize;
    let own = match kind {
        RecordKind::Chunk | RecordKind::RequantizedChunk => CHECKPOINT_CHUNK_TOKENS,
        RecordKind::Head => end % CHECKPOINT_CHUNK_TOKENS,
    };
    let base = end.checked_sub(own).filter(|base| end > 0 && base.is_multiple_of(CHECKPOINT_CHUNK_TOKENS));
    let Some(base) = base.filter(|&base| base as u64 == header.base) else {
        let message = format!("a checkpoint piece cannot hold tokens {} to {end}", header.base);
        return Err(refused("snapshot.counts", message));
    };
    let first = usize::try_from(header.first_window_page).unwrap_or(usize::MAX);
    let fits = match (kind, geometry.window) {
        (RecordKind::Head, Some(_)) => geometry.is_covered(first, end) && first < geometry.pages_for(end),
        (RecordKind::Head, None) | (RecordKind::Chunk | RecordKind::RequantizedChunk, _) => first == 0,
    };
    let n_views = usize::try_from(header.n_views).unwrap_or(usize::MAX);
    let max_views = if kind == RecordKind::Head { MAX_VIEWS } else { 0 };
    if n_views > max_views || max_views == 0 && header.n_requantized > 0 {
        return Err(refused(
            "snapshot.aged",
            format!("a checkpoint piece cannot describe {n_views} requantized views"),
        ));
    }
    match fits {
        true => Ok(PieceCounts { kind, base, end, first, n_views }),
        false => Err(refused(
            "snapshot.window",
            format!("the window of {end} tokens cannot begin at page {}", header.first_window_page),
        )),
    }
}

pub(super) fn refused(code: &'static str, message: String) -> EngineError {
    EngineError::new(code, message, "The piece is deleted, and the conversation is recomputed from its text.")
}

#[cfg(test)]
mod tests;
