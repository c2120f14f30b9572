//! Many chats at once with one model: no chat sees another's words, whatever is shared, cached, cancelled, evicted and
//! read back. Each chat has a canary; each answer is the one that the chat gets alone, from as many tokens of prompt.
//!
//! `INGLENOOK_ISOLATION_TURNS=500` (`make isolation`) does more of it; `INGLENOOK_SEED` repeats a run.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};

use app::{App, AppConfig};
use contract::types::{Finish, TurnEventKind};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

const N_CHATS: usize = 32;
/// Turns of each chat without being asked for more.
const N_TURNS: usize = 3;
/// Clients at once.
const N_CLIENTS: usize = 8;
/// Turns after which a client begins another chat: a full context is another test's.
const TURNS_OF_CHAT: usize = 6;
/// Turns of all chats after which everything is closed and opened again.
const TURNS_OF_PROGRAM: usize = 48;

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn canary(chat: usize) -> String {
    format!("ZQ{chat:02}X{:04}", (chat * 7919 + 1234) % 10_000)
}

fn question(chat: usize, turn: usize) -> String {
    let (a, b) = ((chat * 7 + turn) % 50, (turn * 3 + chat) % 50);
    // Half of the chats begin alike, so that they share what was computed.
    let shared = if chat.is_multiple_of(2) { "Let us talk about models and their files. " } else { "" };
    format!("{shared}My code is {}. How many are {a} and {b}?", canary(chat))
}

fn open(folder: &Path, settings: &[(&str, Value)]) -> App {
    let app =
        App::open(AppConfig { data_dir: Some(folder.to_owned()), ..AppConfig::default() }).expect("it opens");
    let usual = [("max_tokens", json!(8)), ("temperature", json!(0)), ("threads", json!(1))];
    let quiet = [("titles", json!(false)), ("guide_answers", json!(false)), ("audit_log", json!(false))];
    for (key, value) in usual.iter().chain(&quiet).chain(settings) {
        app.settings_set(key, value).unwrap_or_else(|error| panic!("{key}: {error:?}"));
    }
    app
}

/// An answer, and the tokens of its prompt.
#[derive(Debug, Clone, PartialEq)]
struct Answer {
    text: String,
    n_prompt: u32,
    n_reused: u32,
    is_whole: bool,
}

/// What is known of a chat so far.
#[derive(Debug, Clone, Default)]
struct ChatState {
    conversation: Option<String>,
    n_turns: usize,
    is_busy: bool,
}

/// The arguments of a message to a chat, or to a new one.
fn message(conversation: Option<&str>, text: &str) -> Value {
    json!({ "conversation": conversation, "text": text, "model": "starter" })
}

/// Begins a turn by this call and follows it. `cancel_after`: pieces of text after which it is cancelled.
fn ask(app: &App, call: &str, args: Value, cancel_after: Option<usize>) -> (Value, Answer) {
    let started = app.call(call, args).unwrap_or_else(|error| panic!("{error:?}"));
    let turn = started["turn"].as_str().expect("a turn").to_owned();
    if cancel_after == Some(0) {
        let _ = app.turn_cancel(&turn);
    }
    let (mut said, mut n_pieces, mut stats) = (String::new(), 0, None);
    for event in app.watch_turn(&turn, 0).expect("it is known").flatten() {
        match event.kind {
            TurnEventKind::Text { text, .. } => {
                said.push_str(&text);
                n_pieces += 1;
                if cancel_after == Some(n_pieces) {
                    // It may have ended just now.
                    let _ = app.turn_cancel(&turn);
                }
            }
            TurnEventKind::Done { stats: done } => stats = Some(done),
            TurnEventKind::Failed { error } => panic!("{error:?}"),
            _ => {}
        }
    }
    let stats = stats.expect("every turn ends");
    let answer = Answer {
        text: said,
        n_prompt: stats.prompt_tokens,
        n_reused: stats.reused_tokens,
        is_whole: stats.finish != Finish::Cancelled,
    };
    (started, answer)
}

/// What all clients share.
struct IsolationBench {
    folder: PathBuf,
    /// Replaced where everything is closed and opened again.
    app: RwLock<Option<App>>,
    chats: Mutex<Vec<ChatState>>,
    answers: Mutex<HashMap<(usize, usize), Answer>>,
    n_done: AtomicU64,
    n_cancelled: AtomicU64,
    n_evicted: AtomicU64,
    n_reopened: AtomicU64,
    n_turns: usize,
}

impl IsolationBench {
    /// A chat without a client that has turns left.
    fn take(&self, rng: &mut StdRng) -> Option<Option<(usize, ChatState)>> {
        let mut chats = self.chats.lock().unwrap();
        if chats.iter().all(|chat| chat.n_turns >= self.n_turns) {
            return None;
        }
        let free: Vec<usize> =
            (0..N_CHATS).filter(|at| !chats[*at].is_busy && chats[*at].n_turns < self.n_turns).collect();
        if free.is_empty() {
            return Some(None);
        }
        let at = free[rng.random_range(0..free.len())];
        chats[at].is_busy = true;
        Some(Some((at, chats[at].clone())))
    }

