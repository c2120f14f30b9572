//! The message tree: versions, branches, undo, folders, search; and what a permanent deletion leaves behind.
#![allow(clippy::unwrap_used)] // a test

use std::time::Duration;

use crate::common::{Folder, MARKER, answer, ask, branch, clock, found_in, piece, say};
use io::{Clock, RealIo};
use session::{CompactionRow, MessageState, NewTurn, Session, TurnEnding};

/// Version and versions of a message of the active branch.
fn version(session: &Session, id: &str, at: usize) -> (u32, u32) {
    let message = session.branch(id).unwrap().messages.swap_remove(at);
    (message.version, message.versions)
}

#[test]
fn an_edit_begins_a_branch_and_both_stay() {
    let folder = Folder::new("edit");
    let mut session = folder.session();
    let first = say(&mut session, None, "Q1", "A1");
    let id = first.conversation.clone();
    let second = say(&mut session, Some(&id), "Q2", "A2");
    say(&mut session, Some(&id), "Q3", "A3");
    let edited = session
        .start(NewTurn::Edit { message: &second.user_message, text: "Q2b", attachments: None }, "starter")
        .unwrap();
    answer(&mut session, &edited, "A2b");
    assert_eq!(branch(&session, &id), ["Q1", "A1", "Q2b", "A2b"]);
    assert_eq!(version(&session, &id, 2), (2, 2));

    session.activate_version(&edited.user_message, 1).unwrap();
    assert_eq!(branch(&session, &id), ["Q1", "A1", "Q2", "A2", "Q3", "A3"], "to where it was left");
    session.activate_branch(&second.assistant_message).unwrap();
    assert_eq!(branch(&session, &id).len(), 6, "choosing what is there changes nothing");
    session.activate_branch(&edited.assistant_message).unwrap();
    assert_eq!(branch(&session, &id), ["Q1", "A1", "Q2b", "A2b"]);
    assert_eq!(session.activate_version(&edited.user_message, 3).unwrap_err().code(), "session.no_version");
    let refused = session
        .start(NewTurn::Edit { message: &second.assistant_message, text: "x", attachments: None }, "starter");
    assert_eq!(refused.unwrap_err().code(), "session.not_a_question");

    // The very first message has versions too.
    let root = session
        .start(NewTurn::Edit { message: &first.user_message, text: "Q1b", attachments: None }, "starter")
        .unwrap();
    answer(&mut session, &root, "A1b");
    assert_eq!(branch(&session, &id), ["Q1b", "A1b"]);
    assert_eq!(version(&session, &id, 0), (2, 2));
}

#[test]
fn any_answer_has_versions_and_each_remembers_its_way() {
    let folder = Folder::new("again");
    let mut session = folder.session();
    let first = say(&mut session, None, "Q1", "A1");
    let id = first.conversation.clone();
    say(&mut session, Some(&id), "Q2", "A2");
    let again = session.start(NewTurn::Regenerate { message: &first.assistant_message }, "other").unwrap();
    assert_eq!(again.user_message, first.user_message);
    answer(&mut session, &again, "A1b");
    assert_eq!(branch(&session, &id), ["Q1", "A1b"]);
    say(&mut session, Some(&id), "Q2 of b", "A2 of b");
    for _ in 0..2 {
        session.activate_version(&again.assistant_message, 1).unwrap();
        assert_eq!(branch(&session, &id), ["Q1", "A1", "Q2", "A2"]);
        session.activate_version(&again.assistant_message, 2).unwrap();
        assert_eq!(branch(&session, &id), ["Q1", "A1b", "Q2 of b", "A2 of b"]);
    }
}

#[test]
fn an_answer_is_rewritten_as_another_version() {
    let folder = Folder::new("rewrite");
    let mut session = folder.session();
    let first = say(&mut session, None, "Q1", "A1");
    let id = first.conversation.clone();
    say(&mut session, Some(&id), "Q2", "A2");
    session.rewrite_answer(&first.assistant_message, "A1 by hand").unwrap();
    assert_eq!(branch(&session, &id), ["Q1", "A1 by hand"]);
    assert_eq!(version(&session, &id, 1), (2, 2));
    let rewritten = session.branch(&id).unwrap().messages.pop().unwrap();
    assert!(rewritten.row.stats.is_none() && session.token_logs(&rewritten.row.id).unwrap().is_empty());
    assert_eq!(session.search("hand", 9).unwrap().len(), 1);
    say(&mut session, Some(&id), "Q2 of it", "A2 of it");
    session.activate_version(&first.assistant_message, 1).unwrap();
    assert_eq!(branch(&session, &id), ["Q1", "A1", "Q2", "A2"], "the old one stays, with what followed it");

    let refused = session.rewrite_answer(&first.user_message, "x");
    assert_eq!(refused.unwrap_err().code(), "session.not_an_answer");
    session.start(NewTurn::Regenerate { message: &first.assistant_message }, "m").unwrap();
    let refused = session.rewrite_answer(&first.assistant_message, "x");
    assert_eq!(refused.unwrap_err().code(), "session.answering");
}

