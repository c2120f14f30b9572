//! Fine-tuning of the starter model: previewed, run, paused, resumed, ended early, answering, removed.
#![allow(clippy::unwrap_used)] // a test

use crate::common::Home;
use app::App;
use contract::types::{
    AppEvent, ModelState, SendArgs, TuneArgs, TuneChats, TuneData, TuneInfo, TuneLeftOut, TuneLeftOutReason,
    TuneState, TurnEventKind,
};
use serde_json::json;

fn open(home: &Home) -> App {
    home.open_as(&[("max_tokens", json!(4)), ("context", json!(512)), ("titles", json!(false))])
}

fn args(name: &str, epochs: u32) -> TuneArgs {
    let words = ["red", "blue", "green", "white", "black", "brown", "grey", "pink"];
    let pair = |word: &&str| format!("\"What is {word}?\",\"Arr, {word} be a colour.\"\n");
    let text: String = words.iter().map(pair).collect();
    TuneArgs {
        model: "starter".into(),
        name: name.into(),
        data: TuneData::Text { name: "pirate.csv".into(), text: format!("{text}alone\n") },
        rank: Some(2),
        alpha: None,
        lr: Some(0.01),
        epochs: Some(epochs),
        max_tokens: Some(64),
        step_examples: Some(4),
        seed: None,
    }
}

/// Waits for a state of a run.
fn wait_for(app: &App, id: &str, is_it: impl Fn(&TuneInfo) -> bool) -> TuneInfo {
    let events = app.watch_app();
    let now = app.tune_get(id).unwrap().info;
    if is_it(&now) {
        return now;
    }
    for event in events.flatten() {
        if let AppEvent::TuneChanged { tune } = event
            && tune.id == id
        {
            assert!(!matches!(tune.state, TuneState::Failed { .. }), "{tune:?}");
            if is_it(&tune) {
                return tune;
            }
        }
    }
    panic!("the application ended");
}

fn is_done(tune: &TuneInfo) -> bool {
    matches!(tune.state, TuneState::Done { .. })
}

#[test]
fn a_model_learns_and_answers_under_its_name() {
    let home = Home::new("tune");
    let app = open(&home);
    let preview = app.tune_preview(&args("pirate", 2)).unwrap();
    assert_eq!((preview.examples, preview.held_out, preview.n_skipped, preview.steps), (7, 1, 1, 4));
    assert_eq!(preview.skipped[0].line, 9);
    let learned: String =
        preview.first[0].pieces.iter().filter(|it| it.is_learned).map(|it| it.text.as_str()).collect();
    assert!(learned.contains("Arr, "), "{learned}");
    assert!(!learned.contains("What is"), "{learned}");
    assert!(preview.learned_tokens < preview.tokens && preview.seconds > 0.0 && preview.memory_bytes > 0);
    assert!(app.tunes_list().unwrap().is_empty(), "a preview stores nothing");

    app.tune_start(&args("pirate", 2)).unwrap();
    let done = wait_for(&app, "pirate", is_done);
    assert_eq!(done.tuned.as_deref(), Some("starter+pirate"));
    let details = app.tune_get("pirate").unwrap();
    assert_eq!(details.steps.iter().map(|it| it.step).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let TuneState::Done { report } = details.info.state else { panic!() };
    assert!(report.after.unwrap() < report.before.unwrap(), "{report:?}");
    let [answers] = &details.answers[..] else { panic!("one is held out: {:?}", details.answers) };
    assert!(answers.prompt.starts_with("What is "), "{answers:?}");
    assert!(answers.expected.starts_with("Arr, "), "{answers:?}");
    assert!(!answers.base.is_empty() && !answers.tuned.is_empty(), "{answers:?}");

    let tuned = app.model_get("starter+pirate").unwrap();
    assert_eq!(tuned.state, ModelState::Unloaded);
    let ask = |model: &str| {
        let args = SendArgs { text: "Hi".into(), model: Some(model.into()), ..SendArgs::default() };
        let turn = app.send(args).unwrap().turn;
        let events: Vec<_> = app.watch_turn(&turn, 0).unwrap().flatten().collect();
        assert!(matches!(events.last().unwrap().kind, TurnEventKind::Done { .. }), "{events:?}");
    };
    ask("starter+pirate");
    assert_eq!(app.model_get("starter+pirate").unwrap().state, ModelState::Ready);
    assert_eq!(app.tune_start(&args("pirate", 1)).unwrap_err().code(), "tune.name_taken");
    let again = TuneArgs { model: "starter+pirate".into(), ..args("more", 1) };
    assert_eq!(app.tune_start(&again).unwrap_err().code(), "tune.tuned");
    assert_eq!(app.model_remove("starter+pirate").unwrap_err().code(), "model.tuned");

    app.tune_remove("pirate").unwrap();
    assert_eq!(app.tune_get("pirate").unwrap_err().code(), "tune.not_found");
    assert_eq!(app.model_get("starter+pirate").unwrap_err().code(), "model.unknown");
    ask("starter");
}

#[test]
fn a_run_is_paused_resumed_and_ended() {
    let home = Home::new("tune-pause");
    let app = open(&home);
    let has_step = |n: u64| move |tune: &TuneInfo| tune.last.is_some_and(|step| step.step >= n);
    app.tune_start(&args("long", 100)).unwrap();
    assert_eq!(app.tune_start(&args("second", 1)).unwrap_err().code(), "tune.busy");
    wait_for(&app, "long", has_step(2));
    assert_eq!(app.tune_pause("long").unwrap().state, TuneState::Paused);
    let n_paused = app.tune_get("long").unwrap().steps.len() as u64;
    // The end of the application only pauses a run, too.
    app.tune_resume("long").unwrap();
    wait_for(&app, "long", has_step(n_paused + 1));
    drop(app);
    let app = open(&home);
    let paused = app.tune_get("long").unwrap();
    assert_eq!(paused.info.state, TuneState::Paused);
    let numbers: Vec<u64> = paused.steps.iter().map(|it| it.step).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "each step once");
    app.tune_stop("long").unwrap();
    let done = wait_for(&app, "long", is_done);
    let TuneState::Done { report } = done.state else { panic!() };
    assert_eq!(report.steps, numbers.len() as u64);
    // Ending what has ended changes nothing.
    assert_eq!(app.tune_stop("long").unwrap().state, TuneState::Done { report });
    assert_eq!(app.tune_resume("long").unwrap_err().code(), "tune.complete");
}

