//! Shared by the IQ formats: groups of magnitudes from a grid, with signs.

/// Grid value `j` of a group of eight, two bits each.
#[inline]
pub fn two_bits(group: u16, j: usize) -> usize {
    usize::from(group >> (2 * j) & 3)
}

/// Grid value `j` of a group of four, three bits each.
#[inline]
pub fn three_bits(group: u16, j: usize) -> usize {
    usize::from(group >> (3 * j) & 7)
}

/// Eight sign bits from seven: the eighth makes the number of negative signs even.
#[inline]
pub fn signs_with_parity(seven: u32) -> u8 {
    let seven = seven as u8 & 127;
    seven | (seven.count_ones() as u8 & 1) << 7
}

/// `magnitude`, negated if bit `j` of `signs` is set.
#[inline]
pub fn signed(magnitude: f32, signs: u8, j: usize) -> f32 {
    if signs >> j & 1 == 1 { -magnitude } else { magnitude }
}

/// Magnitudes of the two-bit grids; the fourth is unused.
pub const TWO_BIT_MAGNITUDES: [f32; 4] = [8.0, 25.0, 43.0, 0.0];

/// Decodes eight values of a two-bit grid.
#[inline]
pub fn eight_values(step: f32, group: u16, signs: u8, out: &mut [f32]) {
    for (j, o) in out.iter_mut().enumerate() {
        *o = signed(step * TWO_BIT_MAGNITUDES[two_bits(group, j)], signs, j);
    }
}

/// Reads a little-endian `u16` at byte `at`.
#[inline]
pub fn read_u16(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

/// Reads a little-endian `u32` at byte `at`.
#[inline]
pub fn read_u32(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_even() {
        for seven in 0..128 {
            assert_eq!(signs_with_parity(seven).count_ones() % 2, 0);
            assert_eq!(u32::from(signs_with_parity(seven)) & 127, seven);
        }
    }
}
