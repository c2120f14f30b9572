//! Table of block formats: identifiers, block size, and the codec of formats that can be computed with.
//!
//! The only place that lists formats; everything else asks a format's row.

use crate::quant::{self, Codec, EncodeFn};

/// A block format. Every row has sizes; only rows with a codec can be computed with.
pub struct DTypeRow {
    /// The format.
    pub dtype: DType,
    /// Usual name, such as "Q8_0".
    pub name: &'static str,
    /// Type number in a GGUF tensor table.
    pub gguf_id: Option<u32>,
    /// Name in a safetensors header.
    pub safetensors: Option<&'static str>,
    /// Elements per block.
    pub block_len: usize,
    /// Bytes per block.
    pub block_bytes: usize,
    /// Decoder and encoder.
    pub codec: Option<Codec>,
}

macro_rules! dtypes {
    ($($variant:ident $name:literal $gguf:expr, $safetensors:expr, $len:literal x $bytes:literal, $codec:expr;)*) => {
        /// Storage format of a tensor's elements.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(non_camel_case_types, missing_docs)] // variants are named as in GGUF
        pub enum DType { $($variant),* }

        /// All formats, in enum order.
        pub static TABLE: &[DTypeRow] = &[$(DTypeRow {
            dtype: DType::$variant,
            name: $name,
            gguf_id: $gguf,
            safetensors: $safetensors,
            block_len: $len,
            block_bytes: $bytes,
            codec: $codec,
        }),*];
    };
}

dtypes! {
    F32      "F32"      Some(0),  Some("F32"),  1 x 4,     Some(quant::f32::CODEC);
    F16      "F16"      Some(1),  Some("F16"),  1 x 2,     Some(quant::f16::CODEC);
    BF16     "BF16"     Some(30), Some("BF16"), 1 x 2,     Some(quant::bf16::CODEC);
    Q8_0     "Q8_0"     Some(8),  None,         32 x 34,   Some(quant::q8_0::CODEC);
    Q4_0     "Q4_0"     Some(2),  None,         32 x 18,   Some(quant::q4_0::CODEC);
    Q4_K     "Q4_K"     Some(12), None,         256 x 144, Some(quant::q4_k::CODEC);
    Q6_K     "Q6_K"     Some(14), None,         256 x 210, Some(quant::q6_k::CODEC);
    Q4_1     "Q4_1"     Some(3),  None,         32 x 20,   Some(quant::q4_1::CODEC);
    Q5_0     "Q5_0"     Some(6),  None,         32 x 22,   Some(quant::q5_0::CODEC);
    Q5_1     "Q5_1"     Some(7),  None,         32 x 24,   Some(quant::q5_1::CODEC);
    Q8_1     "Q8_1"     Some(9),  None,         32 x 36,   Some(quant::q8_1::CODEC);
    Q2_K     "Q2_K"     Some(10), None,         256 x 84,  Some(quant::q2_k::CODEC);
    Q3_K     "Q3_K"     Some(11), None,         256 x 110, Some(quant::q3_k::CODEC);
    Q5_K     "Q5_K"     Some(13), None,         256 x 176, Some(quant::q5_k::CODEC);
    Q8_K     "Q8_K"     Some(15), None,         256 x 292, Some(quant::q8_k::CODEC);
    IQ2_XXS  "IQ2_XXS"  Some(16), None,         256 x 66,  Some(quant::iq2_xxs::CODEC);
    IQ2_XS   "IQ2_XS"   Some(17), None,         256 x 74,  Some(quant::iq2_xs::CODEC);
    IQ3_XXS  "IQ3_XXS"  Some(18), None,         256 x 98,  Some(quant::iq3_xxs::CODEC);
    IQ1_S    "IQ1_S"    Some(19), None,         256 x 50,  Some(quant::iq1_s::CODEC);
    IQ4_NL   "IQ4_NL"   Some(20), None,         32 x 18,   Some(quant::iq4_nl::CODEC);
    IQ3_S    "IQ3_S"    Some(21), None,         256 x 110, Some(quant::iq3_s::CODEC);
    IQ2_S    "IQ2_S"    Some(22), None,         256 x 82,  Some(quant::iq2_s::CODEC);
    IQ4_XS   "IQ4_XS"   Some(23), None,         256 x 136, Some(quant::iq4_xs::CODEC);
    IQ1_M    "IQ1_M"    Some(29), None,         256 x 56,  Some(quant::iq1_m::CODEC);
    TQ1_0    "TQ1_0"    Some(34), None,         256 x 54,  Some(quant::tq1_0::CODEC);
    TQ2_0    "TQ2_0"    Some(35), None,         256 x 66,  Some(quant::tq2_0::CODEC);
    MXFP4    "MXFP4"    Some(39), None,         32 x 17,   Some(quant::mxfp4::CODEC);
    NVFP4    "NVFP4"    Some(40), None,         64 x 36,   Some(quant::nvfp4::CODEC);
    Q1_0     "Q1_0"     Some(41), None,         128 x 18,  Some(quant::q1_0::CODEC);
    Q2_0     "Q2_0"     Some(42), None,         64 x 18,   Some(quant::q2_0::CODEC);
    I8       "I8"       Some(24), Some("I8"),   1 x 1,     None;
    I16      "I16"      Some(25), Some("I16"),  1 x 2,     None;
    I32      "I32"      Some(26), Some("I32"),  1 x 4,     None;
    I64      "I64"      Some(27), Some("I64"),  1 x 8,     None;
    F64      "F64"      Some(28), Some("F64"),  1 x 8,     None;
    Bool     "BOOL"     None,     Some("BOOL"), 1 x 1,     None;
    U8       "U8"       None,     Some("U8"),   1 x 1,     None;
    U16      "U16"      None,     Some("U16"),  1 x 2,     None;
    U32      "U32"      None,     Some("U32"),  1 x 4,     None;
    U64      "U64"      None,     Some("U64"),  1 x 8,     None;
    C64      "C64"      None,     Some("C64"),  1 x 8,     None;
    F8_E4M3  "F8_E4M3"  None,     Some("F8_E4M3"), 1 x 1,  None;
    F8_E5M2  "F8_E5M2"  None,     Some("F8_E5M2"), 1 x 1,  None;
    F8_E8M0  "F8_E8M0"  None,     Some("F8_E8M0"), 1 x 1,  None;
    F4       "F4"       None,     Some("F4"),   2 x 1,     None;
}

