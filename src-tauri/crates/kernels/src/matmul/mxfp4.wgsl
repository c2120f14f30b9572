// A row: a nibble for each element, in order, then a byte of exponent for each 32. Nibbles are floats of one bit of
// mantissa, the upper bit is the sign.
#import blocks32
fn codes4(q: vec4<u32>) -> vec4<f32> {
  // twice the magnitudes 0 ½ 1 1½ 2 3 4 6, four bits each
  let size = vec4<f32>((vec4(0xC8643210u) >> ((q & vec4(7u)) * 4u)) & vec4(15u));
  return select(size, -size, (q & vec4(8u)) != vec4(0u));
}

fn weights16(row: u32, segment: u32) -> array<vec4<f32>, 4> {
  let e = byte_in(row + p.k / 8u, segment / 2u);
  // 2^(e − 128): that of e = 1 and 0 has no normal form
  let scale = bitcast<f32>(select((e - 1u) << 23u, 0x00200000u << e, e < 2u));
  let a = w[row + segment * 2u];
  let b = w[row + segment * 2u + 1u];
  return array(
    codes4(nibbles4(a, 0u)) * scale,
    codes4(nibbles4(a, 16u)) * scale,
    codes4(nibbles4(b, 0u)) * scale,
    codes4(nibbles4(b, 16u)) * scale,
  );
}
