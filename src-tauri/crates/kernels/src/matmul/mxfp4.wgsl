// Row layout: a nibble per element, in order, then an exponent byte per 32. Nibbles are floats with a one-bit mantissa;
// their upper bit is the sign.
#import blocks32
fn codes4(word: u32, shift: u32, scale: f32) -> vec4<f32> {
  let q = nibbles4(word, shift);
  // twice the magnitudes 0 ½ 1 1½ 2 3 4 6, four bits each
  let size = vec4<f32>((vec4(0xC8643210u) >> ((q & vec4(7u)) * 4u)) & vec4(15u));
  return select(size, -size, (q & vec4(8u)) != vec4(0u)) * scale;
}

fn weights32(row: u32, block: u32) -> array<vec4<f32>, 8> {
  let e = byte_in(row, p.k / 8u, block);
  // 2^(e − 128): e = 0 and e = 1 give subnormals
  let scale = bitcast<f32>(select((e - 1u) << 23u, 0x00200000u << e, e < 2u));
  let q = w[row + block];
  return array(
    codes4(q.x, 0u, scale),
    codes4(q.x, 16u, scale),
    codes4(q.y, 0u, scale),
    codes4(q.y, 16u, scale),
    codes4(q.z, 0u, scale),
    codes4(q.z, 16u, scale),
    codes4(q.w, 0u, scale),
    codes4(q.w, 16u, scale),
  );
}
