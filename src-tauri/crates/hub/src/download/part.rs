//! The partial file of a download: chunks arrive in any order and are written, hashed and recorded in the journal.
//!
//! Hands out runs of missing chunks to connections.

use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use io::{Io, IoError, RandomFile};

use crate::cache_layout::FilePaths;
use crate::download::journal::{Journal, JournalHeader};
use crate::sha::{self, Hash};

/// Chunk size of most files. A killed process loses at most one chunk per connection.
const CHUNK_BYTES: u64 = 256 << 10;
/// Chunk size of larger files, so that journals stay short.
const LARGE_CHUNK_BYTES: u64 = 1 << 20;
/// Files above this size use large chunks.
const LARGE_FILE_BYTES: u64 = 8 << 30;

/// Bytes between two syncs of the partial file.
const SYNC_INTERVAL_BYTES: u64 = 32 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkState {
    Missing,
    /// Being fetched by a connection.
    InFlight,
    /// On disk, with this hash.
    Arrived(Hash),
}

struct PartState {
    chunks: Vec<ChunkState>,
    have_bytes: u64,
    /// Bytes since the last sync.
    unsynced_bytes: u64,
}

/// A file that is being downloaded.
pub(crate) struct PartFile {
    file: Box<dyn RandomFile>,
    journal: Journal,
    header: JournalHeader,
    state: Mutex<PartState>,
    /// Chunk hashes from a signed manifest.
    expected: Option<Vec<Hash>>,
}

/// Chunk hashes of a file from a signed manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedChunks {
    pub chunk_bytes: u64,
    pub hashes: Vec<Hash>,
}

/// Journal header for a content, with the chunk size to use.
pub(crate) fn header(bytes: u64, key: &str, expected: Option<&ExpectedChunks>) -> JournalHeader {
    let usual = if bytes > LARGE_FILE_BYTES { LARGE_CHUNK_BYTES } else { CHUNK_BYTES };
    let chunk_bytes = expected.map_or(usual, |expected| expected.chunk_bytes);
    JournalHeader { bytes, chunk_bytes, key: key.into() }
}

impl PartFile {
    /// Opens or creates a partial file. Chunks not known to be durable are read and verified against their recorded hash.
    /// Errors as the disk reports them, such as no space.
    pub fn open(
        io: &dyn Io,
        paths: &FilePaths,
        header: JournalHeader,
        expected: Option<Vec<Hash>>,
    ) -> Result<Self, IoError> {
        let is_there = io.exists(&paths.part)?;
        if !is_there && io.exists(&paths.journal)? {
            io.remove_file(&paths.journal)?;
        }
        let (journal, account) = Journal::open(io, &paths.journal, &header)?;
        let file = io.open_random(&paths.part)?;
        if file.len()? != header.bytes {
            file.reserve(header.bytes)?;
        }
        let mut chunks = vec![ChunkState::Missing; account.len()];
        let mut have_bytes = 0;
        let mut block = Vec::new();
        for (index, arrived) in (0_u64..).zip(account) {
            let Some(arrived) = arrived else { continue };
            let len = header.len_of(index);
            if !arrived.is_durable && hash_chunk(&*file, &header, index, &mut block)? != arrived.hash {
                continue;
            }
            chunks[usize_of(index)] = ChunkState::Arrived(arrived.hash);
            have_bytes += len;
        }
        let state = Mutex::new(PartState { chunks, have_bytes, unsynced_bytes: 0 });
        Ok(Self { file, journal, header, state, expected })
    }

