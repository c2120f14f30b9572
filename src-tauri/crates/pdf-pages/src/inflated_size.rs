//! Whether compressed streams of a file stay within bounds when they are unpacked. Nothing is kept of them.

use miniz_oxide::inflate::core::inflate_flags::{TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_PARSE_ZLIB_HEADER};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use miniz_oxide::inflate::{TINFLStatus, core::TINFL_LZ_DICT_SIZE};

const KEYWORD: &[u8] = b"stream";

/// Whether no stream of a file unpacks to more than `max_bytes`, as far as that is seen without parsing the file: the first
/// filter of unencrypted streams.
pub fn is_within(file: &[u8], max_bytes: usize) -> bool {
    let mut at = 0;
    while let Some(found) = find(&file[at..], KEYWORD) {
        at += found + KEYWORD.len();
        let rest = &file[at..];
        let data = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n"));
        // `endstream` stands before an end of line as well: what follows is no zlib data.
        if data.is_some_and(|data| is_zlib(data) && inflated_bytes(data, max_bytes) > max_bytes) {
            return false;
        }
    }
    true
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|at| at == wanted)
}

/// Method 8 and a valid check of the header (RFC 1950, 2.2).
fn is_zlib(data: &[u8]) -> bool {
    matches!(data, [cmf, flags, ..] if cmf & 15 == 8 && (u16::from(*cmf) << 8 | u16::from(*flags)) % 31 == 0)
}

/// Bytes that a stream unpacks to, up to its end, an error or a little more than `max_bytes`.
fn inflated_bytes(mut data: &[u8], max_bytes: usize) -> usize {
    let mut window = vec![0; TINFL_LZ_DICT_SIZE];
    let mut inflater = DecompressorOxide::new();
    let (mut n_bytes, mut at) = (0, 0);
    loop {
        let flags = TINFL_FLAG_PARSE_ZLIB_HEADER | TINFL_FLAG_HAS_MORE_INPUT;
        let (status, n_in, n_out) = decompress(&mut inflater, data, &mut window, at, flags);
        data = &data[n_in..];
        n_bytes += n_out;
        at = (at + n_out) % TINFL_LZ_DICT_SIZE;
        if status != TINFLStatus::HasMoreOutput || n_bytes > max_bytes {
            return n_bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unpacks_to_too_much_is_seen() {
        let packed = miniz_oxide::deflate::compress_to_vec_zlib(&vec![7; 300_000], 6);
        let file = [&b"<<>>stream\r\n"[..], &packed, b"\nendstream\n<<>>\nstream\nplain\nendstream"].concat();
        for (max_bytes, expected) in [(300_000, true), (299_999, false), (10, false)] {
            assert_eq!(is_within(&file, max_bytes), expected, "{max_bytes}");
        }
        assert!(is_within(b"stream", 0) && is_within(b"stream\n\x78", 0) && is_within(b"", 0));
        assert_eq!(inflated_bytes(&packed, usize::MAX), 300_000);
    }
}
