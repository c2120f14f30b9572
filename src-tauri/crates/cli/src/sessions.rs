//! `nook sessions`: saved conversations.

use api::types::{Conversation, ConversationSummary, Role};
use api::{App, Result, civil};
use serde_json::json;

use crate::args::{Global, SessionsArgs, SessionsVerb};
use crate::{not_built, out, text};

pub fn sessions(global: &Global, args: &SessionsArgs) -> Result<()> {
    let open = || App::open(global.app_config()?);
    match &args.verb {
        SessionsVerb::List => list(&open()?.conversations_list()?, global.json),
        SessionsVerb::Show { id } => {
            let conversation = open()?.conversation_get(id)?;
            if global.json { out::json(&conversation) } else { out::text(&transcript(&conversation)) }
        }
        SessionsVerb::Rm { id } => {
            open()?.conversation_delete(id)?;
            if global.json {
                out::json(&json!({ "removed": id }))
            }
        }
        SessionsVerb::Search(_) => return Err(not_built("nook sessions search")),
        SessionsVerb::Export(_) => return Err(not_built("nook sessions export")),
        SessionsVerb::Import(_) => return Err(not_built("nook sessions import")),
        SessionsVerb::Compact(_) => return Err(not_built("nook sessions compact")),
    }
    Ok(())
}

fn list(conversations: &[ConversationSummary], as_json: bool) {
    if as_json {
        return out::json(&json!({ "sessions": conversations }));
    }
    let row = |summary: &ConversationSummary| {
        let date = civil::date_time(summary.updated_ms).replace('T', " ");
        vec![summary.id.clone(), date, summary.model.clone(), summary.title.clone()]
    };
    out::text(&text::table(&conversations.iter().map(row).collect::<Vec<_>>()));
}

/// A conversation as it is read.
pub fn transcript(conversation: &Conversation) -> String {
    let mut shown = format!("# {}\n", conversation.summary.title);
    for message in &conversation.messages {
        let who = match message.role {
            Role::System => "system",
            Role::User => "you",
            Role::Assistant => "model",
        };
        shown.push_str(&format!("\n{who}> {}\n", message.text.trim_end()));
    }
    shown
}