    fn lock(&self) -> MutexGuard<'_, PartState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn header(&self) -> &JournalHeader {
        &self.header
    }

    pub fn have_bytes(&self) -> u64 {
        self.lock().have_bytes
    }

    pub fn is_complete(&self) -> bool {
        self.lock().chunks.iter().all(|chunk| matches!(chunk, ChunkState::Arrived(_)))
    }

    /// Reserves the next run of missing chunks, at most `max_chunks`. None if none are missing.
    pub fn take_run(&self, max_chunks: u64) -> Option<Range<u64>> {
        let mut state = self.lock();
        let start = state.chunks.iter().position(|chunk| *chunk == ChunkState::Missing)?;
        let missing = state.chunks[start..].iter_mut().take_while(|chunk| **chunk == ChunkState::Missing);
        let n = missing.take(usize_of(max_chunks)).map(|chunk| *chunk = ChunkState::InFlight).count();
        Some(start as u64..(start + n) as u64)
    }

    /// Releases the chunks of a run that have not arrived.
    pub fn give_back(&self, run: Range<u64>) {
        let mut state = self.lock();
        let chunks = &mut state.chunks[usize_of(run.start)..usize_of(run.end)];
        chunks
            .iter_mut()
            .filter(|chunk| **chunk == ChunkState::InFlight)
            .for_each(|chunk| *chunk = ChunkState::Missing);
    }

    /// The first missing chunk at or after `from`.
    pub fn first_missing(&self, from: u64) -> Option<u64> {
        let state = self.lock();
        let rest = state.chunks.get(usize_of(from)..)?;
        rest.iter().position(|chunk| !matches!(chunk, ChunkState::Arrived(_))).map(|at| from + at as u64)
    }

    pub fn hash_of(&self, chunk: u64) -> Option<Hash> {
        match self.lock().chunks.get(usize_of(chunk)) {
            Some(ChunkState::Arrived(hash)) => Some(*hash),
            Some(ChunkState::Missing | ChunkState::InFlight) | None => None,
        }
    }

    /// Writes a chunk and records it. False, without writing, if its hash is not the expected one.
    pub fn store(&self, chunk: u64, bytes: &[u8]) -> Result<bool, IoError> {
        let hash = Hash::of(bytes);
        if let Some(expected) = &self.expected
            && expected.get(usize_of(chunk)) != Some(&hash)
        {
            return Ok(false);
        }
        self.file.write_at(chunk * self.header.chunk_bytes, bytes)?;
        self.journal.record_arrived(chunk, hash)?;
        let mut state = self.lock();
        let len = self.header.len_of(chunk);
        if !matches!(
            std::mem::replace(&mut state.chunks[usize_of(chunk)], ChunkState::Arrived(hash)),
            ChunkState::Arrived(_)
        ) {
            state.have_bytes += len;
        }
        state.unsynced_bytes += len;
        Ok(true)
    }

    /// Whether a sync is due; resets the counter.
    pub fn wants_sync(&self) -> bool {
        let mut state = self.lock();
        let wants = state.unsynced_bytes >= SYNC_INTERVAL_BYTES;
        if wants {
            state.unsynced_bytes = 0;
        }
        wants
    }

    /// Makes everything that has arrived survive a power cut.
    pub fn sync(&self) -> Result<(), IoError> {
        let until = self.journal.end();
        self.file.sync()?;
        self.journal.record_synced(until)
    }

    /// Marks a chunk as missing.
    pub fn forget(&self, chunk: u64) -> Result<(), IoError> {
        self.journal.record_invalid(chunk)?;
        let mut state = self.lock();
        let len = self.header.len_of(chunk);
        let old = std::mem::replace(&mut state.chunks[usize_of(chunk)], ChunkState::Missing);
        if matches!(old, ChunkState::Arrived(_)) {
            state.have_bytes -= len;
        }
        Ok(())
    }

    /// Hash of the bytes on disk. None if `on` returned false to stop.
    pub fn hash(&self, on: &mut dyn FnMut(u64) -> bool) -> Result<Option<Hash>, IoError> {
        sha::of_file(&*self.file, self.header.bytes, on)
    }

    /// Marks chunks whose bytes on disk no longer match their hash as missing, and returns their number.
    pub fn forget_corrupted(&self) -> Result<u64, IoError> {
        let mut block = Vec::new();
        let mut rotten = 0;
        for chunk in 0..self.header.n_chunks() {
            let Some(hash) = self.hash_of(chunk) else { continue };
            if hash_chunk(&*self.file, &self.header, chunk, &mut block)? != hash {
                self.forget(chunk)?;
                rotten += 1;
            }
        }
        Ok(rotten)
    }
}

/// Hash of a chunk as it is on disk now.
fn hash_chunk(
    file: &dyn RandomFile,
    header: &JournalHeader,
    chunk: u64,
    block: &mut Vec<u8>,
) -> Result<Hash, IoError> {
    block.resize(usize_of(header.len_of(chunk)), 0);
    let n = file.read_at(chunk * header.chunk_bytes, block)?;
    Ok(Hash::of(&block[..n]))
}

