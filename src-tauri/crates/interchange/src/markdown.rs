//! A conversation for reading: the current branch as Markdown.

use session::{ConversationArchive, MessageRow, MessageState, Role};

use platform::calendar;

pub fn write(archive: &ConversationArchive) -> String {
    let row = &archive.conversation;
    let date = calendar::date_time(row.created_ms);
    let mut text = format!("# {}\n\n*{}*\n", row.title, date.replace('T', " "));
    for message in branch(archive) {
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
        text.push_str(&files(archive, message));
        match message.state {
            MessageState::Complete => {}
            MessageState::Stopped => text.push_str("\n*(stopped)*\n"),
            MessageState::Streaming | MessageState::Interrupted => text.push_str("\n*(interrupted)*\n"),
            MessageState::Failed => text.push_str("\n*(failed)*\n"),
        }
    }
    text
}

/// Which files a question came with; of those that were searched, what was given of them.
fn files(archive: &ConversationArchive, message: &MessageRow) -> String {
    let Some(by_message) = archive.files.by_message.get(&message.id) else { return String::new() };
    let all = archive.files.by_message.values().flat_map(|it| &it.files);
    let name = |id: &str| all.clone().find(|file| file.id == id).map(|file| file.name.as_str());
    let files =
        by_message.files.iter().map(|file| format!("- Attached: {} ({} bytes)\n", file.name, file.bytes));
    let passages = by_message.passages.iter().filter_map(|passage| {
        Some(format!("- Given to the model: {}, {}\n", name(&passage.attachment)?, location(passage)))
    });
    let list: String = files.chain(passages).collect();
    if list.is_empty() { list } else { format!("\n{list}") }
}

/// Such as `page 3` or `lines 10–42`.
fn location(row: &session::PassageRow) -> String {
    let session::PassageRow { start, end, first_line, last_line, page, .. } = *row;
    contract::types::Passage { start, end, first_line, last_line, page }.place()
}

/// Root first.
fn branch(archive: &ConversationArchive) -> Vec<&MessageRow> {
    let mut branch = Vec::new();
    let mut at = archive.conversation.leaf.as_deref();
    while let Some((row, _)) = at.and_then(|id| archive.messages.iter().find(|(row, _)| row.id == id)) {
        branch.push(row);
        at = row.parent.as_deref();
    }
    branch.reverse();
    branch
}
