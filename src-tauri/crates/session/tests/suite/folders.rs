//! Nested folders: where they may be moved, what remains when one is removed, and migration of older files.
#![allow(clippy::unwrap_used)] // a test

use crate::common::{Folder, branch, say};
use rusqlite::Connection;
use session::{FolderRow, MAX_FOLDER_LEVELS, Session, table};

/// Each with the name of the folder it lies in.
fn lying(session: &Session) -> Vec<(String, Option<String>)> {
    let rows = session.folders().unwrap();
    let name = |id: &str| rows.iter().find(|row| row.id == id).unwrap().name.clone();
    rows.iter().map(|row| (row.name.clone(), row.parent.as_deref().map(name))).collect()
}

fn pairs(expected: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
    expected.iter().map(|(name, parent)| ((*name).to_owned(), parent.map(str::to_owned))).collect()
}

/// This many nested folders, outermost first.
fn chain(session: &mut Session, name: &str, n: usize) -> Vec<FolderRow> {
    let mut rows: Vec<FolderRow> = Vec::new();
    for at in 0..n {
        let parent = rows.last().map(|row| row.id.clone());
        rows.push(session.add_folder(&format!("{name}{at}"), parent.as_deref()).unwrap());
    }
    rows
}

#[test]
fn folders_lie_in_folders_and_come_out_again() {
    let folder = Folder::new("nested");
    let mut session = folder.session();
    let work = session.add_folder("work", None).unwrap();
    let inner = session.add_folder("inner", Some(&work.id)).unwrap();
    let loose = session.add_folder("loose", None).unwrap();
    assert_eq!(lying(&session), pairs(&[("inner", Some("work")), ("loose", None), ("work", None)]));
    session.move_folder(&loose.id, Some(&inner.id)).unwrap();
    let renamed = session.rename_folder(&loose.id, "deep").unwrap();
    assert_eq!(renamed.parent, Some(inner.id.clone()), "a new name moves nothing");
    drop(session);
    let mut session = folder.session();
    assert_eq!(lying(&session), pairs(&[("deep", Some("inner")), ("inner", Some("work")), ("work", None)]));
    session.move_folder(&inner.id, None).unwrap();
    assert_eq!(lying(&session), pairs(&[("deep", Some("inner")), ("inner", None), ("work", None)]));
    assert_eq!(session.add_folder("x", Some("none")).unwrap_err().code(), "session.not_found");
    assert_eq!(session.move_folder("none", None).unwrap_err().code(), "session.not_found");
}

#[test]
fn nothing_lies_in_itself_and_nothing_too_deep() {
    let folder = Folder::new("ring");
    let mut session = folder.session();
    let rows = chain(&mut session, "a", MAX_FOLDER_LEVELS);
    let before = lying(&session);
    for inside in &rows {
        let error = session.move_folder(&rows[0].id, Some(&inside.id)).unwrap_err();
        assert_eq!(error.code(), "session.folder_in_itself", "{error}");
    }
    let last = rows.last().unwrap();
    assert_eq!(session.add_folder("x", Some(&last.id)).unwrap_err().code(), "session.folder_too_deep");
    assert_eq!(lying(&session), before);
    // what a folder holds comes along, and counts
    let pair = chain(&mut session, "b", 2);
    let at = |levels: usize| rows[levels - 1].id.clone();
    let error = session.move_folder(&pair[0].id, Some(&at(MAX_FOLDER_LEVELS - 1))).unwrap_err();
    assert_eq!(error.code(), "session.folder_too_deep", "{error}");
    session.move_folder(&pair[0].id, Some(&at(MAX_FOLDER_LEVELS - 2))).unwrap();
}

#[test]
fn what_a_folder_held_lies_where_it_lay() {
    let folder = Folder::new("emptied");
    let mut session = folder.session();
    let rows = chain(&mut session, "a", 3);
    let first = say(&mut session, None, "Q", "A");
    session.move_to(&first.conversation, Some(&rows[1].id)).unwrap();
    let emptied = session.remove_folder(&rows[1].id).unwrap();
    assert_eq!(emptied.conversations[0].folder, Some(rows[0].id.clone()));
    assert_eq!(
        (emptied.folders[0].id.as_str(), &emptied.folders[0].parent),
        (&*rows[2].id, &Some(rows[0].id.clone()))
    );
    let emptied = session.remove_folder(&rows[0].id).unwrap();
    assert_eq!(
        (emptied.conversations[0].folder.as_deref(), emptied.folders[0].parent.as_deref()),
        (None, None)
    );
    assert_eq!(lying(&session), pairs(&[("a2", None)]));
    assert_eq!(branch(&session, &first.conversation), ["Q", "A"]);
}

