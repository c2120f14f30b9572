// Row layout: a nibble per element, in order, a word of fifth bits per 32, f16 scale and min per 32.
#import blocks32
fn scaled4(word: u32, shift: u32, high: u32, both: vec2<f32>) -> vec4<f32> {
  return fma(vec4<f32>(nibbles4(word, shift) | fifths4(high)), vec4(both.x), vec4(both.y));
}

fn weights32(row: u32, block: u32) -> array<vec4<f32>, 8> {
  let both = unpack2x16float(word(row, p.k / 8u + p.k / 32u + block));
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
