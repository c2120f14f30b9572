//! Stored contexts: their retention policy, the fate of their files, and the named ones among them.
//! The words of a conversation are in the database; a stored context only saves reading them again.

use contract::protocol::{
    ChatOptions, ContextRetention, Hits, KvStats, PoolKv, PrefetchRequest, StoredFile, WorkerRequest,
};
use contract::types::{CheckpointArgs, CheckpointInfo, ConversationSummary, KvInfo, KvPool, KvTier};
use contract::{Error, ErrorKind, Responder, Result};
use inference::model_file::not_here;
use prompt::history::history;
use prompt::title_text;
use session::KvFile;

use crate::App;
use crate::Services;
use crate::retrieval::images::can_see;
use crate::settings::MB;
use crate::settings::TypedSettings;
use file_search::injected::with_files;
use records::conversations::history_messages;

impl App {
    /// What becomes of contexts after their turn, as the settings say.
    pub(crate) fn keeping(&self) -> Result<ContextRetention> {
        let every = self.ctx().settings.context_store_every()?.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        let disk_bytes = self.ctx().settings.context_disk()?.unwrap_or(0) * MB;
        Ok(ContextRetention {
            folder: every
                .filter(|_| disk_bytes > 0)
                .map(|_| self.services().checkpoints.dir().path().to_owned()),
            every: every.unwrap_or(u32::MAX),
            memory_bytes: self.ctx().settings.idle_memory()?.unwrap_or(0) * MB,
            idle_s: self.ctx().settings.idle_minutes()?.map(|minutes| minutes * 60),
            unload_after_s: self.ctx().settings.idle_unload()?.map(|minutes| minutes * 60),
        })
    }

    /// At the start: what an interrupted write left goes, and what is over the budget.
    pub(crate) fn tidy_contexts(&self) -> Result<()> {
        let most_bytes = self.ctx().settings.context_disk()?.unwrap_or(0) * MB;
        let checkpoints = &self.services().checkpoints;
        let folder = checkpoints.dir();
        checkpoints.set_disk_budget(most_bytes);
        let mut store = self.store();
        let n_swept = store.sweep_contexts(folder)?;
        let n_evicted = store.evict_contexts(folder, most_bytes)?;
        if n_swept + n_evicted > 0 {
            tracing::info!(n_swept, n_evicted, "stored contexts were tidied up");
        }
        Ok(())
    }

    /// The setting has changed.
    pub(crate) fn apply_disk_budget(&self) -> Result<()> {
        let most_bytes = self.ctx().settings.context_disk()?.unwrap_or(0) * MB;
        let checkpoints = &self.services().checkpoints;
        let folder = checkpoints.dir();
        checkpoints.set_disk_budget(most_bytes);
        let mut store = self.store();
        store.evict_contexts(folder, most_bytes)?;
        Ok(())
    }

    /// Removes for good the files of contexts that only this conversation needs; how many. To be called when it is
    /// deleted for good.
    pub fn conversation_forget_contexts(&self, conversation: &str) -> Result<usize> {
        self.ask(WorkerRequest::Forget { conversation: conversation.into() })?;
        let folder = self.services().checkpoints.dir();
        Ok(self.store().remove_contexts_of(folder, conversation)?)
    }

    /// Brings the conversation's context into memory, if its model is there: the next answer begins sooner.
    pub fn conversation_prefetch(&self, id: &str) -> Result<()> {
        let (model, branch) = {
            let store = self.store();
            let branch = store.branch(id)?;
            (branch.conversation.model, branch.messages)
        };
        let Responder::Local(reference) = self.responder(&model)? else { return Ok(()) };
        let load = self.load_spec_of(&model)?;
        let branch = with_files(&self.store(), branch, &|| can_see(&reference, &load))?;
        let messages = history(history_messages(branch));
        if messages.is_empty() || self.store().active_turn(id)?.is_some() {
            return Ok(());
        }
        self.ask(WorkerRequest::Prefetch(Box::new(PrefetchRequest {
            model: reference,
            load,
            conversation: id.into(),
            messages,
            chat: self.chat_options(&model, ChatOptions::default())?,
            keeping: self.keeping()?,
        })))
    }

    /// Gives the end of a conversation's active branch a name, and keeps its context from eviction.
    pub fn checkpoint_save(&self, args: &CheckpointArgs) -> Result<CheckpointInfo> {
        let name = title_text::clean(&args.name);
        if name.is_empty() {
            return Err(Error::input(
                "checkpoint.empty_name",
                "The checkpoint needs a name.",
                "Enter a short name.",
            ));
        }
        let conversation = &args.conversation;
        let model = self.store().conversation(conversation)?.model;
        if let Ok(Responder::Remote(reference)) = self.responder(&model) {
            return Err(not_here(&reference.id));
        }
        if self.store().active_turn(conversation)?.is_some() {
            return Err(Error::new(
                ErrorKind::Conflict,
                "session.answering",
                "This chat is still generating an answer.",
                "Wait until it is done, or stop it.",
            ));
        }
        let keeping = self.keeping()?;
        let files = match keeping.folder {
            Some(_) => {
                let (backends, conversation) = (&self.ctx().backends, conversation.clone());
                backends.replies.call(&backends.replies.checkpoints, |request| {
                    backends.ask(WorkerRequest::Store { request, conversation, keeping })
                })??
            }
            None => None,
        };
        let mut store = self.store();
        Ok(told(store.save_checkpoint(conversation, &name, files.as_deref())?))
    }

