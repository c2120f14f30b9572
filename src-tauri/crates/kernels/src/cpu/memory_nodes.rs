//! Memory nodes (NUMA): from which of them the operating system takes the pages of weights and contexts.
//!
//! Threads that are bound to processors place what they touch first, but one thread reads a file's pages for all. Linux
//! keeps a policy for each thread, and the threads that it starts inherit it. Memory obeys it, and so do pages of mapped
//! files that are not in the page cache yet.
#![cfg_attr(not(target_os = "linux"), forbid(unsafe_code))]

use std::io;

/// Where new pages come from on a computer with several memory nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum MemoryNodes {
    /// What the process was started with: in general the node of the processor that touches a page first.
    #[default]
    Inherited,
    /// This node, and others once it is full.
    Prefer(usize),
    /// Each of these in turn, page by page.
    Interleave(Vec<usize>),
}

impl MemoryNodes {
    /// Takes effect for this thread, and for threads that it starts from now on.
    ///
    /// # Errors
    /// The kernel does not support memory nodes, lacks one of these, or forbids the call, as containers may.
    #[cfg(target_os = "linux")]
    pub fn apply(&self) -> io::Result<()> {
        match self {
            Self::Inherited => Ok(()),
            Self::Prefer(node) => set_policy(libc::MPOL_PREFERRED, &[*node]),
            Self::Interleave(nodes) => set_policy(libc::MPOL_INTERLEAVE, nodes),
        }
    }

    /// Takes effect for this thread, and for threads that it starts from now on.
    ///
    /// # Errors
    /// Anything but `Inherited`: only Linux is asked for memory of chosen nodes.
    #[cfg(not(target_os = "linux"))]
    pub fn apply(&self) -> io::Result<()> {
        match self {
            Self::Inherited => Ok(()),
            Self::Prefer(_) | Self::Interleave(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

#[cfg(target_os = "linux")]
fn set_policy(mode: libc::c_int, nodes: &[usize]) -> io::Result<()> {
    const BITS: usize = libc::c_ulong::BITS as usize;
    let n_words = nodes.iter().max().map_or(0, |node| node / BITS + 1);
    let mut mask: Vec<libc::c_ulong> = vec![0; n_words];
    for node in nodes {
        mask[node / BITS] |= 1 << (node % BITS);
    }
    // The kernel takes one bit less than the number says.
    let n_bits = n_words * BITS + 1;
    // SAFETY: the kernel reads `n_bits - 1` bits, which `mask` has; it keeps no pointer.
    let status = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask.as_ptr(), n_bits) };
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use test_support::{Missing, skip};

    /// This thread's policy and the nodes it names.
    fn current() -> io::Result<(libc::c_int, libc::c_ulong)> {
        let (mut mode, mut mask): (libc::c_int, [libc::c_ulong; 16]) = (0, [0; 16]);
        let n_bits = 16 * libc::c_ulong::BITS as usize;
        // SAFETY: the kernel writes one `int` and at most `n_bits` bits, which both have room for.
        let status = unsafe {
            libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, mask.as_mut_ptr(), n_bits, 0_usize, 0)
        };
        match status {
            0 => Ok((mode, mask[0])),
            _ => Err(io::Error::last_os_error()),
        }
    }

    #[test]
    fn threads_take_memory_from_where_they_are_told_and_hand_it_on() {
        if let Err(error) = current() {
            skip!(Missing::Platform, "the kernel knows no memory nodes: {error}");
        }
        let before = current().unwrap();
        MemoryNodes::Inherited.apply().unwrap();
        assert_eq!(current().unwrap(), before, "what others chose stays");
        MemoryNodes::Interleave(vec![0]).apply().unwrap();
        assert_eq!(current().unwrap(), (libc::MPOL_INTERLEAVE, 1));
        let started = std::thread::spawn(|| current().unwrap()).join().unwrap();
        assert_eq!(started, (libc::MPOL_INTERLEAVE, 1), "threads inherit it");
        MemoryNodes::Prefer(0).apply().unwrap();
        assert_eq!(current().unwrap(), (libc::MPOL_PREFERRED, 1));
        MemoryNodes::Prefer(1000).apply().unwrap_err();
        assert_eq!(current().unwrap(), (libc::MPOL_PREFERRED, 1), "a refusal changes nothing");
    }
}
