//! `nook sessions`: saved conversations.

use api::types::{Conversation, ConversationSummary, Role};
use api::{App, Result, civil};
use clap::Args;
use serde_json::json;

use crate::args::{Global, SessionsArgs, SessionsVerb};
use crate::turn::told;
use crate::{not_built, out, text};

#[derive(Debug, Args)]
pub struct CompactArgs {
    pub id: String,
    /// The model is shown them again
    #[arg(long)]
    pub undo: bool,
    /// And from now on so, whenever the conversation is longer than the context
    #[arg(long, value_name = "HOW", value_parser = ["window", "summary", "off", "default"])]
    pub strategy: Option<String>,
}

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
        SessionsVerb::Compact(args) => compact(&open()?, args, global.json)?,
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

/// Folds a conversation, unfolds it, or says how it is to be folded.
fn compact(app: &App, args: &CompactArgs, as_json: bool) -> Result<()> {
    let CompactArgs { id, undo, strategy } = args;
    let strategy = strategy.as_deref();
    if let Some(strategy) = strategy {
        let chosen = serde_json::from_value(json!(strategy)).ok().filter(|_| strategy != "default");
        app.conversation_set_compression(id, chosen)?;
    }
    if *undo {
        app.conversation_unfold(id)?;
        if as_json {
            out::json(&json!({ "unfolded": id }));
        } else {
            out::log("the model is shown everything again, as far as it fits");
        }
        return Ok(());
    }
    // Who chooses that nothing is folded wants nothing folded now.
    if strategy == Some("off") {
        return Ok(());
    }
    let fold = app.conversation_compact(id)?;
    if as_json {
        out::json(&fold);
    } else {
        out::log(&told(&fold));
        fold.summary.iter().for_each(|summary| out::text(&format!("{summary}\n")));
    }
    Ok(())
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
