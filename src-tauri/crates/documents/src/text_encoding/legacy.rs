//! Legacy encodings, by their bytes: chardetng's guess, made robust against single wrong bytes.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, Encoding, GB18030, GBK, IBM866, KOI8_R, KOI8_U, SHIFT_JIS, WINDOWS_874,
    WINDOWS_1250, WINDOWS_1251, WINDOWS_1252, WINDOWS_1253, WINDOWS_1254, WINDOWS_1255, WINDOWS_1256,
    WINDOWS_1257, WINDOWS_1258,
};

use super::unicode::NamedText;

/// Of lines that are not ASCII; more of them change no guess.
const SAMPLE_BYTES: usize = 64 << 10;

/// One wrong byte per this many characters is tolerated.
const MIN_CHARS_PER_WRONG: usize = 20;

/// Of a text that ends in the middle of a character; fewer tell no encoding.
const MIN_CHARS_BEFORE_CUT: usize = 4;

/// Encodings of two bytes: what is valid in one of them by accident is short.
const MULTI_BYTE: [&Encoding; 5] = [GBK, SHIFT_JIS, BIG5, EUC_JP, EUC_KR];

/// Encodings of one byte that many texts have.
const SINGLE_BYTE: [&Encoding; 12] = [
    WINDOWS_1251,
    WINDOWS_1250,
    WINDOWS_1252,
    WINDOWS_1253,
    WINDOWS_1254,
    WINDOWS_1255,
    WINDOWS_1256,
    WINDOWS_1257,
    WINDOWS_1258,
    WINDOWS_874,
    KOI8_U,
    IBM866,
];

/// Letters that tell KOI8-U from KOI8-R: the codes of є, і, ї, ґ in both cases.
const UKRAINIAN: [u8; 8] = [0xa4, 0xa6, 0xa7, 0xad, 0xb4, 0xb6, 0xb7, 0xbd];

/// Decodes by the most likely legacy encoding. None: nothing but ASCII.
pub fn decode(bytes: &[u8]) -> Option<NamedText> {
    let sample = sample(bytes);
    if sample.is_empty() {
        return None;
    }
    let encoding = detect(&sample);
    let text = encoding.decode_without_bom_handling(bytes).0.into_owned();
    let name = match encoding {
        it if it == KOI8_U && !bytes.iter().any(|byte| UKRAINIAN.contains(byte)) => KOI8_R.name(),
        it if it == GBK && needs_four_bytes(&text) => GB18030.name(),
        it => it.name(),
    };
    Some((text, name))
}

/// GB18030 writes characters that GBK lacks.
fn needs_four_bytes(text: &str) -> bool {
    let (_, _, had_unmappable) = GBK.encode(text);
    had_unmappable && !text.contains('\u{fffd}')
}

/// Lines that are not ASCII, without control characters.
fn sample(bytes: &[u8]) -> Vec<u8> {
    let mut sample = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.is_ascii()) {
        let n_left = SAMPLE_BYTES.saturating_sub(sample.len());
        if n_left == 0 {
            break;
        }
        let line = &line[..line.len().min(n_left)];
        sample.extend(line.iter().filter(|byte| **byte >= 0x20 || byte.is_ascii_whitespace()));
    }
    sample
}

fn detect(sample: &[u8]) -> &'static Encoding {
    let first = guess(sample);
    if first == EUC_JP && is_chinese(sample) {
        return GBK;
    }
    if MULTI_BYTE.contains(&first) {
        return first;
    }
    // A single wrong byte makes the detector exclude an encoding. Without that byte it may be the one.
    let mut candidates = MULTI_BYTE.iter().chain(&SINGLE_BYTE).filter(|candidate| **candidate != first);
    let confirmed = candidates.find(|candidate| {
        repaired(candidate, sample).is_some_and(|repaired| guess(&repaired) == **candidate)
    });
    confirmed.copied().unwrap_or(first)
}

/// A text that could be EUC-JP as well as GBK, but Japanese without a kana.
fn is_chinese(sample: &[u8]) -> bool {
    let (japanese, _) = EUC_JP.decode_without_bom_handling(sample);
    let has_kana = japanese.chars().any(|c| matches!(c, '\u{3041}'..='\u{30fe}'));
    !has_kana && !GBK.decode_without_bom_handling(sample).1
}

fn guess(sample: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, true);
    detector.guess(None, Utf8Detection::Deny)
}

/// The sample without what is wrong in this encoding. None: nothing is, or too much.
fn repaired(encoding: &'static Encoding, sample: &[u8]) -> Option<Vec<u8>> {
    let (text, _) = encoding.decode_without_bom_handling(sample);
    let is_wrong = |c: &char| matches!(c, '\u{fffd}' | '\u{80}'..='\u{9f}');
    let n_wrong = text.chars().filter(is_wrong).count();
    let n_other = text.chars().filter(|c| !c.is_ascii()).count();
    // A short text may end in the middle of a character.
    let n_tolerated = if n_other > MIN_CHARS_BEFORE_CUT { 1.max(n_other / MIN_CHARS_PER_WRONG) } else { 0 };
    if n_wrong > n_tolerated {
        return None;
    }
    let text: String = text.chars().filter(|c| !is_wrong(c)).collect();
    // Characters of four bytes, which GB18030 has beside GBK's, become ASCII.
    let (bytes, ..) = encoding.encode(&text);
    (*bytes != *sample).then(|| bytes.into_owned())
}
