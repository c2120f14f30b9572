//! Counting a draft while it is written: exactly what sending it would cost.

use crate::App;
use crate::attachments::given;
use crate::error::Result;
use crate::types::{DraftArgs, DraftCount};

impl App {
    /// Tokens of the prompt that sending this draft would make with its files, how many the model holds, and what
    /// becomes of each file.
    pub fn draft_count(&self, args: &DraftArgs) -> Result<DraftCount> {
        let ground = self.ground(args.conversation.as_deref(), args.model.as_deref())?;
        let files = self.pending(&args.attachments)?;
        let planned = self.plan(&ground, &args.text, &files)?;
        let question = given::message(&planned.blocks, &args.text);
        let messages = self.prompt_of(&ground, &question)?;
        let counted = self.counted(ground.count(messages, Vec::new()))?;
        Ok(DraftCount {
            tokens: counted.tokens,
            context_limit: counted.context_limit,
            can_think_or_not: counted.can_think_or_not,
            is_about: counted.is_about,
            attachments: planned.costs,
        })
    }
}
