//! kill -9 at random moments of a load: several conversations at once are written, edited, answered again, renamed,
//! deleted, searched and backed up while answers stream. What was acknowledged is there afterwards, text is at most
//! half a second behind what was seen, the database is whole, and nothing half done is left lying about.
//!
//! `INGLENOOK_KILLS=2000` (`make kill9`) does more of it, `INGLENOOK_KILL_LANES` at a time; `INGLENOOK_SEED` repeats a run.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use app::App;
use app::AppConfig;
use contract::types::{AppEvent, ExportFormat};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::kill9::{AnswerPieces, NookServer, write_model};

/// Kills without being asked for more: about half a minute.
const KILLS: u64 = 24;

/// The latest moment of a kill after the load begins.
const LATEST_MS: u64 = 1200;

/// What a killed program may lose.
const MAY_LOSE: Duration = Duration::from_millis(500);

/// Rounds whose conversations are looked at again after every later kill.
const REMEMBERED: usize = 8;

/// What was acknowledged in one conversation.
#[derive(Debug, Default, Clone)]
struct AcknowledgedState {
    /// Texts of the user's, by message.
    questions: HashMap<String, String>,
    /// A title, once a rename was acknowledged and no other was on its way.
    title: Option<String>,
    /// Acknowledged to be in the trash; wiped.
    deleted: bool,
    forgotten: bool,
    /// Something was on its way when the kill came: its outcome is open.
    open: bool,
}

#[derive(Default)]
struct Ledger {
    conversations: HashMap<String, AcknowledgedState>,
    /// Answers that were watched: message, pieces seen.
    watched: Vec<(String, String, AnswerPieces)>,
}

