//! The message tree through the application: edits, versions, continued answers, search, deleting
//! for good.
#![allow(clippy::unwrap_used)] // a test

use std::path::PathBuf;

use crate::common::{Home, again, found_in};
use app::App;
use contract::types::{
    ConversationOptions, Finish, Message, MessageState, SearchArgs, SendArgs, TurnEvent, TurnEventKind,
    TurnStarted, TurnStats,
};
use serde_json::json;

fn say(app: &App, conversation: Option<&str>, text: &str) -> TurnStarted {
    let args = SendArgs {
        conversation: conversation.map(Into::into),
        text: text.into(),
        model: None,
        ..SendArgs::default()
    };
    let started = app.send(args).unwrap();
    end(app, &started);
    started
}

/// All events of a turn, to its end.
fn end(app: &App, started: &TurnStarted) -> Vec<TurnEvent> {
    app.watch_turn(&started.turn, 0).unwrap().flatten().collect()
}

fn stats(events: &[TurnEvent]) -> TurnStats {
    match &events.last().unwrap().kind {
        TurnEventKind::Done { stats } => stats.clone(),
        other => panic!("{other:?}"),
    }
}

fn messages(app: &App, id: &str) -> Vec<Message> {
    app.conversation_get(id).unwrap().messages
}

fn texts(app: &App, id: &str) -> Vec<String> {
    messages(app, id).into_iter().map(|message| message.text).collect()
}

#[test]
fn messages_are_edited_and_answered_again_and_every_version_stays() {
    let home = Home::new("edit");
    let app = home.open();
    let first = say(&app, None, "How do I add a model?");
    let id = first.conversation.clone();
    say(&app, Some(&id), "And then?");
    let before = texts(&app, &id);
    let edited = app.message_edit(&first.user_message, "Is it private?").unwrap();
    end(&app, &edited);
    let after = texts(&app, &id);
    assert_eq!((after.len(), after[0].as_str()), (2, "Is it private?"));
    assert_eq!((messages(&app, &id)[0].version, messages(&app, &id)[0].versions), (2, 2));
    let changed = app.message_choose(&edited.user_message, Some(1)).unwrap();
    assert_eq!(texts(&app, &id), before);
    assert!(app.message_choose(&edited.user_message, None).unwrap().revision > changed.revision);
    assert_eq!(texts(&app, &id), after);

    let other = app.message_regenerate(&again(&first.assistant_message)).unwrap();
    end(&app, &other);
    assert_eq!(texts(&app, &id), before[..2], "the same question at temperature 0");
    assert_eq!(messages(&app, &id)[1].versions, 2);
    app.message_delete(&other.assistant_message).unwrap();
    assert_eq!(texts(&app, &id), before);
    app.message_restore(&other.assistant_message).unwrap();
    assert_eq!(texts(&app, &id), before[..2]);
    let fork = app.message_fork(&first.assistant_message).unwrap();
    assert_eq!(texts(&app, &fork.id), before[..2]);
    assert_eq!(app.message_edit(&first.user_message, " ").unwrap_err().code(), "chat.empty_message");
    assert_eq!(app.message_fork("x").unwrap_err().kind.http_status(), 404);
}

/// A rewritten answer is what the model is shown from then on.
#[test]
fn an_answer_is_rewritten_and_the_next_question_goes_on_from_it() {
    let home = Home::new("rewrite");
    let app = home.open();
    let first = say(&app, None, "How do I add a model?");
    let id = first.conversation.clone();
    let before = texts(&app, &id);
    let changed = app.answer_edit(&first.assistant_message, "By hand.").unwrap();
    assert_eq!(texts(&app, &id), ["How do I add a model?", "By hand."]);
    let mine = messages(&app, &id).pop().unwrap();
    assert_eq!((mine.version, mine.versions, mine.stats.is_none()), (2, 2, true));
    say(&app, Some(&id), "And then?");
    assert_eq!(texts(&app, &id).len(), 4);
    assert!(app.message_choose(&mine.id, Some(1)).unwrap().revision > changed.revision);
    assert_eq!(texts(&app, &id), before);
    assert_eq!(app.answer_edit(&mine.id, " ").unwrap_err().code(), "chat.empty_message");
    assert_eq!(app.answer_edit(&first.user_message, "x").unwrap_err().code(), "session.not_an_answer");
}

