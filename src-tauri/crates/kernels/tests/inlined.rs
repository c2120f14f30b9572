//! Checks that SIMD intrinsics are inlined. If the compiler does not inline a standard library function that takes a
//! closure (`array::map`, `from_fn`), the closure is compiled without the target features, and each intrinsic becomes a
//! call. That once made attention ten times slower without changing results. The binary must not contain such a function.
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a failure here fails the test

use std::process::Command;

use kernels::matmul::MATMULS;
use kernels::ops::attention::pages;
use kernels::{Cpu, CpuOptions, KvDType};

/// Functions that may stay out of line: CPU feature detection, and pointer checks of debug assertions.
const ALLOWED: [&str; 4] = ["xsave", "cpuid", "loadu", "storeu"];

#[test]
fn no_vector_instruction_is_a_call() {
    // these tables reference all kernels, so that the binary contains them
    Cpu::new(CpuOptions::default()).unwrap();
    assert!(MATMULS.iter().any(|rows| !rows.is_empty()));
    pages::of(KvDType::Q4_0);
    let listed = Command::new("nm").arg(std::env::current_exe().unwrap()).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("kernels") && listed.contains("attention"), "a program without its symbols");
    let calls: Vec<&str> = listed
        .lines()
        .filter(|line| line.contains("core_arch") && ALLOWED.iter().all(|allowed| !line.contains(allowed)))
        .collect();
    assert!(calls.is_empty(), "{}", calls.join("\n"));
}
