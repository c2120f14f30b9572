// Integers and scales out of words, as all block formats have them.
fn half_in(words: u32, at: u32) -> f32 {
  let pair = unpack2x16float(w[words + at / 2u]);
  return select(pair.x, pair.y, at % 2u == 1u);
}

fn byte_in(words: u32, at: u32) -> u32 {
  return extractBits(w[words + at / 4u], at % 4u * 8u, 8u);
}

fn signed_in(words: u32, at: u32) -> f32 {
  return f32(extractBits(i32(w[words + at / 4u]), at % 4u * 8u, 8u));
}

// Four nibbles of a word, from bit `shift` on.
fn nibbles4(word: u32, shift: u32) -> vec4<u32> {
  return (vec4(word) >> (vec4(0u, 4u, 8u, 12u) + shift)) & vec4(15u);
}

// Bit i of `bits` as the fifth bit of number i.
fn fifths4(bits: u32) -> vec4<u32> {
  return ((vec4(bits) >> vec4(0u, 1u, 2u, 3u)) & vec4(1u)) << vec4(4u);
}
