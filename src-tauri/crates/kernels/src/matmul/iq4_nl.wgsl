// A row: a nibble for each element, in order, then a half for each 32. Nibbles are indices.
#import blocks32
fn codes4(q: vec4<u32>) -> vec4<f32> {
  // −127 −104 −83 −65, −49 −35 −22 −10, 1 13 25 38, 53 69 89 113: a signed byte each
  var codes = array(0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u);
  var found = vec4<f32>();
  for (var i = 0u; i < 4u; i++) {
    found[i] = f32(extractBits(i32(codes[q[i] / 4u]), q[i] % 4u * 8u, 8u));
  }
  return found;
}

fn weights16(row: u32, segment: u32) -> array<vec4<f32>, 4> {
  let scale = half_in(row + p.k / 8u, segment / 2u);
  let a = w[row + segment * 2u];
  let b = w[row + segment * 2u + 1u];
  return array(
    codes4(nibbles4(a, 0u)) * scale,
    codes4(nibbles4(a, 16u)) * scale,
    codes4(nibbles4(b, 0u)) * scale,
    codes4(nibbles4(b, 16u)) * scale,
  );
}
