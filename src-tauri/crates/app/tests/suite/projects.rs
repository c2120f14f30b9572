//! Projects over the starter model: what a new conversation begins with, what of its prompt came from there, and indexes
//! that are stored.
#![allow(clippy::unwrap_used)] // a test

use std::sync::Arc;

use crate::common::Home;
use app::App;
use contract::types::{
    AttachmentKind, CompactionStrategy, ConversationOptions, DraftArgs, PresetArgs, Project, ProjectArgs,
    ProjectFileArgs, SendArgs, TurnEventKind, TurnStats,
};
use documents::base64;
use file_search::{SearchCache, SearchedFile};
use io::{RealClock, RealIo};
use serde_json::json;
use session::Session;

const INSTRUCTIONS: &str = "Answer as the harbour master.";

fn open(home: &Home, context: u32) -> App {
    home.open_as(&[("max_tokens", json!(8)), ("context", json!(context)), ("titles", json!(false))])
}

fn folder(app: &App, name: &str, parent: Option<&str>) -> String {
    app.folder_add(name, parent).unwrap().id
}

fn add_file(app: &App, folder: &str, name: &str, text: &str) -> Project {
    let base64 = base64::encode(text.as_bytes());
    app.project_file_add(&ProjectFileArgs { folder: folder.into(), name: name.into(), base64 }).unwrap()
}

fn send(app: &App, args: SendArgs) -> (String, TurnStats) {
    let started = app.send(args).unwrap();
    let events: Vec<_> = app.watch_turn(&started.turn, 0).unwrap().flatten().collect();
    match &events.last().unwrap().kind {
        TurnEventKind::Done { stats } => (started.conversation, stats.clone()),
        other => panic!("{other:?}"),
    }
}

fn asked(folder: &str, text: &str) -> SendArgs {
    SendArgs { text: text.into(), folder: Some(folder.into()), ..SendArgs::default() }
}

fn drafted(folder: &str, text: &str) -> DraftArgs {
    DraftArgs { text: text.into(), folder: Some(folder.into()), ..DraftArgs::default() }
}

fn of(conversation: &str) -> DraftArgs {
    DraftArgs { conversation: Some(conversation.into()), ..DraftArgs::default() }
}

#[test]
fn a_new_conversation_begins_with_what_its_project_says() {
    let home = Home::new("project-begins");
    let app = open(&home, 1024);
    let options = ConversationOptions { top_k: Some(3), ..ConversationOptions::default() };
    let preset =
        PresetArgs { id: None, name: "Terse".into(), options, compression: Some(CompactionStrategy::Off) };
    let preset = app.preset_save(&preset).unwrap().id;
    let (work, loose) = (folder(&app, "Harbour", None), folder(&app, "Loose", None));
    let inner = folder(&app, "Letters", Some(&work));
    let args = ProjectArgs {
        folder: work.clone(),
        instructions: format!(" {INSTRUCTIONS}\n"),
        preset: Some(preset.clone()),
        model: Some("starter".into()),
        memory: None,
    };
    app.project_set(&args).unwrap();
    let made = add_file(&app, &work, "tides.md", "High water is at six.\n");
    assert_eq!((made.name.as_str(), made.instructions.as_str()), ("Harbour", INSTRUCTIONS));
    assert_eq!(made.files[0].name, "tides.md");
    assert_eq!(app.project_get(&inner).unwrap().as_ref(), Some(&made), "a folder inside belongs to it");
    assert_eq!(app.project_get(&loose).unwrap(), None);
    let marked = app.folders_list().unwrap().into_iter().filter(|it| it.is_project).map(|it| it.id);
    assert_eq!(marked.collect::<Vec<_>>(), std::slice::from_ref(&work));

    let before = app.context_parts(&drafted(&inner, "")).unwrap();
    let share = before.project.clone().unwrap();
    assert_eq!((share.folder.as_str(), share.name.as_str()), (work.as_str(), "Harbour"));
    assert!(share.instructions > 3 && share.instructions == before.system, "{before:?}");
    assert!(share.files > 5 && share.files == before.files, "{before:?}");
    let count = app.draft_count(&drafted(&inner, "When is high water?")).unwrap();
    let (id, stats) = send(&app, asked(&inner, "When is high water?"));
    assert_eq!(stats.prompt_tokens, count.tokens, "what was told is what is sent");

    let kept = app.conversation_get(&id).unwrap();
    assert_eq!(kept.summary.folder.as_deref(), Some(inner.as_str()));
    assert_eq!(kept.options.system_prompt.as_deref(), Some(INSTRUCTIONS));
    assert_eq!((kept.options.top_k, kept.options.preset), (Some(3), Some(preset)));
    assert_eq!(
        (kept.options.project.as_deref(), kept.compression),
        (Some(work.as_str()), Some(CompactionStrategy::Off))
    );
    let file = &kept.messages[0].attachments[0];
    assert!(file.from_project && file.whole == Some(true) && file.name == "tides.md", "{file:?}");
    assert_eq!(kept.messages[1].sources[0].name, "tides.md");
    let after = app.context_parts(&of(&id)).unwrap();
    let share = after.project.unwrap();
    assert_eq!((share.instructions, share.files), (before.system, after.files));
    assert!(share.files.abs_diff(before.files) <= 3, "{share:?} {before:?}");

    // Later changes reach new conversations only.
    app.project_file_remove(&made.files[0].id).unwrap();
    app.project_set(&ProjectArgs { folder: work.clone(), ..ProjectArgs::default() }).unwrap();
    assert_eq!(app.conversation_get(&id).unwrap().messages[0].attachments[0].name, "tides.md");
    let (next, _) = send(&app, asked(&work, "Hello"));
    let next = app.conversation_get(&next).unwrap();
    assert_eq!((next.options.system_prompt, next.messages[0].attachments.len()), (None, 0));
    let parts = app.context_parts(&of(&id)).unwrap().project.unwrap();
    assert_eq!(parts.instructions, 0, "the project says something else now");
}