    /// Named ones, oldest first; of one conversation, or of all.
    pub fn checkpoints_list(&self, conversation: Option<&str>) -> Result<Vec<CheckpointInfo>> {
        let rows = self.store().checkpoints(conversation)?;
        Ok(rows.into_iter().map(told).collect())
    }

    /// Goes back to a named checkpoint: it is the end of its conversation's active branch now.
    pub fn checkpoint_restore(&self, id: &str) -> Result<ConversationSummary> {
        let conversation = self.changed(|store| {
            let conversation = store.open_checkpoint(id)?;
            Ok(store.conversation(&conversation)?)
        })?;
        self.conversation_prefetch(&conversation.id)?;
        Ok(conversation)
    }

    /// Forgets a name; the conversation stays.
    pub fn checkpoint_remove(&self, id: &str) -> Result<()> {
        let folder = self.services().checkpoints.dir();
        Ok(self.store().remove_checkpoint(folder, id)?)
    }

    /// Memory and files of contexts, and how often they were found.
    pub fn kv_stats(&self) -> Result<KvInfo> {
        let backends = &self.ctx().backends;
        let KvStats { hits, models } = backends
            .replies
            .call(&backends.replies.kv_stats, |request| backends.ask(WorkerRequest::KvStats { request }))?;
        let totals = self.store().context_totals()?;
        let sum = |at: usize| {
            let pools = models.iter().map(|model| model.pools[at]);
            pool(pools.fold(PoolKv::default(), |sum, pool| PoolKv {
                places: sum.places + pool.places,
                held: sum.held + pool.held,
                shared: sum.shared + pool.shared,
                touched: sum.touched + pool.touched,
            }))
        };
        let Hits { turns, prompt_tokens, memory_tokens, shared_tokens, disk_tokens } = hits;
        let n_hit = memory_tokens + shared_tokens + disk_tokens;
        let memory_bytes = models.iter().map(|model| model.bytes).sum();
        Ok(KvInfo {
            turns,
            prompt_tokens,
            hit_rate: if prompt_tokens > 0 { n_hit as f64 / prompt_tokens as f64 } else { 0.0 },
            memory: KvTier {
                bytes: memory_bytes,
                budget_bytes: self.ctx().settings.idle_memory()?.unwrap_or(0) * MB,
                hit_tokens: memory_tokens + shared_tokens,
            },
            shared_tokens,
            disk: KvTier {
                bytes: totals.bytes,
                budget_bytes: self.ctx().settings.context_disk()?.unwrap_or(0) * MB,
                hit_tokens: disk_tokens,
            },
            files: totals.files,
            pinned_bytes: totals.pinned_bytes,
            contexts: models.iter().map(|model| model.contexts).sum(),
            pages: sum(0),
            window_pages: sum(1),
            states: sum(2),
            aged_pages: sum(3),
        })
    }
}

fn pool(PoolKv { places, held, shared, touched }: PoolKv) -> KvPool {
    let free = touched.saturating_sub(held);
    let fragmentation = if touched > 0 { f64::from(free) / f64::from(touched) } else { 0.0 };
    KvPool { places, held, shared, fragmentation }
}

fn told(row: session::CheckpointRow) -> CheckpointInfo {
    let session::CheckpointRow { id, name, conversation, message, created_ms, bytes } = row;
    CheckpointInfo { id, name, conversation, message, created_ms, bytes }
}

impl Services {
    /// Files that the worker wrote, read or found damaged: rows, and eviction within the budget. Failing here costs
    /// time at most: a file without a row is swept at the next start.
    pub(crate) fn account_checkpoints(&self, told: contract::protocol::Checkpoints) {
        let contract::protocol::Checkpoints { conversation, written, read, gone, error } = told;
        if let Some(error) = error {
            match gone.is_empty() {
                true => self.not_stored(error),
                false => tracing::warn!(code = error.code(), "a stored context was dropped: {error}"),
            }
        } else if !written.is_empty() {
            self.checkpoints.clear_failure();
        }
        let file = |file: StoredFile| KvFile { name: file.key, bytes: file.bytes, position: file.position };
        let written: Vec<KvFile> = written.into_iter().map(file).collect();
        let most_bytes = self.checkpoints.disk_budget();
        let mut session = self.store();
        let kept = session.remove_context_rows(&gone);
        let kept = kept.and_then(|()| session.record_context_use(&conversation, &written, &read));
        let kept = kept.and_then(|()| session.evict_contexts(self.checkpoints.dir(), most_bytes));
        if let Err(error) = kept {
            tracing::warn!(code = error.code(), "stored contexts were not accounted for: {error}");
        }
    }

    /// Said once, until one can be written again.
    fn not_stored(&self, error: Error) {
        if !self.checkpoints.is_first_failure() {
            return;
        }
        let message = format!("A chat's context was not saved to disk: {}", error.message());
        let remedy = "Your messages are saved. Free up disk space; until then, chats are processed again after a restart.";
        self.ctx.events.notice(Error::new(error.kind, error.code(), message, remedy).info);
    }
}
