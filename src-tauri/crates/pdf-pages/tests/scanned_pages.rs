//! Pages that become images: which they are, what they show, and what limits hold.
#![allow(clippy::unwrap_used)] // a test

use std::path::Path;
use std::time::Duration;

use pdf_pages::{PageChoice, PageImage, PageLimits, RenderedPages, render};
use vision::{DecodeLimits, Picture, decode};

fn file(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)).unwrap()
}

fn picture(bytes: &[u8]) -> Picture {
    decode(bytes, &DecodeLimits::default()).unwrap()
}

fn scanned(name: &str, candidates: &[u32]) -> RenderedPages {
    render(&file(name), PageChoice::Scanned(candidates.to_vec()), PageLimits::default()).unwrap()
}

/// The largest difference of a sample.
fn difference(a: &Picture, b: &Picture) -> u8 {
    assert_eq!(a.size(), b.size());
    a.rgb().iter().zip(b.rgb()).map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

#[test]
fn a_page_shows_its_image_pixel_for_pixel() {
    for (pdf, source) in
        [("jpeg.pdf", "jpeg-page.jpg"), ("fax.pdf", "fax-page.png"), ("strips.pdf", "strips-page.png")]
    {
        let rendered = scanned(pdf, &[1]);
        let [page] = &rendered.images[..] else { panic!("{pdf}: {} pages", rendered.images.len()) };
        let (shown, expected) = (picture(&page.file), picture(&file(source)));
        assert_eq!((page.page, page.width as usize), (1, expected.size().width));
        assert_eq!(difference(&shown, &expected), 0, "{pdf}");
    }
}

#[test]
fn pages_without_text_that_an_image_covers_are_scanned() {
    let pages = |rendered: &RenderedPages| rendered.images.iter().map(|it| it.page).collect::<Vec<_>>();
    let rendered = scanned("mixed.pdf", &[2, 4, 6]);
    assert_eq!((pages(&rendered), &rendered.left_out[..]), (vec![2, 4], &[][..]));
    // The fourth is turned: wider than high.
    let size = |image: &PageImage| (image.width, image.height);
    assert!(rendered.images[1].width > rendered.images[1].height, "{:?}", size(&rendered.images[1]));
    let all = render(&file("mixed.pdf"), PageChoice::All, PageLimits::default()).unwrap();
    assert_eq!(pages(&all), [1, 2, 3, 4, 5, 6]);
    // At 150 dpi, since it has letters.
    assert_eq!(size(&all.images[0]), (1240, 1754));
}

#[test]
fn limits_hold() {
    let limits = PageLimits { max_pages: 1, longest_side: 100, ..PageLimits::default() };
    let few = render(&file("mixed.pdf"), PageChoice::Scanned(vec![2, 4]), limits).unwrap();
    assert_eq!((few.images.len(), few.left_out), (1, vec![4]));
    assert_eq!((few.images[0].width, few.images[0].height), (71, 100));
    let late = PageLimits { timeout: Duration::ZERO, ..PageLimits::default() };
    let error = render(&file("mixed.pdf"), PageChoice::All, late).unwrap_err();
    assert!(error.why.contains("longer than"), "{error:?}");
    let small = PageLimits { max_stream_bytes: 1000, ..PageLimits::default() };
    let error = render(&file("strips.pdf"), PageChoice::All, small).unwrap_err();
    assert!(error.why.contains("unpacks to more"), "{error:?}");
}

#[test]
fn hostile_pages_are_small_or_left_out() {
    let rendered = scanned("huge-box.pdf", &[1]);
    let [page] = &rendered.images[..] else { panic!("one page") };
    assert_eq!((page.width, page.height), (120, 90));
    for name in ["huge-image.pdf", "nested-forms.pdf"] {
        assert_eq!(scanned(name, &[1]), RenderedPages::default(), "{name}");
    }
}

#[test]
fn encryption_is_undone_only_without_a_password() {
    let rendered = scanned("encrypted.pdf", &[1]);
    assert_eq!(rendered.images.len(), 1);
    let error = render(&file("locked.pdf"), PageChoice::All, PageLimits::default()).unwrap_err();
    assert!(error.why.contains("password"), "{error:?}");
    let error = render(b"%PDF-1.4\nno more", PageChoice::All, PageLimits::default()).unwrap_err();
    assert!(error.why.contains("not a readable PDF"), "{error:?}");
}

/// Whatever a file says, rendering ends within its time, with pages or with words.
#[test]
fn damaged_files_end_in_words() {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let pieces: &[&[u8]] =
        &[b"<<", b">>", b"[", b"-99999999999", b" 1 0 R", b"stream\n", b"\0", b"1e999", b"/Do "];
    let limits = PageLimits { longest_side: 256, timeout: Duration::from_secs(20), ..PageLimits::default() };
    for name in ["jpeg.pdf", "fax.pdf", "mixed.pdf", "strips.pdf", "encrypted.pdf"] {
        let bytes = file(name);
        for _ in 0..40 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + next(8) {
                let at = next(damaged.len());
                match next(4) {
                    0 => damaged[at] = next(256) as u8,
                    1 => drop(damaged.splice(at..at, pieces[next(pieces.len())].iter().copied())),
                    2 => drop(damaged.drain(at..(at + next(40)).min(damaged.len()))),
                    _ => damaged.truncate(at.max(8)),
                }
            }
            if let Err(error) = render(&damaged, PageChoice::All, limits) {
                assert!(!error.why.contains("longer than"), "{name}: {error:?}");
            }
        }
    }
}