/// What the kills cost, all together.
#[derive(Debug, Default)]
struct Table {
    kills: u64,
    acknowledged: usize,
    lost: usize,
    behind_ms: Vec<u128>,
    damaged: usize,
    orphans: Vec<String>,
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Conversation, question and answer that a client is at.
type At = (String, String, String);

/// What a client does next.
fn choose(dice: u32, n: u32, text: &str, model: &Value, mine: Option<&At>) -> (&'static str, Value) {
    match (dice, mine) {
        (0, Some((_, question, _))) => ("message_edit", json!({ "message": question, "text": text })),
        (1, Some((_, _, answer))) => ("message_regenerate", json!({ "message": answer })),
        (2, Some((_, _, answer))) => ("message_continue", json!({ "message": answer })),
        (3, Some((id, _, _))) => ("conversation_rename", json!({ "id": id, "title": text })),
        (4, Some((id, _, _))) if n > 3 => ("conversation_delete", json!({ "id": id })),
        (5, Some((id, _, _))) if n > 3 => ("conversation_forget", json!({ "id": id })),
        (6, _) => ("search", json!({ "query": "question 1" })),
        (7, Some((_, _, answer))) => ("message_choose", json!({ "message": answer, "version": 1 })),
        (8, Some((_, _, answer))) => ("message_fork", json!({ "message": answer })),
        (_, Some((id, _, _))) => ("send", json!({ "conversation": id, "text": text, "model": model })),
        (_, None) => ("send", json!({ "text": text, "model": model })),
    }
}

/// One client: does random things until the program is gone.
fn client(serving: &NookServer, model: &Value, mut rng: StdRng, ledger: &Mutex<Ledger>, over: &AtomicBool) {
    let mut mine: Option<At> = None;
    let mut n = 0_u32;
    while !over.load(Ordering::Relaxed) {
        n += 1;
        let text = format!("Question {n} {:x}", rng.random::<u64>());
        let id = mine.as_ref().map(|(id, _, _)| id.clone());
        let begin = |id: &Option<String>| {
            if let Some(id) = id {
                ledger.lock().unwrap().conversations.entry(id.clone()).or_default().open = true;
            }
        };
        let (name, args) = choose(rng.random_range(0..12), n, &text, model, mine.as_ref());
        begin(&id);
        let Some(answer) = serving.try_call(name, &args) else { return };
        let mut book = ledger.lock().unwrap();
        if let Some(id) = &id {
            book.conversations.entry(id.clone()).or_default().open = false;
        }
        if answer.get("error").is_some() {
            // Refused: an answer is being written there, or there is nothing of the kind.
            if let Some((id, _, _)) = mine.as_ref().filter(|_| n.is_multiple_of(3)) {
                let (id, turn) = (id.clone(), turn_of(serving, id));
                drop(book);
                if let Some(turn) = turn {
                    let _ = (id, serving.try_call("turn_cancel", &json!({ "turn": turn })));
                }
            }
            continue;
        }
        match name {
            "send" | "message_edit" | "message_regenerate" | "message_continue" => {
                let part = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
                let owed = book.conversations.entry(part("conversation")).or_default();
                if name == "send" || name == "message_edit" {
                    owed.questions.insert(part("user_message"), text);
                }
                drop(book);
                mine = Some((part("conversation"), part("user_message"), part("assistant_message")));
                let for_ms = rng.random_range(20..400);
                let seen = serving.follow(&part("turn"), Duration::from_millis(for_ms));
                let mut book = ledger.lock().unwrap();
                book.watched.push((part("conversation"), part("assistant_message"), seen));
                drop(book);
                let _ = serving.try_call("turn_cancel", &json!({ "turn": part("turn") }));
            }
            "conversation_rename" => {
                book.conversations.entry(id.unwrap_or_default()).or_default().title = Some(text);
            }
            "conversation_delete" => {
                book.conversations.entry(id.unwrap_or_default()).or_default().deleted = true;
                mine = None;
            }
            "conversation_forget" => {
                book.conversations.entry(id.unwrap_or_default()).or_default().forgotten = true;
                mine = None;
            }
            _ => {}
        }
    }
}

fn turn_of(serving: &NookServer, conversation: &str) -> Option<Value> {
    let got = serving.try_call("conversation_get", &json!({ "id": conversation }))?;
    Some(got["summary"]["active_turn"].clone()).filter(Value::is_string)
}

/// The texts on every branch, by message.
fn texts(app: &App, id: &str) -> HashMap<String, String> {
    let exported = app.export(Some(id), ExportFormat::Json).map(|it| it.text).unwrap_or_default();
    let value: Value = serde_json::from_str(&exported).unwrap_or_default();
    let part = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let rows = value["conversations"][0]["messages"].as_array().cloned().unwrap_or_default();
    rows.iter().map(|row| (part(row, "id"), part(row, "text"))).collect()
}

fn check(home: &Path, ledger: &Ledger, killed_at: Instant, table: &mut Table) {
    let config = AppConfig { data_dir: Some(home.to_owned()), ..AppConfig::default() };
    let app = App::open(config).expect("it opens again");
    let mut notices = app.watch_app();
    for (id, owed) in &ledger.conversations {
        table.acknowledged += owed.questions.len() + usize::from(owed.title.is_some());
        let is_there = app.conversation_get(id);
        if owed.forgotten || owed.open && is_there.is_err() {
            table.lost += usize::from(owed.forgotten && is_there.is_ok());
            continue;
        }
        if owed.deleted {
            let trash = app.trash_list().expect("the trash can be read");
            table.lost += usize::from(!trash.iter().any(|it| it.id == *id));
            continue;
        }
        let Ok(conversation) = is_there else {
            println!("lost: conversation {id} {owed:?}");
            table.lost += 1;
            continue;
        };
        if let (Some(title), false) = (&owed.title, owed.open)
            && conversation.summary.title != *title
        {
            println!("lost: title {title:?}, there is {:?}", conversation.summary.title);
            table.lost += 1;
        }
        let messages = texts(&app, id);
        for (question, text) in &owed.questions {
            if messages.get(question) != Some(text) {
                println!("lost: {text:?} in {id}");
                table.lost += 1;
            }
        }
        for (_, message, seen) in ledger.watched.iter().filter(|(of, _, _)| of == id) {
            let saved = messages.get(message).map(String::as_str).unwrap_or_default();
            let behind = seen.behind(saved, killed_at);
            if behind > MAY_LOSE {
                println!("behind by {} ms: saved {} bytes", behind.as_millis(), saved.len());
                table.lost += 1;
            }
            table.behind_ms.push(behind.as_millis());
        }
    }
    drop(app);
    while let Some(events) = notices.next_blocking() {
        for event in events {
            if let AppEvent::Notice { error } = event {
                println!("notice: {} {}", error.code, error.message);
                table.damaged += usize::from(error.code == "session.damaged");
            }
        }
    }
    table.orphans.extend(orphans(home));
}

/// Files that are never read again.
pub fn orphans(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(orphans(&path));
        } else if name == "audit.lock" {
            // Every line of the audit log is written under this lock: the file stays, the lock does not.
        } else if [".half", ".tmp", ".part", ".new", ".lock", "-journal"]
            .iter()
            .any(|end| name.ends_with(end))
            || name.contains(".damaged-")
        {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Kills the program `n_kills` times in one data folder.
fn kill_in_turn(home: &Path, n_kills: u64, mut rng: StdRng) -> Table {
    let _ = std::fs::remove_dir_all(home);
    std::fs::create_dir_all(home).expect("a temporary folder");
    let model_path = home.join("endless.gguf");
    write_model(&model_path);
    let mut table = Table::default();
    let mut earlier: Vec<HashMap<String, AcknowledgedState>> = Vec::new();
    for _ in 0..n_kills {
        let serving = Arc::new(NookServer::start(home));
        let added = serving.call("model_add", &json!({ "path": model_path.display().to_string() }));
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let over = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..3)
            .map(|_| {
                let (serving, ledger, over) = (Arc::clone(&serving), Arc::clone(&ledger), Arc::clone(&over));
                let (model, rng) = (added["id"].clone(), StdRng::seed_from_u64(rng.random()));
                std::thread::spawn(move || client(&serving, &model, rng, &ledger, &over))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(rng.random_range(0..LATEST_MS)));
        let killed_at = Instant::now();
        serving.kill_now();
        over.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().expect("the client ends");
        }
        table.kills += 1;
        Arc::into_inner(serving).expect("the clients have ended").kill();
        let ledger = Arc::into_inner(ledger).expect("the clients have ended").into_inner().unwrap();
        check(home, &ledger, killed_at, &mut table);
        let mut again = Ledger::default();
        for round in &earlier {
            again.conversations.extend(round.clone());
        }
        let before = table.acknowledged;
        check(home, &again, killed_at, &mut table);
        table.acknowledged = before;
        earlier.push(ledger.conversations);
        if earlier.len() > REMEMBERED {
            earlier.remove(0);
        }
    }
    std::fs::remove_dir_all(home).expect("it can be removed");
    table
}

impl Table {
    fn add(&mut self, other: Self) {
        self.kills += other.kills;
        self.acknowledged += other.acknowledged;
        self.lost += other.lost;
        self.damaged += other.damaged;
        self.behind_ms.extend(other.behind_ms);
        self.orphans.extend(other.orphans);
    }