/// Chunk numbers always fit `usize`.
fn usize_of(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Removes the files of an interrupted download. Missing files are no error.
pub(crate) fn remove(io: &dyn Io, paths: &[&Path]) -> Result<(), IoError> {
    for path in paths {
        match io.remove_file(path) {
            Ok(()) => {}
            Err(error) if error.io_kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use io::{FaultDuration, FaultIo, RealIo};

    use super::*;
    use crate::address::Repository;
    use crate::cache_layout::{Layout, ModelDir};

    const BYTES: u64 = 25;

    fn head() -> JournalHeader {
        JournalHeader { bytes: BYTES, chunk_bytes: 10, key: "k".into() }
    }

    fn paths(name: &str) -> (std::path::PathBuf, FilePaths) {
        let root = std::env::temp_dir().join(format!("inglenook-part-{}-{name}", std::process::id()));
        let place = ModelDir { root: root.clone(), layout: Layout::Folder };
        let paths = place.paths(&Repository::parse("a/b").unwrap(), "c", "x.gguf", "k").unwrap();
        RealIo.create_dir_all(paths.part.parent().unwrap()).unwrap();
        (root, paths)
    }

    fn content(chunk: u64) -> Vec<u8> {
        vec![chunk as u8 + 1; if chunk == 2 { 5 } else { 10 }]
    }

    #[test]
    fn runs_are_given_out_once_and_what_arrived_stays() {
        let (root, paths) = paths("runs");
        let part = PartFile::open(&RealIo, &paths, head(), None).unwrap();
        assert_eq!(part.take_run(2), Some(0..2));
        assert_eq!(part.take_run(2), Some(2..3));
        assert_eq!(part.take_run(2), None);
        assert!(part.store(1, &content(1)).unwrap());
        part.give_back(0..2);
        assert_eq!(part.take_run(9), Some(0..1));
        drop(part);
        let part = PartFile::open(&RealIo, &paths, head(), None).unwrap();
        assert_eq!((part.have_bytes(), part.first_missing(1)), (10, Some(2)));
        part.store(0, &content(0)).unwrap();
        part.store(2, &content(2)).unwrap();
        assert!(part.is_complete());
        part.sync().unwrap();
        let whole = [content(0), content(1), content(2)].concat();
        assert_eq!(part.hash(&mut |_| true).unwrap(), Some(Hash::of(&whole)));
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_rots_on_the_disk_is_found_by_the_hashes_of_its_arrival() {
        let (root, paths) = paths("rot");
        let part = PartFile::open(&RealIo, &paths, head(), None).unwrap();
        (0..3).for_each(|chunk| assert!(part.store(chunk, &content(chunk)).unwrap()));
        let file = RealIo.open_random(&paths.part).unwrap();
        file.write_at(13, b"!").unwrap();
        assert_eq!(part.forget_corrupted().unwrap(), 1);
        assert_eq!((part.first_missing(0), part.have_bytes()), (Some(1), 15));
        drop(part);
        // Not known to be durable: looked at when it is opened, too.
        file.write_at(3, b"!").unwrap();
        let part = PartFile::open(&RealIo, &paths, head(), None).unwrap();
        assert_eq!((part.first_missing(0), part.have_bytes()), (Some(0), 5));
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn chunks_that_are_not_the_expected_ones_are_not_taken() {
        let (root, paths) = paths("expected");
        let expected = (0..3).map(|chunk| Hash::of(&content(chunk))).collect();
        let part = PartFile::open(&RealIo, &paths, head(), Some(expected)).unwrap();
        assert!(!part.store(0, &content(1)).unwrap());
        assert!(part.store(0, &content(0)).unwrap());
        assert_eq!(part.have_bytes(), 10);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_disk_that_fails_at_any_operation_never_makes_a_chunk_up() {
        let work = |io: &FaultIo<RealIo>, paths: &FilePaths| -> Result<(), IoError> {
            let part = PartFile::open(io, paths, head(), None)?;
            (0..3).try_for_each(|chunk| part.store(chunk, &content(chunk)).map(drop))?;
            part.sync()
        };
        for index in 0.. {
            let (root, paths) = paths(&format!("fault{index}"));
            let io = FaultIo::new(RealIo);
            io.fail_at(index, FaultDuration::Sticky, ErrorKind::StorageFull);
            let ended = work(&io, &paths);
            io.heal();
            let part = PartFile::open(&io, &paths, head(), None).unwrap();
            let mut block = Vec::new();
            for chunk in (0..3).filter(|chunk| part.hash_of(*chunk).is_some()) {
                let on_disk = hash_chunk(&*part.file, &head(), chunk, &mut block).unwrap();
                assert_eq!(on_disk, Hash::of(&content(chunk)), "after a fault at {index}");
            }
            work(&io, &paths).unwrap();
            std::fs::remove_dir_all(root).unwrap();
            if ended.is_ok() {
                assert!(index > 8, "every operation had its turn");
                break;
            }
        }
    }
}
