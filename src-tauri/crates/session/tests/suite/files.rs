//! Files with messages: kept, copied and taken out with them, and gone with the last of them.
#![allow(clippy::unwrap_used)] // a test

use crate::common::{Folder, MARKER, answer, found_in, say};
use io::RealIo;
use session::{NewTurn, Session};

/// A question with one file and a passage of it.
fn new_attachments(id: &str, text: &str, is_whole: bool) -> session::NewAttachments {
    let file = session::AttachmentRow {
        id: id.into(),
        message: String::new(),
        document: format!("sha of {text}"),
        name: format!("{id}.txt"),
        kind: "text".into(),
        bytes: 7,
        findings: None,
        is_whole,
        tokens: Some(3),
        is_about: false,
        from_project: false,
    };
    let passage = session::PassageRow {
        message: String::new(),
        attachment: id.into(),
        start: 0,
        end: 3,
        first_line: 1,
        last_line: 1,
        page: None,
    };
    let passages = if is_whole { Vec::new() } else { vec![passage] };
    session::NewAttachments {
        documents: vec![(file.document.clone(), text.into())],
        attachments: session::MessageAttachments { files: vec![file], passages },
    }
}

fn ask_with(
    session: &mut Session,
    conversation: Option<&str>,
    new: &session::NewAttachments,
) -> session::StartedTurn {
    let new =
        NewTurn::Message { conversation, title: "t", text: "What does it say?", attachments: Some(new) };
    let started = session.start(new, "m").unwrap();
    answer(session, &started, "This.");
    started
}

#[test]
fn files_stay_with_their_message_through_copies() {
    let folder = Folder::new("files");
    let mut session = folder.session();
    let searched = new_attachments("notes", "a long text", false);
    let first = ask_with(&mut session, None, &searched);
    let id = first.conversation.clone();
    let mut later = new_attachments("unused", "", false);
    (later.attachments.files, later.documents) = (Vec::new(), Vec::new());
    later.attachments.passages[0].attachment = "notes".into();
    ask_with(&mut session, Some(&id), &later);
    let attached = |session: &Session, id: &str| -> Vec<session::MessageAttachments> {
        session.branch(id).unwrap().messages.into_iter().map(|it| it.attachments).collect()
    };
    let before = attached(&session, &id);
    assert_eq!((before[0].files.len(), before[0].passages.len(), before[2].passages.len()), (1, 1, 1));
    assert_eq!(session.document(&before[0].files[0].document).unwrap().as_deref(), Some("a long text"));
    assert_eq!(session.search("notes", 9).unwrap()[0].message, first.user_message, "by the file's name");

    let last = session.branch(&id).unwrap().messages.pop().unwrap().row.id;
    let fork = session.fork(&last, "copy").unwrap();
    let copy = attached(&session, &fork.id);
    assert_ne!(copy[0].files[0].id, "notes");
    assert_eq!(copy[2].passages[0].attachment, copy[0].files[0].id);

    let archive = session.archive(&id).unwrap();
    let other = Folder::new("files-other");
    let mut there = other.session();
    there.import_archive(archive.clone()).unwrap();
    assert_eq!(attached(&there, &id), before, "taken in as it was taken out");
    let again = there.import_archive(archive).unwrap();
    assert_eq!(attached(&there, &again.id)[2].passages.len(), 1, "and once more under other ids");
}

#[test]
fn texts_of_files_go_with_their_last_message() {
    let folder = Folder::new("forget-files");
    let mut session = folder.session();
    let text = format!("{MARKER} ").repeat(5000);
    let first = ask_with(&mut session, None, &new_attachments("one", &text, true));
    let second = ask_with(&mut session, None, &new_attachments("two", &text, false));
    say(&mut session, Some(&second.conversation), "and?", "so");
    session.backup_due(&RealIo).unwrap().unwrap().make(&RealIo).unwrap();
    assert!(found_in(&folder.0, MARKER.as_bytes()).len() >= 2, "the test looks where it is");

    session.purge(&[first.conversation], &RealIo).unwrap();
    assert!(!found_in(&folder.0, MARKER.as_bytes()).is_empty(), "another message has the same text");
    session.purge_message(&second.user_message, "New", &RealIo).unwrap();
    assert_eq!(found_in(&folder.0, MARKER.as_bytes()), [""; 0]);
    let branch = session.branch(&second.conversation).unwrap();
    assert!(branch.messages.iter().all(|it| it.attachments == session::MessageAttachments::default()));
    drop(session);
    assert_eq!(found_in(&folder.0, MARKER.as_bytes()), [""; 0]);
    folder.session();
}

/// SHA-256 of "abc" and of "", from FIPS 180-2.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn a_backup_carries_the_originals_of_images() {
    let folder = Folder::new("image-backup");
    let mut session = folder.session();
    say(&mut session, None, "Hello", "Hi.");
    for (hash, bytes) in [(ABC, &b"abc"[..]), (NOTHING, b"")] {
        session.images(&RealIo).put(hash, bytes).unwrap();
    }
    let backup = folder.0.join("all.inglenook");
    session.back_up_to(&backup, &RealIo).unwrap();
    // One of them is damaged on the way.
    let db = rusqlite::Connection::open(&backup).unwrap();
    db.execute("UPDATE image_original SET bytes = x'616264' WHERE sha256 = ?1", [NOTHING]).unwrap();
    drop(db);
    let bytes = std::fs::read(&backup).unwrap();

    let other = Folder::new("image-restore");
    let mut there = other.session();
    for added in [1, 0] {
        let restored = there.restore_from(&backup, &RealIo).unwrap();
        assert_eq!((restored.added, restored.n_damaged_images), (added, 1));
        let images = there.images(&RealIo);
        assert_eq!(images.read(ABC).unwrap().as_deref(), Some(&b"abc"[..]));
        assert!(!images.has(NOTHING).unwrap());
    }
    assert_eq!(std::fs::read(&backup).unwrap(), bytes, "a backup is only read");
    let left = std::fs::read_dir(&other.0).unwrap().flatten();
    let left: Vec<_> = left.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
    assert!(!left.iter().any(|name| name.starts_with("restoring-")), "{left:?}");
}
