//! How many pixels an image of a PDF has once it is decoded: the most that its dictionary, its mask and its own file say.

use hayro::hayro_interpret::hayro_syntax::object::dict::keys;
use hayro::hayro_interpret::hayro_syntax::object::{Array, Dict, Stream};

/// Segments of a JBIG2 page that come before its size.
const MAX_SEGMENTS: usize = 64;

/// Type of the segment that has the size of a JBIG2 page (ITU-T T.88, 7.3).
const PAGE_INFORMATION: u8 = 48;

/// Pixels of an image with its masks.
pub fn decoded_pixels(stream: &Stream<'_>) -> u64 {
    let masks = [keys::SMASK, keys::MASK].into_iter().filter_map(|key| stream.dict().get::<Stream<'_>>(key));
    masks.fold(own_pixels(stream), |sum, mask| sum.saturating_add(own_pixels(&mask)))
}

fn own_pixels(stream: &Stream<'_>) -> u64 {
    let dict = stream.dict();
    let side = |short, long| dict.get::<u32>(short).or_else(|| dict.get::<u32>(long)).unwrap_or(0);
    let announced = area((side(keys::W, keys::WIDTH), side(keys::H, keys::HEIGHT)));
    // The type of filters has no public name; what it prints is one.
    let filters: Vec<String> = stream.filters().iter().map(|filter| format!("{filter:?}")).collect();
    let own = match (filters.last().map(String::as_str), filters.len()) {
        (Some("JpxDecode"), 1) => jpx_size(&stream.raw_data()),
        (Some("Jbig2Decode"), 1) => jbig2_size(&stream.raw_data()),
        // A coded image inside a compressed stream: no program writes that.
        (Some("JpxDecode" | "Jbig2Decode"), _) => Some((u32::MAX, u32::MAX)),
        (Some("CcittFaxDecode"), _) => fax_size(stream),
        // The decoder takes no more than the dictionary announces.
        _ => None,
    };
    announced.max(own.map_or(0, area))
}

fn area((width, height): (u32, u32)) -> u64 {
    u64::from(width) * u64::from(height)
}

/// Columns of the filter by rows of the dictionary.
fn fax_size(stream: &Stream<'_>) -> Option<(u32, u32)> {
    let dict = stream.dict();
    let params = dict.get::<Dict<'_>>(keys::DECODE_PARMS).or_else(|| dict.get::<Dict<'_>>(keys::DP));
    let last = || dict.get::<Array<'_>>(keys::DECODE_PARMS)?.iter::<Dict<'_>>().last();
    let columns = params.or_else(last)?.get::<u32>(keys::COLUMNS)?;
    let rows = dict.get::<u32>(keys::H).or_else(|| dict.get::<u32>(keys::HEIGHT))?;
    Some((columns, rows))
}

/// Width and height in the SIZ marker of a JPEG 2000 codestream (ISO 15444-1, A.5.1).
fn jpx_size(file: &[u8]) -> Option<(u32, u32)> {
    // Start of codestream and SIZ always stand together; boxes may come before.
    let at = file.windows(4).position(|bytes| bytes == [0xff, 0x4f, 0xff, 0x51])?;
    let side = |at: usize| Some(u32::from_be_bytes(file.get(at..at + 4)?.try_into().ok()?));
    Some((side(at + 8)?, side(at + 12)?))
}

/// Width and height in the page information of an embedded JBIG2 stream (ITU-T T.88, 7.2 and 7.4.8).
fn jbig2_size(file: &[u8]) -> Option<(u32, u32)> {
    let word = |at: usize| Some(u32::from_be_bytes(file.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let mut at = 0_usize;
    for _ in 0..MAX_SEGMENTS {
        let number = word(at)?;
        let flags = *file.get(at + 4)?;
        let n_short = usize::from(*file.get(at + 5)? >> 5);
        let (n_referred, mut end) = match n_short {
            7 => {
                let n = (word(at + 5)? & 0x1fff_ffff) as usize;
                (n, at.checked_add(9)?.checked_add(n.div_ceil(8) + 1)?)
            }
            n => (n, at + 6),
        };
        let reference_bytes = if number <= 256 {
            1
        } else if number <= 65_536 {
            2
        } else {
            4
        };
        end = end.checked_add(n_referred.checked_mul(reference_bytes)?)?;
        end = end.checked_add(if flags & 0x40 == 0 { 1 } else { 4 })?;
        let n_bytes = word(end)? as usize;
        let data = end.checked_add(4)?;
        if flags & 0x3f == PAGE_INFORMATION {
            // An unknown height grows with the stripes that come.
            let (width, height) = (word(data)?, word(data.checked_add(4)?)?);
            return Some((width, if height == u32::MAX { 0 } else { height }));
        }
        at = data.checked_add(n_bytes)?;
    }
    Some((u32::MAX, u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_say_how_large_they_are() {
        let jpx =
            [&b"\0\0\0\x0cjP  "[..], &[0xff, 0x4f, 0xff, 0x51, 0, 41, 0, 0], &[0, 0, 1, 2, 0, 0, 3, 4, 0]]
                .concat();
        assert_eq!(jpx_size(&jpx), Some((0x102, 0x304)));
        assert_eq!(jpx_size(&jpx[..20]), None);
        let before = [0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 2, 9, 9];
        let page = [0, 0, 0, 1, 48, 0, 1, 0, 0, 0, 19, 0, 0, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(jbig2_size(&[&before[..], &page[..]].concat()), Some((0xff00, 0x1_0000)));
        for cut in 0..page.len() - 4 {
            assert_eq!(jbig2_size(&page[..cut]), None, "{cut}");
        }
        let empty = [0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0];
        assert_eq!(jbig2_size(&empty.repeat(MAX_SEGMENTS)), Some((u32::MAX, u32::MAX)));
    }
}
