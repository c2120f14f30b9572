//! Hasher for pairs of small numbers. The numbers come from a file; a collision only costs time.

use std::hash::Hasher;

use super::vocab::mix;

/// Mixes the numbers one after another.
#[derive(Debug, Default)]
pub struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.0 = mix(self.0, u64::from(*b)));
    }

    fn write_u32(&mut self, word: u32) {
        self.0 = mix(self.0, u64::from(word));
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 = mix(self.0, u64::from(byte));
    }
}
