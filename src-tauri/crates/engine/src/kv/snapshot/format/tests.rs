//! Pieces that were changed, cut or made for another model. Each is refused, and nothing is read beyond its end.

use std::collections::BTreeSet;

use super::super::super::size::RequantizePolicy;
use super::*;

const N_CTX: usize = 1024;

fn identity() -> CheckpointIdentity {
    CheckpointIdentity {
        model: 1,
        spec: 2,
        backends: 3,
        kv: 4,
        bytes: KvUnitBytes { page: 10, requantized_page: 4, window_page: 6, state: 0 },
    }
}

fn geometry() -> Geometry {
    Geometry {
        page_len: kernels::PAGE_LEN,
        n_ctx: N_CTX,
        max_sequences: 1,
        max_rows: 8,
        window: Some(16),
        recurrent: false,
        max_rewind_points: 2,
        n_rewind_window_pages: 20,
        n_rewind_states: 0,
        n_mark_states: 0,
        max_pages: None,
        requantize: RequantizePolicy::default(),
    }
}

/// The same context with this requantization setting.
fn requantize(when: KvRequantize) -> Geometry {
    Geometry {
        requantize: RequantizePolicy { when, page_bytes: 10, requantized_page_bytes: 4 },
        ..geometry()
    }
}

fn sealed(kind: RecordKind, end: usize, first: usize) -> Vec<u8> {
    sealed_as(kind, end, first, KvRequantize::Off, Requantized::default())
}

/// A sealed head at `end` whose windows begin at page `first`, or a chunk that ends there, of a requantized sequence.
fn sealed_as(
    kind: RecordKind,
    end: usize,
    first: usize,
    requantize: KvRequantize,
    requantized: Requantized,
) -> Vec<u8> {
    let base = if kind == RecordKind::Head {
        end / CHECKPOINT_CHUNK_TOKENS * CHECKPOINT_CHUNK_TOKENS
    } else {
        end - CHECKPOINT_CHUNK_TOKENS
    };
    let mut bytes = vec![0; HEADER_LEN];
    (base as u32..end as u32).for_each(|t| bytes.extend_from_slice(&t.to_le_bytes()));
    requantized.views.iter().for_each(|seen| bytes.extend_from_slice(&seen.bytes()));
    let page_bytes = if kind == RecordKind::RequantizedChunk { 4 } else { 10 };
    let n_window = if kind == RecordKind::Head { end.div_ceil(32) - first } else { 0 };
    bytes.extend((0..(end.div_ceil(32) - base / 32) * page_bytes + n_window * 6).map(|i| i as u8));
    let label = PieceLabel {
        kind,
        base,
        end,
        first_window_page: first,
        before: ChunkKey::of_words([7, 8]),
        requantized,
    };
    seal(&identity(), requantize, &label, &mut bytes);
    bytes
}

fn code(identity: &CheckpointIdentity, geometry: &Geometry, bytes: &[u8]) -> (&'static str, String) {
    let error = check(identity, geometry, bytes).expect_err("the piece is refused");
    (error.code(), error.to_string())
}

#[test]
fn a_sealed_piece_is_read_back() {
    let bytes = sealed(RecordKind::Head, 300, 7);
    let head = check(&identity(), &geometry(), &bytes).unwrap();
    assert_eq!((head.kind, head.base, head.first_window_page), (RecordKind::Head, 256, 7));
    assert_eq!(head.tokens, (256..300).collect::<Vec<u32>>());
    assert_eq!((head.pages.len(), head.window_pages.len(), head.before.words()), (20, 18, [7, 8]));
    let bytes = sealed(RecordKind::Chunk, 512, 0);
    let chunk = check(&identity(), &geometry(), &bytes).unwrap();
    assert_eq!((chunk.kind, chunk.base, chunk.pages.len()), (RecordKind::Chunk, 256, 80));
    let begin = &sealed(RecordKind::Head, 300, 7)[..HEADER_LEN + 44 * 4];
    assert_eq!(preview_head(&identity(), &geometry(), begin).unwrap().tokens.len(), 44);
    assert!(preview_head(&identity(), &geometry(), &bytes).is_err(), "no sequence ends with a chunk");
}

