//! Encodings that a text declares of itself: HTML, XML, CSS, coding lines, LaTeX and gettext.

use std::sync::LazyLock;

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use regex::bytes::Regex;

use crate::extract::extension;

/// Declarations stand at the beginning; HTML requires the first 1024 bytes, and pages exceed it.
const HEAD_BYTES: usize = 4096;

/// A coding line is one of the first two (PEP 263).
const CODING_LINES: usize = 2;

static COMMENT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?s-u)<!--.*?-->").ok());

/// Per kind of file: where the label stands.
static MARKUP: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    compiled(&[
        r#"(?i-u)^\s*<\?xml\s[^>]*?encoding\s*=\s*["']\s*([\w.:-]+)"#,
        r#"(?i-u)<meta\s[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)"#,
    ])
});
static STYLE: LazyLock<Vec<Regex>> = LazyLock::new(|| compiled(&[r#"(?-u)^@charset "([\w.:-]+)";"#]));
static LATEX: LazyLock<Vec<Regex>> =
    LazyLock::new(|| compiled(&[r"(?-u)\\usepackage\s*\[\s*([\w.:-]+)\s*\]\s*\{inputenc\}"]));
static GETTEXT: LazyLock<Vec<Regex>> =
    LazyLock::new(|| compiled(&[r"(?i-u)Content-Type:\s*text/plain;\s*charset=([\w.:-]+)"]));
/// In a comment of any language: `coding: x`, `coding=x`, `fileencoding=x`.
static CODING: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    compiled(&[r#"(?i-u)^[ \t\f]*(?:#|//|/\*|;|--|%|"|<!--|REM\b).*?(?:coding|fenc)[:=][ \t]*([\w.:-]+)"#])
});

fn compiled(patterns: &[&str]) -> Vec<Regex> {
    patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
}

/// The encoding that the text declares. None: no declaration, or one that says nothing.
pub fn encoding(name: &str, bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let found = match extension(name).as_str() {
        "css" | "scss" => label(&STYLE, head),
        "tex" | "sty" | "ltx" | "cls" => label(&LATEX, head),
        "po" | "pot" => label(&GETTEXT, head),
        "htm" | "html" | "xhtml" | "xml" | "svg" | "xsl" | "xslt" | "rss" | "fb2" | "php" => in_markup(head),
        _ if head.trim_ascii_start().starts_with(b"<") => in_markup(head),
        _ => None,
    };
    found.or_else(|| {
        head.split(|byte| *byte == b'\n').take(CODING_LINES).find_map(|line| label(&CODING, line))
    })
}

/// Comments declare nothing.
fn in_markup(head: &[u8]) -> Option<&'static Encoding> {
    match COMMENT.as_ref() {
        Some(comment) => label(&MARKUP, &comment.replace_all(head, &b""[..])),
        None => label(&MARKUP, head),
    }
}

fn label(patterns: &[Regex], head: &[u8]) -> Option<&'static Encoding> {
    let label = patterns.iter().find_map(|pattern| pattern.captures(head)?.get(1))?;
    of_label(std::str::from_utf8(label.as_bytes()).ok()?)
}

/// Names of the web, of Python, Emacs and LaTeX.
fn of_label(label: &str) -> Option<&'static Encoding> {
    let label = label.to_ascii_lowercase();
    let label = ["-unix", "-dos", "-mac"].iter().find_map(|end| label.strip_suffix(end)).unwrap_or(&label);
    let dashed = label.replace('_', "-");
    let known = match dashed.as_str() {
        // Declared by habit; a text that isn't ASCII is something else.
        "ascii" | "us-ascii" | "ansi-x3.4-1968" | "646" => return None,
        "latin-1" => "latin1",
        "cp932" | "mskanji" | "ms-kanji" | "s-jis" => "shift_jis",
        "cp936" | "ms936" => "gbk",
        "gb18030-2000" => "gb18030",
        "cp949" | "ms949" | "uhc" => "euc-kr",
        "cp950" | "ms950" => "big5",
        "eucjp" | "ujis" => "euc-jp",
        "euckr" => "euc-kr",
        "cp65001" | "utf-8-sig" | "utf8x" => "utf-8",
        "ansinew" => "windows-1252",
        "applemac" | "mac-roman" | "macroman" => "macintosh",
        "koi8-ru" => "koi8-u",
        other => other,
    };
    let digits = known.strip_prefix("windows").filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let found = match digits {
        Some(digits) => Encoding::for_label_no_replacement(format!("windows-{digits}").as_bytes()),
        None => Encoding::for_label_no_replacement(known.as_bytes())
            .or_else(|| Encoding::for_label_no_replacement(label.as_bytes())),
    };
    // The declaration could be read, so it is wrong.
    found.filter(|encoding| *encoding != UTF_16LE && *encoding != UTF_16BE)
}
