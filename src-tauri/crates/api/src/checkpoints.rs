//! Stored contexts: how they are kept, what became of their files, and the named ones among them.
//!
//! The words of a conversation are in the database; a stored context only saves reading them again.

use std::sync::{Arc, mpsc};

use io::Io;
use session::{CheckpointFolder, KvFile};

use crate::chat::{Responder, history};
use crate::error::{Error, Result};
use crate::preferences::MB;
use crate::types::{CheckpointArgs, CheckpointInfo, ConversationSummary, KvInfo, KvPool, KvTier};
use crate::worker::protocol::{
    ChatOptions, Checkpoints, Hits, Keeping, KvStats, PoolKv, PrefetchRequest, StoredFile, WorkerRequest,
};
use crate::{App, Dirs, Shared, State, title};

/// Where the files lie, in the data folder.
const FOLDER: &str = "contexts";

pub(crate) fn folder(dirs: &Dirs, io: Arc<dyn Io>) -> CheckpointFolder {
    CheckpointFolder::new(&dirs.data.join(FOLDER), io)
}

impl App {
    /// What becomes of contexts after their turn, as the settings say.
    pub(crate) fn keeping(&self) -> Result<Keeping> {
        let every = self.whole("context_store_every")?.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        let disk_bytes = self.whole("context_disk")?.unwrap_or(0) * MB;
        Ok(Keeping {
            folder: every.filter(|_| disk_bytes > 0).map(|_| self.shared().contexts.path().to_owned()),
            every: every.unwrap_or(u32::MAX),
            memory_bytes: self.whole("idle_memory")?.unwrap_or(0) * MB,
            idle_s: self.whole("idle_minutes")?.map(|minutes| minutes * 60),
            unload_after_s: self.whole("idle_unload")?.map(|minutes| minutes * 60),
        })
    }

    /// At the start: what an interrupted write left goes, and what is over the budget.
    pub(crate) fn tidy_contexts(&self) -> Result<()> {
        let most_bytes = self.whole("context_disk")?.unwrap_or(0) * MB;
        let folder = &self.shared().contexts;
        let mut state = self.shared().state();
        state.disk_budget = most_bytes;
        let n_swept = state.session.sweep_contexts(folder)?;
        let n_evicted = state.session.evict_contexts(folder, most_bytes)?;
        if n_swept + n_evicted > 0 {
            tracing::info!(n_swept, n_evicted, "stored contexts were tidied up");
        }
        Ok(())
    }

    /// The setting has changed.
    pub(crate) fn apply_disk_budget(&self) -> Result<()> {
        let most_bytes = self.whole("context_disk")?.unwrap_or(0) * MB;
        let folder = &self.shared().contexts;
        let mut state = self.shared().state();
        state.disk_budget = most_bytes;
        state.session.evict_contexts(folder, most_bytes)?;
        Ok(())
    }

    /// Removes for good the files of contexts that only this conversation needs; how many. To be called when it is
    /// deleted for good.
    pub fn conversation_forget_contexts(&self, conversation: &str) -> Result<usize> {
        self.ask(WorkerRequest::Forget { conversation: conversation.into() })?;
        let folder = &self.shared().contexts;
        Ok(self.shared().state().session.remove_contexts_of(folder, conversation)?)
    }

    /// Brings the conversation's context into memory, if its model is there: the next answer begins sooner.
    pub fn conversation_prefetch(&self, id: &str) -> Result<()> {
        let (model, branch) = {
            let state = self.shared().state();
            let branch = state.session.branch(id)?;
            (branch.conversation.model, state.with_files(branch.messages)?)
        };
        let Responder::Local(reference) = self.responder(&model)? else { return Ok(()) };
        let messages = history(branch);
        if messages.is_empty() || self.shared().state().session.active_turn(id)?.is_some() {
            return Ok(());
        }
        self.ask(WorkerRequest::Prefetch(Box::new(PrefetchRequest {
            model: reference,
            load: self.load_spec_of(&model)?,
            conversation: id.into(),
            messages,
            chat: self.chat_options(&model, ChatOptions::default())?,
            keeping: self.keeping()?,
        })))
    }

