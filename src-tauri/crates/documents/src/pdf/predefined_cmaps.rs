//! The CMaps that PDF names without containing them, and what the glyphs (CIDs) of Adobe's four Asian collections
//! mean as text.

use std::collections::HashMap;
use std::rc::Rc;

use hayro_cmap::{BfString, CMap, CMapName, CidFamily, load_embedded};

/// How the codes of a CMap are themselves Unicode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnicodeForm {
    Utf8,
    Utf16,
    Utf32,
}

impl UnicodeForm {
    /// By the name of the CMap, such as `UniJIS-UTF16-H`.
    pub fn of_name(name: &[u8]) -> Option<Self> {
        let name = std::str::from_utf8(name).ok().filter(|name| name.starts_with("Uni"))?;
        let has = |part: &str| name.split('-').any(|it| it == part);
        match () {
            () if has("UCS2") || has("UTF16") => Some(Self::Utf16),
            () if has("UTF32") => Some(Self::Utf32),
            () if has("UTF8") => Some(Self::Utf8),
            () => None,
        }
    }

    /// Length of the code at the front of `bytes`, which are not empty.
    pub fn code_bytes(self, bytes: &[u8]) -> usize {
        let first = bytes.first().copied().unwrap_or(0);
        match self {
            Self::Utf8 => match first {
                0..=0xBF => 1,
                0xC0..=0xDF => 2,
                0xE0..=0xEF => 3,
                0xF0..=0xFF => 4,
            },
            Self::Utf16 => match first {
                0xD8..=0xDB if bytes.get(2).is_some_and(|byte| (0xDC..=0xDF).contains(byte)) => 4,
                _ => 2,
            },
            Self::Utf32 => 4,
        }
    }

    /// The text of one code.
    pub fn text(self, code: &[u8]) -> Option<String> {
        match self {
            Self::Utf8 => std::str::from_utf8(code).ok().map(str::to_owned),
            Self::Utf16 => {
                let units: Vec<u16> =
                    code.as_chunks::<2>().0.iter().map(|it| u16::from_be_bytes(*it)).collect();
                String::from_utf16(&units).ok()
            }
            Self::Utf32 => char::from_u32(super::cmap::code(code)).map(String::from),
        }
    }
}

/// CMaps that were unpacked for a document, by name. None: there is no such CMap.
#[derive(Default)]
pub struct PredefinedCMaps {
    known: HashMap<Vec<u8>, Option<Rc<CMap>>>,
}

impl PredefinedCMaps {
    /// The CMap of this name.
    pub fn get(&mut self, name: &[u8]) -> Option<Rc<CMap>> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        // foreign names are not kept: a file may have any number
        let bytes = load_embedded(CMapName::from_bytes(name))?;
        let map = CMap::parse(bytes, load_embedded).map(Rc::new);
        self.known.insert(name.to_vec(), map.clone());
        map
    }

    /// What the CIDs of a collection mean, such as `Japan1` of `Adobe`.
    pub fn texts_of(&mut self, registry: &[u8], ordering: &[u8]) -> Option<Rc<CMap>> {
        let name = CidFamily::from_registry_ordering(registry, ordering).ucs2_cmap()?;
        self.get(name.to_bytes())
    }
}

/// The text of a CID.
pub fn text_of_cid(texts: &CMap, cid: u32) -> Option<String> {
    match texts.lookup_bf_string(cid)? {
        BfString::Char(c) => Some(c.to_string()),
        BfString::String(text) => Some(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CIDs from Adobe's technical notes 5078, 5079, 5080 and 5093, texts from the characters' own code charts.
    #[test]
    fn cids_of_the_four_collections_mean_text() {
        let mut maps = PredefinedCMaps::default();
        for (ordering, cid, expected) in [
            ("Japan1", 34, "A"),
            ("Japan1", 843, "あ"),
            ("Japan1", 1125, "亜"),
            ("GB1", 34, "A"),
            ("GB1", 4559, "中"),
            ("CNS1", 595, "一"),
            ("Korea1", 1086, "가"),
        ] {
            let texts = maps.texts_of(b"Adobe", ordering.as_bytes()).unwrap();
            assert_eq!(text_of_cid(&texts, cid).as_deref(), Some(expected), "{ordering} {cid}");
        }
        assert!(maps.texts_of(b"Adobe", b"Identity").is_none());
    }

    #[test]
    fn codes_of_the_usual_encodings_are_glyphs() {
        let mut maps = PredefinedCMaps::default();
        // Shift-JIS, GBK, Big Five, UHC and EUC-KR of the same few characters
        for (name, ordering, code, expected) in [
            ("90ms-RKSJ-H", "Japan1", 0x82A0, "あ"),
            ("90ms-RKSJ-V", "Japan1", 0x82A0, "あ"),
            ("EUC-H", "Japan1", 0xA4A2, "あ"),
            ("H", "Japan1", 0x2422, "あ"),
            ("GBK-EUC-H", "GB1", 0xD6D0, "中"),
            ("GB-EUC-H", "GB1", 0xD6D0, "中"),
            ("ETen-B5-H", "CNS1", 0xA440, "一"),
            ("B5pc-H", "CNS1", 0xA440, "一"),
            ("KSCms-UHC-H", "Korea1", 0xB0A1, "가"),
            ("KSC-EUC-H", "Korea1", 0xB0A1, "가"),
        ] {
            let cid = maps.get(name.as_bytes()).unwrap().lookup_cid_code(code, 2).unwrap();
            let texts = maps.texts_of(b"Adobe", ordering.as_bytes()).unwrap();
            assert_eq!(text_of_cid(&texts, cid).as_deref(), Some(expected), "{name}");
        }
        assert!(maps.get(b"Nobody-H").is_none());
    }

    #[test]
    fn codes_that_are_unicode_are_read_as_such() {
        for (name, bytes, n, expected) in [
            ("UniJIS-UCS2-H", "\u{0}A".as_bytes(), 2, "A"),
            ("UniJIS2004-UTF16-V", b"\xd8\x42\xdf\xb7", 4, "𠮷"),
            ("UniAKR-UTF32-H", b"\0\x01\xf6\0", 4, "😀"),
            ("UniGB-UTF8-H", "中".as_bytes(), 3, "中"),
        ] {
            let form = UnicodeForm::of_name(name.as_bytes()).unwrap();
            assert_eq!((form.code_bytes(bytes), form.text(bytes).as_deref()), (n, Some(expected)), "{name}");
        }
        for name in ["Identity-H", "90ms-RKSJ-H", "Universe"] {
            assert_eq!(UnicodeForm::of_name(name.as_bytes()), None, "{name}");
        }
    }
}
