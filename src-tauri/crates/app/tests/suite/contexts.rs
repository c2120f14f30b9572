//! Contexts that outlive their turn: in memory, in files, shared, evicted, damaged. Answers are
//! always the same; only new tokens are computed.
#![allow(clippy::unwrap_used)] // a test

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use app::App;
use app::AppConfig;
use contract::types::{
    CheckpointArgs, CompactionStrategy, KvInfo, SendArgs, TurnEventKind, TurnStarted, TurnStats,
};
use io::{Clock, ManualClock, RealClock, RealIo};
use serde_json::json;

/// A temporary data folder, removed at the end.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("inglenook-contexts-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn open(&self) -> App {
        self.open_at(Arc::new(RealClock::new()))
    }

    fn open_at(&self, clock: Arc<dyn Clock>) -> App {
        let config = AppConfig { data_dir: Some(self.0.clone()), ..AppConfig::default() };
        let app = App::open_with(config, Arc::new(RealIo), clock).unwrap();
        for (key, value) in [("max_tokens", 8), ("temperature", 0), ("threads", 1)] {
            app.settings_set(key, &json!(value)).unwrap();
        }
        // A title that is written shares contexts too, whenever it comes.
        app.settings_set("titles", &json!(false)).unwrap();
        app.settings_set("guide_answers", &json!(false)).unwrap();
        app
    }

    /// Files of stored contexts.
    fn files(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.0.join("contexts")) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    fn stored_bytes(&self) -> u64 {
        self.files().iter().map(|path| path.metadata().unwrap().len()).sum()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a turn said and did.
#[derive(Debug, Clone)]
struct Answer {
    conversation: String,
    text: String,
    stats: TurnStats,
}

fn start(app: &App, conversation: Option<&str>, text: &str) -> TurnStarted {
    app.send(SendArgs {
        conversation: conversation.map(Into::into),
        text: text.into(),
        model: None,
        ..SendArgs::default()
    })
    .unwrap()
}

fn finish(app: &App, started: TurnStarted) -> Answer {
    let (mut said, mut stats) = (String::new(), None);
    for event in app.watch_turn(&started.turn, 0).unwrap().flatten() {
        match event.kind {
            TurnEventKind::Text { text, .. } => said.push_str(&text),
            TurnEventKind::Done { stats: done } => stats = Some(done),
            TurnEventKind::Failed { error } => panic!("{error:?}"),
            _ => {}
        }
    }
    Answer { conversation: started.conversation, text: said, stats: stats.expect("every turn ends") }
}

fn ask(app: &App, conversation: Option<&str>, text: &str) -> Answer {
    finish(app, start(app, conversation, text))
}

/// Some three hundred tokens.
fn long(seed: &str) -> String {
    (0..60).map(|i| format!("{seed} has {} apples and {} pears. ", i * 7 % 13, i * 5 % 11)).collect()
}

const QUESTIONS: [&str; 3] = ["And how many plums?", "Say it again.", "Which is more?"];

#[test]
fn after_a_restart_only_what_is_new_is_computed() {
    let (through, broken) = (Home::new("through"), Home::new("broken"));
    let app = through.open();
    let first = ask(&app, None, &long("Ann"));
    let id = Some(first.conversation.as_str());
    let expected: Vec<Answer> = QUESTIONS.iter().map(|text| ask(&app, id, text)).collect();
    let again = finish(&app, app.retry(&first.conversation).unwrap());

    let begun = ask(&broken.open(), None, &long("Ann"));
    assert_eq!(begun.text, first.text);
    let id = Some(begun.conversation.as_str());
    for (text, expected) in QUESTIONS.iter().zip(&expected) {
        let found = ask(&broken.open(), id, text);
        assert_eq!(found.text, expected.text, "{text}");
        let (found, expected) = (&found.stats, &expected.stats);
        assert_eq!(found.prompt_tokens, expected.prompt_tokens);
        assert_eq!(found.reused_tokens, expected.reused_tokens, "{text}: as if it had never stopped");
        assert!(found.reused_tokens > 300, "{found:?}");
    }
    let app = broken.open();
    let retried = finish(&app, app.retry(&begun.conversation).unwrap());
    assert_eq!(retried.text, again.text);
    assert_eq!(retried.stats.reused_tokens, again.stats.reused_tokens, "a new version");
    assert_eq!(retried.stats.reused_tokens + 1, retried.stats.prompt_tokens);
    let KvInfo { disk, files, .. } = app.kv_stats().unwrap();
    assert_eq!(disk.hit_tokens, u64::from(retried.stats.reused_tokens));
    assert!(files > 0 && disk.bytes <= broken.stored_bytes());
}

fn damage(path: &Path, how: usize) {
    let bytes = std::fs::read(path).unwrap();
    let n = bytes.len();
    let damaged = match how {
        0 => Vec::new(),
        1 => bytes[..n / 2].to_vec(),
        2 => [&bytes[..], &[0; 64]].concat(),
        _ => {
            let mut bytes = bytes;
            bytes[n * (how - 2) / 8] ^= 16;
            bytes
        }
    };
    std::fs::write(path, damaged).unwrap();
}

#[test]
fn f47_what_is_damaged_is_dropped_and_read_anew() {
    let home = Home::new("damaged");
    let first = ask(&home.open(), None, &long("Bob"));
    let id = Some(first.conversation.as_str());
    let app = home.open();
    ask(&app, id, QUESTIONS[0]);
    let expected = finish(&app, app.retry(&first.conversation).unwrap());
    drop(app);
    for how in 0..9 {
        home.files().iter().for_each(|path| damage(path, how));
        let app = home.open();
        let found = finish(&app, app.retry(&first.conversation).unwrap());
        assert_eq!(found.text, expected.text, "damage {how}");
        assert_eq!(found.stats.prompt_tokens, expected.stats.prompt_tokens);
        assert_eq!(found.stats.reused_tokens, 0, "damage {how}");
        drop(app);
        // and it is whole again
        let app = home.open();
        let found = finish(&app, app.retry(&first.conversation).unwrap());
        assert_eq!(found.text, expected.text);
        assert_eq!(found.stats.reused_tokens, expected.stats.reused_tokens, "after damage {how}");
    }
}

#[test]
fn conversations_that_begin_alike_share_what_was_computed() {
    let home = Home::new("shared");
    let app = home.open();
    let common = long("Cid");
    let first = ask(&app, None, &format!("{common} One?"));
    let second = ask(&app, None, &format!("{common} Two?"));
    assert!(second.stats.reused_tokens > 300, "{:?}", second.stats);
    let info = app.kv_stats().unwrap();
    assert_eq!(info.shared_tokens, u64::from(second.stats.reused_tokens));
    assert!(info.pages.shared > 5 && info.contexts == 2, "{info:?}");
    let files = info.files;
    drop(app);
    let alone = Home::new("alone");
    assert_eq!(ask(&alone.open(), None, &format!("{common} Two?")).text, second.text);
    // on disk: whole stretches are stored once, and found by who never saw them
    let app = home.open();
    assert!(app.kv_stats().unwrap().files <= files + 4);
    let third = ask(&app, None, &format!("{common} Three?"));
    assert!(third.stats.reused_tokens >= 256, "{:?}", third.stats);
    assert_eq!(ask(&alone.open(), None, &format!("{common} Three?")).text, third.text);
    drop(app);
    let app = home.open();
    assert_ne!(first.conversation, third.conversation);
    app.conversation_forget_contexts(&third.conversation).unwrap();
    app.conversation_forget_contexts(&second.conversation).unwrap();
    let n_left = home.files().len();
    assert!(n_left > 0, "the first needs some");
    app.conversation_forget_contexts(&first.conversation).unwrap();
    assert_eq!(home.files(), Vec::<PathBuf>::new(), "nobody needs any: {n_left} before");
}

/// A program that asks repeatedly about the same text, like an assistant with a long system prompt.
/// Over 80 of 100 tokens are reused, first from memory and after a restart from disk.
#[test]
fn repeated_prefixes_are_found() {
    let home = Home::new("workload");
    let texts = ["Jim", "Kay", "Leo"].map(long);
    for start in 0..2 {
        let app = home.open();
        for i in 0..30 {
            ask(&app, None, &format!("{} Question {i}: {}", texts[i % 3], QUESTIONS[i * 7 % 3]));
        }
        let info = app.kv_stats().unwrap();
        let (found, asked) = (info.memory.hit_tokens + info.disk.hit_tokens, info.prompt_tokens);
        println!("start {start}: {found} of {asked} tokens found, {} on disk", info.disk.hit_tokens);
        assert!(info.turns >= 30, "titles are asked for too: {info:?}");
        assert!(info.hit_rate > 0.8, "start {start}: {info:?}");
        assert!((info.hit_rate - found as f64 / asked as f64).abs() < 1e-9);
        assert!(start == 0 || info.disk.hit_tokens > 500, "{info:?}");
        for pool in [info.pages, info.window_pages, info.states, info.aged_pages] {
            assert!(
                pool.held <= pool.places && pool.shared <= pool.held && pool.fragmentation < 0.9,
                "{info:?}"
            );
        }
    }
}

#[test]
fn the_budget_holds_and_named_checkpoints_stay() {
    let home = Home::new("budget");
    let app = home.open();
    let first = ask(&app, None, &long("Dan"));
    let id = &first.conversation;
    let args = CheckpointArgs { conversation: id.clone(), name: "  before plums ".into() };
    let saved = app.checkpoint_save(&args).unwrap();
    assert_eq!((saved.name.as_str(), saved.conversation.as_str()), ("before plums", id.as_str()));
    assert!(saved.bytes > 0);
    let second = ask(&app, Some(id), QUESTIONS[0]);
    for name in ["Eve", "Fay", "Gil", "Hal"] {
        ask(&app, None, &long(name));
    }
    drop(app);
    let app = home.open();
    let before = home.stored_bytes();
    assert!(before > 3 << 20, "{before}");
    app.settings_set("context_disk", &json!(2)).unwrap();
    assert!(home.stored_bytes() <= (2 << 20).max(saved.bytes), "{} bytes", home.stored_bytes());
    assert_eq!(app.checkpoints_list(Some(id)).unwrap()[0].bytes, saved.bytes, "it stays");
    // opened, it is the end of the branch: a repeated question is another version
    app.checkpoint_restore(&saved.id).unwrap();
    assert_eq!(app.conversation_get(id).unwrap().messages.len(), 2);
    let again = ask(&app, Some(id), QUESTIONS[0]);
    assert_eq!((&again.text, again.stats.reused_tokens), (&second.text, second.stats.reused_tokens));
    assert_eq!(app.conversation_get(id).unwrap().messages[2].versions, 2);
    app.checkpoint_remove(&saved.id).unwrap();
    assert_eq!(app.checkpoint_remove(&saved.id).unwrap_err().code(), "session.not_found");
    assert_eq!(app.checkpoints_list(None).unwrap(), []);
    app.settings_set("context_disk", &json!(0)).unwrap();
    drop(app);
    let app = home.open();
    assert_eq!(home.files(), Vec::<PathBuf>::new());
    let off = ask(&app, None, &long("Ivy"));
    assert!(!off.text.is_empty());
    drop(app);
    assert_eq!(home.files(), Vec::<PathBuf>::new(), "nothing is stored where nothing may be");
}

#[test]
fn idle_contexts_leave_memory_after_their_time() {
    let home = Home::new("idle");
    let clock = Arc::new(ManualClock::new(1_800_000_000_000));
    let minutes = |n: u64| clock.advance(Duration::from_secs(n * 60));
    let app = home.open_at(clock.clone());
    app.settings_set("idle_minutes", &json!(10)).unwrap();
    // The model itself stays, however late the clock says it is while its contexts are still being stored.
    app.settings_set("idle_unload", &json!(null)).unwrap();
    let n_contexts = || app.kv_stats().unwrap().contexts;
    let first = ask(&app, None, &long("Mia"));
    minutes(9);
    ask(&app, None, &long("Ned"));
    assert_eq!(n_contexts(), 2);
    minutes(1);
    assert_eq!(n_contexts(), 1, "the first has been idle for ten");
    minutes(10);
    let info = app.kv_stats().unwrap();
    assert_eq!((info.contexts, info.pages.held), (0, 0), "{info:?}");
    let again = ask(&app, Some(&first.conversation), QUESTIONS[0]);
    assert!(again.stats.reused_tokens > 300, "it comes back from disk: {:?}", again.stats);
    app.settings_set("idle_minutes", &json!(null)).unwrap();
    ask(&app, Some(&first.conversation), QUESTIONS[1]);
    minutes(100_000);
    assert_eq!(n_contexts(), 1);
    // where nothing is stored, what is in memory is all there is
    app.settings_set("context_store_every", &json!(null)).unwrap();
    app.settings_set("idle_minutes", &json!(10)).unwrap();
    ask(&app, Some(&first.conversation), QUESTIONS[2]);
    minutes(100_000);
    assert_eq!(n_contexts(), 1);
}

#[test]
fn f49_what_an_interrupted_write_left_is_swept() {
    let home = Home::new("swept");
    let first = ask(&home.open(), None, "Hello");
    let n_files = home.files().len();
    assert!(n_files > 0);
    for name in [".0123.kv.77-1.tmp", "00ff.kv", "notes.txt"] {
        std::fs::write(home.0.join("contexts").join(name), b"orphan").unwrap();
    }
    let app = home.open();
    assert_eq!(home.files().len(), n_files);
    assert!(ask(&app, Some(&first.conversation), "And?").stats.reused_tokens > 0);
}

/// A stored context is longer than the model now takes. Old messages are left out with a notice, and the rest is
/// computed again.
#[test]
fn f48_a_context_that_has_become_too_long_is_trimmed_and_read_again() {
    let home = Home::new("shorter");
    let app = home.open();
    let first = ask(&app, None, &long("Oda"));
    let id = first.conversation.as_str();
    ask(&app, Some(id), QUESTIONS[0]);
    drop(app);
    let app = home.open();
    app.settings_set("context", &json!(256)).unwrap();
    app.conversation_set_compression(id, Some(CompactionStrategy::Window)).unwrap();
    let started = start(&app, Some(id), QUESTIONS[1]);
    let events: Vec<_> =
        app.watch_turn(&started.turn, 0).unwrap().flatten().map(|event| event.kind).collect();
    assert!(events.iter().any(|kind| matches!(kind, TurnEventKind::Compacted { .. })), "{events:?}");
    let Some(TurnEventKind::Done { stats }) = events.last() else { panic!("{events:?}") };
    assert!(stats.prompt_tokens < 256 && stats.context_limit == 256, "{stats:?}");
    assert_eq!(app.conversation_get(id).unwrap().messages.len(), 6, "the chat itself is whole");
}

/// Several at once, with little memory and distinct prompts: every answer is what it would be
/// alone.
#[test]
fn nothing_leaks_from_one_conversation_into_another() {
    const N: usize = 32;
    let canary = |i: usize| format!("zq{}x{}", i * 7919 % 1000, i);
    let asked = |i: usize, round: usize| match round {
        0 => format!("My word is {}. Remember it. {}", canary(i), QUESTIONS[i % 3]),
        _ => format!("{} Round {round}.", QUESTIONS[(i + round) % 3]),
    };
    let home = Home::new("many");
    let mut ids: Vec<Option<String>> = vec![None; N];
    let mut texts = vec![Vec::new(); N];
    for round in 0..3 {
        // a new start between rounds, and contexts have to leave memory all the time
        let app = home.open();
        app.settings_set("idle_memory", &json!(1)).unwrap();
        // and all of them together have little
        app.settings_set("context_memory", &json!(if round == 1 { 1 } else { 64 })).unwrap();
        let turns: Vec<_> = (0..N)
            .map(|at| (at * 13 + round) % N)
            .map(|i| (i, start(&app, ids[i].as_deref(), &asked(i, round))))
            .collect();
        for (i, turn) in turns {
            let answer = finish(&app, turn);
            ids[i] = Some(answer.conversation.clone());
            texts[i].push(answer.text);
        }
    }
    let alone = Home::new("one");
    let app = alone.open();
    app.settings_set("context_store_every", &json!(null)).unwrap();
    for (i, found) in texts.iter().enumerate() {
        let mut id: Option<String> = None;
        for (round, found) in found.iter().enumerate() {
            let answer = ask(&app, id.as_deref(), &asked(i, round));
            assert_eq!(answer.text, *found, "conversation {i}, round {round}");
            for other in (0..N).filter(|&other| other != i) {
                assert!(!found.contains(&canary(other)), "{i} says the word of {other}: {found}");
            }
            id = Some(answer.conversation);
        }
        app.conversation_delete(&id.unwrap()).unwrap();
    }
}
