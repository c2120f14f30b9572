//! The most int8 multiply-adds that this processor does, out of registers.

use std::hint::black_box;
use std::time::Instant;

use crate::each_thread;

/// Chains that do not wait for each other: more than latency times throughput of any processor known to us.
#[cfg(target_arch = "x86_64")]
const CHAINS: usize = 16;
const TURNS: u64 = 20_000_000;
const TRIES: usize = 3;

/// (instruction, 10⁹ operations per second of all threads together, a multiply-add being two); the best of some
/// tries. `None` where we know no instruction.
pub fn peak(n_threads: usize) -> Option<(&'static str, f64)> {
    let (name, n_operations, turn) = instruction()?;
    let best = (0..TRIES).map(|_| {
        let rates = each_thread(n_threads, || {
            let start = Instant::now();
            turn(black_box(TURNS));
            (TURNS * n_operations) as f64 / start.elapsed().as_secs_f64()
        });
        rates.into_iter().sum::<f64>() / 1e9
    });
    Some((name, best.fold(0.0, f64::max)))
}

/// Name, operations in a turn, and the number of turns.
type Instruction = (&'static str, u64, fn(u64));

#[cfg(not(target_arch = "x86_64"))]
fn instruction() -> Option<Instruction> {
    None
}

#[cfg(target_arch = "x86_64")]
fn instruction() -> Option<Instruction> {
    let chains = CHAINS as u64;
    if is_x86_feature_detected!("avx512vnni") {
        // SAFETY: the processor has it.
        return Some(("vpdpbusd zmm", chains * 64 * 2, |n| unsafe { vnni_512(n) }));
    }
    if is_x86_feature_detected!("avxvnni") {
        // SAFETY: the processor has it.
        return Some(("vpdpbusd ymm", chains * 32 * 2, |n| unsafe { vnni_256(n) }));
    }
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has it.
        return Some(("vpmaddubsw ymm", chains * 32 * 2, |n| unsafe { maddubs(n) }));
    }
    None
}

/// # Safety
/// AVX-512 VNNI is present.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn vnni_512(n: u64) {
    use std::arch::x86_64::{_mm512_dpbusd_epi32, _mm512_set1_epi32};
    let (a, b) = (_mm512_set1_epi32(black_box(0x0102_0304)), _mm512_set1_epi32(black_box(0x0403_0201)));
    let mut sums = [a; CHAINS];
    for _ in 0..n {
        for sum in &mut sums {
            *sum = _mm512_dpbusd_epi32(*sum, a, b);
        }
    }
    black_box(sums);
}

/// # Safety
/// AVX-VNNI is present.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,avxvnni")]
unsafe fn vnni_256(n: u64) {
    use std::arch::x86_64::{_mm256_dpbusd_avx_epi32, _mm256_set1_epi32};
    let (a, b) = (_mm256_set1_epi32(black_box(0x0102_0304)), _mm256_set1_epi32(black_box(0x0403_0201)));
    let mut sums = [a; CHAINS];
    for _ in 0..n {
        for sum in &mut sums {
            *sum = _mm256_dpbusd_avx_epi32(*sum, a, b);
        }
    }
    black_box(sums);
}

/// Products of bytes, summed in pairs and then in fours: three instructions where VNNI needs one.
///
/// # Safety
/// AVX2 is present.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn maddubs(n: u64) {
    use std::arch::x86_64::{
        _mm256_add_epi32, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_set1_epi16, _mm256_set1_epi32,
    };
    let (mut a, b) = (_mm256_set1_epi32(black_box(0x0102_0304)), _mm256_set1_epi32(black_box(0x0403_0201)));
    let ones = _mm256_set1_epi16(1);
    let mut sums = [b; CHAINS];
    for _ in 0..n {
        // Hidden, so that the products are not taken out of the loop.
        a = black_box(a);
        for sum in &mut sums {
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
        }
    }
    black_box(sums);
}
