//! A handle to the bytes of one weight tensor. It borrows the mapped file: nothing is copied.

use weights::{Advice, Codec, DType, SharedBytes, TensorView};

use crate::error::KernelError;

/// Weights: the product of `shape` elements in `dtype` blocks, row-major, outermost dimension first. Cheap to clone.
#[derive(Clone)]
pub struct Tensor {
    name: String,
    dtype: DType,
    shape: Vec<usize>,
    data: SharedBytes,
}

impl Tensor {
    /// Borrows a tensor of an opened file. Errors: a dtype without codec.
    pub fn host(view: &TensorView) -> Result<Self, KernelError> {
        if view.dtype.codec().is_none() {
            return Err(KernelError::DTypeUnsupported {
                tensor: view.name.to_owned(),
                dtype: view.dtype.name(),
            });
        }
        let tensor = Self {
            name: view.name.to_owned(),
            dtype: view.dtype,
            shape: view.shape.to_vec(),
            data: view.data.clone(),
        };
        let row_bytes = view.dtype.checked_row_bytes(tensor.n_cols() as u64);
        let expected = row_bytes.and_then(|n| n.checked_mul(tensor.n_rows() as u64));
        if tensor.shape.is_empty() || expected != Some(tensor.data.len() as u64) {
            return Err(KernelError::Shape {
                node: tensor.name,
                what: "length in bytes",
                expected: format!("{expected:?}"),
                found: tensor.data.len().to_string(),
            });
        }
        Ok(tensor)
    }

    /// The same numbers as a matrix: all dimensions but the first become columns. Errors: a format in blocks.
    pub fn flattened(&self) -> Result<Self, KernelError> {
        if self.dtype.block_len() != 1 {
            let name = self.dtype.name();
            return Err(KernelError::mismatch(&self.name, "block format", "one number per block", name));
        }
        let n_rows = self.shape.first().copied().unwrap_or(1);
        let n_cols = self.shape.iter().skip(1).product();
        Ok(Self { shape: vec![n_rows, n_cols], ..self.clone() })
    }

    /// The first `n` rows of a matrix, which share its bytes. All of them if it has no more.
    pub fn first_rows(&self, n: usize) -> Self {
        let n = n.min(self.n_rows());
        let data = self.data.slice(0..n * self.row_bytes());
        Self { shape: vec![n, self.n_cols()], data, name: self.name.clone(), dtype: self.dtype }
    }

    /// Name in the model file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Block format.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Dimensions, outermost first; data is row-major.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Elements of the innermost dimension.
    pub fn n_cols(&self) -> usize {
        self.shape.last().copied().unwrap_or(0)
    }

    /// Product of all other dimensions; 1 for a vector.
    pub fn n_rows(&self) -> usize {
        self.shape[..self.shape.len().saturating_sub(1)].iter().product()
    }

    /// Bytes of one row of `n_cols` elements.
    pub fn row_bytes(&self) -> usize {
        self.dtype.row_bytes(self.n_cols())
    }

    /// All rows, one after another.
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// Advises the system how the bytes will be used. Returns whether it accepted the advice.
    pub fn advise(&self, advice: Advice) -> bool {
        self.data.advise(advice)
    }

    /// The decoder of its blocks.
    pub fn codec(&self) -> &'static Codec {
        self.dtype.codec().expect("`host` refuses formats without codec")
    }

    /// Decodes one row: out (n_cols)
    pub fn decode_row(&self, row: usize, out: &mut [f32]) {
        let n = self.row_bytes();
        (self.codec().decode)(&self.bytes()[row * n..(row + 1) * n], out);
    }

    /// Decodes all elements; meant for small vectors (norm weights, biases).
    pub fn decode(&self) -> Vec<f32> {
        let mut out = vec![0.0; self.n_rows() * self.n_cols()];
        let n_cols = self.n_cols();
        for (row, out) in out.chunks_exact_mut(n_cols.max(1)).enumerate() {
            self.decode_row(row, out);
        }
        out
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {}", self.name, self.shape, self.dtype.name())
    }
}
