//! Snapshots that were changed, cut or made for another model: each is refused, and nothing is read beyond its end.

use super::*;

const N_CTX: usize = 256;

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

/// Of `n_tokens`, windows from page `first` on.
fn sealed(n_tokens: usize, first: usize, kept: Option<&Shared>) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_LEN];
    (0..n_tokens as u32).for_each(|t| bytes.extend_from_slice(&t.to_le_bytes()));
    let n_pages = n_tokens.div_ceil(32);
    let n_kept = kept.map_or(0, |kept| kept.position.div_ceil(32) - kept.first - kept.pages.len());
    bytes.extend((0..n_pages * 10 + (n_pages - first + n_kept) * 6).map(|i| i as u8));
    seal(&identity(), n_tokens, first, kept, &mut bytes);
    bytes
}

fn code(identity: &Identity, geometry: &Geometry, bytes: &[u8]) -> &'static str {
    check(identity, geometry, bytes).err().expect("the snapshot is refused").code()
}

#[test]
fn a_sealed_snapshot_is_read_back() {
    let bytes = sealed(40, 0, None);
    let contents = check(&identity(), &geometry(), &bytes).unwrap();
    assert_eq!(contents.tokens, (0..40).collect::<Vec<u32>>());
    assert_eq!((contents.pages.len(), contents.window_pages.len()), (20, 12));
    assert!(check(&identity(), &geometry(), &sealed(0, 0, None)).is_ok(), "an empty sequence is one too");

    let kept = Shared { position: 170, first: 3, pages: 4..5 };
    let bytes = sealed(200, 4, Some(&kept));
    let contents = check(&identity(), &geometry(), &bytes).unwrap();
    assert_eq!((contents.pages.len(), contents.window_pages.len(), contents.kept_pages.len()), (70, 18, 12));
    assert_eq!((contents.first_window_page, contents.kept), (4, Some(kept)));
}

#[test]
fn every_disagreement_has_its_own_code() {
    type Change = fn(&mut Identity);
    let cases: [(&str, Change); 7] = [
        ("snapshot.model", |i| i.model += 1),
        ("snapshot.spec", |i| i.spec += 1),
        ("snapshot.backend", |i| i.backends += 1),
        ("snapshot.kv_dtype", |i| i.kv += 1),
        ("snapshot.page_layout", |i| i.bytes.page += 1),
        ("snapshot.page_layout", |i| i.bytes.window_page += 1),
        ("snapshot.page_layout", |i| i.bytes.state += 1),
    ];
    let good = sealed(40, 0, None);
    for (expected, change) in cases {
        let mut other = identity();
        change(&mut other);
        assert_eq!(code(&other, &geometry(), &good), expected);
    }
    assert_eq!(code(&identity(), &Geometry { n_ctx: 39, ..geometry() }, &good), "snapshot.context");
    let fit = |position, first, pages| Shared { position, first, pages };
    let impossible = [
        sealed(200, 2, None),
        sealed(200, 6, None),
        sealed(200, 4, Some(&fit(170, 1, 4..5))),
        sealed(200, 4, Some(&fit(170, 5, 5..6))),
        sealed(200, 4, Some(&fit(200, 4, 4..5))),
        sealed(200, 4, Some(&fit(170, 3, 3..5))),
        sealed(200, 4, Some(&fit(170, 3, 4..4))),
        sealed(200, 4, Some(&fit(170, 3, 1..1))),
    ];
    for (i, bytes) in impossible.iter().enumerate() {
        assert_eq!(code(&identity(), &geometry(), bytes), "snapshot.counts", "case {i}");
    }
    let full = Geometry { window: None, ..geometry() };
    assert_eq!(code(&identity(), &full, &sealed(200, 4, None)), "snapshot.counts");
}

#[test]
fn every_cut_and_every_flipped_bit_is_refused() {
    let good = sealed(150, 2, Some(&Shared { position: 140, first: 1, pages: 2..4 }));
    assert!(check(&identity(), &geometry(), &good).is_ok());
    for n in 0..good.len() {
        assert!(check(&identity(), &geometry(), &good[..n]).is_err(), "cut to {n} bytes");
    }
    let mut longer = good.clone();
    longer.push(0);
    assert_eq!(code(&identity(), &geometry(), &longer), "snapshot.length");
    let mut codes = std::collections::BTreeSet::new();
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        codes.insert(code(&identity(), &geometry(), &bad));
    }
    for code in ["snapshot.magic", "snapshot.version", "snapshot.tokens", "snapshot.checksum"] {
        assert!(codes.contains(code), "{code} among {codes:?}");
    }
}
