// What all weight formats share. A format declares what it packs: `Packed` is a block of 32 weights as it is stored,
// `packed32` loads it, and `unpack32` computes the weights. Kernels load blocks early, to compute while others are under
// way. `row` is where a row starts, in vec4 units. Positions in it are counted in words.
fn weights32(row: u32, block: u32) -> array<vec4<f32>, 8> {
  return unpack32(packed32(row, block));
}

fn word(row: u32, at: u32) -> u32 {
  return w[row + at / 4u][at % 4u];
}

// Returns the f16 number `at` of a row of them, two per word.
fn half_of(word: u32, at: u32) -> f32 {
  let pair = unpack2x16float(word);
  return select(pair.x, pair.y, at % 2u == 1u);
}

// Returns the byte `at` of a row of them, four per word.
fn byte_of(word: u32, at: u32) -> u32 {
  return extractBits(word, at % 4u * 8u, 8u);
}

fn signed_of(word: u32, at: u32) -> f32 {
  return f32(extractBits(i32(word), at % 4u * 8u, 8u));
}

// Returns four nibbles of a word, from bit `shift` on.
fn nibbles4(word: u32, shift: u32) -> vec4<u32> {
  return (vec4(word) >> (vec4(0u, 4u, 8u, 12u) + shift)) & vec4(15u);
}

// Returns bit i of `bits` as the fifth bit of number i.
fn fifths4(bits: u32) -> vec4<u32> {
  return ((vec4(bits) >> vec4(0u, 1u, 2u, 3u)) & vec4(1u)) << vec4(4u);
}
