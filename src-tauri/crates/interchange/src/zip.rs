//! The files of a ZIP archive, unpacked while they are read: stored or deflated. Untrusted bytes: an entry that unpacks to
//! more than its stated size is refused. Neither the archive nor a file of it is in memory at once.

use std::io::{BufRead, BufReader, Read, SeekFrom, Take};

use contract::{Error, ErrorKind, Result};
use documents::zip_directory::{self, CompressionMethod, LOCAL_HEADER_BYTES, MAX_END_BYTES, ZipEntry};
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, MZStatus};

use crate::ImportSource;

/// Most files that are looked at: exports with pictures have some thousands.
const MAX_ENTRIES: u64 = 1 << 20;

/// Most bytes that a file may unpack to.
const MAX_UNPACKED: u64 = 1 << 31;

/// Longest list of files: a million names of some two hundred bytes.
const MAX_DIRECTORY_BYTES: u64 = 256 << 20;

/// Piece in which a file is checked.
const PIECE_BYTES: usize = 64 << 10;

fn broken(what: &str) -> Error {
    Error::input(
        "import.zip",
        format!("This ZIP file can't be read: {what}."),
        "The download may be incomplete. Download it again, or unpack it and choose conversations.json.",
    )
}

/// The files of an archive.
pub fn entries(archive: &mut dyn ImportSource) -> Result<Vec<ZipEntry>> {
    let n_bytes = archive.seek(SeekFrom::End(0)).map_err(unreadable)?;
    let tail_start = n_bytes.saturating_sub(MAX_END_BYTES as u64);
    let tail = section(archive, tail_start, n_bytes - tail_start)?;
    let span = zip_directory::find(&tail, tail_start).map_err(broken)?;
    if span.n_entries > MAX_ENTRIES || span.n_bytes > MAX_DIRECTORY_BYTES {
        return Err(broken("it contains too many files"));
    }
    let directory = section(archive, span.start, span.n_bytes)?;
    zip_directory::entries(&directory, span.n_entries).map_err(broken)
}

/// Exactly these bytes of the archive.
fn section(archive: &mut dyn ImportSource, start: u64, n_bytes: u64) -> Result<Vec<u8>> {
    archive.seek(SeekFrom::Start(start)).map_err(unreadable)?;
    let mut bytes = Vec::new();
    archive.take(n_bytes).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 == n_bytes { Ok(bytes) } else { Err(broken("it is cut off")) }
}

fn unreadable(error: std::io::Error) -> Error {
    broken(&error.to_string())
}

/// A file of the archive, unpacked while it is read.
pub struct EntryReader<'a> {
    packed: BufReader<Take<&'a mut dyn ImportSource>>,
    /// None: it is stored.
    inflate: Option<Box<InflateState>>,
    n_left: u64,
}

/// Opens a file of the archive. Its bytes are not checked against their sum; see [`check`].
pub fn open<'a>(archive: &'a mut dyn ImportSource, entry: &ZipEntry) -> Result<EntryReader<'a>> {
    let header = section(archive, entry.offset, LOCAL_HEADER_BYTES as u64)?;
    let n_before_data = zip_directory::n_before_data(&header).map_err(broken)?;
    if entry.size > MAX_UNPACKED {
        let message =
            format!("{} unpacks to {} bytes; the maximum is {MAX_UNPACKED}.", entry.name, entry.size);
        return Err(Error::new(
            ErrorKind::Limit,
            "import.too_large",
            message,
            "Export fewer chats at a time.",
        ));
    }
    archive.seek(SeekFrom::Current(n_before_data as i64)).map_err(unreadable)?;
    let inflate = match entry.method {
        _ if entry.is_encrypted => return Err(broken("it is protected by a password")),
        CompressionMethod::Stored => None,
        CompressionMethod::Deflated => Some(InflateState::new_boxed(DataFormat::Raw)),
        CompressionMethod::Unknown(_) => return Err(broken("its compression is not supported")),
    };
    let packed = BufReader::with_capacity(PIECE_BYTES, archive.take(entry.packed));
    Ok(EntryReader { packed, inflate, n_left: entry.size })
}

