// A row: a nibble for each element, in order, a word of fifth bits for each 32, then five words for each 256 as in
// q4_k.
#import blocks32
fn weights16(row: u32, segment: u32) -> array<vec4<f32>, 4> {
  let block = row + p.k / 8u + p.k / 32u + segment / 16u * 5u;
  let group = segment / 2u % 8u;
  let factors = unpack2x16float(w[block + 4u]);
  let scale = factors.x * f32(byte_in(block, group));
  let least = factors.y * f32(byte_in(block + 2u, group));
  let high = w[row + p.k / 8u + segment / 2u] >> (segment % 2u * 16u);
  let a = w[row + segment * 2u];
  let b = w[row + segment * 2u + 1u];
  return array(
    vec4<f32>(nibbles4(a, 0u) | fifths4(high)) * scale - least,
    vec4<f32>(nibbles4(a, 16u) | fifths4(high >> 4u)) * scale - least,
    vec4<f32>(nibbles4(b, 0u) | fifths4(high >> 8u)) * scale - least,
    vec4<f32>(nibbles4(b, 16u) | fifths4(high >> 12u)) * scale - least,
  );
}
