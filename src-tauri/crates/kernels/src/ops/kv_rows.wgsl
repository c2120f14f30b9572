// Elements of a block of a page: the keys, or the values, of one head at PAGE_LEN positions, as `kv_write.rs` lays
// them out. `kv` is declared by whoever imports this; `block` is the block's first word.

#ifdef KV_F32
fn key_at(block: u32, head_dim: u32, slot: u32, d: u32) -> f32 {
  return bitcast<f32>(kv[block + d * PAGE_LEN + slot]);
}
fn value_at(block: u32, head_dim: u32, slot: u32, d: u32) -> f32 {
  return bitcast<f32>(kv[block + slot * head_dim + d]);
}
#endif

#ifndef KV_F32
fn half_at(block: u32, half: u32) -> f32 {
  let pair = unpack2x16float(kv[block + half / 2u]);
  return select(pair.x, pair.y, half % 2u == 1u);
}
#endif

#ifdef KV_F16
fn key_at(block: u32, head_dim: u32, slot: u32, d: u32) -> f32 {
  return half_at(block, d * PAGE_LEN + slot);
}
fn value_at(block: u32, head_dim: u32, slot: u32, d: u32) -> f32 {
  return half_at(block, slot * head_dim + d);
}
#endif

#ifdef KV_Q8_0
// scales lie behind the bytes: (head_dim / 32, PAGE_LEN)
fn scale_at(block: u32, head_dim: u32, slot: u32, d: u32) -> f32 {
  return half_at(block + head_dim * PAGE_LEN / 4u, d / 32u * PAGE_LEN + slot);
}
fn byte_at(block: u32, at: u32) -> f32 {
  return f32(extractBits(i32(kv[block + at / 4u]), at % 4u * 8u, 8u));
}
fn key_at(block: u32, head_dim: u32, slot: u32, d: u32) -> f32 {
  return scale_at(block, head_dim, slot, d) * byte_at(block, (d / 2u * PAGE_LEN + slot) * 2u + d % 2u);
}
fn value_at(block: u32, head_dim: u32, slot: u32, d: u32) -> f32 {
  return scale_at(block, head_dim, slot, d) * byte_at(block, slot * head_dim + d);
}
#endif

#ifdef KV_Q4_0
fn scale_at(block: u32, head_dim: u32, slot: u32, d: u32) -> f32 {
  return half_at(block + head_dim * PAGE_LEN / 8u, d / 32u * PAGE_LEN + slot);
}
fn nibble_at(block: u32, byte: u32, shift: u32) -> f32 {
  return f32(extractBits(kv[block + byte / 4u], byte % 4u * 8u + shift, 4u)) - 8.0;
}
// low nibbles of two bytes are two elements, high nibbles the next two
fn key_at(block: u32, head_dim: u32, slot: u32, d: u32) -> f32 {
  let byte = (d / 4u * PAGE_LEN + slot) * 2u + d % 2u;
  return scale_at(block, head_dim, slot, d) * nibble_at(block, byte, d / 2u % 2u * 4u);
}
// of each 32 the first half are the low nibbles
fn value_at(block: u32, head_dim: u32, slot: u32, d: u32) -> f32 {
  let byte = (slot * head_dim + d / 32u * 32u) / 2u + d % 16u;
  return scale_at(block, head_dim, slot, d) * nibble_at(block, byte, d / 16u % 2u * 4u);
}
#endif
