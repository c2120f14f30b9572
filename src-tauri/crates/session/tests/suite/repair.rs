//! Damage that shows where rows are used: it costs itself, is repaired without a restart, and nothing runs without end.
#![allow(clippy::unwrap_used)] // a test

use crate::common::{Folder, answer, ask, branch, clock, say};
use io::{RealIo, take_damage_report};
use rusqlite::Connection;
use session::{NewTurn, Session};

fn change(folder: &Folder, sql: &str) {
    Connection::open(folder.0.join("inglenook.db")).unwrap().execute_batch(sql).unwrap();
}

/// Changes the page where a table or an index begins.
fn change_root(folder: &Folder, name: &str, change: impl Fn(&mut [u8])) {
    let path = folder.0.join("inglenook.db");
    let db = Connection::open(&path).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let root: u32 = db.query_row(sql, [name], |row| row.get(0)).unwrap();
    let root = root as usize;
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(db);
    let mut bytes = std::fs::read(&path).unwrap();
    change(&mut bytes[(root - 1) * 4096..root * 4096]);
    std::fs::write(&path, bytes).unwrap();
}

/// Chats with their texts.
fn chats(session: &Session) -> session::Result<Vec<Vec<String>>> {
    Ok(session.conversations()?.iter().map(|row| branch(session, &row.id)).collect())
}

#[test]
fn an_index_that_does_not_fit_its_table_is_rebuilt_while_running() {
    let folder = Folder::new("repair-index");
    let mut session = folder.session();
    for n in 0..3 {
        say(&mut session, None, &format!("Q{n}"), &format!("A{n}"));
    }
    let expected = chats(&session).unwrap();
    assert_eq!(session.repair(&RealIo).unwrap(), None, "it is whole");
    drop(session);
    change_root(&folder, "conversation_activity", |page| {
        // The last entry ends with the number of the row that it leads to.
        let n_entries = usize::from(page[4]);
        let entry = usize::from(u16::from_be_bytes([page[6 + 2 * n_entries], page[7 + 2 * n_entries]]));
        page[entry + usize::from(page[entry])] = 99;
    });
    let mut session = folder.session();
    take_damage_report();
    assert_eq!(chats(&session).unwrap_err().code(), "session.damaged");
    assert!(take_damage_report() && !take_damage_report());
    let notice = session.repair(&RealIo).unwrap().unwrap();
    assert_eq!(notice.code(), "session.index_rebuilt");
    assert_eq!(chats(&session).unwrap(), expected);
}

#[test]
fn a_damaged_index_is_replaced_while_an_answer_is_written() {
    let folder = Folder::new("repair-table");
    let mut session = folder.session();
    let first = say(&mut session, None, "Q", "A");
    drop(session);
    change_root(&folder, "conversation_activity", |page| page.fill(0xA5));
    let mut session = folder.session();
    // Starting one reads the damaged index too: it is written as by an earlier page.
    let second = session.start(NewTurn::Retry { conversation: &first.conversation }, "starter");
    assert_eq!(second.unwrap_err().code(), "session.damaged");
    let notice = session.repair(&RealIo).unwrap().unwrap();
    assert_eq!(notice.code(), "session.damaged");
    assert!(notice.to_string().contains("1 chats were recovered"), "{notice}");
    assert_eq!(chats(&session).unwrap(), [["Q", "A"]]);

    let turn = ask(&mut session, Some(&first.conversation), "And?");
    change_root(&folder, "note", |page| page.fill(0xA5));
    let notice = session.repair(&RealIo).unwrap();
    assert_eq!(notice.map(|notice| notice.code()), Some("session.damaged"));
    assert_eq!(session.active_turn(&first.conversation).unwrap(), Some(turn.turn.clone()));
    answer(&mut session, &turn, "So.");
    assert_eq!(chats(&session).unwrap(), [["Q", "A", "And?", "So."]]);
    drop(session);
    folder.session();
}

#[test]
fn a_file_that_another_process_uses_is_not_replaced() {
    let folder = Folder::new("repair-other");
    say(&mut folder.session(), None, "Q", "A");
    change_root(&folder, "conversation_activity", |page| page.fill(0xA5));
    let (mut session, other) = (folder.session(), folder.session());
    let error = session.repair(&RealIo).unwrap_err();
    assert!(error.code() == "session.damaged" && error.remedy().contains("Quit"), "{error:?}");
    drop(other);
    assert!(session.repair(&RealIo).unwrap().is_some());
}

#[test]
fn messages_that_are_their_own_ancestors_end() {
    let folder = Folder::new("circle");
    let mut session = folder.session();
    let first = say(&mut session, None, "Q1", "A1");
    let second = say(&mut session, Some(&first.conversation), "Q2", "A2");
    let other = say(&mut session, None, "Other", "Chat");
    drop(session);
    let circle =
        format!("UPDATE message SET parent = '{}' WHERE id = '{}'", second.user_message, first.user_message);
    change(&folder, &circle);
    let mut session = folder.session();
    assert_eq!(branch(&session, &first.conversation), ["Q1", "A1", "Q2", "A2"]);
    session.activate_branch(&first.user_message).unwrap();
    session.fork(&second.assistant_message, "Copy").unwrap();
    session.remove_message(&first.user_message).unwrap();
    session.restore_message(&first.user_message).unwrap();
    session.purge(&[first.conversation], &RealIo).unwrap();
    assert_eq!(branch(&session, &other.conversation), ["Other", "Chat"]);
}

#[test]
fn internal_values_without_valid_text_fail_nothing() {
    for key in ["internal.identity", "internal.schema", "internal.traces"] {
        let folder = Folder::new("internal");
        let mut session = folder.session();
        let id = say(&mut session, None, "Q", "A").conversation;
        drop(session);
        let sql = format!("INSERT OR REPLACE INTO setting VALUES ('{key}', CAST(x'ff00fe' AS TEXT))");
        change(&folder, &sql);
        let (session, notices) = Session::open(&folder.0, &RealIo, clock()).unwrap();
        assert_eq!(
            (notices, branch(&session, &id)),
            (Vec::new(), vec!["Q".to_owned(), "A".to_owned()]),
            "{key}"
        );
    }
}
