//! The central directory of a ZIP archive: which files it has, and where they lie. Knows nothing of where the bytes come
//! from: the reader of attachments has them in memory, that of imports has not.
//!
//! Untrusted bytes: every length is checked. Errors say what is wrong, to follow a colon.

/// Bytes of the end record and its longest comment: what [`find`] needs of the end of an archive.
pub const MAX_END_BYTES: usize = 22 + 65_535;

/// Bytes of a file's local header, before its name.
pub const LOCAL_HEADER_BYTES: usize = 30;

const END: &[u8] = b"PK\x05\x06";
const END_64: &[u8] = b"PK\x06\x06";
const CENTRAL: &[u8] = b"PK\x01\x02";
const LOCAL: &[u8] = b"PK\x03\x04";

/// Bytes of an entry before its name.
const CENTRAL_HEADER_BYTES: usize = 46;

/// The value of a 16-bit or 32-bit field that a wider one replaces.
const WIDE_16: u64 = 0xFFFF;
const WIDE_32: u64 = 0xFFFF_FFFF;

/// Identifier of the extra field with 64-bit numbers.
const WIDE_FIELD: u64 = 1;

const CUT_OFF: &str = "it is cut off";
const MISSING: &str = "its list of files is missing";
const DAMAGED: &str = "its list of files is damaged";

/// Where the directory lies in the archive, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectorySpan {
    pub start: u64,
    pub n_bytes: u64,
    pub n_entries: u64,
}

/// One file of an archive, as the directory states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipEntry {
    pub name: String,
    pub is_encrypted: bool,
    pub method: CompressionMethod,
    pub crc: u32,
    /// bytes in the archive
    pub packed: u64,
    /// bytes once unpacked
    pub size: u64,
    /// of its local header
    pub offset: u64,
}

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionMethod {
    Stored,
    Deflated,
    Unknown(u16),
}

/// Finds the directory. `tail` is the end of the archive, from byte `tail_start` on.
pub fn find(tail: &[u8], tail_start: u64) -> Result<DirectorySpan, &'static str> {
    let end = tail.windows(4).rposition(|at| at == END).ok_or(MISSING)?;
    let (mut n_entries, mut start) = (number(tail, end + 10, 2)?, number(tail, end + 16, 4)?);
    if n_entries == WIDE_16 || start == WIDE_32 {
        let end = tail[..end].windows(4).rposition(|at| at == END_64).ok_or(MISSING)?;
        (n_entries, start) = (number(tail, end + 32, 8)?, number(tail, end + 48, 8)?);
    }
    let n_bytes = (tail_start + end as u64).checked_sub(start).ok_or(DAMAGED)?;
    Ok(DirectorySpan { start, n_bytes, n_entries })
}

/// The entries of a directory with these bytes, in order.
pub fn entries(directory: &[u8], n_entries: u64) -> Result<Vec<ZipEntry>, &'static str> {
    let mut left = directory;
    let mut entries = Vec::new();
    for _ in 0..n_entries {
        if !left.starts_with(CENTRAL) {
            return Err(DAMAGED);
        }
        let name_end = CENTRAL_HEADER_BYTES + length(left, 28)?;
        let extra_end = name_end + length(left, 30)?;
        let name = left.get(CENTRAL_HEADER_BYTES..name_end).ok_or(CUT_OFF)?;
        let mut entry = ZipEntry {
            name: String::from_utf8_lossy(name).into_owned(),
            is_encrypted: number(left, 8, 2)? & 1 == 1,
            method: match length(left, 10)? {
                0 => CompressionMethod::Stored,
                8 => CompressionMethod::Deflated,
                other => CompressionMethod::Unknown(other as u16),
            },
            crc: number(left, 16, 4)? as u32,
            packed: number(left, 20, 4)?,
            size: number(left, 24, 4)?,
            offset: number(left, 42, 4)?,
        };
        entry.widen(left.get(name_end..extra_end).ok_or(CUT_OFF)?)?;
        entries.push(entry);
        left = left.get(extra_end + length(left, 32)?..).ok_or(CUT_OFF)?;
    }
    Ok(entries)
}

/// Bytes between a file's local header and its data.
pub fn n_before_data(local_header: &[u8]) -> Result<usize, &'static str> {
    if !local_header.starts_with(LOCAL) {
        return Err("a file in it is not where it should be");
    }
    Ok(length(local_header, 26)? + length(local_header, 28)?)
}

impl ZipEntry {
    /// Numbers too large for 32 bits stand in an extra field, in this order.
    fn widen(&mut self, mut extra: &[u8]) -> Result<(), &'static str> {
        while extra.len() >= 4 {
            let (id, field_end) = (number(extra, 0, 2)?, 4 + length(extra, 2)?);
            let field = extra.get(4..field_end).ok_or(DAMAGED)?;
            if id == WIDE_FIELD {
                let mut at = 0;
                for value in [&mut self.size, &mut self.packed, &mut self.offset] {
                    if *value == WIDE_32 {
                        *value = number(field, at, 8)?;
                        at += 8;
                    }
                }
            }
            extra = &extra[field_end..];
        }
        Ok(())
    }
}

/// A little-endian number of `n` bytes.
fn number(bytes: &[u8], at: usize, n: usize) -> Result<u64, &'static str> {
    let bytes = bytes.get(at..at + n).ok_or(CUT_OFF)?;
    Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// A 16-bit number.
fn length(bytes: &[u8], at: usize) -> Result<usize, &'static str> {
    number(bytes, at, 2).map(|n| n as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_numbers_replace_narrow_ones() {
        let narrow = WIDE_32.to_le_bytes();
        let entry = [
            CENTRAL,
            &[0; 4],
            &[1, 0, 9, 0],
            &[0; 4],
            &7_u32.to_le_bytes(),
            &narrow[..4],
            &narrow[..4],
            &[1, 0, 28, 0, 0, 0],
            &[0; 8],
            &narrow[..4],
            b"a",
            &[1, 0, 24, 0],
            &(5_u64 << 32).to_le_bytes(),
            &(4_u64 << 32).to_le_bytes(),
            &(6_u64 << 32).to_le_bytes(),
        ]
        .concat();
        let expected = ZipEntry {
            name: "a".into(),
            is_encrypted: true,
            method: CompressionMethod::Unknown(9),
            crc: 7,
            packed: 4 << 32,
            size: 5 << 32,
            offset: 6 << 32,
        };
        assert_eq!(entries(&entry, 1), Ok(vec![expected]));
        assert_eq!(entries(&entry, 2), Err(DAMAGED));
        let wide = [END_64, &[0; 28], &3_u64.to_le_bytes(), &[0; 8], &40_u64.to_le_bytes()].concat();
        let tail = [&wide, END, &[0; 6], &narrow[..2], &[0; 4], &narrow[..4], &[0; 2]].concat();
        assert_eq!(find(&tail, 100), Ok(DirectorySpan { start: 40, n_bytes: 116, n_entries: 3 }));
        assert_eq!(find(&[], 0), Err(MISSING));
    }
}
