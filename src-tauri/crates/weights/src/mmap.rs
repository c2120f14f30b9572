//! Bytes that many may hold without copying: a range of a mapped file, or of the program itself. The only unsafe
//! code of this crate: the act of mapping.

#![allow(unsafe_code)]

use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::atomic::AtomicBool;
#[cfg(target_os = "linux")]
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::Mmap;

/// Bytes of a page, or a divisor of that where pages are larger: advice is rounded once more by the system.
#[cfg(unix)]
const OS_PAGE: usize = 4096;

/// A range of bytes that stays where it is as long as anybody holds it. Cheap to clone.
#[derive(Clone)]
pub struct SharedBytes {
    backing: Backing,
    range: Range<usize>,
}

/// What the system is told of pages: hints, which change when bytes are where, never what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// They will be read soon: their reading from disk begins now, and nobody waits for it.
    Soon,
    /// All will be read again and again: large pages where there are any, which halve the work of a first touch.
    Often,
    /// They are not needed for now: the process gives them back. They come back by themselves when read again, from
    /// memory if the system had no other use for it.
    Release,
    /// As `Release`, and the system should make room at once: it would, but not know of what.
    Forget,
}

#[derive(Clone)]
enum Backing {
    Map(Arc<Mapped>),
    Static(&'static [u8]),
    Owned(Arc<Vec<u8>>),
}

/// A file and its bytes.
struct Mapped {
    map: Mmap,
    /// To name it to the system.
    #[cfg(target_os = "linux")]
    file: File,
    /// Whether some bytes have left the file for memory of their own: giving that back would lose them.
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
    /// Maps a regular file. Errors: as the system reports them; folders, pipes and devices are refused.
    pub fn map(path: &Path) -> std::io::Result<Self> {
        let metadata = std::fs::metadata(path)?; // before opening: opening a pipe would wait for a writer
        if !metadata.is_file() {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let file = File::open(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(Self::from_static(&[]));
        }
        // SAFETY: the map is read-only and private to us. What no program can exclude is that another one changes
        // or cuts the file meanwhile; numbers read from it are checked once and then held as our own values, so
        // changed bytes give wrong logits, never a wild access; a cut file ends the worker with SIGBUS, which its
        // supervisor reports. Model files are replaced by rename, which leaves existing maps whole.
        let map = unsafe { Mmap::map(&file)? };
        let mapped = Mapped {
            map,
            #[cfg(target_os = "linux")]
            file,
            has_moved: Mutex::new(false),
        };
        Ok(Self::whole(Backing::Map(Arc::new(mapped))))
    }

    pub const fn from_static(bytes: &'static [u8]) -> Self {
        Self { backing: Backing::Static(bytes), range: 0..bytes.len() }
    }

    pub fn from_vec(bytes: Vec<u8>) -> Self {
        Self::whole(Backing::Owned(Arc::new(bytes)))
    }

    /// Tells the system how these bytes will be used. Whether it listened: it doesn't where they are not mapped from
    /// a file, nor where it knows no such advice.
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
            Advice::Forget => release(map, &self.range) && forget(&mapped.file, &self.range),
            #[cfg(not(target_os = "linux"))]
            Advice::Forget => release(map, &self.range),
        }
    }

    #[cfg(not(unix))]
    pub fn advise(&self, _: Advice) -> bool {
        false
    }

    /// Puts whole large pages of a mapped file into memory of such pages, where they are read half as fast again; all
    /// keep their place and their bytes, so that whoever reads them meanwhile sees no difference. It takes as much
    /// memory as the bytes, which the system can't take back as it can pages of a file, and ends early when `stop` is
    /// set or memory is short. Returns the bytes that moved: none where there are no large pages.
    #[cfg(target_os = "linux")]
    pub fn move_to_large_pages(&self, stop: &AtomicBool) -> u64 {
        let Backing::Map(mapped) = &self.backing else { return 0 };
        if *mapped.has_moved.lock().unwrap_or_else(PoisonError::into_inner) {
            return 0; // for another who holds them
        }
        let start = self.as_ptr();
        let (first, last) = (start.align_offset(LARGE_PAGE), start.addr() + self.len());
        let n_bytes = last.saturating_sub(start.addr() + first) / LARGE_PAGE * LARGE_PAGE;
        let mut n_moved = 0;
        while n_moved < n_bytes && !stop.load(Ordering::Relaxed) {
            let step = MOVE_AT_ONCE.min(n_bytes - n_moved);
            let mut has_moved = mapped.has_moved.lock().unwrap_or_else(PoisonError::into_inner);
            if !move_pages(&self[first + n_moved..first + n_moved + step]) {
                break;
            }
            *has_moved = true;
            n_moved += step;
        }
        n_moved as u64
    }

