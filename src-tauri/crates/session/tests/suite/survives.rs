//! Conversations over a real database: what was acknowledged is there after any end, and damage takes
//! nothing with it but itself.
#![allow(clippy::unwrap_used)] // a test

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::{Folder, answer, ask, clock, piece};
use io::{Io, RealIo};
use session::{MessageState, ModelRow, NewTurn, Role, Session};

fn texts(session: &Session, id: &str) -> Vec<(Role, String, MessageState)> {
    let branch = session.branch(id).unwrap();
    branch
        .messages
        .into_iter()
        .map(|message| (message.row.role, message.row.text, message.row.state))
        .collect()
}

#[test]
fn a_conversation_is_found_again() {
    let folder = Folder::new("again");
    let mut session = folder.session();
    let first = ask(&mut session, None, "Hello\0 — 🦊");
    session.append(&first.assistant_message, &piece("Good ", "hm")).unwrap();
    session.append(&first.assistant_message, &piece("day", "")).unwrap();
    assert_eq!(session.active_turn(&first.conversation).unwrap(), Some(first.turn.clone()));
    assert_eq!(texts(&session, &first.conversation)[1].1, "Good day");
    answer(&mut session, &first, "Good day!");
    let second = ask(&mut session, Some(&first.conversation), "And?");
    answer(&mut session, &second, "Nothing.");
    drop(session);

    let session = folder.session();
    assert_eq!(session.conversations().unwrap().len(), 1);
    assert_eq!(session.active_turn(&first.conversation).unwrap(), None);
    let branch = session.branch(&first.conversation).unwrap();
    let texts: Vec<_> = branch.messages.iter().map(|message| message.row.text.as_str()).collect();
    assert_eq!(texts, ["Hello\0 — 🦊", "Good day!", "And?", "Nothing."]);
    assert_eq!(branch.messages[1].logs[0].text_ids, [1, 2, u32::MAX]);
    assert_eq!(branch.messages[1].logs[0].all_ids, [0, 1, 2, u32::MAX]);
    assert_eq!(branch.messages[2].row.parent.as_deref(), Some(first.assistant_message.as_str()));
}

#[test]
fn the_answer_of_a_dead_writer_is_interrupted_and_a_living_one_is_left_alone() {
    let folder = Folder::new("dead");
    let mut writer = folder.session();
    let started = ask(&mut writer, None, "Tell me");
    writer.append(&started.assistant_message, &piece("Once upon", "")).unwrap();

    // A second process, while the first one writes.
    let mut other = folder.session();
    assert_eq!(texts(&other, &started.conversation)[1].2, MessageState::Streaming);
    assert_eq!(other.active_turn(&started.conversation).unwrap(), None, "not its own to watch");
    let refused = other.start(NewTurn::Retry { conversation: &started.conversation }, "starter");
    assert_eq!(refused.unwrap_err().code(), "session.answering");

    // The first one dies: its lock goes, its rows stay.
    drop(writer);
    assert_eq!(other.interrupt_orphaned_answers().unwrap(), std::slice::from_ref(&started.conversation));
    let expected = (Role::Assistant, "Once upon".to_owned(), MessageState::Interrupted);
    assert_eq!(texts(&other, &started.conversation)[1], expected);
    let logs = other.token_logs(&started.assistant_message).unwrap();
    assert_eq!((logs[0].fingerprint.as_str(), logs[0].all_ids.as_slice()), ("f", &[7, 8][..]));
    let again = other.start(NewTurn::Retry { conversation: &started.conversation }, "starter").unwrap();
    assert_eq!(again.user_message, started.user_message);
}

#[test]
fn versions_are_counted_under_their_parent() {
    let folder = Folder::new("versions");
    let mut session = folder.session();
    let first = ask(&mut session, None, "Q");
    answer(&mut session, &first, "A1");
    let second = session.start(NewTurn::Retry { conversation: &first.conversation }, "starter").unwrap();
    answer(&mut session, &second, "A2");
    let branch = session.branch(&first.conversation).unwrap();
    assert_eq!(branch.messages.len(), 2);
    assert_eq!((branch.messages[1].version, branch.messages[1].versions), (2, 2));
    assert_eq!(branch.messages[1].row.text, "A2");
    assert_eq!((branch.messages[0].version, branch.messages[0].versions), (1, 1));
}

#[test]
fn the_newest_comes_first_whatever_the_clock_says() {
    let folder = Folder::new("order");
    let clock = clock();
    let (mut session, _) = Session::open(&folder.0, &RealIo, clock.clone()).unwrap();
    let first = ask(&mut session, None, "one");
    let second = ask(&mut session, None, "two");
    answer(&mut session, &first, "x");
    let ids: Vec<_> = session.conversations().unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(ids, [first.conversation.clone(), second.conversation.clone()]);
    clock.advance(Duration::from_secs(1));
}