/// A head's requantization is read back under the same setting, refused as a mismatch under another, and refused by
/// its own code if impossible.
#[test]
fn requantization_is_written_and_validated() {
    let when = KvRequantize::After(256);
    let good = Requantized::by_length(when, 1000);
    assert_eq!((good.n_chunks, good.views.len()), (2, 2));
    let bytes = sealed_as(RecordKind::Head, 1000, 28, when, good.clone());
    assert_eq!(check(&identity(), &requantize(when), &bytes).unwrap().requantized, good);
    let begin = &bytes[..(HEADER_LEN + 232 * 4 + 16)];
    assert_eq!(preview_head(&identity(), &requantize(when), begin).unwrap().requantized, good);
    assert!(preview_head(&identity(), &requantize(when), &begin[..begin.len() - 1]).is_err());
    for other in [KvRequantize::Off, KvRequantize::Pressure, KvRequantize::After(512)] {
        assert_eq!(code(&identity(), &requantize(other), &bytes).0, PREFIX_MISMATCH, "{other}");
        assert!(preview_head(&identity(), &requantize(other), begin).is_err());
    }
    // exact pieces fit every setting
    assert!(
        check(&identity(), &requantize(when), &sealed(RecordKind::Head, 1000, 28))
            .unwrap()
            .requantized
            .is_exact()
    );
    let chunk = sealed(RecordKind::RequantizedChunk, 512, 0);
    let chunk = check(&identity(), &requantize(when), &chunk).unwrap();
    assert_eq!((chunk.kind, chunk.base, chunk.pages.len()), (RecordKind::RequantizedChunk, 256, 32));
    let seen = |from, n_requantized| RequantizedView { from, n_requantized };
    for (what, bad) in [
        ("more than there is", Requantized { n_chunks: 4, views: Vec::new() }),
        ("beyond the end", Requantized { n_chunks: 1, views: vec![seen(1000, 1)] }),
        ("out of order", Requantized { n_chunks: 1, views: vec![seen(700, 1), seen(600, 2)] }),
        ("no change", Requantized { n_chunks: 1, views: vec![seen(600, 1), seen(700, 1)] }),
        ("more than a context", Requantized { n_chunks: 1, views: vec![seen(600, 5)] }),
        (
            "too much",
            Requantized { n_chunks: 1, views: (0..=MAX_VIEWS as u32).map(|i| seen(i, i % 2 + 1)).collect() },
        ),
    ] {
        let bytes = sealed_as(RecordKind::Head, 1000, 28, when, bad);
        assert_eq!(code(&identity(), &requantize(when), &bytes).0, "snapshot.aged", "{what}");
    }
    let bytes = sealed_as(RecordKind::Chunk, 512, 0, when, Requantized { n_chunks: 1, views: Vec::new() });
    assert_eq!(
        code(&identity(), &requantize(when), &bytes).0,
        "snapshot.aged",
        "chunks carry no requantization"
    );
}

/// Every header field, changed and sealed again: each has its own error.
#[test]
fn every_header_field_is_validated() {
    let good = sealed(RecordKind::Head, 300, 7);
    let head: &[u8; HEADER_LEN] = good.first_chunk().unwrap();
    type HeaderChange = fn(&mut PieceHeader);
    let changes: [(&str, HeaderChange); 20] = [
        ("snapshot.version", |h| h.version += 1),
        ("snapshot.version", |h| h.version = 3),
        ("snapshot.model", |h| h.model ^= 1),
        ("snapshot.spec", |h| h.spec ^= 1),
        ("snapshot.backend", |h| h.backends ^= 1),
        ("snapshot.kv_dtype", |h| h.kv ^= 1),
        ("snapshot.page_len", |h| h.page_len = 64),
        ("snapshot.page_bytes", |h| h.page_bytes += 1),
        ("snapshot.window_page_bytes", |h| h.window_page_bytes = 0),
        ("snapshot.state_bytes", |h| h.state_bytes = 4),
        ("snapshot.kind", |h| h.kind = 0),
        ("snapshot.kind", |h| h.kind = u64::MAX),
        ("snapshot.counts", |h| h.base = 0),
        ("snapshot.counts", |h| h.end = 0),
        ("snapshot.context", |h| h.end = 1025),
        ("snapshot.context", |h| h.end = u64::MAX),
        ("snapshot.window", |h| h.first_window_page = 9),
        ("snapshot.window", |h| h.first_window_page = u64::MAX),
        ("snapshot.length", |h| h.first_window_page = 6),
        ("snapshot.tokens", |h| h.token_hash ^= 1),
    ];
    let mut messages = BTreeSet::new();
    for (expected, change) in changes {
        let mut header = PieceHeader::decode(head);
        change(&mut header);
        let mut bad = good.clone();
        header.checksum = checksum(&header, &bad[HEADER_LEN..]);
        bad[..HEADER_LEN].copy_from_slice(&header.encode());
        let (code, message) = code(&identity(), &geometry(), &bad);
        assert_eq!(code, expected, "{header:?}");
        messages.insert(message);
    }
    assert!(messages.len() >= 17, "{messages:?}");
    // the key of the tokens before is compared by the caller, which has the tokens
    let mut header = PieceHeader::decode(head);
    header.before[0] ^= 1;
    let mut bad = good.clone();
    bad[..HEADER_LEN].copy_from_slice(&header.encode());
    assert_eq!(code(&identity(), &geometry(), &bad).0, "snapshot.checksum");
}

#[test]
fn pieces_are_checked_against_model_and_context() {
    let good = sealed(RecordKind::Chunk, 512, 0);
    for (expected, identity) in [
        ("snapshot.model", CheckpointIdentity { model: 9, ..identity() }),
        ("snapshot.kv_dtype", CheckpointIdentity { kv: 9, ..identity() }),
        (
            "snapshot.page_bytes",
            CheckpointIdentity { bytes: KvUnitBytes { page: 11, ..identity().bytes }, ..identity() },
        ),
    ] {
        assert_eq!(code(&identity, &geometry(), &good).0, expected);
    }
    assert_eq!(code(&identity(), &Geometry { n_ctx: 511, ..geometry() }, &good).0, "snapshot.context");
}

#[test]
fn every_truncation_and_bit_flip_is_detected() {
    for good in [sealed(RecordKind::Head, 300, 7), sealed(RecordKind::Chunk, 256, 0)] {
        assert!(check(&identity(), &geometry(), &good).is_ok());
        for n in 0..good.len() {
            assert!(check(&identity(), &geometry(), &good[..n]).is_err(), "cut to {n} bytes");
        }
        let longer = [&good[..], &[0]].concat();
        assert_eq!(code(&identity(), &geometry(), &longer).0, "snapshot.length");
        let mut codes = BTreeSet::new();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            codes.insert(code(&identity(), &geometry(), &bad).0);
        }
        for code in ["snapshot.magic", "snapshot.version", "snapshot.tokens", "snapshot.checksum"] {
            assert!(codes.contains(code), "{code} among {codes:?}");
        }
    }
}
