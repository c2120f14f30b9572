//! Faults of disk, clock and file: what was saved stays, what can't be is said, and one damage costs only itself.
#![allow(clippy::unwrap_used)] // a test

use std::time::Duration;

use crate::common::{Folder, ask, branch, clock, piece, say};
use io::{FaultDuration, FaultIo, ManualClock, RealIo};
use rusqlite::Connection;
use session::{MessageState, NewTurn, Session};

use crate::common;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn raw(folder: &Folder) -> Connection {
    Connection::open(folder.0.join("inglenook.db")).unwrap()
}

fn crash(folder: &Folder) {
    std::fs::write(folder.0.join("running/0000.lock"), b"").unwrap();
}

fn backups(folder: &Folder) -> Vec<String> {
    let entries =
        std::fs::read_dir(folder.0.join("backups")).map(Iterator::collect::<Vec<_>>).unwrap_or_default();
    let mut names: Vec<_> =
        entries.into_iter().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn backups_are_made_once_a_day_and_the_newest_stay() {
    let folder = Folder::new("rolling");
    let clock = clock();
    let (mut session, _) = Session::open(&folder.0, &RealIo, clock.clone()).unwrap();
    assert_eq!(session.backup_due(&RealIo).unwrap(), None, "there is nothing to keep");
    let id = say(&mut session, None, "Q", "A").conversation;
    for day in 0..7 {
        session.backup_due(&RealIo).unwrap().unwrap().make(&RealIo).unwrap();
        assert_eq!(session.backup_due(&RealIo).unwrap(), None, "day {day}");
        say(&mut session, Some(&id), "more", "of it");
        clock.advance(DAY);
    }
    assert_eq!(backups(&folder).len(), 4);
    let db = Connection::open(folder.0.join("backups").join(backups(&folder).last().unwrap())).unwrap();
    let n: i64 = db.query_row("SELECT COUNT(*) FROM message", [], |row| row.get(0)).unwrap();
    assert_eq!(n, 2 + 6 * 2);
    // A clock that went back a year makes one, not one after the other.
    let back = std::sync::Arc::new(ManualClock::new(1_728_000_000_000));
    drop(session);
    let (session, _) = Session::open(&folder.0, &RealIo, back).unwrap();
    let due = session.backup_due(&RealIo).unwrap();
    assert!(due.is_some());
}

#[test]
fn a_backup_that_fails_half_way_leaves_nothing() {
    let folder = Folder::new("half-backup");
    let mut session = folder.session();
    say(&mut session, None, "Q", "A");
    let due = session.backup_due(&RealIo).unwrap().unwrap();
    let io = FaultIo::new(RealIo);
    for index in 0.. {
        io.fail_at(index, FaultDuration::Once, std::io::ErrorKind::StorageFull);
        match due.make(&io) {
            Err(error) => assert_eq!(error.code(), "io.no_space"),
            Ok(_) if io.count() <= index => break,
            Ok(_) => {}
        }
        let halves = backups(&folder).into_iter().filter(|name| name.contains(".half")).count();
        // The failure may have been that of tidying up; the next start does it.
        assert!(halves <= 1, "operation {index}");
        for name in backups(&folder) {
            std::fs::remove_file(folder.0.join("backups").join(name)).unwrap();
        }
    }
    std::fs::write(folder.0.join("backups/inglenook-1.db.half"), b"x").unwrap();
    std::fs::create_dir(folder.0.join("audit")).unwrap();
    let half_written =
        [".api_keys.json.17-3.tmp", "audit/.head.json.17-4.tmp"].map(|name| folder.0.join(name));
    let whole = folder.0.join("audit/audit.lock");
    for path in half_written.iter().chain([&whole]) {
        std::fs::write(path, b"x").unwrap();
    }
    drop(session);
    drop(folder.session());
    assert_eq!(backups(&folder).len(), 1, "only the whole one: {:?}", backups(&folder));
    assert!(half_written.iter().all(|path| !path.exists()) && whole.exists());
}

#[test]
fn f35_what_the_damage_took_comes_from_the_newest_backup() {
    let folder = Folder::new("from-backup");
    let mut session = folder.session();
    let ids: Vec<_> = (0..30)
        .map(|n| say(&mut session, None, &format!("question {n}"), &"lorem ipsum ".repeat(80)).conversation)
        .collect();
    session.backup_due(&RealIo).unwrap().unwrap().make(&RealIo).unwrap();
    let newer = say(&mut session, None, "after the backup", "still there").conversation;
    drop(session);
    let path = folder.0.join("inglenook.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let n_pages = bytes.len() / 4096;
    // Not the newest pages, so that there is something that only the damaged file has.
    for page in n_pages * 2 / 5..n_pages / 2 {
        bytes[page * 4096..(page + 1) * 4096].fill(0xA5);
    }
    std::fs::write(&path, bytes).unwrap();
    crash(&folder);
    let (session, notices) = folder.open();
    assert_eq!(notices[0].code(), "session.damaged");
    assert_eq!(session.conversations().unwrap().len(), 31, "{notices:?}");
    for id in &ids {
        assert_eq!(branch(&session, id).len(), 2, "{id}");
    }
    assert_eq!(session.search("question", 50).unwrap().len(), 30);
    assert_eq!(branch(&session, &newer), ["after the backup", "still there"]);
}

#[test]
fn a_file_that_is_none_any_more_is_replaced_by_the_newest_backup() {
    let folder = Folder::new("all-from-backup");
    let mut session = folder.session();
    let id = say(&mut session, None, "Q", "A").conversation;
    session.backup_due(&RealIo).unwrap().unwrap().make(&RealIo).unwrap();
    drop(session);
    std::fs::write(folder.0.join("inglenook.db"), [0; 64_560]).unwrap();
    let (session, notices) = folder.open();
    assert!(notices[0].to_string().contains("backup"), "{notices:?}");
    assert_eq!(branch(&session, &id), ["Q", "A"]);
}

#[test]
fn f36_the_log_of_the_last_writes_may_vanish() {
    let folder = Folder::new("wal");
    let mut session = folder.session();
    let id = say(&mut session, None, "Q", "A").conversation;
    drop(session);
    // A program that was killed leaves its log; somebody tidies it away.
    let mut session = folder.session();
    say(&mut session, Some(&id), "Q2", "A2");
    let copy = Folder::new("wal-copy");
    std::fs::create_dir_all(copy.0.join("running")).unwrap();
    std::fs::copy(folder.0.join("inglenook.db"), copy.0.join("inglenook.db")).unwrap();
    crash(&copy);
    drop(session);
    let (session, notices) = copy.open();
    assert_eq!(notices, []);
    assert_eq!(branch(&session, &id), ["Q", "A"], "what was in the file itself is there");
}

#[test]
fn f36_a_log_of_another_database_changes_nothing() {
    let (folder, other) = (Folder::new("wal-own"), Folder::new("wal-foreign"));
    let mut session = folder.session();
    let id = say(&mut session, None, "Q", "A").conversation;
    drop(session);
    let mut foreign = other.session();
    say(&mut foreign, None, "not ours", "at all");
    for suffix in ["-wal", "-shm"] {
        let name = format!("inglenook.db{suffix}");
        std::fs::copy(other.0.join(&name), folder.0.join(&name)).unwrap();
    }
    crash(&folder);
    let (session, notices) = folder.open();
    let codes: Vec<_> = notices.iter().map(|notice| notice.code()).collect();
    assert_eq!(codes, ["session.foreign_log"], "{notices:?}");
    assert_eq!(branch(&session, &id), ["Q", "A"]);
    let entries = std::fs::read_dir(&folder.0).unwrap();
    let names: Vec<_> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().any(|name| name.contains(".foreign-") && name.ends_with("-wal")), "{names:?}");
}

#[test]
fn f39_a_database_that_another_program_holds_is_waited_for_and_then_named() {
    let folder = Folder::new("held");
    let mut session = folder.session();
    let id = say(&mut session, None, "Q", "A").conversation;
    let other = raw(&folder);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = std::time::Instant::now();
    let error = session.rename(&id, "Waited").unwrap_err();
    assert_eq!(error.code(), "session.busy");
    assert!(error.remedy().contains("backup programs"), "{}", error.remedy());
    let waited = began.elapsed();
    assert!((Duration::from_secs(4)..Duration::from_secs(15)).contains(&waited), "{waited:?}");
    other.execute_batch("COMMIT").unwrap();
    session.rename(&id, "Waited").unwrap();
    // Held for a moment only: the write waits and succeeds.
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let release = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        other.execute_batch("COMMIT").unwrap();
    });
    session.rename(&id, "At once").unwrap();
    release.join().unwrap();
}

