//! The ZIP archive of a document, in memory: its central directory, stored or deflated parts.
//!
//! Every length is checked against the file. Parts are unpacked within limits, and compared with their check sums.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_with_limit};

use crate::extract_error::ExtractError;
use crate::text_encoding;
use crate::zip_directory::{self, CompressionMethod, LOCAL_HEADER_BYTES, MAX_END_BYTES, ZipEntry};

/// Most parts: presentations with pictures have some thousands.
const MAX_ENTRIES: u64 = 1 << 16;

/// Most bytes that one part may unpack to: a sheet with a million rows has some hundred.
const MAX_PART_BYTES: usize = 192 << 20;

/// Most bytes that all parts that are read may unpack to.
const MAX_UNPACKED_BYTES: usize = 384 << 20;

/// A document's archive.
pub struct Archive<'a> {
    bytes: &'a [u8],
    entries: BTreeMap<String, ZipEntry>,
    n_unpacked: Cell<usize>,
    stop: &'a AtomicBool,
}

impl<'a> Archive<'a> {
    /// Reads the list of parts. `stop` ends the reading of any part.
    pub fn open(bytes: &'a [u8], stop: &'a AtomicBool) -> Result<Self, ExtractError> {
        let tail_start = bytes.len().saturating_sub(MAX_END_BYTES);
        let span = zip_directory::find(&bytes[tail_start..], tail_start as u64).map_err(damaged)?;
        if span.n_entries > MAX_ENTRIES {
            return Err(ExtractError::new(
                format!("it has {} parts, and the maximum is {MAX_ENTRIES}", span.n_entries),
                "Attach only the part you need.",
            ));
        }
        let mut entries = BTreeMap::new();
        for entry in zip_directory::entries(&bytes[span.start as usize..], span.n_entries).map_err(damaged)? {
            entries.entry(key(&entry.name)).or_insert(entry);
        }
        Ok(Self { bytes, entries, n_unpacked: Cell::new(0), stop })
    }

    /// The reader was told to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn has(&self, name: &str) -> bool {
        self.entries.contains_key(&key(name))
    }

    /// The bytes of a part; letters' case does not matter. None: there is none of this name.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ExtractError> {
        let Some(entry) = self.entries.get(&key(name)) else { return Ok(None) };
        let room = MAX_UNPACKED_BYTES.saturating_sub(self.n_unpacked.get()).min(MAX_PART_BYTES);
        let bytes = unpack(self.bytes, entry, room, name)?;
        self.n_unpacked.set(self.n_unpacked.get() + bytes.len());
        Ok(Some(bytes))
    }

    /// The text of a part, in any encoding of Unicode. None: there is none of this name.
    pub fn text(&self, name: &str) -> Result<Option<String>, ExtractError> {
        let Some(bytes) = self.read(name)? else { return Ok(None) };
        let text = String::from_utf8(bytes)
            .or_else(|error| text_encoding::decode(name, error.as_bytes()).map(|it| it.text).ok_or(error));
        match text {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(damaged(&format!("its part {name} is not text"))),
        }
    }

    /// The text of a part that must be there.
    pub fn require_text(&self, name: &str) -> Result<String, ExtractError> {
        self.text(name)?.ok_or_else(|| damaged(&format!("its part {name} is missing")))
    }
}

/// Names as they are compared: without a leading slash, in small letters.
fn key(name: &str) -> String {
    name.replace('\\', "/").trim_start_matches('/').to_lowercase()
}

/// Something in the file is not as it should be.
pub fn damaged(what: &str) -> ExtractError {
    ExtractError::new(
        format!("it is damaged: {what}"),
        "Open it in the program that wrote it, save it again and attach that.",
    )
}

