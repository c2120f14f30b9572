// Row layout: a nibble per element, in order, a word of fifth bits per 32, an f16 scale per 32.
#import blocks32
fn less16(word: u32, shift: u32, high: u32, scale: f32) -> vec4<f32> {
  return (vec4<f32>(nibbles4(word, shift) | fifths4(high)) - 16.0) * scale;
}

fn weights32(row: u32, block: u32) -> array<vec4<f32>, 8> {
  let scale = half_in(row, p.k / 8u + p.k / 32u, block);
  let high = word(row, p.k / 8u + block);
  let q = w[row + block];
  return array(
    less16(q.x, 0u, high, scale),
    less16(q.x, 16u, high >> 4u, scale),
    less16(q.y, 0u, high >> 8u, scale),
    less16(q.y, 16u, high >> 12u, scale),
    less16(q.z, 0u, high >> 16u, scale),
    less16(q.z, 16u, high >> 20u, scale),
    less16(q.w, 0u, high >> 24u, scale),
    less16(q.w, 16u, high >> 28u, scale),
  );
}
