//! Limits of turns through the application: each refuses or ends what it should, and names the
//! setting that raises it.
#![allow(clippy::unwrap_used)] // a test

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use app::App;
use app::AppConfig;
use app::GenerateArgs;
use app::Overrides;
use app::SamplingArgs;
use contract::Error;
use contract::limits::LimitPreset;
use contract::protocol::{Backend, Prompt, PromptMessage};
use contract::types::{Finish, SendArgs, TurnEventKind, TurnStats};
use io::{Clock, RealClock, RealIo};
use serde_json::json;

/// A clock that goes eight times as fast.
struct Hasty(RealClock);

impl Clock for Hasty {
    fn now_utc_ms(&self) -> i64 {
        self.0.now_utc_ms()
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic() * 8
    }
}

/// A clock that is put forward by hand.
struct AdvancedClock(RealClock, AtomicU64);

impl Clock for AdvancedClock {
    fn now_utc_ms(&self) -> i64 {
        self.0.now_utc_ms()
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic() + Duration::from_secs(self.1.load(Ordering::Relaxed))
    }
}

/// A wall clock that is far off. (`faketime` needs `FAKETIME_DONT_FAKE_MONOTONIC=1`: it hands out another monotonic
/// time than the one by which the system wakes threads, so that every program with timeouts waits for years.)
struct WrongDateClock(RealClock, i64);

impl Clock for WrongDateClock {
    fn now_utc_ms(&self) -> i64 {
        self.1
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }
}

