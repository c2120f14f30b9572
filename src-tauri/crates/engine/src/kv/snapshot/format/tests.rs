//! Pieces that were changed, cut or made for another model: each is refused, and nothing is read beyond its end.

use std::collections::BTreeSet;

use super::*;

const N_CTX: usize = 1024;

fn identity() -> Identity {
    Identity {
        model: 1,
        spec: 2,
        backends: 3,
        kv: 4,
        bytes: PieceBytes { page: 10, window_page: 6, state: 0 },
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
        max_kept: 2,
        n_kept_window_pages: 20,
        n_kept_states: 0,
        n_mark_states: 0,
        max_pages: None,
    }
}

/// A head at `end` whose windows begin at page `first`, or a stretch that ends there.
fn sealed(kind: Kind, end: usize, first: usize) -> Vec<u8> {
    let base = if kind == Kind::Head { end / STRETCH * STRETCH } else { end - STRETCH };
    let mut bytes = vec![0; HEADER_LEN];
    (base as u32..end as u32).for_each(|t| bytes.extend_from_slice(&t.to_le_bytes()));
    let n_window = if kind == Kind::Head { end.div_ceil(32) - first } else { 0 };
    bytes.extend((0..(end.div_ceil(32) - base / 32) * 10 + n_window * 6).map(|i| i as u8));
    let label = Label { kind, base, end, first_window_page: first, before: Key::of_words([7, 8]) };
    seal(&identity(), &label, &mut bytes);
    bytes
}

fn code(identity: &Identity, geometry: &Geometry, bytes: &[u8]) -> (&'static str, String) {
    let error = check(identity, geometry, bytes).expect_err("the piece is refused");
    (error.code(), error.to_string())
}

#[test]
fn a_sealed_piece_is_read_back() {
    let bytes = sealed(Kind::Head, 300, 7);
    let head = check(&identity(), &geometry(), &bytes).unwrap();
    assert_eq!((head.kind, head.base, head.first_window_page), (Kind::Head, 256, 7));
    assert_eq!(head.tokens, (256..300).collect::<Vec<u32>>());
    assert_eq!((head.pages.len(), head.window_pages.len(), head.before.words()), (20, 18, [7, 8]));
    let bytes = sealed(Kind::Stretch, 512, 0);
    let stretch = check(&identity(), &geometry(), &bytes).unwrap();
    assert_eq!((stretch.kind, stretch.base, stretch.pages.len()), (Kind::Stretch, 256, 80));
    let begin = &sealed(Kind::Head, 300, 7)[..HEADER_LEN + 44 * 4];
    assert_eq!(glimpse(&identity(), &geometry(), begin).unwrap().tokens.len(), 44);
    assert!(glimpse(&identity(), &geometry(), &bytes).is_err(), "nothing ends with a stretch");
}

/// Every field of the header, changed and sealed again as if it had been written so: each has words of its own.
#[test]
fn every_field_of_a_header_is_judged() {
    let good = sealed(Kind::Head, 300, 7);
    let head: &[u8; HEADER_LEN] = good.first_chunk().unwrap();
    type Change = fn(&mut Header);
    let changes: [(&str, Change); 20] = [
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
        let mut header = Header::decode(head);
        change(&mut header);
        let mut bad = good.clone();
        header.checksum = checksum(&header, &bad[HEADER_LEN..]);
        bad[..HEADER_LEN].copy_from_slice(&header.encode());
        let (code, message) = code(&identity(), &geometry(), &bad);
        assert_eq!(code, expected, "{header:?}");
        messages.insert(message);
    }
    assert!(messages.len() >= 17, "{messages:?}");
    // what names the tokens before is compared with the tokens by whoever has them
    let mut header = Header::decode(head);
    header.before[0] ^= 1;
    let mut bad = good.clone();
    bad[..HEADER_LEN].copy_from_slice(&header.encode());
    assert_eq!(code(&identity(), &geometry(), &bad).0, "snapshot.checksum");
}

#[test]
fn the_judge_looks_at_model_and_context_too() {
    let good = sealed(Kind::Stretch, 512, 0);
    for (expected, identity) in [
        ("snapshot.model", Identity { model: 9, ..identity() }),
        ("snapshot.kv_dtype", Identity { kv: 9, ..identity() }),
        (
            "snapshot.page_bytes",
            Identity { bytes: PieceBytes { page: 11, ..identity().bytes }, ..identity() },
        ),
    ] {
        assert_eq!(code(&identity, &geometry(), &good).0, expected);
    }
    assert_eq!(code(&identity(), &Geometry { n_ctx: 511, ..geometry() }, &good).0, "snapshot.context");
}

#[test]
fn every_cut_and_every_flipped_bit_is_seen() {
    for good in [sealed(Kind::Head, 300, 7), sealed(Kind::Stretch, 256, 0)] {
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