impl Read for EntryReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let Some(state) = &mut self.inflate else { return self.packed.read(into) };
        let most = into.len().min(usize::try_from(self.n_left).unwrap_or(usize::MAX));
        if most == 0 {
            return Ok(0);
        }
        loop {
            let packed = self.packed.fill_buf()?;
            let is_over = packed.is_empty();
            let step = inflate(state, packed, &mut into[..most], MZFlush::None);
            self.packed.consume(step.bytes_consumed);
            self.n_left -= step.bytes_written as u64;
            match step.status {
                _ if step.bytes_written > 0 => return Ok(step.bytes_written),
                Ok(MZStatus::StreamEnd) => return Ok(0),
                Ok(_) if !is_over && step.bytes_consumed > 0 => {}
                _ => return Err(std::io::Error::other("its compressed data is damaged")),
            }
        }
    }
}

/// Reads a whole file of the archive and compares its length and sum.
pub fn check(archive: &mut dyn ImportSource, entry: &ZipEntry) -> Result<()> {
    let mut reader = open(archive, entry)?;
    let (mut crc, mut n_bytes, mut piece) = (crc32fast::Hasher::new(), 0, vec![0; PIECE_BYTES]);
    loop {
        let n = reader.read(&mut piece).map_err(|_| broken(&format!("{} is damaged", entry.name)))?;
        if n == 0 {
            break;
        }
        crc.update(&piece[..n]);
        n_bytes += n as u64;
    }
    match n_bytes == entry.size && crc.finalize() == entry.crc {
        true => Ok(()),
        false => Err(broken(&format!("{} is damaged", entry.name))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// One deflated file, as other programs write it.
    fn zip(name: &str, text: &[u8]) -> Vec<u8> {
        let packed = miniz_oxide::deflate::compress_to_vec(text, 6);
        let u16_of = |n: usize| (n as u16).to_le_bytes();
        let u32_of = |n: usize| (n as u32).to_le_bytes();
        let mut common = Vec::from([20, 0, 0, 0, 8, 0, 0, 0, 0, 0]);
        common.extend(crc32fast::hash(text).to_le_bytes());
        common.extend(u32_of(packed.len()));
        common.extend(u32_of(text.len()));
        common.extend(u16_of(name.len()));
        common.extend([0, 0]);
        let mut zip = [b"PK\x03\x04", &*common, name.as_bytes(), &packed].concat();
        let at = zip.len();
        zip.extend([b"PK\x01\x02", &[20, 0][..], &common, &[0; 10], &u32_of(0), name.as_bytes()].concat());
        let n_central = zip.len() - at;
        zip.extend(
            [b"PK\x05\x06", &[0; 4][..], &[1, 0, 1, 0], &u32_of(n_central), &u32_of(at), &[0, 0]].concat(),
        );
        zip
    }

    #[test]
    fn files_come_out_as_they_went_in() {
        for text in [b"[1,2,3]".to_vec(), b"0123456789abcdef".repeat(20_000)] {
            let mut zip = Cursor::new(zip("a/conversations.json", &text));
            let entries = entries(&mut zip).unwrap();
            assert_eq!(entries[0].name, "a/conversations.json");
            check(&mut zip, &entries[0]).unwrap();
            let mut unpacked = Vec::new();
            open(&mut zip, &entries[0]).unwrap().read_to_end(&mut unpacked).unwrap();
            assert!(unpacked == text);
        }
    }

    #[test]
    fn damage_of_any_kind_is_an_error() {
        let whole = zip("conversations.json", &b"[{\"mapping\":{}}]".repeat(40));
        let try_all = |bytes: &[u8]| -> Result<()> {
            let mut archive = Cursor::new(bytes);
            for entry in entries(&mut archive)? {
                check(&mut archive, &entry)?;
            }
            Ok(())
        };
        try_all(&whole).unwrap();
        // The last two bytes are the length of a comment, which is ignored.
        for n in 0..whole.len() - 2 {
            assert!(try_all(&whole[..n]).is_err(), "cut at {n}");
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[n] ^= 1 << bit;
                // A name or a date may be anything; nothing may panic.
                let _ = try_all(&bytes);
            }
        }
    }
}
