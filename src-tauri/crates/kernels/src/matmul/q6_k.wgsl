// Row layout: the low nibble of each element, in order, the high two bits of each, a signed byte per 16, an f16 per 256.
#import blocks32
fn uppers4(bits: u32) -> vec4<u32> {
  return (vec4(bits) << vec4(4u, 6u, 8u, 10u)) & vec4(0x30u, 0x300u, 0x3000u, 0x30000u);
}

fn less32(word: u32, high: u32, scale: f32) -> vec4<f32> {
  return numbers4(word, uppers4(high), 32.0) * scale;
}

struct Packed {
  q: vec4<u32>,
  first: u32,
  second: u32,
  scales: u32,
  factors: u32,
  at: u32,
}

fn packed32(row: u32, block: u32) -> Packed {
  let uppers = p.k / 8u + block * 2u;
  let scales = p.k / 8u + p.k / 16u;
  return Packed(
    w[row + block],
    word(row, uppers),
    word(row, uppers + 1u),
    word(row, scales + block / 2u),
    word(row, scales + p.k / 64u + block / 16u),
    block,
  );
}

fn unpack32(packed: Packed) -> array<vec4<f32>, 8> {
  let factor = half_of(packed.factors, packed.at / 8u);
  let low = factor * signed_of(packed.scales, packed.at * 2u);
  let high = factor * signed_of(packed.scales, packed.at * 2u + 1u);
  let first = packed.first;
  let second = packed.second;
  let q = packed.q;
  return array(
    less32(q.x, first, low),
    less32(q.x >> 16u, first >> 8u, low),
    less32(q.y, first >> 16u, low),
    less32(q.y >> 16u, first >> 24u, low),
    less32(q.z, second, high),
    less32(q.z >> 16u, second >> 8u, high),
    less32(q.w, second >> 16u, high),
    less32(q.w >> 16u, second >> 24u, high),
  );
}
