//! Output: results on stdout, everything else on stderr. A closed pipe is not an error.

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use contract::Error;
use serde::Serialize;
use serde_json::json;

/// Writes to stdout; ends the program silently if the pipe is closed.
fn write(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        gone(&error);
    }
}

fn gone(error: &io::Error) -> ! {
    let code = if error.kind() == ErrorKind::BrokenPipe { 0 } else { contract::ErrorKind::Limit.exit_code() };
    if code != 0 {
        log(&format!("standard output: {error}"));
    }
    std::process::exit(code.into())
}

/// Prints bytes as they are: text of our own that may hold control characters.
pub fn bytes(bytes: &[u8]) {
    write(bytes);
}

/// Prints text without adding a line end. Escapes control characters only on a terminal.
pub fn text(text: &str) {
    let is_terminal = io::stdout().is_terminal();
    write(if is_terminal { harmless(text) } else { text.into() }.as_bytes());
}

/// Prints text with escape sequences of our own; what came from elsewhere went through `harmless` first.
pub fn styled(text: &str) {
    write(text.as_bytes());
}

pub fn line(line: &str) {
    text(&format!("{line}\n"));
}

/// Replaces control characters by visible symbols, so that models, files and tools can't control the terminal.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(steers) {
        return text.into();
    }
    let text = text.replace("\r\n", "\n");
    let shown = |c: char| match c {
        '\u{7f}' => '\u{2421}',
        c if !steers(c) => c,
        // The Unicode control pictures are in the order of the control characters.
        c => char::from_u32(0x2400 + u32::from(c)).filter(|_| c < ' ').unwrap_or('\u{fffd}'),
    };
    text.chars().map(shown).collect::<String>().into()
}

/// Prints one JSON value on a line.
pub fn json(value: &impl Serialize) {
    let mut bytes = serde_json::to_vec(value).expect("plain data becomes JSON");
    bytes.push(b'\n');
    write(&bytes);
}

/// Prints a line on stderr; ignores failures.
pub fn log(text: &str) {
    let text = if io::stderr().is_terminal() { harmless(text) } else { text.into() };
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints prompts and progress on stderr without a line end. May contain control characters: pass foreign text through
/// `harmless` first.
pub fn hint(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{text}");
    let _ = stderr.flush();
}

pub fn error_json(error: &Error) -> serde_json::Value {
    json!({"code": error.code(), "message": error.message(), "remedy": error.remedy()})
}

/// Reports an error and returns its exit code.
pub fn fail(error: &Error, json: bool) -> ExitCode {
    if json {
        log(&json!({"error": error_json(error)}).to_string());
    } else {
        log(&format!("error: {}", error.message()));
        if !error.remedy().is_empty() {
            log(&format!("  {}", error.remedy()));
        }
    }
    ExitCode::from(error.kind.exit_code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal() {
        let cases = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\x1b[31mred\x1b]0;title\x07", "␛[31mred␛]0;title␇"),
            ("over\rwritten, line\r\n", "over␍written, line\n"),
            ("\u{9b}2J\u{7f}\u{8}\0", "\u{fffd}2J␡␈␀"),
            ("naïve 東京 🦊", "naïve 東京 🦊"),
        ];
        for (text, expected) in cases {
            assert_eq!(harmless(text), expected, "{text:?}");
        }
    }
}
