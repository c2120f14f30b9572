// Row layout: a nibble per element, in order, then an exponent byte per 32. Nibbles are floats with a one-bit mantissa;
// their upper bit is the sign.
#import blocks32
fn codes4(word: u32, scale: f32) -> vec4<f32> {
  // twice the magnitudes 0 ½ 1 1½ 2 3 4 6, four bits each
  let size = vec4(0xC8643210u) >> ((vec4(word << 2u, word >> 2u, word >> 6u, word >> 10u)) & vec4(28u));
  let unsigned = bitcast<vec4<u32>>(bitcast<vec4<f32>>((size & vec4(15u)) | UNITS.xxxx) - UNIT_FLOATS.x);
  let sign = vec4(word << 28u, word << 24u, word << 20u, word << 16u) & vec4(0x80000000u);
  return bitcast<vec4<f32>>(unsigned ^ sign) * scale;
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
    codes4(q.x, scale),
    codes4(q.x >> 16u, scale),
    codes4(q.y, scale),
    codes4(q.y >> 16u, scale),
    codes4(q.z, scale),
    codes4(q.z >> 16u, scale),
    codes4(q.w, scale),
    codes4(q.w >> 16u, scale),
  );
}
