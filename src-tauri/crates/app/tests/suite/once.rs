//! One answer made with other settings, and folders in folders, through the application.
#![allow(clippy::unwrap_used)] // a test

use crate::common::Home;
use app::App;
use contract::types::{
    AppEvent, ConversationOptions, OneOffOptions, RegenerateArgs, SendArgs, Thinking, TurnEvent,
    TurnEventKind, TurnStarted,
};

fn events(app: &App, started: &TurnStarted) -> Vec<TurnEvent> {
    app.watch_turn(&started.turn, 0).unwrap().flatten().collect()
}

fn asked(app: &App) -> TurnStarted {
    let args = SendArgs { text: "How do I add a model?".into(), ..SendArgs::default() };
    let started = app.send(args).unwrap();
    events(app, &started);
    started
}

fn text(app: &App, conversation: &str) -> String {
    app.conversation_get(conversation).unwrap().messages[1].text.clone()
}

fn again(app: &App, first: &TurnStarted, once: OneOffOptions) -> Option<OneOffOptions> {
    let message = first.assistant_message.clone();
    let args = RegenerateArgs { message, once: Some(once), ..RegenerateArgs::default() };
    let started = app.message_regenerate(&args).unwrap();
    let told = events(app, &started);
    let kept = app.conversation_get(&first.conversation).unwrap().messages[1].stats.clone().unwrap();
    match &told.last().unwrap().kind {
        TurnEventKind::Done { stats } => assert_eq!(stats.once, kept.once, "what is told is kept"),
        other => panic!("{other:?}"),
    }
    kept.once
}

#[test]
fn one_answer_is_made_with_other_settings_and_says_so() {
    let home = Home::new("once");
    let app = home.open();
    let first = asked(&app);
    let id = &first.conversation;
    let plain = text(&app, id);
    let hot = |seed| OneOffOptions { temperature: Some(2.0), seed: Some(seed), ..OneOffOptions::default() };
    let texts = [1, 1, 2, 3].map(|seed| {
        assert_eq!(again(&app, &first, hot(seed)), Some(hot(seed)));
        text(&app, id)
    });
    assert_eq!(texts[0], texts[1], "the same seed draws the same");
    assert!(texts.iter().any(|text| *text != plain), "{texts:?}");
    assert_eq!(app.conversation_get(id).unwrap().options, ConversationOptions::default(), "the chat's stay");
    assert_eq!(again(&app, &first, OneOffOptions::default()), None);
    assert_eq!(text(&app, id), plain, "and the next answer is as before");
    let told = OneOffOptions {
        thinking: Some("off".into()),
        effort: Some("model".into()),
        ..OneOffOptions::default()
    };
    assert_eq!(again(&app, &first, told.clone()), Some(told));
}

#[test]
fn settings_for_once_are_checked_like_settings() {
    let home = Home::new("once-checked");
    let app = home.open();
    let first = asked(&app);
    let wrong = [
        OneOffOptions { temperature: Some(9.0), ..OneOffOptions::default() },
        OneOffOptions { top_p: Some(-1.0), ..OneOffOptions::default() },
        OneOffOptions { thinking: Some("perhaps".into()), ..OneOffOptions::default() },
        OneOffOptions { effort: Some("endless".into()), ..OneOffOptions::default() },
    ];
    for once in wrong {
        let message = first.assistant_message.clone();
        let args = RegenerateArgs { message, once: Some(once.clone()), ..RegenerateArgs::default() };
        assert_eq!(app.message_regenerate(&args).unwrap_err().code(), "setting.out_of_range", "{once:?}");
    }
    let messages = app.conversation_get(&first.conversation).unwrap().messages;
    assert_eq!((messages.len(), messages[1].versions), (2, 1), "nothing was begun");
}

#[test]
fn folders_are_moved_and_everybody_is_told() {
    let home = Home::new("folder-move");
    let app = home.open();
    let outer = app.folder_add("Outer", None).unwrap();
    let inner = app.folder_add("Inner", Some(&outer.id)).unwrap();
    let first = asked(&app);
    app.conversation_move(&first.conversation, Some(&inner.id)).unwrap();
    assert_eq!(app.folder_move(&outer.id, Some(&inner.id)).unwrap_err().code(), "session.folder_in_itself");
    let watch = app.watch_app();
    let deep = app.folder_add("Deep", Some(&inner.id)).unwrap();
    app.folder_remove(&inner.id).unwrap();
    let mut told = watch.flatten();
    let removed = |event: &AppEvent| matches!(event, AppEvent::FolderRemoved { .. });
    let mut seen = Vec::new();
    loop {
        let event = told.next().unwrap();
        let is_last = removed(&event);
        seen.push(event);
        if is_last {
            break;
        }
    }
    let parent = Some(outer.id.clone());
    let is_deep = |event: &AppEvent| match event {
        AppEvent::FolderChanged { folder } => folder.id == deep.id && folder.parent == parent,
        _ => false,
    };
    let is_moved = |event: &AppEvent| match event {
        AppEvent::ConversationChanged { conversation } => conversation.folder == parent,
        _ => false,
    };
    assert!(seen.iter().any(is_deep) && seen.iter().any(is_moved), "{seen:?}");
    assert_eq!(app.folder_move(&deep.id, None).unwrap().parent, None);
    assert_eq!(app.folders_list().unwrap().len(), 2);
}

#[test]
fn a_model_says_what_it_can_do() {
    let home = Home::new("skills");
    let starter = home.open().model_get("starter").unwrap();
    let skills = starter.skills.unwrap();
    assert_eq!((skills.tools, skills.thinking), (false, Thinking::Never), "a small one that only answers");
}
