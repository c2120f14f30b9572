//! What was typed in `nook chat`, kept over starts: one JSON text per line of a file that only its user may read.

use std::path::PathBuf;

use contract::Result;
use io::{Io, RealIo};

/// Entries that are kept.
pub const MAX_ENTRIES: usize = 1000;

/// A longer entry, such as a pasted book, is not kept.
pub const MAX_ENTRY_BYTES: usize = 64 << 10;

/// No history is larger: every entry once more before the file is shortened.
const MAX_FILE_BYTES: u64 = 2 * (MAX_ENTRIES * MAX_ENTRY_BYTES) as u64;

/// The file that keeps what was sent.
pub struct PromptHistory {
    /// None where the user does not want it.
    path: Option<PathBuf>,
}

impl PromptHistory {
    /// Reads the entries of the file, oldest first, if one is to keep them; it need not exist. Lines that are damaged are
    /// skipped.
    ///
    /// Errors: the file can't be read or shortened.
    pub fn open(path: Option<PathBuf>) -> Result<(Self, Vec<String>)> {
        let Some(path) = path else { return Ok((Self { path }, Vec::new())) };
        let bytes = match RealIo.exists(&path)? {
            true => RealIo.read_within(&path, MAX_FILE_BYTES)?,
            false => Vec::new(),
        };
        let lines = bytes.split(|byte| *byte == b'\n');
        let mut entries: Vec<String> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        if entries.len() > MAX_ENTRIES {
            entries.drain(..entries.len() - MAX_ENTRIES);
            let text: String = entries.iter().map(|entry| line_of(entry)).collect();
            RealIo.write_atomic(&path, text.as_bytes())?;
        }
        Ok((Self { path: Some(path) }, entries))
    }

    /// Appends an entry. Errors: the file can't be written.
    pub fn append(&self, entry: &str) -> Result<()> {
        match &self.path {
            Some(path) => Ok(RealIo.append(path, line_of(entry).as_bytes())?),
            None => Ok(()),
        }
    }
}

fn line_of(entry: &str) -> String {
    format!("{}\n", serde_json::Value::from(entry))
}

#[cfg(test)]
mod tests {
    use super::super::line_editor::LineEditor;
    use super::*;

    fn entries(path: &std::path::Path) -> Vec<String> {
        PromptHistory::open(Some(path.to_owned())).unwrap().1
    }

    #[test]
    fn entries_come_back_and_the_file_stays_small_and_private() {
        let folder = std::env::temp_dir().join(format!("nook-history-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        io::make_private(&folder, &|_| false).unwrap();
        let path = folder.join("history.jsonl");
        assert!(entries(&path).is_empty(), "the first start");
        let mut editor = LineEditor::new(Some(path.clone()), &[]).unwrap();
        for text in ["one", "one", "two\nlines \"of\" text", " ", &"x".repeat(MAX_ENTRY_BYTES + 1)] {
            editor.remember(text).unwrap();
        }
        assert_eq!(entries(&path), ["one", "two\nlines \"of\" text"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend(b"damage\xff\n\"three\"\n");
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(entries(&path).last().map(String::as_str), Some("three"), "damage costs its line alone");
        let many: String = (0..MAX_ENTRIES + 5).map(|n| line_of(&n.to_string())).collect();
        std::fs::write(&path, many).unwrap();
        assert_eq!(entries(&path).first().map(String::as_str), Some("5"));
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), MAX_ENTRIES);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
