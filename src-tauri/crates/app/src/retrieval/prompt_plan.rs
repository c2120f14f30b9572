//! How a question's files enter its prompt: whole where they fit, else as the passages that match.
//! Counted by the model's own vocabulary, identically for a draft and for what is sent.

use std::collections::HashSet;
use std::sync::Arc;

use compaction::TokenBudget;
use session::{BranchMessage, MessageAttachments, NewAttachments, PassageRow};

use super::Document;
use documents::blocks;
use file_search::{PassageHit, SearchedFile};

use crate::App;
use crate::context::stored_compactions::compression_of;
use crate::retrieval::images::can_see;
use crate::settings::TypedSettings;
use contract::protocol::{
    ChatOptions, Compression, CountRequest, LoadSpec, ModelRef, PromptImage, PromptMessage, TokenCounts,
};
use contract::types::{AttachmentCost, AttachmentKind, ConversationOptions};
use contract::{Error, ErrorKind, Result};
use file_search::injected::{passage_block, with_files};
use file_search::room::{PageRoom, whole_files};
use prompt::history::{history, with_question, with_system};
use prompt::memory::with_memory;
use records::conversations::history_messages;

/// Passages that are looked at for one question.
const MAX_FOUND: usize = 64;

/// Opening passages given of a file in which nothing matches.
const BEGINS: usize = 4;

/// What stands around passages. Tokens.
const AROUND: usize = 48;

/// Cuts of a passage that is too long, and how much more than by its tokens each takes away.
const MAX_CUTS: usize = 6;
const CUT: f64 = 0.9;

/// With less room than this no passage is worth giving. Tokens.
const LEAST: usize = 96;

/// A context that no server says the length of: everything fits.
const UNKNOWN_CONTEXT: usize = 1 << 20;

/// An image of a question, and what it costs.
type PricedImage = (Arc<Document>, AttachmentCost);

/// A conversation as a question finds it.
#[derive(Clone)]
pub(crate) struct PromptGround {
    pub conversation: Option<String>,
    pub model: ModelRef,
    pub load: LoadSpec,
    pub chat: ChatOptions,
    pub compression: Option<Compression>,
    /// What comes before the question.
    pub branch: Vec<BranchMessage>,
    pub system: Option<String>,
    /// The block of notes behind it.
    pub memory: Option<String>,
    /// The folder of the project that it began in.
    pub project: Option<String>,
    /// Of an answer.
    pub max_tokens: Option<usize>,
    /// Of a prompt, by the limits in force.
    pub most: Option<usize>,
}

/// What a question's files become.
#[derive(Default)]
pub(crate) struct PromptPlan {
    /// To be kept with the message.
    pub given: NewAttachments,
    /// Of its files, in order.
    pub costs: Vec<AttachmentCost>,
    /// What stands before the question.
    pub blocks: Vec<String>,
}

impl App {
    /// `conversation`: the one in use. None: a new one, which will have the attachments in `fresh`.
    pub(crate) fn ground(
        &self,
        conversation: Option<&str>,
        model: Option<&str>,
        fresh: Option<&ConversationOptions>,
    ) -> Result<PromptGround> {
        let model = self.model_of(model, conversation)?;
        let responder = self.responder(&model)?;
        let options = match conversation {
            Some(id) => self.options_of(id)?,
            None => self.with_default_instructions(fresh.cloned().unwrap_or_default())?,
        };
        let tools = self.tools_offer(Some(&options))?.definitions();
        let chat = self.chat_options_with(&model, &options, tools)?;
        let load = self.load_spec_for(&responder)?;
        let default = self.default_strategy()?;
        let (branch, compression) = match conversation {
            Some(id) => {
                let store = self.store();
                let branch = store.branch(id)?.messages;
                let compression = compression_of(&store, id, &branch, default)?;
                (branch, compression)
            }
            None => (Vec::new(), None),
        };
        let (limits, memory) = (self.limits()?, self.memory_of(&options)?);
        Ok(PromptGround {
            conversation: conversation.map(Into::into),
            model: responder.reference(),
            load,
            chat,
            compression,
            branch,
            max_tokens: limits.answer(self.max_tokens_with(&options)?),
            system: options.system_prompt,
            memory,
            project: options.project,
            most: limits.prompt_tokens,
        })
    }

