// Row layout: a nibble per element, in order, then an f16 scale per 32. Nibbles are table indices.
#import blocks32
// −127 −104 −83 −65, −49 −35 −22 −10, 1 13 25 38, 53 69 89 113: a signed byte each
const CODES = vec4(0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u);

fn code(q: u32) -> f32 {
  let low = select(CODES.x, CODES.y, (q & 4u) != 0u);
  let high = select(CODES.z, CODES.w, (q & 4u) != 0u);
  return f32(extractBits(i32(select(low, high, q >= 8u)), q % 4u * 8u, 8u));
}

fn codes4(word: u32, scale: f32) -> vec4<f32> {
  let q = (vec4(word) >> vec4(0u, 4u, 8u, 12u)) & vec4(15u);
  return vec4(code(q.x), code(q.y), code(q.z), code(q.w)) * scale;
}

struct Packed {
  q: vec4<u32>,
  scales: u32,
  at: u32,
}

fn packed32(row: u32, block: u32) -> Packed {
  return Packed(w[row + block], word(row, p.k / 8u + block / 2u), block);
}

fn unpack32(packed: Packed) -> array<vec4<f32>, 8> {
  let scale = half_of(packed.scales, packed.at);
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
