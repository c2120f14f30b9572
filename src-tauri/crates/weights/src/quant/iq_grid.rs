//! What the IQ formats share: groups of magnitudes out of a lattice, with signs.

/// Two bits of a group of eight.
#[inline]
pub fn two_bits(group: u16, j: usize) -> usize {
    usize::from(group >> (2 * j) & 3)
}

/// Three bits of a group of four.
#[inline]
pub fn three_bits(group: u16, j: usize) -> usize {
    usize::from(group >> (3 * j) & 7)
}

/// Eight signs from seven bits: the number of negative ones is even.
#[inline]
pub fn signs_with_parity(seven: u32) -> u8 {
    let seven = seven as u8 & 127;
    seven | (seven.count_ones() as u8 & 1) << 7
}

/// `magnitude` with the sign that bit `j` says.
#[inline]
pub fn signed(magnitude: f32, signs: u8, j: usize) -> f32 {
    if signs >> j & 1 == 1 { -magnitude } else { magnitude }
}

/// Magnitudes of the lattices with two bits (the fourth is not used).
pub const TWO_BIT_MAGNITUDES: [f32; 4] = [8.0, 25.0, 43.0, 0.0];

/// Eight values of a lattice with two bits.
#[inline]
pub fn eight_values(step: f32, group: u16, signs: u8, out: &mut [f32]) {
    for (j, o) in out.iter_mut().enumerate() {
        *o = signed(step * TWO_BIT_MAGNITUDES[two_bits(group, j)], signs, j);
    }
}

#[inline]
pub fn read_u16(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

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
