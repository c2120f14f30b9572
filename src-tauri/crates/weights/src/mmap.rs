//! Shared bytes without copying: ranges of a mapped file, of the program, or of a vector.
//!
//! Contains the only unsafe code of this crate: mapping and paging.

#![allow(unsafe_code)]

#[cfg(target_os = "linux")]
use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;
#[cfg(unix)]
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
#[cfg(target_os = "linux")]
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use memmap2::Mmap;

/// Page size, or a divisor of it on systems with larger pages; the system rounds advice again.
#[cfg(unix)]
const OS_PAGE: usize = 4096;

/// A range of bytes with a stable address while any clone is alive. Cheap to clone.
#[derive(Clone)]
pub struct SharedBytes {
    backing: Backing,
    range: Range<usize>,
}

/// Paging hints for mapped bytes. They affect where pages reside, never their contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Will be read soon: starts reading from disk in the background.
    Soon,
    /// Will be read repeatedly: uses large pages if available, which halve the cost of first access.
    Often,
    /// Not needed for now: the process releases the pages. Reading them again brings them back, from the page cache if
    /// it still has them.
    Release,
    /// As `Release`, and the page cache drops them too, so that memory is free at once.
    Forget,
}

#[derive(Clone)]
enum Backing {
    Map(Arc<MappedFile>),
    Static(&'static [u8]),
    Owned(Arc<Vec<u8>>),
}

/// A file and its mapping.
struct MappedFile {
    map: Mmap,
    /// For page cache advice.
    #[cfg(target_os = "linux")]
    file: File,
    /// Whether some pages were copied to anonymous memory: releasing those would lose them.
    #[cfg_attr(not(unix), allow(dead_code))]
    has_moved: Mutex<bool>,
}

impl Backing {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Map(mapped) => &mapped.map,
            Self::Static(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl SharedBytes {
    /// Maps a regular file. Errors as the system reports them, and for folders, pipes and devices.
    pub fn map(path: &Path) -> std::io::Result<Self> {
        let file = io::open_regular_file(path).map_err(|error| error.source)?;
        if file.metadata()?.len() == 0 {
            return Ok(Self::from_static(&[]));
        }
        // SAFETY: the map is read-only and private. Another program may still change or truncate the file. Numbers read
        // from it are checked once and kept as values, so changed bytes give wrong logits, never a wild access. A
        // truncated file ends the worker with SIGBUS, which its supervisor reports. Model files are replaced by
        // rename, which leaves existing maps intact.
        let map = unsafe { Mmap::map(&file)? };
        let mapped = MappedFile {
            map,
            #[cfg(target_os = "linux")]
            file,
            has_moved: Mutex::new(false),
        };
        Ok(Self::whole(Backing::Map(Arc::new(mapped))))
    }

    /// Bytes embedded in the program.
    pub const fn from_static(bytes: &'static [u8]) -> Self {
        Self { backing: Backing::Static(bytes), range: 0..bytes.len() }
    }

    /// Bytes owned in memory.
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        Self::whole(Backing::Owned(Arc::new(bytes)))
    }

    /// Advises the system how these bytes will be used. False if it does not support the advice or the bytes are not
    /// mapped from a file.
    #[cfg(unix)]
    pub fn advise(&self, advice: Advice) -> bool {
        let Backing::Map(mapped) = &self.backing else { return false };
        let (map, start, len) = (&mapped.map, self.range.start, self.range.len());
        let has_moved = mapped.has_moved.lock().unwrap_or_else(PoisonError::into_inner);
        match advice {
            Advice::Soon => map.advise_range(memmap2::Advice::WillNeed, start, len).is_ok(),
            #[cfg(target_os = "linux")]
            Advice::Often => map.advise_range(memmap2::Advice::HugePage, start, len).is_ok(),
            #[cfg(not(target_os = "linux"))]
            Advice::Often => false,
            Advice::Release | Advice::Forget if *has_moved => false,
            Advice::Release => release(map, &self.range),
            #[cfg(target_os = "linux")]
            Advice::Forget => release(map, &self.range) && drop_from_page_cache(&mapped.file, &self.range),
            #[cfg(not(target_os = "linux"))]
            Advice::Forget => release(map, &self.range),
        }
    }

    /// Does nothing on this system.
    #[cfg(not(unix))]
    pub fn advise(&self, _: Advice) -> bool {
        false
    }

    /// Copies a mapped file into large pages, which are read half as fast again. Addresses and contents stay the same, also
    /// for concurrent readers. Needs as much memory as the bytes, which the system cannot reclaim like file pages. Ends
    /// early when `stop` is set or memory is short. Returns the bytes moved: 0 without large pages.
    #[cfg(target_os = "linux")]
    pub fn move_to_large_pages(&self, stop: &AtomicBool) -> u64 {
        let Backing::Map(mapped) = &self.backing else { return 0 };
        if *mapped.has_moved.lock().unwrap_or_else(PoisonError::into_inner) {
            return 0; // another holder has moved them
        }
        let start = self.as_ptr();
        let (first, last) = (start.align_offset(LARGE_PAGE), start.addr() + self.len());
        let n_bytes = last.saturating_sub(start.addr() + first) / LARGE_PAGE * LARGE_PAGE;
        let mut n_moved = 0;
        while n_moved < n_bytes && !stop.load(Ordering::Relaxed) {
            let step = MOVE_STEP_BYTES.min(n_bytes - n_moved);
            let mut has_moved = mapped.has_moved.lock().unwrap_or_else(PoisonError::into_inner);
            if !move_pages(&self[first + n_moved..first + n_moved + step]) {
                break;
            }
            *has_moved = true;
            n_moved += step;
        }
        n_moved as u64
    }

    /// Does nothing on this system.
    #[cfg(not(target_os = "linux"))]
    pub fn move_to_large_pages(&self, _: &AtomicBool) -> u64 {
        0
    }

    fn whole(backing: Backing) -> Self {
        let range = 0..backing.bytes().len();
        Self { backing, range }
    }

    /// A sub-range that shares the owner. Panics outside the range, as slicing does.
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.range.len(), "slice outside the bytes");
        let start = self.range.start;
        Self { backing: self.backing.clone(), range: start + range.start..start + range.end }
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.backing.bytes()[self.range.clone()]
    }
}

