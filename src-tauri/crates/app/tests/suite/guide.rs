//! Conversations with the built-in model, answered from the user guide.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::{Duration, Instant};

use crate::common::{Home, again};
use app::App;
use contract::types::{
    GuideReply, ModelState, Role, SendArgs, TemporaryArgs, TemporaryMessage, TurnEventKind, TurnStats,
};
use guide::{Guide, Language};
use serde_json::json;

/// Longest time to the first word, on two cores.
const MAX_FIRST_WORD: Duration = Duration::from_millis(150);

/// Longest time for a message of ten megabytes, most of which is storing it.
const MAX_BOOK: Duration = Duration::from_secs(5);

/// An answer as a watcher hears it.
struct TimedAnswer {
    text: String,
    stats: TurnStats,
    first_word: Duration,
}

fn guided(home: &Home) -> App {
    home.open_as(&[("guide_answers", json!(true)), ("language", json!("en"))])
}

fn hear(app: &App, turn: &str, asked: Instant) -> TimedAnswer {
    let (mut text, mut first_word) = (String::new(), None);
    for event in app.watch_turn(turn, 0).unwrap().flatten() {
        match event.kind {
            TurnEventKind::Text { text: more, .. } => {
                first_word.get_or_insert_with(|| asked.elapsed());
                text.push_str(&more);
            }
            TurnEventKind::Done { stats } => {
                return TimedAnswer { text, stats, first_word: first_word.unwrap() };
            }
            TurnEventKind::Queued { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    panic!("the turn has no end")
}

fn ask(app: &App, conversation: Option<&str>, text: &str) -> (String, TimedAnswer) {
    let asked = Instant::now();
    let args =
        SendArgs { conversation: conversation.map(str::to_owned), text: text.into(), ..SendArgs::default() };
    let started = app.send(args).unwrap();
    let heard = hear(app, &started.turn, asked);
    (started.conversation, heard)
}

fn article_of(heard: &TimedAnswer) -> Option<&str> {
    match heard.stats.guide.as_ref()? {
        GuideReply::Article { article, .. } => Some(article),
        GuideReply::SmallTalk | GuideReply::OutOfScope { .. } => None,
    }
}

#[test]
fn a_question_is_answered_with_its_article_at_once_and_without_a_model() {
    let home = Home::new("guide-article");
    let app = guided(&home);
    let (id, heard) = ask(&app, None, "Can I print a chat to PDF?");
    let guide = Guide::in_language(Language::English);
    assert_eq!(article_of(&heard), Some("print-a-chat"));
    assert_eq!(heard.text, guide.text(guide.article("print-a-chat").unwrap()));
    // Others use this computer too: the fastest of three counts.
    let first_word = (0..2)
        .map(|_| ask(&app, None, "Can I print a chat to PDF?").1.first_word)
        .fold(heard.first_word, Duration::min);
    assert!(first_word <= MAX_FIRST_WORD, "the first word came after {first_word:?}");
    let saved = app.conversation_get(&id).unwrap().messages.pop().unwrap();
    assert_eq!((saved.role, &saved.text), (Role::Assistant, &heard.text));
    assert_eq!(saved.stats.unwrap().guide, heard.stats.guide);
    let starter = app.models_list().unwrap().into_iter().find(|it| it.id == "starter").unwrap();
    assert_eq!(starter.state, ModelState::Unloaded);
    assert!(heard.stats.generated_tokens > 10 && heard.stats.is_about);
}

#[test]
fn each_question_is_answered_in_its_language() {
    let home = Home::new("guide-languages");
    let app = guided(&home);
    for (question, language) in [
        ("Wie drucke ich einen Chat?", Language::German),
        ("チャットを印刷するには？", Language::Japanese),
        ("كيف أطبع المحادثة؟", Language::Arabic),
    ] {
        let (_, heard) = ask(&app, None, question);
        let guide = Guide::in_language(language);
        assert_eq!(heard.text, guide.text(guide.article("print-a-chat").unwrap()), "{question}");
    }
}

/// One question of twelve of the guide's held-back set is asked in a chat.
const HELD_BACK_STEP: usize = 12;
/// Percent of them that must be answered with the right article, or declined.
const HELD_BACK_FLOOR: usize = 90;

#[test]
fn newcomers_get_the_right_article_in_a_chat() {
    let home = Home::new("guide-newcomers");
    let app = guided(&home);
    let set = include_str!("../../../guide/examples/newcomers.tsv");
    let mut wrong = Vec::new();
    let lines = set.lines().filter(|line| !line.starts_with('#')).step_by(HELD_BACK_STEP);
    let n_questions = lines.clone().count();
    for line in lines {
        let [_, ids, question] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (_, heard) = ask(&app, None, question);
        if !ids.split(',').any(|id| id == article_of(&heard).unwrap_or("-")) {
            wrong.push((question, heard.stats.guide));
        }
    }
    let n_right = n_questions - wrong.len();
    assert!(n_right * 100 >= n_questions * HELD_BACK_FLOOR, "{n_right} of {n_questions}: {wrong:?}");
}

#[test]
fn small_talk_is_short_and_what_is_out_of_scope_is_one_sentence() {
    let home = Home::new("guide-declines");
    let app = guided(&home);
    let (id, hello) = ask(&app, None, "hello");
    assert_eq!(hello.stats.guide, Some(GuideReply::SmallTalk));
    assert!(hello.text.len() < 120, "{}", hello.text);
    let (_, capital) = ask(&app, Some(&id), "What is the capital of France?");
    assert!(matches!(capital.stats.guide, Some(GuideReply::OutOfScope { .. })), "{:?}", capital.stats.guide);
    let sentence = capital.text.strip_suffix('.').unwrap();
    assert!(sentence.contains("only know this app") && !sentence.contains(". "), "{}", capital.text);
}

#[test]
fn retries_and_temporary_chats_are_answered_too() {
    let home = Home::new("guide-retries");
    let app = guided(&home);
    let (id, first) = ask(&app, None, "How do I delete a chat?");
    let answer = app.conversation_get(&id).unwrap().messages.pop().unwrap();
    let started = app.message_regenerate(&again(&answer.id)).unwrap();
    assert_eq!(hear(&app, &started.turn, Instant::now()).text, first.text);
    let message = TemporaryMessage {
        role: Role::User,
        text: "How do I delete a chat?".into(),
        attachments: Vec::new(),
        tool_calls: Vec::new(),
    };
    let args = TemporaryArgs { model: None, messages: vec![message], options: None };
    let turn = app.temporary_send(args).unwrap().turn;
    assert_eq!(hear(&app, &turn, Instant::now()).text, first.text);
}

#[test]
fn a_pasted_book_is_answered_as_its_beginning_is() {
    let home = Home::new("guide-book");
    let app = guided(&home);
    let book = format!("Can I print a chat to PDF? {}", "word ".repeat(2 << 20));
    let asked = Instant::now();
    let (_, heard) = ask(&app, None, &book);
    assert!(asked.elapsed() < MAX_BOOK, "it took {:?}", asked.elapsed());
    assert_eq!(heard.text, ask(&app, None, &book[..4096]).1.text);
}
