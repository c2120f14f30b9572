// Row layout: a nibble per element, in order, then an exponent byte per 32. Nibbles are floats with a one-bit mantissa;
// their upper bit is the sign.
#import blocks32
fn codes4(word: u32, shift: u32, scale: f32) -> vec4<f32> {
  let q = nibbles4(word, shift);
  // twice the magnitudes 0 ½ 1 1½ 2 3 4 6, four bits each
  let size = vec4<f32>((vec4(0xC8643210u) >> ((q & vec4(7u)) * 4u)) & vec4(15u));
  return select(size, -size, (q & vec4(8u)) != vec4(0u)) * scale;
}

struct Packed {
  q: vec4<u32>,
  exponents: u32,
  at: u32,
}

fn packed32(row: u32, block: u32) -> Packed {
  return Packed(w[row + block], word(row, p.k / 8u + block / 4u), block);
}

fn unpack32(packed: Packed) -> array<vec4<f32>, 8> {
  let e = byte_of(packed.exponents, packed.at);
  // 2^(e − 128): e = 0 and e = 1 give subnormals
  let scale = bitcast<f32>(select((e - 1u) << 23u, 0x00200000u << e, e < 2u));
  let q = packed.q;
  return array(
    codes4(q.x, 0u, scale),
    codes4(q.x, 16u, scale),
    codes4(q.y, 0u, scale),
    codes4(q.y, 16u, scale),
    codes4(q.z, 0u, scale),
    codes4(q.z, 16u, scale),
    codes4(q.w, 0u, scale),
    codes4(q.w, 16u, scale),
  );
}