    /// Gives the end of a conversation's active branch a name, and keeps its context from eviction.
    pub fn checkpoint_save(&self, args: &CheckpointArgs) -> Result<CheckpointInfo> {
        let name = title::clean(&args.name);
        if name.is_empty() {
            return Err(Error::input(
                "checkpoint.empty_name",
                "The checkpoint needs a name.",
                "Enter a short name.",
            ));
        }
        let conversation = &args.conversation;
        let model = self.shared().state().session.conversation(conversation)?.model;
        if let Ok(Responder::Remote(reference)) = self.responder(&model) {
            return Err(crate::worker::not_here(&reference.id));
        }
        if self.shared().state().session.active_turn(conversation)?.is_some() {
            return Err(Error::new(
                crate::ErrorKind::Conflict,
                "session.answering",
                "This chat is still generating an answer.",
                "Wait until it is done, or stop it.",
            ));
        }
        let keeping = self.keeping()?;
        let files = match keeping.folder {
            Some(_) => {
                let (send, answer) = mpsc::channel();
                let request = self.shared().state().await_store(send);
                let conversation = conversation.clone();
                self.ask(WorkerRequest::Store { request, conversation, keeping })?;
                answer.recv().map_err(|_| Error::bug("the worker ended while it stored a context"))??
            }
            None => None,
        };
        let mut state = self.shared().state();
        Ok(told(state.session.save_checkpoint(conversation, &name, files.as_deref())?))
    }

    /// Named ones, oldest first; of one conversation, or of all.
    pub fn checkpoints_list(&self, conversation: Option<&str>) -> Result<Vec<CheckpointInfo>> {
        let rows = self.shared().state().session.checkpoints(conversation)?;
        Ok(rows.into_iter().map(told).collect())
    }

    /// Goes back to a named checkpoint: it is the end of its conversation's active branch now.
    pub fn checkpoint_restore(&self, id: &str) -> Result<ConversationSummary> {
        let conversation = self.changed(|state| {
            let conversation = state.session.open_checkpoint(id)?;
            Ok(state.session.conversation(&conversation)?)
        })?;
        self.conversation_prefetch(&conversation.id)?;
        Ok(conversation)
    }

    /// Forgets a name; the conversation stays.
    pub fn checkpoint_remove(&self, id: &str) -> Result<()> {
        let folder = &self.shared().contexts;
        Ok(self.shared().state().session.remove_checkpoint(folder, id)?)
    }

    /// Memory and files of contexts, and how often they were found.
    pub fn kv_stats(&self) -> Result<KvInfo> {
        let (send, answer) = mpsc::channel();
        let request = {
            let mut state = self.shared().state();
            state.n_asked += 1;
            let request = state.n_asked;
            state.kv_stats.insert(request, send);
            request
        };
        self.ask(WorkerRequest::KvStats { request })?;
        let KvStats { hits, models } =
            answer.recv().map_err(|_| Error::bug("the worker ended while it counted"))?;
        let totals = self.shared().state().session.contexts()?;
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
                budget_bytes: self.whole("idle_memory")?.unwrap_or(0) * MB,
                hit_tokens: memory_tokens + shared_tokens,
            },
            shared_tokens,
            disk: KvTier {
                bytes: totals.bytes,
                budget_bytes: self.whole("context_disk")?.unwrap_or(0) * MB,
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

impl State {
    fn await_store(&mut self, send: mpsc::Sender<Result<Option<Vec<String>>>>) -> u64 {
        self.n_asked += 1;
        self.stores.insert(self.n_asked, send);
        self.n_asked
    }
}

impl Shared {
    /// Files that the worker wrote, read or found damaged: rows, and eviction within the budget. Failing here costs
    /// time at most: a file without a row is swept at the next start.
    pub(crate) fn checkpoints(&self, told: Checkpoints) {
        let Checkpoints { conversation, written, read, gone, error } = told;
        if let Some(error) = error {
            match gone.is_empty() {
                true => self.not_stored(error),
                false => tracing::warn!(code = error.code(), "a stored context was dropped: {error}"),
            }
        } else if !written.is_empty() {
            self.state().store_failed = false;
        }
        let file = |file: StoredFile| KvFile { name: file.key, bytes: file.bytes, position: file.position };
        let written: Vec<KvFile> = written.into_iter().map(file).collect();
        let mut state = self.state();
        let most_bytes = state.disk_budget;
        let session = &mut state.session;
        let kept = session.contexts_gone(&gone);
        let kept = kept.and_then(|()| session.contexts_used(&conversation, &written, &read));
        let kept = kept.and_then(|()| session.evict_contexts(&self.contexts, most_bytes));
        if let Err(error) = kept {
            tracing::warn!(code = error.code(), "stored contexts were not accounted for: {error}");
        }
    }

    /// Said once, until one can be written again.
    fn not_stored(&self, error: Error) {
        if std::mem::replace(&mut self.state().store_failed, true) {
            return;
        }
        let message = format!("A chat's context was not saved to disk: {}", error.message());
        let remedy = "Your messages are saved. Free up disk space; until then, chats are processed again after a restart.";
        self.notice(Error::new(error.kind, error.code(), message, remedy).info);
    }
}
