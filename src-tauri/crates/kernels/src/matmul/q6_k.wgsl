// A row: the lower nibble of each element, in order, the upper two bits of each, a signed byte for each 16, a half for
// each 256.
#import blocks32
fn uppers4(bits: u32) -> vec4<u32> {
  return ((vec4(bits) >> vec4(0u, 2u, 4u, 6u)) & vec4(3u)) << vec4(4u);
}

fn weights16(row: u32, segment: u32) -> array<vec4<f32>, 4> {
  let high = w[row + p.k / 8u + segment];
  let scales = row + p.k / 8u + p.k / 16u;
  let scale = half_in(scales + p.k / 64u, segment / 16u) * signed_in(scales, segment);
  let a = w[row + segment * 2u];
  let b = w[row + segment * 2u + 1u];
  return array(
    (vec4<f32>(nibbles4(a, 0u) | uppers4(high)) - 32.0) * scale,
    (vec4<f32>(nibbles4(a, 16u) | uppers4(high >> 8u)) - 32.0) * scale,
    (vec4<f32>(nibbles4(b, 0u) | uppers4(high >> 16u)) - 32.0) * scale,
    (vec4<f32>(nibbles4(b, 16u) | uppers4(high >> 24u)) - 32.0) * scale,
  );
}
