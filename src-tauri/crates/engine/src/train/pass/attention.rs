//! Attention of one query head over a whole sequence, and its gradients, for training: contiguous rows, no pages.
//! Computed in blocks of queries; probabilities are computed again for the gradients instead of being kept.

use kernels::AttentionShape;
use kernels::ops::Kernels;
use kernels::ops::attention::Partial;
use kernels::ops::panel::PanelShape;

/// Queries of a block.
pub(super) const QUERIES: usize = 32;
/// Scores of a row are padded to a multiple of this, as the softmax needs.
const PADDING: usize = 32;

/// One query head of one sequence of `n` rows that starts at position 0.
pub(super) struct HeadRows<'a> {
    /// shapes and scoring; causal, without sinks
    pub(super) shape: &'a AttentionShape,
    /// index of the query head
    pub(super) head: usize,
    /// (n, n_heads · head_dim)
    pub(super) q: &'a [f32],
    /// (n, n_kv_heads · head_dim)
    pub(super) k: &'a [f32],
    /// like k
    pub(super) v: &'a [f32],
}

/// Gradients of one query head, each (n, head_dim).
pub(super) struct HeadGradients {
    /// of the queries
    pub(super) dq: Vec<f32>,
    /// of the keys of its group, this head's share
    pub(super) dk: Vec<f32>,
    /// of the values of its group, this head's share
    pub(super) dv: Vec<f32>,
}

/// A block of queries: rows of the sequence, first visible key, and floats per row of scores.
struct QueryBlock {
    first: usize,
    n: usize,
    start: usize,
    stride: usize,
}

impl HeadRows<'_> {
    fn n_rows(&self) -> usize {
        self.q.len() / self.q_stride()
    }

    fn q_stride(&self) -> usize {
        self.shape.n_heads * self.shape.head_dim
    }

    fn kv_stride(&self) -> usize {
        self.shape.n_kv_heads * self.shape.head_dim
    }

    fn kv_start(&self) -> usize {
        self.head / (self.shape.n_heads / self.shape.n_kv_heads) * self.shape.head_dim
    }

    fn blocks(&self) -> impl Iterator<Item = QueryBlock> + use<> {
        let (n_rows, window) = (self.n_rows(), self.shape.window);
        (0..n_rows).step_by(QUERIES).map(move |first| {
            let n = QUERIES.min(n_rows - first);
            let start = window.map_or(0, |w| (first + 1).saturating_sub(w));
            QueryBlock { first, n, start, stride: (first + n - start).next_multiple_of(PADDING) }
        })
    }

    /// Probabilities of a block into `p` (n, stride), zero where hidden. With a cap, `capped` (n, stride) gets the
    /// scores after it.
    fn probabilities(
        &self,
        kernels: &Kernels,
        block: &QueryBlock,
        keys: &[f32],
        p: &mut [f32],
        capped: &mut [f32],
    ) {
        let (d, q_stride) = (self.shape.head_dim, self.q_stride());
        let (n_rows, n_keys) = (self.n_rows(), block.first + block.n - block.start);
        let shape = PanelShape {
            n_a: block.n,
            k: d,
            n: n_keys,
            a_stride: q_stride,
            b_stride: n_rows,
            c_stride: block.stride,
        };
        p.fill(0.0);
        let q = &self.q[block.first * q_stride + self.head * d..];
        (kernels.panel)(shape, q, &keys[block.start..], p);
        for (i, row) in p.chunks_exact_mut(block.stride).enumerate() {
            let position = block.first + i;
            let hidden = self.shape.window.map_or(0, |w| (position + 1).saturating_sub(w)) - block.start;
            let end = position + 1 - block.start;
            row[..hidden].fill(f32::NEG_INFINITY);
            row[end..].fill(f32::NEG_INFINITY);
            for score in &mut row[hidden..end] {
                *score *= self.shape.scale;
            }
            if let Some(cap) = self.shape.softcap {
                (kernels.softcap)(&mut row[hidden..end], cap);
                capped[i * block.stride..(i + 1) * block.stride].copy_from_slice(row);
            }
            let Partial { sum, .. } = (kernels.softmax)(row);
            for p in row.iter_mut() {
                *p /= sum;
            }
        }
    }
}

/// (n, head_dim) of a strided matrix → (head_dim, n)
fn transposed(rows: &[f32], start: usize, stride: usize, d: usize) -> Vec<f32> {
    let n = rows.len() / stride;
    let mut out = vec![0.0; d * n];
    for (i, row) in rows.chunks_exact(stride).enumerate() {
        for (j, x) in row[start..start + d].iter().enumerate() {
            out[j * n + i] = *x;
        }
    }
    out
}

