//! The layout of weights in GPU memory: row by row, integers in order and apart from their scales.
//! A lane thus reads 32 elements in whole loads of four words. A WGSL file per format decodes them. Formats
//! without one are converted to f16 on upload, so that every format with a codec is supported.

use half::f16;
use weights::DType;
use weights::quant::q4_k::scale_min;

use super::partial_sums::BLOCK;
use crate::tensor::Tensor;

/// A layout of weight rows.
pub struct Packing {
    /// Name of the WGSL file that decodes it.
    pub name: &'static str,
    /// WGSL source; declares `weights32(row, block)`.
    pub source: &'static str,
    /// Returns the words of a row of k elements.
    words: fn(k: usize) -> usize,
    /// Packs a row into zeroed words.
    pack: PackMethod,
}

#[derive(Clone, Copy)]
enum PackMethod {
    /// Packs the bytes of a row of `k` elements as stored in its file.
    Row(fn(row: &[u8], k: usize, out: &mut [u32])),
    /// Decodes the row to floats and stores them as f16.
    Halves,
}

macro_rules! packing {
    ($name:literal, $words:expr, $pack:expr) => {
        Packing { name: $name, source: include_str!(concat!($name, ".wgsl")), words: $words, pack: $pack }
    };
}

static F32: Packing = packing!("f32", |k| k.next_multiple_of(BLOCK), PackMethod::Row(copy_bytes));
static F16: Packing = packing!("f16", |k| k.next_multiple_of(BLOCK) / 2, PackMethod::Row(copy_bytes));
static BF16: Packing = packing!("bf16", |k| k.next_multiple_of(BLOCK) / 2, PackMethod::Row(copy_bytes));
static HALVES: Packing = packing!("f16", |k| k.next_multiple_of(BLOCK) / 2, PackMethod::Halves);
static Q8_0: Packing = packing!("q8_0", |k| k / 4 + (k / 32).div_ceil(2), PackMethod::Row(q8_0));
static Q4_0: Packing = packing!("q4_0", |k| k / 8 + (k / 32).div_ceil(2), PackMethod::Row(q4_0));
static Q4_1: Packing = packing!("q4_1", |k| k / 8 + k / 32, PackMethod::Row(q4_1));
static Q5_0: Packing = packing!("q5_0", |k| k / 8 + k / 32 + (k / 32).div_ceil(2), PackMethod::Row(q5_0));
static Q5_1: Packing = packing!("q5_1", |k| k / 8 + 2 * (k / 32), PackMethod::Row(q5_1));
static Q4_K: Packing = packing!("q4_k", |k| k / 8 + k / 256 * 5, PackMethod::Row(q4_k));
static Q5_K: Packing = packing!("q5_k", |k| k / 8 + k / 32 + k / 256 * 5, PackMethod::Row(q5_k));
static Q6_K: Packing =
    packing!("q6_k", |k| k / 8 + k / 16 + k / 64 + (k / 256).div_ceil(2), PackMethod::Row(q6_k));
static MXFP4: Packing = packing!("mxfp4", |k| k / 8 + (k / 32).div_ceil(4), PackMethod::Row(mxfp4));
static IQ4_NL: Packing = packing!("iq4_nl", |k| k / 8 + (k / 32).div_ceil(2), PackMethod::Row(q4_0));

/// All layouts.
pub static PACKINGS: [&Packing; 13] =
    [&F32, &F16, &BF16, &Q8_0, &Q4_0, &Q4_1, &Q5_0, &Q5_1, &Q4_K, &Q5_K, &Q6_K, &MXFP4, &IQ4_NL];

/// Rows start at a multiple of this many words: the load width of a GPU.
pub const ALIGN_WORDS: usize = 4;