#[test]
fn the_trash_gives_back_and_is_emptied_in_the_end() {
    let folder = Folder::new("trash");
    let clock = clock();
    let (mut session, _) = Session::open(&folder.0, &RealIo, clock.clone()).unwrap();
    let started = ask(&mut session, None, "one");
    answer(&mut session, &started, "x");
    session.delete(&started.conversation).unwrap();
    assert_eq!(session.conversations().unwrap(), []);
    assert_eq!(session.branch(&started.conversation).unwrap_err().code(), "session.not_found");
    session.restore(&started.conversation).unwrap();
    assert_eq!(texts(&session, &started.conversation).len(), 2);
    session.delete(&started.conversation).unwrap();
    drop(session);
    clock.advance(Duration::from_secs(31 * 24 * 3600));
    let (mut session, _) = Session::open(&folder.0, &RealIo, clock).unwrap();
    assert_eq!(session.restore(&started.conversation).unwrap_err().code(), "session.not_found");
}

#[test]
fn settings_and_models_are_kept() {
    let folder = Folder::new("kept");
    let mut session = folder.session();
    let row = ModelRow {
        id: "m".into(),
        name: "M".into(),
        path: "/m.gguf".into(),
        bytes: 7,
        architecture: "llama".into(),
        parameters: 3,
        dtype: "Q8_0".into(),
        context_length: 2048,
        added_ms: 1,
        problem: Some("{}".into()),
        ..ModelRow::default()
    };
    session.put_model(&row).unwrap();
    session.set_setting("theme", "\"dark\"").unwrap();
    session.set_setting("theme", "\"light\"").unwrap();
    drop(session);
    let mut session = folder.session();
    assert_eq!(session.models().unwrap(), [row]);
    assert_eq!(session.setting("theme").unwrap().as_deref(), Some("\"light\""));
    session.reset_setting("theme").unwrap();
    assert_eq!(session.setting("theme").unwrap(), None);
    assert!(session.remove_model("m").unwrap());
    assert!(!session.remove_model("m").unwrap());
}

#[test]
fn f40_a_newer_database_is_read_and_not_touched() {
    let folder = Folder::new("newer");
    let mut session = folder.session();
    let started = ask(&mut session, None, "From the future");
    answer(&mut session, &started, "Hello");
    drop(session);
    let path = folder.0.join("inglenook.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "ALTER TABLE message ADD COLUMN mood TEXT;
         CREATE TABLE planet (id TEXT);
         PRAGMA user_version = 99;",
    )
    .unwrap();
    drop(db);
    let before = std::fs::read(&path).unwrap();
    let (mut session, notices) = Session::open(&folder.0, &RealIo, clock()).unwrap();
    assert_eq!(notices[0].code(), "session.newer_schema");
    assert!(notices[0].to_string().contains("99") && notices[0].remedy().contains("Update"), "{notices:?}");
    assert!(session.is_read_only());
    let read: Vec<String> =
        texts(&session, &started.conversation).into_iter().map(|(_, text, _)| text).collect();
    assert_eq!(read, ["From the future", "Hello"]);
    assert!(session.rename(&started.conversation, "Now").is_err(), "nothing is said to be saved that is not");
    drop(session);
    assert!(std::fs::read(&path).unwrap() == before, "the file is as it was");
}

/// Many conversations, so that the file has many pages.
fn fill(folder: &Folder, count: usize) {
    let mut session = folder.session();
    for n in 0..count {
        let started = ask(&mut session, None, &format!("question {n} {}", "lorem ipsum ".repeat(60)));
        answer(&mut session, &started, &"dolor sit amet ".repeat(60));
    }
}

fn damaged_files(folder: &Path) -> usize {
    let entries = RealIo.list(folder).unwrap();
    let named = |path: &&PathBuf| {
        path.extension().is_some_and(|e| {
            e.to_string_lossy().starts_with("damaged-") && !e.to_string_lossy().ends_with(['l', 'm'])
        })
    };
    entries.iter().filter(named).count()
}

/// After a crash the file is looked through: damage is found before it is used.
fn crash(folder: &Folder) {
    std::fs::write(folder.0.join("running/0000.lock"), b"").unwrap();
}

#[test]
fn what_can_be_read_of_a_damaged_database_is_carried_over() {
    let folder = Folder::new("damaged");
    fill(&folder, 40);
    let path = folder.0.join("inglenook.db");
    let mut bytes = std::fs::read(&path).unwrap();
    // One page in the middle.
    let page = bytes.len() / 4096 / 2;
    bytes[page * 4096..(page + 1) * 4096].fill(0xA5);
    std::fs::write(&path, bytes).unwrap();
    crash(&folder);

    let (mut session, notices) = folder.open();
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0].code(), "session.damaged");
    assert_eq!(damaged_files(&folder.0), 1);
    let list = session.conversations().unwrap();
    assert!(list.len() >= 30, "{} of 40 recovered", list.len());
    for row in &list {
        session.branch(&row.id).unwrap();
    }
    let started = ask(&mut session, Some(&list[0].id), "Still there?");
    answer(&mut session, &started, "Yes.");
    drop(session);
    folder.session();
}

