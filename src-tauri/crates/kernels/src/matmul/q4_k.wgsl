// Row layout: a nibble per element, in order, then five words per 256: eight bytes of scales, eight of mins, d and dmin.
#import blocks32
fn scaled4(word: u32, both: vec2<f32>) -> vec4<f32> {
  return fma(nibbles4(word, 0.0), vec4(both.x), vec4(both.y));
}

struct Packed {
  q: vec4<u32>,
  scales: u32,
  mins: u32,
  factors: u32,
  at: u32,
}

fn packed32(row: u32, block: u32) -> Packed {
  let header = p.k / 8u + block / 8u * 5u;
  let group = block % 8u / 4u;
  return Packed(
    w[row + block],
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
