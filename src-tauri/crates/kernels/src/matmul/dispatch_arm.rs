//! Declares every format's table entries and kernels on 64-bit ARM: NEON, NEON with `sdot`, NEON with
//! `smmla`.

/// Declares the entries of a block format. Ignores special paths of other processors.
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
            // SAFETY: every 64-bit ARM processor has NEON.
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
            // SAFETY: entries are looked up only for levels that `IsaLevel::is_present` confirmed.
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
            // SAFETY: entries are looked up only for levels that `IsaLevel::is_present` confirmed.
            unsafe { inner(w, acts, out) }
        }
    };
}
pub(crate) use matmul_rows;

/// Declares the entry of a float format.
macro_rules! float_rows {
    ($dtype:expr, $element:ty) => {
        /// NEON.
        pub static ROWS: &[$crate::matmul::MatMulRow] = &[$crate::matmul::MatMulRow {
            dtype: $dtype,
            level: $crate::cpu::isa::IsaLevel::Neon,
            act: $crate::matmul::ActivationFormat::F32,
            quantize: $crate::matmul::floats::no_quantization,
            kernel: neon,
        }];

        fn neon(
            w: $crate::matmul::WeightRows,
            acts: $crate::matmul::Activations,
            out: &mut $crate::matmul::OutTile,
        ) {
            // SAFETY: every 64-bit ARM processor has NEON.
            unsafe {
                $crate::matmul::floats::run::<$element, $crate::matmul::floats::neon::NeonF32>(w, acts, out)
            }
        }
    };
}
pub(crate) use float_rows;
