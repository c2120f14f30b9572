//! Answers inspected token by token, continued from another token, and temporary chats.
#![allow(clippy::unwrap_used)] // a test

use app::App;
use contract::types::{
    MessageState, PickArgs, Role, SendArgs, TemporaryArgs, TemporaryMessage, TokenAlternatives,
    TurnEventKind, TurnStarted,
};
use serde_json::json;

use crate::common::Home;

fn opened(name: &str) -> (Home, App) {
    let home = Home::new(&format!("look-{name}"));
    // A model that is writing a title can't be inspected meanwhile.
    let app = home.open_as(&[("max_tokens", json!(12)), ("titles", json!(false))]);
    (home, app)
}

fn end(app: &App, started: &TurnStarted) {
    app.watch_turn(&started.turn, 0).unwrap().for_each(drop);
}

fn say(app: &App, conversation: Option<&str>, text: &str) -> TurnStarted {
    let conversation = conversation.map(Into::into);
    let args = SendArgs { conversation, text: text.into(), ..SendArgs::default() };
    let started = app.send(args).unwrap();
    end(app, &started);
    started
}

fn ids(tokens: &[TokenAlternatives]) -> Vec<u32> {
    tokens.iter().map(|it| it.token.id).collect()
}

#[test]
fn a_greedy_answer_is_made_of_the_likeliest_tokens() {
    let (_home, app) = opened("greedy");
    let first = say(&app, None, "How do I add a model?");
    let second = say(&app, Some(&first.conversation), "And then?");
    for started in [&first, &second] {
        let tokens = app.message_tokens(&started.assistant_message).unwrap();
        assert!(!tokens.is_empty());
        for TokenAlternatives { token, others } in &tokens {
            assert_eq!(others[0], *token, "at temperature 0 the likeliest is written");
            assert!(others.is_sorted_by(|a, b| a.probability >= b.probability));
            assert!(others.iter().map(|it| it.probability).sum::<f32>() <= 1.0001);
        }
    }
}

#[test]
fn another_token_begins_another_version() {
    let (_home, app) = opened("pick");
    let started = say(&app, None, "How do I add a model?");
    let tokens = app.message_tokens(&started.assistant_message).unwrap();
    let other = tokens[2].others[1].id;
    let pick = PickArgs { message: started.assistant_message.clone(), index: 2, token: other };
    let picked = app.message_pick(&pick).unwrap();
    end(&app, &picked);

    let versions = app.conversation_get(&started.conversation).unwrap().messages;
    let answer = versions.last().unwrap();
    assert_eq!((answer.version, answer.versions, answer.state), (2, 2, MessageState::Complete));
    let again = app.message_tokens(&picked.assistant_message).unwrap();
    assert_eq!(ids(&again)[..3], [tokens[0].token.id, tokens[1].token.id, other]);
    assert!(answer.text.len() > 3, "{:?}", answer.text);

    // The old version is as it was, and is looked at where it is chosen.
    assert_eq!(app.message_tokens(&started.assistant_message).unwrap_err().code(), "look.nothing");
    app.message_choose(&started.assistant_message, None).unwrap();
    assert_eq!(ids(&app.message_tokens(&started.assistant_message).unwrap()), ids(&tokens));
}

#[test]
fn what_has_no_tokens_is_refused_with_a_reason() {
    let (_home, app) = opened("refused");
    let started = say(&app, None, "Hello");
    assert_eq!(app.message_tokens(&started.user_message).unwrap_err().code(), "look.nothing");
    let beyond = PickArgs { message: started.assistant_message, index: 9_999, token: 1 };
    assert_eq!(app.message_pick(&beyond).unwrap_err().code(), "look.no_token");
}

#[test]
fn a_temporary_chat_is_answered_and_kept_nowhere() {
    let (_home, app) = opened("temporary");
    let message = |role, text: &str| TemporaryMessage {
        role,
        text: text.into(),
        attachments: Vec::new(),
        tool_calls: Vec::new(),
    };
    let args = TemporaryArgs {
        messages: vec![
            message(Role::User, "Hello"),
            message(Role::Assistant, "Good day."),
            message(Role::User, "How do I add a model?"),
        ],
        model: None,
        options: None,
    };
    let turn = app.temporary_send(args).unwrap().turn;
    let events: Vec<_> = app.watch_turn(&turn, 0).unwrap().flatten().collect();
    let wrote = |kind: &TurnEventKind| matches!(kind, TurnEventKind::Text { text, .. } if !text.is_empty());
    assert!(events.iter().any(|event| wrote(&event.kind)));
    assert!(matches!(events.last().unwrap().kind, TurnEventKind::Done { .. }));
    assert!(app.conversations_list().unwrap().is_empty());
    assert!(app.trash_list().unwrap().is_empty());

    let nothing = TemporaryArgs { messages: Vec::new(), model: None, options: None };
    assert_eq!(app.temporary_send(nothing).unwrap_err().code(), "chat.empty_message");
}