impl std::fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedBytes({} bytes)", self.range.len())
    }
}

/// Size of a large page on x86-64 and AArch64.
#[cfg(target_os = "linux")]
const LARGE_PAGE: usize = 2 << 20;
/// Bytes moved per step, which are in memory twice meanwhile.
#[cfg(target_os = "linux")]
const MOVE_STEP_BYTES: usize = 4 * LARGE_PAGE;

/// Replaces these bytes of a read-only map by a copy in large pages; they begin and end at large page boundaries. False
/// if nothing changed.
#[cfg(target_os = "linux")]
fn move_pages(bytes: &[u8]) -> bool {
    use libc::{
        MADV_HUGEPAGE, MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, MREMAP_FIXED, MREMAP_MAYMOVE, PROT_READ,
        PROT_WRITE,
    };
    let (len, reserved_len) = (bytes.len(), bytes.len() + LARGE_PAGE);
    // SAFETY: a fresh private mapping; the result is checked below.
    let reserved = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            reserved_len,
            PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if reserved == MAP_FAILED {
        return false;
    }
    // SAFETY: aligning skips less than a large page, so `reserved` still has `len` bytes. They are filled from `bytes`, which
    // do not overlap them. `mremap` puts the copy, read-only like the map, at the address of `bytes` in one step: a
    // concurrent reader sees the file's page or its copy, which are equal. The map is private and read-only, so its old
    // pages lose nothing, and unmapping its range unmaps the copy.
    unsafe {
        let copy = reserved.byte_add(reserved.align_offset(LARGE_PAGE));
        let moved = libc::madvise(copy, len, MADV_HUGEPAGE) == 0 && {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), copy.cast(), len);
            let target = bytes.as_ptr().cast_mut().cast::<libc::c_void>();
            libc::mprotect(copy, len, PROT_READ) == 0
                && libc::mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, target) != MAP_FAILED
        };
        // Unmap the rest of the reservation: all of it, or the parts before and after the copy.
        if moved {
            let before = copy.byte_offset_from_unsigned(reserved);
            if before > 0 {
                libc::munmap(reserved, before);
            }
            if before < LARGE_PAGE {
                libc::munmap(copy.byte_add(len), LARGE_PAGE - before);
            }
        } else {
            libc::munmap(reserved, reserved_len);
        }
        moved
    }
}

