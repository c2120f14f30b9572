// Row layout: k f32 numbers, padded to a multiple of 32.
#import blocks32
struct Packed {
  q: array<vec4<u32>, 8>,
}

fn packed32(row: u32, block: u32) -> Packed {
  let at = row + block * 8u;
  return Packed(array(
    w[at],
    w[at + 1u],
    w[at + 2u],
    w[at + 3u],
    w[at + 4u],
    w[at + 5u],
    w[at + 6u],
    w[at + 7u],
  ));
}

fn unpack32(packed: Packed) -> array<vec4<f32>, 8> {
  return array(
    bitcast<vec4<f32>>(packed.q[0]),
    bitcast<vec4<f32>>(packed.q[1]),
    bitcast<vec4<f32>>(packed.q[2]),
    bitcast<vec4<f32>>(packed.q[3]),
    bitcast<vec4<f32>>(packed.q[4]),
    bitcast<vec4<f32>>(packed.q[5]),
    bitcast<vec4<f32>>(packed.q[6]),
    bitcast<vec4<f32>>(packed.q[7]),
  );
}