    fn print(&mut self) {
        self.behind_ms.sort_unstable();
        let at = |share: f64| {
            let index = (self.behind_ms.len() as f64 * share) as usize;
            self.behind_ms.get(index.min(self.behind_ms.len().saturating_sub(1))).copied().unwrap_or(0)
        };
        println!("kills                        {}", self.kills);
        println!("acknowledged changes         {}", self.acknowledged);
        println!("of them lost                 {}", self.lost);
        println!("text missing, ms             median {}, 99 % {}, most {}", at(0.5), at(0.99), at(1.0));
        println!("databases damaged            {}", self.damaged);
        println!("orphan files                 {}", self.orphans.len());
    }
}

#[test]
fn kills_at_random_moments_of_a_load_lose_nothing_that_was_acknowledged() {
    let (n_kills, seed) = (number("INGLENOOK_KILLS", KILLS), number("INGLENOOK_SEED", 1));
    let n_lanes = number("INGLENOOK_KILL_LANES", 1).max(1);
    let mut table = Table::default();
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..n_lanes)
            .map(|lane| {
                let name = format!("inglenook-kill9-load-{}-{lane}", std::process::id());
                let home = std::env::temp_dir().join(name);
                let n_kills = n_kills / n_lanes + u64::from(lane < n_kills % n_lanes);
                let rng = StdRng::seed_from_u64(seed.wrapping_add(lane));
                scope.spawn(move || kill_in_turn(&home, n_kills, rng))
            })
            .collect();
        for lane in lanes {
            table.add(lane.join().expect("a lane ends"));
        }
    });
    println!("seed {seed}, {n_lanes} at a time");
    table.print();
    assert!(table.acknowledged > n_kills as usize / 2, "the load did something: {table:?}");
    assert_eq!((table.lost, table.damaged), (0, 0), "{table:?}");
    assert_eq!(table.orphans, Vec::<String>::new());
}
