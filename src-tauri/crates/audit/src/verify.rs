//! Checks a log's chain and names the first line that breaks it.

use std::path::Path;

use contract::Result;
use io::Io;
use serde::Serialize;

use crate::chain::{ChainHead, INCOMPLETE, parse_line};
use crate::log::{files, read_head};

/// Longest file that is read: more than a full one with a long last line.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Whether every line is as it was written.
    pub intact: bool,
    /// Lines that were checked.
    pub lines: u64,
    /// Files that were read.
    pub files: usize,
    /// Lines that a crash cut off; the line after each goes on with the chain.
    pub torn: u64,
    /// Number of the first line; above 1 where older files were removed.
    pub first: u64,
    /// Hash of the last line that is intact. Noted elsewhere, it shows later whether the log was replaced.
    pub last_hash: String,
    /// The first line that breaks the chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<BrokenLine>,
}

/// A line that breaks the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BrokenLine {
    /// Path of its file.
    pub file: String,
    /// Its place in the file, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// Checks the log in `folder`.
pub fn verify(folder: &Path, io: &dyn Io) -> Result<Verification> {
    let paths = files(io, folder)?;
    let mut checked = Verification {
        intact: true,
        lines: 0,
        files: paths.len(),
        torn: 0,
        first: 0,
        last_hash: ChainHead::default().hash,
        broken: None,
    };
    let mut head: Option<ChainHead> = None;
    let mut torn: Option<BrokenLine> = None;
    let broken = |file: &Path, line: usize, why: &str| {
        Some(BrokenLine { file: file.display().to_string(), line, why: why.into() })
    };
    for path in &paths {
        let bytes = io.read_within(path, MAX_FILE_BYTES)?;
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            match check_line(line, head.as_ref(), torn.is_some()) {
                Ok(next) => {
                    checked.lines += 1;
                    checked.torn += u64::from(torn.take().is_some());
                    if checked.first == 0 {
                        checked.first = next.seq;
                    }
                    checked.last_hash.clone_from(&next.hash);
                    head = Some(next);
                }
                Err(INCOMPLETE) => {
                    torn = torn.or_else(|| broken(path, index + 1, INCOMPLETE));
                }
                Err(why) => {
                    checked.broken = torn.or_else(|| broken(path, index + 1, why));
                    checked.intact = false;
                    return Ok(checked);
                }
            }
        }
    }
    let last = head.map_or(0, |head| head.seq);
    if let Some(noted) = read_head(io, folder)?.filter(|noted| noted.seq > last) {
        let path = paths.last().cloned().unwrap_or_else(|| folder.to_owned());
        let why = format!("lines {} to {} are missing at the end", last + 1, noted.seq);
        checked.broken = broken(&path, usize::try_from(checked.lines).unwrap_or(usize::MAX), &why);
        checked.intact = false;
    }
    Ok(checked)
}

