//! How keys and values lie in a page, and the way in and out of it. A page holds `PAGE_LEN` positions; each head has
//! a block of keys and a block of values of its own.
//!
//! F32, F16: keys as (head_dim, PAGE_LEN), so that scores of a page come out as one vector without a transposition;
//! values as (PAGE_LEN, head_dim). Q8_0, Q4_0: both as (PAGE_LEN, head_dim) in blocks of 32 along the head.

use weights::DType;

use super::OpRow;
use crate::cpu::arena::{view, view_mut};
pub use crate::cpu::halves::{HALVES, Halves};
use crate::graph::{KvDType, PAGE_LEN};

pub static ROW: OpRow = OpRow { name: "kv_write", formula: "store[position] = (k, v)" };

/// Elements that are stored together: a head must be a whole number of them.
pub fn block_len(dtype: KvDType) -> usize {
    match dtype {
        KvDType::F32 | KvDType::F16 => 1,
        KvDType::Q8_0 | KvDType::Q4_0 => 32,
    }
}

/// Bytes of one position of one head, keys or values.
pub fn row_bytes(dtype: KvDType, head_dim: usize) -> usize {
    match dtype {
        KvDType::F32 => head_dim * 4,
        KvDType::F16 => head_dim * 2,
        KvDType::Q8_0 => DType::Q8_0.row_bytes(head_dim),
        KvDType::Q4_0 => DType::Q4_0.row_bytes(head_dim),
    }
}

/// A block format's own codec.
fn codec(dtype: DType) -> &'static weights::Codec {
    dtype.codec().expect("the formats that KV uses have codecs")
}

fn encoder(dtype: DType) -> weights::Encode {
    dtype.encoder().expect("the formats that KV uses have encoders")
}

/// Key `x` (head_dim) into `slot` of a block of keys.
pub fn store_key(halves: Halves, dtype: KvDType, x: &[f32], slot: usize, block: &mut [u8]) {
    match dtype {
        KvDType::F32 => {
            let block = view_mut::<f32>(block);
            for (d, x) in x.iter().enumerate() {
                block[d * PAGE_LEN + slot] = *x;
            }
        }
        KvDType::F16 => {
            let block = view_mut::<u16>(block);
            let mut half = [0u16; 64];
            for (part, x) in x.chunks(half.len()).enumerate() {
                (halves.from_f32)(x, &mut half[..x.len()]);
                for (d, h) in half[..x.len()].iter().enumerate() {
                    block[(part * half.len() + d) * PAGE_LEN + slot] = *h;
                }
            }
        }
        KvDType::Q8_0 | KvDType::Q4_0 => store_value(halves, dtype, x, slot, block),
    }
}

/// Value `x` (head_dim) into `slot` of a block of values.
pub fn store_value(halves: Halves, dtype: KvDType, x: &[f32], slot: usize, block: &mut [u8]) {
    let n = row_bytes(dtype, x.len());
    let row = &mut block[slot * n..(slot + 1) * n];
    match dtype {
        KvDType::F32 => view_mut::<f32>(row).copy_from_slice(x),
        KvDType::F16 => (halves.from_f32)(x, view_mut::<u16>(row)),
        KvDType::Q8_0 => encoder(DType::Q8_0)(x, row),
        KvDType::Q4_0 => encoder(DType::Q4_0)(x, row),
    }
}

/// Keys of a block: out (head_dim, PAGE_LEN). Slots never written hold anything.
pub fn load_keys(halves: Halves, dtype: KvDType, block: &[u8], head_dim: usize, out: &mut [f32]) {
    match dtype {
        KvDType::F32 => out.copy_from_slice(view(block)),
        KvDType::F16 => (halves.to_f32)(view(block), out),
        KvDType::Q8_0 => load_transposed(DType::Q8_0, block, head_dim, out),
        KvDType::Q4_0 => load_transposed(DType::Q4_0, block, head_dim, out),
    }
}

fn load_transposed(dtype: DType, block: &[u8], head_dim: usize, out: &mut [f32]) {
    let mut row = [0.0; crate::graph::MAX_HEAD_DIM];
    for (slot, bytes) in block.chunks_exact(dtype.row_bytes(head_dim)).enumerate() {
        (codec(dtype).decode)(bytes, &mut row[..head_dim]);
        for (d, x) in row[..head_dim].iter().enumerate() {
            out[d * PAGE_LEN + slot] = *x;
        }
    }
}

/// The first `n` values of a block: out (n, head_dim).
pub fn load_values(halves: Halves, dtype: KvDType, block: &[u8], head_dim: usize, out: &mut [f32]) {
    let bytes = &block[..out.len() / head_dim * row_bytes(dtype, head_dim)];
    match dtype {
        KvDType::F32 => out.copy_from_slice(view(bytes)),
        KvDType::F16 => (halves.to_f32)(view(bytes), out),
        KvDType::Q8_0 => (codec(DType::Q8_0).decode)(bytes, out),
        KvDType::Q4_0 => (codec(DType::Q4_0).decode)(bytes, out),
    }
}