/// Returns the layout of a format.
pub fn packing(dtype: DType) -> &'static Packing {
    match dtype {
        DType::F32 => &F32,
        DType::F16 => &F16,
        DType::BF16 => &BF16,
        DType::Q8_0 => &Q8_0,
        DType::Q4_0 => &Q4_0,
        DType::Q4_1 => &Q4_1,
        DType::Q5_0 => &Q5_0,
        DType::Q5_1 => &Q5_1,
        DType::Q4_K => &Q4_K,
        DType::Q5_K => &Q5_K,
        DType::Q6_K => &Q6_K,
        DType::MXFP4 => &MXFP4,
        DType::IQ4_NL => &IQ4_NL,
        _ => &HALVES,
    }
}

/// Returns whether the GPU stores every weight of the format exactly, without rounding.
pub fn is_exact(dtype: DType) -> bool {
    !std::ptr::eq(packing(dtype), fallback())
}

/// Returns the layout to which every format can be converted.
pub fn fallback() -> &'static Packing {
    &HALVES
}

impl Packing {
    /// Returns the words of a row of `k` elements.
    pub fn row_words(&self, k: usize) -> usize {
        (self.words)(k).next_multiple_of(ALIGN_WORDS)
    }

    /// Packs one row of `tensor` into `out` (row_words); `floats` (k) is scratch.
    pub fn pack(&self, tensor: &Tensor, row: usize, floats: &mut [f32], out: &mut [u32]) {
        out.fill(0);
        match self.pack {
            PackMethod::Row(pack) => {
                let n = tensor.row_bytes();
                pack(&tensor.bytes()[row * n..(row + 1) * n], tensor.n_cols(), out);
            }
            PackMethod::Halves => {
                tensor.decode_row(row, floats);
                for (i, x) in floats.iter().enumerate() {
                    set_half(out, 0, i, f16::from_f32(*x).to_bits());
                }
            }
        }
    }
}

/// Copies bytes in order.
fn copy_bytes(row: &[u8], _k: usize, out: &mut [u32]) {
    let (words, rest) = row.as_chunks::<4>();
    out.iter_mut().zip(words).for_each(|(out, word)| *out = u32::from_le_bytes(*word));
    if let [low, high] = rest {
        out[words.len()] = u32::from_le_bytes([*low, *high, 0, 0]);
    }
}

fn half_at(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

fn set_half(out: &mut [u32], first: usize, at: usize, half: u16) {
    out[first + at / 2] |= u32::from(half) << (at % 2 * 16);
}

fn set_byte(out: &mut [u32], first: usize, at: usize, byte: u8) {
    out[first + at / 4] |= u32::from(byte) << (at % 4 * 8);
}

/// Stores the low nibbles of `bytes` at word `low` and the high nibbles at word `high`.
fn spread_nibbles(bytes: &[u8], out: &mut [u32], low: usize, high: usize) {
    for (i, eight) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let (mut a, mut b) = (0, 0);
        for (j, byte) in eight.iter().enumerate() {
            a |= u32::from(byte & 15) << (4 * j);
            b |= u32::from(byte >> 4) << (4 * j);
        }
        out[low + i] = a;
        out[high + i] = b;
    }
}

fn q8_0(row: &[u8], k: usize, out: &mut [u32]) {
    for (b, block) in row.as_chunks::<34>().0.iter().enumerate() {
        copy_bytes(&block[2..], 32, &mut out[b * 8..b * 8 + 8]);
        set_half(out, k / 4, b, half_at(block, 0));
    }
}

/// Packs IQ4_NL too.
fn q4_0(row: &[u8], k: usize, out: &mut [u32]) {
    for (b, block) in row.as_chunks::<18>().0.iter().enumerate() {
        spread_nibbles(&block[2..], out, b * 4, b * 4 + 2);
        set_half(out, k / 8, b, half_at(block, 0));
    }
}

fn q4_1(row: &[u8], k: usize, out: &mut [u32]) {
    for (b, block) in row.as_chunks::<20>().0.iter().enumerate() {
        spread_nibbles(&block[4..], out, b * 4, b * 4 + 2);
        copy_bytes(&block[..4], 2, &mut out[k / 8 + b..]);
    }
}

