//! What reaches the terminal: results on stdout, everything else on stderr. A reader that has gone is no error.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use api::Error;
use serde::Serialize;
use serde_json::json;

/// Writes to stdout; ends the program quietly where nobody reads any more.
fn write(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        gone(&error);
    }
}

fn gone(error: &io::Error) -> ! {
    let code = if error.kind() == ErrorKind::BrokenPipe { 0 } else { api::ErrorKind::Limit.exit_code() };
    if code != 0 {
        log(&format!("standard output: {error}"));
    }
    std::process::exit(code.into())
}

/// Text as it is, without a line end of its own.
pub fn text(text: &str) {
    write(text.as_bytes());
}

pub fn line(text: &str) {
    write(format!("{text}\n").as_bytes());
}

/// One JSON value on a line.
pub fn json(value: &impl Serialize) {
    let mut bytes = serde_json::to_vec(value).expect("plain data becomes JSON");
    bytes.push(b'\n');
    write(&bytes);
}

/// A line on stderr; nobody may be reading it.
pub fn log(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Text on stderr without a line end: prompts and progress.
pub fn hint(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{text}");
    let _ = stderr.flush();
}

pub fn error_json(error: &Error) -> serde_json::Value {
    json!({"code": error.code(), "message": error.message(), "remedy": error.remedy()})
}

/// Reports a failure and gives its exit code.
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
