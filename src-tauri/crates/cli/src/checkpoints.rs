//! `nook sessions checkpoint`: named points in conversations.

use app::App;
use clap::{Args, Subcommand};
use contract::Result;
use contract::types::{self, CheckpointInfo};
use platform::calendar;
use serde_json::json;

use crate::{out, text};

#[derive(Debug, Args)]
pub struct CheckpointArgs {
    #[command(subcommand)]
    pub verb: CheckpointVerb,
}

#[derive(Debug, Subcommand)]
pub enum CheckpointVerb {
    /// Save a checkpoint at the end of a chat, with its context
    Save {
        /// Chat id
        id: String,
        /// Name of the checkpoint
        #[arg(long)]
        name: String,
    },
    /// List the checkpoints of one chat or of all
    List { id: Option<String> },
    /// Return to a checkpoint; the next message starts a new branch
    Restore {
        /// Checkpoint id
        id: String,
    },
    /// Delete a checkpoint; the chat is kept
    Rm {
        /// Checkpoint id
        id: String,
    },
}

pub fn checkpoint(app: &App, args: &CheckpointArgs, as_json: bool) -> Result<()> {
    match &args.verb {
        CheckpointVerb::Save { id, name } => {
            let args = types::CheckpointArgs { conversation: id.clone(), name: name.clone() };
            let saved = app.checkpoint_save(&args)?;
            if as_json { out::json(&saved) } else { out::line(&saved.id) }
        }
        CheckpointVerb::List { id } => list(&app.checkpoints_list(id.as_deref())?, as_json),
        CheckpointVerb::Restore { id } => {
            let conversation = app.checkpoint_restore(id)?;
            if as_json { out::json(&conversation) } else { out::line(&conversation.id) }
        }
        CheckpointVerb::Rm { id } => {
            app.checkpoint_remove(id)?;
            if as_json {
                out::json(&json!({ "removed": id }));
            }
        }
    }
    Ok(())
}

fn list(checkpoints: &[CheckpointInfo], as_json: bool) {
    if as_json {
        return out::json(&json!({ "checkpoints": checkpoints }));
    }
    let row = |it: &CheckpointInfo| {
        let date = calendar::date_time(it.created_ms).replace('T', " ");
        vec![it.id.clone(), date, text::bytes(it.bytes), it.conversation.clone(), it.name.clone()]
    };
    out::text(&text::table(&checkpoints.iter().map(row).collect::<Vec<_>>()));
}
