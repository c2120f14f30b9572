//! Chats as training data: only answers that the user kept or edited.
//!
//! An answer is kept if it is complete and on the branch that the chat shows. One that depends on what the data cannot
//! show, such as files and results of tools, is left out.

use contract::types::{
    Conversation, Finish, Message, MessageState, Role, TuneChats, TuneLeftOut, TuneLeftOutReason,
};
use serde_json::{Value, json};

/// Chats as JSONL, one line each.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatData {
    /// Lines with `messages`. Answers of weight 0 are read and not learned.
    pub text: String,
    /// What was taken and left out.
    pub counts: TuneChats,
}

/// Collects the kept answers of chats. A chat without any has no line.
pub fn chat_data(conversations: &[Conversation]) -> ChatData {
    let mut collected = CollectedAnswers::default();
    let lines: Vec<String> = conversations.iter().filter_map(|chat| collected.line_of(chat)).collect();
    let left_out = REASONS.into_iter().zip(collected.left_out).filter(|(_, count)| *count > 0);
    let counts = TuneChats {
        chats: u32::try_from(lines.len()).unwrap_or(u32::MAX),
        answers: collected.answers,
        left_out: left_out.map(|(reason, count)| TuneLeftOut { reason, count }).collect(),
    };
    ChatData { text: lines.join("\n"), counts }
}

const REASONS: [TuneLeftOutReason; 5] = [
    TuneLeftOutReason::Replaced,
    TuneLeftOutReason::Unfinished,
    TuneLeftOutReason::Tools,
    TuneLeftOutReason::Files,
    TuneLeftOutReason::Guide,
];

/// Counts over all chats.
#[derive(Default)]
struct CollectedAnswers {
    answers: u32,
    /// In the order of `REASONS`.
    left_out: [u32; REASONS.len()],
}

impl CollectedAnswers {
    fn leave_out(&mut self, reason: TuneLeftOutReason, n: u32) {
        if let Some(at) = REASONS.iter().position(|it| *it == reason) {
            self.left_out[at] = self.left_out[at].saturating_add(n);
        }
    }

    /// A conversation up to its last kept answer. None: it has none.
    fn line_of(&mut self, conversation: &Conversation) -> Option<String> {
        let instructions = conversation.options.system_prompt.as_ref().filter(|text| !text.trim().is_empty());
        let mut messages: Vec<Value> =
            instructions.map(|text| json!({ "role": "system", "content": text })).into_iter().collect();
        let mut n_kept = 0;
        // The first reason for which nothing from there on can be learned.
        let mut unseen = None;
        for message in &conversation.messages {
            unseen = unseen.or_else(|| unseen_input(message));
            if message.role != Role::Assistant {
                let role = if message.role == Role::System { "system" } else { "user" };
                messages.push(json!({ "role": role, "content": message.text }));
                continue;
            }
            self.leave_out(TuneLeftOutReason::Replaced, message.versions.saturating_sub(1));
            let reason = unseen.or_else(|| reason_against(message));
            match reason {
                Some(reason) => self.leave_out(reason, 1),
                None => self.answers = self.answers.saturating_add(1),
            }
            match reason {
                None => {
                    messages.push(json!({ "role": "assistant", "content": message.text }));
                    n_kept = messages.len();
                }
                // A question without an answer is repeated by the next one.
                Some(_) if message.text.trim().is_empty() => _ = messages.pop(),
                Some(_) => {
                    messages.push(json!({ "role": "assistant", "content": message.text, "weight": 0 }));
                }
            }
        }
        messages.truncate(n_kept);
        (n_kept > 0).then(|| json!({ "messages": messages }).to_string())
    }
}

/// What the model got with a message that the data cannot show.
fn unseen_input(message: &Message) -> Option<TuneLeftOutReason> {
    if !message.tool_calls.is_empty() {
        return Some(TuneLeftOutReason::Tools);
    }
    (!message.attachments.is_empty() || !message.sources.is_empty()).then_some(TuneLeftOutReason::Files)
}

/// Why an answer is not learned. None: it was kept.
fn reason_against(message: &Message) -> Option<TuneLeftOutReason> {
    let stats = message.stats.as_ref();
    if stats.is_some_and(|stats| stats.guide.is_some()) {
        return Some(TuneLeftOutReason::Guide);
    }
    let is_cut = stats.is_some_and(|stats| match stats.finish {
        Finish::Stop => false,
        Finish::ToolCalls | Finish::Length | Finish::Cancelled | Finish::ContextFull | Finish::TimeUp => true,
    });
    let is_complete = message.state == MessageState::Complete && !is_cut && !message.text.trim().is_empty();
    (!is_complete).then_some(TuneLeftOutReason::Unfinished)
}

#[cfg(test)]
mod tests {
    use contract::types::{
        Attachment, ConversationOptions, ConversationSummary, GuideReply, ToolCall, TurnStats,
    };

    use super::*;

    fn message(role: Role, text: &str) -> Message {
        Message {
            id: text.into(),
            parent: None,
            role,
            text: text.into(),
            reasoning: String::new(),
            tool_calls: Vec::new(),
            state: MessageState::Complete,
            error: None,
            model: None,
            stats: None,
            attachments: Vec::new(),
            sources: Vec::new(),
            created_ms: 0,
            version: 1,
            versions: 1,
        }
    }

