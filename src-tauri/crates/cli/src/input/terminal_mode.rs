//! The terminal without its own editing of lines, by `stty` of POSIX: what is set is put back on every path.

use std::io;
use std::process::{Command, Stdio};

use super::line_view::ScreenSize;

/// Marks pasted text.
const PASTE_ON: &str = "\x1b[?2004h";
const PASTE_OFF: &str = "\x1b[?2004l";

/// Keys come one by one, unechoed, until this is dropped.
pub struct TerminalMode {
    /// What `stty` restores.
    before: String,
}

impl TerminalMode {
    /// Sets the terminal of standard input.
    ///
    /// Errors: there is no `stty`, or standard input is no terminal.
    pub fn begin() -> io::Result<Self> {
        let before = stty(&["-g"])?;
        let this = Self { before: before.trim().to_owned() };
        stty(&["-icanon", "-echo", "-isig", "-iexten", "-icrnl", "-ixon", "min", "1", "time", "0"])?;
        crate::out::bytes(PASTE_ON.as_bytes());
        Ok(this)
    }
}

impl Drop for TerminalMode {
    fn drop(&mut self) {
        crate::out::bytes(PASTE_OFF.as_bytes());
        // A terminal that is gone needs no mode.
        let _ = stty(&[self.before.as_str()]);
    }
}

/// The size of the terminal; 24 rows of 80 columns where it tells none.
pub fn screen_size() -> ScreenSize {
    let told = stty(&["size"]).unwrap_or_default();
    let numbers: Vec<usize> = told.split_whitespace().filter_map(|it| it.parse().ok()).collect();
    match numbers.as_slice() {
        [rows @ (1..), columns @ (4..)] => ScreenSize { rows: *rows, columns: *columns },
        _ => ScreenSize { rows: 24, columns: 80 },
    }
}

fn stty(args: &[&str]) -> io::Result<String> {
    let done = Command::new("stty").args(args).stdin(Stdio::inherit()).output()?;
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        return Err(io::Error::other(why));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