    /// The prompt with one more question. Without one, as it is.
    pub(crate) fn prompt_of(
        &self,
        ground: &PromptGround,
        question: &str,
        images: Vec<PromptImage>,
    ) -> Result<Vec<PromptMessage>> {
        let branch = with_files(&self.store(), ground.branch.clone(), &|| ground.sees())?;
        let mut messages = with_system(history(history_messages(branch)), ground.full_system());
        // As sending does: a blank draft is none.
        if !question.trim().is_empty() || !images.is_empty() {
            messages = with_question(messages, question, images);
        }
        if messages.iter().all(|message| message.role == "system") {
            messages = with_question(messages, "", Vec::new());
        }
        Ok(messages)
    }

    /// Images of a draft, where the model takes any.
    pub(crate) fn seen_images(&self, ground: &PromptGround, files: &[Arc<Document>]) -> Vec<PromptImage> {
        let (_, images) = self.prompt_images(files);
        if images.is_empty() || !ground.sees() { Vec::new() } else { images }
    }

    /// What becomes of a question's files, and of those of earlier ones that are searched.
    pub(crate) fn plan(
        &self,
        ground: &PromptGround,
        question: &str,
        files: &[Arc<Document>],
    ) -> Result<PromptPlan> {
        let is_image = |file: &Arc<Document>| file.kind == AttachmentKind::Image;
        let (images, texts): (Vec<_>, Vec<_>) = files.iter().cloned().partition(is_image);
        let (images, costs): (Vec<_>, Vec<_>) = self.image_costs(ground, images)?.into_iter().unzip();
        let n_tokens: usize = costs.iter().map(|cost| cost.tokens as usize).sum();
        let mut planned = self.plan_texts(ground, question, &texts, n_tokens)?;
        if n_tokens > 0 {
            planned.blocks.splice(..0, self.prompt_images(&images).0);
        }
        for (image, cost) in images.iter().zip(costs) {
            planned.given.attachments.files.push(image.row(true, cost.tokens, false));
            planned.given.documents.push((image.sha256.clone(), Arc::clone(&image.text)));
            planned.costs.push(cost);
        }
        Ok(planned)
    }

    /// What each image costs the model, exactly where its vocabulary is here. All 0 for one that can't see. Leaves out
    /// scanned pages of a project that there is no room for, and all of them for a model that can't see.
    fn image_costs(&self, ground: &PromptGround, images: Vec<Arc<Document>>) -> Result<Vec<PricedImage>> {
        let priced = |file: Arc<Document>, tokens: u32| {
            let id = file.page_of.as_ref().unwrap_or(&file.id).clone();
            (file, AttachmentCost { id, tokens, tokens_whole: tokens, whole: true })
        };
        let can_wait = |file: &Document| file.from_project && file.page_of.is_some();
        if images.is_empty() || !ground.sees() {
            return Ok(images.into_iter().filter(|it| !can_wait(it)).map(|it| priced(it, 0)).collect());
        }
        let counted = |(names, images): (Vec<String>, Vec<PromptImage>)| {
            let content = names.concat();
            let message = PromptMessage { role: "user".into(), content, images, ..PromptMessage::default() };
            let mut request = ground.count(vec![message], Vec::new());
            (request.conversation, request.compression) = (None, None);
            self.counted(request)
        };
        let base = counted((Vec::new(), Vec::new()))?;
        let mut room = PageRoom::of_prompt(ground.budget(&base));
        let mut costs = Vec::with_capacity(images.len());
        for file in images {
            if can_wait(&file) && room.is_full() {
                continue;
            }
            let image = self.prompt_images(std::slice::from_ref(&file));
            let tokens = counted(image)?.tokens.saturating_sub(base.tokens);
            if !can_wait(&file) || room.take(tokens) {
                costs.push(priced(file, tokens));
            }
        }
        Ok(costs)
    }

