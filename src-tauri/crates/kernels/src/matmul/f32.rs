//! F32 weights times activations as they are.

use weights::DType;

use super::floats::{Element, Floats, float_rows};

struct F32;

impl Element for F32 {
    const BYTES: usize = 4;

    #[inline(always)]
    unsafe fn load<S: Floats>(from: *const u8) -> S::F {
        // SAFETY: the caller's.
        unsafe { S::f32s(from) }
    }
}

float_rows!(DType::F32, F32);
