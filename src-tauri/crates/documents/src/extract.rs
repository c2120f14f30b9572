//! Decodes a file's bytes into text: PDF by its fonts, office files, books and web pages as Markdown, everything else by
//! its encoding. What is not text is refused with a message.

use contract::types::AttachmentKind;

use crate::extract_error::{ExtractError, TEXT_MOST};
use crate::html;
use crate::office::{self, old_office};
use crate::pdf::{self, scanned};
use crate::text_encoding::{self, DecodedText};

/// Endings of web pages: their text is read, not their source.
const WEB_PAGE: &[&str] = &["html", "htm", "xhtml", "xht"];

/// Endings of archives that are read as documents.
const OFFICE: &[&str] = &[
    "docx", "docm", "dotx", "dotm", "xlsx", "xlsm", "xltx", "xltm", "xlsb", "pptx", "pptm", "potx", "ppsx",
    "ppsm", "odt", "ott", "odm", "ods", "ots", "odp", "otp", "odg", "epub",
];

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractedText {
    pub kind: AttachmentKind,
    /// Lines end with `\n`; pages of a PDF are parted by `pdf::PAGE_BREAK`.
    pub text: String,
    /// The encoding, if it was guessed or characters were replaced.
    pub guessed: Option<&'static str>,
}

/// Errors say why in words.
pub fn read(name: &str, bytes: &[u8]) -> Result<ExtractedText, ExtractError> {
    let read = read_with_blank_pages(name, bytes)?;
    if scanned::is_blank(&read.text) {
        let remedy = "Choose a model that sees images, or run text recognition (OCR) on it first.";
        return Err(ExtractError { remedy: remedy.into(), ..ExtractError::no_text() });
    }
    Ok(read)
}

/// As [`read`], but a PDF whose pages are images has blank pages.
pub fn read_with_blank_pages(name: &str, bytes: &[u8]) -> Result<ExtractedText, ExtractError> {
    if bytes.is_empty() {
        return Err(ExtractError::new("it is empty", "Choose a file that has content."));
    }
    let head = &bytes[..bytes.len().min(1024)];
    if head.windows(5).any(|at| at == b"%PDF-") {
        return Ok(ExtractedText { kind: AttachmentKind::Pdf, text: pdf::read(bytes)?, guessed: None });
    }
    if bytes.starts_with(b"PK\x03\x04") {
        match office::read(bytes) {
            Ok(Some((kind, text))) => return Ok(ExtractedText { kind, text, guessed: None }),
            Err(error) if OFFICE.contains(&extension(name).as_str()) => return Err(error),
            // any other archive, damaged or not
            Ok(None) | Err(_) => {}
        }
    }
    if bytes.starts_with(old_office::SIGNATURE) {
        return Err(old_office::refusal(bytes));
    }
    if let Some((what, remedy)) = known(name, bytes) {
        return Err(ExtractError::new(format!("it is {what}, not text"), remedy));
    }
    let DecodedText { text, guessed } = text_encoding::decode(name, bytes).ok_or_else(|| {
        ExtractError::new("its text can't be read", "Save it as text (UTF-8), PDF or CSV and attach that.")
    })?;
    if WEB_PAGE.contains(&extension(name).as_str()) {
        return Ok(ExtractedText { kind: AttachmentKind::Document, text: html::read(&text)?, guessed });
    }
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    if text.trim().is_empty() {
        return Err(ExtractError::new(
            "it contains only spaces and line breaks",
            "Choose a file that has content.",
        ));
    }
    if text.len() > TEXT_MOST {
        return Err(ExtractError::too_long(text.len()));
    }
    Ok(ExtractedText { kind: kind(name), text, guessed })
}

/// By the ends of names that people know.
fn kind(name: &str) -> AttachmentKind {
    const CODE: &[&str] = &[
        "rs", "py", "js", "mjs", "ts", "tsx", "jsx", "svelte", "vue", "css", "scss", "c", "h", "cc", "cpp",
        "hpp", "cs", "java", "kt", "go", "rb", "php", "swift", "scala", "sh", "bash", "zsh", "fish", "ps1",
        "sql", "json", "jsonl", "toml", "yaml", "yml", "xml", "ini", "lua", "pl", "r", "jl", "hs", "ml",
        "ex", "exs", "erl", "clj", "dart", "zig", "nix", "wgsl", "glsl", "tex", "diff", "patch", "ipynb",
    ];
    match extension(name).as_str() {
        "md" | "markdown" => AttachmentKind::Markdown,
        "csv" | "tsv" => AttachmentKind::Csv,
        other if CODE.contains(&other) => AttachmentKind::Code,
        _ => AttachmentKind::Text,
    }
}

/// What follows the last point of a name, in small letters.
pub fn extension(name: &str) -> String {
    name.rsplit_once('.').map(|(_, end)| end.to_lowercase()).unwrap_or_default()
}