#[test]
fn what_is_removed_comes_back_as_it_was() {
    let folder = Folder::new("remove");
    let mut session = folder.session();
    let first = say(&mut session, None, "Q1", "A1");
    let id = first.conversation.clone();
    let second = say(&mut session, Some(&id), "Q2", "A2");
    let third = say(&mut session, Some(&id), "Q3", "A3");
    let again = session.start(NewTurn::Regenerate { message: &second.assistant_message }, "m").unwrap();
    answer(&mut session, &again, "A2b");

    session.remove_message(&again.assistant_message).unwrap();
    assert_eq!(
        branch(&session, &id),
        ["Q1", "A1", "Q2", "A2", "Q3", "A3"],
        "the other version takes its place"
    );
    assert_eq!(version(&session, &id, 3), (1, 1));
    session.remove_message(&third.user_message).unwrap();
    assert_eq!(
        branch(&session, &id),
        ["Q1", "A1", "Q2", "A2"],
        "no version is left: the branch ends before it"
    );
    session.remove_message(&second.user_message).unwrap();
    assert_eq!(branch(&session, &id), ["Q1", "A1"]);
    assert!(session.search("Q2", 9).unwrap().is_empty());
    assert_eq!(session.activate_branch(&third.user_message).unwrap_err().code(), "session.not_found");

    session.restore_message(&second.user_message).unwrap();
    assert_eq!(branch(&session, &id), ["Q1", "A1", "Q2", "A2"], "an earlier removal stays one");
    session.restore_message(&third.user_message).unwrap();
    session.restore_message(&again.assistant_message).unwrap();
    assert_eq!(branch(&session, &id), ["Q1", "A1", "Q2", "A2b"]);
    session.remove_message(&first.user_message).unwrap();
    assert_eq!(branch(&session, &id), [""; 0]);
    session.restore_message(&third.assistant_message).unwrap();
    assert_eq!(branch(&session, &id).len(), 6, "what it hangs on comes with it");
    assert_eq!(session.search("Q2", 9).unwrap().len(), 1);
}

#[test]
fn an_answer_goes_on_and_loses_nothing_on_the_way() {
    let folder = Folder::new("continue");
    let mut session = folder.session();
    let first = say(&mut session, None, "Tell me", "Once upon a");
    let more = session.start(NewTurn::Continue { message: &first.assistant_message }, "starter").unwrap();
    assert_eq!(more.assistant_message, first.assistant_message);
    assert_eq!(branch(&session, &first.conversation), ["Tell me", "Once upon a"], "what it had is shown");
    session.append(&more.assistant_message, &piece(" time", "")).unwrap();
    drop(session);
    let mut session = folder.session();
    session.interrupt_orphaned_answers().unwrap();
    assert_eq!(branch(&session, &first.conversation), ["Tell me", "Once upon a time"]);
    assert_eq!(session.branch(&first.conversation).unwrap().messages[1].row.state, MessageState::Interrupted);
    let log = session.token_logs(&first.assistant_message).unwrap().swap_remove(0);
    assert_eq!(log.all_ids, [0, 1, 2, u32::MAX, 7, 8]);
    assert_eq!(session.search("time", 9).unwrap().len(), 1);
    say(&mut session, Some(&first.conversation), "And?", "No more.");
    let refused = session.start(NewTurn::Continue { message: &first.assistant_message }, "starter");
    assert_eq!(refused.unwrap_err().code(), "session.not_the_end");
}