#[test]
fn f44_a_hundred_thousand_chats_open_within_a_second() {
    let folder = Folder::new("many");
    let mut session = folder.session();
    let long = "lorem ipsum ".repeat(4 << 20);
    let first = say(&mut session, None, "long", &long).conversation;
    drop(session);
    let mut db = raw(&folder);
    let transaction = db.transaction().unwrap();
    {
        let mut chat = transaction
            .prepare(
                "INSERT INTO conversation (id, title, model, leaf, activity, created_ms, updated_ms)
                 VALUES (?1, ?2, 'm', NULL, ?3, ?3, ?3)",
            )
            .unwrap();
        for n in 0..100_000 {
            chat.execute((format!("c{n:06}"), format!("Chat {n}"), n)).unwrap();
        }
    }
    transaction.commit().unwrap();
    drop(db);
    let began = std::time::Instant::now();
    let session = folder.session();
    assert_eq!(session.conversations().unwrap().len(), 100_001);
    let opened = began.elapsed();
    assert!(opened < Duration::from_secs(if cfg!(debug_assertions) { 4 } else { 1 }), "{opened:?}");
    assert_eq!(branch(&session, &first)[1].len(), long.len(), "a message of 50 MB is whole");
}

#[test]
fn a_damaged_index_is_made_again() {
    let folder = Folder::new("index");
    let mut session = folder.session();
    let id = say(&mut session, None, "findable words", "A").conversation;
    drop(session);
    raw(&folder).execute("UPDATE search_data SET block = zeroblob(40) WHERE id > 10", []).unwrap();
    crash(&folder);
    let (session, notices) = folder.open();
    assert_eq!(notices, [], "an index is no loss");
    assert_eq!(session.search("findable", 9).unwrap().len(), 1);
    assert_eq!(branch(&session, &id).len(), 2);
}

