//! Search through the history: what counts as the same text, and the index of an older version.
#![allow(clippy::unwrap_used)]

use crate::common;

use crate::common::{Folder, answer, ask, say};
use rusqlite::Connection;

fn n_found(text: &str, query: &str) -> usize {
    let folder = Folder::new("search-form");
    let mut session = folder.session();
    say(&mut session, None, text, "An answer.");
    session.search(query, 50).unwrap().len()
}

#[test]
fn a_text_is_found_in_whatever_form_it_is_asked_for() {
    let cases = [
        ("Maße und Gewichte", "MASSE", 1),
        ("MASSE", "maße", 1),
        ("\u{1112}\u{1161}\u{11AB}\u{1100}\u{116E}\u{11A8}\u{110B}\u{1165}", "한국", 1),
        ("한국어", "\u{1112}\u{1161}\u{11AB}\u{1100}\u{116E}\u{11A8}", 1),
        ("قَالَ مُحَمَّدٌ", "محمد", 1),
        ("قال محمد", "مُحَمَّد", 1),
        ("إلى المدرسة", "الي المدرسه", 1),
        ("שָׁלוֹם עוֹלָם", "שלום", 1),
        ("שלום", "שָׁלוֹם", 1),
        ("Ｉｎｇｌｅｎｏｏｋ", "inglenook", 1),
        ("inglenook", "ＩＮＧＬＥ", 1),
        ("the o\u{FB03}ce", "office", 1),
        ("ｶﾞｲﾄﾞ", "ガイド", 1),
        ("はな", "ばな", 0),
        ("йогурт", "иогурт", 0),
        ("йогурт", "и\u{306}огурт", 1),
        ("ΟΔΟΣ", "οδος", 1),
        ("cœur", "coeur", 1),
        ("soft\u{AD}ware", "software", 1),
        ("की", "का", 0),
        ("❤", "❤\u{FE0F}", 1),
        ("Ｃ＋＋", "c++", 1),
        ("c++", "Ｃ＋＋", 1),
        ("the brown fox", "“brown fox”", 1),
        ("brown the fox", "“brown fox”", 0),
        ("anything", "\u{200B}", 0),
    ];
    for (text, query, expected) in cases {
        assert_eq!(n_found(text, query), expected, "{query:?} in {text:?}");
    }
}

/// The index of schema 13, and nothing that came later.
const OLD_INDEX: &str = "DROP TABLE api_object;
    ALTER TABLE attachment DROP COLUMN from_project;
    DROP TABLE search;
    CREATE VIRTUAL TABLE search USING fts5(text, tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2 3');
    INSERT INTO search(search, rank) VALUES ('secure-delete', 1);
    INSERT INTO search(rowid, text) SELECT position, text FROM message;
    PRAGMA user_version = 13;";

#[test]
fn an_older_history_is_indexed_again_and_stays_whole() {
    let folder = Folder::new("search-before");
    let mut session = folder.session();
    let first = say(&mut session, None, "Straße und Maße", "קָפֶה");
    for n in 0..30 {
        let started = ask(&mut session, Some(&first.conversation), &format!("Frage {n}"));
        answer(&mut session, &started, "مُحَمَّدٌ");
    }
    drop(session);
    let old = Connection::open(folder.0.join("inglenook.db")).unwrap();
    old.execute_batch(OLD_INDEX).unwrap();
    drop(old);
    for _ in 0..2 {
        let session = folder.session();
        let found = |query: &str| session.search(query, 100).unwrap().len();
        assert_eq!((found("strasse"), found("קפה"), found("محمد"), found("frage")), (1, 1, 30, 30));
        assert_eq!(common::branch(&session, &first.conversation).len(), 62);
    }
    assert_eq!(std::fs::read_dir(folder.0.join("backups")).unwrap().count(), 1, "a copy from before is kept");
}
