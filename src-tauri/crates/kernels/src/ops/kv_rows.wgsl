// Reads elements of a block of a page: the keys or the values of one head at PAGE_LEN positions, in the layout of
// `kv_write.rs`. The importing shader declares `kv`; `block` is the block's first word. Four elements at once, for keys
// those of an even slot and the next one; zeros beyond the end of the head.

struct Keys {
  even: vec4<f32>,
  odd: vec4<f32>,
}

#ifdef REQUANTIZED
#define HAS_Q8_0
#endif
#ifdef K_Q8_0
#define HAS_Q8_0
#endif
#ifdef V_Q8_0
#define HAS_Q8_0
#endif
#ifdef K_Q4_0
#define HAS_Q4_0
#endif
#ifdef V_Q4_0
#define HAS_Q4_0
#endif

#ifdef K_F32
#define K_FLOATS
fn two_keys(block: u32, slot: u32, d: u32) -> vec2<f32> {
  let at = block + d * PAGE_LEN + slot;
  return vec2(bitcast<f32>(kv[at]), bitcast<f32>(kv[at + 1u]));
}
#endif
#ifdef V_F32
#define V_FLOATS
fn value_at(block: u32, head_dim: u32, slot: u32, d: u32) -> f32 {
  return bitcast<f32>(kv[block + slot * head_dim + d]);
}
#endif

#ifdef K_F16
#define K_FLOATS
fn two_keys(block: u32, slot: u32, d: u32) -> vec2<f32> {
  return unpack2x16float(kv[block + (d * PAGE_LEN + slot) / 2u]);
}
#endif
#ifdef V_F16
#define V_FLOATS
fn value_at(block: u32, head_dim: u32, slot: u32, d: u32) -> f32 {
  let half = slot * head_dim + d;
  let pair = unpack2x16float(kv[block + half / 2u]);
  return select(pair.x, pair.y, half % 2u == 1u);
}
#endif

#ifdef K_FLOATS
fn keys_at(block: u32, head_dim: u32, slot: u32, d: u32) -> Keys {
  if (d + 4u <= head_dim) {
    let x = two_keys(block, slot, d);
    let y = two_keys(block, slot, d + 1u);
    let z = two_keys(block, slot, d + 2u);
    let w = two_keys(block, slot, d + 3u);
    return Keys(vec4(x.x, y.x, z.x, w.x), vec4(x.y, y.y, z.y, w.y));
  }
  var keys = Keys(vec4<f32>(), vec4<f32>());
  for (var i = 0u; d + i < head_dim; i++) {
    let two = two_keys(block, slot, d + i);
    keys.even[i] = two.x;
    keys.odd[i] = two.y;
  }
  return keys;
}
#endif
#ifdef V_FLOATS
fn values_at(block: u32, head_dim: u32, slot: u32, d: u32) -> vec4<f32> {
#ifdef V_F16
  if (head_dim % 4u == 0u) {
    let at = block + (slot * head_dim + d) / 2u;
    return vec4(unpack2x16float(kv[at]), unpack2x16float(kv[at + 1u]));
  }
#endif
  var values = vec4<f32>();
  for (var i = 0u; i < min(4u, head_dim - d); i++) {
    values[i] = value_at(block, head_dim, slot, d + i);
  }
  return values;
}
#endif

#ifdef HAS_Q8_0
fn bytes_of(word: u32) -> vec4<f32> {
  let x = i32(word);
  return vec4<f32>(vec4(extractBits(x, 0u, 8u), extractBits(x, 8u, 8u), extractBits(x, 16u, 8u), extractBits(x, 24u, 8u)));
}
// scales follow the bytes: (head_dim / 32, PAGE_LEN)
fn keys_of_bytes(block: u32, head_dim: u32, slot: u32, d: u32) -> Keys {
  let at = block + (d / 2u * PAGE_LEN + slot) / 2u;
  let one = bytes_of(kv[at]);
  let two = bytes_of(kv[at + PAGE_LEN / 2u]);
  let scales = unpack2x16float(kv[block + head_dim * PAGE_LEN / 4u + (d / 32u * PAGE_LEN + slot) / 2u]);
  return Keys(scales.x * vec4(one.xy, two.xy), scales.y * vec4(one.zw, two.zw));
}
fn values_of_bytes(block: u32, head_dim: u32, slot: u32, d: u32) -> vec4<f32> {
  let half = d / 32u * PAGE_LEN + slot;
  let scales = unpack2x16float(kv[block + head_dim * PAGE_LEN / 4u + half / 2u]);
  return select(scales.x, scales.y, half % 2u == 1u) * bytes_of(kv[block + (slot * head_dim + d) / 4u]);
}
#endif

#ifdef K_Q8_0
fn keys_at(block: u32, head_dim: u32, slot: u32, d: u32) -> Keys {
  return keys_of_bytes(block, head_dim, slot, d);
}
#endif
#ifdef V_Q8_0
fn values_at(block: u32, head_dim: u32, slot: u32, d: u32) -> vec4<f32> {
  return values_of_bytes(block, head_dim, slot, d);
}
#endif

#ifdef HAS_Q4_0
fn nibbles_of(word: u32, a: u32, b: u32, c: u32, d: u32) -> vec4<f32> {
  let x = vec4(extractBits(word, a, 4u), extractBits(word, b, 4u), extractBits(word, c, 4u), extractBits(word, d, 4u));
  return vec4<f32>(x) - 8.0;
}
#endif
#ifdef K_Q4_0
// low nibbles of two bytes are two elements, high nibbles the next two
fn keys_at(block: u32, head_dim: u32, slot: u32, d: u32) -> Keys {
  let word = kv[block + (d / 4u * PAGE_LEN + slot) / 2u];
  let scales = unpack2x16float(kv[block + head_dim * PAGE_LEN / 8u + (d / 32u * PAGE_LEN + slot) / 2u]);
  return Keys(scales.x * nibbles_of(word, 0u, 8u, 4u, 12u), scales.y * nibbles_of(word, 16u, 24u, 20u, 28u));
}
#endif
#ifdef V_Q4_0
// of each 32 elements the first half are the low nibbles
fn values_at(block: u32, head_dim: u32, slot: u32, d: u32) -> vec4<f32> {
  let half = d / 32u * PAGE_LEN + slot;
  let scales = unpack2x16float(kv[block + head_dim * PAGE_LEN / 8u + half / 2u]);
  let word = kv[block + ((slot * head_dim + d / 32u * 32u) / 2u + d % 16u) / 4u] >> (d / 16u % 2u * 4u);
  return select(scales.x, scales.y, half % 2u == 1u) * nibbles_of(word, 0u, 8u, 16u, 24u);
}
#endif
