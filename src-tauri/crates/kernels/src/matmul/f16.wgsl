// Row layout: k f16 numbers, padded to a multiple of 32. Formats without a shader are converted to this one.
fn halves4(words: vec2<u32>) -> vec4<f32> {
  return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}

fn weights32(row: u32, block: u32) -> array<vec4<f32>, 8> {
  let at = row + block * 4u;
  return array(
    halves4(w[at].xy),
    halves4(w[at].zw),
    halves4(w[at + 1u].xy),
    halves4(w[at + 1u].zw),
    halves4(w[at + 2u].xy),
    halves4(w[at + 2u].zw),
    halves4(w[at + 3u].xy),
    halves4(w[at + 3u].zw),
  );
}
