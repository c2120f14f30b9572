//! BF16 weights times activations as they are.

use weights::DType;

use super::floats::{FloatElement, SimdF32, float_rows};

struct BF16;

impl FloatElement for BF16 {
    const BYTES: usize = 2;

    #[inline(always)]
    unsafe fn load<S: SimdF32>(from: *const u8) -> S::F {
        // SAFETY: the caller's.
        unsafe { S::bf16s(from) }
    }
}

float_rows!(DType::BF16, BF16);
