//! F32 weights times unquantized activations.

use weights::DType;

use super::dispatch::float_rows;
use super::floats::{FloatElement, SimdF32};

struct F32;

impl FloatElement for F32 {
    const BYTES: usize = 4;

    #[inline(always)]
    unsafe fn load<S: SimdF32>(from: *const u8) -> S::F {
        // SAFETY: guaranteed by the caller.
        unsafe { S::f32s(from) }
    }
}

float_rows!(DType::F32, F32);
