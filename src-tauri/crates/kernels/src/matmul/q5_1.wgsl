// Row layout: a nibble per element, in order, a word of fifth bits per 32, f16 scale and min per 32.
#import blocks32
fn scaled4(word: u32, high: u32, both: vec2<f32>) -> vec4<f32> {
  return fma(numbers4(word, fifths4(high), 0.0), vec4(both.x), vec4(both.y));
}

struct Packed {
  q: vec4<u32>,
  high: u32,
  both: u32,
}

fn packed32(row: u32, block: u32) -> Packed {
  let both = word(row, p.k / 8u + p.k / 32u + block);
  return Packed(w[row + block], word(row, p.k / 8u + block), both);
}

fn unpack32(packed: Packed) -> array<vec4<f32>, 8> {
  let both = unpack2x16float(packed.both);
  let high = packed.high;
  let q = packed.q;
  return array(
    scaled4(q.x, high, both),
    scaled4(q.x >> 16u, high >> 4u, both),
    scaled4(q.y, high >> 8u, both),
    scaled4(q.y >> 16u, high >> 12u, both),
    scaled4(q.z, high >> 16u, both),
    scaled4(q.z >> 16u, high >> 20u, both),
    scaled4(q.w, high >> 24u, both),
    scaled4(q.w >> 16u, high >> 28u, both),
  );
}