    /// Of files with text, beside images of `n_image_tokens`.
    fn plan_texts(
        &self,
        ground: &PromptGround,
        question: &str,
        files: &[Arc<Document>],
        n_image_tokens: usize,
    ) -> Result<PromptPlan> {
        let kept = self.kept(ground)?;
        if files.is_empty() && (kept.is_empty() || question.trim().is_empty()) {
            return Ok(PromptPlan::default());
        }
        let blocks: Vec<String> =
            files.iter().map(|file| blocks::whole(&file.name, file.kind, &file.text)).collect();
        let (counted, tokens) = self.count_blocks(ground, question, files, &blocks)?;
        let budget = ground.budget(&counted);
        let free = budget.saturating_sub(counted.tokens as usize + n_image_tokens);
        // Where older messages make way, a file may take half of the room.
        let may_fold = ground.compression.is_some() && !ground.branch.is_empty();
        let room = if may_fold { free.max(budget / 2) } else { free };
        let wanted = self.ctx().settings.attachment_passages()?.unwrap_or(2048) as usize;
        let is_whole = whole_files(&tokens, room, wanted);
        let used: usize =
            tokens.iter().zip(&is_whole).filter(|(_, whole)| **whole).map(|(n, _)| *n as usize).sum();
        let new = files.iter().zip(&is_whole).filter(|(_, whole)| !**whole).map(|(file, _)| searched(file));
        let searched: Vec<SearchedFile> = new.chain(kept).collect();
        let most = wanted.min(room.saturating_sub(used));
        if most < LEAST && searched.iter().any(|file| file.is_new) {
            return Err(no_room(&searched, &tokens, free));
        }
        let chosen = if most < LEAST { Vec::new() } else { self.choose(ground, question, &searched, most)? };
        Ok(planned(files, &blocks, (&tokens, counted.is_about, &is_whole), &searched, chosen))
    }

    /// Files of earlier messages that were too long to be given whole.
    fn kept(&self, ground: &PromptGround) -> Result<Vec<SearchedFile>> {
        let rows =
            ground.branch.iter().flat_map(|message| &message.attachments.files).filter(|row| !row.is_whole);
        let store = self.store();
        let mut kept = Vec::new();
        for row in rows {
            // One that was deleted for good is not searched.
            if let Some(text) = store.document(&row.document)? {
                kept.push(SearchedFile {
                    id: row.id.clone(),
                    name: row.name.clone(),
                    kind: AttachmentKind::of_name(&row.kind),
                    sha256: row.document.clone(),
                    text: text.into(),
                    is_new: false,
                    from_project: row.from_project,
                });
            }
        }
        Ok(kept)
    }

    /// Tokens of the prompt without the files, and of each file. Files are counted once for a model.
    fn count_blocks(
        &self,
        ground: &PromptGround,
        question: &str,
        files: &[Arc<Document>],
        blocks: &[String],
    ) -> Result<(TokenCounts, Vec<u32>)> {
        let key = |file: &Arc<Document>| (ground.model.id.clone(), format!("{} {}", file.sha256, file.name));
        let attachments = &self.services().attachments;
        let known: Vec<Option<u32>> = files.iter().map(|file| attachments.token_count(&key(file))).collect();
        let wanting: Vec<usize> = (0..files.len()).filter(|&at| known[at].is_none()).collect();
        let texts = wanting.iter().map(|&at| blocks[at].clone()).collect();
        let messages = self.prompt_of(ground, question, Vec::new())?;
        let counted = self.counted(ground.count(messages, texts))?;
        let mut tokens: Vec<u32> = known.into_iter().map(Option::unwrap_or_default).collect();
        for (at, n) in wanting.into_iter().zip(&counted.texts) {
            tokens[at] = *n;
            // Of another server's model it is an estimate, which gets better.
            if !counted.is_about {
                attachments.keep_token_count(key(&files[at]), *n);
            }
        }
        Ok((counted, tokens))
    }