#[test]
fn a_branch_becomes_a_conversation_of_its_own() {
    let folder = Folder::new("fork");
    let mut session = folder.session();
    let first = say(&mut session, None, "Q1", "A1");
    let id = first.conversation.clone();
    say(&mut session, Some(&id), "Q2", "A2");
    session.set_options(&id, Some("{\"temperature\":0}")).unwrap();
    let copy = session.fork(&first.assistant_message, "Q1 (branch)").unwrap();
    assert_eq!(branch(&session, &copy.id), ["Q1", "A1"]);
    assert_eq!(copy.options.as_deref(), Some("{\"temperature\":0}"));
    let twin = &session.branch(&copy.id).unwrap().messages[1];
    assert_eq!(twin.logs, session.branch(&id).unwrap().messages[1].logs, "the same tokens");
    say(&mut session, Some(&copy.id), "Another way", "Yes");
    assert_eq!(branch(&session, &id), ["Q1", "A1", "Q2", "A2"]);
    assert_eq!(session.search("Q1", 9).unwrap().len(), 2);
}

#[test]
fn folders_hold_conversations_and_let_them_go() {
    let folder = Folder::new("folders");
    let mut session = folder.session();
    let first = say(&mut session, None, "Q", "A");
    let work = session.add_folder("work", None).unwrap();
    session.add_folder("Alpha", None).unwrap();
    session.move_to(&first.conversation, Some(&work.id)).unwrap();
    session.set_pinned(&first.conversation, true).unwrap();
    drop(session);
    let mut session = folder.session();
    let row = session.conversation(&first.conversation).unwrap();
    assert_eq!((row.folder.as_deref(), row.pinned), (Some(work.id.as_str()), true));
    let names: Vec<_> = session.folders().unwrap().into_iter().map(|row| row.name).collect();
    assert_eq!(names, ["Alpha", "work"]);
    assert_eq!(session.move_to(&first.conversation, Some("x")).unwrap_err().code(), "session.not_found");
    let inside = session.remove_folder(&work.id).unwrap().conversations;
    assert_eq!((inside.len(), inside[0].folder.as_deref()), (1, None));
    assert_eq!(branch(&session, &first.conversation).len(), 2);
}

#[test]
fn titles_of_models_never_replace_a_persons() {
    let folder = Folder::new("titles");
    let mut session = folder.session();
    let id = say(&mut session, None, "first words", "A").conversation;
    assert_eq!(session.set_generated_title(&id, "A title").unwrap().unwrap().title, "A title");
    session.rename(&id, "Mine").unwrap();
    assert_eq!(session.set_generated_title(&id, "Another").unwrap(), None);
    assert_eq!(session.conversation(&id).unwrap().title, "Mine");
}

#[test]
fn every_message_is_found_by_its_words() {
    let folder = Folder::new("search");
    let mut session = folder.session();
    say(&mut session, None, "The quick brown fox", "jumps over the lazy dog");
    say(&mut session, None, "Où est la Bibliothèque?", "Straße und C++ und 東京タワー");
    say(&mut session, None, "서울대학교 도서관", "สวัสดีครับ 🦊 don't");
    say(&mut session, None, "C is not that", "foo_bar::baz(1)");
    let cases = [
        ("fox", 1),
        ("FOX quick", 1),
        ("qui", 1),
        ("brown quick", 1),
        ("\"brown quick\"", 0),
        ("\"quick brown\"", 1),
        ("fox dog", 0),
        ("bibliotheque", 1),
        ("BIBLIO", 1),
        ("C++", 1),
        ("東京", 1),
        ("京タ", 1),
        ("東タ", 0),
        ("대학", 1),
        ("สวัส", 1),
        ("🦊", 1),
        ("don't", 1),
        ("foo_bar", 1),
        ("baz", 1),
        ("AND", 0),
        ("\"", 0),
        ("*", 0),
        ("", 0),
        ("NEAR(fox)", 0),
    ];
    for (query, expected) in cases {
        assert_eq!(session.search(query, 50).unwrap().len(), expected, "{query:?}");
    }
    let hit = session.search("lazy", 50).unwrap().swap_remove(0);
    assert_eq!(hit.title, "The quick brown fox");
    let snippet = hit.snippet.iter().map(|(text, is_hit)| (text.as_str(), *is_hit)).collect::<Vec<_>>();
    assert_eq!(snippet, [("jumps over the ", false), ("lazy", true), (" dog", false)]);
    let hit = session.search("京タ", 50).unwrap().swap_remove(0);
    assert!(hit.snippet.contains(&("京タ".to_owned(), true)), "{:?}", hit.snippet);
    // In the trash nothing is found; out of it, it is.
    let id = hit.conversation;
    session.delete(&id).unwrap();
    assert!(session.search("東京", 50).unwrap().is_empty());
    assert_eq!(session.trash().unwrap()[0].id, id);
    session.restore(&id).unwrap();
    assert_eq!(session.search("東京", 50).unwrap().len(), 1);
}

