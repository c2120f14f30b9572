//! F16 weights times unquantized activations.

use weights::DType;

use super::dispatch::float_rows;
use super::floats::{FloatElement, SimdF32};

struct F16;

impl FloatElement for F16 {
    const BYTES: usize = 2;

    #[inline(always)]
    unsafe fn load<S: SimdF32>(from: *const u8) -> S::F {
        // SAFETY: guaranteed by the caller.
        unsafe { S::f16s(from) }
    }
}

float_rows!(DType::F16, F16);