    fn question(text: &str) -> Message {
        message(Role::User, text)
    }

    fn answer(text: &str) -> Message {
        message(Role::Assistant, text)
    }

    fn stats(finish: &str, more: Value) -> Option<TurnStats> {
        let mut stats = json!({
            "finish": finish, "prompt_tokens": 1, "reused_tokens": 0, "generated_tokens": 1, "context_tokens": 2,
            "context_limit": 9, "load_ms": 0.0, "ttft_ms": 0.0, "prefill_tok_s": 1.0, "decode_tok_s": 1.0,
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            stats[key] = value.clone();
        }
        Some(serde_json::from_value(stats).expect("stats"))
    }

    fn chat(system_prompt: Option<&str>, messages: Vec<Message>) -> Conversation {
        let summary = ConversationSummary {
            id: "c".into(),
            title: "t".into(),
            model: "m".into(),
            created_ms: 0,
            updated_ms: 0,
            active_turn: None,
            folder: None,
            pinned: false,
            deleted_ms: None,
            activity: 0,
            revision: 0,
        };
        let system_prompt = system_prompt.map(str::to_owned);
        let options = ConversationOptions { system_prompt, ..ConversationOptions::default() };
        Conversation { summary, messages, options, compaction: None, compression: None }
    }

    /// Checks the messages of one chat, as role, text and whether it is learned, and what is left out.
    fn check(chat: Conversation, expected: &[(&str, &str, bool)], left_out: &[(TuneLeftOutReason, u32)]) {
        let ChatData { text, counts } = chat_data(&[chat]);
        let messages: Vec<Value> = match text.is_empty() {
            true => Vec::new(),
            false => {
                let line: Value = serde_json::from_str(&text).expect("one line");
                line["messages"].as_array().expect("messages").clone()
            }
        };
        let found: Vec<(&str, &str, bool)> = messages
            .iter()
            .map(|it| {
                let text = |key: &str| it[key].as_str().expect("a text");
                (text("role"), text("content"), engine::train::is_learned_answer(it))
            })
            .collect();
        assert_eq!(found, expected);
        let learned = expected.iter().filter(|(.., is_learned)| *is_learned).count();
        assert_eq!(counts.answers as usize, learned);
        assert_eq!(counts.chats, u32::from(!expected.is_empty()));
        let found: Vec<_> = counts.left_out.iter().map(|it| (it.reason, it.count)).collect();
        assert_eq!(found, left_out);
    }

    #[test]
    fn kept_and_edited_answers_are_learned() {
        let edited = Message { version: 3, versions: 3, ..answer("b") };
        let ended = Message { stats: stats("stop", Value::Null), ..answer("d") };
        check(
            chat(Some("Be brief."), vec![question("a"), edited, question("c"), ended, question("e")]),
            &[
                ("system", "Be brief.", false),
                ("user", "a", false),
                ("assistant", "b", true),
                ("user", "c", false),
                ("assistant", "d", true),
            ],
            &[(TuneLeftOutReason::Replaced, 2)],
        );
    }

    #[test]
    fn unfinished_answers_are_read_only() {
        let stopped = Message { state: MessageState::Stopped, ..answer("b") };
        let failed = Message { state: MessageState::Failed, ..answer("") };
        let cut = Message { stats: stats("length", Value::Null), ..answer("h") };
        check(
            chat(None, vec![question("a"), stopped, question("c"), failed, question("e"), answer("f")]),
            &[
                ("user", "a", false),
                ("assistant", "b", false),
                ("user", "e", false),
                ("assistant", "f", true),
            ],
            &[(TuneLeftOutReason::Unfinished, 2)],
        );
        check(chat(None, vec![question("g"), cut]), &[], &[(TuneLeftOutReason::Unfinished, 1)]);
    }

    #[test]
    fn answers_that_depend_on_more_than_the_text_are_left_out() {
        let call = ToolCall { id: "1".into(), name: "f".into(), arguments: "{}".into(), run: None };
        let calling = Message { tool_calls: vec![call], ..answer("") };
        check(
            chat(None, vec![question("a"), answer("b"), question("c"), calling, answer("d"), question("e")]),
            &[("user", "a", false), ("assistant", "b", true)],
            &[(TuneLeftOutReason::Tools, 2)],
        );
        let file: Attachment = serde_json::from_value(
            json!({ "id": "1", "name": "a.txt", "kind": "text", "bytes": 1, "findings": [] }),
        )
        .expect("a file");
        let with_file = Message { attachments: vec![file], ..question("a") };
        check(
            chat(None, vec![with_file, answer("b"), question("c"), answer("d")]),
            &[],
            &[(TuneLeftOutReason::Files, 2)],
        );
        let by_guide =
            Message { stats: stats("stop", json!({ "guide": GuideReply::SmallTalk })), ..answer("b") };
        check(
            chat(None, vec![question("a"), by_guide, question("c"), answer("d")]),
            &[
                ("user", "a", false),
                ("assistant", "b", false),
                ("user", "c", false),
                ("assistant", "d", true),
            ],
            &[(TuneLeftOutReason::Guide, 1)],
        );
    }
}
