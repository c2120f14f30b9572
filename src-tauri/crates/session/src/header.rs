//! The first 100 bytes of the database file: what SQLite writes there for every database of ours, and where a file differs.
//!
//! Source: sqlite.org/fileformat2.html, section 1.3.

/// Length of the header.
pub(crate) const HEADER_BYTES: usize = 100;

/// Page size of every database of ours.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Fields that never change, with their place.
const FIXED: &[(usize, &[u8])] = &[
    (0, b"SQLite format 3\0"),
    (16, &[0x10, 0x00]),
    // No reserved space; payload fractions.
    (20, &[0, 64, 32, 32]),
    // No vacuum by itself.
    (52, &[0, 0, 0, 0]),
    (64, &[0, 0, 0, 0]),
];

/// Places of the read and write version: 1 with a rollback journal, 2 with a WAL.
const VERSIONS: std::ops::Range<usize> = 18..20;
const N_PAGES: usize = 28;
const FIRST_FREE_PAGE: usize = 32;
const N_FREE_PAGES: usize = 36;
const SCHEMA_FORMAT: usize = 44;
const ENCODING: usize = 56;
const UTF_8: u32 = 1;
const CHANGE_COUNTER: usize = 24;
const VALID_FOR: usize = 92;

/// The newest schema format that SQLite knows.
const MAX_SCHEMA_FORMAT: u32 = 4;

fn number(header: &[u8], at: usize) -> u32 {
    header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
}

fn set(header: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(field) = header.get_mut(at..at + bytes.len()) {
        field.copy_from_slice(bytes);
    }
}

/// Whether a file that begins with these bytes has a header that SQLite never wrote. `file_bytes` is the length of the
/// file if no WAL has newer pages.
pub(crate) fn is_damaged(header: &[u8], file_bytes: Option<u64>) -> bool {
    if header.len() < HEADER_BYTES {
        return false; // SQLite says what it thinks of such a file
    }
    let is_fixed = FIXED.iter().all(|(at, bytes)| header.get(*at..at + bytes.len()) == Some(*bytes));
    let versions = header.get(VERSIONS).unwrap_or_default();
    // Both are 0 until the first table is made.
    let (format, encoding) = (number(header, SCHEMA_FORMAT), number(header, ENCODING));
    let is_counted = number(header, CHANGE_COUNTER) == number(header, VALID_FOR);
    let n_pages = file_bytes.map(|n| n / PAGE_BYTES as u64);
    let (first_free, n_free) = (number(header, FIRST_FREE_PAGE), number(header, N_FREE_PAGES));
    let is_of_length = n_pages.is_none_or(|n| {
        (!is_counted || u64::from(number(header, N_PAGES)) == n)
            && u64::from(first_free) <= n
            && u64::from(n_free) <= n
            && (first_free == 0) == (n_free == 0)
    });
    !is_fixed
        || versions.iter().any(|version| !(1..=2).contains(version))
        || versions.first() != versions.last()
        || format > MAX_SCHEMA_FORMAT
        || encoding > UTF_8
        || !is_of_length
}

/// Puts right what must stand in the header of a file of `n_pages` without a WAL. It has no free pages then: it is only
/// read.
pub(crate) fn repair(header: &mut [u8], n_pages: u32) {
    FIXED.iter().for_each(|(at, bytes)| set(header, *at, bytes));
    set(header, VERSIONS.start, &[1, 1]);
    set(header, N_PAGES, &n_pages.to_be_bytes());
    set(header, FIRST_FREE_PAGE, &[0; 8]);
    set(header, SCHEMA_FORMAT, &MAX_SCHEMA_FORMAT.to_be_bytes());
    set(header, ENCODING, &UTF_8.to_be_bytes());
    let counter = number(header, CHANGE_COUNTER);
    set(header, VALID_FOR, &counter.to_be_bytes());
}

/// Says that newer pages are in a WAL.
pub(crate) fn use_wal(header: &mut [u8]) {
    set(header, VERSIONS.start, &[2, 2]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repaired_header_is_whole_whatever_bit_was_flipped() {
        let mut whole = vec![0; HEADER_BYTES];
        repair(&mut whole, 7);
        let bytes = Some(7 * PAGE_BYTES as u64);
        assert!(!is_damaged(&whole, bytes));
        for bit in 0..HEADER_BYTES * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            repair(&mut flipped, 7);
            assert!(!is_damaged(&flipped, bytes), "bit {bit}");
        }
        for at in [0, 17, 18, 22, 31, 35, 47, 59] {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x40;
            assert!(is_damaged(&flipped, bytes), "byte {at}");
        }
    }
}
