// A row: a nibble for each element, in order, then a half for each 32.
#import blocks32
fn weights16(row: u32, segment: u32) -> array<vec4<f32>, 4> {
  let scale = half_in(row + p.k / 8u, segment / 2u);
  let a = w[row + segment * 2u];
  let b = w[row + segment * 2u + 1u];
  return array(
    (vec4<f32>(nibbles4(a, 0u)) - 8.0) * scale,
    (vec4<f32>(nibbles4(a, 16u)) - 8.0) * scale,
    (vec4<f32>(nibbles4(b, 0u)) - 8.0) * scale,
    (vec4<f32>(nibbles4(b, 16u)) - 8.0) * scale,
  );
}
