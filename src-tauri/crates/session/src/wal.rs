//! Committed pages of a write-ahead log, put into the bytes of their database.
//!
//! Source: sqlite.org/fileformat2.html, section 4.

use crate::header::PAGE_BYTES;

const HEADER_BYTES: usize = 32;
const FRAME_BYTES: usize = 24;

/// The magic number; its lowest bit is the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;

/// A running checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct WalChecksum(u32, u32);

impl WalChecksum {
    fn add(mut self, bytes: &[u8], is_big_endian: bool) -> Self {
        for pair in bytes.chunks_exact(8) {
            let word = |at: usize| {
                let bytes = pair.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
                if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
            };
            self.0 = self.0.wrapping_add(word(0)).wrapping_add(self.1);
            self.1 = self.1.wrapping_add(word(4)).wrapping_add(self.0);
        }
        self
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// Puts the pages of whole transactions into `database`. The log counts up to its first damaged frame.
pub(crate) fn apply(database: &mut Vec<u8>, log: &[u8]) {
    let Some((head, mut rest)) = log.split_at_checked(HEADER_BYTES) else { return };
    let magic = number(head, 0);
    let is_big_endian = magic & 1 == 1;
    let mut sum = WalChecksum::default().add(head.get(..24).unwrap_or_default(), is_big_endian);
    let is_whole = magic & !1 == MAGIC
        && number(head, 8) == PAGE_BYTES as u32
        && sum == WalChecksum(number(head, 24), number(head, 28));
    if !is_whole {
        return;
    }
    let mut waiting: Vec<(u32, &[u8])> = Vec::new();
    while let Some((frame, after)) = rest.split_at_checked(FRAME_BYTES + PAGE_BYTES) {
        let (info, page) = frame.split_at(FRAME_BYTES);
        sum = sum.add(info.get(..8).unwrap_or_default(), is_big_endian).add(page, is_big_endian);
        let has_salt = info.get(8..16) == head.get(16..24);
        if !has_salt || sum != WalChecksum(number(info, 16), number(info, 20)) {
            return;
        }
        waiting.push((number(info, 0), page));
        let n_pages = number(info, 4);
        if n_pages > 0 {
            database.resize(n_pages as usize * PAGE_BYTES, 0);
            for (n, page) in waiting.drain(..) {
                let start = (n as usize).saturating_sub(1) * PAGE_BYTES;
                if let Some(place) = database.get_mut(start..start + PAGE_BYTES) {
                    place.copy_from_slice(page);
                }
            }
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn committed_pages_are_taken_over_and_others_are_not() {
        let folder = std::env::temp_dir().join(format!("inglenook-wal-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.db");
        let db = Connection::open(&path).unwrap();
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (n, text);",
        )
        .unwrap();
        for n in 0..20 {
            db.execute("INSERT INTO t VALUES (?1, ?2)", (n, "x".repeat(3000))).unwrap();
        }
        let log = std::fs::read(folder.join("a.db-wal")).unwrap();
        let count = |log: &[u8]| {
            let mut bytes = std::fs::read(&path).unwrap();
            apply(&mut bytes, log);
            let n_pages = u32::try_from(bytes.len() / PAGE_BYTES).unwrap();
            crate::header::repair(&mut bytes, n_pages);
            let mut db = Connection::open_in_memory().unwrap();
            let n = bytes.len();
            db.deserialize_read_exact("main", std::io::Cursor::new(bytes), n, false).unwrap();
            db.query_row("SELECT COUNT(*) FROM t", [], |row| row.get::<_, u32>(0))
        };
        assert_eq!(count(&log).unwrap(), 20);
        assert_eq!(count(&log[..log.len() - 1]).unwrap(), 19, "a torn transaction is none");
        let mut flipped = log.clone();
        flipped[HEADER_BYTES + FRAME_BYTES + 100] ^= 1;
        assert!(count(&flipped).is_err(), "nothing counts after a damaged frame");
        drop(db);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
