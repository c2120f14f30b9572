//! Declares a quantized format's table entries and kernels for each x86 level: one traversal, compiled per
//! instruction set.

use super::{Activations, OutTile, WeightRows};

/// Stands for the missing special path of a format.
///
/// # Safety
/// No requirements: it does nothing.
#[inline(always)]
pub unsafe fn no_special_path(_: WeightRows, _: Activations, _: &mut OutTile) -> bool {
    false
}

/// Declares the entries of a format at each level, given its dtype, activation format and quantization
/// function.
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
    ($dtype:expr, $act:expr, $quantize:path, $format:ty, avx2 $special_avx2:expr) => {
        $crate::matmul::dispatch_x86::matmul_rows!(
            $dtype,
            $act,
            $quantize,
            $format,
            avx2 $special_avx2,
            avx512 $crate::matmul::dispatch_x86::no_special_path
        );
    };
    // with special paths, which return whether they handled the call
    ($dtype:expr, $act:expr, $quantize:path, $format:ty, avx2 $special_avx2:expr, avx512 $special_avx512:expr) => {
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
                    if !$special_avx2(w, acts, &mut *out) {
                        $crate::matmul::panel::run::<$format, $crate::matmul::simd::avx2::YmmI32<false>>(
                            w, acts, out,
                        )
                    }
                }
            }
            // SAFETY: entries are looked up only for levels that `IsaLevel::is_present` confirmed.
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
            // SAFETY: entries are looked up only for levels that `IsaLevel::is_present` confirmed.
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
                    if !$special_avx512(w, acts, &mut *out) {
                        $crate::matmul::panel::run::<$format, $crate::matmul::simd::avx512::ZmmI32>(
                            w, acts, out,
                        )
                    }
                }
            }
            // SAFETY: entries are looked up only for levels that `IsaLevel::is_present` confirmed.
            unsafe { inner(w, acts, out) }
        }
    };
}
pub(crate) use matmul_rows;

/// Declares the table entries of a float format at each level.
macro_rules! float_rows {
    ($dtype:expr, $element:ty) => {
        /// AVX2 and AVX-512.
        pub static ROWS: &[$crate::matmul::MatMulRow] = &[
            $crate::matmul::MatMulRow {
                dtype: $dtype,
                level: $crate::cpu::isa::IsaLevel::Avx2,
                act: $crate::matmul::ActivationFormat::F32,
                quantize: $crate::matmul::floats::no_quantization,
                kernel: avx2,
            },
            $crate::matmul::MatMulRow {
                dtype: $dtype,
                level: $crate::cpu::isa::IsaLevel::Avx512,
                act: $crate::matmul::ActivationFormat::F32,
                quantize: $crate::matmul::floats::no_quantization,
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
                    $crate::matmul::floats::run::<$element, $crate::matmul::floats::avx2::YmmF32>(
                        w, acts, out,
                    )
                }
            }
            // SAFETY: entries are looked up only for levels that `IsaLevel::is_present` confirmed.
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
                    $crate::matmul::floats::run::<$element, $crate::matmul::floats::avx512::ZmmF32>(
                        w, acts, out,
                    )
                }
            }
            // SAFETY: entries are looked up only for levels that `IsaLevel::is_present` confirmed.
            unsafe { inner(w, acts, out) }
        }
    };
}
pub(crate) use float_rows;
