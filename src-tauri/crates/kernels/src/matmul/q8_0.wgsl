// A row: k bytes, then a half for each 32.
#import blocks32
fn bytes4(word: u32, scale: f32) -> vec4<f32> {
  let q = vec4<i32>(vec4(word << 24u, word << 16u, word << 8u, word)) >> vec4(24u);
  return vec4<f32>(q) * scale;
}

fn weights16(row: u32, segment: u32) -> array<vec4<f32>, 4> {
  let scale = half_in(row + p.k / 4u, segment / 2u);
  let at = row + segment * 4u;
  return array(
    bytes4(w[at], scale),
    bytes4(w[at + 1u], scale),
    bytes4(w[at + 2u], scale),
    bytes4(w[at + 3u], scale),
  );
}
