//! How keys and values lie in a page, and the way in and out of it. A page holds `PAGE_LEN` positions; each head has
//! a block of keys and a block of values of its own.
//!
//! Keys lie so that scores of a page come out as one vector without a transposition, values row by row:
//!
//! | | keys | values |
//! |---|---|---|
//! | F32, F16 | (head_dim, PAGE_LEN) | (PAGE_LEN, head_dim) |
//! | Q8_0 | (head_dim / 2, PAGE_LEN, 2) bytes: pairs of elements | (PAGE_LEN, head_dim) bytes |
//! | Q4_0 | (head_dim / 4, PAGE_LEN, 2) bytes: low nibbles two elements, high nibbles the next two | (PAGE_LEN, head_dim / 2) bytes: of each 16 the low nibbles, then the high ones |
//!
//! Q8_0 and Q4_0 have an f16 scale for each 32 elements of a head; all of a block lie behind its integers:
//! (head_dim / 32, PAGE_LEN). Integers and scales are those of the weight formats of that name.

use std::ops::Range;

use weights::DType;

use super::OpRow;
use crate::cpu::arena::{view, view_mut};
pub use crate::f16_convert::{F16_CONVERT, F16Convert};
use crate::graph::{KvDType, KvLayerLayout, MAX_HEAD_DIM, PAGE_LEN};

pub static ROW: OpRow = OpRow { name: "kv_write", formula: "store[position] = (k, v)" };

/// Lanes of the shader for a row of a layer: as many as it has pieces of keys and of values.
pub fn shader_lanes(layout: &KvLayerLayout) -> usize {
    let of_piece = match layout.dtype {
        KvDType::F32 | KvDType::F16 => 2,
        KvDType::Q8_0 | KvDType::Q4_0 => BLOCK_LEN,
    };
    2 * layout.n_kv_heads * layout.head_dim.div_ceil(of_piece)
}

/// What the shaders of pages are compiled with.
pub fn shader_define(dtype: KvDType) -> &'static [&'static str] {
    match dtype {
        KvDType::F32 => &["KV_F32"],
        KvDType::F16 => &["KV_F16"],
        KvDType::Q8_0 => &["KV_Q8_0"],
        KvDType::Q4_0 => &["KV_Q4_0"],
    }
}

/// A block format as it lies in files: what a row of a head is encoded to before it is laid out in a page.
struct Quants {
    dtype: DType,
    /// bytes of the integers of a block of 32, which follow the scale
    n_bytes: usize,
}

const Q8_0: Quants = Quants { dtype: DType::Q8_0, n_bytes: 32 };
const Q4_0: Quants = Quants { dtype: DType::Q4_0, n_bytes: 16 };

/// Elements, and slots, that share a scale's line.
const BLOCK_LEN: usize = 32;
const SCALE_BYTES: usize = 2;
/// Bytes of the longest row.
const MAX_ROW_BYTES: usize = MAX_HEAD_DIM / BLOCK_LEN * (SCALE_BYTES + 32);

impl Quants {
    fn block_bytes(&self) -> usize {
        SCALE_BYTES + self.n_bytes
    }

    /// Where the scale of block `block` of the row in `slot` lies, in a block of a page.
    fn scale(&self, head_dim: usize, block: usize, slot: usize) -> Range<usize> {
        let at = PAGE_LEN * head_dim / BLOCK_LEN * self.n_bytes + (block * PAGE_LEN + slot) * SCALE_BYTES;
        at..at + SCALE_BYTES
    }

    /// Where the integers of block `block` of a value in `slot` lie.
    fn value(&self, head_dim: usize, block: usize, slot: usize) -> Range<usize> {
        let at = (slot * (head_dim / BLOCK_LEN) + block) * self.n_bytes;
        at..at + self.n_bytes
    }

    /// Where byte `i` of the integers of block `block` of a key in `slot` lies.
    fn key(&self, block: usize, slot: usize, i: usize) -> usize {
        ((block * self.n_bytes + i) / 2 * PAGE_LEN + slot) * 2 + i % 2
    }

    fn encode(&self, x: &[f32], row: &mut [u8]) {
        (self.dtype.encoder().expect("the formats that KV uses have encoders"))(x, row);
    }

    fn decode(&self, row: &[u8], x: &mut [f32]) {
        (self.dtype.codec().expect("the formats that KV uses have codecs").decode)(row, x);
    }

    fn store_value(&self, x: &[f32], slot: usize, page: &mut [u8]) {
        let mut row = [0; MAX_ROW_BYTES];
        let row = &mut row[..self.dtype.row_bytes(x.len())];
        self.encode(x, row);
        for (i, block) in row.chunks_exact(self.block_bytes()).enumerate() {
            page[self.scale(x.len(), i, slot)].copy_from_slice(&block[..SCALE_BYTES]);
            page[self.value(x.len(), i, slot)].copy_from_slice(&block[SCALE_BYTES..]);
        }
    }

    fn store_key(&self, x: &[f32], slot: usize, page: &mut [u8]) {
        let mut row = [0; MAX_ROW_BYTES];
        let row = &mut row[..self.dtype.row_bytes(x.len())];
        self.encode(x, row);
        for (i, block) in row.chunks_exact_mut(self.block_bytes()).enumerate() {
            page[self.scale(x.len(), i, slot)].copy_from_slice(&block[..SCALE_BYTES]);
            self.to_key(&mut block[SCALE_BYTES..]);
            for (j, byte) in block[SCALE_BYTES..].iter().enumerate() {
                page[self.key(i, slot, j)] = *byte;
            }
        }
    }