/// Releases the whole pages of a range; pages shared with neighbouring ranges stay.
#[cfg(unix)]
fn release(map: &Mmap, range: &Range<usize>) -> bool {
    let first = range.start.next_multiple_of(OS_PAGE);
    let last = if range.end == map.len() { range.end } else { range.end / OS_PAGE * OS_PAGE };
    let advice = memmap2::UncheckedAdvice::DontNeed;
    // SAFETY: the map is read-only, so every page is backed by the file: a released page has the same bytes when it is
    // read again.
    first < last && unsafe { map.unchecked_advise_range(advice, first, last - first) }.is_ok()
}

/// Drops unmapped pages of the file from the page cache.
#[cfg(target_os = "linux")]
fn drop_from_page_cache(file: &File, range: &Range<usize>) -> bool {
    use std::os::fd::AsRawFd;
    let (Ok(start), Ok(len)) = (i64::try_from(range.start), i64::try_from(range.len())) else { return false };
    // SAFETY: the call takes only numbers; the descriptor is open while `file` is alive.
    unsafe { libc::posix_fadvise64(file.as_raw_fd(), start, len, libc::POSIX_FADV_DONTNEED) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_slices_share_the_owner() {
        let bytes = SharedBytes::from_vec((0..10).collect());
        let part = bytes.slice(2..8).slice(1..3);
        drop(bytes);
        assert_eq!(&part[..], [3, 4]);
    }

    #[test]
    fn advice_changes_no_byte_and_errs_nowhere() {
        let path = std::env::temp_dir().join(format!("inglenook-mmap-{}", std::process::id()));
        let contents: Vec<u8> = (0..100_000u32).map(|i| (i * 7 % 251) as u8).collect();
        std::fs::write(&path, &contents).unwrap();
        let map = SharedBytes::map(&path).unwrap();
        for range in [0..100_000, 5000..5001, 4096..8192, 99_990..100_000, 7..7] {
            let part = map.slice(range.clone());
            for advice in
                [Advice::Soon, Advice::Often, Advice::Release, Advice::Forget, Advice::Release, Advice::Soon]
            {
                part.advise(advice);
                assert!(
                    part[..] == contents[range.clone()] && map[..] == contents[..],
                    "{range:?} {advice:?}"
                );
            }
        }
        assert!(cfg!(not(unix)) || map.advise(Advice::Release) && map.advise(Advice::Forget));
        assert!(!SharedBytes::from_static(b"abc").advise(Advice::Release));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn bytes_that_move_stay_what_and_where_they_are() {
        let path = std::env::temp_dir().join(format!("inglenook-mmap-move-{}", std::process::id()));
        let contents: Vec<u8> =
            (0..7 * LARGE_PAGE + 12_345).map(|i| (i * 7 % 251) as u8 ^ (i >> 12) as u8).collect();
        std::fs::write(&path, &contents).unwrap();
        let map = SharedBytes::map(&path).unwrap();
        let (part, address) = (map.slice(1_000_000..1_000_100), map.as_ptr());
        assert_eq!(map.move_to_large_pages(&AtomicBool::new(true)), 0, "stopped before it began");
        let n_moved = std::thread::scope(|scope| {
            let reader = scope.spawn(|| (0..20).all(|_| map[..] == contents[..]));
            let n_moved = map.move_to_large_pages(&AtomicBool::new(false));
            assert!(reader.join().unwrap(), "who reads meanwhile sees no difference");
            n_moved
        });
        // Where maps begin is the system's choice: a large page may be cut at each end.
        let large = LARGE_PAGE as u64;
        assert!(n_moved == 0 || (6 * large..=7 * large).contains(&n_moved), "{n_moved}");
        assert!(
            map[..] == contents[..] && map.as_ptr() == address && part[..] == contents[1_000_000..1_000_100]
        );
        assert!(n_moved == 0 || !map.advise(Advice::Release) && !map.advise(Advice::Forget));
        assert!(map[..] == contents[..], "what moved isn't given back");
        assert_eq!(SharedBytes::from_static(b"abc").move_to_large_pages(&AtomicBool::new(false)), 0);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn non_files_are_refused_without_waiting() {
        assert!(SharedBytes::map(Path::new("/")).is_err());
        assert!(SharedBytes::map(Path::new("/dev/zero")).is_err());
    }
}