#[test]
fn many_messages_are_searched_in_no_time() {
    let folder = Folder::new("much");
    let mut session = folder.session();
    let mut id = None;
    for n in 0..400 {
        let words = "lorem ipsum dolor sit amet ".repeat(20);
        let started = say(&mut session, id.as_deref(), &format!("number{n} {words}"), &words);
        id = Some(started.conversation);
    }
    assert_eq!(session.search("number123", 50).unwrap().len(), 1);
    assert_eq!(session.search("number12", 50).unwrap().len(), 11);
    assert_eq!(session.search("lor", 50).unwrap().len(), 50);
}

#[test]
fn deleted_for_good_is_found_nowhere_on_the_disk() {
    let folder = Folder::new("forget");
    let mut session = folder.session();
    let kept = say(&mut session, None, "What stays", &"stays ".repeat(3000));
    let first = say(&mut session, None, MARKER, &format!("{MARKER} and {}", "words ".repeat(4000)));
    let id = first.conversation.clone();
    session.rename(&id, MARKER).unwrap();
    session.set_options(&id, Some(&format!("{{\"system_prompt\":\"{MARKER}\"}}"))).unwrap();
    for n in 0..40 {
        // Pages split and are moved about.
        say(&mut session, Some(&id), &format!("{MARKER} {n}"), &format!("{n} {MARKER} ").repeat(n * 9));
        say(&mut session, Some(&kept.conversation), "more", &"of it ".repeat(n * 7));
    }
    let edited = session
        .start(NewTurn::Edit { message: &first.user_message, text: MARKER, attachments: None }, "m")
        .unwrap();
    session.append(&edited.assistant_message, &piece(MARKER, MARKER)).unwrap();
    let backup = session.backup_due(&RealIo).unwrap().unwrap().make(&RealIo).unwrap();
    std::fs::write(folder.0.join("inglenook.db.damaged-1"), std::fs::read(&backup).unwrap()).unwrap();
    assert!(found_in(&folder.0, MARKER.as_bytes()).len() >= 3, "the test looks where it is");
    let refused = session.purge(std::slice::from_ref(&id), &RealIo).unwrap_err();
    assert_eq!(refused.code(), "session.answering");
    answer(&mut session, &edited, MARKER);

    assert_eq!(session.purge(std::slice::from_ref(&id), &RealIo).unwrap(), None);
    assert_eq!(found_in(&folder.0, MARKER.as_bytes()), [""; 0]);
    assert_eq!(session.restore(&id).unwrap_err().code(), "session.not_found");
    assert!(session.search(MARKER, 9).unwrap().is_empty());
    assert_eq!(branch(&session, &kept.conversation).len(), 82);
    assert_eq!(session.search("stays", 9).unwrap().len(), 2);
    drop(session);
    assert_eq!(found_in(&folder.0, MARKER.as_bytes()), [""; 0]);
    folder.session();
}

