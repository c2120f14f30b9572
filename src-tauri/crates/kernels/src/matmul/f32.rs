//! F32 weights times activations as they are.

use weights::DType;

use super::floats::{FloatElement, SimdF32, float_rows};

struct F32;

impl FloatElement for F32 {
    const BYTES: usize = 4;

    #[inline(always)]
    unsafe fn load<S: SimdF32>(from: *const u8) -> S::F {
        // SAFETY: the caller's.
        unsafe { S::f32s(from) }
    }
}

float_rows!(DType::F32, F32);
