// A row: a nibble for each element, in order, a word of fifth bits for each 32, halves of scale and minimum.
#import blocks32
fn weights16(row: u32, segment: u32) -> array<vec4<f32>, 4> {
  let both = unpack2x16float(w[row + p.k / 8u + p.k / 32u + segment / 2u]);
  let high = w[row + p.k / 8u + segment / 2u] >> (segment % 2u * 16u);
  let a = w[row + segment * 2u];
  let b = w[row + segment * 2u + 1u];
  return array(
    vec4<f32>(nibbles4(a, 0u) | fifths4(high)) * both.x + both.y,
    vec4<f32>(nibbles4(a, 16u) | fifths4(high >> 4u)) * both.x + both.y,
    vec4<f32>(nibbles4(b, 0u) | fifths4(high >> 8u)) * both.x + both.y,
    vec4<f32>(nibbles4(b, 16u) | fifths4(high >> 12u)) * both.x + both.y,
  );
}