#[test]
fn f41_a_migration_that_fails_leaves_the_file_as_it_was() {
    let folder = Folder::new("migration");
    drop(folder.session());
    let path = folder.0.join("inglenook.db");
    std::fs::remove_file(&path).unwrap();
    let old = Connection::open(&path).unwrap();
    // As the first version made it, and something in the way of the newest.
    for sql in [
        session::table::conversation::CREATE,
        session::table::message::CREATE,
        session::table::chunk::CREATE,
        session::table::token_log::CREATE,
        session::table::turn::CREATE,
        session::table::setting::CREATE,
        session::table::model::CREATE,
        "INSERT INTO conversation VALUES ('c', 'Old', 'm', 'a', 1, 1, 1, NULL);
         INSERT INTO message VALUES (1, 'a', 'c', NULL, 'user', 'From long ago', '', 'complete', NULL, NULL, NULL, 1);
         CREATE TABLE folder (mine TEXT);
         PRAGMA user_version = 1;",
    ] {
        old.execute_batch(sql).unwrap();
    }
    drop(old);
    let error = Session::open(&folder.0, &RealIo, clock()).err().unwrap();
    assert_eq!(error.code(), "session.migration");
    let db = raw(&folder);
    let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 1);
    assert!(db.prepare("SELECT tool_calls FROM message").is_err(), "nothing of it is left");
    assert_eq!(backups(&folder).len(), 1, "and a copy was made before");
    db.execute_batch("DROP TABLE folder").unwrap();
    drop(db);
    let (session, notices) = folder.open();
    assert_eq!(notices, []);
    assert_eq!(branch(&session, "c"), ["From long ago"]);
    assert_eq!(session.search("long ago", 9).unwrap().len(), 1, "old messages are found too");
}

