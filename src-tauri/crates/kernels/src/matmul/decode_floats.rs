//! Weights that are stored as floats, decoded for products in other forms.

use weights::DType;

use crate::cpu::isa::IsaLevel;
use crate::f16_convert::F16_CONVERT;

/// Elements converted at a time.
const CHUNK: usize = 256;

/// Returns whether elements of this format are floats, each by itself.
pub fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
}

/// Decodes elements: bytes (n elements of `dtype`, for which `is_float` holds) → out (n).
pub fn decode(level: IsaLevel, dtype: DType, bytes: &[u8], out: &mut [f32]) {
    if dtype != DType::F16 {
        let codec = dtype.codec().expect("formats of floats have codecs");
        return (codec.decode)(bytes, out);
    }
    let to_f32 = F16_CONVERT.at(level).to_f32;
    let mut halves = [0; CHUNK];
    for (bytes, out) in bytes.chunks(2 * CHUNK).zip(out.chunks_mut(CHUNK)) {
        let halves = &mut halves[..out.len()];
        for (half, bytes) in halves.iter_mut().zip(bytes.as_chunks().0) {
            *half = u16::from_le_bytes(*bytes);
        }
        to_f32(halves, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At any alignment, as tensors of some files have it.
    #[test]
    fn every_level_decodes_like_the_codecs() {
        let x: Vec<f32> = (0..613).map(|i| (i as f32 - 300.0) / 37.0).collect();
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            assert!(is_float(dtype));
            let mut bytes = vec![0; dtype.row_bytes(x.len()) + 1];
            (dtype.encoder().unwrap())(&x, &mut bytes[1..]);
            let mut expected = vec![0.0; x.len()];
            (dtype.codec().unwrap().decode)(&bytes[1..], &mut expected);
            for level in IsaLevel::present() {
                let mut found = vec![9.0; x.len()];
                decode(level, dtype, &bytes[1..], &mut found);
                assert_eq!(found, expected, "{level} {}", dtype.name());
            }
        }
        assert!(!is_float(DType::Q8_0));
    }
}
