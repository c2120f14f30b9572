// Reads integers and scales from words, for all block formats. `row` is where a row starts, in vec4 units. Positions in it
// are counted in words, f16 numbers or bytes from the word `first` on.
fn word(row: u32, at: u32) -> u32 {
  return w[row + at / 4u][at % 4u];
}

fn half_in(row: u32, first: u32, at: u32) -> f32 {
  let pair = unpack2x16float(word(row, first + at / 2u));
  return select(pair.x, pair.y, at % 2u == 1u);
}

fn byte_in(row: u32, first: u32, at: u32) -> u32 {
  return extractBits(word(row, first + at / 4u), at % 4u * 8u, 8u);
}

fn signed_in(row: u32, first: u32, at: u32) -> f32 {
  return f32(extractBits(i32(word(row, first + at / 4u)), at % 4u * 8u, 8u));
}

// Returns four nibbles of a word, from bit `shift` on.
fn nibbles4(word: u32, shift: u32) -> vec4<u32> {
  return (vec4(word) >> (vec4(0u, 4u, 8u, 12u) + shift)) & vec4(15u);
}

// Returns bit i of `bits` as the fifth bit of number i.
fn fifths4(bits: u32) -> vec4<u32> {
  return ((vec4(bits) >> vec4(0u, 1u, 2u, 3u)) & vec4(1u)) << vec4(4u);
}