/// The first line of all may follow files that were removed; every other one follows the line before it.
///
/// `is_after_torn`: a line that was cut off lies between.
fn check_line(
    line: &[u8],
    before: Option<&ChainHead>,
    is_after_torn: bool,
) -> Result<ChainHead, &'static str> {
    let text = std::str::from_utf8(line).map_err(|_| "it is no text")?;
    let (linked, head) = parse_line(text)?;
    match before {
        None if linked.seq == 1 && linked.previous != ChainHead::default().hash => {
            Err("the first line names a line before it")
        }
        None if linked.seq > 1 && is_after_torn => Err("it follows a line that is cut off"),
        Some(before) if linked.previous != before.hash || linked.seq != before.seq + 1 => {
            Err("it does not follow the line before it: lines were changed, removed or inserted")
        }
        None | Some(_) => Ok(head),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use io::RealIo;

    use super::*;
    use crate::log::AuditLog;
    use crate::record::{AuditRecord, AuditTokens, Interface};

    struct Fixture {
        folder: PathBuf,
    }

    impl Fixture {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("inglenook-audit-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&folder);
            Self { folder }
        }

        fn log(&self, max_file_bytes: u64) -> AuditLog {
            AuditLog::with_file_size(self.folder.clone(), Arc::new(RealIo), max_file_bytes)
        }

        fn verify(&self) -> Verification {
            verify(&self.folder, &RealIo).unwrap()
        }

        fn newest(&self) -> PathBuf {
            self.folder.join("audit.jsonl")
        }
    }

    impl Drop for Fixture {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    fn record(turn: usize) -> AuditRecord {
        AuditRecord {
            began: "2026-01-15T12:00:00Z".into(),
            ended: "2026-01-15T12:00:01Z".into(),
            interface: Interface::Terminal,
            key: None,
            route: None,
            turn: format!("turn-{turn}"),
            model: "starter".into(),
            tokens: AuditTokens::default(),
            outcome: "stop".into(),
            error: None,
            text: None,
        }
    }

    #[test]
    fn a_chain_goes_on_across_files_and_processes() {
        let fixture = Fixture::new("files");
        assert_eq!((fixture.verify().intact, fixture.verify().lines), (true, 0));
        for turn in 0..20 {
            // a new log each time, as another process has it
            fixture.log(1000).append(record(turn)).unwrap();
        }
        let checked = fixture.verify();
        assert_eq!((checked.intact, checked.lines, checked.first), (true, 20, 1), "{checked:?}");
        assert!(checked.files > 3);
        let oldest = files(&RealIo, &fixture.folder).unwrap().remove(0);
        std::fs::remove_file(&oldest).unwrap();
        let checked = fixture.verify();
        assert!(checked.intact && checked.first > 1, "rotation removes the oldest: {checked:?}");
    }

    #[test]
    fn the_first_change_is_named() {
        let fixture = Fixture::new("changes");
        for turn in 0..5 {
            fixture.log(1 << 20).append(record(turn)).unwrap();
        }
        let text = std::fs::read_to_string(fixture.newest()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let edited = text.replacen("turn-2", "turn-9", 1);
        let removed = [&lines[..2], &lines[3..]].concat().join("\n") + "\n";
        let swapped = [lines[0], lines[2], lines[1], lines[3], lines[4]].join("\n") + "\n";
        let cut = lines[..4].join("\n") + "\n";
        for (text, line, why) in [
            (edited, 3, "hash"),
            (removed, 3, "follow"),
            (swapped, 2, "follow"),
            (cut, 4, "missing"),
            (text.replacen("{\"seq\":1", "{\"seq\":1,\"x\":1", 1), 1, "hash"),
        ] {
            std::fs::write(fixture.newest(), text).unwrap();
            let checked = fixture.verify();
            let broken = checked.broken.unwrap();
            assert_eq!((checked.intact, broken.line), (false, line), "{broken:?}");
            assert!(broken.why.contains(why), "{broken:?}");
        }
    }

    #[test]
    fn a_line_that_was_cut_off_damages_no_other() {
        let fixture = Fixture::new("cut");
        fixture.log(1 << 20).append(record(0)).unwrap();
        let whole = std::fs::read_to_string(fixture.newest()).unwrap();
        std::fs::write(fixture.newest(), format!("{whole}{{\"seq\":2,\"beg")).unwrap();
        fixture.log(1 << 20).append(record(1)).unwrap();
        let text = std::fs::read_to_string(fixture.newest()).unwrap();
        assert_eq!(text.lines().count(), 3);
        let checked = fixture.verify();
        assert_eq!((checked.intact, checked.lines, checked.torn), (true, 2, 1), "{checked:?}");
        let shortened = text.replacen("\"}\n", "\n", 1);
        std::fs::write(fixture.newest(), shortened).unwrap();
        assert_eq!(
            fixture.verify().broken.map(|it| it.line),
            Some(1),
            "no crash shortens a line that others follow"
        );
    }

    #[test]
    fn a_long_line_is_found_from_the_end() {
        let fixture = Fixture::new("long");
        for turn in 0..3 {
            let text = Some("ä\"".repeat(1 + turn * 70_000));
            fixture.log(4 << 20).append(AuditRecord { text, ..record(turn) }).unwrap();
        }
        let checked = fixture.verify();
        assert_eq!((checked.intact, checked.lines), (true, 3), "{checked:?}");
        // The note beside the file is lost too: the file says how the chain goes on.
        std::fs::remove_file(fixture.folder.join("head.json")).unwrap();
        fixture.log(4 << 20).append(record(3)).unwrap();
        assert_eq!((fixture.verify().intact, fixture.verify().lines), (true, 4));
    }

    #[test]
    fn writers_take_turns() {
        let fixture = Fixture::new("writers");
        std::thread::scope(|scope| {
            for turn in 0..8 {
                let fixture = &fixture;
                scope.spawn(move || fixture.log(1 << 20).append(record(turn)).unwrap());
            }
        });
        assert_eq!((fixture.verify().intact, fixture.verify().lines), (true, 8));
    }
}