fn unpack(bytes: &[u8], entry: &ZipEntry, room: usize, name: &str) -> Result<Vec<u8>, ExtractError> {
    if entry.is_encrypted {
        return Err(ExtractError::locked());
    }
    let broken = || damaged(&format!("its part {name} can't be unpacked"));
    let packed = packed(bytes, entry).ok_or_else(broken)?;
    let unpacked = match entry.method {
        CompressionMethod::Stored if packed.len() > room => return Err(too_large(name)),
        CompressionMethod::Stored => packed.to_vec(),
        CompressionMethod::Deflated => {
            decompress_to_vec_with_limit(packed, room).map_err(|error| match error.status {
                TINFLStatus::HasMoreOutput => too_large(name),
                _ => broken(),
            })?
        }
        CompressionMethod::Unknown(number) => {
            return Err(damaged(&format!("its part {name} is compressed by the unknown method {number}")));
        }
    };
    match unpacked.len() as u64 == entry.size && crc32fast::hash(&unpacked) == entry.crc {
        true => Ok(unpacked),
        false => Err(damaged(&format!("the check sum of its part {name} does not match"))),
    }
}

fn packed<'a>(bytes: &'a [u8], entry: &ZipEntry) -> Option<&'a [u8]> {
    let local = bytes.get(usize::try_from(entry.offset).ok()?..)?;
    let (header, rest) = local.split_at_checked(LOCAL_HEADER_BYTES)?;
    let data = rest.get(zip_directory::n_before_data(header).ok()?..)?;
    data.get(..usize::try_from(entry.packed).ok()?)
}

fn too_large(name: &str) -> ExtractError {
    ExtractError::new(
        format!(
            "its part {name} unpacks to more than is allowed ({} MiB for one part, {} MiB in total)",
            MAX_PART_BYTES >> 20,
            MAX_UNPACKED_BYTES >> 20,
        ),
        "Save the part you need as a separate file and attach that.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::office::test_archive::zip;

    #[test]
    fn parts_come_out_as_they_went_in() {
        let long = "0123456789abcdef".repeat(20_000);
        let bytes = zip(&[("mimetype", "a/b"), ("Word/Document.xml", &long)]);
        let stop = AtomicBool::new(false);
        let archive = Archive::open(&bytes, &stop).unwrap();
        assert_eq!(archive.text("/word/document.xml").unwrap().as_deref(), Some(&*long));
        assert_eq!(archive.text("mimetype").unwrap().as_deref(), Some("a/b"));
        assert_eq!(archive.text("none").unwrap(), None);
        assert!(archive.require_text("none").unwrap_err().why.contains("part none is missing"));
    }

    #[test]
    fn damage_of_any_kind_is_an_error() {
        let whole = zip(&[("a.xml", &"<a>text</a>".repeat(30)), ("b.xml", "<b/>")]);
        let stop = AtomicBool::new(false);
        let read_all = |bytes: &[u8]| -> Result<(), ExtractError> {
            let archive = Archive::open(bytes, &stop)?;
            archive.entries.keys().try_for_each(|name| archive.read(name).map(drop))
        };
        read_all(&whole).unwrap();
        // The last two bytes are the length of a comment, which is ignored.
        for n in 0..whole.len() - 2 {
            assert!(read_all(&whole[..n]).is_err(), "cut at {n}");
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[n] ^= 1 << bit;
                // A name or a date may be anything; nothing may panic.
                let _ = read_all(&bytes);
            }
        }
    }

    #[test]
    fn a_part_that_unpacks_to_too_much_is_refused() {
        let zeros = "\0".repeat(1 << 20);
        let bytes = zip(&[("bomb.xml", &zeros)]);
        let stop = AtomicBool::new(false);
        let archive = Archive::open(&bytes, &stop).unwrap();
        let entry = &archive.entries["bomb.xml"];
        let error = unpack(&bytes, entry, 1000, "bomb.xml").unwrap_err();
        assert!(error.why.contains("bomb.xml unpacks to more than"), "{error:?}");
        assert!(unpack(&bytes, entry, 1 << 20, "bomb.xml").is_ok());
        archive.n_unpacked.set(MAX_UNPACKED_BYTES - 5);
        assert!(archive.read("bomb.xml").unwrap_err().why.contains("384 MiB in total"));
    }

    #[test]
    fn encrypted_parts_are_protected_by_a_password() {
        let mut bytes = zip(&[("a.xml", "<a/>")]);
        let at = bytes.windows(4).position(|it| it == b"PK\x01\x02").unwrap();
        bytes[at + 8] |= 1;
        let stop = AtomicBool::new(false);
        let error = Archive::open(&bytes, &stop).unwrap().read("a.xml").unwrap_err();
        assert_eq!(error, ExtractError::locked());
    }
}
