//! Profiles of an answer: on the processor and on a GPU, only while enabled, and without changing
//! the answer.
#![allow(clippy::unwrap_used)] // a test

use crate::common::Home;
use app::App;
use contract::types::{ProfilePhase, ProfiledAnswer, SendArgs, TurnEventKind};
use serde_json::{Value, json};

fn ask(app: &App, text: &str) -> String {
    let started = app.send(SendArgs { text: text.into(), ..SendArgs::default() }).unwrap();
    let mut said = String::new();
    for event in app.watch_turn(&started.turn, 0).unwrap().flatten() {
        match event.kind {
            TurnEventKind::Text { text, .. } => said.push_str(&text),
            TurnEventKind::Failed { error } => panic!("{error:?}"),
            _ => {}
        }
    }
    said
}

fn check(answer: &ProfiledAnswer, on_card: bool) {
    let phases: Vec<_> = answer.parts.iter().map(|part| part.phase).collect();
    assert_eq!(phases, [ProfilePhase::Reading, ProfilePhase::Writing]);
    assert_eq!((&*answer.model, answer.n_left_out), ("starter", 0));
    for part in &answer.parts {
        let share: f64 = part.rows.iter().map(|row| row.share).sum();
        assert!((share - 1.0).abs() < 1e-6, "{share}");
        let ms: f64 = part.rows.iter().map(|row| row.ms).sum();
        assert!((ms - part.ms).abs() < 1e-3 * part.ms.max(1.0), "{ms} of {}", part.ms);
        assert!(part.rows.is_sorted_by(|a, b| a.ms >= b.ms));
        for op in ["matmul", "attention"] {
            let row = part.rows.iter().find(|row| row.op == op).expect(op);
            assert!(row.calls > 0 && row.bytes > 0 && row.gb_s > Some(0.0), "{row:?}");
            assert_eq!(row.on_card, on_card, "{row:?}");
        }
        let rest = part.rows.iter().find(|row| row.op == "rest").expect("what no step took");
        assert_eq!((rest.gb_s, rest.on_card), (None, false));
    }
}

fn measured(backend: &str, on_card: bool) {
    let home = Home::new(&format!("profile-{backend}"));
    let app = home.open_as(&[("max_tokens", json!(6)), ("backend", json!(backend))]);
    let plain = ask(&app, "Hello there");
    let info = app.profile();
    assert!(!info.is_on && info.answer.is_none(), "nothing is measured unasked");
    assert_eq!(app.profile_trace(None).unwrap_err().info.code, "profile.none");

    assert!(app.profile_switch(true).is_on);
    assert_eq!(ask(&app, "Hello there"), plain, "measured, it is the same answer");
    // told before the answer's end
    let answer = app.profile().answer.expect("an answer was measured");
    check(&answer, on_card);
    let trace: Value = serde_json::from_str(&app.profile_trace(None).unwrap().text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let n_steps = events.iter().filter(|event| event["ph"] == "X" && event["cat"] != "run").count() as u64;
    let rows = answer.parts.iter().flat_map(|part| &part.rows).filter(|row| row.op != "rest");
    assert_eq!(n_steps, rows.map(|row| row.calls).sum::<u64>());
    let path = home.0.join("trace.json");
    assert!(app.profile_trace(path.to_str()).unwrap().text.is_empty());
    assert_eq!(serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()).unwrap(), trace);

    // a title may have been written since, or is being: it is no answer
    let again = ask(&app, "And now?");
    assert_ne!(app.profile().answer.expect("the last answer"), answer, "{again}");
    let off = app.profile_switch(false);
    assert!(!off.is_on && off.answer.is_none());
    ask(&app, "Hello there");
    assert!(app.profile().answer.is_none());
}

#[test]
fn the_processor_says_where_its_time_goes() {
    measured("cpu", false);
}

#[test]
fn a_card_says_so_by_its_own_clock() {
    measured("gpu", true);
}
