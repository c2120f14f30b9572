//! Counts a draft while it is written: exactly what sending it would cost, and what the rest of its
//! prompt costs.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use session::AttachmentRow;

use crate::App;
use crate::retrieval::check_sight;
use crate::retrieval::{Document, PromptGround};
use documents::blocks;
use file_search::injected::FilledBranch;

use super::projects::ConversationStart;
use contract::Result;
use contract::types::{
    ContextParts, DraftArgs, DraftCount, HiddenPages, HiddenPagesReason, MemoryShare, ModelState,
};
use prompt::history::{history, with_system};
use records::conversations::history_messages;
use records::first_token::DraftPrompt;

impl App {
    /// Tokens of the prompt that sending this draft would make with its files, how many the model holds, and what
    /// becomes of each file.
    pub fn draft_count(&self, args: &DraftArgs) -> Result<DraftCount> {
        let (ground, project_files) = self.ground_of(args)?;
        let own = self.pending(&args.attachments)?;
        check_sight(&ground.model.id, || Ok(ground.sees()), &own)?;
        let files = [self.late_pages(&ground)?, project_files, own].concat();
        let planned = self.plan(&ground, &args.text, &files)?;
        let question = blocks::message(&planned.blocks, &args.text);
        // Pages that the project has no room for are not sent.
        let is_given =
            |file: &Arc<Document>| planned.given.attachments.files.iter().any(|given| given.id == file.id);
        let n_files = files.len();
        let given: Vec<_> = files.into_iter().filter(is_given).collect();
        let reason = if ground.sees() { HiddenPagesReason::NoRoom } else { HiddenPagesReason::Unseen };
        let count = u32::try_from(n_files - given.len()).unwrap_or(u32::MAX);
        let hidden_pages = (count > 0).then_some(HiddenPages { count, reason });
        let images = self.seen_images(&ground, &given);
        let messages = self.prompt_of(&ground, &question, images)?;
        let counted = self.counted(ground.count(messages, Vec::new()))?;
        let (model, files) = (&ground.model.id, &planned.given.attachments.files);
        let is_loaded = matches!(self.services().models.state(model), ModelState::Ready);
        let draft = DraftPrompt { model, is_loaded, tokens: counted.tokens, branch: &ground.branch, files };
        let first_token_ms = if counted.is_about { None } else { draft.first_token_ms(&self.store())? };
        Ok(DraftCount {
            tokens: counted.tokens,
            first_token_ms,
            hidden_pages,
            context_limit: counted.context_limit,
            can_think_or_not: counted.can_think_or_not,
            has_efforts: counted.has_efforts,
            is_about: counted.is_about,
            attachments: planned.costs,
        })
    }

    /// What the prompt of a draft consists of before it. Text and files of the draft itself are not looked at.
    pub fn context_parts(&self, args: &DraftArgs) -> Result<ContextParts> {
        let (mut ground, project_files) = self.ground_of(args)?;
        let with_files = self.prompt_of(&ground, "", Vec::new())?;
        let has_files = ground.branch.iter().any(|it| !it.attachments.files.is_empty());
        let is_new = ground.branch.is_empty();
        let parts = [ground.system.clone(), ground.memory.clone()].map(Option::unwrap_or_default);

        let all = self.counted(ground.count(with_files.clone(), parts.to_vec()))?;
        let of_project = self.project_tokens(&ground, &project_files, all.tokens)?;
        let files = match has_files {
            true => {
                let branch = FilledBranch::plain(ground.branch.clone());
                let without = with_system(history(history_messages(branch)), ground.full_system());
                all.tokens.saturating_sub(self.counted(ground.count(without, Vec::new()))?.tokens)
            }
            false if is_new => of_project,
            false => 0,
        };
        let tools = match ground.chat.tools.take() {
            Value::Null => 0,
            _ => all.tokens.saturating_sub(self.counted(ground.count(with_files, Vec::new()))?.tokens),
        };
        let tokens =
            |at: usize| if parts[at].is_empty() { 0 } else { all.texts.get(at).copied().unwrap_or(0) };
        let (system, notes) = (tokens(0), tokens(1));
        let before = if is_new { system + notes + tools + files } else { all.tokens };
        let memory = ground.memory.clone().map(|text| MemoryShare { tokens: notes, text });
        let prompt = (ground.system.as_deref(), system);
        let project = self.project_share(ground.project.as_deref(), prompt, of_project)?;
        Ok(ContextParts { before, system, tools, files, memory, project })
    }

    /// Tokens of the files that came from the project: of a new conversation, or of the branch, whose prompt has `all`.
    fn project_tokens(&self, ground: &PromptGround, files: &[Arc<Document>], all: u32) -> Result<u32> {
        if !files.is_empty() {
            return Ok(self.plan(ground, "", files)?.costs.iter().map(|cost| cost.tokens).sum());
        }
        let mut branch = ground.branch.clone();
        let mut ids = HashSet::new();
        for message in &mut branch {
            let (of_project, own) = std::mem::take(&mut message.attachments.files)
                .into_iter()
                .partition(|file| file.from_project);
            let of_project: Vec<AttachmentRow> = of_project;
            ids.extend(of_project.into_iter().map(|file| file.id));
            message.attachments.files = own;
            message.attachments.passages.retain(|passage| !ids.contains(&passage.attachment));
        }
        if ids.is_empty() {
            return Ok(0);
        }
        let without = self.prompt_of(&PromptGround { branch, ..ground.clone() }, "", Vec::new())?;
        Ok(all.saturating_sub(self.counted(ground.count(without, Vec::new()))?.tokens))
    }

    /// The prompt that a draft begins with, and the files of the project that it begins a conversation in.
    fn ground_of(&self, args: &DraftArgs) -> Result<(PromptGround, Vec<Arc<Document>>)> {
        let folder = args.folder.as_deref().filter(|_| args.conversation.is_none());
        let (model, options) = (args.model.clone(), args.options.clone());
        let start = self.start_in(folder, ConversationStart { model, options, ..Default::default() })?;
        let ground =
            self.ground(args.conversation.as_deref(), start.model.as_deref(), start.options.as_ref())?;
        Ok((ground, start.files))
    }
}
