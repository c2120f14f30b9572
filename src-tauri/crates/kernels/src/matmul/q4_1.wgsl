// A row: a nibble for each element, in order, then for each 32 the halves of scale and minimum.
#import blocks32
fn weights16(row: u32, segment: u32) -> array<vec4<f32>, 4> {
  let both = unpack2x16float(w[row + p.k / 8u + segment / 2u]);
  let a = w[row + segment * 2u];
  let b = w[row + segment * 2u + 1u];
  return array(
    vec4<f32>(nibbles4(a, 0u)) * both.x + both.y,
    vec4<f32>(nibbles4(a, 16u)) * both.x + both.y,
    vec4<f32>(nibbles4(b, 0u)) * both.x + both.y,
    vec4<f32>(nibbles4(b, 16u)) * both.x + both.y,
  );
}
