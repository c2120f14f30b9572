//! The user's own prompts as prompts of the protocol, and completions of arguments.

use app::{App, OwnPrompt};
use contract::types::ConversationSummary;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, GetPromptResult, ListPromptsResult,
    Prompt, PromptMessage, Reference, Role,
};

use crate::resources::{self, internal};

/// Characters of a prompt that describe it.
const DESCRIPTION_CHARS: usize = 100;

fn own_prompts(app: &App) -> Result<Vec<OwnPrompt>, ErrorData> {
    app.own_prompts().map_err(|error| internal(&error))
}

/// All prompts.
pub fn list(app: &App) -> Result<ListPromptsResult, ErrorData> {
    let prompts = own_prompts(app)?;
    let listed = prompts.into_iter().map(|prompt| {
        let description = description(&prompt);
        Prompt::new(&prompt.name, Some(description), None).with_title(&prompt.name)
    });
    Ok(ListPromptsResult::with_all_items(listed.collect()))
}

/// The beginning of a prompt's first line.
fn description(prompt: &OwnPrompt) -> String {
    let line = prompt.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let mut short: String = line.chars().take(DESCRIPTION_CHARS).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

/// One prompt as the message that it stands for.
pub fn get(app: &App, name: &str) -> Result<GetPromptResult, ErrorData> {
    let found = own_prompts(app)?.into_iter().find(|prompt| prompt.name == name);
    let Some(prompt) = found else {
        let message = format!("There is no prompt {name}. `prompts/list` gives their names.");
        return Err(ErrorData::invalid_params(message, None));
    };
    let description = description(&prompt);
    let message = PromptMessage::new_text(Role::User, prompt.text);
    Ok(GetPromptResult::new(vec![message]).with_description(description))
}

/// Values for an argument that begin with what the user has written: ids of chats for the template of resources, by
/// their titles too. Prompts have no arguments.
pub fn complete(app: &App, params: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let is_chat = matches!(params.r#ref, Reference::Resource(_));
    let mut values = match is_chat && params.argument.name == resources::TEMPLATE_ARGUMENT {
        true => {
            let chats = app.conversations_list().map_err(|error| internal(&error))?;
            matching(&chats, &params.argument.value)
        }
        false => Vec::new(),
    };
    let total = u32::try_from(values.len()).ok();
    let has_more = values.len() > CompletionInfo::MAX_VALUES;
    values.truncate(CompletionInfo::MAX_VALUES);
    let completion = CompletionInfo::with_pagination(values, total, has_more);
    Ok(CompleteResult::new(completion.map_err(|error| ErrorData::internal_error(error, None))?))
}

fn matching(chats: &[ConversationSummary], written: &str) -> Vec<String> {
    let wanted = written.to_lowercase();
    let fits = |chat: &&ConversationSummary| {
        chat.id.starts_with(written) || chat.title.to_lowercase().starts_with(&wanted)
    };
    chats.iter().filter(fits).map(|chat| chat.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::test_chat;

    #[test]
    fn a_description_is_the_beginning_of_the_first_line() {
        let of = |text: &str| {
            let prompt = OwnPrompt { name: "mail".into(), text: text.into() };
            description(&prompt)
        };
        assert_eq!(of("\n  Write a mail.\nBe brief."), "Write a mail.");
        assert_eq!(of(&"ä".repeat(101)), format!("{}…", "ä".repeat(100)));
    }

    #[test]
    fn chats_are_completed_by_id_and_title() {
        let chats = [test_chat(11), test_chat(12), test_chat(2)];
        assert_eq!(matching(&chats, "1"), ["11", "12"]);
        assert_eq!(matching(&chats, "chat 2"), ["2"]);
        assert_eq!(matching(&chats, "x"), Vec::<String>::new());
    }
}
