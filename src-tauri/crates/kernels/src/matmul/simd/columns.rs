//! AVX2 inner loops in assembly: transposed columns of two panels times four tokens.
//! The instruction count bounds these loops: a processor starts about four vector instructions a cycle, loads
//! included.
//! A compiler reorders the additions, spills from the 16 registers and takes 10 to 30 % longer.

use std::arch::asm;
use std::arch::x86_64::*;

use super::{ColumnGroups, MAX_ROWS};
use crate::matmul::packed_activations::PACK_TOKENS;

/// (panels, tokens): sums.
pub type ColumnSums = [[__m256i; 4]; 2];

// Strides between columns, of weights and of activations.
const _: () = assert!(size_of::<[i32; MAX_ROWS]>() == 64 && size_of::<[i32; PACK_TOKENS]>() == 32);

/// Loads a column of both panels and multiplies it with four bytes of each token.
macro_rules! column {
    ($product:ident $which:ident $j:literal) => {
        concat!(
            "vmovdqu {w0}, [{p0} + 64 * ", $j, "]\n",
            "vmovdqu {w1}, [{p1} + 64 * ", $j, "]\n",
            "vpbroadcastd {a}, [{q} + 32 * ", $j, "]\n", $product!($which $j 0),
            "vpbroadcastd {a}, [{q} + 32 * ", $j, " + 4]\n", $product!($which $j 1),
            "vpbroadcastd {a}, [{q} + 32 * ", $j, " + 8]\n", $product!($which $j 2),
            "vpbroadcastd {a}, [{q} + 32 * ", $j, " + 12]\n", $product!($which $j 3),
        )
    };
}

/// `Simd::dot_i16`; the first product starts the sum.
macro_rules! dot_i16 {
    (first $j:literal $t:literal) => {
        concat!("vpmaddubsw {s0", $t, "}, {w0}, {a}\n", "vpmaddubsw {s1", $t, "}, {w1}, {a}\n")
    };
    (next $j:literal $t:literal) => {
        concat!(
            "vpmaddubsw {x}, {w0}, {a}\n", "vpmaddubsw {y}, {w1}, {a}\n",
            "vpaddw {s0", $t, "}, {s0", $t, "}, {x}\n", "vpaddw {s1", $t, "}, {s1", $t, "}, {y}\n",
        )
    };
}

/// Multiplies magnitudes with the activations, whose bits are inverted where the weight is negative.
macro_rules! signed {
    (products $j:literal) => {
        concat!(
            "vpxor {x}, {a}, [{p0} + 64 * ", $j, " + 32]\n", "vpxor {y}, {a}, [{p1} + 64 * ", $j, " + 32]\n",
            "vpmaddubsw {x}, {w0}, {x}\n", "vpmaddubsw {y}, {w1}, {y}\n",
        )
    };
    (first $j:literal $t:literal) => {
        concat!(
            signed!(products $j),
            "vpmaddwd {s0", $t, "}, {x}, {ones}\n", "vpmaddwd {s1", $t, "}, {y}, {ones}\n",
        )
    };
    (next $j:literal $t:literal) => {
        concat!(
            signed!(products $j),
            "vpmaddwd {x}, {x}, {ones}\n", "vpmaddwd {y}, {y}, {ones}\n",
            "vpaddd {s0", $t, "}, {s0", $t, "}, {x}\n", "vpaddd {s1", $t, "}, {s1", $t, "}, {y}\n",
        )
    };
}