/// Cut short and continued, the answer equals the one generated in a single run.
#[test]
fn an_answer_goes_on_from_exactly_its_tokens() {
    let home = Home::new("continue");
    let app = home.open();
    let whole = say(&app, None, "Tell me all about models");
    let expected = messages(&app, &whole.conversation).swap_remove(1);
    for n_first in [1, 5, 11] {
        app.settings_set("max_tokens", &json!(n_first)).unwrap();
        let started = say(&app, None, "Tell me all about models");
        let cut = messages(&app, &started.conversation).swap_remove(1);
        assert_eq!(cut.stats.as_ref().unwrap().finish, Finish::Length);
        assert!(expected.text.starts_with(cut.text.trim_end_matches('\u{fffd}')));
        let n_rest = 24 - n_first;
        app.settings_set("max_tokens", &json!(n_rest)).unwrap();
        let more = app.message_continue(&started.assistant_message).unwrap();
        assert_eq!(more.assistant_message, started.assistant_message);
        let events = end(&app, &more);
        let told: String = events
            .iter()
            .filter_map(|event| match &event.kind {
                TurnEventKind::Text { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let done = messages(&app, &started.conversation).swap_remove(1);
        assert_eq!(done.text, expected.text, "cut after {n_first}");
        assert_eq!(told, done.text, "a watcher from the first event on sees all of it");
        let stats = stats(&events);
        // Question, answer so far: what the cache holds is not computed again.
        assert!(stats.reused_tokens + 2 >= stats.prompt_tokens, "{stats:?}");
        if done.stats.unwrap().finish != Finish::Length {
            let refused = app.message_continue(&started.assistant_message).unwrap_err();
            assert_eq!(refused.code(), "chat.cannot_continue");
        }
    }
    let refused = app.message_continue(&whole.user_message).unwrap_err();
    assert_eq!(refused.code(), "chat.cannot_continue");
}

#[test]
fn a_stopped_answer_goes_on_after_a_restart() {
    let home = Home::new("stopped");
    let app = home.open();
    app.settings_reset("max_tokens").unwrap();
    let args = SendArgs { text: "Tell me everything".into(), ..SendArgs::default() };
    let started = app.send(args).unwrap();
    let mut watch = app.watch_turn(&started.turn, 0).unwrap();
    watch.next_blocking();
    drop(app);
    watch.for_each(drop);
    let app = home.open();
    app.settings_reset("max_tokens").unwrap();
    let before = messages(&app, &started.conversation).swap_remove(1);
    if before.state == MessageState::Interrupted && !before.text.is_empty() {
        let more = app.message_continue(&started.assistant_message).unwrap();
        stats(&end(&app, &more));
        let after = messages(&app, &started.conversation).swap_remove(1);
        assert!(after.text.starts_with(before.text.trim_end_matches('\u{fffd}')), "{before:?} {after:?}");
        assert_eq!(after.state, MessageState::Complete);
    }
}

#[test]
fn conversations_have_options_of_their_own() {
    let home = Home::new("options");
    let app = home.open();
    let first = say(&app, None, "Hello");
    let id = first.conversation.clone();
    let n_before = messages(&app, &id)[1].stats.as_ref().unwrap().prompt_tokens;
    let options = ConversationOptions {
        system_prompt: Some("You speak like a pirate, in short sentences, always.".into()),
        max_tokens: Some(3),
        ..ConversationOptions::default()
    };
    app.conversation_set_options(&id, &options).unwrap();
    assert_eq!(app.conversation_get(&id).unwrap().options, options);
    let other = app.message_regenerate(&again(&first.user_message)).unwrap();
    let stats = stats(&end(&app, &other));
    assert!(stats.prompt_tokens > n_before && stats.generated_tokens <= 3, "{stats:?}");
    let hot = ConversationOptions { temperature: Some(9.0), ..ConversationOptions::default() };
    assert!(app.conversation_set_options(&id, &hot).unwrap_err().message().contains("0 to 2"));
    app.conversation_set_options(&id, &ConversationOptions::default()).unwrap();
    assert_eq!(app.conversation_get(&id).unwrap().options, ConversationOptions::default());
}

#[test]
fn one_message_goes_for_good_and_the_rest_of_its_conversation_stays() {
    const MARKER: &str = "zebraquartzite";
    let home = Home::new("forget-one");
    let app = home.open();
    let first = say(&app, None, &format!("{MARKER} is what?"));
    let id = first.conversation.clone();
    say(&app, Some(&id), "How do I add a model?");
    let n_stored = || std::fs::read_dir(home.0.join("contexts")).map_or(0, Iterator::count);
    drop(app);
    let app = home.open();
    assert!(n_stored() > 0 && !found_in(&home.0, MARKER.as_bytes()).is_empty(), "the test looks where it is");
    // an answer may repeat it
    for message in [&first.user_message, &first.assistant_message] {
        app.message_forget(message).unwrap();
    }
    assert_eq!(found_in(&home.0, MARKER.as_bytes()), Vec::<PathBuf>::new());
    assert_eq!(n_stored(), 0, "contexts hold its tokens");
    let left = app.conversation_get(&id).unwrap();
    assert_eq!((left.messages.len(), left.summary.title.as_str()), (4, "New chat"));
    assert_eq!(left.messages[2].text, "How do I add a model?");
    say(&app, Some(&id), "Is it private?");
    assert_eq!(texts(&app, &id).len(), 6);
    assert_eq!(app.message_forget("x").unwrap_err().kind.http_status(), 404);
    drop(app);
    assert_eq!(found_in(&home.0, MARKER.as_bytes()), Vec::<PathBuf>::new());
}

#[test]
fn f45_deleted_for_good_leaves_no_trace_below_the_data_folder() {
    const MARKER: &str = "zebraquartzite";
    let home = Home::new("forget");
    let app = home.open();
    let kept = say(&app, None, "Hello");
    let first = say(&app, None, &format!("{MARKER} is what?"));
    let id = first.conversation.clone();
    let options = ConversationOptions {
        system_prompt: Some(format!("Say {MARKER}")),
        ..ConversationOptions::default()
    };
    app.conversation_set_options(&id, &options).unwrap();
    end(&app, &app.message_edit(&first.user_message, &format!("And {MARKER}?")).unwrap());
    app.message_delete(&first.user_message).unwrap();
    app.conversation_rename(&id, MARKER).unwrap();
    let args = SearchArgs { query: MARKER.into(), limit: None };
    let found = app.search(&args).unwrap();
    assert_eq!((found.titles.len(), found.messages.is_empty()), (1, false));
    assert!(!found_in(&home.0, MARKER.as_bytes()).is_empty());
    app.conversation_delete(&id).unwrap();
    assert_eq!(app.trash_list().unwrap()[0].id, id);
    assert_eq!(app.trash_empty().unwrap().count, 1);
    assert_eq!(app.trash_list().unwrap(), []);
    assert_eq!(found_in(&home.0, MARKER.as_bytes()), Vec::<PathBuf>::new());
    assert_eq!(app.search(&args).unwrap().messages, []);
    drop(app);
    assert_eq!(found_in(&home.0, MARKER.as_bytes()), Vec::<PathBuf>::new());
    assert_eq!(texts(&home.open(), &kept.conversation).len(), 2);
}