    fn client(&self, mut rng: StdRng) {
        while let Some(taken) = self.take(&mut rng) {
            let Some((at, mut chat)) = taken else {
                std::thread::yield_now();
                continue;
            };
            {
                let app = self.app.read().unwrap();
                let app = app.as_ref().expect("it is open between turns");
                self.turn(app, at, &mut chat, &mut rng);
            }
            chat.is_busy = false;
            self.chats.lock().unwrap()[at] = chat;
            let n_done = self.n_done.fetch_add(1, Ordering::SeqCst) + 1;
            if n_done.is_multiple_of(TURNS_OF_PROGRAM as u64) {
                // Waits until no turn runs: contexts are read back from their files then.
                let mut app = self.app.write().unwrap();
                drop(app.take());
                *app = Some(open(&self.folder, &[]));
                self.n_reopened.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    fn turn(&self, app: &App, at: usize, chat: &mut ChatState, rng: &mut StdRng) {
        if chat.n_turns.is_multiple_of(TURNS_OF_CHAT) {
            chat.conversation = None;
        }
        let text = question(at, chat.n_turns);
        let id = chat.conversation.as_deref();
        let mut next = ("send", message(id, &text));
        // Another question, whose answer is cancelled; then the question takes its place.
        if id.is_some() && rng.random_bool(0.2) {
            let other = format!("Forget the code {}.", canary(at));
            let (started, _) = ask(app, "send", message(id, &other), Some(rng.random_range(0..4)));
            next = ("message_edit", json!({ "message": started["user_message"], "text": text }));
            self.n_cancelled.fetch_add(1, Ordering::SeqCst);
        }
        if let (Some(id), true) = (id, rng.random_bool(0.1)) {
            app.conversation_forget_contexts(id).expect("it is only a cache");
            self.n_evicted.fetch_add(1, Ordering::SeqCst);
        }
        let (started, answer) = ask(app, next.0, next.1, None);
        assert!(answer.is_whole);
        chat.conversation = started["conversation"].as_str().map(str::to_owned);
        self.answers.lock().unwrap().insert((at, chat.n_turns), answer);
        chat.n_turns += 1;
    }
}

/// Each chat alone, with nothing kept from one turn to the next.
fn alone(folder: &Path, n_turns: usize) -> HashMap<(usize, usize), Answer> {
    let nothing_kept = [("idle_memory", json!(0)), ("context_disk", json!(0))];
    let app = open(folder, &nothing_kept);
    let mut answers = HashMap::new();
    for chat in 0..N_CHATS {
        let mut conversation: Option<String> = None;
        for turn in 0..n_turns {
            if turn.is_multiple_of(TURNS_OF_CHAT) {
                conversation = None;
            }
            let args = message(conversation.as_deref(), &question(chat, turn));
            let (started, answer) = ask(&app, "send", args, None);
            conversation = started["conversation"].as_str().map(str::to_owned);
            answers.insert((chat, turn), answer);
        }
    }
    answers
}

#[test]
fn chats_at_once_never_see_each_others_words() {
    let n_turns = number("INGLENOOK_ISOLATION_TURNS", N_TURNS);
    let seed = number("INGLENOOK_SEED", 1) as u64;
    let folder = std::env::temp_dir().join(format!("inglenook-isolation-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let together = folder.join("together");
    let bench = IsolationBench {
        app: RwLock::new(Some(open(&together, &[]))),
        folder: together,
        chats: Mutex::new(vec![ChatState::default(); N_CHATS]),
        answers: Mutex::default(),
        n_done: AtomicU64::new(0),
        n_cancelled: AtomicU64::new(0),
        n_evicted: AtomicU64::new(0),
        n_reopened: AtomicU64::new(0),
        n_turns,
    };
    std::thread::scope(|scope| {
        for client in 0..N_CLIENTS {
            let rng = StdRng::seed_from_u64(seed.wrapping_mul(1000).wrapping_add(client as u64));
            let bench = &bench;
            scope.spawn(move || bench.client(rng));
        }
    });
    drop(bench.app.write().unwrap().take());
    let expected = alone(&folder.join("alone"), n_turns);
    let answers = bench.answers.into_inner().unwrap();
    assert_eq!(answers.len(), N_CHATS * n_turns);
    let (mut n_foreign, mut n_other, mut n_reused) = (0, 0, 0_u64);
    for ((chat, turn), answer) in &answers {
        let is_foreign = |other: usize| other != *chat && answer.text.contains(&canary(other));
        n_foreign += usize::from((0..N_CHATS).any(is_foreign));
        let expected = &expected[&(*chat, *turn)];
        if (&answer.text, answer.n_prompt) != (&expected.text, expected.n_prompt) {
            println!("chat {chat}, turn {turn}: {answer:?} instead of {expected:?}");
            n_other += 1;
        }
        n_reused += u64::from(answer.n_reused);
    }
    println!(
        "seed {seed}: {N_CHATS} chats, {} turns by {N_CLIENTS} clients; {} cancelled, {} evicted, {} times read back; \
         {n_reused} tokens reused: {n_foreign} foreign canaries, {n_other} answers that are not those of the chat alone",
        answers.len(),
        bench.n_cancelled.into_inner(),
        bench.n_evicted.into_inner(),
        bench.n_reopened.into_inner(),
    );
    assert_eq!((n_foreign, n_other), (0, 0));
    assert!(n_reused > 0, "contexts are reused");
    std::fs::remove_dir_all(&folder).expect("it can be removed");
}
