// Row layout: a nibble per element, in order, a word of fifth bits per 32, then five words per 256 as in q4_k.
#import blocks32
fn scaled4(word: u32, high: u32, both: vec2<f32>) -> vec4<f32> {
  return fma(numbers4(word, fifths4(high), 0.0), vec4(both.x), vec4(both.y));
}

struct Packed {
  q: vec4<u32>,
  high: u32,
  scales: u32,
  mins: u32,
  factors: u32,
  at: u32,
}

fn packed32(row: u32, block: u32) -> Packed {
  let header = p.k / 8u + p.k / 32u + block / 8u * 5u;
  let group = block % 8u / 4u;
  return Packed(
    w[row + block],
    word(row, p.k / 8u + block),
    word(row, header + group),
    word(row, header + 2u + group),
    word(row, header + 4u),
    block,
  );
}

fn unpack32(packed: Packed) -> array<vec4<f32>, 8> {
  let factors = unpack2x16float(packed.factors);
  let scale = factors.x * f32(byte_of(packed.scales, packed.at));
  let block_min = factors.y * f32(byte_of(packed.mins, packed.at));
  let both = vec2(scale, -block_min);
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
