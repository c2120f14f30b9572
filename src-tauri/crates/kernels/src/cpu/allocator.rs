//! Arenas of the C library's allocator.
//!
//! glibc gives threads up to eight arenas for each processor, and what is freed in one arena serves no other. A server
//! whose threads come and go grows for hours until each arena has seen its largest load.
#![cfg_attr(not(all(target_os = "linux", target_env = "gnu")), forbid(unsafe_code))]

/// Measured under 32 clients: with sixteen arenas resident memory rose by 17 MB per hour. With two it is level after 25
/// minutes (docs/BENCHMARKS.md).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAX_ARENAS: libc::c_int = 2;

/// Limits the arenas of this process. Call it before the first thread starts. Returns whether the allocator obeys:
/// others than glibc's have no such arenas.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn limit_arenas() -> bool {
    // SAFETY: takes two integers and keeps no pointer.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, MAX_ARENAS) == 1 }
}

/// Limits the arenas of this process. Call it before the first thread starts. Returns whether the allocator obeys:
/// others than glibc's have no such arenas.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn limit_arenas() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glibc_obeys() {
        let is_glibc = cfg!(all(target_os = "linux", target_env = "gnu"));
        assert_eq!(limit_arenas(), is_glibc);
    }
}