#[test]
fn a_file_that_is_no_database_is_set_aside() {
    for (n, bytes) in
        [vec![0; 64_560], b"<html>".repeat(1000), b"SQLite format 3\0garbage".to_vec()].iter().enumerate()
    {
        let folder = Folder::new(&format!("nonsense{n}"));
        std::fs::create_dir_all(&folder.0).unwrap();
        std::fs::write(folder.0.join("inglenook.db"), bytes).unwrap();
        let (session, notices) = folder.open();
        assert_eq!(notices.len(), 1, "case {n}");
        assert_eq!(session.conversations().unwrap(), []);
        assert_eq!(damaged_files(&folder.0), 1);
    }
}

/// Rounds of random damage: `INGLENOOK_DAMAGE_ROUNDS`, or few.
fn damage_rounds() -> u64 {
    std::env::var("INGLENOOK_DAMAGE_ROUNDS").map_or(60, |rounds| rounds.parse().unwrap())
}

/// A round that takes longer hangs, even on a busy machine and without optimization.
const MAX_ROUND: Duration = Duration::from_secs(60);

/// Flips 8 bits and cuts every fifth file, as round `round` does.
fn damage(whole: &[u8], round: u64) -> Vec<u8> {
    let mut seed = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 7;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 20
    };
    let mut bytes = whole.to_vec();
    for _ in 0..8 {
        let at = next() as usize % bytes.len();
        bytes[at] ^= 1 << (next() % 8);
    }
    if round.is_multiple_of(5) {
        bytes.truncate(next() as usize % bytes.len());
    }
    bytes
}

/// Reads all there is and writes a message. Damage that shows here is repaired, and then nothing fails.
fn use_all(session: &mut Session) -> session::Result<usize> {
    let list = session.conversations()?;
    for row in &list {
        // One chat may be lost; it costs no other.
        match session.branch(&row.id) {
            Err(error) if error.code() == "session.damaged" => return Err(error),
            _ => {}
        }
    }
    match session.search("lorem", 5) {
        Err(error) if error.code() == "session.damaged" => return Err(error),
        _ => {}
    }
    if !session.is_read_only() {
        let new =
            NewTurn::Message { conversation: None, title: "New", text: "Still there?", attachments: None };
        session.start(new, "starter")?;
    }
    Ok(list.len())
}

#[test]
fn random_damage_never_panics_and_always_opens() {
    let folder = Folder::new("flips");
    fill(&folder, 12);
    let path = folder.0.join("inglenook.db");
    let whole = std::fs::read(&path).unwrap();
    let (mut n_damaged, mut n_repaired, mut n_chats) = (0, 0, 0);
    for round in 0..damage_rounds() {
        let _ = std::fs::remove_dir_all(&folder.0);
        std::fs::create_dir_all(folder.0.join("running")).unwrap();
        let bytes = damage(&whole, round);
        std::fs::write(&path, &bytes).unwrap();
        if round % 2 == 0 {
            crash(&folder);
        }
        let started = std::time::Instant::now();
        let kept = std::env::temp_dir().join("inglenook-damaged-round.db");
        std::fs::write(&kept, &bytes).unwrap();
        let case = format!("round {round}, kept as {}", kept.display());
        let (mut session, notices) =
            Session::open(&folder.0, &RealIo, clock()).unwrap_or_else(|error| panic!("{case}: {error}"));
        n_damaged += usize::from(!notices.is_empty());
        let n = use_all(&mut session).or_else(|_| {
            n_repaired += 1;
            session.repair(&RealIo).unwrap_or_else(|error| panic!("{case}: {error}"));
            use_all(&mut session)
        });
        n_chats += n.unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(started.elapsed() < MAX_ROUND, "{case}: {:?}", started.elapsed());
    }
    let rounds = damage_rounds();
    println!(
        "{rounds} rounds: {n_damaged} found at opening, {n_repaired} repaired later, {n_chats} of {} chats",
        rounds * 12
    );
    assert!(n_chats as u64 * 2 > rounds * 12, "most can be read: {n_chats}");
}

#[test]
fn one_damaged_row_costs_its_own_text() {
    let folder = Folder::new("row");
    let mut session = folder.session();
    let started = ask(&mut session, None, "Still here");
    answer(&mut session, &started, "Lost");
    drop(session);
    let db = rusqlite::Connection::open(folder.0.join("inglenook.db")).unwrap();
    let sql =
        "UPDATE message SET state = 'dancing', role = 'king', text = CAST(x'ff00fe' AS TEXT) WHERE id = ?1";
    db.execute(sql, [&started.assistant_message]).unwrap();
    drop(db);
    let session = folder.session();
    let texts = texts(&session, &started.conversation);
    assert_eq!(texts[0].1, "Still here");
    assert_eq!(texts[1].2, MessageState::Failed);
    assert!(texts[1].1.contains("can't be read"), "{texts:?}");
}
