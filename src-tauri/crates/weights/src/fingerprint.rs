//! Fast fingerprint that distinguishes files: against confusion, not against forgery.
//!
//! Hashes small parts fully and samples of large ones.

/// Number of windows of the data that are hashed: 256 KiB of any file, a few milliseconds when cold.
const SAMPLES: usize = 64;
/// Length of a window.
const SAMPLE_BYTES: usize = 4096;

/// Hash state: two lanes of multiply-and-fold over words of eight bytes.
pub struct Fingerprint {
    lanes: [u64; 2],
}

const KEYS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93];

impl Fingerprint {
    pub fn new() -> Self {
        Self { lanes: KEYS }
    }

    fn word(&mut self, word: u64) {
        for (lane, key) in self.lanes.iter_mut().zip(KEYS) {
            let product = u128::from(*lane ^ word) * u128::from(key | 1);
            *lane = (product as u64) ^ (product >> 64) as u64 ^ lane.rotate_left(23);
        }
    }

    /// Adds the length and all bytes.
    pub fn whole(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0u8; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last));
    }

    /// Adds the length, and windows spread evenly from the first byte to the last.
    pub fn sampled(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        if bytes.len() <= SAMPLES * SAMPLE_BYTES {
            return self.whole(bytes);
        }
        let span = bytes.len() - SAMPLE_BYTES;
        for i in 0..SAMPLES {
            let start = (span as u128 * i as u128 / (SAMPLES - 1) as u128) as usize;
            self.whole(&bytes[start..start + SAMPLE_BYTES]);
        }
    }

    /// Returns 32 hexadecimal digits.
    pub fn finish(mut self) -> String {
        self.word(0);
        self.word(1);
        format!("{:016x}{:016x}", self.lanes[0], self.lanes[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> String {
        let mut print = Fingerprint::new();
        print.sampled(bytes);
        print.finish()
    }

    #[test]
    fn each_byte_of_a_small_file_and_the_ends_of_a_large_one_count() {
        for len in [1, 7, 8, 9, 1000, 1 << 20] {
            let mut bytes = vec![0u8; len];
            let before = of(&bytes);
            assert_eq!(before, of(&bytes));
            bytes[len - 1] = 1;
            assert_ne!(before, of(&bytes), "{len}");
        }
        assert_ne!(of(&[]), of(&[0]));
        assert_ne!(of(&[0; 8]), of(&[0; 9]));
    }
}
