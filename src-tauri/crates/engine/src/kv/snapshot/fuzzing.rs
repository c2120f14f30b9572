//! Entry points for fuzz targets.

use super::format::{HEADER_LEN, PieceHeader, checksum};
use crate::kv::checksum::xxh64;

/// Makes the hashes of a changed piece right, so that what follows them is reached.
pub fn reseal(piece: &mut [u8]) {
    let Some((head, body)) = piece.split_first_chunk_mut::<HEADER_LEN>() else { return };
    let mut header = PieceHeader::decode(head);
    let n_tokens = header.end.saturating_sub(header.base);
    let n_bytes = usize::try_from(n_tokens.saturating_mul(4)).unwrap_or(usize::MAX);
    header.token_hash = xxh64(&body[..n_bytes.min(body.len())]);
    header.checksum = checksum(&header, body);
    let magic = head[..8].to_vec();
    *head = header.encode();
    head[..8].copy_from_slice(&magic);
}
