//! Counts a draft while it is written: exactly what sending it would cost, and what the rest of its
//! prompt costs.

use serde_json::Value;

use crate::App;
use crate::retrieval::PromptGround;
use documents::blocks;

use super::rows_to_types::history_messages;
use contract::Result;
use contract::types::{ContextParts, DraftArgs, DraftCount};
use prompt::history::{history, with_system};

impl App {
    /// Tokens of the prompt that sending this draft would make with its files, how many the model holds, and what
    /// becomes of each file.
    pub fn draft_count(&self, args: &DraftArgs) -> Result<DraftCount> {
        let ground = self.ground_of(args)?;
        let files = self.pending(&args.attachments)?;
        let planned = self.plan(&ground, &args.text, &files)?;
        let question = blocks::message(&planned.blocks, &args.text);
        let messages = self.prompt_of(&ground, &question)?;
        let counted = self.counted(ground.count(messages, Vec::new()))?;
        Ok(DraftCount {
            tokens: counted.tokens,
            context_limit: counted.context_limit,
            can_think_or_not: counted.can_think_or_not,
            has_efforts: counted.has_efforts,
            is_about: counted.is_about,
            attachments: planned.costs,
        })
    }

    /// What the prompt of a draft consists of before it. Text and files of the draft itself are not looked at.
    pub fn context_parts(&self, args: &DraftArgs) -> Result<ContextParts> {
        let mut ground = self.ground_of(args)?;
        let with_files = self.prompt_of(&ground, "")?;
        let has_files = ground.branch.iter().any(|it| !it.attachments.files.is_empty());
        let is_new = ground.branch.is_empty();
        let system: Vec<String> = ground.system.clone().into_iter().collect();

        let all = self.counted(ground.count(with_files.clone(), system))?;
        let files = match has_files {
            true => {
                let without =
                    with_system(history(history_messages(ground.branch.clone())), ground.system.clone());
                all.tokens.saturating_sub(self.counted(ground.count(without, Vec::new()))?.tokens)
            }
            false => 0,
        };
        let tools = match ground.chat.tools.take() {
            Value::Null => 0,
            _ => all.tokens.saturating_sub(self.counted(ground.count(with_files, Vec::new()))?.tokens),
        };
        let system = all.texts.first().copied().unwrap_or(0);
        let before = if is_new { system + tools } else { all.tokens };
        Ok(ContextParts { before, system, tools, files })
    }

    fn ground_of(&self, args: &DraftArgs) -> Result<PromptGround> {
        let fresh = args.options.as_ref();
        self.ground(args.conversation.as_deref(), args.model.as_deref(), fresh)
    }
}
