//! The layout of keys and values in a page, with encoding and decoding. A page holds `PAGE_LEN` positions; each head has
//! one block of keys and one block of values.
//!
//! Keys are stored transposed, so that the scores of a page are one vector; values are stored row by row:
//!
//! | | keys | values |
//! |---|---|---|
//! | F32, F16 | (head_dim, PAGE_LEN) | (PAGE_LEN, head_dim) |
//! | Q8_0 | (head_dim / 2, PAGE_LEN, 2) bytes: pairs of elements | (PAGE_LEN, head_dim) bytes |
//! | Q4_0 | (head_dim / 4, PAGE_LEN, 2) bytes: low nibbles two elements, high nibbles the next two | (PAGE_LEN, head_dim / 2) bytes: of each 16 the low nibbles, then the high ones |
//!
//! Q8_0 and Q4_0 have an f16 scale per 32 elements of a head. All scales of a block follow its integers:
//! (head_dim / 32, PAGE_LEN). Integers and scales are those of the weight formats of that name.

use std::ops::Range;

use weights::DType;

use super::OpRow;
use crate::cpu::arena::{view, view_mut};
pub use crate::f16_convert::{F16_CONVERT, F16Convert};
use crate::graph::{KvDType, KvLayerLayout, KvPrecision, MAX_HEAD_DIM, PAGE_LEN};

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "kv_write", formula: "store[position] = (k, v)" };

/// Lanes of the shader per row of a layer: one for each piece of its keys and values.
pub fn shader_lanes(layout: &KvLayerLayout) -> usize {
    let KvPrecision { keys, values } = layout.precision;
    let of_piece = if keys.is_quantized() || values.is_quantized() { BLOCK_LEN } else { 2 };
    2 * layout.n_kv_heads * layout.head_dim.div_ceil(of_piece)
}

/// The definitions of shaders that access pages: the formats of keys and values, and some more.
macro_rules! page_defines {
    ($precision:expr $(, $more:literal)*) => {
        match ($precision.keys, $precision.values) {
            (KvDType::F32, KvDType::F32) => &["K_F32", "V_F32" $(, $more)*],
            (KvDType::F32, KvDType::F16) => &["K_F32", "V_F16" $(, $more)*],
            (KvDType::F32, KvDType::Q8_0) => &["K_F32", "V_Q8_0" $(, $more)*],
            (KvDType::F32, KvDType::Q4_0) => &["K_F32", "V_Q4_0" $(, $more)*],
            (KvDType::F16, KvDType::F32) => &["K_F16", "V_F32" $(, $more)*],
            (KvDType::F16, KvDType::F16) => &["K_F16", "V_F16" $(, $more)*],
            (KvDType::F16, KvDType::Q8_0) => &["K_F16", "V_Q8_0" $(, $more)*],
            (KvDType::F16, KvDType::Q4_0) => &["K_F16", "V_Q4_0" $(, $more)*],
            (KvDType::Q8_0, KvDType::F32) => &["K_Q8_0", "V_F32" $(, $more)*],
            (KvDType::Q8_0, KvDType::F16) => &["K_Q8_0", "V_F16" $(, $more)*],
            (KvDType::Q8_0, KvDType::Q8_0) => &["K_Q8_0", "V_Q8_0" $(, $more)*],
            (KvDType::Q8_0, KvDType::Q4_0) => &["K_Q8_0", "V_Q4_0" $(, $more)*],
            (KvDType::Q4_0, KvDType::F32) => &["K_Q4_0", "V_F32" $(, $more)*],
            (KvDType::Q4_0, KvDType::F16) => &["K_Q4_0", "V_F16" $(, $more)*],
            (KvDType::Q4_0, KvDType::Q8_0) => &["K_Q4_0", "V_Q8_0" $(, $more)*],
            (KvDType::Q4_0, KvDType::Q4_0) => &["K_Q4_0", "V_Q4_0" $(, $more)*],
        }
    };
}
pub(crate) use page_defines;

/// Definitions of the shaders that write pages.
pub fn shader_defines(precision: KvPrecision) -> &'static [&'static str] {
    page_defines!(precision)
}

/// A block format of weight files, to which a row of a head is encoded before it is stored in a page.
struct KvBlockFormat {
    dtype: DType,
    /// bytes of a block's 32 integers, which follow the scale
    n_bytes: usize,
}

const Q8_0: KvBlockFormat = KvBlockFormat { dtype: DType::Q8_0, n_bytes: 32 };
const Q4_0: KvBlockFormat = KvBlockFormat { dtype: DType::Q4_0, n_bytes: 16 };

