//! Bytes that many may hold without copying: a range of a mapped file, or of the program itself. The only unsafe
//! code of this crate: the act of mapping.

#![allow(unsafe_code)]

use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

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
        match advice {
            Advice::Soon => map.advise_range(memmap2::Advice::WillNeed, start, len).is_ok(),
            #[cfg(target_os = "linux")]
            Advice::Often => map.advise_range(memmap2::Advice::HugePage, start, len).is_ok(),
            #[cfg(not(target_os = "linux"))]
            Advice::Often => false,
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
    fn what_is_no_file_is_refused_without_waiting() {
        assert!(SharedBytes::map(Path::new("/")).is_err());
        assert!(SharedBytes::map(Path::new("/dev/zero")).is_err());
    }
}
