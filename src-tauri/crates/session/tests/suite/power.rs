//! Power that fails at any moment: what was acknowledged is there when it comes back, and half of anything is nothing.
#![allow(clippy::unwrap_used)] // a test

use std::path::Path;
use std::sync::Arc;

use crate::common::{Folder, answer, ask, branch, piece, say};
use io::CheckpointDir;
use io::{PowerCut, PowerLossIo, RealIo};
use rusqlite::Connection;
use session::{KvFile, Session};

use crate::common;

/// splitmix64
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn contents(name: &str) -> Vec<u8> {
    name.bytes().cycle().take(3000).collect()
}

/// Files come and go; what was acknowledged is noted.
fn keep_contexts(
    contexts: &CheckpointDir,
    written: &mut Vec<&'static str>,
    going: &mut Vec<&'static str>,
) -> session::Result<()> {
    for name in ["aa", "bb", "cc"] {
        contexts.write(name, &contents(name))?;
        written.push(name);
    }
    for name in ["aa", "cc"] {
        going.push(name);
        contexts.remove(name)?;
    }
    for name in ["dd", "bb"] {
        contexts.write(name, &contents(name))?;
        written.push(name);
    }
    going.push("dd");
    Ok(contexts.remove("dd")?)
}

#[test]
fn f49_stored_contexts_survive_a_power_cut_at_any_change() {
    let folder = Folder::new("power-contexts");
    for cut in [PowerCut::Before, PowerCut::After] {
        for at in 0.. {
            let _ = std::fs::remove_dir_all(&folder.0);
            let mut session = folder.session();
            let id = say(&mut session, None, "Q", "A").conversation;
            let io = Arc::new(PowerLossIo::new(RealIo));
            io.fail_at(at, cut);
            let place = folder.0.join("contexts");
            let (mut written, mut going) = (Vec::new(), Vec::new());
            let outcome = keep_contexts(&CheckpointDir::new(&place, io.clone()), &mut written, &mut going);
            assert_eq!(outcome.is_err(), io.is_off());
            let is_through = outcome.is_ok();
            let files = written.iter().map(|name| KvFile { name: (*name).into(), bytes: 3000, position: 1 });
            session.record_context_use(&id, &files.collect::<Vec<_>>(), &[]).unwrap();
            drop(session);
            io.restore_power().unwrap();

            let mut session = folder.session();
            let contexts = CheckpointDir::new(&place, Arc::new(RealIo));
            for name in contexts.names().unwrap() {
                assert!(contexts.read(&name).unwrap() == contents(&name), "{cut:?} at {at}: half of {name}");
            }
            for name in written.iter().filter(|name| !going.contains(name)) {
                assert!(contexts.has(name), "{cut:?} at {at}: {name} was there");
            }
            session.sweep_contexts(&contexts).unwrap();
            let n_left = std::fs::read_dir(&place).map_or(0, Iterator::count);
            assert_eq!(n_left, contexts.names().unwrap().len(), "nothing that is half done stays");
            if is_through {
                break;
            }
            assert!(at < 100, "the changes come to an end");
        }
    }
}

#[test]
fn backups_survive_a_power_cut_at_any_change() {
    let folder = Folder::new("power-backups");
    let mut session = folder.session();
    say(&mut session, None, "Q", "A");
    for cut in [PowerCut::Before, PowerCut::After] {
        for at in 0.. {
            let _ = std::fs::remove_dir_all(folder.0.join("backups"));
            let io = PowerLossIo::new(RealIo);
            io.fail_at(at, cut);
            let made = session.backup_due(&RealIo).unwrap().unwrap().make(&io);
            io.restore_power().unwrap();
            drop(session);
            session = folder.session();
            let backups = std::fs::read_dir(folder.0.join("backups"));
            let backups: Vec<_> = backups.map_or_else(|_| Vec::new(), |entries| entries.flatten().collect());
            for backup in &backups {
                let copy = Connection::open(backup.path()).unwrap();
                let n: i64 = copy.query_row("SELECT COUNT(*) FROM message", [], |row| row.get(0)).unwrap();
                assert_eq!(n, 2, "{cut:?} at {at}: {:?}", backup.path());
            }
            if let Ok(made) = made {
                assert!(backups.iter().any(|backup| backup.path() == made));
                break;
            }
            assert!(at < 100, "the changes come to an end");
        }
    }
}