/// Files that are known by their first bytes: what it is, and what to do instead.
fn known(name: &str, bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    const PRINT: &str = "Save it as PDF, text or CSV and attach that.";
    const SEEN: &str = "Describe it in your message, or attach its text.";
    const UNPACK: &str = "Unpack it and attach the files inside.";
    let signs: &[(&[u8], &str, &str)] = &[
        (b"\x89PNG\r\n\x1a\n", "an image (PNG)", SEEN),
        (b"\xff\xd8\xff", "an image (JPEG)", SEEN),
        (b"GIF8", "an image (GIF)", SEEN),
        (b"\x7fELF", "a program", SEEN),
        (b"MZ\x90\0", "a program", SEEN),
        (b"\xcf\xfa\xed\xfe", "a program", SEEN),
        (b"\xca\xfe\xba\xbe", "a program", SEEN),
        (b"\0asm", "a program", SEEN),
        (b"II*\0", "an image (TIFF)", SEEN),
        (b"MM\0*", "an image (TIFF)", SEEN),
        (b"BZh", "an archive (bzip2)", UNPACK),
        (b"\xfd7zXZ\0", "an archive (xz)", UNPACK),
        (b"\x28\xb5\x2f\xfd", "an archive (zstd)", UNPACK),
        (b"fLaC", "a recording", SEEN),
        (b"wOFF", "a font", SEEN),
        (b"wOF2", "a font", SEEN),
        (b"OTTO", "a font", SEEN),
        (b"\x1f\x8b", "an archive (gzip)", UNPACK),
        (b"7z\xbc\xaf\x27\x1c", "an archive (7z)", UNPACK),
        (b"Rar!", "an archive (RAR)", UNPACK),
        (b"SQLite format 3\0", "a database", PRINT),
        (b"GGUF", "a model", "Add it on the Models page."),
        (b"ID3", "a recording", SEEN),
        (b"OggS", "a recording", SEEN),
    ];
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return Some(match extension(name).as_str() {
            "pages" | "numbers" | "key" => ("an iWork document", PRINT),
            _ => ("an archive (zip)", UNPACK),
        });
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some(("an image (WebP)", SEEN));
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12).is_some_and(|kind| kind == b"WAVE" || kind == b"AVI ") {
        return Some(("a recording", SEEN));
    }
    if bytes.get(4..8) == Some(b"ftyp") {
        return Some(("a recording or image (MP4, HEIF)", SEEN));
    }
    signs.iter().find(|(sign, ..)| bytes.starts_with(sign)).map(|(_, what, remedy)| (*what, *remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, bytes: &[u8]) -> (String, Option<&'static str>) {
        let read = read(name, bytes).unwrap();
        (read.text, read.guessed)
    }

    #[test]
    fn texts_come_in_many_encodings() {
        let cases: &[(&[u8], &str, Option<&str>)] = &[
            (b"plain", "plain", None),
            ("naïve 東京 🦊".as_bytes(), "naïve 東京 🦊", None),
            (b"\xef\xbb\xbfmarked", "marked", None),
            (b"\xff\xfeh\0i\0", "hi", None),
            (b"\xfe\xff\0h\0i", "hi", None),
            (b"h\0e\0l\0l\0o\0 \0t\0h\0e\0r\0e\0", "hello there", Some("UTF-16LE")),
            (b"\0h\0e\0l\0l\0o\0 \0t\0h\0e\0r\0e", "hello there", Some("UTF-16BE")),
            (b"caf\xe9 \x80 5", "café € 5", Some("windows-1252")),
            (b"a\r\nb\rc\n", "a\nb\nc\n", None),
        ];
        // As they lie on other people's disks.
        let files: [(&[u8], &str, &str); 5] = [
            (include_bytes!("../tests/text/ja-sjis.csv"), "鈴木,35,大阪\n", "Shift_JIS"),
            (include_bytes!("../tests/text/ru-1251.txt"), "Санкт-Петербург\n", "windows-1251"),
            (include_bytes!("../tests/text/zh-gbk.csv"), "二〇二四年第三季度", "GBK"),
            (include_bytes!("../tests/text/utf8-cut.txt"), "二〇二四年第三季度", "UTF-8"),
            (include_bytes!("../tests/text/nul-in-log.txt"), "two\u{fffd}\nline three\n", "UTF-8"),
        ];
        for (bytes, part, guessed) in files {
            let (text, found) = text("a.txt", bytes);
            assert!(text.contains(part) && found == Some(guessed), "{found:?}: {text}");
        }
        for (bytes, expected, guessed) in cases {
            assert_eq!(text("a.txt", bytes), ((*expected).to_owned(), *guessed), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_no_text_is_refused_with_a_reason() {
        let noise: Vec<u8> = (0..4000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let cases: &[(&str, &[u8], &str)] = &[
            ("a.txt", b"", "empty"),
            ("a.txt", b" \n\t", "only spaces"),
            ("a.png", b"\x89PNG\r\n\x1a\n\0\0", "PNG"),
            ("a.docx", b"PK\x03\x04rest", "damaged"),
            ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Office"),
            ("a.pages", b"PK\x03\x04rest", "iWork"),
            ("a.html", b"<p hidden>x</p>", "no text"),
            ("a.zip", b"PK\x03\x04rest", "zip"),
            ("a.txt", &noise, "can't be read"),
            ("a.txt", b"text\0with zeros", "can't be read"),
            ("a.gguf", b"GGUF\x03\0\0\0", "model"),
            ("a.mp4", b"\0\0\0\x18ftypmp42", "MP4"),
            ("a.wav", b"RIFF\x24\0\0\0WAVEfmt ", "recording"),
            ("a.xz", b"\xfd7zXZ\0\0", "xz"),
        ];
        for (name, bytes, why) in cases {
            let problem = read(name, bytes).unwrap_err();
            assert!(problem.why.contains(why) && problem.remedy.ends_with('.'), "{name}: {problem:?}");
        }
        let long = "x".repeat(TEXT_MOST + 1);
        assert!(read("a.txt", long.as_bytes()).unwrap_err().why.contains("the maximum is"));
    }

    #[test]
    fn kinds_are_told_by_names() {
        for (name, expected) in [
            ("notes.MD", AttachmentKind::Markdown),
            ("a.b.rs", AttachmentKind::Code),
            ("data.csv", AttachmentKind::Csv),
            ("page.htm", AttachmentKind::Document),
            ("README", AttachmentKind::Text),
        ] {
            assert_eq!(read(name, b"x").unwrap().kind, expected, "{name}");
        }
    }
}