/// Returns the output of a head: (n, head_dim).
pub(super) fn forward(kernels: &Kernels, rows: &HeadRows) -> Vec<f32> {
    let (d, kv_stride, kv_start) = (rows.shape.head_dim, rows.kv_stride(), rows.kv_start());
    let keys = transposed(rows.k, kv_start, kv_stride, d);
    let mut out = vec![0.0; rows.n_rows() * d];
    let (mut p, mut capped) = (Vec::new(), Vec::new());
    for block in rows.blocks() {
        p.resize(block.n * block.stride, 0.0);
        capped.resize(block.n * block.stride, 0.0);
        rows.probabilities(kernels, &block, &keys, &mut p, &mut capped);
        let n_keys = block.first + block.n - block.start;
        let shape = PanelShape {
            n_a: block.n,
            k: n_keys,
            n: d,
            a_stride: block.stride,
            b_stride: kv_stride,
            c_stride: d,
        };
        let v = &rows.v[block.start * kv_stride + kv_start..];
        (kernels.panel)(shape, &p, v, &mut out[block.first * d..]);
    }
    out
}

/// Returns the gradients of a head from `dy` (n, n_heads · head_dim).
///
/// With p the probabilities and dp = dy · vᵀ, ds is p · (dp − Σ p · dp) times the slope of the cap and the scale.
/// Then dq = ds · k, dk = dsᵀ · q and dv = pᵀ · dy.
pub(super) fn backward(kernels: &Kernels, rows: &HeadRows, dy: &[f32]) -> HeadGradients {
    let (d, n) = (rows.shape.head_dim, rows.n_rows());
    let (kv_stride, kv_start, q_stride) = (rows.kv_stride(), rows.kv_start(), rows.q_stride());
    let keys = transposed(rows.k, kv_start, kv_stride, d);
    let values = transposed(rows.v, kv_start, kv_stride, d);
    let mut all = HeadGradients { dq: vec![0.0; n * d], dk: vec![0.0; n * d], dv: vec![0.0; n * d] };
    let (mut p, mut capped, mut ds, mut turned) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for block in rows.blocks() {
        let len = block.n * block.stride;
        for buffer in [&mut p, &mut capped, &mut ds] {
            buffer.resize(len, 0.0);
        }
        rows.probabilities(kernels, &block, &keys, &mut p, &mut capped);
        let n_keys = block.first + block.n - block.start;
        let wide = PanelShape {
            n_a: block.n,
            k: d,
            n: n_keys,
            a_stride: q_stride,
            b_stride: n,
            c_stride: block.stride,
        };
        let block_start = block.first * q_stride + rows.head * d;
        ds.fill(0.0);
        (kernels.panel)(wide, &dy[block_start..], &values[block.start..], &mut ds);
        let narrow =
            PanelShape { n_a: n_keys, k: block.n, n: d, a_stride: block.n, b_stride: q_stride, c_stride: d };
        turn(&p, &block, n_keys, &mut turned);
        (kernels.panel)(narrow, &turned, &dy[block_start..], &mut all.dv[block.start * d..]);
        score_gradients(rows.shape, &block, &p, &capped, &mut ds);
        let back = PanelShape {
            n_a: block.n,
            k: n_keys,
            n: d,
            a_stride: block.stride,
            b_stride: kv_stride,
            c_stride: d,
        };
        let k = &rows.k[block.start * kv_stride + kv_start..];
        (kernels.panel)(back, &ds, k, &mut all.dq[block.first * d..]);
        turn(&ds, &block, n_keys, &mut turned);
        (kernels.panel)(narrow, &turned, &rows.q[block_start..], &mut all.dk[block.start * d..]);
    }
    all
}

/// Gradient of the probabilities in `ds` (n, stride) → gradient of q·k.
fn score_gradients(shape: &AttentionShape, block: &QueryBlock, p: &[f32], capped: &[f32], ds: &mut [f32]) {
    let rows = p.chunks_exact(block.stride).zip(capped.chunks_exact(block.stride));
    for ((p, capped), ds) in rows.zip(ds.chunks_exact_mut(block.stride)) {
        let mean: f32 = p.iter().zip(&*ds).map(|(p, dp)| p * dp).sum();
        for (p, ds) in p.iter().zip(&mut *ds) {
            *ds = p * (*ds - mean) * shape.scale;
        }
        if let Some(cap) = shape.softcap {
            // Hidden scores are infinite; their gradient is zero already.
            for (score, ds) in capped.iter().zip(ds).filter(|(score, _)| score.is_finite()) {
                *ds *= 1.0 - (score / cap) * (score / cap);
            }
        }
    }
}

/// (n, stride) → (n_keys, n)
fn turn(rows: &[f32], block: &QueryBlock, n_keys: usize, out: &mut Vec<f32>) {
    out.clear();
    out.resize(n_keys * block.n, 0.0);
    for (i, row) in rows.chunks_exact(block.stride).enumerate() {
        for (j, x) in row[..n_keys].iter().enumerate() {
            out[j * block.n + i] = *x;
        }
    }
}