/// The database's two files as they are.
fn files(folder: &Path) -> [Vec<u8>; 2] {
    ["inglenook.db", "inglenook.db-wal"].map(|name| std::fs::read(folder.join(name)).unwrap_or_default())
}

/// A machine that comes up with these files: everything acknowledged is there, and nothing is damaged.
fn come_up(folder: &Path, [db, wal]: [&[u8]; 2], id: &str, expected: &[String], what: &str) {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder.join("running")).unwrap();
    std::fs::write(folder.join("inglenook.db"), db).unwrap();
    std::fs::write(folder.join("inglenook.db-wal"), wal).unwrap();
    // The previous process died, so the file is checked.
    std::fs::write(folder.join("running/0000.lock"), b"").unwrap();
    let (session, notices) = Session::open(folder, &RealIo, common::clock()).unwrap();
    assert_eq!(notices, [], "{what}");
    let found = branch(&session, id);
    assert!(found.starts_with(expected), "{what}: {} of {} messages", found.len(), expected.len());
}

/// Sectors of what was written since the last flush reach the disk in any order, or don't.
fn torn_tail(flushed: &[u8], written: &[u8], r: &mut u64) -> Vec<u8> {
    const SECTOR: usize = 512;
    let mut cut =
        written[..flushed.len() + random(r) as usize % (written.len() - flushed.len() + 1)].to_vec();
    for sector in cut[flushed.len()..].chunks_mut(SECTOR) {
        if random(r).is_multiple_of(2) {
            sector.fill(0);
        }
    }
    cut
}

#[test]
fn f34_what_was_acknowledged_survives_whatever_the_log_lost_after_it() {
    let (folder, other) = (Folder::new("power-log"), Folder::new("power-log-up"));
    let mut session = folder.session();
    let id = say(&mut session, None, "Q", "A").conversation;
    let (r, mut n_torn) = (&mut 11, 0);
    for n in 0..30 {
        let (expected, [_, flushed]) = (branch(&session, &id), files(&folder.0));
        let started = ask(&mut session, Some(&id), &format!("question {n}"));
        session.append(&started.assistant_message, &piece("part ", "")).unwrap();
        let [db, written] = files(&folder.0);
        // A restarted WAL was checkpointed into the database before.
        if written.starts_with(&flushed) && written.len() > flushed.len() {
            for _ in 0..3 {
                let cut = torn_tail(&flushed, &written, r);
                come_up(&other.0, [&db, &cut], &id, &expected, &format!("change {n}"));
                n_torn += 1;
            }
        }
        answer(&mut session, &started, &format!("answer {n} ").repeat(n * 5));
    }
    assert!(n_torn > 60, "{n_torn}");
}

#[test]
fn a_log_that_is_carried_into_the_database_may_be_cut_off_anywhere() {
    const PAGE: usize = 4096;
    let (folder, other) = (Folder::new("power-pages"), Folder::new("power-pages-up"));
    let mut session = folder.session();
    let id = say(&mut session, None, "Q", "A").conversation;
    let r = &mut 12;
    for n in 0..8 {
        for _ in 0..4 {
            say(&mut session, Some(&id), "more", &format!("{n} of it ").repeat(400));
        }
        let (expected, [before, log]) = (branch(&session, &id), files(&folder.0));
        let carrier = Connection::open(folder.0.join("inglenook.db")).unwrap();
        let _: i64 = carrier.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(0)).unwrap();
        let [after, log_after] = files(&folder.0);
        assert!(log_after.starts_with(&log) && after != before, "the log stays until it restarts");
        for _ in 0..4 {
            let n_pages =
                before.len() / PAGE + random(r) as usize % (after.len().abs_diff(before.len()) / PAGE + 1);
            let pages = (0..n_pages).flat_map(|page| {
                let own = page * PAGE..(page + 1) * PAGE;
                let old = before.get(own.clone()).filter(|_| random(r).is_multiple_of(2));
                old.unwrap_or_else(|| &after[own]).to_vec()
            });
            let mixed: Vec<u8> = pages.collect();
            come_up(&other.0, [&mixed, &log], &id, &expected, &format!("round {n}"));
        }
    }
}
