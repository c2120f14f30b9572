//! Damaged files: 500 mutations, no panic, and bounds of memory and time that hold for each. Large files: what is
//! allowed to be decoded keeps to the memory it was estimated to take.
//!
//! A separate test binary, because it counts every byte of the process.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Cursor;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use image::ImageFormat;
use vision::{DecodeLimits, VisionErrorKind, decode, measure};

const N_MUTATIONS: usize = 500;
const MAX_BYTES: usize = 256 << 20;
const MAX_SECONDS: f64 = 5.0;

struct CountingAllocator;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards every call to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.alloc(layout) }
    }

    // Pages that are never written stay unused, as with the system's own.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

/// A generator of Marsaglia's xorshift family: the same files on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn files() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference/vision/images");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let endings = ["png", "jpg", "webp", "gif", "bmp"];
    let is_picture = |path: &Path| path.extension().is_some_and(|e| endings.iter().any(|known| e == *known));
    let mut files: Vec<_> = entries
        .filter(|path| is_picture(path))
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files.push(("made.tiff".to_owned(), tiff()));
    files
}

/// Baseline TIFF, 6.0: 16×8 pixels of RGB in one strip.
fn tiff() -> Vec<u8> {
    let entries: [(u16, u16, u32, u32); 9] = [
        (256, 3, 1, 16),
        (257, 3, 1, 8),
        (258, 3, 1, 8),
        (259, 3, 1, 1),
        (262, 3, 1, 2),
        (273, 4, 1, 8 + 2 + 9 * 12 + 4),
        (277, 3, 1, 3),
        (278, 3, 1, 8),
        (279, 4, 1, 16 * 8 * 3),
    ];
    let mut file = b"II*\0\x08\0\0\0\x09\0".to_vec();
    for (tag, kind, count, value) in entries {
        file.extend(tag.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend(count.to_le_bytes());
        file.extend(value.to_le_bytes());
    }
    file.extend([0; 4]);
    file.extend((0..16 * 8 * 3).map(|i| (i % 251) as u8));
    file
}

fn mutate(file: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = file.to_vec();
    for _ in 0..=random.below(8) {
        if bytes.len() < 2 {
            break;
        }
        let at = random.below(bytes.len());
        // Sizes and tables are near the start.
        let early = random.below(bytes.len().min(64));
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[early] = random.below(256) as u8,
            2 => bytes[early] = 0xff,
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..(at + 32).min(bytes.len()))),
            5 => {
                let copied = bytes[random.below(bytes.len())..].iter().take(64).copied().collect::<Vec<u8>>();
                drop(bytes.splice(at..at, copied));
            }
            _ => bytes[at] = random.below(256) as u8,
        }
    }
    if random.below(2) == 0 {
        repair_checksums(&mut bytes);
    }
    bytes
}

/// Makes the checksums of a PNG's chunks fit, so that the mutation reaches what lies behind them.
fn repair_checksums(bytes: &mut [u8]) {
    let mut at = 8;
    while bytes.starts_with(b"\x89PNG") && bytes.len() >= at + 12 {
        let length = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let end = at + 8 + length;
        if end + 4 > bytes.len() {
            break;
        }
        let checksum = crc32(&bytes[at + 4..end]);
        bytes[end..end + 4].copy_from_slice(&checksum.to_be_bytes());
        at = end + 4;
    }
}

/// The checksum of PNG, annex D.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

/// A segment of JPEG with EXIF data: one entry, orientation 6.
const EXIF_ROTATED: &[u8] =
    b"\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";

/// Large files of every format, some as other programs wrote them.
fn large_files() -> Vec<(String, Vec<u8>)> {
    let picture =
        image::RgbaImage::from_fn(600, 500, |x, y| image::Rgba([x as u8, y as u8, (x / 4) as u8, 255]));
    let picture = image::DynamicImage::from(picture);
    let mut files = Vec::new();
    for format in [ImageFormat::Png, ImageFormat::Gif, ImageFormat::Bmp, ImageFormat::Tiff, ImageFormat::WebP]
    {
        for (kind, image) in [
            ("rgb", picture.to_rgb8().into()),
            ("rgba", picture.clone()),
            ("16 bits", image::DynamicImage::from(picture.to_rgba16())),
        ] {
            let mut file = Cursor::new(Vec::new());
            // Not every format holds every kind.
            if image.write_to(&mut file, format).is_ok() {
                files.push((format!("{format:?} {kind}"), file.into_inner()));
            }
        }
    }
    let mut jpeg = Cursor::new(Vec::new());
    picture.to_rgb8().write_to(&mut jpeg, ImageFormat::Jpeg).unwrap();
    let jpeg = jpeg.into_inner();
    files.push(("turned.jpg".to_owned(), [&jpeg[..2], EXIF_ROTATED, &jpeg[2..]].concat()));
    files.push(("baseline.jpg".to_owned(), jpeg));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for name in ["progressive_444.jpg", "lossy_alpha.webp", "interlaced.gif"] {
        files.push((name.to_owned(), std::fs::read(folder.join(name)).unwrap()));
    }
    files
}