#[test]
fn f38_a_full_disk_says_so_and_loses_nothing_that_was_saved() {
    let folder = Folder::new("full");
    let mut session = folder.session();
    let first = say(&mut session, None, "Q", "A");
    session.set_disk_full(true).unwrap();
    let long = "too much ".repeat(5000);
    let new = NewTurn::Message {
        conversation: Some(&first.conversation),
        title: "",
        text: &long,
        attachments: None,
    };
    assert_eq!(session.start(new, "m").unwrap_err().code(), "session.disk_full");
    assert_eq!(branch(&session, &first.conversation), ["Q", "A"], "half a turn is none");
    session.set_disk_full(false).unwrap();
    let started = ask(&mut session, Some(&first.conversation), "again");
    session.set_disk_full(true).unwrap();
    assert_eq!(
        session.append(&started.assistant_message, &piece(&long, "")).unwrap_err().code(),
        "session.disk_full"
    );
    session.set_disk_full(false).unwrap();
    session.append(&started.assistant_message, &piece("there is space", "")).unwrap();
    assert_eq!(branch(&session, &first.conversation)[3], "there is space");
}

#[test]
fn f54_a_clock_that_goes_back_keeps_the_order() {
    let folder = Folder::new("clock");
    let mut session = folder.session();
    let old = say(&mut session, None, "old", "A").conversation;
    drop(session);
    let back = std::sync::Arc::new(ManualClock::new(1_000));
    let (mut session, notices) = Session::open(&folder.0, &RealIo, back).unwrap();
    assert_eq!(notices, []);
    let new = say(&mut session, None, "new", "A").conversation;
    let second = session.start(NewTurn::Retry { conversation: &old }, "m").unwrap();
    common::answer(&mut session, &second, "B");
    let ids: Vec<_> = session.conversations().unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(ids, [old.clone(), new]);
    let versions: Vec<_> = session.branch(&old).unwrap().messages.iter().map(|it| it.version).collect();
    assert_eq!(versions, [1, 2], "the later one is the second, whatever its date");
    session.delete(&old).unwrap();
    drop(session);
    // Deleted in 1970 by that clock: what is younger than a month by this one's reckoning is not, and goes.
    let (session, _) = folder.open();
    assert_eq!(session.conversations().unwrap().len(), 1);
}

#[test]
fn f37_one_damaged_row_costs_one_row_wherever_it_is() {
    let folder = Folder::new("rows");
    let mut session = folder.session();
    let first = say(&mut session, None, "one", "two");
    say(&mut session, Some(&first.conversation), "three", "four");
    let other = say(&mut session, None, "other", "fine").conversation;
    let streaming = ask(&mut session, Some(&other), "go on");
    session.append(&streaming.assistant_message, &piece("begin", "")).unwrap();
    session.append(&streaming.assistant_message, &piece(" end", "")).unwrap();
    drop(session);
    let db = raw(&folder);
    db.execute(
        "UPDATE message SET text = CAST(x'ff' AS TEXT), stats = CAST(x'ff' AS TEXT) WHERE text = 'two'",
        [],
    )
    .unwrap();
    db.execute("UPDATE conversation SET title = CAST(x'ff' AS TEXT) WHERE id = ?1", [&first.conversation])
        .unwrap();
    db.execute("UPDATE token_log SET ids = x'010203'", []).unwrap();
    db.execute("UPDATE chunk SET text = CAST(x'ff' AS TEXT) WHERE n = 1", []).unwrap();
    drop(db);
    let (session, _) = folder.open();
    let texts = branch(&session, &first.conversation);
    assert_eq!((texts[0].as_str(), texts[2].as_str(), texts[3].as_str()), ("one", "three", "four"));
    assert_eq!(session.conversations().unwrap().len(), 2);
    let rest = session.branch(&other).unwrap().messages.swap_remove(3).row;
    assert_eq!((rest.state, rest.text.trim()), (MessageState::Interrupted, "end"));
}
