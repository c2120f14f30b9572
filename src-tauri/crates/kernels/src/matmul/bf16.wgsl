// Row layout: k upper halves of f32, padded to a multiple of 32.
fn uppers4(words: vec2<u32>) -> vec4<f32> {
  let low = words << vec2(16u);
  let high = words & vec2(0xffff0000u);
  return bitcast<vec4<f32>>(vec4(low.x, high.x, low.y, high.y));
}

fn weights32(row: u32, block: u32) -> array<vec4<f32>, 8> {
  let at = row + block * 4u;
  return array(
    uppers4(w[at].xy),
    uppers4(w[at].zw),
    uppers4(w[at + 1u].xy),
    uppers4(w[at + 1u].zw),
    uppers4(w[at + 2u].xy),
    uppers4(w[at + 2u].zw),
    uppers4(w[at + 3u].xy),
    uppers4(w[at + 3u].zw),
  );
}