/// As the version before folders in folders left it.
const BEFORE: &[&str] = &[
    table::conversation::CREATE,
    table::message::CREATE,
    table::chunk::CREATE,
    table::token_log::CREATE,
    table::turn::CREATE,
    table::setting::CREATE,
    table::model::CREATE,
    table::message::ADD_TOOL_CALLS,
    table::compaction::CREATE,
    table::compaction_strategy::CREATE,
    table::folder::CREATE,
    table::conversation::ADD_TREE,
    table::message::ADD_TREE,
    table::chunk::ADD_IDS,
    table::token_log::ADD_WHOLE,
    table::search::CREATE,
    table::checkpoint::CREATE,
    table::preset::CREATE,
    table::download::CREATE,
    table::connection::CREATE,
    table::endpoint::CREATE,
    table::model::ADD_LIBRARY,
    table::model_folder::CREATE,
    table::model_run::CREATE,
    table::tool_server::CREATE,
    table::document::CREATE,
    table::attachment::CREATE,
    table::attachment::ADD_TOKENS,
    "INSERT INTO folder (id, name, created_ms) VALUES ('f', 'Old', 1), ('g', 'Other', 2);
     INSERT INTO conversation (id, title, model, leaf, activity, created_ms, updated_ms, folder)
         VALUES ('c', 'Kept', 'm', 'q', 1, 1, 1, 'f');
     INSERT INTO message (position, id, conversation, role, text, reasoning, state, created_ms)
         VALUES (1, 'q', 'c', 'user', 'From long ago', '', 'complete', 1);
     INSERT INTO model (id, name, path, bytes, architecture, parameters, dtype, context_length, added_ms)
         VALUES ('m', 'Mine', '/m.gguf', 1, 'llama', 1, 'Q8_0', 64, 1);
     PRAGMA user_version = 12;",
];

#[test]
fn a_file_of_before_keeps_its_folders_and_what_lies_in_them() {
    let folder = Folder::new("folders-before");
    std::fs::create_dir_all(&folder.0).unwrap();
    let old = Connection::open(folder.0.join("inglenook.db")).unwrap();
    BEFORE.iter().for_each(|sql| old.execute_batch(sql).unwrap());
    drop(old);
    let mut session = folder.session();
    assert_eq!(lying(&session), pairs(&[("Old", None), ("Other", None)]));
    assert_eq!(session.conversation("c").unwrap().folder.as_deref(), Some("f"));
    assert_eq!(branch(&session, "c"), ["From long ago"]);
    let models = session.models().unwrap();
    assert_eq!((models[0].id.as_str(), &models[0].skills), ("m", &None), "not examined");
    session.move_folder("g", Some("f")).unwrap();
    drop(session);
    assert_eq!(lying(&folder.session()), pairs(&[("Old", None), ("Other", Some("Old"))]));
}

/// Two files that were put together may say of two folders that each lies in the other.
#[test]
fn a_ring_that_damage_left_is_broken() {
    let folder = Folder::new("folders-ring");
    let mut session = folder.session();
    let rows = chain(&mut session, "a", 2);
    let first = say(&mut session, None, "Q", "A");
    session.move_to(&first.conversation, Some(&rows[1].id)).unwrap();
    drop(session);
    let path = folder.0.join("inglenook.db");
    let db = Connection::open(&path).unwrap();
    db.execute("UPDATE folder SET parent = ?2 WHERE id = ?1", [&rows[0].id, &rows[1].id]).unwrap();
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE;").unwrap();
    let page_size: u32 = db.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
    let root: u32 = db
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'setting'", [], |row| row.get(0))
        .unwrap();
    drop(db);
    let (root, page_size) = (root as usize, page_size as usize);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(root - 1) * page_size..root * page_size].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    std::fs::write(folder.0.join("running/0000.lock"), b"").unwrap();
    let (session, notices) = folder.open();
    assert_eq!(notices[0].code(), "session.damaged");
    assert_eq!(lying(&session), pairs(&[("a0", None), ("a1", None)]));
    assert_eq!(session.conversation(&first.conversation).unwrap().folder, Some(rows[1].id.clone()));
}
