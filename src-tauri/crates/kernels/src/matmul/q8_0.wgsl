// Row layout: k bytes, then an f16 scale per 32.
#import blocks32
// As `nibbles4`: bytes from 0 to 255, less 128.
fn bytes4(word: u32, scale: f32) -> vec4<f32> {
  let low = word ^ 0x80808080u;
  let bits = vec4(low, low, low >> 16u, low >> 16u) & vec2(0xFFu, 0xFF00u).xyxy;
  return (bitcast<vec4<f32>>(bits | UNITS.xzxz) - (UNIT_FLOATS.xzxz + 128.0)) * scale;
}

struct Packed {
  a: vec4<u32>,
  b: vec4<u32>,
  scales: u32,
  at: u32,
}

fn packed32(row: u32, block: u32) -> Packed {
  return Packed(w[row + block * 2u], w[row + block * 2u + 1u], word(row, p.k / 4u + block / 2u), block);
}

fn unpack32(packed: Packed) -> array<vec4<f32>, 8> {
  let scale = half_of(packed.scales, packed.at);
  let a = packed.a;
  let b = packed.b;
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
