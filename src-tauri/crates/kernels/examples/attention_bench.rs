//! Measures attention over long contexts on one thread: scores and weighted sums, without the softmax. Prints medians: GOPS
//! with pages in the second-level cache and from memory, and GB/s from memory.
//!
//! cargo run --release -p kernels --example attention_bench -- [dtype] [level]

use std::hint::black_box;

use io::{Clock, RealClock};
use kernels::cpu::isa::IsaLevel;
use kernels::ops::attention::CHUNK;
use kernels::ops::attention::page_operands::{PageKernels, PageQueries, SCORE_STRIDE, ValueWeights};
use kernels::ops::attention::pages;
use kernels::{KvDType, PAGE_LEN};

/// Query heads that share a KV head.
const N_QUERIES: usize = 4;
/// Bytes of pages that come from memory: far more than any cache.
const BYTES: usize = 256 << 20;
/// Bytes of pages that stay in the second-level cache.
const CACHED_BYTES: usize = 128 << 10;
/// Blocks that the executor prefetches ahead.
const AHEAD: usize = 2;

/// Scratch memory of one thread.
struct AttentionScratch {
    x: Vec<f32>,
    q: Vec<i16>,
    scales: Vec<f32>,
    scores: Vec<f32>,
    sums: Vec<f32>,
    room: Vec<f32>,
}

/// Runs the blocks of one chunk as the executor does: its keys first, then its values.
fn chunk(kernels: &PageKernels, d: usize, blocks: &[&[u8]], room: &mut AttentionScratch) {
    let n_pages = blocks.len() / 2;
    let ahead = |i: usize| blocks.get(i + AHEAD).copied().unwrap_or_default();
    for (i, keys) in blocks[..n_pages].iter().enumerate() {
        let queries = PageQueries { n: N_QUERIES, head_dim: d, x: &room.x, q: &room.q, scales: &room.scales };
        let scores = &mut room.scores[i * PAGE_LEN..];
        (kernels.score)(&queries, keys, ahead(i), &mut room.room, scores);
    }
    for (i, values) in blocks[n_pages..].iter().enumerate() {
        let x = &room.scores[i * PAGE_LEN..];
        let weights = ValueWeights { n: N_QUERIES, x, slots: 0..PAGE_LEN };
        (kernels.sum)(&weights, d, values, ahead(n_pages + i), &mut room.room, &mut room.sums);
    }
}

/// Median time per block, in seconds.
fn pass(
    clock: &dyn Clock,
    kernels: &PageKernels,
    d: usize,
    bytes: &[u8],
    block: usize,
    room: &mut AttentionScratch,
) -> f64 {
    let blocks: Vec<&[u8]> = bytes.chunks_exact(block).collect();
    let mut seconds: Vec<f64> = Vec::new();
    for _ in 0..if bytes.len() == CACHED_BYTES { 400 } else { 5 } {
        for blocks in blocks.chunks_exact(2 * CHUNK / PAGE_LEN) {
            let start = clock.monotonic();
            chunk(kernels, d, blocks, room);
            seconds.push((clock.monotonic() - start).as_secs_f64() / blocks.len() as f64);
        }
    }
    black_box(&room.sums);
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn main() {
    let clock = RealClock::new();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted =
        |i: usize, name: &str| arguments.get(i).is_none_or(|a| a.eq_ignore_ascii_case(name) || a == "all");
    // equal small f16 numbers everywhere
    let bytes = vec![0x2C; BYTES];
    println!(
        "{:6} {:8} {:>8} {:>12} {:>16}",
        "dtype", "level", "head_dim", "GOPS cached", "from memory, GB/s"
    );
    for (name, dtype) in [("f16", KvDType::F16), ("q8_0", KvDType::Q8_0), ("q4_0", KvDType::Q4_0)] {
        for level in IsaLevel::present().filter(|l| *l != IsaLevel::Portable) {
            if !wanted(0, name) || !wanted(1, level.name()) {
                continue;
            }
            for d in [64, 128] {
                let kernels = pages::of(dtype).at(level);
                let mut room = AttentionScratch {
                    x: (0..N_QUERIES * d).map(|i| (i % 17) as f32 * 0.01 - 0.08).collect(),
                    q: (0..N_QUERIES * d).map(|i| (i * 977 % 65_000) as i16).collect(),
                    scales: vec![1e-5; N_QUERIES],
                    scores: vec![0.0; N_QUERIES * SCORE_STRIDE],
                    sums: vec![0.0; N_QUERIES * d],
                    room: vec![0.0; PAGE_LEN * d],
                };
                let block = PAGE_LEN * dtype.row_bytes(d);
                let ops = (2 * N_QUERIES * PAGE_LEN * d) as f64;
                let cached = pass(&clock, &kernels, d, &bytes[..CACHED_BYTES], block, &mut room);
                let far = pass(&clock, &kernels, d, &bytes, block, &mut room);
                println!(
                    "{name:6} {:8} {d:8} {:12.0} {:8.0} {:7.1}",
                    level.name(),
                    ops / cached * 1e-9,
                    ops / far * 1e-9,
                    block as f64 / far * 1e-9
                );
            }
        }
    }
}
