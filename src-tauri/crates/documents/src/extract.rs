//! Decodes a file's bytes into text: PDF by its fonts, everything else by its encoding. What is not
//! text is refused with a message. Knows nothing of messages, models or where the bytes come from.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use contract::types::AttachmentKind;

use crate::extract_error::{ExtractError, TEXT_MOST};
use crate::pdf;

/// Of a file that is looked at to see what it is.
const LOOKED_AT: usize = 64 << 10;

/// One control character per this many characters is tolerated; more means that it is no text.
const CONTROLS: usize = 200;

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractedText {
    pub kind: AttachmentKind,
    /// Lines end with `\n`; pages of a PDF are parted by `pdf::PAGE_BREAK`.
    pub text: String,
    /// The encoding, if it was guessed.
    pub guessed: Option<&'static str>,
}

/// Errors say why in words.
pub fn read(name: &str, bytes: &[u8]) -> Result<ExtractedText, ExtractError> {
    if bytes.is_empty() {
        return Err(ExtractError::new("it is empty", "Choose a file that has content."));
    }
    let head = &bytes[..bytes.len().min(1024)];
    if head.windows(5).any(|at| at == b"%PDF-") {
        return Ok(ExtractedText { kind: AttachmentKind::Pdf, text: pdf::read(bytes)?, guessed: None });
    }
    if let Some((what, remedy)) = known(name, bytes) {
        return Err(ExtractError::new(format!("it is {what}, not text"), remedy));
    }
    let (text, guessed) = decoded(bytes)?;
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

fn decoded(bytes: &[u8]) -> Result<(String, Option<&'static str>), ExtractError> {
    let (encoding, skipped, is_guess) = match Encoding::for_bom(bytes) {
        Some((encoding, n_bytes)) => (encoding, n_bytes, false),
        None if !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok() => (UTF_8, 0, false),
        None => (guess(bytes), 0, true),
    };
    let (text, had_errors) = encoding.decode_without_bom_handling(&bytes[skipped..]);
    let is_no_text = had_errors && encoding != UTF_8 || !reads_as_text(&text);
    if is_no_text {
        return Err(ExtractError::new(
            "its text can't be read",
            "Save it as text (UTF-8), PDF or CSV and attach that.",
        ));
    }
    Ok((text.into_owned(), is_guess.then(|| encoding.name())))
}

/// Without a mark at its beginning: UTF-16 has zeros in every second byte of Western texts.
fn guess(bytes: &[u8]) -> &'static Encoding {
    let head = &bytes[..bytes.len().min(LOOKED_AT)];
    let zeros = |odd: usize| head.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
    let many = head.len() / 8;
    match (zeros(0), zeros(1)) {
        (first, second) if first > many && second * 8 < first => UTF_16BE,
        (first, second) if second > many && first * 8 < second => UTF_16LE,
        _ => WINDOWS_1252,
    }
}

/// Few enough of its characters are none that texts have.
fn reads_as_text(text: &str) -> bool {
    let is_odd = |c: char| {
        (c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}')) || c == '\u{fffd}'
    };
    if text.contains('\0') {
        return false;
    }
    let (mut n, mut n_odd) = (0, 0);
    for c in text.chars() {
        n += 1;
        n_odd += usize::from(is_odd(c));
    }
    n_odd * CONTROLS <= n
}

/// By the ends of names that people know.
fn kind(name: &str) -> AttachmentKind {
    const CODE: &[&str] = &[
        "rs", "py", "js", "mjs", "ts", "tsx", "jsx", "svelte", "vue", "html", "htm", "css", "scss", "c", "h",
        "cc", "cpp", "hpp", "cs", "java", "kt", "go", "rb", "php", "swift", "scala", "sh", "bash", "zsh",
        "fish", "ps1", "sql", "json", "jsonl", "toml", "yaml", "yml", "xml", "ini", "lua", "pl", "r", "jl",
        "hs", "ml", "ex", "exs", "erl", "clj", "dart", "zig", "nix", "wgsl", "glsl", "tex", "diff", "patch",
        "ipynb",
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
        (b"\x1f\x8b", "an archive (gzip)", UNPACK),
        (b"7z\xbc\xaf\x27\x1c", "an archive (7z)", UNPACK),
        (b"Rar!", "an archive (RAR)", UNPACK),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a document in an old Office format", PRINT),
        (b"SQLite format 3\0", "a database", PRINT),
        (b"GGUF", "a model", "Add it on the Models page."),
        (b"ID3", "a recording", SEEN),
        (b"OggS", "a recording", SEEN),
    ];
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return Some(match extension(name).as_str() {
            "docx" | "odt" | "pptx" | "odp" | "xlsx" | "ods" | "epub" | "pages" | "numbers" => {
                ("an Office document", PRINT)
            }
            _ => ("an archive (zip)", UNPACK),
        });
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some(("an image (WebP)", SEEN));
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
            ("a.docx", b"PK\x03\x04rest", "Office"),
            ("a.zip", b"PK\x03\x04rest", "zip"),
            ("a.txt", &noise, "can't be read"),
            ("a.txt", b"text\0with zeros", "can't be read"),
            ("a.gguf", b"GGUF\x03\0\0\0", "model"),
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
            ("README", AttachmentKind::Text),
        ] {
            assert_eq!(read(name, b"x").unwrap().kind, expected, "{name}");
        }
    }
}
