//! Speed of the fast products on one thread: GB/s of weights for one token (what decoding is bound by) beside what
//! plain reading gives, and GOPS for a prompt. The best of many short runs, so that a busy machine disturbs little.
//!
//! cargo run --release -p kernels --example matmul_bench -- [dtype] [level]

use std::hint::black_box;

use io::{Clock, RealClock};
use kernels::cpu::isa::IsaLevel;
use kernels::matmul::packed_activations::PackedActivations;
use kernels::matmul::{ActivationFormat, Activations, MATMULS, MatMulRow, OutTile, WeightRows};

/// Columns of a matrix: a usual width.
const K: usize = 4096;
/// Weights of the decode run: far more than any cache.
const DECODE_BYTES: usize = 512 << 20;
/// Weights of a decode run that stays in the second-level cache.
const CACHED_BYTES: usize = 512 << 10;
/// Rows of one call of a prompt run, as the executor cuts it, and tokens: the last are as many as it takes at once.
const PROMPT_ROWS: usize = 128;
/// Such calls that are timed together, of rows that are in no cache, and how often.
const PROMPT_PIECE: usize = 8;
const PROMPT_PIECES: usize = 24;
const PROMPT_TOKENS: [usize; 6] = [2, 3, 4, 8, 64, 256];
/// Most bytes of rows in one call of the decode run, as the executor cuts it.
const TASK_BYTES: usize = 1024 * 1024;

/// Seconds that `run` takes.
fn timed(clock: &dyn Clock, run: impl FnOnce()) -> f64 {
    let start = clock.monotonic();
    run();
    (clock.monotonic() - start).as_secs_f64()
}

/// Activations in the format of a row.
struct BenchActivations {
    x: Vec<f32>,
    q: Vec<i8>,
    scales: Vec<f32>,
    sums: Vec<i32>,
    packed: PackedActivations,
}

impl BenchActivations {
    fn new(row: &MatMulRow, n_tokens: usize) -> Self {
        let x: Vec<f32> = (0..n_tokens * K).map(|i| ((i * 29 % 113) as f32 - 56.0) * 0.01).collect();
        let (n_scales, n_sums) = (row.act.n_scales(K), row.act.n_sums(K));
        let mut all = Self {
            x,
            q: vec![0; n_tokens * K],
            scales: vec![0.0; n_tokens * n_scales],
            sums: vec![0; n_tokens * n_sums],
            packed: PackedActivations::None,
        };
        for t in 0..if row.act == ActivationFormat::F32 { 0 } else { n_tokens } {
            (row.quantize)(
                &all.x[t * K..(t + 1) * K],
                &mut all.q[t * K..(t + 1) * K],
                &mut all.scales[t * n_scales..(t + 1) * n_scales],
                &mut all.sums[t * n_sums..(t + 1) * n_sums],
            );
        }
        all.packed = PackedActivations::pack(row.act, row.level, &all.acts(row, n_tokens))
            .expect("memory for a few tokens");
        all
    }

    fn acts(&self, row: &MatMulRow, n_tokens: usize) -> Activations<'_> {
        if row.act == ActivationFormat::F32 {
            return Activations::floats(&self.x, K);
        }
        let packed = self.packed.all();
        Activations { n_tokens, k: K, x: &[], q: &self.q, scales: &self.scales, sums: &self.sums, packed }
    }
}

/// GB/s for one token over a matrix in memory, by pieces of `piece` bytes.
fn decode(clock: &dyn Clock, row: &MatMulRow, bytes: &[u8], piece: usize) -> f64 {
    let row_bytes = row.dtype.row_bytes(K);
    let activations = BenchActivations::new(row, 1);
    let acts = activations.acts(row, 1);
    let task_rows = (TASK_BYTES.min(piece) / row_bytes).max(16) / 16 * 16;
    let task = task_rows * row_bytes;
    let mut out = vec![0.0; task_rows];
    let mut best = f64::INFINITY;
    for _ in 0..if bytes.len() == piece { 1000 } else { 6 } {
        for piece in bytes.chunks_exact(piece) {
            let seconds = timed(clock, || {
                for bytes in piece.chunks_exact(task) {
                    let w = WeightRows { bytes, row_bytes, k: K, next: &[] };
                    (row.kernel)(w, acts, &mut OutTile::whole(&mut out, task_rows));
                }
            });
            best = best.min(seconds / (piece.len() / task * task) as f64);
        }
    }
    black_box(&out);
    1e-9 / best
}

/// GOPS (two per multiply-add) for a tile of a prompt.
fn prompt(clock: &dyn Clock, row: &MatMulRow, bytes: &[u8], n_tokens: usize) -> f64 {
    let row_bytes = row.dtype.row_bytes(K);
    let activations = BenchActivations::new(row, n_tokens);
    let acts = activations.acts(row, n_tokens);
    let mut out = vec![0.0; n_tokens * PROMPT_ROWS];
    let task = PROMPT_ROWS * row_bytes;
    // As many rows in a row that one that is disturbed counts little, and from memory, as a prompt has them.
    let pieces = bytes.chunks_exact(PROMPT_PIECE * task);
    let mut run = |piece: &[u8]| {
        timed(clock, || {
            for (i, bytes) in piece.chunks_exact(task).enumerate() {
                let next = &piece[(i + 1) * task..];
                let w = WeightRows { bytes, row_bytes, k: K, next };
                (row.kernel)(w, acts, &mut OutTile::whole(&mut out, PROMPT_ROWS));
            }
        })
    };
    let seconds = pieces.take(PROMPT_PIECES).map(&mut run).fold(f64::INFINITY, f64::min);
    black_box(&out);
    (2 * PROMPT_PIECE * PROMPT_ROWS * n_tokens * K) as f64 / seconds * 1e-9
}

fn main() {
    let clock = RealClock::new();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted =
        |i: usize, name: &str| arguments.get(i).is_none_or(|a| a.eq_ignore_ascii_case(name) || a == "all");
    // The same valid half-precision scales everywhere: 0x2C2C is about 0.065 wherever a format looks for one.
    let bytes = vec![0x2Cu8; DECODE_BYTES];
    let words = bytes.as_chunks::<8>().0;
    let mut read = f64::INFINITY;
    for words in words.chunks(4 << 20).cycle().take(64) {
        let sum = || words.iter().fold(0u64, |sum, w| sum.wrapping_add(u64::from_le_bytes(*w)));
        let seconds = timed(&clock, || {
            black_box(sum());
        });
        read = read.min(seconds / (words.len() * 8) as f64);
    }
    println!("plain reading on one thread: {:.1} GB/s", 1e-9 / read);
    println!("dtype  level  GB/s (cached) and GOPS at {PROMPT_TOKENS:?} tokens");
    for row in MATMULS.iter().copied().flatten().filter(|row| row.level.is_present()) {
        if !wanted(0, row.dtype.name()) || !wanted(1, row.level.name()) || row.level == IsaLevel::Portable {
            continue;
        }
        let ops = PROMPT_TOKENS.map(|n| prompt(&clock, row, &bytes, n));
        print!(
            "{:6} {:8} {:5.1} ({:5.1})",
            row.dtype.name(),
            row.level.name(),
            decode(&clock, row, &bytes, 8 << 20),
            decode(&clock, row, &bytes[..CACHED_BYTES], CACHED_BYTES),
        );
        ops.iter().for_each(|ops| print!(" {ops:6.0}"));
        println!();
    }
}
