//! Memory over the starter model: notes are counted parts of prompts, on or off for a chat, a project or all.
#![allow(clippy::unwrap_used)] // a test

use crate::common::Home;
use app::App;
use contract::types::{
    ConversationOptions, DraftArgs, NoteArgs, ProjectArgs, Role, SendArgs, TemporaryArgs, TemporaryMessage,
    TurnEventKind, TurnStats,
};
use serde_json::json;

fn open(home: &Home) -> App {
    home.open_as(&[("max_tokens", json!(8)), ("context", json!(1024)), ("titles", json!(false))])
}

fn note(app: &App, text: &str) -> String {
    app.note_save(&NoteArgs { text: text.into(), ..NoteArgs::default() }).unwrap().id
}

fn stats(app: &App, turn: &str) -> TurnStats {
    let events: Vec<_> = app.watch_turn(turn, 0).unwrap().flatten().collect();
    match &events.last().unwrap().kind {
        TurnEventKind::Done { stats } => stats.clone(),
        other => panic!("{other:?}"),
    }
}

fn send(app: &App, args: SendArgs) -> (String, TurnStats) {
    let started = app.send(args).unwrap();
    (started.conversation, stats(app, &started.turn))
}

fn memory(app: &App, args: &DraftArgs) -> Option<(u32, String)> {
    app.context_parts(args).unwrap().memory.map(|it| (it.tokens, it.text))
}

fn with_memory(memory: Option<bool>) -> ConversationOptions {
    ConversationOptions { memory, ..ConversationOptions::default() }
}

#[test]
fn notes_are_a_counted_part_of_prompts() {
    let home = Home::new("notes-counted");
    let app = open(&home);
    let asked = || SendArgs { text: "Hello".into(), ..SendArgs::default() };
    let draft = || DraftArgs { text: "Hello".into(), ..DraftArgs::default() };
    let (first, plain) = send(&app, asked());
    assert_eq!(memory(&app, &draft()), None);

    let id = note(&app, " Uses metric units.\n");
    note(&app, "Lives in Kiel.");
    let block = "The user asked you to remember:\n- Uses metric units.\n- Lives in Kiel.";
    let (tokens, text) = memory(&app, &draft()).unwrap();
    assert_eq!(text, block);
    assert!(tokens > 10, "{tokens}");
    let counted = app.draft_count(&draft()).unwrap();
    let (second, noted) = send(&app, asked());
    assert_eq!(noted.prompt_tokens, counted.tokens, "what was told is what is sent");
    assert!(noted.prompt_tokens >= plain.prompt_tokens + tokens, "{noted:?} {plain:?} {tokens}");
    let of_old = DraftArgs { conversation: Some(first.clone()), ..DraftArgs::default() };
    assert_eq!(memory(&app, &of_old).unwrap().0, tokens, "also where a chat began without");
    let kept = app.conversation_get(&second).unwrap();
    assert_eq!(kept.options.system_prompt, None, "notes are no part of a chat's own options");

    app.note_save(&NoteArgs { id: Some(id.clone()), text: "Uses SI units.".into(), source: None }).unwrap();
    assert!(memory(&app, &of_old).unwrap().1.contains("SI units"));
    app.note_remove(&id).unwrap();
    assert_eq!(app.notes_list().unwrap().len(), 1);
}

#[test]
fn a_chat_a_project_and_the_setting_turn_them_off_and_on() {
    let home = Home::new("notes-off");
    let app = open(&home);
    note(&app, "Lives in Kiel.");
    let in_chat =
        |memory: Option<bool>| DraftArgs { options: Some(with_memory(memory)), ..DraftArgs::default() };
    let has = |args: &DraftArgs| memory(&app, args).is_some();
    let check = |expected: [bool; 3]| {
        assert_eq!([None, Some(true), Some(false)].map(|it| has(&in_chat(it))), expected);
    };
    check([true, true, false]);
    app.settings_set("memory", &json!(false)).unwrap();
    check([false, true, false]);

    let folder = app.folder_add("Harbour", None).unwrap().id;
    let project = |memory: Option<bool>| {
        app.project_set(&ProjectArgs { folder: folder.clone(), memory, ..ProjectArgs::default() }).unwrap();
        let args = SendArgs { text: "Hello".into(), folder: Some(folder.clone()), ..SendArgs::default() };
        let (id, _) = send(&app, args);
        let draft = DraftArgs { conversation: Some(id.clone()), ..DraftArgs::default() };
        (has(&draft), app.conversation_get(&id).unwrap().options.memory)
    };
    assert_eq!(project(Some(true)), (true, Some(true)));
    assert_eq!(project(None), (false, None));
    app.settings_set("memory", &json!(true)).unwrap();
    assert_eq!(project(Some(false)), (false, Some(false)));

    // An existing chat is changed by its options.
    let (id, _) = send(&app, SendArgs { text: "Hello".into(), ..SendArgs::default() });
    let of_chat = DraftArgs { conversation: Some(id.clone()), ..DraftArgs::default() };
    assert!(has(&of_chat));
    app.conversation_set_options(&id, &with_memory(Some(false))).unwrap();
    assert!(!has(&of_chat));
}

#[test]
fn a_temporary_chat_has_none_unless_it_asks() {
    let home = Home::new("notes-temporary");
    let app = open(&home);
    let prompt_tokens = |memory: Option<bool>| {
        let message = TemporaryMessage {
            role: Role::User,
            text: "Hello".into(),
            attachments: Vec::new(),
            tool_calls: Vec::new(),
        };
        let options = Some(with_memory(memory));
        let turn =
            app.temporary_send(TemporaryArgs { messages: vec![message], model: None, options }).unwrap().turn;
        stats(&app, &turn).prompt_tokens
    };
    let plain = prompt_tokens(None);
    note(&app, "Lives in Kiel.");
    assert_eq!(prompt_tokens(None), plain);
    assert!(prompt_tokens(Some(true)) > plain + 5);
}

#[test]
fn what_is_no_note_is_refused() {
    let home = Home::new("notes-refused");
    let app = open(&home);
    let refused = |text: &str| {
        app.note_save(&NoteArgs { text: text.into(), ..NoteArgs::default() }).unwrap_err().code().to_owned()
    };
    assert_eq!(refused(" \n"), "note.empty");
    assert_eq!(refused(&"x".repeat(4097)), "note.too_long");
    for n in 0..200 {
        note(&app, &format!("Note {n}."));
    }
    assert_eq!(refused("One more."), "note.too_many");
    assert_eq!(app.note_remove("none").unwrap_err().code(), "session.not_found");
}
