//! PDFs with scanned pages: what they cost, what is sent and kept, and what a model that can't see is refused.
#![allow(clippy::unwrap_used)] // a test

use std::path::PathBuf;

use app::App;
use contract::types::{
    Attachment, DraftArgs, HiddenPages, HiddenPagesReason, ProjectArgs, SendArgs, TurnEventKind,
};
use serde_json::json;

use crate::attachments::{messages, open, seeing};
use crate::common::Home;

#[test]
fn scanned_pages_are_images_of_their_message() {
    let home = Home::new("attach-scanned");
    let app = open(&home, 4096);
    let (model, _) = seeing(&app);
    let files = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../pdf-pages/tests/files");
    let attach = |name: &str| app.attach(name, &std::fs::read(files.join(name)).unwrap()).unwrap();
    let (scan, mixed) = (attach("jpeg.pdf"), attach("mixed.pdf"));
    let pages = |file: &Attachment| file.scanned.map(|it| (it.images, it.left_out, it.is_all));
    assert_eq!((pages(&scan), pages(&mixed)), (Some((1, 0, true)), Some((2, 0, false))));
    let count = |model: &str, file: &Attachment| {
        let attachments = vec![file.id.clone()];
        app.draft_count(&DraftArgs { model: Some(model.into()), attachments, ..DraftArgs::default() })
    };
    assert_eq!(count("starter", &scan).unwrap_err().code(), "attachment.scanned");
    let blind = count("starter", &mixed).unwrap();
    assert_eq!(
        blind.attachments.iter().map(|cost| cost.tokens > 0).collect::<Vec<_>>(),
        [true, false, false]
    );
    let counted = count(&model, &mixed).unwrap();
    assert!(counted.attachments.iter().all(|cost| cost.id == mixed.id && cost.tokens > 16), "{counted:?}");

    let args = |model: &str, file: &Attachment| SendArgs {
        model: Some(model.into()),
        attachments: vec![file.id.clone()],
        ..SendArgs::default()
    };
    assert_eq!(app.send(args("starter", &scan)).unwrap_err().code(), "attachment.scanned");
    let started = app.send(args(&model, &mixed)).unwrap();
    let events: Vec<_> = app.watch_turn(&started.turn, 0).unwrap().flatten().collect();
    let TurnEventKind::Done { stats } = &events.last().unwrap().kind else { panic!("{events:?}") };
    assert_eq!(stats.prompt_tokens, counted.tokens, "told exactly before it is sent");
    let kept = &messages(&app, &started.conversation)[0].attachments;
    let names: Vec<&str> = kept.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["mixed.pdf", "page 2 of mixed.pdf", "page 4 of mixed.pdf"]);
    assert!(kept[1].image.is_some() && app.attachment_image(&kept[2].id).unwrap().width > 0);
    // The branch has the same prompt again.
    let next = DraftArgs { conversation: Some(started.conversation), ..DraftArgs::default() };
    assert!(app.draft_count(&next).unwrap().tokens >= counted.tokens);
    let text = app.attachment_text(&kept[0].id, None).unwrap().text;
    assert!(text.contains("contract begins") && text.matches("It is an image").count() == 2, "{text}");
}

/// Names of what a new conversation of a project with two PDFs has, and its tokens as counted and as sent.
fn begun(app: &App, folder: &str, model: &str) -> (Vec<String>, u32, u32) {
    let (folder, model) = (Some(folder.to_owned()), Some(model.to_owned()));
    let text = "What is it?".to_owned();
    let draft = DraftArgs {
        model: model.clone(),
        text: text.clone(),
        folder: folder.clone(),
        ..DraftArgs::default()
    };
    let counted = app.draft_count(&draft).unwrap().tokens;
    let started = app.send(SendArgs { model, text, folder, ..SendArgs::default() }).unwrap();
    let events: Vec<_> = app.watch_turn(&started.turn, 0).unwrap().flatten().collect();
    let TurnEventKind::Done { stats } = &events.last().unwrap().kind else { panic!("{events:?}") };
    let files = messages(app, &started.conversation)[0].attachments.clone();
    assert!(files.iter().all(|file| file.from_project), "{files:?}");
    (files.into_iter().map(|file| file.name).collect(), counted, stats.prompt_tokens)
}

#[test]
fn scanned_pages_of_a_project_are_seen_where_there_is_room() {
    let home = Home::new("project-scanned");
    let app = open(&home, 4096);
    let (model, _) = seeing(&app);
    let folder = app.folder_add("Scans", None).unwrap().id;
    app.project_set(&ProjectArgs { folder: folder.clone(), ..ProjectArgs::default() }).unwrap();
    let files = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../pdf-pages/tests/files");
    for name in ["jpeg.pdf", "mixed.pdf"] {
        app.project_file_add_path(&folder, &files.join(name).display().to_string()).unwrap();
    }
    let listed = app.project_get(&folder).unwrap().unwrap().files;
    let pages = |file: &Attachment| file.scanned.map(|it| (it.images, it.left_out, it.is_all));
    assert_eq!(
        listed.iter().map(|file| (file.name.as_str(), pages(file))).collect::<Vec<_>>(),
        [("jpeg.pdf", Some((1, 0, true))), ("mixed.pdf", Some((2, 0, false)))]
    );
    let texts = ["jpeg.pdf", "mixed.pdf"];
    let all = [&texts[..], &["page 1 of jpeg.pdf", "page 2 of mixed.pdf", "page 4 of mixed.pdf"]].concat();

    let (names, counted, sent) = begun(&app, &folder, &model);
    assert_eq!((names, counted), (all.iter().map(ToString::to_string).collect(), sent), "counted exactly");
    let (names, counted, blind) = begun(&app, &folder, "starter");
    assert_eq!((&names[..], counted), (&texts.map(ToOwned::to_owned)[..], blind), "it can't see pages");
    // The file goes with its pages, whose originals the conversation keeps.
    let originals = || std::fs::read_dir(home.0.join("images")).unwrap().count();
    let n_before = originals();
    let left = app.project_file_remove(&listed[1].id).unwrap().files;
    assert_eq!((left.len(), originals()), (1, n_before));
    let (names, ..) = begun(&app, &folder, &model);
    assert_eq!(names, ["jpeg.pdf", "page 1 of jpeg.pdf"]);
}