#[test]
fn what_a_caller_asks_for_comes_first() {
    let home = Home::new("project-asked");
    let app = open(&home, 1024);
    let work = folder(&app, "Harbour", None);
    app.project_set(&ProjectArgs {
        folder: work.clone(),
        instructions: INSTRUCTIONS.into(),
        ..ProjectArgs::default()
    })
    .unwrap();
    let options =
        ConversationOptions { system_prompt: Some("Be brief.".into()), ..ConversationOptions::default() };
    let (id, _) = send(&app, SendArgs { options: Some(options), ..asked(&work, "Hello") });
    assert_eq!(app.conversation_get(&id).unwrap().options.system_prompt.as_deref(), Some("Be brief."));
    let (plain, _) = send(&app, SendArgs { text: "Hello".into(), ..SendArgs::default() });
    let plain = app.conversation_get(&plain).unwrap();
    assert_eq!((plain.options, plain.summary.folder), (ConversationOptions::default(), None));

    let gone = SendArgs { folder: Some("none".into()), ..asked(&work, "Hello") };
    let n_before = app.conversations_list().unwrap().len();
    assert_eq!(app.send(gone).unwrap_err().code(), "session.not_found");
    assert_eq!(app.conversations_list().unwrap().len(), n_before, "nothing was stored");
    let wrong = |args: ProjectArgs| app.project_set(&args).unwrap_err().code().to_owned();
    assert_eq!(wrong(ProjectArgs { folder: "none".into(), ..ProjectArgs::default() }), "session.not_found");
    assert_eq!(
        wrong(ProjectArgs { folder: work.clone(), preset: Some("none".into()), ..ProjectArgs::default() }),
        "session.not_found"
    );
    assert!(
        wrong(ProjectArgs { folder: work.clone(), model: Some("none".into()), ..ProjectArgs::default() })
            .starts_with("model.")
    );
    let file =
        ProjectFileArgs { folder: folder(&app, "Plain", None), name: "a.txt".into(), base64: "YQ==".into() };
    assert_eq!(app.project_file_add(&file).unwrap_err().code(), "project.not_found");
}

#[test]
fn files_of_a_project_can_be_read() {
    let home = Home::new("project-file-text");
    let app = open(&home, 1024);
    let work = folder(&app, "Harbour", None);
    app.project_set(&ProjectArgs { folder: work.clone(), ..ProjectArgs::default() }).unwrap();
    let file = add_file(&app, &work, "tides.md", "High water is at six.").files.remove(0);
    let shown = app.attachment_text(&file.id, None).unwrap();
    assert_eq!((shown.text.as_str(), shown.attachment.name.as_str()), ("High water is at six.", "tides.md"));
    assert_eq!(app.attachment_text("none", None).unwrap_err().code(), "session.not_found");
}

#[test]
fn a_long_file_is_searched_by_an_index_that_stays() {
    let home = Home::new("project-index");
    let app = open(&home, 1024);
    app.settings_set("attachment_passages", &json!(512)).unwrap();
    let work = folder(&app, "Harbour", None);
    app.project_set(&ProjectArgs { folder: work.clone(), ..ProjectArgs::default() }).unwrap();
    let filler = |n: usize| format!("Paragraph {n} says that the weather was the same as on other days.\n\n");
    let mut text: String = (0..60).map(filler).collect();
    text.push_str("The lighthouse keeper's name is Maren.\n\n");
    text.extend((60..120).map(filler));
    add_file(&app, &work, "diary.txt", &text);
    let question = "What is the lighthouse keeper's name?";
    let found = |app: &App| {
        let (id, _) = send(app, asked(&work, question));
        let sources = app.conversation_get(&id).unwrap().messages[1].sources.clone();
        sources.into_iter().filter_map(|it| it.passage).map(|it| (it.start, it.end)).collect::<Vec<_>>()
    };
    let first = found(&app);
    let at = text.find("Maren").unwrap() as u32;
    assert!(first.iter().any(|(start, end)| (*start..*end).contains(&at)), "{first:?} {at}");
    drop(app);
    assert!(stored_index(&home, &work, &text).is_some(), "it stays with the project");
    let app = open(&home, 1024);
    assert_eq!(found(&app), first);
    app.project_remove(&work).unwrap();
    assert_eq!(app.project_get(&work).unwrap(), None);
    assert_eq!(app.folders_list().unwrap().len(), 1, "the folder stays");
    drop(app);
    assert_eq!(stored_index(&home, &work, &text), None);
}

/// The index of a project's only file.
fn stored_index(home: &Home, folder: &str, text: &str) -> Option<Vec<u8>> {
    let file = SearchedFile {
        id: String::new(),
        name: String::new(),
        kind: AttachmentKind::Text,
        sha256: documents::sha256(text),
        text: text.into(),
        is_new: true,
        from_project: true,
    };
    let (session, _) = Session::open(&home.0, &RealIo, Arc::new(RealClock::new())).unwrap();
    session.search_index(folder, &SearchCache::index_key(&[file])).unwrap()
}
