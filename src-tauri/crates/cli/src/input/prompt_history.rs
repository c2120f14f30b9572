//! What was typed in `nook chat`, kept over starts: one JSON text per line of a file that only its user may read.

use std::path::PathBuf;

use contract::Result;
use io::{Io, RealIo};

/// Entries that are kept.
const MAX_ENTRIES: usize = 1000;

/// A longer entry, such as a pasted book, is not kept.
const MAX_ENTRY_BYTES: usize = 64 << 10;

/// No history is larger: every entry once more before the file is shortened.
const MAX_FILE_BYTES: u64 = 2 * (MAX_ENTRIES * MAX_ENTRY_BYTES) as u64;

/// What was sent, oldest first, and the file that keeps it.
pub struct PromptHistory {
    /// None where the user does not want it.
    path: Option<PathBuf>,
    entries: Vec<String>,
}

impl PromptHistory {
    /// Reads the file, if one is to keep it; it need not exist. Lines that are damaged are skipped.
    ///
    /// Errors: the file can't be read or shortened.
    pub fn open(path: Option<PathBuf>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self { path, entries: Vec::new() }) };
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
        Ok(Self { path: Some(path), entries })
    }

    /// What was sent, oldest first.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Adds an entry, unless it is empty, too long, or the last one again.
    ///
    /// Errors: the file can't be written. The entry is among `entries` all the same.
    pub fn add(&mut self, text: &str) -> Result<()> {
        let is_again = self.entries.last().is_some_and(|last| last == text);
        if text.trim().is_empty() || text.len() > MAX_ENTRY_BYTES || is_again {
            return Ok(());
        }
        self.entries.push(text.to_owned());
        match &self.path {
            Some(path) => Ok(RealIo.append(path, line_of(text).as_bytes())?),
            None => Ok(()),
        }
    }
}

fn line_of(entry: &str) -> String {
    format!("{}\n", serde_json::Value::from(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(path: &std::path::Path) -> Vec<String> {
        PromptHistory::open(Some(path.to_owned())).unwrap().entries().to_vec()
    }

    #[test]
    fn entries_come_back_and_the_file_stays_small_and_private() {
        let folder = std::env::temp_dir().join(format!("nook-history-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        io::make_private(&folder, &|_| false).unwrap();
        let path = folder.join("history.jsonl");
        assert!(entries(&path).is_empty(), "the first start");
        let mut history = PromptHistory::open(Some(path.clone())).unwrap();
        for text in ["one", "one", "two\nlines \"of\" text", " ", &"x".repeat(MAX_ENTRY_BYTES + 1)] {
            history.add(text).unwrap();
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
