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

// Numbers of a few bits become floats without a conversion, which GPUs do at a fraction of their speed. As the lowest bits
// of a float of 2²³ a number counts in ones, four bits further up in the float of 2¹⁹, and so on. The subtraction is exact.
const UNITS = vec4(0x4B000000u, 0x49000000u, 0x47000000u, 0x45000000u);
const UNIT_FLOATS = vec4(8388608.0, 524288.0, 32768.0, 2048.0);
const NIBBLES = vec4(0xFu, 0xF0u, 0xF00u, 0xF000u);

// Returns the four nibbles in the lower half of `word`, minus `less`. `upper` has further bits of these numbers, each above
// its nibble.
fn numbers4(word: u32, upper: vec4<u32>, less: f32) -> vec4<f32> {
  return bitcast<vec4<f32>>((vec4(word) & NIBBLES) | (upper | UNITS)) - (UNIT_FLOATS + less);
}

fn nibbles4(word: u32, less: f32) -> vec4<f32> {
  return numbers4(word, vec4<u32>(), less);
}

// Returns bit i of `bits` as the fifth bit of number i of `numbers4`.
fn fifths4(bits: u32) -> vec4<u32> {
  return (vec4(bits) << vec4(4u, 7u, 10u, 13u)) & vec4(0x10u, 0x100u, 0x1000u, 0x10000u);
}
