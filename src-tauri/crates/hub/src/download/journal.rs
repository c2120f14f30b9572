//! Journal of a partial file: one line per arrived chunk with its hash, and marks up to which data is durable.
//!
//! Guarantees a true account after any crash. A torn or damaged line ends the journal; later chunks are fetched again.

use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;

use io::{Io, IoError, RandomFile};

use crate::sha::Hash;

/// First word of the header line; names the format version.
const FORMAT: &str = "inglenook-part 1";

/// Longest journal that is read: enough for files of terabytes.
const MAX_JOURNAL_BYTES: u64 = 256 << 20;

/// Digits of a line's checksum.
const CHECK_DIGITS: usize = 8;

/// Which content the partial file belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JournalHeader {
    pub bytes: u64,
    pub chunk_bytes: u64,
    /// Identifies the content: its SHA-256 or the server's entity tag.
    pub key: String,
}

/// Record of an arrived chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkRecord {
    pub hash: Hash,
    /// Whether the data is known to be on disk.
    pub is_durable: bool,
}

/// An open journal.
pub(crate) struct Journal {
    file: Box<dyn RandomFile>,
    end: Mutex<u64>,
}

impl Journal {
    /// Opens a journal, or starts a new one if it belongs to another content. Returns the records by chunk number.
    pub fn open(
        io: &dyn Io,
        path: &Path,
        header: &JournalHeader,
    ) -> Result<(Self, Vec<Option<ChunkRecord>>), IoError> {
        let kept = match read_file(io, path) {
            Ok(bytes) => parse(&bytes, header),
            Err(error) if error.io_kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let (chunks, end) = match kept {
            Some(kept) => kept,
            None => {
                let text = line(&first(header));
                io.write_atomic(path, text.as_bytes())?;
                (empty(header), text.len() as u64)
            }
        };
        let file = io.open_random(path)?;
        // Without truncation, lines after a torn one would count again once a whole line precedes them.
        file.truncate(end)?;
        Ok((Self { file, end: Mutex::new(end) }, chunks))
    }

    /// Records that a chunk was written, though it may not be durable yet.
    pub fn record_arrived(&self, chunk: u64, hash: Hash) -> Result<(), IoError> {
        self.append(&format!("c {chunk} {hash}"))
    }

    /// Records that a chunk is invalid.
    pub fn record_invalid(&self, chunk: u64) -> Result<(), IoError> {
        self.append(&format!("x {chunk}"))
    }

    /// Records that everything before offset `at` is durable. Durable itself on return.
    pub fn record_synced(&self, at: u64) -> Result<(), IoError> {
        self.append(&format!("s {at}"))?;
        self.file.sync()
    }

    /// Current end of the journal, in bytes.
    pub fn end(&self) -> u64 {
        *self.lock()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, u64> {
        self.end.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn append(&self, text: &str) -> Result<(), IoError> {
        let text = line(text);
        let mut end = self.lock();
        self.file.write_at(*end, text.as_bytes())?;
        *end += text.len() as u64;
        Ok(())
    }
}

/// Reads a journal; empty if it is longer than any that is written.
fn read_file(io: &dyn Io, path: &Path) -> Result<Vec<u8>, IoError> {
    if io.len(path)? > MAX_JOURNAL_BYTES { Ok(Vec::new()) } else { io.read(path) }
}

/// Bytes that have arrived according to the journal at `path`; 0 if it belongs to another content.
pub(crate) fn arrived_bytes(io: &dyn Io, path: &Path, header: &JournalHeader) -> u64 {
    let Ok(bytes) = read_file(io, path) else { return 0 };
    let Some((chunks, _)) = parse(&bytes, header) else { return 0 };
    (0_u64..).zip(&chunks).filter(|(_, chunk)| chunk.is_some()).map(|(index, _)| header.len_of(index)).sum()
}

/// Hashes that the journal at `path` records, by chunk number; none if it belongs to another content.
pub(crate) fn recorded_hashes(
    io: &dyn Io,
    path: &Path,
    header: &JournalHeader,
) -> Result<Vec<Option<Hash>>, IoError> {
    let chunks = parse(&read_file(io, path)?, header).map(|(chunks, _)| chunks).unwrap_or_default();
    Ok(chunks.into_iter().map(|chunk| chunk.map(|chunk| chunk.hash)).collect())
}

impl JournalHeader {
    pub fn n_chunks(&self) -> u64 {
        self.bytes.div_ceil(self.chunk_bytes)
    }

    pub fn len_of(&self, chunk: u64) -> u64 {
        self.chunk_bytes.min(self.bytes.saturating_sub(chunk * self.chunk_bytes))
    }
}

fn empty(header: &JournalHeader) -> Vec<Option<ChunkRecord>> {
    vec![None; usize::try_from(header.n_chunks()).unwrap_or(0)]
}

fn first(header: &JournalHeader) -> String {
    format!("{FORMAT} {} {} {}", header.bytes, header.chunk_bytes, header.key)
}

/// A line with its checksum and newline.
fn line(text: &str) -> String {
    let mut line = String::with_capacity(text.len() + CHECK_DIGITS + 2);
    let _ = writeln!(line, "{text} {}", checksum(text));
    line
}

fn checksum(text: &str) -> String {
    let mut digits = Hash::of(text.as_bytes()).to_string();
    digits.truncate(CHECK_DIGITS);
    digits
}

/// Parses a journal into records and the end of its last whole line. None if it belongs to another content.
fn parse(bytes: &[u8], header: &JournalHeader) -> Option<(Vec<Option<ChunkRecord>>, u64)> {
    let mut chunks = empty(header);
    // Start of each chunk's line: a mark covers the lines before its offset.
    let mut places = vec![0; chunks.len()];
    let mut end = 0;
    while let Some(n) = bytes.get(end..)?.iter().position(|&b| b == b'\n') {
        let Some(text) = whole_line(&bytes[end..end + n]) else { break };
        if end == 0 {
            if text != first(header) {
                return None;
            }
        } else if apply(text, end as u64, &mut chunks, &mut places).is_none() {
            break;
        }
        end += n + 1;
    }
    (end > 0).then_some((chunks, end as u64))
}

fn whole_line(bytes: &[u8]) -> Option<&str> {
    let (text, digits) = std::str::from_utf8(bytes).ok()?.rsplit_once(' ')?;
    (checksum(text) == digits).then_some(text)
}

fn apply(text: &str, at: u64, chunks: &mut [Option<ChunkRecord>], places: &mut [u64]) -> Option<()> {
    let mut words = text.split(' ');
    let kind = words.next()?;
    let number: u64 = words.next()?.parse().ok()?;
    match kind {
        "s" => {
            let covered = chunks.iter_mut().zip(places.iter()).filter(|(_, place)| **place < number);
            covered.filter_map(|(chunk, _)| chunk.as_mut()).for_each(|chunk| chunk.is_durable = true);
        }
        "c" => {
            let index = usize::try_from(number).ok()?;
            *chunks.get_mut(index)? =
                Some(ChunkRecord { hash: Hash::parse(words.next()?)?, is_durable: false });
            places[index] = at;
        }
        "x" => *chunks.get_mut(usize::try_from(number).ok()?)? = None,
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use io::RealIo;

    use super::*;

    fn header() -> JournalHeader {
        JournalHeader { bytes: 25, chunk_bytes: 10, key: "k".into() }
    }

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("inglenook-journal-{}-{name}", std::process::id()))
    }

    /// Writes an account, damages it, and says which chunks are believed: `d`urable, `a`rrived, `-`.
    fn check_damage(name: &str, damage: impl Fn(&mut Vec<u8>), expected: &str) {
        let path = path(name);
        let (journal, chunks) = Journal::open(&RealIo, &path, &header()).unwrap();
        assert_eq!(chunks, [None; 3]);
        journal.record_arrived(0, Hash::of(b"a")).unwrap();
        let at = journal.end();
        journal.record_arrived(2, Hash::of(b"c")).unwrap();
        journal.record_synced(at).unwrap();
        journal.record_arrived(1, Hash::of(b"b")).unwrap();
        drop(journal);
        let mut bytes = RealIo.read(&path).unwrap();
        damage(&mut bytes);
        RealIo.write_atomic(&path, &bytes).unwrap();
        let (journal, chunks) = Journal::open(&RealIo, &path, &header()).unwrap();
        let said: String = chunks
            .iter()
            .map(|chunk| match chunk {
                Some(ChunkRecord { is_durable: true, .. }) => 'd',
                Some(ChunkRecord { is_durable: false, .. }) => 'a',
                None => '-',
            })
            .collect();
        assert_eq!(said, expected, "{name}");
        // It goes on from there, and what is added counts.
        journal.record_arrived(1, Hash::of(b"b")).unwrap();
        drop(journal);
        let (_, again) = Journal::open(&RealIo, &path, &header()).unwrap();
        assert!(again[1].is_some(), "{name}");
        RealIo.remove_file(&path).unwrap();
    }

    #[test]
    fn damage_loses_only_what_comes_after_it() {
        check_damage("whole", |_| {}, "daa");
        check_damage("torn", |bytes| bytes.truncate(bytes.len() - 3), "d-a");
        check_damage("end", |bytes| bytes.extend(b"c 1 00"), "daa");
        check_damage("flipped", |bytes| *bytes.last_mut().unwrap() ^= 1, "d-a");
        check_damage("head", |bytes| bytes[3] ^= 1, "---");
        check_damage("empty", Vec::clear, "---");
        check_damage("nul", |bytes| bytes.fill(0), "---");
        check_damage("binary", |bytes| bytes.fill(0xff), "---");
        check_damage("forgot", |bytes| bytes.extend(line("x 0").bytes()), "-aa");
        check_damage("beyond", |bytes| bytes.extend(line("x 9").bytes()), "daa");
    }

    #[test]
    fn a_journal_of_another_content_is_ignored() {
        let path = path("other");
        let (journal, _) = Journal::open(&RealIo, &path, &header()).unwrap();
        journal.record_arrived(2, Hash::of(b"c")).unwrap();
        assert_eq!(arrived_bytes(&RealIo, &path, &header()), 5);
        let other = JournalHeader { key: "other".into(), ..header() };
        assert_eq!(arrived_bytes(&RealIo, &path, &other), 0);
        let (_, chunks) = Journal::open(&RealIo, &path, &other).unwrap();
        assert_eq!(chunks, [None; 3]);
        RealIo.remove_file(&path).unwrap();
    }
}
