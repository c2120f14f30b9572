//! `peer-machine`: what this machine gives at most, and work that keeps it busy.
//!
//! `limits --threads 2` prints one JSON row: bytes read from memory per second by all threads together, and int8
//! multiply-adds (two operations each) per second out of registers. `spin` computes until it is ended.

#[path = "machine/integers.rs"]
mod integers;

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Barrier;
use std::time::Instant;

/// Far more than any cache holds.
const BYTES_READ: usize = 1 << 30;
const PASSES: usize = 8;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["limits", "--threads", n] if n.parse().is_ok_and(|n: usize| (1..=1024).contains(&n)) => {
            limits(n.parse().unwrap_or(1));
            ExitCode::SUCCESS
        }
        ["spin"] => spin(),
        _ => {
            eprintln!("peer-machine limits --threads N | peer-machine spin");
            ExitCode::FAILURE
        }
    }
}

fn limits(n_threads: usize) {
    let (best, usual) = bandwidth(n_threads);
    let (instruction, gops) = match integers::peak(n_threads) {
        Some((name, gops)) => (format!("\"{name}\""), format!("{gops:.1}")),
        None => ("null".into(), "null".into()),
    };
    let read = format!(r#""read_gb_s":{best:.2},"read_usual_gb_s":{usual:.2}"#);
    println!(r#"{{"threads":{n_threads},{read},"int8_gops":{gops},"instruction":{instruction}}}"#);
}

/// Gigabytes (10⁹) per second: the best of some passes, which is a limit, and their median. The median is what can be
/// expected where other programs use the memory too.
fn bandwidth(n_threads: usize) -> (f64, f64) {
    let n_words = BYTES_READ / size_of::<u64>() / n_threads;
    let barrier = Barrier::new(n_threads);
    let passes = each_thread(n_threads, || {
        // Written by the thread that reads it: its pages lie near.
        let words: Vec<u64> = (0..n_words as u64).collect();
        let timed = |_| {
            barrier.wait();
            let start = Instant::now();
            black_box(sum(black_box(&words)));
            barrier.wait();
            start.elapsed().as_secs_f64()
        };
        (0..PASSES).map(timed).collect::<Vec<f64>>()
    });
    let mut slowest: Vec<f64> =
        (0..PASSES).map(|pass| passes.iter().map(|of| of[pass]).fold(0.0, f64::max)).collect();
    slowest.sort_by(f64::total_cmp);
    let gb = (n_words * n_threads * size_of::<u64>()) as f64 / 1e9;
    (gb / slowest[0], gb / slowest[PASSES / 2])
}

/// Several sums at once, so that no addition waits for another. One run through memory: several streams at once were
/// slower where we tried.
fn sum(words: &[u64]) -> u64 {
    const LANES: usize = 64;
    let mut sums = [0_u64; LANES];
    for row in words.chunks_exact(LANES) {
        for (sum, word) in sums.iter_mut().zip(row) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}

/// The results of `work` on each of `n` threads.
fn each_thread<T: Send>(n_threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(&work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("the work does not panic")).collect()
    })
}

fn spin() -> ! {
    let mut x = 1_u64;
    loop {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}