/// Declares a function of these instructions.
macro_rules! columns {
    ($(#[$attribute:meta])* $name:ident, $($text:expr),+; $($ones:ident)?) => {
        $(#[$attribute])*
        ///
        /// # Safety
        /// The columns lie at each of `w`, and the 4-byte groups of four tokens at `q`.
        #[inline]
        #[target_feature(enable = "avx2")]
        pub unsafe fn $name(w: [*const i32; 2], q: *const i32) -> ColumnSums {
            let (s00, s01, s02, s03): (__m256i, __m256i, __m256i, __m256i);
            let (s10, s11, s12, s13): (__m256i, __m256i, __m256i, __m256i);
            // SAFETY: reads what the caller guarantees, and writes registers only.
            unsafe {
                asm!(
                    $($text,)+
                    p0 = in(reg) w[0], p1 = in(reg) w[1], q = in(reg) q,
                    w0 = out(ymm_reg) _, w1 = out(ymm_reg) _,
                    a = out(ymm_reg) _, x = out(ymm_reg) _, y = out(ymm_reg) _,
                    s00 = out(ymm_reg) s00, s01 = out(ymm_reg) s01, s02 = out(ymm_reg) s02, s03 = out(ymm_reg) s03,
                    s10 = out(ymm_reg) s10, s11 = out(ymm_reg) s11, s12 = out(ymm_reg) s12, s13 = out(ymm_reg) s13,
                    $($ones = in(ymm_reg) _mm256_set1_epi16(1),)?
                    options(pure, readonly, nostack, preserves_flags),
                );
            }
            [[s00, s01, s02, s03], [s10, s11, s12, s13]]
        }
    };
}

columns! {
    /// Multiplies four columns by `Simd::dot_i16`.
    i16_columns_4,
    column!(dot_i16 first 0), column!(dot_i16 next 1), column!(dot_i16 next 2), column!(dot_i16 next 3);
}

columns! {
    /// Multiplies eight columns by `Simd::dot_i16`.
    i16_columns_8,
    column!(dot_i16 first 0), column!(dot_i16 next 1), column!(dot_i16 next 2), column!(dot_i16 next 3),
    column!(dot_i16 next 4), column!(dot_i16 next 5), column!(dot_i16 next 6), column!(dot_i16 next 7);
}

columns! {
    /// Multiplies eight columns of magnitudes followed by signs, with i32 sums. Each sum is short of the
    /// magnitudes whose weight is negative.
    signed_columns_8,
    column!(signed first 0), column!(signed next 1), column!(signed next 2), column!(signed next 3),
    column!(signed next 4), column!(signed next 5), column!(signed next 6), column!(signed next 7);
    ones
}

/// Adds the sums of each token times the scale of each row, at byte offset `$m`, to those in memory.
macro_rules! scale {
    ($m:literal) => {
        concat!(scale!($m 0), scale!($m 1), scale!($m 2), scale!($m 3))
    };
    ($m:literal $t:literal) => {
        concat!(
            "vpmaddwd {s0", $t, "}, {s0", $t, "}, [{m0} + ", $m, "]\n",
            "vpmaddwd {s1", $t, "}, {s1", $t, "}, [{m1} + ", $m, "]\n",
            "vpaddd {s0", $t, "}, {s0", $t, "}, [{to} + 32 * ", $t, "]\n",
            "vpaddd {s1", $t, "}, {s1", $t, "}, [{to} + 32 * ", $t, " + 128]\n",
            "vmovdqu [{to} + 32 * ", $t, "], {s0", $t, "}\n",
            "vmovdqu [{to} + 32 * ", $t, " + 128], {s1", $t, "}\n",
        )
    };
}

/// Adds the bias of each token, at byte offset `$at`.
macro_rules! add_bias {
    ($at:literal) => {
        concat!(add_bias!($at 0), add_bias!($at 1), add_bias!($at 2), add_bias!($at 3))
    };
    ($at:literal $t:literal) => {
        concat!(
            "vpbroadcastd {a}, [{bias} + 4 * ", $t, " + ", $at, "]\n",
            "vpaddw {s0", $t, "}, {s0", $t, "}, {a}\n",
            "vpaddw {s1", $t, "}, {s1", $t, "}, {a}\n",
        )
    };
}

/// Declares a function that applies these instructions to each of `n` groups of eight columns.
/// The loop is in assembly too: a compiler would unroll it beyond the capacity of the µop cache.
macro_rules! groups {
    ($(#[$attribute:meta])* $name:ident, $($text:expr),+; $($bias:ident)?) => {
        $(#[$attribute])*
        ///
        /// # Safety
        /// `from` has `n` groups, at least one.
        #[inline]
        #[target_feature(enable = "avx2")]
        pub unsafe fn $name(n: usize, from: ColumnGroups) -> ColumnSums {
            let mut sums = [[_mm256_setzero_si256(); 4]; 2];
            // SAFETY: reads what the caller guarantees, and writes registers and `sums` only.
            unsafe {
                asm!(
                    "2:",
                    $($text,)+
                    "add {p0}, 512",
                    "add {p1}, 512",
                    "add {q}, 256",
                    "add {m0}, 128",
                    "add {m1}, 128",
                    $(concat!("add {", stringify!($bias), "}, 64"),)?
                    "sub {n}, 1",
                    "jnz 2b",
                    n = inout(reg) n => _,
                    p0 = inout(reg) from.w[0] => _, p1 = inout(reg) from.w[1] => _, q = inout(reg) from.q => _,
                    m0 = inout(reg) from.scales[0] => _, m1 = inout(reg) from.scales[1] => _,
                    to = in(reg) &raw mut sums,
                    $($bias = inout(reg) from.$bias => _,)?
                    w0 = out(ymm_reg) _, w1 = out(ymm_reg) _,
                    a = out(ymm_reg) _, x = out(ymm_reg) _, y = out(ymm_reg) _,
                    s00 = out(ymm_reg) _, s01 = out(ymm_reg) _, s02 = out(ymm_reg) _, s03 = out(ymm_reg) _,
                    s10 = out(ymm_reg) _, s11 = out(ymm_reg) _, s12 = out(ymm_reg) _, s13 = out(ymm_reg) _,
                    options(nostack),
                );
            }
            sums
        }
    };
}

groups! {
    /// Multiplies `i16_columns_8` with the `Simd::multiplier` of each group.
    per_group,
    column!(dot_i16 first 0), column!(dot_i16 next 1), column!(dot_i16 next 2), column!(dot_i16 next 3),
    column!(dot_i16 next 4), column!(dot_i16 next 5), column!(dot_i16 next 6), column!(dot_i16 next 7), scale!(0);
}

groups! {
    /// Like `per_group` where eight products would overflow i16 sums.
    per_group_in_halves,
    column!(dot_i16 first 0), column!(dot_i16 next 1), column!(dot_i16 next 2), column!(dot_i16 next 3), scale!(0),
    column!(dot_i16 first 4), column!(dot_i16 next 5), column!(dot_i16 next 6), column!(dot_i16 next 7), scale!(0);
}

groups! {
    /// Multiplies each half of a group with its own multiplier.
    per_half,
    column!(dot_i16 first 0), column!(dot_i16 next 1), column!(dot_i16 next 2), column!(dot_i16 next 3), scale!(0),
    column!(dot_i16 first 4), column!(dot_i16 next 5), column!(dot_i16 next 6), column!(dot_i16 next 7), scale!(64);
}

groups! {
    /// Like `per_half`, after adding `bias` for each half and token as `Simd::add_i16` does.
    per_half_biased,
    column!(dot_i16 first 0), column!(dot_i16 next 1), column!(dot_i16 next 2), column!(dot_i16 next 3), add_bias!(0), scale!(0),
    column!(dot_i16 first 4), column!(dot_i16 next 5), column!(dot_i16 next 6), column!(dot_i16 next 7), add_bias!(32), scale!(64);
    bias
}
