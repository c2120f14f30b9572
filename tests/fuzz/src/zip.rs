//! Archives of sections, so that mutations reach what is packed.

use crate::sections::Sections;

/// Name and bytes of the archive's files: as they are, so that no checksum has to be guessed.
pub fn of_sections(sections: &Sections<'_>) -> Vec<u8> {
    let (mut zip, mut central, mut n) = (Vec::new(), Vec::new(), 0_u16);
    for (name, content) in sections.named() {
        let mut common = Vec::from([20, 0, 0, 8, 0, 0, 0, 0, 0, 0]);
        common.extend(crc32fast::hash(content).to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        let at = (zip.len() as u32).to_le_bytes();
        zip.extend([b"PK\x03\x04", &*common, name.as_bytes(), content].concat());
        central.extend([b"PK\x01\x02\x14\0", &*common, &[0; 10], &at, name.as_bytes()].concat());
        n += 1;
    }
    let sizes = [(central.len() as u32).to_le_bytes(), (zip.len() as u32).to_le_bytes()].concat();
    zip.extend(central);
    zip.extend([b"PK\x05\x06\0\0\0\0", &n.to_le_bytes()[..], &n.to_le_bytes(), &sizes, &[0, 0]].concat());
    zip
}
