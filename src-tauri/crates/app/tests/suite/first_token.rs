//! The expected time until a draft's first token: unknown until its model has done the same work on this computer.
#![allow(clippy::unwrap_used)] // a test

use contract::types::{Attachment, DraftArgs, SendArgs, TurnEventKind, TurnStats};

use crate::attachments::{open, seeing};
use crate::common::Home;

#[test]
fn a_draft_says_how_long_its_first_word_takes_once_that_was_measured() {
    let home = Home::new("first-token");
    let app = open(&home, 4096);
    let (model, png) = seeing(&app);
    let long = "a word ".repeat(200);
    let attach = || app.attach("a.png", &png).unwrap();
    let ids = |files: &[&Attachment]| files.iter().map(|file| file.id.clone()).collect();
    let expected = |model: &str, conversation: Option<&str>, text: &str, files: &[&Attachment]| {
        let (conversation, model) = (conversation.map(Into::into), Some(model.into()));
        let attachments = ids(files);
        let draft = DraftArgs { conversation, text: text.into(), model, attachments, ..DraftArgs::default() };
        app.draft_count(&draft).unwrap().first_token_ms
    };
    let send = |files: &[&Attachment]| -> (String, TurnStats) {
        let (text, attachments) = (long.clone(), ids(files));
        let args = SendArgs { model: Some(model.clone()), text, attachments, ..SendArgs::default() };
        let started = app.send(args).unwrap();
        let events: Vec<_> = app.watch_turn(&started.turn, 0).unwrap().flatten().collect();
        match &events.last().unwrap().kind {
            TurnEventKind::Done { stats } => (started.conversation, stats.clone()),
            other => panic!("{other:?}"),
        }
    };

    assert_eq!(expected(&model, None, &long, &[]), None, "it never answered");
    let (_, stats) = send(&[]);
    assert_eq!((stats.image_tokens, stats.image_ms), (0, 0.0));
    assert!(expected(&model, None, &long, &[]).is_some());
    let image = attach();
    assert_eq!(expected(&model, None, &long, &[&image]), None, "it never saw an image");

    let (conversation, stats) = send(&[&image]);
    assert!(stats.image_tokens >= 16 && stats.image_ms > 0.0, "{stats:?}");
    let (_, again) = send(&[&attach()]);
    assert_eq!((again.image_tokens, again.image_ms), (0, 0.0), "the tower remembers it");
    let (plain, seen) = (expected(&model, None, &long, &[]), expected(&model, None, &long, &[&attach()]));
    assert!(plain.is_some() && plain <= seen, "{plain:?} {seen:?}");
    // What the conversation has is not read again.
    let next = expected(&model, Some(&conversation), "And?", &[]);
    assert!(next.is_some() && next <= plain, "{next:?} {plain:?}");
    assert_eq!(expected("starter", None, &long, &[]), None, "nothing of another model counts");
}