#[test]
fn chats_are_data_and_bad_data_is_refused() {
    let home = Home::new("tune-data");
    let app = open(&home);
    let from = |data| TuneArgs { data, ..args("x", 1) };
    let code = |args: &TuneArgs| app.tune_preview(args).unwrap_err().code().to_owned();
    assert_eq!(code(&from(TuneData::Chats { ids: Vec::new() })), "tune.no_chats");
    let text = TuneData::Text { name: "a.jsonl".into(), text: "{}".into() };
    assert_eq!(code(&from(text)), "tune.no_examples");
    assert_eq!(app.tune_start(&args("a/b", 1)).unwrap_err().code(), "tune.name");
    assert_eq!(code(&TuneArgs { max_tokens: Some(1), ..args("x", 1) }), "tune.seq");
    assert_eq!(code(&TuneArgs { model: "none".into(), ..args("x", 1) }), "model.unknown");

    let started = app.send(SendArgs { text: "Tell me.".into(), ..SendArgs::default() }).unwrap();
    app.watch_turn(&started.turn, 0).unwrap().flatten().for_each(drop);
    app.answer_edit(&started.assistant_message, "Edited by hand.").unwrap();
    let preview = app.tune_preview(&from(TuneData::Chats { ids: vec![started.conversation] })).unwrap();
    let replaced = TuneLeftOut { reason: TuneLeftOutReason::Replaced, count: 1 };
    assert_eq!(preview.chats, Some(TuneChats { chats: 1, answers: 1, left_out: vec![replaced] }));
    let learned: String =
        preview.first[0].pieces.iter().filter(|it| it.is_learned).map(|it| it.text.as_str()).collect();
    assert!(learned.contains("Edited by hand."), "{learned}");

    // Chats in the trash are none of all chats.
    let second = app.send(SendArgs { text: "And you?".into(), ..SendArgs::default() }).unwrap();
    app.watch_turn(&second.turn, 0).unwrap().flatten().for_each(drop);
    app.answer_edit(&second.assistant_message, "In the trash.").unwrap();
    app.conversation_delete(&second.conversation).unwrap();
    let all = from(TuneData::Chats { ids: Vec::new() });
    assert_eq!(app.tune_preview(&all).unwrap().chats.unwrap().chats, 1);
    let run = app.tune_start(&all).unwrap();
    assert_eq!((run.data.as_str(), run.chats), ("", Some(1)));
}