/// A temporary data folder, removed at the end.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("inglenook-limits-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn config(&self, overrides: Overrides) -> AppConfig {
        AppConfig { data_dir: Some(self.0.clone()), overrides, ..AppConfig::default() }
    }

    fn open(&self, preset: Option<LimitPreset>) -> App {
        let app = App::open(self.config(Overrides { preset, ..Overrides::default() })).unwrap();
        app.settings_set("threads", &json!(1)).unwrap();
        app.settings_set("guide_answers", &json!(false)).unwrap();
        app
    }

    /// With the given clock, and kernels that are slow everywhere.
    fn open_by(&self, clock: Arc<dyn Clock>) -> App {
        let overrides = Overrides { backend: Some(Backend::Scalar), ..Overrides::default() };
        let app = App::open_with(self.config(overrides), Arc::new(RealIo), clock).unwrap();
        app.settings_set("threads", &json!(1)).unwrap();
        app.settings_set("guide_answers", &json!(false)).unwrap();
        app
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn args(prompt: Prompt, max_tokens: Option<usize>) -> GenerateArgs {
    GenerateArgs {
        model: None,
        prompt,
        sampling: SamplingArgs { temperature: Some(0.0), ..SamplingArgs::default() },
        max_tokens,
        stop: Vec::new(),
        ignore_eos: true,
        chat: Default::default(),
        constraint: None,
        logprobs: None,
    }
}

fn raw(text: &str) -> Prompt {
    Prompt::Raw(text.into())
}

/// Runs a turn to its end; returns the result and its reported queue positions.
fn end(app: &App, turn: &str) -> (Result<TurnStats, Error>, Vec<u32>) {
    let mut positions = Vec::new();
    for event in app.watch_turn(turn, 0).unwrap().flatten() {
        match event.kind {
            TurnEventKind::Queued { position } => positions.push(position),
            TurnEventKind::Done { stats } => return (Ok(stats), positions),
            TurnEventKind::Failed { error } => return (Err(error.into()), positions),
            _ => {}
        }
    }
    panic!("every turn ends")
}

fn refused(outcome: Result<impl std::fmt::Debug, Error>, code: &str) {
    let error = outcome.unwrap_err();
    assert_eq!(error.code(), code, "{error:?}");
    assert_eq!(error.kind.exit_code(), 4);
    assert!(error.remedy().contains("nook settings set limit_"), "{error:?}");
}

#[test]
fn the_bounded_preset_holds_at_each_of_its_limits() {
    let home = Home::new("preset");
    let app = home.open(Some(LimitPreset::Bounded));
    let many = "word ".repeat(2000);
    refused(app.generate(args(raw(&"x".repeat(10_001)), None)), "limit.characters");
    let text = many.clone() + "end of this";
    refused(app.send(SendArgs { text, ..SendArgs::default() }), "limit.characters");
    assert_eq!(app.conversations_list().unwrap().len(), 0, "nothing was saved");
    let (outcome, _) = end(&app, &app.generate(args(Prompt::Ids(vec![5; 2049]), None)).unwrap());
    refused(outcome, "limit.prompt_tokens");
    let (outcome, _) = end(&app, &app.generate(args(raw("Hello"), Some(100_000))).unwrap());
    let stats = outcome.unwrap();
    assert_eq!((stats.finish, stats.generated_tokens), (Finish::Length, 512));
}

#[test]
fn f54_a_wrong_clock_keeps_nobody_from_an_answer() {
    // before the build, before 1970, after 2038
    for (name, ms) in [("2001", 978_350_400_000), ("1969", -172_800_000), ("2040", 2_212_358_400_000)] {
        let home = Home::new(name);
        let app = home.open_by(Arc::new(WrongDateClock(RealClock::new(), ms)));
        app.settings_set("max_tokens", &json!(4)).unwrap();
        let sent = app.send(SendArgs { text: "Hello".into(), ..SendArgs::default() }).unwrap();
        assert!(end(&app, &sent.turn).0.is_ok(), "{name}");
        assert_eq!(app.conversations_list().unwrap().len(), 1, "{name}");
    }
}

#[test]
fn a_message_that_is_far_too_long_is_refused_before_it_is_read() {
    let home = Home::new("overlong");
    let app = home.open(None);
    let content = "Hello world, this is a test. ".repeat(150_000);
    let message = PromptMessage { role: "user".into(), content, ..PromptMessage::default() };
    let (outcome, _) = end(&app, &app.generate(args(Prompt::Chat(vec![message]), None)).unwrap());
    let error = outcome.unwrap_err();
    assert_eq!(error.code(), "request.context_full");
    assert!(error.message().starts_with("This chat needs about "), "{error}");
    let about: f64 = error.message().split(' ').nth(4).unwrap().parse().unwrap();
    // nine tokens each, as `nook tokenize` counts them
    assert!((about / (150_000.0 * 9.0) - 1.0).abs() < 0.1, "{about}");
}

#[test]
fn f68_settings_are_limits_too_and_the_queue_is_seen_and_bounded() {
    let home = Home::new("queue");
    let app = home.open(None);
    for (key, value) in [("limit_concurrent", 2), ("limit_waiting", 3), ("limit_answer_tokens", 150)] {
        app.settings_set(key, &json!(value)).unwrap();
    }
    // Turns whose model is being loaded wait too.
    let first = app.generate(args(raw("Tell me"), Some(1))).unwrap();
    app.watch_turn(&first, 0).unwrap().for_each(drop);
    let turns: Vec<String> = (0..5).map(|_| app.generate(args(raw("Tell me"), None)).unwrap()).collect();
    refused(app.generate(args(raw("Tell me"), None)), "limit.turns");
    let ends: Vec<_> = turns.iter().map(|turn| end(&app, turn)).collect();
    for (index, (outcome, positions)) in ends.into_iter().enumerate() {
        assert_eq!(outcome.unwrap().generated_tokens, 150);
        let waited: Vec<u32> = positions.into_iter().filter(|&position| position > 0).collect();
        // two at once: the others wait, each behind one more
        let first = (index as u32).checked_sub(1).filter(|&first| first > 0);
        assert_eq!(waited.first().copied(), first, "turn {index}");
        assert!(waited.is_sorted_by(|a, b| a > b), "{waited:?}");
    }
    app.generate(args(raw("Tell me"), Some(1))).unwrap();
}

#[test]
fn an_answer_whose_time_was_up_goes_on() {
    let home = Home::new("goes-on");
    let clock = Arc::new(AdvancedClock(RealClock::new(), AtomicU64::new(0)));
    let app = home.open_by(clock.clone());
    end(&app, &app.generate(args(raw("Hello"), Some(1))).unwrap()).0.unwrap();
    app.settings_set("temperature", &json!(0.0)).unwrap();
    app.settings_set("limit_seconds", &json!(600)).unwrap();
    let text = "Count from one to a thousand, in words".to_owned();
    let started = app.send(SendArgs { text, ..SendArgs::default() }).unwrap();
    let mut events = app.watch_turn(&started.turn, 0).unwrap().flatten();
    assert!(events.any(|event| matches!(event.kind, TurnEventKind::Text { .. })));
    clock.1.store(600, Ordering::Relaxed);
    assert_eq!(end(&app, &started.turn).0.unwrap().finish, Finish::TimeUp);
    let answer = || app.conversation_get(&started.conversation).unwrap().messages.swap_remove(1).text;
    let cut = answer();
    app.settings_set("limit_seconds", &json!(null)).unwrap();
    app.settings_set("max_tokens", &json!(2)).unwrap();
    let more = app.message_continue(&started.assistant_message).unwrap();
    assert_eq!(end(&app, &more.turn).0.unwrap().generated_tokens, 2);
    assert!(answer().starts_with(cut.trim_end_matches('\u{fffd}')) && answer().len() > cut.len());
}

#[test]
fn f69_time_is_a_limit_for_answers_and_for_those_who_wait() {
    let home = Home::new("time");
    // Two of its seconds are long enough for a token on any machine, and too short for a context full of them.
    let app = home.open_by(Arc::new(Hasty(RealClock::new())));
    // so that the model is there
    end(&app, &app.generate(args(raw("Hello"), Some(1))).unwrap()).0.unwrap();
    app.settings_set("limit_seconds", &json!(2)).unwrap();
    app.settings_set("limit_concurrent", &json!(1)).unwrap();
    let endless = app.generate(args(raw("Tell me all"), None)).unwrap();
    // who waits must not get a turn before its own time is up
    app.settings_set("limit_seconds", &json!(1)).unwrap();
    let waiting = app.generate(args(raw("And me"), None)).unwrap();
    let stats = end(&app, &endless).0.unwrap();
    assert_eq!(stats.finish, Finish::TimeUp);
    assert!(stats.generated_tokens > 0, "what was written stays");
    refused(end(&app, &waiting).0, "limit.seconds");
}
