//! The subset of ZIP that exports use: the central directory at the end, stored or deflated, with
//! or without 64-bit sizes. Untrusted bytes: every length is checked against the file, and an entry
//! that unpacks to more than its stated size is refused. Neither the archive nor a file of it is in memory at once.

use std::io::{BufRead, BufReader, Read, SeekFrom, Take};

use contract::{Error, ErrorKind, Result};
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, MZStatus};

use crate::ImportSource;

/// A file in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    method: u16,
    /// Bytes as they lie there, and unpacked.
    packed: u64,
    size: u64,
    /// Of its header.
    offset: u64,
    crc: u32,
}

/// Most files that are looked at: exports with pictures have some thousands.
const MAX_ENTRIES: usize = 1 << 20;

/// Most bytes that a file may unpack to.
const MAX_UNPACKED: u64 = 1 << 31;

/// Longest list of files: a million names of some two hundred bytes.
const MAX_CENTRAL_BYTES: u64 = 256 << 20;

/// Bytes of a file's own header, before its name.
const LOCAL_HEADER_BYTES: usize = 30;

/// Piece in which a file is checked.
const PIECE_BYTES: usize = 64 << 10;

const END: &[u8] = b"PK\x05\x06";
const END_64: &[u8] = b"PK\x06\x06";
const CENTRAL: &[u8] = b"PK\x01\x02";
const LOCAL: &[u8] = b"PK\x03\x04";

/// The end record and its longest comment.
const LONGEST_END: usize = 22 + 65_535;

