//! How keys, values and recurrent states of a sequence are stored: formats, page sizes and retention.

use std::fmt;
use std::ops::Range;

use weights::DType;

use super::op::MAX_HADAMARD_WIDTH;

/// Tokens per page: small enough that forks share most of a prompt, large enough that a page of one head is
/// several cache lines; attention kernels are written for it.
pub const PAGE_LEN: usize = 32;

/// Page table entry for a page that has left the sliding window.
pub const NO_PAGE: u32 = u32::MAX;

/// Storage format of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KvDType {
    /// single precision
    F32,
    /// half precision
    F16,
    /// 8-bit integers, one f16 scale for 32 elements
    Q8_0,
    /// 4-bit integers, one f16 scale for 32 elements
    Q4_0,
}

/// Storage formats of keys and of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KvPrecision {
    /// format of keys
    pub keys: KvDType,
    /// format of values
    pub values: KvDType,
}

impl fmt::Display for KvPrecision {
    /// The format, or that of keys and that of values.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.keys == self.values {
            true => write!(f, "{:?}", self.keys),
            false => write!(f, "{:?}/{:?}", self.keys, self.values),
        }
    }
}

impl KvDType {
    /// This format for keys and values.
    pub const fn both(self) -> KvPrecision {
        KvPrecision { keys: self, values: self }
    }

    /// Whether elements are integers with scales. Such keys and values are rotated before they are stored.
    pub fn is_quantized(self) -> bool {
        match self {
            Self::F32 | Self::F16 => false,
            Self::Q8_0 | Self::Q4_0 => true,
        }
    }

    /// Elements per block: the head size must be a multiple of it.
    pub fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 => 1,
            Self::Q8_0 | Self::Q4_0 => 32,
        }
    }

    /// Bytes of the keys (or the values) of one head at one position.
    pub fn row_bytes(self, head_dim: usize) -> usize {
        match self {
            Self::F32 => head_dim * 4,
            Self::F16 => head_dim * 2,
            Self::Q8_0 => DType::Q8_0.row_bytes(head_dim),
            Self::Q4_0 => DType::Q4_0.row_bytes(head_dim),
        }
    }
}

/// Columns per group when a head is rotated before it is quantized: the largest power of two that divides `head_dim`.
pub fn rotation_width(head_dim: usize) -> usize {
    (1 << head_dim.trailing_zeros()).min(MAX_HADAMARD_WIDTH)
}

/// How long a layer keeps its keys and values. Pages are numbered separately for each retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retention {
    /// all positions
    All,
    /// as many positions as the longest sliding window of the graph
    Window,
}

/// Shape and format of the keys and values of one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvLayerLayout {
    /// number of key/value heads
    pub n_kv_heads: usize,
    /// elements per head
    pub head_dim: usize,
    /// storage formats
    pub precision: KvPrecision,
    /// sliding window of the layer's attention, in positions; None: unlimited
    pub window: Option<usize>,
}

impl KvLayerLayout {
    /// Whether keys and values are stored in single precision.
    pub fn is_exact(&self) -> bool {
        self.precision == KvDType::F32.both()
    }

    /// How long this layer keeps its keys and values.
    pub fn retention(&self) -> Retention {
        match self.window {
            None => Retention::All,
            Some(_) => Retention::Window,
        }
    }

    /// The layout of the layer's requantized pages: `Q8_0`. None where the layer has a window, where keys or values are
    /// quantized already, or where a head is not a whole number of blocks.
    pub fn requantized(&self) -> Option<Self> {
        let requantized = Self { precision: KvDType::Q8_0.both(), ..*self };
        let is_shorter = !self.precision.keys.is_quantized() && !self.precision.values.is_quantized();
        let fits = self.head_dim.is_multiple_of(KvDType::Q8_0.block_len());
        match self.retention() {
            Retention::All if is_shorter && fits => Some(requantized),
            Retention::All | Retention::Window => None,
        }
    }

    /// Bytes of the keys of one head in one page.
    pub fn key_bytes(&self) -> usize {
        PAGE_LEN * self.precision.keys.row_bytes(self.head_dim)
    }

    /// Bytes of the values of one head in one page.
    pub fn value_bytes(&self) -> usize {
        PAGE_LEN * self.precision.values.row_bytes(self.head_dim)
    }

    /// Bytes of this layer in one page, keys and values together.
    pub fn page_bytes(&self) -> usize {
        self.n_kv_heads * (self.key_bytes() + self.value_bytes())
    }

    /// The keys of a head within the layer's bytes of a page.
    pub fn keys_of(&self, head: usize) -> Range<usize> {
        head * self.key_bytes()..(head + 1) * self.key_bytes()
    }

    /// The values of a head within the layer's bytes of a page. They follow the keys of all heads.
    pub fn values_of(&self, head: usize) -> Range<usize> {
        let start = self.n_kv_heads * self.key_bytes() + head * self.value_bytes();
        start..start + self.value_bytes()
    }
}

/// What is stored per sequence: paged keys and values of the attention layers, and the states of the recurrent layers.
/// A page holds `page_len` positions of every layer of its retention; a slot holds the states of all recurrent layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvLayout {
    /// tokens per page; always `PAGE_LEN`
    pub page_len: usize,
    /// layout of each attention layer
    pub layers: Vec<KvLayerLayout>,
    /// number of floats in the state of each recurrent layer
    pub states: Vec<usize>,
}

impl KvLayout {
    /// Whether the layers that retain all positions can be requantized; false where there are none.
    pub fn can_requantize(&self) -> bool {
        let mut all = self.layers.iter().filter(|layer| layer.retention() == Retention::All).peekable();
        all.peek().is_some() && all.all(|layer| layer.requantized().is_some())
    }

    /// The longest sliding window, in positions. None: every layer keeps all positions.
    pub fn window(&self) -> Option<usize> {
        self.layers.iter().filter_map(|layer| layer.window).max()
    }

    /// A layout of `n_layers` equal layers without recurrent state.
    pub fn uniform(n_layers: usize, layer: KvLayerLayout) -> Self {
        Self { page_len: PAGE_LEN, layers: vec![layer; n_layers], states: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_divide_into_powers_of_two() {
        let cases =
            [(64, 64), (128, 128), (256, 256), (96, 32), (80, 16), (192, 64), (576, 64), (1024, 512), (7, 1)];
        for (head_dim, expected) in cases {
            assert_eq!(rotation_width(head_dim), expected, "{head_dim}");
        }
    }
}
