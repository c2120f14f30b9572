//! An allocator that ends the process where an input takes more memory than it may.
#![allow(unsafe_code)] // an allocator is unsafe by its trait

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::sync::atomic::{AtomicUsize, Ordering};

struct LimitedAllocator;

#[global_allocator]
static LIMITED: LimitedAllocator = LimitedAllocator;

/// Bytes that are allocated now.
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Bytes that may be. `usize::MAX` between inputs.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Runs `work`, which may take this many bytes beside what is allocated already.
pub fn within(max_bytes: usize, work: impl FnOnce()) {
    LIMIT.store(LIVE.load(Ordering::Relaxed) + max_bytes, Ordering::Relaxed);
    work();
    LIMIT.store(usize::MAX, Ordering::Relaxed);
}

fn note(n_bytes: usize) {
    let live = LIVE.fetch_add(n_bytes, Ordering::Relaxed).saturating_add(n_bytes);
    let limit = LIMIT.load(Ordering::Relaxed);
    if live > limit {
        // What follows allocates too.
        LIMIT.store(usize::MAX, Ordering::Relaxed);
        eprintln!("OUT OF MEMORY: {live} bytes of {limit}, {n_bytes} of them at once");
        eprintln!("{}", Backtrace::force_capture());
        std::process::abort();
    }
}

// SAFETY: forwards every call to the system's allocator.
unsafe impl GlobalAlloc for LimitedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.alloc(layout) }
    }

    // Pages that are never written stay unused, as with the system's own.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        note(new_size);
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.dealloc(pointer, layout) }
    }
}