#[test]
fn scanned_pages_of_a_project_take_half_a_prompt_at_most() {
    let home = Home::new("project-scanned-room");
    let app = open(&home, 4096);
    let (model, _) = seeing(&app);
    let folder = app.folder_add("Scans", None).unwrap().id;
    app.project_set(&ProjectArgs { folder: folder.clone(), ..ProjectArgs::default() }).unwrap();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../pdf-pages/tests/files/jpeg.pdf");
    let n_files = 6;
    for _ in 0..n_files {
        app.project_file_add_path(&folder, &path.display().to_string()).unwrap();
    }
    let (all, ..) = begun(&app, &folder, &model);
    assert_eq!(all.len(), 2 * n_files);
    let draft =
        DraftArgs { model: Some(model.clone()), folder: Some(folder.clone()), ..DraftArgs::default() };
    let hidden = |model: &str| {
        app.draft_count(&DraftArgs { model: Some(model.into()), ..draft.clone() }).unwrap().hidden_pages
    };
    let unseen = HiddenPages { count: 6, reason: HiddenPagesReason::Unseen };
    assert_eq!((hidden(&model), hidden("starter")), (None, Some(unseen)));
    let page = app.draft_count(&draft).unwrap().attachments[n_files].tokens;
    // Half of it has room for five pages and a half. 8 tokens are left to the answer.
    app.settings_set("context", &json!(11 * page + 8)).unwrap();
    let (fewer, counted, sent) = begun(&app, &folder, &model);
    assert_eq!((&fewer[..], counted), (&all[..n_files + 5], sent));
    assert_eq!(hidden(&model), Some(HiddenPages { count: 1, reason: HiddenPagesReason::NoRoom }));
}

#[test]
fn a_model_that_sees_is_given_the_pages_that_an_earlier_one_was_not() {
    let home = Home::new("project-scanned-late");
    let app = open(&home, 4096);
    let (model, _) = seeing(&app);
    let folder = app.folder_add("Scans", None).unwrap().id;
    app.project_set(&ProjectArgs { folder: folder.clone(), ..ProjectArgs::default() }).unwrap();
    let files = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../pdf-pages/tests/files");
    let path = files.join("mixed.pdf").display().to_string();
    app.project_file_add_path(&folder, &path).unwrap();
    // Of a message of a conversation: names of its files, its tokens as counted and as sent.
    let say = |conversation: Option<&str>, model: &str| {
        let (conversation, model) = (conversation.map(Into::into), Some(model.into()));
        let (text, folder) = ("What is it?".to_owned(), Some(folder.clone()));
        let draft = DraftArgs {
            conversation: conversation.clone(),
            model: model.clone(),
            text: text.clone(),
            folder: folder.clone(),
            ..DraftArgs::default()
        };
        let counted = app.draft_count(&draft).unwrap().tokens;
        let args = SendArgs { conversation, model, text, folder, ..SendArgs::default() };
        let started = app.send(args).unwrap();
        let events: Vec<_> = app.watch_turn(&started.turn, 0).unwrap().flatten().collect();
        let TurnEventKind::Done { stats } = &events.last().unwrap().kind else { panic!("{events:?}") };
        let sent = messages(&app, &started.conversation).into_iter();
        let question = sent.rev().find(|message| message.id == started.user_message).unwrap();
        let names: Vec<String> = question.attachments.into_iter().map(|file| file.name).collect();
        (started.conversation, names, counted, stats.prompt_tokens)
    };
    let (id, names, counted, sent) = say(None, "starter");
    assert_eq!((names, counted), (vec!["mixed.pdf".to_owned()], sent));
    assert_eq!(say(Some(&id), "starter").1, Vec::<String>::new());
    let (_, names, counted, n_late) = say(Some(&id), &model);
    assert_eq!(
        (&names[..], counted),
        (&["page 2 of mixed.pdf", "page 4 of mixed.pdf"].map(Into::into)[..], n_late)
    );
    let (_, names, counted, sent) = say(Some(&id), &model);
    assert_eq!((names, counted), (Vec::<String>::new(), sent), "once");
    // An edited message keeps its pages, and they stay behind their names.
    let late = messages(&app, &id).into_iter().find(|it| it.attachments.len() == 2).unwrap();
    app.conversation_set_model(&id, &model).unwrap();
    let edited = app.message_edit(&late.id, "What is it?").unwrap();
    let events: Vec<_> = app.watch_turn(&edited.turn, 0).unwrap().flatten().collect();
    let TurnEventKind::Done { stats } = &events.last().unwrap().kind else { panic!("{events:?}") };
    assert_eq!(stats.prompt_tokens, n_late);
}
