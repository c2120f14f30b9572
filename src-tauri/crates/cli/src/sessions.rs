//! `nook sessions`: saved chats; `nook backup` and `nook restore`: all data.

use app::App;
use clap::{Args, Subcommand, ValueEnum};
use contract::Error;
use contract::Result;
use contract::types::{
    Conversation, ConversationSummary, ExportFormat, ImportSummary, Role, SearchArgs, SearchResult,
    SnippetPart,
};
use platform::calendar;
use serde_json::json;

use crate::args::global::Global;
use crate::checkpoints::{self, CheckpointArgs};
use crate::turn::{describe_compaction, format_sources};
use crate::{out, text};

#[derive(Debug, Args)]
pub struct SessionsArgs {
    #[command(subcommand)]
    pub verb: SessionsVerb,
}

#[derive(Debug, Subcommand)]
pub enum SessionsVerb {
    /// List saved chats
    List,
    /// Print a chat
    Show { id: String },
    /// Move a chat to the trash, or delete it permanently
    Rm {
        id: String,
        /// Delete permanently: text, search index and every backup that contains it
        #[arg(long)]
        forever: bool,
        /// Delete one message permanently, by its id; later messages are kept
        #[arg(long, value_name = "ID", conflicts_with = "forever")]
        message: Option<String>,
    },
    /// List the trash
    Trash {
        /// Delete everything in the trash permanently
        #[arg(long)]
        empty: bool,
    },
    /// Restore a chat from the trash
    Restore { id: String },
    /// Manage checkpoints: named points to return to
    Checkpoint(CheckpointArgs),
    /// Search messages by word beginnings; \"quoted text\" matches exactly
    Search {
        query: String,
        /// Maximum number of messages
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Export as Markdown or complete JSON; without an id, all chats
    Export {
        id: Option<String>,
        #[arg(long, value_enum, default_value_t = ExportFormatArg::Md)]
        format: ExportFormatArg,
        /// Write to a file instead of standard output
        #[arg(long, value_name = "FILE")]
        out: Option<String>,
    },
    /// Import Inglenook JSON, or a ChatGPT or Claude export, also as ZIP
    Import { file: String },
    /// Compact a chat: summarize or leave out older messages for the model. They stay in the chat
    Compact(CompactArgs),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ExportFormatArg {
    Md,
    Json,
}

#[derive(Debug, Args)]
pub struct FileArgs {
    pub file: String,
}

#[derive(Debug, Args)]
pub struct CompactArgs {
    pub id: String,
    /// Send the full messages to the model again
    #[arg(long)]
    pub undo: bool,
    /// Also use this method whenever the chat no longer fits the context
    #[arg(long, value_name = "HOW", value_parser = ["window", "summary", "attention", "off", "default"])]
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
        SessionsVerb::Rm { id, message: Some(message), .. } => {
            let app = open()?;
            // refuse a message of another conversation
            if !app.conversation_get(id)?.messages.iter().any(|it| it.id == *message) {
                return Err(Error::not_found(
                    "session.not_found",
                    format!("There is no message {message} in the current branch of {id}."),
                    "Find its id with `nook sessions show ID --json`.",
                ));
            }
            let summary = app.message_forget(message)?;
            if global.json {
                out::json(&summary)
            }
        }
        SessionsVerb::Rm { id, forever, message: None } => {
            let app = open()?;
            if *forever {
                app.conversation_forget(id)?
            } else {
                app.conversation_delete(id)?
            }
            if global.json {
                out::json(&json!({ "removed": id, "forever": forever }))
            }
        }
        SessionsVerb::Checkpoint(args) => checkpoints::checkpoint(&open()?, args, global.json)?,
        SessionsVerb::Trash { empty: false } => list(&open()?.trash_list()?, global.json),
        SessionsVerb::Trash { empty: true } => {
            let count = open()?.trash_empty()?;
            if global.json { out::json(&count) } else { out::log(&format!("{} wiped", count.count)) }
        }
        SessionsVerb::Restore { id } => {
            let summary = open()?.conversation_restore(id)?;
            if global.json {
                out::json(&summary)
            }
        }
        SessionsVerb::Search { query, limit } => {
            let found = open()?.search(&SearchArgs { query: query.clone(), limit: Some(*limit) })?;
            if global.json { out::json(&found) } else { out::text(&hits(&found)) }
        }
        SessionsVerb::Export { id, format, out } => {
            export(&open()?, id.as_deref(), *format, out.as_deref(), global.json)?
        }
        SessionsVerb::Import { file } => imported(&open()?.import_file(file)?, global.json),
        SessionsVerb::Compact(args) => compact(&open()?, args, global.json)?,
    }
    Ok(())
}

fn export(
    app: &App,
    id: Option<&str>,
    format: ExportFormatArg,
    file: Option<&str>,
    as_json: bool,
) -> Result<()> {
    let kind = match format {
        ExportFormatArg::Md => ExportFormat::Md,
        ExportFormatArg::Json => ExportFormat::Json,
    };
    if let Some(file) = file {
        let saved = app.export_to(id, kind, file)?;
        if as_json {
            out::json(&saved)
        } else {
            out::log(&format!("saved as {}", saved.path))
        }
        return Ok(());
    }
    let exported = app.export(id, kind)?;
    match format {
        ExportFormatArg::Md if as_json => out::json(&exported),
        ExportFormatArg::Md | ExportFormatArg::Json => out::text(&exported.text),
    }
    Ok(())
}

fn imported(imported: &ImportSummary, as_json: bool) {
    if as_json {
        return out::json(imported);
    }
    list(&imported.conversations, false);
    for failure in &imported.failures {
        out::log(&format!("left out: {}", failure.message));
    }
    out::log(&format!("{} imported, {} left out", imported.conversations.len(), imported.failed));
}

pub fn backup(global: &Global, args: &FileArgs) -> Result<()> {
    let saved = App::open(global.app_config()?)?.data_backup(&args.file)?;
    if global.json {
        out::json(&saved)
    } else {
        out::log(&format!("backup saved to {}", saved.path))
    }
    Ok(())
}

pub fn restore(global: &Global, args: &FileArgs) -> Result<()> {
    let restored = App::open(global.app_config()?)?.data_restore(&args.file)?;
    if global.json {
        out::json(&restored);
    } else {
        let contract::types::RestoreSummary { added, beside, same } = restored;
        out::log(&format!("{added} restored, {same} already existed, {beside} added as separate versions"));
    }
    Ok(())
}

/// Formats search results, with matches in brackets.
fn hits(found: &SearchResult) -> String {
    let part = |part: &SnippetPart| if part.hit { format!("[{}]", part.text) } else { part.text.clone() };
    let titles = found.titles.iter().map(|hit| vec![hit.conversation.clone(), format!("[{}]", hit.title)]);
    let messages = found.messages.iter().map(|hit| {
        let snippet: String = hit.snippet.iter().map(part).collect();
        vec![
            hit.conversation.clone(),
            hit.title.clone(),
            snippet.split_whitespace().collect::<Vec<_>>().join(" "),
        ]
    });
    let titles: Vec<_> = titles.collect();
    text::table(&titles) + &text::table(&messages.collect::<Vec<_>>())
}

fn list(conversations: &[ConversationSummary], as_json: bool) {
    if as_json {
        return out::json(&json!({ "sessions": conversations }));
    }
    let row = |summary: &ConversationSummary| {
        let date = calendar::date_time(summary.updated_ms).replace('T', " ");
        vec![summary.id.clone(), date, summary.model.clone(), summary.title.clone()]
    };
    out::text(&text::table(&conversations.iter().map(row).collect::<Vec<_>>()));
}

/// Compacts a conversation, undoes the compaction, or sets its strategy.
fn compact(app: &App, args: &CompactArgs, as_json: bool) -> Result<()> {
    let CompactArgs { id, undo, strategy } = args;
    let strategy = strategy.as_deref();
    if let Some(strategy) = strategy {
        let chosen = serde_json::from_value(json!(strategy)).ok().filter(|_| strategy != "default");
        app.conversation_set_compression(id, chosen)?;
    }
    if *undo {
        app.conversation_undo_compaction(id)?;
        if as_json {
            out::json(&json!({ "unfolded": id }));
        } else {
            out::log("the model gets the full messages again, as far as they fit");
        }
        return Ok(());
    }
    // `--strategy off` disables compaction, so nothing is compacted now.
    if strategy == Some("off") {
        return Ok(());
    }
    let compaction = app.conversation_compact(id)?;
    if as_json {
        out::json(&compaction);
    } else {
        out::log(&describe_compaction(&compaction));
        compaction.summary.iter().for_each(|summary| out::text(&format!("{summary}\n")));
    }
    Ok(())
}

/// Formats a conversation as text.
pub fn transcript(conversation: &Conversation) -> String {
    let mut shown = format!("# {}\n", conversation.summary.title);
    for message in &conversation.messages {
        let who = match message.role {
            Role::System => "system",
            Role::User => "you",
            Role::Assistant => "model",
        };
        shown.push_str(&format!("\n{who}> {}\n", message.text.trim_end()));
        for file in &message.attachments {
            shown.push_str(&format!("[file: {}]\n", file.name));
        }
        if !message.sources.is_empty() {
            shown.push_str(&format!("[{}]\n", format_sources(&message.sources)));
        }
    }
    shown
}