#[test]
fn a_message_that_is_deleted_for_good_leaves_its_place_and_nothing_else() {
    let folder = Folder::new("forget-one");
    let mut session = folder.session();
    let first = say(&mut session, None, MARKER, "first answer");
    let id = first.conversation.clone();
    for n in 0..20 {
        say(&mut session, Some(&id), &format!("question {n}"), &format!("answer {n} ").repeat(n * 30));
    }
    let last = say(&mut session, Some(&id), "last", &format!("{MARKER} ").repeat(2000));
    let compaction = CompactionRow {
        id: "fold".into(),
        first: first.user_message.clone(),
        message: last.user_message.clone(),
        strategy: "summary".into(),
        level: 0,
        summary: Some(format!("They spoke of {MARKER}.")),
        is_used: true,
        tokens_before: 9,
        tokens_after: 3,
        created_ms: 1,
    };
    session.add_compaction(&compaction).unwrap();
    session.backup_due(&RealIo).unwrap().unwrap().make(&RealIo).unwrap();
    assert!(found_in(&folder.0, MARKER.as_bytes()).len() >= 2, "the test looks where it is");
    let n_before = branch(&session, &id).len();

    let running = ask(&mut session, Some(&id), "one more");
    let refused = session.purge_message(&first.user_message, "New", &RealIo).unwrap_err();
    assert_eq!(refused.code(), "session.answering");
    answer(&mut session, &running, "done");
    session.purge_message(&running.assistant_message, "New", &RealIo).unwrap();
    session.purge_message(&running.user_message, "New", &RealIo).unwrap();
    assert_eq!(branch(&session, &id).len(), n_before, "what nothing hangs on goes with its place");

    for message in [&last.assistant_message, &first.user_message] {
        let (_, notice) = session.purge_message(message, "New", &RealIo).unwrap();
        assert_eq!(notice, None);
    }
    assert_eq!(found_in(&folder.0, MARKER.as_bytes()), [""; 0]);
    let left = branch(&session, &id);
    assert_eq!((left.len(), left[0].as_str()), (n_before - 1, "This message was deleted."));
    assert_eq!((left[1].as_str(), left[n_before - 2].as_str()), ("first answer", "last"));
    assert_eq!(session.conversation(&id).unwrap().title, "New", "it was made of the message");
    assert!(session.search(MARKER, 9).unwrap().is_empty());
    assert_eq!(session.search("first answer", 9).unwrap().len(), 1);
    assert!(session.compactions(&id, &[&last.user_message]).unwrap().is_empty());
    drop(session);
    assert_eq!(found_in(&folder.0, MARKER.as_bytes()), [""; 0]);
    folder.session();
}

#[test]
fn a_reader_delays_the_wiping_and_the_next_start_does_it() {
    let folder = Folder::new("reader");
    let mut session = folder.session();
    let id = say(&mut session, None, MARKER, MARKER).conversation;
    let reader = rusqlite::Connection::open(folder.0.join("inglenook.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT COUNT(*) FROM message;").unwrap();
    let notice = session.purge(&[id], &RealIo).unwrap().unwrap();
    assert_eq!(notice.code(), "session.traces");
    drop(reader);
    drop(session);
    drop(folder.session());
    assert_eq!(found_in(&folder.0, MARKER.as_bytes()), [""; 0]);
}

#[test]
fn the_trash_empties_itself_in_the_end_and_leaves_nothing() {
    let folder = Folder::new("time");
    let clock = clock();
    let (mut session, _) = Session::open(&folder.0, &RealIo, clock.clone()).unwrap();
    let kept = say(&mut session, None, "Q1", "A1");
    let gone = say(&mut session, Some(&kept.conversation), MARKER, MARKER);
    session.remove_message(&gone.user_message).unwrap();
    let deleted = say(&mut session, None, MARKER, MARKER);
    session.delete(&deleted.conversation).unwrap();
    drop(session);
    clock.advance(Duration::from_secs(29 * 24 * 3600));
    let (session, notices) = Session::open(&folder.0, &RealIo, clock.clone()).unwrap();
    assert_eq!((notices, session.trash().unwrap().len()), (Vec::new(), 1));
    drop(session);
    clock.advance(Duration::from_secs(2 * 24 * 3600));
    let (session, notices) = Session::open(&folder.0, &RealIo, clock.clone()).unwrap();
    assert_eq!((notices, session.trash().unwrap().len()), (Vec::new(), 0));
    assert_eq!(branch(&session, &kept.conversation), ["Q1", "A1"]);
    assert_eq!(found_in(&folder.0, MARKER.as_bytes()), [""; 0]);
    assert!(clock.now_utc_ms() > 0);
}

#[test]
fn figures_are_those_of_the_newest_answers_of_a_model() {
    let folder = Folder::new("stats");
    let mut session = folder.session();
    assert_eq!(session.newest_stats("starter").unwrap(), Vec::<String>::new());
    let mut answered = |model: &str, stats: Option<&str>| {
        let new = NewTurn::Message { conversation: None, title: "t", text: "Q", attachments: None };
        let started = session.start(new, model).unwrap();
        let ending = TurnEnding {
            state: MessageState::Complete,
            text: "A",
            reasoning: "",
            tool_calls: None,
            stats: stats.map(Into::into),
            error: None,
            log: None,
        };
        session.finish(&started.assistant_message, &ending).unwrap();
    };
    answered("starter", Some("1"));
    answered("other", Some("2"));
    answered("starter", None);
    answered("starter", Some("3"));
    assert_eq!(session.newest_stats("starter").unwrap(), ["3", "1"]);
    assert_eq!(session.newest_stats("other").unwrap(), ["2"]);
}
