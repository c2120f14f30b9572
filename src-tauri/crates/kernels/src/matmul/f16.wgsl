// Row layout: k f16 numbers, padded to a multiple of 32. Formats without a shader are converted to this one.
#import blocks32
fn halves4(words: vec2<u32>) -> vec4<f32> {
  return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
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
    halves4(packed.q[0].xy),
    halves4(packed.q[0].zw),
    halves4(packed.q[1].xy),
    halves4(packed.q[1].zw),
    halves4(packed.q[2].xy),
    halves4(packed.q[2].zw),
    halves4(packed.q[3].xy),
    halves4(packed.q[3].zw),
  );
}
