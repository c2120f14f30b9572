//! PDFs with scanned pages: what they cost, what is sent and kept, and what a model that can't see is refused.
#![allow(clippy::unwrap_used)] // a test

use std::path::PathBuf;

use contract::types::{Attachment, DraftArgs, SendArgs, TurnEventKind};

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
    let project = app.folder_add("Scans", None).unwrap();
    let path = files.join("jpeg.pdf").display().to_string();
    assert_eq!(app.project_file_add_path(&project.id, &path).unwrap_err().code(), "attachment.refused");
}
