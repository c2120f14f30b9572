//! What has arrived of a file, written so that any crash leaves a true account: a line per chunk with its hash, and
//! marks up to where the disk is known to hold the data.
//!
//! A line that is torn or damaged ends the account; what came after it arrives again.

use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;

use io::{Io, IoError, RandomFile};

use crate::sha::Hash;

const FORMAT: &str = "inglenook-part 1";

/// Longest account that is read: of a file of terabytes.
const MAX_JOURNAL_BYTES: u64 = 256 << 20;

/// Digits of a line's checksum.
const CHECK_DIGITS: usize = 8;

/// What the part is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JournalHeader {
    pub bytes: u64,
    pub chunk_bytes: u64,
    /// Names the content: its SHA-256, or what the server calls this version.
    pub key: String,
}

/// Of one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkRecord {
    pub hash: Hash,
    /// The disk is known to hold it.
    pub is_durable: bool,
}

/// The journal's file, open to be added to.
pub(crate) struct Journal {
    file: Box<dyn RandomFile>,
    end: Mutex<u64>,
}

impl Journal {
    /// Opens the account of a part, or begins it where there is none of this content. Chunks by number.
    pub fn open(
        io: &dyn Io,
        path: &Path,
        header: &JournalHeader,
    ) -> Result<(Self, Vec<Option<ChunkRecord>>), IoError> {
        let kept = match account(io, path) {
            Ok(bytes) => read(&bytes, header),
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
        // What follows a torn line would be believed once a whole one stands before it.
        file.truncate(end)?;
        Ok((Self { file, end: Mutex::new(end) }, chunks))
    }

    /// A chunk has been written, though perhaps not to the disk itself.
    pub fn arrived(&self, chunk: u64, hash: Hash) -> Result<(), IoError> {
        self.append(&format!("c {chunk} {hash}"))
    }

    /// A chunk is not what it should be.
    pub fn forgotten(&self, chunk: u64) -> Result<(), IoError> {
        self.append(&format!("x {chunk}"))
    }

    /// Everything that arrived before `at` is on the disk. The mark itself is, when this returns.
    pub fn synced(&self, at: u64) -> Result<(), IoError> {
        self.append(&format!("s {at}"))?;
        self.file.sync()
    }

    /// Where the account ends now.
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

/// Nothing, where it is longer than any that is written.
fn account(io: &dyn Io, path: &Path) -> Result<Vec<u8>, IoError> {
    if io.len(path)? > MAX_JOURNAL_BYTES { Ok(Vec::new()) } else { io.read(path) }
}

/// Bytes that have arrived by the account at `path`; 0 where there is none of this content.
pub(crate) fn peek(io: &dyn Io, path: &Path, header: &JournalHeader) -> u64 {
    let Ok(bytes) = account(io, path) else { return 0 };
    let Some((chunks, _)) = read(&bytes, header) else { return 0 };
    (0_u64..).zip(&chunks).filter(|(_, chunk)| chunk.is_some()).map(|(index, _)| header.len_of(index)).sum()
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

/// With its checksum and the line's end.
fn line(text: &str) -> String {
    let mut line = String::with_capacity(text.len() + CHECK_DIGITS + 2);
    let _ = writeln!(line, "{text} {}", check(text));
    line
}

fn check(text: &str) -> String {
    let mut digits = Hash::of(text.as_bytes()).to_string();
    digits.truncate(CHECK_DIGITS);
    digits
}

/// The chunks, and where the last whole line ends. None: it is of another content.
fn read(bytes: &[u8], header: &JournalHeader) -> Option<(Vec<Option<ChunkRecord>>, u64)> {
    let mut chunks = empty(header);
    // Where each chunk's line begins: a mark covers those before its place.
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
    (check(text) == digits).then_some(text)
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
        journal.arrived(0, Hash::of(b"a")).unwrap();
        let at = journal.end();
        journal.arrived(2, Hash::of(b"c")).unwrap();
        journal.synced(at).unwrap();
        journal.arrived(1, Hash::of(b"b")).unwrap();
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
        journal.arrived(1, Hash::of(b"b")).unwrap();
        drop(journal);
        let (_, again) = Journal::open(&RealIo, &path, &header()).unwrap();
        assert!(again[1].is_some(), "{name}");
        RealIo.remove_file(&path).unwrap();
    }

    #[test]
    fn any_damage_costs_what_comes_after_it_and_no_more() {
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
    fn the_account_of_another_content_is_not_believed() {
        let path = path("other");
        let (journal, _) = Journal::open(&RealIo, &path, &header()).unwrap();
        journal.arrived(2, Hash::of(b"c")).unwrap();
        assert_eq!(peek(&RealIo, &path, &header()), 5);
        let other = JournalHeader { key: "other".into(), ..header() };
        assert_eq!(peek(&RealIo, &path, &other), 0);
        let (_, chunks) = Journal::open(&RealIo, &path, &other).unwrap();
        assert_eq!(chunks, [None; 3]);
        RealIo.remove_file(&path).unwrap();
    }
}
