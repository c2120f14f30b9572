//! Where nothing can be written the history is read: on a full disk, with and without a WAL, and with an older schema.
#![allow(clippy::unwrap_used)] // a test
#![cfg(unix)]

use crate::common;

use std::path::Path;
use std::process::Command;

use crate::common::{Folder, clock, say};
use io::RealIo;
use rusqlite::Connection;
use session::Session;

/// Set in the process that cannot write: the data folder to read.
const READ: &str = "INGLENOOK_TEST_READ";

/// Not a test by itself: `in_a_process_that_cannot_write` runs it.
#[test]
fn read() {
    if let Some(folder) = std::env::var_os(READ) {
        check_readable(Path::new(&folder));
    }
}

fn check_readable(folder: &Path) {
    let (mut session, notices) = Session::open(folder, &RealIo, clock()).unwrap();
    let codes: Vec<_> = notices.iter().map(|notice| notice.code()).collect();
    assert_eq!(codes, ["session.read_only"]);
    assert!(session.is_read_only());
    let list = session.conversations().unwrap();
    assert_eq!(list.len(), 3);
    assert_eq!(common::branch(&session, &list[0].id).len(), 2);
    assert_eq!(session.search("straße", 9).unwrap().len(), 3);
    assert_eq!(session.backup_due(&RealIo).unwrap(), None);
    let error = session.rename(&list[0].id, "Another").unwrap_err();
    assert_eq!(error.code(), "session.file", "nothing is said to be saved that is not");
}

/// Files may be made, but hold nothing: as on a disk without a free block.
fn in_a_process_that_cannot_write(folder: &Path) {
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" --exact no_writing::read --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .env(READ, folder)
        .stdout(std::process::Stdio::piped())
        .output()
        .unwrap();
    let shown = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{shown:?}");
}

fn three_chats(folder: &Folder) {
    let mut session = folder.session();
    for n in 0..3 {
        say(&mut session, None, &format!("Strasse {n}"), "An answer");
    }
}

#[test]
fn a_full_disk_leaves_the_history_readable() {
    let folder = Folder::new("full-read");
    three_chats(&folder);
    in_a_process_that_cannot_write(&folder.0);
}

#[test]
fn what_is_only_in_the_wal_is_read_too() {
    let (folder, crashed) = (Folder::new("full-wal"), Folder::new("full-wal-crashed"));
    let mut session = folder.session();
    for n in 0..3 {
        say(&mut session, None, &format!("Strasse {n}"), "An answer");
    }
    std::fs::create_dir_all(&crashed.0).unwrap();
    for name in ["inglenook.db", "inglenook.db-wal"] {
        std::fs::copy(folder.0.join(name), crashed.0.join(name)).unwrap();
    }
    assert!(std::fs::metadata(crashed.0.join("inglenook.db-wal")).unwrap().len() > 0);
    in_a_process_that_cannot_write(&crashed.0);
}

#[test]
fn an_older_schema_is_read_too() {
    let folder = Folder::new("full-older");
    three_chats(&folder);
    let db = Connection::open(folder.0.join("inglenook.db")).unwrap();
    db.execute_batch(
        "DROP TABLE search;
         CREATE VIRTUAL TABLE search USING fts5(text, tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2 3');
         INSERT INTO search(rowid, text) SELECT position, text FROM message;
         PRAGMA user_version = 13;",
    )
    .unwrap();
    drop(db);
    in_a_process_that_cannot_write(&folder.0);
}
