// Row layout: a nibble per element, in order, then f16 scale and min per 32.
#import blocks32
fn scaled4(word: u32, both: vec2<f32>) -> vec4<f32> {
  return fma(nibbles4(word, 0.0), vec4(both.x), vec4(both.y));
}

struct Packed {
  q: vec4<u32>,
  both: u32,
}

fn packed32(row: u32, block: u32) -> Packed {
  return Packed(w[row + block], word(row, p.k / 8u + block));
}

fn unpack32(packed: Packed) -> array<vec4<f32>, 8> {
  let both = unpack2x16float(packed.both);
  let q = packed.q;
  return array(
    scaled4(q.x, both),
    scaled4(q.x >> 16u, both),
    scaled4(q.y, both),
    scaled4(q.y >> 16u, both),
    scaled4(q.z, both),
    scaled4(q.z >> 16u, both),
    scaled4(q.w, both),
    scaled4(q.w >> 16u, both),
  );
}
