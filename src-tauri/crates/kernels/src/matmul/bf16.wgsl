// A row is k upper halves of floats, to a whole number of 16.
fn uppers4(a: u32, b: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(vec4(a << 16u, a & 0xffff0000u, b << 16u, b & 0xffff0000u));
}

fn weights16(row: u32, segment: u32) -> array<vec4<f32>, 4> {
  let at = row + segment * 8u;
  return array(
    uppers4(w[at], w[at + 1u]),
    uppers4(w[at + 2u], w[at + 3u]),
    uppers4(w[at + 4u], w[at + 5u]),
    uppers4(w[at + 6u], w[at + 7u]),
  );
}
