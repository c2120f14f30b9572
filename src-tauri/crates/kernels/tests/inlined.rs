//! Vector instructions are instructions. Where the compiler leaves a function of the standard library that takes a
//! closure (`array::map`, `from_fn`) out of line, the closure is compiled without the registers: each instruction in it
//! becomes a call that passes registers through memory, which once made attention ten times slower and changed no
//! result. The program must hold no such function.
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a failure here fails the test

use std::process::Command;

use kernels::matmul::MATMULS;
use kernels::ops::attention::pages;
use kernels::{Cpu, CpuOptions, KvDType};

/// What the compiler may leave out of line: questions to the processor, and what checks its pointer where assertions
/// are compiled in, as they are in tests.
const ALLOWED: [&str; 4] = ["xsave", "cpuid", "loadu", "storeu"];

#[test]
fn no_vector_instruction_is_a_call() {
    // Everything that computes is in the program: these tables name it.
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