/// What is not estimated: tables of decoders, lines, compressed blocks.
const SLACK_BYTES: usize = 1 << 20;

fn check_estimates() {
    let files = large_files();
    assert!(files.len() >= 13, "{}", files.len());
    for (name, file) in files {
        let mut is_decoded = false;
        for max_memory_bytes in (1..=14).map(|mb| mb << 20) {
            let limits = DecodeLimits { max_memory_bytes, ..DecodeLimits::default() };
            let before = LIVE.load(Ordering::Relaxed);
            PEAK.store(before, Ordering::Relaxed);
            let result = decode(&file, &limits);
            let peak = PEAK.load(Ordering::Relaxed) - before;
            assert!(peak <= max_memory_bytes + SLACK_BYTES, "{name}: {peak} of {max_memory_bytes} bytes");
            match result {
                Ok(_) => is_decoded = true,
                Err(error) => assert_eq!(error.kind, VisionErrorKind::TooLarge, "{name}: {error}"),
            }
        }
        assert!(is_decoded, "{name}");
    }
}

/// One test, because both count the memory of the process.
#[test]
fn memory_stays_within_the_limits() {
    check_estimates();
    check_tiff_lists();
    check_damaged_files();
}

/// A list that a TIFF of a few hundred bytes only announces is not allocated: 200 MB in tiff 0.11.
fn check_tiff_lists() {
    let mut file = tiff();
    // Bits per sample: the third entry's count.
    file[10 + 2 * 12 + 4..][..4].copy_from_slice(&6_553_700_u32.to_le_bytes());
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    assert_eq!(measure(&file, &DecodeLimits::default()).unwrap_err().kind, VisionErrorKind::UnreadableFile);
    assert_eq!(decode(&file, &DecodeLimits::default()).unwrap_err().kind, VisionErrorKind::UnreadableFile);
    let peak = PEAK.load(Ordering::Relaxed) - before;
    assert!(peak <= SLACK_BYTES, "{peak} bytes");
}

fn check_damaged_files() {
    let files = files();
    assert!(files.len() >= 25, "{}", files.len());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut n_decoded, mut n_too_large, mut n_refused) = (0, 0, 0);
    let (mut most_bytes, mut most_seconds) = (0, 0.0_f64);
    for i in 0..N_MUTATIONS {
        let (name, file) = &files[i % files.len()];
        let bytes = mutate(file, &mut random);
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let start = Instant::now();
        let measured = measure(&bytes, &DecodeLimits::default());
        match decode(&bytes, &DecodeLimits::default()) {
            Ok(picture) => {
                assert_eq!(measured.unwrap(), picture.size(), "{name}, mutation {i}");
                n_decoded += 1;
            }
            Err(error) if error.kind == VisionErrorKind::TooLarge => n_too_large += 1,
            Err(error) => {
                assert!(!error.remedy.is_empty());
                n_refused += 1;
            }
        }
        let (seconds, peak) = (start.elapsed().as_secs_f64(), PEAK.load(Ordering::Relaxed) - before);
        (most_bytes, most_seconds) = (most_bytes.max(peak), most_seconds.max(seconds));
        assert!(peak <= MAX_BYTES, "{name}, mutation {i}: {} MB", peak >> 20);
        assert!(seconds <= MAX_SECONDS, "{name}, mutation {i}: {seconds:.1} s");
    }
    println!("{n_decoded} decoded, {n_too_large} too large, {n_refused} refused");
    println!("at most {} MB and {most_seconds:.2} s", most_bytes >> 20);
    assert!(n_decoded > 20 && n_refused > 100, "{n_decoded} decoded, {n_refused} refused");
}
