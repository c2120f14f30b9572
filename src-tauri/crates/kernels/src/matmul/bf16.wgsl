// Row layout: k upper halves of f32, padded to a multiple of 32.
#import blocks32
fn uppers4(words: vec2<u32>) -> vec4<f32> {
  let low = words << vec2(16u);
  let high = words & vec2(0xffff0000u);
  return bitcast<vec4<f32>>(vec4(low.x, high.x, low.y, high.y));
}

struct Packed {
  q: array<vec4<u32>, 4>,
}

fn packed32(row: u32, block: u32) -> Packed {
  let at = row + block * 4u;
  return Packed(array(w[at], w[at + 1u], w[at + 2u], w[at + 3u]));
}

fn unpack32(packed: Packed) -> array<vec4<f32>, 8> {
  return array(
    uppers4(packed.q[0].xy),
    uppers4(packed.q[0].zw),
    uppers4(packed.q[1].xy),
    uppers4(packed.q[1].zw),
    uppers4(packed.q[2].xy),
    uppers4(packed.q[2].zw),
    uppers4(packed.q[3].xy),
    uppers4(packed.q[3].zw),
  );
}
