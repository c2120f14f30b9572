// Row layout: k bytes, then an f16 scale per 32.
#import blocks32
fn bytes4(word: u32, scale: f32) -> vec4<f32> {
  let q = vec4<i32>(vec4(word << 24u, word << 16u, word << 8u, word)) >> vec4(24u);
  return vec4<f32>(q) * scale;
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
