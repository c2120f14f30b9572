//! A conversation to read: the branch that is looked at, as Markdown.

use session::{MessageRow, MessageState, Role, Whole};

use crate::civil;

pub fn write(whole: &Whole) -> String {
    let row = &whole.conversation;
    let date = civil::date_time(row.created_ms);
    let mut text = format!("# {}\n\n*{}*\n", row.title, date.replace('T', " "));
    for message in branch(whole) {
        let who = match message.role {
            Role::System => "System".to_owned(),
            Role::User => "You".to_owned(),
            Role::Assistant => message.model.clone().unwrap_or_else(|| "Model".into()),
        };
        text.push_str(&format!("\n## {who}\n\n"));
        if !message.reasoning.trim().is_empty() {
            let quoted: Vec<_> = message.reasoning.trim().lines().map(|line| format!("> {line}")).collect();
            text.push_str(&format!("> **Thinking**\n>\n{}\n\n", quoted.join("\n")));
        }
        text.push_str(message.text.trim_end());
        text.push('\n');
        match message.state {
            MessageState::Complete => {}
            MessageState::Stopped => text.push_str("\n*(stopped)*\n"),
            MessageState::Streaming | MessageState::Interrupted => text.push_str("\n*(interrupted)*\n"),
            MessageState::Failed => text.push_str("\n*(failed)*\n"),
        }
    }
    text
}

/// Root first.
fn branch(whole: &Whole) -> Vec<&MessageRow> {
    let mut branch = Vec::new();
    let mut at = whole.conversation.leaf.as_deref();
    while let Some((row, _)) = at.and_then(|id| whole.messages.iter().find(|(row, _)| row.id == id)) {
        branch.push(row);
        at = row.parent.as_deref();
    }
    branch.reverse();
    branch
}