impl DType {
    fn row(self) -> &'static DTypeRow {
        &TABLE[self as usize]
    }

    /// Format by its type number in a GGUF tensor table.
    pub fn from_gguf_id(id: u32) -> Option<Self> {
        TABLE.iter().find(|row| row.gguf_id == Some(id)).map(|row| row.dtype)
    }

    /// Format by its name in a safetensors header.
    pub fn from_safetensors(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.safetensors == Some(name)).map(|row| row.dtype)
    }

    /// Format by its [`DType::name`], ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.name.eq_ignore_ascii_case(name)).map(|row| row.dtype)
    }

    /// Usual name, such as "Q8_0".
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Type number in a GGUF tensor table.
    pub fn gguf_id(self) -> Option<u32> {
        self.row().gguf_id
    }

    /// Elements per block.
    pub fn block_len(self) -> usize {
        self.row().block_len
    }

    /// Bytes per block.
    pub fn block_bytes(self) -> usize {
        self.row().block_bytes
    }

    /// Decoder and encoder, if the format can be computed with.
    pub fn codec(self) -> Option<&'static Codec> {
        self.row().codec.as_ref()
    }

    /// Whether values are stored as plain 32-bit floats.
    pub fn is_f32(self) -> bool {
        self == Self::F32
    }

    /// Encoder of the format, if there is one.
    pub fn encoder(self) -> Option<EncodeFn> {
        self.codec().and_then(|codec| codec.encode)
    }

    /// Bytes of a row of `n_cols` elements. Panics unless the row is a whole number of blocks; files are checked at open.
    pub fn row_bytes(self, n_cols: usize) -> usize {
        self.checked_row_bytes(n_cols as u64)
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or_else(|| panic!("{n_cols} elements are not a row of {}", self.name()))
    }

    /// Bytes of a row of `n_cols` elements; `None` if it is not a whole number of blocks or overflows.
    pub fn checked_row_bytes(self, n_cols: u64) -> Option<u64> {
        let row = self.row();
        if !n_cols.is_multiple_of(row.block_len as u64) {
            return None;
        }
        (n_cols / row.block_len as u64).checked_mul(row.block_bytes as u64)
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn rows_stand_at_their_index_and_are_unique() {
        let mut ids = HashSet::new();
        let mut names = HashSet::new();
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.dtype as usize, i, "{}", row.name);
            assert!(names.insert(row.name), "{}", row.name);
            assert!(row.gguf_id.is_none_or(|id| ids.insert(id)), "{}", row.name);
            assert_eq!(DType::from_name(row.name), Some(row.dtype));
            if let Some(id) = row.gguf_id {
                assert_eq!(DType::from_gguf_id(id), Some(row.dtype));
            }
        }
    }

    #[test]
    fn row_bytes_counts_whole_blocks() {
        assert_eq!(DType::Q4_K.row_bytes(512), 288);
        assert_eq!(DType::F16.row_bytes(3), 6);
        assert_eq!(DType::Q8_0.checked_row_bytes(33), None);
        assert_eq!(DType::F64.checked_row_bytes(u64::MAX), None);
    }
}
