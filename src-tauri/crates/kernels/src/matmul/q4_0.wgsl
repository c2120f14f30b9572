// Row layout: a nibble per element, in order, then an f16 scale per 32.
#import blocks32
fn less8(word: u32, scale: f32) -> vec4<f32> {
  return nibbles4(word, 8.0) * scale;
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
    less8(q.x, scale),
    less8(q.x >> 16u, scale),
    less8(q.y, scale),
    less8(q.y >> 16u, scale),
    less8(q.z, scale),
    less8(q.z >> 16u, scale),
    less8(q.w, scale),
    less8(q.w >> 16u, scale),
  );
}
