//! Notes: kept, changed, removed, brought back by a backup, and brought to older files.
#![allow(clippy::unwrap_used)] // a test

use crate::common::Folder;
use io::RealIo;
use rusqlite::Connection;
use session::Session;

fn texts(session: &Session) -> Vec<String> {
    session.notes().unwrap().into_iter().map(|row| row.text).collect()
}

#[test]
fn notes_are_kept_changed_and_removed() {
    let folder = Folder::new("notes-kept");
    let mut session = folder.session();
    let first = session.put_note(None, "Uses metric units.", None).unwrap();
    let second = session.put_note(None, "Lives in Kiel.", Some("c1")).unwrap();
    assert_eq!(second.source.as_deref(), Some("c1"));
    let changed = session.put_note(Some(&first.id), "Uses SI units.", Some("ignored")).unwrap();
    assert_eq!((changed.created_ms, changed.source), (first.created_ms, None));
    drop(session);
    let mut session = folder.session();
    assert_eq!(texts(&session), ["Uses SI units.", "Lives in Kiel."], "in the order in which they came");
    session.remove_note(&first.id).unwrap();
    assert_eq!(texts(&session), ["Lives in Kiel."]);
    assert_eq!(session.remove_note(&first.id).unwrap_err().code(), "session.not_found");
    assert_eq!(session.put_note(Some(&first.id), "x", None).unwrap_err().code(), "session.not_found");
}

#[test]
fn a_backup_brings_notes_back() {
    let folder = Folder::new("notes-backup");
    let mut session = folder.session();
    let kept = session.put_note(None, "Kept.", None).unwrap();
    let gone = session.put_note(None, "Gone.", None).unwrap();
    let backup = folder.0.join("backup.db");
    session.back_up_to(&backup, &RealIo).unwrap();
    session.put_note(Some(&kept.id), "Newer.", None).unwrap();
    session.remove_note(&gone.id).unwrap();
    session.restore_from(&backup, &RealIo).unwrap();
    assert_eq!(texts(&session), ["Newer.", "Gone."], "what is here stays");
}

#[test]
fn a_file_of_before_gets_notes() {
    let folder = Folder::new("notes-before");
    drop(folder.session());
    let old = Connection::open(folder.0.join("inglenook.db")).unwrap();
    old.execute_batch("DROP TABLE note; PRAGMA user_version = 16;").unwrap();
    drop(old);
    let (mut session, notices) = folder.open();
    assert_eq!((notices.len(), texts(&session).len()), (0, 0));
    session.put_note(None, "New.", None).unwrap();
    assert_eq!(texts(&session), ["New."]);
}
