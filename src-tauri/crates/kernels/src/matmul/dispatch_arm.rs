//! The table rows of every format on 64-bit ARM: NEON, NEON with its dot product of bytes, and that with its matrix
//! product.

/// Rows of a format of blocks; what it does besides on other processors has no part here.
macro_rules! matmul_rows {
    ($dtype:expr, $act:expr, $quantize:path, $format:ty $(, $few:expr)?) => {
        /// NEON, NEON with `sdot`, and with `smmla`.
        pub static ROWS: &[$crate::matmul::MatMulRow] = &[
            $crate::matmul::MatMulRow {
                dtype: $dtype,
                level: $crate::cpu::isa::IsaLevel::Neon,
                act: $act,
                quantize: $quantize.portable,
                kernel: neon,
            },
            $crate::matmul::MatMulRow {
                dtype: $dtype,
                level: $crate::cpu::isa::IsaLevel::NeonDot,
                act: $act,
                quantize: $quantize.portable,
                kernel: neon_dot,
            },
            $crate::matmul::MatMulRow {
                dtype: $dtype,
                level: $crate::cpu::isa::IsaLevel::NeonI8mm,
                act: $act,
                quantize: $quantize.portable,
                kernel: neon_i8mm,
            },
        ];

        fn neon(
            w: $crate::matmul::WeightRows,
            acts: $crate::matmul::Activations,
            out: &mut $crate::matmul::OutTile,
        ) {
            // SAFETY: every processor that this is compiled for has NEON.
            unsafe {
                $crate::matmul::panel::run::<$format, $crate::matmul::simd::neon::NeonI32<false, false>>(
                    w, acts, out,
                )
            }
        }

        fn neon_dot(
            w: $crate::matmul::WeightRows,
            acts: $crate::matmul::Activations,
            out: &mut $crate::matmul::OutTile,
        ) {
            #[target_feature(enable = "neon,dotprod")]
            fn inner(
                w: $crate::matmul::WeightRows,
                acts: $crate::matmul::Activations,
                out: &mut $crate::matmul::OutTile,
            ) {
                // SAFETY: compiled for these instructions.
                unsafe {
                    $crate::matmul::panel::run::<$format, $crate::matmul::simd::neon::NeonI32<true, false>>(
                        w, acts, out,
                    )
                }
            }
            // SAFETY: rows are looked up for a level only where `IsaLevel::is_present` confirmed it.
            unsafe { inner(w, acts, out) }
        }

        fn neon_i8mm(
            w: $crate::matmul::WeightRows,
            acts: $crate::matmul::Activations,
            out: &mut $crate::matmul::OutTile,
        ) {
            #[target_feature(enable = "neon,dotprod,i8mm")]
            fn inner(
                w: $crate::matmul::WeightRows,
                acts: $crate::matmul::Activations,
                out: &mut $crate::matmul::OutTile,
            ) {
                // SAFETY: compiled for these instructions.
                unsafe {
                    $crate::matmul::panel::run::<$format, $crate::matmul::simd::neon::NeonI32<true, true>>(
                        w, acts, out,
                    )
                }
            }
            // SAFETY: rows are looked up for a level only where `IsaLevel::is_present` confirmed it.
            unsafe { inner(w, acts, out) }
        }
    };
}
pub(crate) use matmul_rows;

/// The row of a float format.
macro_rules! float_rows {
    ($dtype:expr, $element:ty) => {
        /// NEON.
        pub static ROWS: &[$crate::matmul::MatMulRow] = &[$crate::matmul::MatMulRow {
            dtype: $dtype,
            level: $crate::cpu::isa::IsaLevel::Neon,
            act: $crate::matmul::ActivationFormat::F32,
            quantize: $crate::matmul::floats::as_is,
            kernel: neon,
        }];

        fn neon(
            w: $crate::matmul::WeightRows,
            acts: $crate::matmul::Activations,
            out: &mut $crate::matmul::OutTile,
        ) {
            // SAFETY: every processor that this is compiled for has NEON.
            unsafe {
                $crate::matmul::floats::run::<$element, $crate::matmul::floats::neon::NeonF32>(w, acts, out)
            }
        }
    };
}
pub(crate) use float_rows;
