// Row layout: a nibble per element, in order, a word of fifth bits per 32, an f16 scale per 32.
#import blocks32
fn less16(word: u32, high: u32, scale: f32) -> vec4<f32> {
  return numbers4(word, fifths4(high), 16.0) * scale;
}

struct Packed {
  q: vec4<u32>,
  high: u32,
  scales: u32,
  at: u32,
}

fn packed32(row: u32, block: u32) -> Packed {
  let scales = word(row, p.k / 8u + p.k / 32u + block / 2u);
  return Packed(w[row + block], word(row, p.k / 8u + block), scales, block);
}

fn unpack32(packed: Packed) -> array<vec4<f32>, 8> {
  let scale = half_of(packed.scales, packed.at);
  let high = packed.high;
  let q = packed.q;
  return array(
    less16(q.x, high, scale),
    less16(q.x >> 16u, high >> 4u, scale),
    less16(q.y, high >> 8u, scale),
    less16(q.y >> 16u, high >> 12u, scale),
    less16(q.z, high >> 16u, scale),
    less16(q.z >> 16u, high >> 20u, scale),
    less16(q.w, high >> 24u, scale),
    less16(q.w >> 16u, high >> 28u, scale),
  );
}
