//! The subset of ZIP that exports use: the central directory at the end, stored or deflated, with
//! or without 64-bit sizes. Untrusted bytes: every length is checked against the file, and an entry
//! that unpacks to more than its stated size is refused.

use contract::{Error, ErrorKind, Result};

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

pub fn entries(bytes: &[u8]) -> Result<Vec<Entry>> {
    let from = bytes.len().saturating_sub(LONGEST_END);
    let end = bytes[from..].windows(4).rposition(|at| at == END);
    let end = from + end.ok_or_else(|| broken("its list of files is missing"))?;
    let (mut n, mut at) = (short(bytes, end + 10)? as u64, number::<4>(bytes, end + 16)?);
    if n == 0xFFFF || at == 0xFFFF_FFFF {
        let end = bytes[..end].windows(4).rposition(|at| at == END_64);
        let end = end.ok_or_else(|| broken("its list of files is missing"))?;
        (n, at) = (number::<8>(bytes, end + 32)?, number::<8>(bytes, end + 48)?);
    }
    let n = index(n)?;
    if n > MAX_ENTRIES {
        return Err(broken("it contains too many files"));
    }
    let mut at = index(at)?;
    let mut entries = Vec::new();
    for _ in 0..n {
        if at.checked_add(4).and_then(|end| bytes.get(at..end)) != Some(CENTRAL) {
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

/// The file's bytes, checked against their sum.
pub fn read(bytes: &[u8], entry: &Entry) -> Result<Vec<u8>> {
    let at = index(entry.offset)?;
    if at.checked_add(4).and_then(|end| bytes.get(at..end)) != Some(LOCAL) {
        return Err(broken("a file in it is not where it should be"));
    }
    let start = at + 30 + short(bytes, at + 26)? + short(bytes, at + 28)?;
    let end = start.checked_add(index(entry.packed)?);
    let packed = end.and_then(|end| bytes.get(start..end)).ok_or_else(|| broken("it is cut off"))?;
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
    let unpacked = match entry.method {
        0 => packed.to_vec(),
        8 => miniz_oxide::inflate::decompress_to_vec_with_limit(packed, index(entry.size)?)
            .map_err(|error| broken(&format!("{} is damaged ({error})", entry.name)))?,
        _ => return Err(broken("its compression is not supported, or it is protected by a password")),
    };
    if unpacked.len() as u64 != entry.size || crc32(&unpacked) != entry.crc {
        return Err(broken(&format!("{} is damaged", entry.name)));
    }
    Ok(unpacked)
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut table = [0_u32; 256];
    for (n, entry) in (0_u32..).zip(&mut table) {
        *entry = (0..8).fold(n, |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 });
    }
    !bytes.iter().fold(!0, |crc, byte| table[((crc ^ u32::from(*byte)) & 0xFF) as usize] ^ crc >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let zip = zip("a/conversations.json", b"[1,2,3]");
        let entries = entries(&zip).unwrap();
        assert_eq!(entries[0].name, "a/conversations.json");
        assert_eq!(read(&zip, &entries[0]).unwrap(), b"[1,2,3]");
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn damage_of_any_kind_is_an_error() {
        let whole = zip("conversations.json", &b"[{\"mapping\":{}}]".repeat(40));
        let try_all = |bytes: &[u8]| -> Result<()> {
            for entry in entries(bytes)? {
                read(bytes, &entry)?;
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