/// Elements per scale.
const BLOCK_LEN: usize = 32;
const SCALE_BYTES: usize = 2;
/// Bytes of the longest encoded row.
const MAX_ROW_BYTES: usize = MAX_HEAD_DIM / BLOCK_LEN * (SCALE_BYTES + 32);

impl KvBlockFormat {
    fn block_bytes(&self) -> usize {
        SCALE_BYTES + self.n_bytes
    }

    /// The scale of block `block` of the row in `slot`.
    fn scale(&self, head_dim: usize, block: usize, slot: usize) -> Range<usize> {
        let at = PAGE_LEN * head_dim / BLOCK_LEN * self.n_bytes + (block * PAGE_LEN + slot) * SCALE_BYTES;
        at..at + SCALE_BYTES
    }

    /// The integers of block `block` of the value in `slot`.
    fn value(&self, head_dim: usize, block: usize, slot: usize) -> Range<usize> {
        let at = (slot * (head_dim / BLOCK_LEN) + block) * self.n_bytes;
        at..at + self.n_bytes
    }

    /// The position of byte `i` of the integers of block `block` of the key in `slot`.
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
            self.file_to_key_order(&mut block[SCALE_BYTES..]);
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
                self.key_to_file_order(&mut block[SCALE_BYTES..]);
            }
            self.decode(row, x);
            for (d, x) in x.iter().enumerate() {
                out[d * PAGE_LEN + slot] = *x;
            }
        }
    }

    /// Byte and shift of element `i` of a block of nibbles in a key.
    fn nibble_of_key(i: usize) -> (usize, u32) {
        (i / 4 * 2 + i % 2, if i % 4 < 2 { 0 } else { 4 })
    }

    /// Byte and shift of element `i` of a block of nibbles in a file.
    fn nibble_of_file(i: usize) -> (usize, u32) {
        (i % 16, if i < 16 { 0 } else { 4 })
    }

    /// Reorders the integers of a block from the order of files to that of keys.
    fn file_to_key_order(&self, integers: &mut [u8]) {
        self.reorder(integers, Self::nibble_of_file, Self::nibble_of_key);
    }

    /// Reorders the integers of a block from the order of keys to that of files.
    fn key_to_file_order(&self, integers: &mut [u8]) {
        self.reorder(integers, Self::nibble_of_key, Self::nibble_of_file);
    }

    fn reorder(&self, integers: &mut [u8], from: fn(usize) -> (usize, u32), to: fn(usize) -> (usize, u32)) {
        if self.n_bytes == BLOCK_LEN {
            return; // bytes have the same order in both
        }
        let mut out = [0; BLOCK_LEN / 2];
        for i in 0..BLOCK_LEN {
            let ((at, shift), (to, left)) = (from(i), to(i));
            out[to] |= (integers[at] >> shift & 15) << left;
        }
        integers.copy_from_slice(&out);
    }
}

/// Stores key `x` (head_dim) in `slot` of a block of keys.
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

/// Stores value `x` (head_dim) in `slot` of a block of values.
pub fn store_value(halves: F16Convert, dtype: KvDType, x: &[f32], slot: usize, block: &mut [u8]) {
    let at = slot * x.len()..(slot + 1) * x.len();
    match dtype {
        KvDType::F32 => view_mut::<f32>(block)[at].copy_from_slice(x),
        KvDType::F16 => (halves.from_f32)(x, &mut view_mut::<u16>(block)[at]),
        KvDType::Q8_0 => Q8_0.store_value(x, slot, block),
        KvDType::Q4_0 => Q4_0.store_value(x, slot, block),
    }
}

/// Decodes the keys of a block: out (head_dim, PAGE_LEN). Slots that were never written are undefined.
pub fn load_keys(halves: F16Convert, dtype: KvDType, block: &[u8], head_dim: usize, out: &mut [f32]) {
    match dtype {
        KvDType::F32 => out.copy_from_slice(view(block)),
        KvDType::F16 => (halves.to_f32)(view(block), out),
        KvDType::Q8_0 => Q8_0.load_keys(block, head_dim, out),
        KvDType::Q4_0 => Q4_0.load_keys(block, head_dim, out),
    }
}

/// Decodes the first values of a block: out (n, head_dim)
pub fn load_values(halves: F16Convert, dtype: KvDType, block: &[u8], head_dim: usize, out: &mut [f32]) {
    match dtype {
        KvDType::F32 => out.copy_from_slice(&view(block)[..out.len()]),
        KvDType::F16 => (halves.to_f32)(&view(block)[..out.len()], out),
        KvDType::Q8_0 => Q8_0.load_values(block, head_dim, out),
        KvDType::Q4_0 => Q4_0.load_values(block, head_dim, out),
    }
}
