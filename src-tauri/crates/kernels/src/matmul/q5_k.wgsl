// Row layout: a nibble per element, in order, a word of fifth bits per 32, then five words per 256 as in q4_k.
#import blocks32
fn scaled4(word: u32, shift: u32, high: u32, both: vec2<f32>) -> vec4<f32> {
  return fma(vec4<f32>(nibbles4(word, shift) | fifths4(high)), vec4(both.x), vec4(both.y));
}

fn weights32(row: u32, block: u32) -> array<vec4<f32>, 8> {
  let header = p.k / 8u + p.k / 32u + block / 8u * 5u;
  let group = block % 8u;
  let factors = unpack2x16float(word(row, header + 4u));
  let scale = factors.x * f32(byte_in(row, header, group));
  let block_min = factors.y * f32(byte_in(row, header + 2u, group));
  let both = vec2(scale, -block_min);
  let high = word(row, p.k / 8u + block);
  let q = w[row + block];
  return array(
    scaled4(q.x, 0u, high, both),
    scaled4(q.x, 16u, high >> 4u, both),
    scaled4(q.y, 0u, high >> 8u, both),
    scaled4(q.y, 16u, high >> 12u, both),
    scaled4(q.z, 0u, high >> 16u, both),
    scaled4(q.z, 16u, high >> 20u, both),
    scaled4(q.w, 0u, high >> 24u, both),
    scaled4(q.w, 16u, high >> 28u, both),
  );
}
