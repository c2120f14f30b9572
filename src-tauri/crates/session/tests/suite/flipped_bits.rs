//! Single flipped bits in the first page, the schema and the names of rows. The program always starts, has at least the
//! chats that SQLite can read, and never loses one silently.
#![allow(clippy::unwrap_used)] // a test

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::{Folder, clock, say};
use io::{CheckpointDir, RealIo};
use rusqlite::Connection;
use session::{KvFile, Session};

const N_CHATS: usize = 8;

/// Flips of the pages beyond the header in one run; all of them take an hour.
const N_SAMPLED: usize = 220;

/// A small database and its bytes.
fn database(name: &str) -> (Folder, Vec<u8>) {
    let folder = Folder::new(name);
    let mut session = folder.session();
    for n in 0..N_CHATS {
        let said = say(&mut session, None, &format!("Question {n}"), &format!("Answer {n}"));
        let file = KvFile { name: format!("0123abcd-{n}"), bytes: 9, position: 3 };
        session.record_context_use(&said.conversation, &[file], &[]).unwrap();
        session.save_checkpoint(&said.conversation, "Named", None).unwrap();
    }
    drop(session);
    drop(folder.session());
    let bytes = std::fs::read(folder.0.join("inglenook.db")).unwrap();
    (folder, bytes)
}

/// Ids of chats that SQLite reads, tolerating a damaged schema.
fn readable_chats(path: &Path) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let Ok(db) = Connection::open(path) else { return ids };
    let _ = db.pragma_update(None, "writable_schema", true);
    for sql in ["SELECT id FROM conversation NOT INDEXED", "SELECT conversation FROM message NOT INDEXED"] {
        let Ok(mut statement) = db.prepare(sql) else { continue };
        let Ok(mut rows) = statement.query([]) else { continue };
        while let Ok(Some(row)) = rows.next() {
            ids.extend(row.get::<_, String>(0));
        }
    }
    ids
}

fn write(folder: &Path, bytes: &[u8]) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_file() {
            std::fs::remove_file(entry).unwrap();
        }
    }
    std::fs::write(folder.join("inglenook.db"), bytes).unwrap();
}

fn check(folder: &Folder, bytes: &[u8], whole: &BTreeSet<String>, what: &str) {
    write(&folder.0, bytes);
    let readable = readable_chats(&folder.0.join("inglenook.db"));
    write(&folder.0, bytes);
    let opened = Session::open(&folder.0, &RealIo, clock());
    let (mut session, notices) = opened.unwrap_or_else(|error| panic!("{what}: no start: {error}"));
    let dir = CheckpointDir::new(&folder.0.join("contexts"), std::sync::Arc::new(RealIo));
    session.sweep_contexts(&dir).unwrap_or_else(|error| panic!("{what}: no start: {error}"));
    let list = session.conversations().unwrap_or_else(|error| panic!("{what}: no list: {error}"));
    let has: BTreeSet<String> = list.iter().map(|row| row.id.clone()).collect();
    let lost: Vec<_> = readable.intersection(whole).filter(|id| !has.contains(*id)).collect();
    assert!(lost.is_empty(), "{what}: SQLite reads {lost:?} and {} others", readable.len());
    let is_whole = list.len() == N_CHATS
        && list.iter().all(|row| session.branch(&row.id).is_ok_and(|branch| branch.messages.len() == 2));
    assert!(is_whole || !notices.is_empty(), "{what}: {} chats, and no notice", list.len());
}

#[test]
fn a_flipped_bit_of_page_1_or_the_schema_costs_no_start_and_no_chat() {
    let (folder, whole) = database("flipped-schema");
    let ids = readable_chats(&folder.0.join("inglenook.db"));
    assert_eq!(ids.len(), N_CHATS);
    let n_schema_pages = schema_pages(&folder.0.join("inglenook.db"));
    let mut bits: Vec<usize> = (0..100).map(|byte| byte * 8 + byte % 8).collect();
    bits.extend((60..64).flat_map(|byte| byte * 8..byte * 8 + 8));
    let mut seed = 14_u64;
    for n in 0..N_SAMPLED {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let page = if n % 2 == 0 { 1 } else { n_schema_pages[n / 2 % n_schema_pages.len()] };
        bits.push((page - 1) * 4096 * 8 + (seed >> 24) as usize % (4096 * 8));
    }
    for bit in bits {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        check(&folder, &bytes, &ids, &format!("bit {bit} of page {}", bit / 8 / 4096 + 1));
    }
}

/// Pages of the table of the schema.
fn schema_pages(path: &Path) -> Vec<usize> {
    let bytes = std::fs::read(path).unwrap();
    let mut pages = vec![1];
    if bytes[100] == 5 {
        let n_cells = usize::from(u16::from_be_bytes([bytes[103], bytes[104]]));
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        pages.push(word(108));
        for cell in 0..n_cells {
            let at = 112 + 2 * cell;
            pages.push(word(usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))));
        }
    }
    pages
}

#[test]
fn a_flipped_bit_in_a_name_costs_its_own_row() {
    let (folder, whole) = database("flipped-names");
    let ids = readable_chats(&folder.0.join("inglenook.db"));
    let found = |needle: &[u8]| -> Vec<usize> {
        (0..whole.len() - needle.len()).filter(|at| whole[*at..].starts_with(needle)).collect()
    };
    let mut places = found(b"0123abcd-3");
    places.extend(found(b"Named").into_iter().take(4));
    assert!(places.len() >= 6, "{places:?}");
    for place in places {
        for bit in [0, 5, 7] {
            let mut bytes = whole.clone();
            bytes[place + 2] ^= 1 << bit;
            check(&folder, &bytes, &ids, &format!("bit {bit} of byte {place}"));
        }
    }
    // Every table's keys, and titles and texts too.
    for id in &ids {
        for place in found(id.as_bytes()) {
            let mut bytes = whole.clone();
            bytes[place + 5] ^= 0x80;
            write(&folder.0, &bytes);
            let (session, _) = Session::open(&folder.0, &RealIo, clock()).unwrap();
            assert!(session.conversations().unwrap().len() >= N_CHATS - 1, "byte {place}");
        }
    }
}
