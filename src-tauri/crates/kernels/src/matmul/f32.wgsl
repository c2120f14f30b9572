// Row layout: k f32 numbers, padded to a multiple of 32.
fn weights32(row: u32, block: u32) -> array<vec4<f32>, 8> {
  let at = row + block * 8u;
  return array(
    bitcast<vec4<f32>>(w[at]),
    bitcast<vec4<f32>>(w[at + 1u]),
    bitcast<vec4<f32>>(w[at + 2u]),
    bitcast<vec4<f32>>(w[at + 3u]),
    bitcast<vec4<f32>>(w[at + 4u]),
    bitcast<vec4<f32>>(w[at + 5u]),
    bitcast<vec4<f32>>(w[at + 6u]),
    bitcast<vec4<f32>>(w[at + 7u]),
  );
}
