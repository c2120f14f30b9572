//! BF16 weights times unquantized activations.

use weights::DType;

use super::dispatch::float_rows;
use super::floats::{FloatElement, SimdF32};

struct BF16;

impl FloatElement for BF16 {
    const BYTES: usize = 2;

    #[inline(always)]
    unsafe fn load<S: SimdF32>(from: *const u8) -> S::F {
        // SAFETY: guaranteed by the caller.
        unsafe { S::bf16s(from) }
    }
}

float_rows!(DType::BF16, BF16);
