//! A data folder of a test's own, and a few words to fill it with.
#![allow(clippy::unwrap_used, dead_code)] // shared by tests that each use a part of it

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use io::{ManualClock, RealIo};
use session::{AnswerChunk, MessageState, NewTurn, Notice, Session, StartedTurn, TokenLog, TurnEnding};

/// Folders made so far: tests of different modules may choose the same name.
static FOLDERS: AtomicUsize = AtomicUsize::new(0);

/// A folder that is removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let n = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("inglenook-session-{name}-{}-{n}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    pub fn open(&self) -> (Session, Vec<Notice>) {
        Session::open(&self.0, &RealIo, clock()).unwrap()
    }

    pub fn session(&self) -> Session {
        let (session, notices) = self.open();
        assert_eq!(notices, []);
        session
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(1_760_000_000_000))
}

pub fn ask(session: &mut Session, conversation: Option<&str>, text: &str) -> StartedTurn {
    session.start(NewTurn::Message { conversation, title: text, text, attachments: None }, "starter").unwrap()
}

pub fn piece<'a>(text: &'a str, reasoning: &'a str) -> AnswerChunk<'a> {
    AnswerChunk { text, reasoning, ids: &[7, 8], fingerprint: "f" }
}

pub fn answer(session: &mut Session, started: &StartedTurn, text: &str) {
    let log = Some(TokenLog {
        fingerprint: "f".into(),
        text_ids: vec![1, 2, u32::MAX],
        all_ids: vec![0, 1, 2, u32::MAX],
    });
    let ending = TurnEnding {
        state: MessageState::Complete,
        text,
        reasoning: "",
        tool_calls: None,
        stats: None,
        error: None,
        log,
    };
    session.finish(&started.assistant_message, &ending).unwrap();
}

/// Asked and answered.
pub fn say(session: &mut Session, conversation: Option<&str>, question: &str, reply: &str) -> StartedTurn {
    let started = ask(session, conversation, question);
    answer(session, &started, reply);
    started
}

/// The texts of the active branch.
pub fn branch(session: &Session, id: &str) -> Vec<String> {
    session.branch(id).unwrap().messages.into_iter().map(|message| message.row.text).collect()
}

/// Whether `needle` stands in any file below `folder`.
pub fn found_in(folder: &Path, needle: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(found_in(&path, needle));
            continue;
        }
        let bytes = match std::fs::read(&path) {
            // a database's log goes with its last connection
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            bytes => bytes.unwrap(),
        };
        if bytes.windows(needle.len()).any(|at| at.eq_ignore_ascii_case(needle)) {
            found.push(path.display().to_string());
        }
    }
    found
}

pub const MARKER: &str = "xylophonequartz";
