//! Weight matrices in GPU memory: packed row by row, split between rows where they exceed the binding limit.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::buffers::Upload;
use super::device::Device;
use crate::error::KernelError;
use crate::matmul::gpu_packing::{ALIGN_WORDS, Packing, packing};
use crate::tensor::Tensor;

/// A matrix, or those of several experts one after another.
pub struct Matrix {
    pub packing: &'static Packing,
    /// length of a row in groups of four words
    pub row_quads: usize,
    pub slices: Vec<StoredSlice>,
}

impl Matrix {
    fn n_rows(&self) -> usize {
        self.slices.iter().map(|slice| slice.n_rows).sum()
    }
}

/// Consecutive rows of a matrix in one buffer.
pub struct StoredSlice {
    pub buffer: wgpu::Buffer,
    pub first: usize,
    pub n_rows: usize,
}

/// The matrices of one graph. A matrix that several nodes use is stored once, also if some use only its first rows.
#[derive(Default)]
pub struct MatrixStore {
    index_of: HashMap<(usize, usize), usize>,
    all: Vec<Matrix>,
    /// size of the weights in the model file
    n_bytes: u64,
    /// intermediate results that are only needed within one layer
    scratch: Option<wgpu::Buffer>,
}

/// Words that are packed before each upload.
const CHUNK_WORDS: usize = 4 << 20;

impl MatrixStore {
    /// A stored matrix.
    pub fn get(&self, at: usize) -> &Matrix {
        &self.all[at]
    }

    /// Bytes of weights uploaded so far.
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// The index of the matrix made of `tensors`, which have one shape; uploaded on first use. It may have further rows.
    pub fn put(&mut self, gpu: &Device, tensors: &[Tensor]) -> Result<usize, KernelError> {
        // the address identifies a tensor: the graph keeps its bytes mapped
        let key = (tensors[0].bytes().as_ptr().addr(), tensors.len());
        let n_rows = tensors.iter().map(Tensor::n_rows).sum();
        if let Some(at) = self.index_of.get(&key).filter(|at| self.all[**at].n_rows() >= n_rows) {
            return Ok(*at);
        }
        self.all.push(upload(gpu, tensors)?);
        self.n_bytes += tensors.iter().map(|tensor| tensor.bytes().len() as u64).sum::<u64>();
        self.index_of.insert(key, self.all.len() - 1);
        Ok(self.all.len() - 1)
    }

    /// Scratch memory that all layers share, grown as needed.
    pub fn scratch(&mut self, gpu: &Device, n_bytes: u64) -> Result<wgpu::Buffer, KernelError> {
        let buffer = match self.scratch.take().filter(|buffer| buffer.size() >= n_bytes) {
            Some(buffer) => buffer,
            None => gpu.storage("lists of experts", n_bytes)?,
        };
        self.scratch = Some(buffer.clone());
        Ok(buffer)
    }
}

fn upload(gpu: &Device, tensors: &[Tensor]) -> Result<Matrix, KernelError> {
    let mut packing = packing(tensors[0].dtype());
    // experts of different formats are converted to a common one
    if tensors.iter().any(|tensor| tensor.dtype() != tensors[0].dtype()) {
        packing = crate::matmul::gpu_packing::fallback();
    }
    let (per_tensor, k) = (tensors[0].n_rows(), tensors[0].n_cols());
    let row_words = packing.row_words(k);
    let n_rows = per_tensor * tensors.len();
    let limit = gpu.limits.max_storage_buffer_binding_size.min(gpu.limits.max_buffer_size) as usize;
    let rows_per_slice = (limit / (4 * row_words)).max(1);
    let mut upload = Upload::new(gpu);
    let mut slices = Vec::new();
    for first in (0..n_rows).step_by(rows_per_slice) {
        let n_rows = rows_per_slice.min(n_rows - first);
        let buffer = gpu.storage("weights", (n_rows * row_words * 4) as u64)?;
        let rows_per_chunk = (CHUNK_WORDS / row_words).max(1);
        for start in (0..n_rows).step_by(rows_per_chunk) {
            let n = rows_per_chunk.min(n_rows - start);
            let words = packed(packing, tensors, per_tensor, first + start, n, row_words, k);
            upload.put(&buffer, (start * row_words * 4) as u64, &words)?;
        }
        slices.push(StoredSlice { buffer, first, n_rows });
    }
    upload.finish()?;
    Ok(Matrix { packing, row_quads: row_words / ALIGN_WORDS, slices })
}

/// Packs rows `first..first + n` of all tensors, one after another: (n, row_words)
fn packed(
    packing: &Packing,
    tensors: &[Tensor],
    per_tensor: usize,
    first: usize,
    n: usize,
    row_words: usize,
    k: usize,
) -> Vec<u32> {
    let mut words = vec![0; n * row_words];
    let rows = Mutex::new((first..).zip(words.chunks_exact_mut(row_words)));
    let next = || rows.lock().unwrap_or_else(PoisonError::into_inner).next();
    let pack = || {
        let mut floats = vec![0.0; k];
        while let Some((row, out)) = next() {
            packing.pack(&tensors[row / per_tensor], row % per_tensor, &mut floats, out);
        }
    };
    thread::scope(|scope| {
        for _ in 1..thread::available_parallelism().map_or(1, usize::from) {
            // without further threads this one does all the work
            let _ = thread::Builder::new().name("packing".into()).spawn_scoped(scope, pack);
        }
        pack();
    });
    words
}
