// Row layout: k bytes, then an f16 scale per 32.
#import blocks32
fn bytes4(word: u32, scale: f32) -> vec4<f32> {
  let q = vec4<i32>(vec4(word << 24u, word << 16u, word << 8u, word)) >> vec4(24u);
  return vec4<f32>(q) * scale;
}

fn weights32(row: u32, block: u32) -> array<vec4<f32>, 8> {
  let scale = half_in(row, p.k / 4u, block);
  let a = w[row + block * 2u];
  let b = w[row + block * 2u + 1u];
  return array(
    bytes4(a.x, scale),
    bytes4(a.y, scale),
    bytes4(a.z, scale),
    bytes4(a.w, scale),
    bytes4(b.x, scale),
    bytes4(b.y, scale),
    bytes4(b.z, scale),
    bytes4(b.w, scale),
  );
}