    /// out (n, head_dim)
    fn load_values(&self, page: &[u8], head_dim: usize, out: &mut [f32]) {
        let mut row = [0; MAX_ROW_BYTES];
        let row = &mut row[..self.dtype.row_bytes(head_dim)];
        for (slot, out) in out.chunks_exact_mut(head_dim).enumerate() {
            for (i, block) in row.chunks_exact_mut(self.block_bytes()).enumerate() {
                block[..SCALE_BYTES].copy_from_slice(&page[self.scale(head_dim, i, slot)]);
                block[SCALE_BYTES..].copy_from_slice(&page[self.value(head_dim, i, slot)]);
            }
            self.decode(row, out);
        }
    }

    /// out (head_dim, PAGE_LEN)
    fn load_keys(&self, page: &[u8], head_dim: usize, out: &mut [f32]) {
        let (mut row, mut x) = ([0; MAX_ROW_BYTES], [0.0; MAX_HEAD_DIM]);
        let (row, x) = (&mut row[..self.dtype.row_bytes(head_dim)], &mut x[..head_dim]);
        for slot in 0..PAGE_LEN {
            for (i, block) in row.chunks_exact_mut(self.block_bytes()).enumerate() {
                block[..SCALE_BYTES].copy_from_slice(&page[self.scale(head_dim, i, slot)]);
                for (j, byte) in block[SCALE_BYTES..].iter_mut().enumerate() {
                    *byte = page[self.key(i, slot, j)];
                }
                self.take_from_key(&mut block[SCALE_BYTES..]);
            }
            self.decode(row, x);
            for (d, x) in x.iter().enumerate() {
                out[d * PAGE_LEN + slot] = *x;
            }
        }
    }

    /// Element `i` of a block of nibbles as it lies in a key: byte and shift.
    fn nibble_of_key(i: usize) -> (usize, u32) {
        (i / 4 * 2 + i % 2, if i % 4 < 2 { 0 } else { 4 })
    }

    /// Element `i` of a block of nibbles as it lies in a file.
    fn nibble_of_file(i: usize) -> (usize, u32) {
        (i % 16, if i < 16 { 0 } else { 4 })
    }

    /// The integers of a block from the order of files to that of keys.
    fn to_key(&self, integers: &mut [u8]) {
        self.reorder(integers, Self::nibble_of_file, Self::nibble_of_key);
    }

    /// And back.
    fn take_from_key(&self, integers: &mut [u8]) {
        self.reorder(integers, Self::nibble_of_key, Self::nibble_of_file);
    }

    fn reorder(&self, integers: &mut [u8], from: fn(usize) -> (usize, u32), to: fn(usize) -> (usize, u32)) {
        if self.n_bytes == BLOCK_LEN {
            return; // whole bytes lie in order
        }
        let mut out = [0; BLOCK_LEN / 2];
        for i in 0..BLOCK_LEN {
            let ((at, shift), (to, left)) = (from(i), to(i));
            out[to] |= (integers[at] >> shift & 15) << left;
        }
        integers.copy_from_slice(&out);
    }
}

/// Key `x` (head_dim) into `slot` of a block of keys.
pub fn store_key(halves: F16Convert, dtype: KvDType, x: &[f32], slot: usize, block: &mut [u8]) {
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
        KvDType::Q8_0 => Q8_0.store_key(x, slot, block),
        KvDType::Q4_0 => Q4_0.store_key(x, slot, block),
    }
}

/// Value `x` (head_dim) into `slot` of a block of values.
pub fn store_value(halves: F16Convert, dtype: KvDType, x: &[f32], slot: usize, block: &mut [u8]) {
    let at = slot * x.len()..(slot + 1) * x.len();
    match dtype {
        KvDType::F32 => view_mut::<f32>(block)[at].copy_from_slice(x),
        KvDType::F16 => (halves.from_f32)(x, &mut view_mut::<u16>(block)[at]),
        KvDType::Q8_0 => Q8_0.store_value(x, slot, block),
        KvDType::Q4_0 => Q4_0.store_value(x, slot, block),
    }
}

/// Keys of a block: out (head_dim, PAGE_LEN). Slots never written hold anything.
pub fn load_keys(halves: F16Convert, dtype: KvDType, block: &[u8], head_dim: usize, out: &mut [f32]) {
    match dtype {
        KvDType::F32 => out.copy_from_slice(view(block)),
        KvDType::F16 => (halves.to_f32)(view(block), out),
        KvDType::Q8_0 => Q8_0.load_keys(block, head_dim, out),
        KvDType::Q4_0 => Q4_0.load_keys(block, head_dim, out),
    }
}

/// The first values of a block: out (n, head_dim).
pub fn load_values(halves: F16Convert, dtype: KvDType, block: &[u8], head_dim: usize, out: &mut [f32]) {
    match dtype {
        KvDType::F32 => out.copy_from_slice(&view(block)[..out.len()]),
        KvDType::F16 => (halves.to_f32)(&view(block)[..out.len()], out),
        KvDType::Q8_0 => Q8_0.load_values(block, head_dim, out),
        KvDType::Q4_0 => Q4_0.load_values(block, head_dim, out),
    }
}
