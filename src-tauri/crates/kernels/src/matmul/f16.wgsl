// A row is k halves, to a whole number of 16. Formats without a file of their own come as this one, too.
fn halves4(a: u32, b: u32) -> vec4<f32> {
  return vec4(unpack2x16float(a), unpack2x16float(b));
}

fn weights16(row: u32, segment: u32) -> array<vec4<f32>, 4> {
  let at = row + segment * 8u;
  return array(
    halves4(w[at], w[at + 1u]),
    halves4(w[at + 2u], w[at + 3u]),
    halves4(w[at + 4u], w[at + 5u]),
    halves4(w[at + 6u], w[at + 7u]),
  );
}
