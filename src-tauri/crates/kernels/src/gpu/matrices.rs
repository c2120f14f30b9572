//! Matrices in a card's memory: packed row by row, cut between rows where they are larger than a kernel can be given.

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
    /// of a row, in fours of words
    pub row_quads: usize,
    pub parts: Vec<Part>,
}

/// Some of its rows.
pub struct Part {
    pub buffer: wgpu::Buffer,
    pub first: usize,
    pub n_rows: usize,
}

/// Those of one graph: a matrix that several nodes use is there once.
#[derive(Default)]
pub struct Matrices {
    places: HashMap<(usize, usize), usize>,
    all: Vec<Matrix>,
    /// of their weights as files have them
    n_bytes: u64,
    /// of what products find out on their way, and need no longer than for one layer
    scratch: Option<wgpu::Buffer>,
}

/// Words that are packed before they are sent.
const PIECE_WORDS: usize = 4 << 20;

impl Matrices {
    pub fn get(&self, at: usize) -> &Matrix {
        &self.all[at]
    }

    /// Bytes of weights that were brought here so far.
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Where the matrix of `tensors` is, which are of one format and shape; brought there if it isn't yet.
    pub fn put(&mut self, gpu: &Device, tensors: &[Tensor]) -> Result<usize, KernelError> {
        // the bytes of a file stay where they are while the graph holds them
        let key = (tensors[0].bytes().as_ptr().addr(), tensors.len());
        if let Some(at) = self.places.get(&key) {
            return Ok(*at);
        }
        self.all.push(upload(gpu, tensors)?);
        self.n_bytes += tensors.iter().map(|tensor| tensor.bytes().len() as u64).sum::<u64>();
        self.places.insert(key, self.all.len() - 1);
        Ok(self.all.len() - 1)
    }

    /// Memory that all layers use in turn; a larger one where that isn't enough.
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
    // experts of several formats meet in the one that all can be brought to
    if tensors.iter().any(|tensor| tensor.dtype() != tensors[0].dtype()) {
        packing = crate::matmul::gpu_packing::fallback();
    }
    let (per_tensor, k) = (tensors[0].n_rows(), tensors[0].n_cols());
    let row_words = packing.row_words(k);
    let n_rows = per_tensor * tensors.len();
    let limit = gpu.limits.max_storage_buffer_binding_size.min(gpu.limits.max_buffer_size) as usize;
    let rows_of_part = (limit / (4 * row_words)).max(1);
    let mut up = Upload::new(gpu);
    let mut parts = Vec::new();
    for first in (0..n_rows).step_by(rows_of_part) {
        let n_rows = rows_of_part.min(n_rows - first);
        let buffer = gpu.storage("weights", (n_rows * row_words * 4) as u64)?;
        let per_piece = (PIECE_WORDS / row_words).max(1);
        for start in (0..n_rows).step_by(per_piece) {
            let n = per_piece.min(n_rows - start);
            let words = packed(packing, tensors, per_tensor, first + start, n, row_words, k);
            up.put(&buffer, (start * row_words * 4) as u64, &words)?;
        }
        parts.push(Part { buffer, first, n_rows });
    }
    up.finish()?;
    Ok(Matrix { packing, row_quads: row_words / ALIGN_WORDS, parts })
}

/// Rows `first..first + n` of all tensors one after another: (n, row_words)
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
            // where no more threads are to be had, there are fewer
            let _ = thread::Builder::new().name("packing".into()).spawn_scoped(scope, pack);
        }
        pack();
    });
    words
}