fn q5_0(row: &[u8], k: usize, out: &mut [u32]) {
    for (b, block) in row.as_chunks::<22>().0.iter().enumerate() {
        spread_nibbles(&block[6..], out, b * 4, b * 4 + 2);
        copy_bytes(&block[2..6], 2, &mut out[k / 8 + b..]);
        set_half(out, k / 8 + k / 32, b, half_at(block, 0));
    }
}

fn q5_1(row: &[u8], k: usize, out: &mut [u32]) {
    for (b, block) in row.as_chunks::<24>().0.iter().enumerate() {
        spread_nibbles(&block[8..], out, b * 4, b * 4 + 2);
        copy_bytes(&block[4..8], 2, &mut out[k / 8 + b..]);
        copy_bytes(&block[..4], 2, &mut out[k / 8 + k / 32 + b..]);
    }
}

/// Stores the scales, mins, d and dmin of a 256-element block.
fn pack_k_header(header: &[u8], out: &mut [u32]) {
    for group in 0..8 {
        let (scale, min) = scale_min(&header[4..], group);
        set_byte(out, 0, group, scale);
        set_byte(out, 2, group, min);
    }
    copy_bytes(&header[..4], 2, &mut out[4..5]);
}

/// Stores four pairs of groups of 32; low nibbles are the first of a pair.
fn pairs_of_groups(bytes: &[u8], block: usize, out: &mut [u32]) {
    for (pair, bytes) in bytes.chunks_exact(32).enumerate() {
        let at = block * 32 + pair * 8;
        spread_nibbles(bytes, out, at, at + 4);
    }
}

fn q4_k(row: &[u8], k: usize, out: &mut [u32]) {
    for (b, block) in row.as_chunks::<144>().0.iter().enumerate() {
        pairs_of_groups(&block[16..], b, out);
        pack_k_header(&block[..16], &mut out[k / 8 + b * 5..]);
    }
}

fn q5_k(row: &[u8], k: usize, out: &mut [u32]) {
    for (b, block) in row.as_chunks::<176>().0.iter().enumerate() {
        pairs_of_groups(&block[48..], b, out);
        for group in 0..8 {
            let bits = block[16..48].iter().enumerate();
            out[k / 8 + b * 8 + group] =
                bits.fold(0, |word, (i, byte)| word | u32::from(byte >> group & 1) << i);
        }
        pack_k_header(&block[..16], &mut out[k / 8 + k / 32 + b * 5..]);
    }
}

fn q6_k(row: &[u8], k: usize, out: &mut [u32]) {
    for (b, block) in row.as_chunks::<210>().0.iter().enumerate() {
        for half in 0..2 {
            // elements l and l + 32 are the low nibbles of 64 bytes, l + 64 and l + 96 the high ones
            let at = b * 32 + half * 16;
            spread_nibbles(&block[half * 64..(half + 1) * 64], out, at, at + 8);
            for l in 0..32 {
                for quarter in 0..4 {
                    let bits = u32::from(block[128 + half * 32 + l] >> (2 * quarter) & 3);
                    let element = b * 256 + half * 128 + quarter * 32 + l;
                    out[k / 8 + element / 16] |= bits << (element % 16 * 2);
                }
            }
        }
        let scales = k / 8 + k / 16;
        copy_bytes(&block[192..208], 8, &mut out[scales + b * 4..]);
        set_half(out, scales + k / 64, b, half_at(block, 208));
    }
}

fn mxfp4(row: &[u8], k: usize, out: &mut [u32]) {
    for (b, block) in row.as_chunks::<17>().0.iter().enumerate() {
        spread_nibbles(&block[1..], out, b * 4, b * 4 + 2);
        set_byte(out, k / 8, b, block[0]);
    }
}
