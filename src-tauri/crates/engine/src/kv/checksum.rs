//! xxHash64: fast enough for gigabytes of keys and values, stable over releases.
//!
//! Finds damage, not malice. Specification: the xxHash project's `xxhash_spec.md`.

const P1: u64 = 0x9E3779B185EBCA87;
const P2: u64 = 0xC2B2AE3D27D4EB4F;
const P3: u64 = 0x165667B19E3779F9;
const P4: u64 = 0x85EBCA77C2B2AE63;
const P5: u64 = 0x27D4EB2F165667C5;

/// Returns the hash of `bytes` with seed 0.
pub fn xxh64(bytes: &[u8]) -> u64 {
    let mut stripes = bytes.chunks_exact(32);
    let mut hash = if bytes.len() >= 32 {
        let mut lanes = [P1.wrapping_add(P2), P2, 0, 0u64.wrapping_sub(P1)];
        for stripe in &mut stripes {
            for (lane, word) in lanes.iter_mut().zip(stripe.chunks_exact(8)) {
                *lane = round(*lane, u64_of(word));
            }
        }
        let [a, b, c, d] = lanes;
        let joined = a.rotate_left(1).wrapping_add(b.rotate_left(7));
        let joined = joined.wrapping_add(c.rotate_left(12)).wrapping_add(d.rotate_left(18));
        lanes.iter().fold(joined, |hash, &lane| (hash ^ round(0, lane)).wrapping_mul(P1).wrapping_add(P4))
    } else {
        stripes = bytes.chunks_exact(32);
        P5
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    let mut words = stripes.remainder().chunks_exact(8);
    for word in &mut words {
        hash = (hash ^ round(0, u64_of(word))).rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
    }
    let mut rest = words.remainder();
    if let Some((half, tail)) = rest.split_first_chunk::<4>() {
        let half = u64::from(u32::from_le_bytes(*half));
        hash = (hash ^ half.wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
        rest = tail;
    }
    for &byte in rest {
        hash = (hash ^ u64::from(byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(P2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(P3);
    hash ^ (hash >> 32)
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

fn u64_of(word: &[u8]) -> u64 {
    u64::from_le_bytes(word.try_into().expect("chunks of 8 bytes"))
}

#[cfg(test)]
mod tests {
    use super::xxh64;

    #[test]
    fn equals_the_published_vectors() {
        let sequence: Vec<u8> = (0..100).collect();
        let cases: [(&[u8], u64); 6] = [
            (b"", 0xEF46DB3751D8E999),
            (b"a", 0xD24EC4F1A98C6E5B),
            (b"abc", 0x44BC2CF5AD770999),
            (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
            (b"The quick brown fox jumps over the lazy dog", 0x0B242D361FDA71BC),
            (&sequence, 0x6AC1E58032166597),
        ];
        for (bytes, expected) in cases {
            assert_eq!(xxh64(bytes), expected, "{bytes:?}");
        }
    }
}
