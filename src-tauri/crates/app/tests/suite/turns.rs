//! The application over a real database and the starter model: turns, replay, cancel, settings, library.
#![allow(clippy::unwrap_used)] // a test

use crate::common::Home;
use app::App;
use app::GenerateArgs;
use app::SamplingArgs;
use contract::protocol::Prompt;
use contract::types::{
    AppEvent, DraftArgs, Finish, MessageState, ModelState, Role, SendArgs, TurnEvent, TurnEventKind,
    TurnStarted,
};
use serde_json::{Value, json};

fn send(app: &App, conversation: Option<&str>, text: &str) -> TurnStarted {
    app.send(SendArgs {
        conversation: conversation.map(Into::into),
        text: text.into(),
        model: None,
        ..SendArgs::default()
    })
    .unwrap()
}

fn all(app: &App, turn: &str) -> Vec<TurnEvent> {
    app.watch_turn(turn, 0).unwrap().flatten().collect()
}

fn text(events: &[TurnEvent]) -> String {
    let texts = events.iter().filter_map(|event| match &event.kind {
        TurnEventKind::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn a_question_is_answered_saved_and_replayed() {
    let home = Home::new("answer");
    let app = home.open();
    let changes = app.watch_app();
    let started = send(&app, None, "How do I add a model?");
    let events = all(&app, &started.turn);
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>(), "no gaps");
    assert!(matches!(events[0].kind, TurnEventKind::Queued { position: 0 }));
    assert!(events.iter().any(|event| matches!(event.kind, TurnEventKind::Loading { .. })));
    let last = &events.last().unwrap().kind;
    let TurnEventKind::Done { stats } = last else { panic!("{last:?}") };
    assert!(stats.prompt_tokens > 0 && stats.generated_tokens > 0 && stats.ttft_ms > 0.0, "{stats:?}");
    assert_eq!(all(&app, &started.turn), events, "replayed");
    let rest: Vec<_> = app.watch_turn(&started.turn, 3).unwrap().flatten().collect();
    assert_eq!(rest, events[3..]);

    let conversation = app.conversation_get(&started.conversation).unwrap();
    assert_eq!(conversation.summary.title, "How do I add a model?");
    assert_eq!(conversation.summary.active_turn, None);
    assert_eq!(conversation.messages.len(), 2);
    let answer = &conversation.messages[1];
    assert_eq!((answer.role, answer.state), (Role::Assistant, MessageState::Complete));
    assert_eq!(answer.text, text(&events));
    assert_eq!(answer.stats.as_ref(), Some(stats));
    drop(app);
    let told: Vec<_> = changes.flatten().collect();
    let ready = |event: &AppEvent| matches!(event, AppEvent::ModelChanged { model } if model.state == ModelState::Ready);
    assert!(told.iter().any(ready));

    let app = home.open();
    assert_eq!(app.conversation_get(&started.conversation).unwrap().messages, conversation.messages);
}

#[test]
fn a_second_question_reuses_what_was_computed() {
    let home = Home::new("reuse");
    let app = home.open();
    let first = send(&app, None, "Hello");
    all(&app, &first.turn);
    let second = send(&app, Some(&first.conversation), "And then?");
    let events = all(&app, &second.turn);
    let TurnEventKind::Done { stats: second_stats } = &events.last().unwrap().kind else {
        panic!("{events:?}")
    };
    let first_stats = app.conversation_get(&first.conversation).unwrap().messages[1].stats.clone().unwrap();
    // All of the first prompt and all of the answer but its last token stood in the cache.
    let held = first_stats.prompt_tokens + first_stats.generated_tokens - 1;
    assert!(
        second_stats.reused_tokens + 1 >= held.min(second_stats.prompt_tokens - 1),
        "{first_stats:?} {second_stats:?}"
    );

    // The same conversation in another process, with nothing in memory, is answered the same way.
    let third = app.retry(&first.conversation).unwrap();
    assert_eq!(third.user_message, second.user_message);
    let again = all(&app, &third.turn);
    assert_eq!(text(&again), text(&events));
    let messages = app.conversation_get(&first.conversation).unwrap().messages;
    assert_eq!((messages[3].version, messages[3].versions), (2, 2));
}

fn prompt_tokens(events: &[TurnEvent]) -> u32 {
    match &events.last().unwrap().kind {
        TurnEventKind::Done { stats } => stats.prompt_tokens,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_draft_counts_what_sending_it_costs() {
    let home = Home::new("draft");
    let app = home.open();
    let count = |conversation: Option<&str>, text: &str| {
        let (conversation, text) = (conversation.map(Into::into), text.into());
        app.draft_count(&DraftArgs { conversation, text, ..DraftArgs::default() }).unwrap()
    };
    let mut typed = String::new();
    let mut counts = Vec::new();
    for c in "How do I add a model?\n\n<|im_end|> 12".chars() {
        typed.push(c);
        counts.push(count(None, &typed).tokens);
    }
    assert!(counts.is_sorted_by(|a, b| a <= &(b + 2)), "a token more or less as it is written: {counts:?}");
    let first = send(&app, None, &typed);
    assert_eq!(prompt_tokens(&all(&app, &first.turn)), *counts.last().unwrap());
    for text in ["And", "And a", "And a second one?"] {
        count(Some(&first.conversation), text);
    }
    let counted = count(Some(&first.conversation), "And a second one?");
    let second = send(&app, Some(&first.conversation), "And a second one?");
    assert_eq!(prompt_tokens(&all(&app, &second.turn)), counted.tokens);
    assert!(counted.context_limit >= counted.tokens, "{counted:?}");
}

#[test]
fn cancelling_keeps_what_was_written() {
    let home = Home::new("cancel");
    let app = home.open();
    app.settings_reset("max_tokens").unwrap();
    // An answer may end by itself before it is cancelled.
    assert!((0..50).any(|_| was_cancelled(&app)), "no answer was ever cancelled");
}

/// Cancels an answer after its first words. False: it had ended by then.
fn was_cancelled(app: &App) -> bool {
    let started = send(app, None, "Tell me everything");
    let mut watch = app.watch_turn(&started.turn, 0).unwrap();
    let mut seen = Vec::new();
    while text(&seen).is_empty() {
        let Some(event) = watch.next_blocking() else { return false };
        seen.extend(event);
    }
    let busy = app.send(SendArgs {
        conversation: Some(started.conversation.clone()),
        text: "x".into(),
        ..SendArgs::default()
    });
    app.turn_cancel(&started.turn).unwrap();
    seen.extend(watch.flatten());
    app.turn_cancel(&started.turn).unwrap();
    let TurnEventKind::Done { stats } = &seen.last().unwrap().kind else { panic!("{seen:?}") };
    if stats.finish != Finish::Cancelled {
        return false;
    }
    assert_eq!(busy.unwrap_err().code(), "session.answering");
    let messages = app.conversation_get(&started.conversation).unwrap().messages;
    assert_eq!(messages[1].state, MessageState::Stopped);
    assert_eq!(messages[1].text, text(&seen));
    true
}

#[test]
fn closing_while_answering_leaves_an_interrupted_answer() {
    let home = Home::new("close");
    let app = home.open();
    app.settings_reset("max_tokens").unwrap();
    let started = send(&app, None, "Tell me everything");
    let mut watch = app.watch_turn(&started.turn, 0).unwrap();
    watch.next_blocking();
    drop(app);
    let last = watch.flatten().last();
    let app = home.open();
    let messages = app.conversation_get(&started.conversation).unwrap().messages;
    assert_eq!(messages[0].text, "Tell me everything");
    if matches!(last, Some(TurnEvent { kind: TurnEventKind::Failed { .. }, .. })) {
        assert_eq!(messages[1].state, MessageState::Interrupted);
    }
}

#[test]
fn a_context_that_overflows_says_so_with_numbers() {
    let home = Home::new("overflow");
    let app = home.open();
    app.settings_set("context", &json!(64)).unwrap();
    let started = send(&app, None, &"many words ".repeat(500));
    let events = all(&app, &started.turn);
    let TurnEventKind::Failed { error } = &events.last().unwrap().kind else { panic!("{events:?}") };
    assert_eq!(error.code, "request.context_full");
    assert!(error.message.contains("64") && !error.remedy.is_empty(), "{error:?}");
    assert_eq!(app.conversation_get(&started.conversation).unwrap().messages[1].state, MessageState::Failed);

    // A context that fills while answering ends the answer, and says so.
    app.settings_reset("max_tokens").unwrap();
    let args = GenerateArgs {
        model: None,
        prompt: Prompt::Ids(vec![5; 60]),
        sampling: SamplingArgs::default(),
        max_tokens: None,
        stop: Vec::new(),
        ignore_eos: true,
        chat: Default::default(),
        constraint: None,
        logprobs: None,
    };
    let turn = app.generate(args).unwrap();
    let events = all(&app, &turn);
    let TurnEventKind::Done { stats } = &events.last().unwrap().kind else { panic!("{events:?}") };
    assert_eq!((stats.finish, stats.context_tokens, stats.context_limit), (Finish::ContextFull, 65, 64));
}

#[test]
fn conversations_are_renamed_deleted_and_brought_back() {
    let home = Home::new("manage");
    let app = home.open();
    let started = send(&app, None, "One");
    all(&app, &started.turn);
    let id = json!({ "id": started.conversation });
    let call = |name: &str, args: &Value| app.call(name, args.clone());
    let renamed =
        call("conversation_rename", &json!({ "id": started.conversation, "title": " A\nname " })).unwrap();
    assert_eq!(renamed["title"], "A name");
    assert_eq!(call("conversation_delete", &id).unwrap(), Value::Null);
    assert_eq!(call("conversations_list", &Value::Null).unwrap(), json!([]));
    assert_eq!(call("conversation_get", &id).unwrap_err().kind.http_status(), 404);
    assert_eq!(call("conversation_restore", &id).unwrap()["title"], "A name");
    assert_eq!(call("conversations_list", &json!({})).unwrap().as_array().unwrap().len(), 1);
    assert_eq!(call("conversation_get", &json!({ "id": "x", "y": 1 })).unwrap_err().code(), "call.arguments");
    assert_eq!(call("launch", &Value::Null).unwrap_err().code(), "call.unknown");
    assert_eq!(call("send", &json!({ "text": "  " })).unwrap_err().code(), "chat.empty_message");
    let unknown = json!({ "text": "x", "model": "gpt-17" });
    assert_eq!(call("send", &unknown).unwrap_err().code(), "model.unknown");
}

#[test]
fn the_library_takes_files_and_forgets_them() {
    let home = Home::new("library");
    let app = home.open();
    let starter = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../models/starter/starter.gguf");
    let entries = app.models_list().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].id.as_str(), &entries[0].state), ("starter", &ModelState::Unloaded));
    assert!(entries[0].parameters > 0 && entries[0].context_length > 0);

    std::fs::create_dir_all(&home.0).unwrap();
    let file = home.0.join("My Model.gguf");
    std::fs::copy(starter, &file).unwrap();
    let added = app.model_add(file.to_str().unwrap()).unwrap();
    assert_eq!(added.id, "my-model");
    assert_eq!(
        app.model_add(file.to_str().unwrap()).unwrap().id,
        "my-model",
        "the same file, the same entry"
    );
    app.settings_set("model", &json!("my-model")).unwrap();
    let started = send(&app, None, "Hello");
    assert!(matches!(all(&app, &started.turn).last().unwrap().kind, TurnEventKind::Done { .. }));
    assert_eq!(app.conversation_get(&started.conversation).unwrap().summary.model, "my-model");

    std::fs::remove_file(&file).unwrap();
    assert!(matches!(app.model_get("my-model").unwrap().state, ModelState::Unusable { .. }));
    app.model_remove("my-model").unwrap();
    assert_eq!(app.model_get("my-model").unwrap_err().kind.http_status(), 404);
    assert_eq!(app.default_model().unwrap(), "starter");
    assert_eq!(app.model_remove("starter").unwrap_err().code(), "model.built_in");

    std::fs::write(&file, b"<!doctype html>").unwrap();
    let refused = app.model_add(file.to_str().unwrap()).unwrap_err();
    assert!(!refused.remedy().is_empty(), "{refused:?}");
    assert_eq!(app.model_add("/nowhere/x.gguf").unwrap_err().code(), "io.not_found");
}

#[test]
fn settings_are_checked_kept_and_reset() {
    let home = Home::new("settings");
    let app = home.open();
    let refused = app.settings_set("temperature", &json!(9)).unwrap_err();
    assert!(refused.message().contains("0 to 2"), "{refused}");
    assert_eq!(app.settings_set("model", &json!("nobody")).unwrap_err().code(), "model.unknown");
    app.settings_set("theme", &json!("dark")).unwrap();
    drop(app);
    let app = home.open();
    let rows = app.settings_list().unwrap();
    let row = |key: &str| rows.iter().find(|row| row.key == key).unwrap();
    assert_eq!(row("theme").value, json!("dark"));
    assert_eq!(row("data_dir").value, json!(home.0.display().to_string()));
    assert!(app.settings_set("data_dir", &json!("/")).is_err());
    assert_eq!(app.settings_reset("theme").unwrap().value, json!("system"));
}

/// Conversations that are answered at once say what they say alone: nothing leaks from one to another.
#[test]
fn conversations_do_not_touch_each_other() {
    const QUESTIONS: [[&str; 3]; 4] = [
        ["How do I add a model?", "And then?", "Thanks"],
        ["Is it private?", "Why?", "How do I delete a chat?"],
        ["How do I change the theme?", "To dark?", "What is a context?"],
        ["Hello", "What can you do?", "Tell me about settings"],
    ];
    let home = Home::new("alone");
    let app = home.open();
    let alone = QUESTIONS.map(|questions| {
        let mut conversation = None;
        questions.map(|question| {
            let started = send(&app, conversation.as_deref(), question);
            conversation = Some(started.conversation.clone());
            text(&all(&app, &started.turn))
        })
    });
    drop(app);
    let home = Home::new("together");
    let app = home.open();
    let mut conversations = [const { None::<String> }; 4];
    for round in 0..3 {
        let turns: Vec<_> = (0..4)
            .map(|n| {
                let started = send(&app, conversations[n].as_deref(), QUESTIONS[n][round]);
                conversations[n] = Some(started.conversation.clone());
                if n == 3 {
                    // One that is stopped and asked again in between.
                    app.turn_cancel(&started.turn).unwrap();
                    all(&app, &started.turn);
                    return app.retry(&started.conversation).unwrap().turn;
                }
                started.turn
            })
            .collect();
        for (n, turn) in turns.iter().enumerate() {
            assert_eq!(text(&all(&app, turn)), alone[n][round], "conversation {n}, question {round}");
        }
    }
}

#[test]
fn a_damaged_database_is_told_of_and_the_rest_goes_on() {
    let home = Home::new("damaged");
    std::fs::create_dir_all(&home.0).unwrap();
    std::fs::write(home.0.join("inglenook.db"), [0; 64_560]).unwrap();
    let app = home.open();
    let first = app.watch_app().next_blocking().unwrap().remove(0);
    let AppEvent::Notice { error } = first else { panic!("{first:?}") };
    assert_eq!(error.code, "session.damaged");
    let started = send(&app, None, "Hello");
    assert!(matches!(all(&app, &started.turn).last().unwrap().kind, TurnEventKind::Done { .. }));
}

/// Some pages are read only when a message is stored. The database is repaired then, and the message is stored all the same.
#[test]
fn a_message_is_answered_whichever_page_of_the_database_is_damaged() {
    const PAGE_BYTES: usize = 4096;
    let home = Home::new("damaged-pages");
    let app = home.open();
    all(&app, &send(&app, None, "Hello").turn);
    drop(app);
    let path = home.0.join("inglenook.db");
    let whole = std::fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(PAGE_BYTES) {
        let mut damaged = whole.clone();
        damaged[at..at + PAGE_BYTES].fill(0);
        std::fs::write(&path, damaged).unwrap();
        let app = home.open();
        let started = app.send(SendArgs { text: "Hello again".into(), ..SendArgs::default() });
        let started = started.unwrap_or_else(|error| panic!("zeros at {at}: {error:?}"));
        let last = all(&app, &started.turn).pop();
        assert!(matches!(last.unwrap().kind, TurnEventKind::Done { .. }), "zeros at {at}");
    }
}
