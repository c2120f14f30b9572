//! The database on a disk that fails: at any operation of SQLite, once or from then on, and with a power cut at any of
//! them. What was acknowledged is there afterwards, and the file is whole.
#![allow(clippy::unwrap_used)] // a test

use std::collections::BTreeMap;
use std::path::Path;

use common::{Folder, clock, piece, say};
use fault_vfs::DiskFault;
use io::RealIo;
use session::{MessageState, NewTurn, Session, TurnEnding};

mod common;
#[path = "common/fault_vfs.rs"]
mod fault_vfs;

/// In the short form one operation of 29 fails; with `INGLENOOK_DISK_FAULTS=all` each does.
const SHORT_STEP: u64 = 29;

/// Power cuts in the short form; `INGLENOOK_POWER_CUTS` says how many else.
const N_POWER_CUTS: u64 = 25;

/// splitmix64
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What must be there: texts of chats by their ids, titles and a setting. What is being changed is in none of them.
#[derive(Debug, Default)]
struct AcknowledgedState {
    texts: BTreeMap<String, Vec<String>>,
    titles: BTreeMap<String, String>,
    theme: Option<String>,
}

fn ending(text: &str) -> TurnEnding<'_> {
    TurnEnding {
        state: MessageState::Complete,
        text,
        reasoning: "",
        tool_calls: None,
        stats: None,
        error: None,
        log: None,
    }
}

/// A day of use, until something fails.
fn use_session(folder: &Path, acknowledged: &mut AcknowledgedState) -> session::Result<()> {
    let (mut session, _) = Session::open(folder, &RealIo, clock())?;
    let mut ids = Vec::new();
    for n in 0..3 {
        let question = format!("Question {n} {}", "lorem ipsum ".repeat(400 * n));
        let new = NewTurn::Message { conversation: None, title: "Title", text: &question, attachments: None };
        let started = session.start(new, "starter")?;
        let texts = acknowledged.texts.entry(started.conversation.clone()).or_default();
        texts.push(question);
        session.append(&started.assistant_message, &piece("Half of ", ""))?;
        let answer = format!("Answer {n} {}", "dolor sit ".repeat(300));
        session.finish(&started.assistant_message, &ending(&answer))?;
        texts.push(answer);
        ids.push(started.conversation);
    }
    session.rename(&ids[0], "Renamed")?;
    acknowledged.titles.insert(ids[0].clone(), "Renamed".into());
    session.set_setting("theme", "\"dark\"")?;
    acknowledged.theme = Some("\"dark\"".into());
    acknowledged.texts.remove(&ids[1]);
    session.purge(&[ids[1].clone()], &RealIo)?;
    Ok(())
}

/// Opens the folder on a sound disk.
fn check(folder: &Path, acknowledged: &AcknowledgedState, case: &str) {
    let (mut session, notices) =
        Session::open(folder, &RealIo, clock()).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_eq!(notices, [], "{case}");
    assert_eq!(session.repair(&RealIo).unwrap(), None, "{case}: the file is whole");
    for (id, expected) in acknowledged.texts.iter() {
        let branch = session.branch(id).unwrap_or_else(|error| panic!("{case}: {error}"));
        let texts: Vec<_> = branch.messages.iter().map(|message| message.row.text.clone()).collect();
        assert!(texts.starts_with(expected), "{case}: {} of {} texts", texts.len(), expected.len());
    }
    for (id, title) in &acknowledged.titles {
        assert_eq!(&session.conversation(id).unwrap().title, title, "{case}");
    }
    if acknowledged.theme.is_some() {
        assert_eq!(session.setting("theme").unwrap(), acknowledged.theme, "{case}");
    }
}

/// A folder with a chat, as each round begins.
fn template(name: &str) -> (Folder, AcknowledgedState) {
    let folder = Folder::new(name);
    let said = say(&mut folder.session(), None, "Before", "All this");
    let texts = vec!["Before".to_owned(), "All this".to_owned()];
    (folder, AcknowledgedState { texts: [(said.conversation, texts)].into(), ..AcknowledgedState::default() })
}

fn copy_folder(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).unwrap();
    std::fs::copy(from.join("inglenook.db"), to.join("inglenook.db")).unwrap();
}

#[test]
fn what_was_acknowledged_survives_a_fault_at_any_operation() {
    let _alone = fault_vfs::lock();
    let step =
        if std::env::var("INGLENOOK_DISK_FAULTS").is_ok_and(|which| which == "all") { 1 } else { SHORT_STEP };
    let folder = Folder::new("disk-faults");
    let (start, before) = template("disk-faults-start");
    let mut n_rounds = 0;
    for fault in [DiskFault::Io, DiskFault::Full, DiskFault::ShortWrite, DiskFault::Flush] {
        for is_sticky in [false, true] {
            for n in (0..).step_by(step as usize) {
                copy_folder(&start.0, &folder.0);
                let mut acknowledged =
                    AcknowledgedState { texts: before.texts.clone(), ..AcknowledgedState::default() };
                fault_vfs::fail_at(fault, n, is_sticky);
                let outcome = use_session(&folder.0, &mut acknowledged);
                let n_failed = fault_vfs::mend();
                let case = format!(
                    "{fault:?} at {n}, sticky: {is_sticky}, {:?}",
                    outcome.map_err(|e| e.to_string())
                );
                check(&folder.0, &acknowledged, &case);
                n_rounds += 1;
                if n_failed == 0 {
                    break;
                }
            }
        }
    }
    println!("{n_rounds} faults, nothing acknowledged lost");
}

#[test]
fn what_was_acknowledged_survives_a_power_cut_at_any_operation() {
    let _alone = fault_vfs::lock();
    let n_cuts = std::env::var("INGLENOOK_POWER_CUTS").map_or(N_POWER_CUTS, |cuts| cuts.parse().unwrap());
    let folder = Folder::new("disk-power");
    let (start, before) = template("disk-power-start");
    copy_folder(&start.0, &folder.0);
    fault_vfs::fail_at(DiskFault::Power, u64::MAX, true);
    use_session(&folder.0, &mut AcknowledgedState::default()).unwrap();
    let n_operations = fault_vfs::n_operations();
    let (mut n_lost, mut seed) = (0, 7);
    for round in 0..n_cuts {
        copy_folder(&start.0, &folder.0);
        let mut acknowledged =
            AcknowledgedState { texts: before.texts.clone(), ..AcknowledgedState::default() };
        let at = random(&mut seed) % n_operations;
        fault_vfs::fail_at(DiskFault::Power, at, true);
        let outcome = use_session(&folder.0, &mut acknowledged);
        fault_vfs::mend();
        fault_vfs::lose_unflushed(|n_blocks| {
            // All of it, nothing, or a part.
            let kept = match random(&mut seed) % 4 {
                0 | 1 => n_blocks,
                2 => 0,
                _ => random(&mut seed) as usize % (n_blocks + 1),
            };
            n_lost += usize::from(kept < n_blocks);
            kept
        });
        let _ = std::fs::remove_file(folder.0.join("inglenook.db-shm"));
        let case = format!(
            "round {round}, power cut at {at} of {n_operations}: {:?}",
            outcome.map_err(|e| e.to_string())
        );
        check(&folder.0, &acknowledged, &case);
    }
    assert!(n_lost > 0, "something unflushed was lost");
    println!("{n_cuts} power cuts, {n_lost} unflushed changes lost, nothing acknowledged");
}