    /// The best passages that `most` tokens have room for, in the order of their files; with the tokens of each.
    fn choose(
        &self,
        ground: &PromptGround,
        question: &str,
        files: &[SearchedFile],
        most: usize,
    ) -> Result<Vec<(PassageHit, String, u32)>> {
        let searching = || self.services().attachments.search_cache();
        let passages = self.passages(ground.project.as_deref(), files)?;
        let near = self.near(ground.project.as_deref(), files, &passages, question)?;
        let mut found = searching().find(files, question, &near, [MAX_FOUND, BEGINS])?;
        let shown = ground.shown();
        found.retain(|it| !shown.contains(&(files[it.file].id.as_str(), it.passage.range.start)));
        let (blocks, counts) = self.count_found(ground, files, &found)?;
        let most = most.saturating_sub(AROUND);
        if counts.iter().all(|n| *n as usize > most) {
            return self.cut_short(ground, files, found.into_iter().next(), most);
        }
        let (mut left, mut chosen) = (most, Vec::new());
        for ((found, block), n) in found.into_iter().zip(blocks).zip(counts) {
            if n as usize <= left {
                left -= n as usize;
                chosen.push((found, block, n));
            }
        }
        chosen.sort_by_key(|(found, ..)| (found.file, found.passage.range.start));
        Ok(chosen)
    }
}

impl App {
    /// Blocks of passages, and the tokens of each.
    fn count_found(
        &self,
        ground: &PromptGround,
        files: &[SearchedFile],
        found: &[PassageHit],
    ) -> Result<(Vec<String>, Vec<u32>)> {
        if found.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let block = |it: &PassageHit| {
            let file = &files[it.file];
            passage_block(&file.name, file.kind, &file.text, &row(file, it)).unwrap_or_default()
        };
        let blocks: Vec<String> = found.iter().map(block).collect();
        let message = PromptMessage { role: "user".into(), ..PromptMessage::default() };
        let request = ground.count(vec![message], blocks.clone());
        let counted = self.counted(CountRequest { conversation: None, compression: None, ..request })?;
        Ok((blocks, counted.texts))
    }

    /// If even the best passage doesn't fit: as much of its beginning as does.
    fn cut_short(
        &self,
        ground: &PromptGround,
        files: &[SearchedFile],
        best: Option<PassageHit>,
        most: usize,
    ) -> Result<Vec<(PassageHit, String, u32)>> {
        let Some(mut found) = best else { return Ok(Vec::new()) };
        for _ in 0..MAX_CUTS {
            let (mut blocks, counts) = self.count_found(ground, files, std::slice::from_ref(&found))?;
            let n = counts.first().copied().unwrap_or(u32::MAX);
            if n as usize <= most {
                return Ok(blocks.pop().map(|block| (found, block, n)).into_iter().collect());
            }
            let share = most as f64 / f64::from(n) * CUT;
            found.passage.shorten(&files[found.file].text, share);
        }
        Ok(Vec::new())
    }
}

impl PromptGround {
    /// Whether the model takes images.
    pub(crate) fn sees(&self) -> bool {
        can_see(&self.model, &self.load)
    }

    /// Tokens that a prompt has at most, where `counted` knows the context.
    fn budget(&self, counted: &TokenCounts) -> usize {
        let limit = if counted.context_limit == 0 { UNKNOWN_CONTEXT } else { counted.context_limit as usize };
        TokenBudget::new(limit, self.max_tokens).budget.min(self.most.unwrap_or(usize::MAX))
    }

    /// The system prompt with the notes.
    pub fn full_system(&self) -> Option<String> {
        with_memory(self.system.clone(), self.memory.clone())
    }

