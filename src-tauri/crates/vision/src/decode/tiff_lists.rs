//! The lists in a TIFF's head, before its decoder reads them: that one allocates them by their stated lengths, before any
//! limit is set (tiff 0.11, image 0.25).

/// Tags of the picture's structure end here; what follows is not read.
const MAX_TAG: u16 = 699;

/// What the decoder takes for an entry of a list: a value of 32 bytes, and twice a number.
const ENTRY_BYTES: usize = 48;

/// Returns the memory that the lists of the first directory take. `None`: one is longer than the file.
pub fn n_list_bytes(file: &[u8]) -> Option<usize> {
    let Some(directory) = Directory::of(file) else { return Some(0) };
    directory.entries().try_fold(0_usize, |sum, (tag, kind, count)| {
        if tag > MAX_TAG {
            return Some(sum);
        }
        let count = usize::try_from(count).ok()?;
        let n_stored = count.checked_mul(value_bytes(kind))?;
        (n_stored <= file.len()).then(|| sum.saturating_add(count.saturating_mul(ENTRY_BYTES)))
    })
}

/// Bytes of a value, by the number of its type (TIFF 6.0, section 2; BigTIFF).
fn value_bytes(kind: u16) -> usize {
    match kind {
        3 | 8 => 2,
        4 | 9 | 11 | 13 => 4,
        5 | 10 | 12 | 16 | 17 | 18 => 8,
        _ => 1,
    }
}

/// The entries of the first directory.
struct Directory<'a> {
    entries: &'a [u8],
    is_little_endian: bool,
    is_big_tiff: bool,
}

impl<'a> Directory<'a> {
    /// None: there is no directory, as the decoder will say.
    fn of(file: &'a [u8]) -> Option<Self> {
        let is_little_endian = file.starts_with(b"II");
        let number = |at: usize, n: usize| number(file.get(at..at.checked_add(n)?)?, is_little_endian);
        let is_big_tiff = number(2, 2)? == 43;
        let (start, n_count) = if is_big_tiff { (number(8, 8)?, 8) } else { (number(4, 4)?, 2) };
        let start = usize::try_from(start).ok()?;
        let n = usize::try_from(number(start, n_count)?).ok()?;
        let entries = file.get(start + n_count..)?;
        let n_bytes = n.saturating_mul(Self::entry_bytes(is_big_tiff)).min(entries.len());
        Some(Self { entries: &entries[..n_bytes], is_little_endian, is_big_tiff })
    }

    fn entry_bytes(is_big_tiff: bool) -> usize {
        if is_big_tiff { 20 } else { 12 }
    }

    /// Tag, type and count of each.
    fn entries(&self) -> impl Iterator<Item = (u16, u16, u64)> {
        let n_count = if self.is_big_tiff { 8 } else { 4 };
        self.entries.chunks_exact(Self::entry_bytes(self.is_big_tiff)).filter_map(move |entry| {
            let number = |at: usize, n: usize| number(&entry[at..at + n], self.is_little_endian);
            Some((number(0, 2)? as u16, number(2, 2)? as u16, number(4, n_count)?))
        })
    }
}

/// An unsigned number of up to eight bytes.
fn number(bytes: &[u8], is_little_endian: bool) -> Option<u64> {
    let mut wide = [0; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    if !is_little_endian {
        wide[..bytes.len()].reverse();
    }
    Some(u64::from_le_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head with one entry: a list of numbers of two bytes, behind it.
    fn file(tag: u16, count: u32, n_bytes: usize) -> Vec<u8> {
        let mut file = b"II*\0\x08\0\0\0\x01\0".to_vec();
        file.extend(tag.to_le_bytes());
        file.extend(3_u16.to_le_bytes());
        file.extend(count.to_le_bytes());
        file.resize(n_bytes, 0);
        file
    }

    #[test]
    fn lists_are_counted_by_their_stated_lengths() {
        assert_eq!(n_list_bytes(&file(273, 10, 100)), Some(480));
        assert_eq!(n_list_bytes(&file(273, 50, 100)), Some(2400));
        assert_eq!(n_list_bytes(&file(273, 51, 100)), None);
        assert_eq!(n_list_bytes(&file(273, u32::MAX, 100)), None);
        assert_eq!(n_list_bytes(&file(700, u32::MAX, 100)), Some(0), "not read");
        assert_eq!(n_list_bytes(b"II*\0"), Some(0));
        assert_eq!(n_list_bytes(&[b"II*\0", &[0xff; 4][..]].concat()), Some(0));
        let big = b"MM\0+\0\x08\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x01\x01\x11\0\x04\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0";
        assert_eq!(n_list_bytes(big), Some(96));
    }
}