fn broken(what: &str) -> Error {
    Error::input(
        "import.zip",
        format!("This ZIP file can't be read: {what}."),
        "The download may be incomplete. Download it again, or unpack it and choose conversations.json.",
    )
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Result<u64> {
    let bytes =
        at.checked_add(N).and_then(|end| bytes.get(at..end)).ok_or_else(|| broken("it is cut off"))?;
    Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn index(n: u64) -> Result<usize> {
    usize::try_from(n).map_err(|_| broken("a length is out of range"))
}

fn short(bytes: &[u8], at: usize) -> Result<usize> {
    index(number::<2>(bytes, at)?)
}

/// The files of an archive.
pub fn entries(archive: &mut dyn ImportSource) -> Result<Vec<Entry>> {
    let n_bytes = archive.seek(SeekFrom::End(0)).map_err(unreadable)?;
    let tail_start = n_bytes.saturating_sub(LONGEST_END as u64);
    let tail = section(archive, tail_start, n_bytes - tail_start)?;
    let end = tail.windows(4).rposition(|at| at == END);
    let end = end.ok_or_else(|| broken("its list of files is missing"))?;
    let (mut n, mut start) = (short(&tail, end + 10)? as u64, number::<4>(&tail, end + 16)?);
    if n == 0xFFFF || start == 0xFFFF_FFFF {
        let end = tail[..end].windows(4).rposition(|at| at == END_64);
        let end = end.ok_or_else(|| broken("its list of files is missing"))?;
        (n, start) = (number::<8>(&tail, end + 32)?, number::<8>(&tail, end + 48)?);
    }
    let n = index(n)?;
    let n_central = (tail_start + end as u64).checked_sub(start);
    let n_central = n_central.ok_or_else(|| broken("its list of files is damaged"))?;
    if n > MAX_ENTRIES || n_central > MAX_CENTRAL_BYTES {
        return Err(broken("it contains too many files"));
    }
    listed(&section(archive, start, n_central)?, n)
}

/// The entries of a central directory.
fn listed(bytes: &[u8], n: usize) -> Result<Vec<Entry>> {
    let mut at = 0;
    let mut entries = Vec::new();
    for _ in 0..n {
        if bytes.get(at..at + 4) != Some(CENTRAL) {
            return Err(broken("its list of files is damaged"));
        }
        let lengths = (short(bytes, at + 28)?, short(bytes, at + 30)?, short(bytes, at + 32)?);
        let name = bytes.get(at + 46..at + 46 + lengths.0).ok_or_else(|| broken("it is cut off"))?;
        let mut entry = Entry {
            name: String::from_utf8_lossy(name).into_owned(),
            method: short(bytes, at + 10)? as u16,
            crc: number::<4>(bytes, at + 16)? as u32,
            packed: number::<4>(bytes, at + 20)?,
            size: number::<4>(bytes, at + 24)?,
            offset: number::<4>(bytes, at + 42)?,
        };
        let extra = at + 46 + lengths.0..at + 46 + lengths.0 + lengths.1;
        let extra = bytes.get(extra).ok_or_else(|| broken("it is cut off"))?;
        entry.widen(extra)?;
        entries.push(entry);
        at += 46 + lengths.0 + lengths.1 + lengths.2;
    }
    Ok(entries)
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

impl Entry {
    /// Numbers too large for 32 bits stand in an extra field, in this order.
    fn widen(&mut self, mut extra: &[u8]) -> Result<()> {
        while extra.len() >= 4 {
            let (id, n) = (short(extra, 0)?, short(extra, 2)?);
            let field = extra.get(4..4 + n).ok_or_else(|| broken("its list of files is damaged"))?;
            if id == 1 {
                let mut at = 0;
                for value in [&mut self.size, &mut self.packed, &mut self.offset] {
                    if *value == 0xFFFF_FFFF {
                        *value = number::<8>(field, at)?;
                        at += 8;
                    }
                }
            }
            extra = &extra[4 + n..];
        }
        Ok(())
    }
}

/// A file of the archive, unpacked while it is read.
pub struct EntryReader<'a> {
    packed: BufReader<Take<&'a mut dyn ImportSource>>,
    /// None: it is stored.
    inflate: Option<Box<InflateState>>,
    n_left: u64,
}

/// Opens a file of the archive. Its bytes are not checked against their sum; see [`check`].
pub fn open<'a>(archive: &'a mut dyn ImportSource, entry: &Entry) -> Result<EntryReader<'a>> {
    let header = section(archive, entry.offset, LOCAL_HEADER_BYTES as u64)?;
    if !header.starts_with(LOCAL) {
        return Err(broken("a file in it is not where it should be"));
    }
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
    let n_skipped = (short(&header, 26)? + short(&header, 28)?) as i64;
    archive.seek(SeekFrom::Current(n_skipped)).map_err(unreadable)?;
    let inflate = match entry.method {
        0 => None,
        8 => Some(InflateState::new_boxed(DataFormat::Raw)),
        _ => return Err(broken("its compression is not supported, or it is protected by a password")),
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
pub fn check(archive: &mut dyn ImportSource, entry: &Entry) -> Result<()> {
    let mut reader = open(archive, entry)?;
    let (mut crc, mut n_bytes, mut piece) = (Crc32::new(), 0, vec![0; PIECE_BYTES]);
    loop {
        let n = reader.read(&mut piece).map_err(|_| broken(&format!("{} is damaged", entry.name)))?;
        if n == 0 {
            break;
        }
        crc.add(&piece[..n]);
        n_bytes += n as u64;
    }
    match n_bytes == entry.size && crc.sum() == entry.crc {
        true => Ok(()),
        false => Err(broken(&format!("{} is damaged", entry.name))),
    }
}

/// The check sum of ZIP.
struct Crc32 {
    table: [u32; 256],
    sum: u32,
}

impl Crc32 {
    fn new() -> Self {
        let mut table = [0_u32; 256];
        for (n, entry) in (0_u32..).zip(&mut table) {
            *entry = (0..8).fold(n, |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 });
        }
        Self { table, sum: !0 }
    }

    fn add(&mut self, bytes: &[u8]) {
        let step = |crc: u32, byte: &u8| self.table[((crc ^ u32::from(*byte)) & 0xFF) as usize] ^ crc >> 8;
        self.sum = bytes.iter().fold(self.sum, step);
    }

    fn sum(&self) -> u32 {
        !self.sum
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn crc32(bytes: &[u8]) -> u32 {
        let mut crc = Crc32::new();
        crc.add(bytes);
        crc.sum()
    }

    /// One deflated file, as other programs write it.
    fn zip(name: &str, text: &[u8]) -> Vec<u8> {
        let packed = miniz_oxide::deflate::compress_to_vec(text, 6);
        let u16_of = |n: usize| (n as u16).to_le_bytes();
        let u32_of = |n: usize| (n as u32).to_le_bytes();
        let mut common = Vec::from([20, 0, 0, 0, 8, 0, 0, 0, 0, 0]);
        common.extend(crc32(text).to_le_bytes());
        common.extend(u32_of(packed.len()));
        common.extend(u32_of(text.len()));
        common.extend(u16_of(name.len()));
        common.extend([0, 0]);
        let mut zip = [LOCAL, &common, name.as_bytes(), &packed].concat();
        let at = zip.len();
        zip.extend([CENTRAL, &[20, 0], &common, &[0; 10], &u32_of(0), name.as_bytes()].concat());
        let n_central = zip.len() - at;
        zip.extend([END, &[0; 4], &[1, 0, 1, 0], &u32_of(n_central), &u32_of(at), &[0, 0]].concat());
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
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
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
