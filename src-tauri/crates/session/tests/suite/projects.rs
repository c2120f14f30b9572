//! Projects: kept with their files, found from folders inside them, gone with their folder, and brought to older files.
#![allow(clippy::unwrap_used)] // a test

use crate::common::Folder;
use io::RealIo;
use rusqlite::Connection;
use session::{ProjectFileRow, Session};

fn file(session: &Session, folder: &str, text: &str) -> ProjectFileRow {
    ProjectFileRow {
        id: session.new_id(),
        folder: folder.into(),
        document: format!("sha of {text}"),
        name: "notes.txt".into(),
        kind: "text".into(),
        bytes: text.len() as i64,
        findings: None,
        created_ms: 1,
    }
}

#[test]
fn a_project_keeps_what_it_says_and_its_files() {
    let folder = Folder::new("project-kept");
    let mut session = folder.session();
    let work = session.add_folder("work", None).unwrap();
    let inner = session.add_folder("inner", Some(&work.id)).unwrap();
    let other = session.add_folder("other", None).unwrap();
    assert_eq!(session.project_around(&work.id).unwrap(), None);
    session.put_project(&work.id, "{}").unwrap();
    session.put_project(&work.id, r#"{"a":1}"#).unwrap();
    let row = file(&session, &work.id, "Whales were counted.");
    session.add_project_file(&[(row.clone(), "Whales were counted.")]).unwrap();
    session.put_search_index(&work.id, "words", b"index").unwrap();
    drop(session);

    let mut session = folder.session();
    for inside in [&work.id, &inner.id] {
        let found = session.project_around(inside).unwrap().unwrap();
        assert_eq!((found.folder.id.as_str(), found.body.as_str()), (work.id.as_str(), r#"{"a":1}"#));
    }
    assert_eq!(session.project_around(&other.id).unwrap(), None);
    assert_eq!(session.project_around("none").unwrap_err().code(), "session.not_found");
    assert_eq!(session.put_project("none", "{}").unwrap_err().code(), "session.not_found");
    assert_eq!(session.project_files(&work.id).unwrap(), std::slice::from_ref(&row));
    assert_eq!(session.document(&row.document).unwrap().as_deref(), Some("Whales were counted."));
    assert_eq!(session.search_index(&work.id, "words").unwrap().as_deref(), Some(&b"index"[..]));

    let second = file(&session, &work.id, "More.");
    session.add_project_file(&[(second.clone(), "More.")]).unwrap();
    assert_eq!(session.search_index(&work.id, "words").unwrap(), None, "made from other files");
    session.remove_project_file(&second.id).unwrap();
    assert_eq!(session.document(&second.document).unwrap(), None);
    assert_eq!(session.remove_project_file(&second.id).unwrap_err().code(), "session.not_found");
}

#[test]
fn a_project_goes_with_its_folder_or_alone() {
    let folder = Folder::new("project-gone");
    let mut session = folder.session();
    let [alone, with_folder] = ["alone", "with"].map(|name| session.add_folder(name, None).unwrap().id);
    for id in [&alone, &with_folder] {
        session.put_project(id, "{}").unwrap();
        let row = file(&session, id, id);
        session.add_project_file(&[(row.clone(), id)]).unwrap();
    }
    session.remove_project(&alone).unwrap();
    assert_eq!(session.document(&format!("sha of {alone}")).unwrap(), None);
    assert_eq!(session.project_folders().unwrap(), std::slice::from_ref(&with_folder));
    session.put_search_index(&alone, "words", b"late").unwrap();
    assert_eq!(session.search_index(&alone, "words").unwrap(), None, "an index of nothing");
    session.remove_folder(&with_folder).unwrap();
    assert_eq!(session.document(&format!("sha of {with_folder}")).unwrap(), None);
    assert_eq!((session.project_folders().unwrap().len(), session.folders().unwrap().len()), (0, 1));
}

#[test]
fn pages_stand_behind_their_file_and_go_with_it() {
    let folder = Folder::new("project-pages");
    let mut session = folder.session();
    let work = session.add_folder("work", None).unwrap();
    session.put_project(&work.id, "{}").unwrap();
    let [first, second] = ["one", "two"].map(|text| file(&session, &work.id, text));
    for row in [&first, &second] {
        let page = |number: u32| ProjectFileRow {
            id: ProjectFileRow::page_id(&row.id, number),
            document: format!("{} page {number}", row.document),
            ..row.clone()
        };
        let pages = [page(2), page(10)];
        assert!(pages.iter().all(|page| page.is_page_of(&row.id) && page.is_page()) && !row.is_page());
        session
            .add_project_file(&[(row.clone(), "t"), (pages[1].clone(), "p"), (pages[0].clone(), "p")])
            .unwrap();
    }
    let ids = |session: &Session| -> Vec<String> {
        session.project_files(&work.id).unwrap().into_iter().map(|row| row.id).collect()
    };
    let [mut expected, of_second] = [&first, &second].map(|row| {
        vec![row.id.clone(), ProjectFileRow::page_id(&row.id, 2), ProjectFileRow::page_id(&row.id, 10)]
    });
    expected.extend(of_second.clone());
    expected.sort();
    assert_eq!(ids(&session), expected);
    session.remove_project_file(&first.id).unwrap();
    assert_eq!(ids(&session), of_second);
    assert_eq!(session.document(&format!("{} page 2", first.document)).unwrap(), None);
}

#[test]
fn a_backup_brings_projects_back() {
    let folder = Folder::new("project-backup");
    let mut session = folder.session();
    let work = session.add_folder("work", None).unwrap();
    session.put_project(&work.id, "{}").unwrap();
    let row = file(&session, &work.id, "kept");
    session.add_project_file(&[(row.clone(), "kept")]).unwrap();
    let backup = folder.0.join("backup.db");
    session.back_up_to(&backup, &RealIo).unwrap();
    session.remove_folder(&work.id).unwrap();
    session.restore_from(&backup, &RealIo).unwrap();
    session.restore_from(&backup, &RealIo).unwrap();
    let found = session.project_folders().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(session.folders().unwrap()[0].name, "work");
    assert_eq!(session.project_files(&found[0]).unwrap()[0].document, row.document);
    assert_eq!(session.document(&row.document).unwrap().as_deref(), Some("kept"));
}

#[test]
fn a_file_of_before_gets_projects() {
    let folder = Folder::new("project-before");
    let mut session = folder.session();
    let work = session.add_folder("work", None).unwrap();
    drop(session);
    let old = Connection::open(folder.0.join("inglenook.db")).unwrap();
    old.execute_batch(
        "DROP TABLE note; DROP TABLE search_index; DROP TABLE project_file; DROP TABLE project;
         ALTER TABLE attachment DROP COLUMN from_project; PRAGMA user_version = 15;",
    )
    .unwrap();
    drop(old);
    let (mut session, notices) = folder.open();
    assert_eq!(notices, [], "nothing was damaged");
    session.put_project(&work.id, "{}").unwrap();
    let row = file(&session, &work.id, "text");
    session.add_project_file(&[(row.clone(), "text")]).unwrap();
    assert_eq!(session.project_files(&work.id).unwrap(), [row]);
}
