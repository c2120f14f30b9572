//! A quantised format at each level of x86: the same way through its rows, compiled for one instruction set after another.

use super::{Activations, OutTile, WeightRows};

/// For formats that have no way of their own.
///
/// # Safety
/// None is prefetch_bytes for: it does nothing.
#[inline(always)]
pub unsafe fn no_special_path(_: WeightRows, _: Activations, _: &mut OutTile) -> bool {
    false
}

/// The table rows of a format at each level: its name, the activations it takes, and how those are quantised.
macro_rules! matmul_rows {
    ($dtype:expr, $act:expr, $quantize:path, $format:ty) => {
        $crate::matmul::dispatch_x86::matmul_rows!(
            $dtype,
            $act,
            $quantize,
            $format,
            avx2 $crate::matmul::dispatch_x86::no_special_path
        );
    };
    ($dtype:expr, $act:expr, $quantize:path, $format:ty, avx2 $own_avx2:expr) => {
        $crate::matmul::dispatch_x86::matmul_rows!(
            $dtype,
            $act,
            $quantize,
            $format,
            avx2 $own_avx2,
            avx512 $crate::matmul::dispatch_x86::no_special_path
        );
    };
    // with a way of its own at a level, which says whether it was one
    ($dtype:expr, $act:expr, $quantize:path, $format:ty, avx2 $own_avx2:expr, avx512 $own_avx512:expr) => {
        /// AVX2, AVX2 with AVX-VNNI, and AVX-512.
        pub static ROWS: &[$crate::matmul::MatMulRow] = &[
            $crate::matmul::MatMulRow {
                dtype: $dtype,
                level: $crate::cpu::isa::IsaLevel::Avx2,
                act: $act,
                quantize: $quantize.avx2,
                kernel: avx2,
            },
            $crate::matmul::MatMulRow {
                dtype: $dtype,
                level: $crate::cpu::isa::IsaLevel::AvxVnni,
                act: $act,
                quantize: $quantize.avx2,
                kernel: avx_vnni,
            },
            $crate::matmul::MatMulRow {
                dtype: $dtype,
                level: $crate::cpu::isa::IsaLevel::Avx512,
                act: $act,
                quantize: $quantize.avx512,
                kernel: avx512,
            },
        ];

        fn avx2(
            w: $crate::matmul::WeightRows,
            acts: $crate::matmul::Activations,
            out: &mut $crate::matmul::OutTile,
        ) {
            #[target_feature(enable = "avx2,fma,f16c")]
            fn inner(
                w: $crate::matmul::WeightRows,
                acts: $crate::matmul::Activations,
                out: &mut $crate::matmul::OutTile,
            ) {
                // SAFETY: compiled for these instructions.
                unsafe {
                    if !$own_avx2(w, acts, &mut *out) {
                        $crate::matmul::panel::run::<$format, $crate::matmul::simd::avx2::YmmI32<false>>(
                            w, acts, out,
                        )
                    }
                }
            }
            // SAFETY: rows are looked up for a level only where `IsaLevel::is_present` confirmed it.
            unsafe { inner(w, acts, out) }
        }

        fn avx_vnni(
            w: $crate::matmul::WeightRows,
            acts: $crate::matmul::Activations,
            out: &mut $crate::matmul::OutTile,
        ) {
            #[target_feature(enable = "avx2,fma,f16c,avxvnni")]
            fn inner(
                w: $crate::matmul::WeightRows,
                acts: $crate::matmul::Activations,
                out: &mut $crate::matmul::OutTile,
            ) {
                // SAFETY: compiled for these instructions.
                unsafe {
                    $crate::matmul::panel::run::<$format, $crate::matmul::simd::avx2::YmmI32<true>>(
                        w, acts, out,
                    )
                }
            }
            // SAFETY: rows are looked up for a level only where `IsaLevel::is_present` confirmed it.
            unsafe { inner(w, acts, out) }
        }

        fn avx512(
            w: $crate::matmul::WeightRows,
            acts: $crate::matmul::Activations,
            out: &mut $crate::matmul::OutTile,
        ) {
            #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
            fn inner(
                w: $crate::matmul::WeightRows,
                acts: $crate::matmul::Activations,
                out: &mut $crate::matmul::OutTile,
            ) {
                // SAFETY: compiled for these instructions.
                unsafe {
                    if !$own_avx512(w, acts, &mut *out) {
                        $crate::matmul::panel::run::<$format, $crate::matmul::simd::avx512::ZmmI32>(
                            w, acts, out,
                        )
                    }
                }
            }
            // SAFETY: rows are looked up for a level only where `IsaLevel::is_present` confirmed it.
            unsafe { inner(w, acts, out) }
        }
    };
}
pub(crate) use matmul_rows;