    #[cfg(not(target_os = "linux"))]
    pub fn move_to_large_pages(&self, _: &AtomicBool) -> u64 {
        0
    }

    fn whole(backing: Backing) -> Self {
        let range = 0..backing.bytes().len();
        Self { backing, range }
    }

    /// A part of this range; shares its owner. Panics outside the range, as slicing does.
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

/// Bytes of a large page of the processors that we know.
#[cfg(target_os = "linux")]
const LARGE_PAGE: usize = 2 << 20;
/// Bytes that are in memory twice while they move.
#[cfg(target_os = "linux")]
const MOVE_AT_ONCE: usize = 4 * LARGE_PAGE;

/// Puts a copy of these bytes of a read-only map in their place; they begin and end at large pages. False: nothing
/// has changed.
#[cfg(target_os = "linux")]
fn move_pages(bytes: &[u8]) -> bool {
    use libc::{
        MADV_HUGEPAGE, MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, MREMAP_FIXED, MREMAP_MAYMOVE, PROT_READ,
        PROT_WRITE,
    };
    let (len, room_len) = (bytes.len(), bytes.len() + LARGE_PAGE);
    // SAFETY: new memory that nobody else knows of; it is checked below.
    let room = unsafe {
        libc::mmap(std::ptr::null_mut(), room_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    };
    if room == MAP_FAILED {
        return false;
    }
    // SAFETY: a large page at most further, where `room` has `len` bytes still. They are filled from `bytes`, which lie
    // elsewhere. Moving puts them, read-only as the map is, where `bytes` are, in one step: who reads there finds the
    // page of the file or its copy, which are the same bytes. The map is private to us and read-only, so nothing is
    // lost with its pages, and whoever unmaps its range unmaps the copy.
    unsafe {
        let copy = room.byte_add(room.align_offset(LARGE_PAGE));
        let moved = libc::madvise(copy, len, MADV_HUGEPAGE) == 0 && {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), copy.cast(), len);
            let place = bytes.as_ptr().cast_mut().cast::<libc::c_void>();
            libc::mprotect(copy, len, PROT_READ) == 0
                && libc::mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, place) != MAP_FAILED
        };
        // What is left of the room: all of it, or what lay before and behind the copy.
        if moved {
            let before = copy.byte_offset_from_unsigned(room);
            if before > 0 {
                libc::munmap(room, before);
            }
            if before < LARGE_PAGE {
                libc::munmap(copy.byte_add(len), LARGE_PAGE - before);
            }
        } else {
            libc::munmap(room, room_len);
        }
        moved
    }
}

/// Pages that others share with this range stay.
#[cfg(unix)]
fn release(map: &Mmap, range: &Range<usize>) -> bool {
    let first = range.start.next_multiple_of(OS_PAGE);
    let last = if range.end == map.len() { range.end } else { range.end / OS_PAGE * OS_PAGE };
    let advice = memmap2::UncheckedAdvice::DontNeed;
    // SAFETY: the map is read-only, so every page of it is the file's: one that was given back has the same bytes
    // when it is read again.
    first < last && unsafe { map.unchecked_advise_range(advice, first, last - first) }.is_ok()
}

/// Pages of the file that nobody has mapped leave the system's memory.
#[cfg(target_os = "linux")]
fn forget(file: &File, range: &Range<usize>) -> bool {
    use std::os::fd::AsRawFd;
    let (Ok(start), Ok(len)) = (i64::try_from(range.start), i64::try_from(range.len())) else { return false };
    // SAFETY: takes numbers only; the descriptor is open as long as `file` is.
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
        let (part, place) = (map.slice(1_000_000..1_000_100), map.as_ptr());
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
            map[..] == contents[..] && map.as_ptr() == place && part[..] == contents[1_000_000..1_000_100]
        );
        assert!(n_moved == 0 || !map.advise(Advice::Release) && !map.advise(Advice::Forget));
        assert!(map[..] == contents[..], "what moved isn't given back");
        assert_eq!(SharedBytes::from_static(b"abc").move_to_large_pages(&AtomicBool::new(false)), 0);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_is_no_file_is_refused_without_waiting() {
        assert!(SharedBytes::map(Path::new("/")).is_err());
        assert!(SharedBytes::map(Path::new("/dev/zero")).is_err());
    }
}