    pub fn count(&self, messages: Vec<PromptMessage>, texts: Vec<String>) -> CountRequest {
        CountRequest {
            model: self.model.clone(),
            load: self.load.clone(),
            conversation: self.conversation.clone(),
            messages,
            chat: self.chat.clone(),
            compression: self.compression.clone(),
            texts,
        }
    }

    /// Passages that the model is shown anyway: file and place. Those of messages that are left out are not.
    fn shown(&self) -> HashSet<(&str, usize)> {
        let compacted_until = self.compression.as_ref().and_then(|it| it.compacted_until.as_ref());
        let first =
            compacted_until.and_then(|id| self.branch.iter().position(|message| message.row.id == *id));
        let left = self.branch.iter().skip(first.map_or(0, |at| at + 1));
        let passages = left.flat_map(|message| &message.attachments.passages);
        passages.map(|passage| (passage.attachment.as_str(), passage.start as usize)).collect()
    }
}

fn searched(file: &Arc<Document>) -> SearchedFile {
    SearchedFile {
        id: file.id.clone(),
        name: file.name.clone(),
        kind: file.kind,
        sha256: file.sha256.clone(),
        text: Arc::clone(&file.text),
        is_new: true,
        from_project: file.from_project,
    }
}

fn row(file: &SearchedFile, found: &PassageHit) -> PassageRow {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    PassageRow {
        message: String::new(),
        attachment: file.id.clone(),
        start: count(found.passage.range.start),
        end: count(found.passage.range.end),
        first_line: found.passage.first_line,
        last_line: found.passage.last_line,
        page: found.passage.page,
    }
}

fn planned(
    files: &[Arc<Document>],
    blocks: &[String],
    (tokens, is_about, is_whole): (&[u32], bool, &[bool]),
    searched: &[SearchedFile],
    chosen: Vec<(PassageHit, String, u32)>,
) -> PromptPlan {
    let of_file = |id: &str| -> u32 {
        chosen.iter().filter(|(found, ..)| searched[found.file].id == id).map(|(.., n)| *n).sum()
    };
    let costs =
        files.iter().zip(tokens).zip(is_whole).map(|((file, &tokens_whole), &whole)| AttachmentCost {
            id: file.id.clone(),
            tokens: if whole { tokens_whole } else { of_file(&file.id) },
            tokens_whole,
            whole,
        });
    let costs = costs.collect();
    let rows = files.iter().zip(tokens).zip(is_whole);
    let attachments = MessageAttachments {
        files: rows.map(|((file, &n), &whole)| file.row(whole, n, is_about)).collect(),
        passages: chosen.iter().map(|(found, ..)| row(&searched[found.file], found)).collect(),
    };
    let documents = files.iter().map(|file| (file.sha256.clone(), Arc::clone(&file.text))).collect();
    let wholes = blocks.iter().zip(is_whole).filter(|(_, whole)| **whole).map(|(block, _)| block.clone());
    let names: Vec<&str> =
        searched.iter().filter(|file| file.is_new).map(|file| file.name.as_str()).collect();
    let passages = chosen.into_iter().map(|(found, block, _)| (searched[found.file].name.clone(), block));
    let blocks = blocks::blocks(wholes.collect(), &names, passages.collect());
    PromptPlan { given: NewAttachments { attachments, documents }, costs, blocks }
}

fn no_room(files: &[SearchedFile], tokens: &[u32], free: usize) -> Error {
    let names: Vec<&str> = files.iter().filter(|file| file.is_new).map(|file| file.name.as_str()).collect();
    let all: u64 = tokens.iter().map(|n| u64::from(*n)).sum();
    let message = format!(
        "{} won't fit: the files need {all} tokens, and this chat has {free} left in its context.",
        names.join(", ")
    );
    let remedy = "Ask in a new chat, compact this chat, or increase the context length in the settings.";
    Error::new(ErrorKind::Limit, "attachment.no_room", message, remedy)
}
