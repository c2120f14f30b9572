// A row is k words, to a whole number of 16.
fn weights16(row: u32, segment: u32) -> array<vec4<f32>, 4> {
  let at = row + segment * 16u;
  return array(
    bitcast<vec4<f32>>(vec4(w[at], w[at + 1u], w[at + 2u], w[at + 3u])),
    bitcast<vec4<f32>>(vec4(w[at + 4u], w[at + 5u], w[at + 6u], w[at + 7u])),
    bitcast<vec4<f32>>(vec4(w[at + 8u], w[at + 9u], w[at + 10u], w[at + 11u])),
    bitcast<vec4<f32>>(vec4(w[at + 12u], w[at + 13u], w[at + 14u], w[at + 15u])),
  );
}
