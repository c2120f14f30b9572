//! The contexts that a model keeps between turns: which one a prompt continues, and which are
//! evicted under memory pressure. A prompt takes the longest computed prefix: its conversation's
//! context, one with the same beginning (pages are shared until written), or stored files. A reused
//! context matches the prompt's tokens exactly, and one in use is never evicted.

use std::sync::Arc;
use std::time::Duration;

use engine::kv::snapshot::CheckpointPiece;
use engine::{GenerationStats, Model, Scheduler, SequenceId, TokenId};
use io::CheckpointDir;
use io::RealIo;

use super::checkpoint_store::{self, PendingCheckpoint};
use contract::Result;
use contract::protocol::{Checkpoints, ContextRetention, Hits, ModelKv, PoolKv};

/// Ratio of a token's compute time to its read time from a file.
const TIMES_QUICKER: usize = 128;

/// Minimum gain in tokens for sharing another context's pages over using the conversation's own: a
/// page.
const SHARE_GAIN: usize = 32;

#[derive(Default)]
pub struct Contexts {
    /// Least recently used first.
    kept: Vec<KvContext>,
    keeping: ContextRetention,
    /// The last time reported.
    now: Duration,
    hits: Hits,
    /// What happened to files since it was last asked.
    told: Vec<Checkpoints>,
}

struct KvContext {
    /// None: of a request without one.
    conversation: Option<String>,
    sequence: SequenceId,
    /// The turn that uses it.
    turn: Option<u64>,
    from: Origin,
    /// Unused since.
    since: Duration,
    /// Answers since it was last stored.
    n_unstored: u32,
    /// Where its last turn began, and where its answer did.
    last: (usize, usize),
    due: PendingCheckpoint,
}

/// Where a turn's context came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Own,
    Shared,
    Disk,
}

impl Contexts {
    /// How contexts are kept from here on.
    pub fn keep_as(&mut self, keeping: &ContextRetention) {
        if self.keeping != *keeping {
            self.keeping = keeping.clone();
        }
    }

    /// So late is it.
    pub fn at(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// When the next context will have been idle for too long. None: none will.
    pub fn next_idle(&self) -> Option<Duration> {
        let idle = Duration::from_secs(self.keeping.idle_s.filter(|_| self.keeping.folder.is_some())?);
        let unused = self.kept.iter().filter(|kept| kept.turn.is_none());
        unused.map(|kept| kept.since.saturating_add(idle)).min()
    }

    /// Those that have been idle for too long leave memory.
    pub fn release_idle(&mut self, model: &mut Model) {
        while self.next_idle().is_some_and(|at| at <= self.now) {
            let longest = (0..self.kept.len()).filter(|&at| self.kept[at].turn.is_none());
            let Some(at) = longest.min_by_key(|&at| self.kept[at].since) else { return };
            self.give_up(model, at);
        }
    }

    fn folder(&self) -> Option<CheckpointDir> {
        self.keeping.folder.as_deref().map(|folder| CheckpointDir::new(folder, Arc::new(RealIo)))
    }

    pub fn take_told(&mut self) -> Vec<Checkpoints> {
        std::mem::take(&mut self.told)
    }

    pub fn hits(&self) -> Hits {
        self.hits
    }

    /// A turn could have a context now; a conversation has one at a time.
    pub fn has_room(&self, model: &Model, conversation: Option<&str>) -> bool {
        let is_it = |kept: &KvContext| conversation.is_some() && kept.conversation.as_deref() == conversation;
        let in_use = self.kept.iter().any(|kept| kept.turn.is_some() && is_it(kept));
        !in_use && (model.has_free_sequence() || self.kept.iter().any(|kept| kept.turn.is_none()))
    }

    /// The sequence that `prompt` goes on from, which `turn` uses from here on. None: all are in use.
    pub fn take(
        &mut self,
        model: &mut Model,
        conversation: Option<&str>,
        prompt: &[TokenId],
        turn: Option<u64>,
    ) -> Option<SequenceId> {
        // the last token is computed in any case
        let most = prompt.len().saturating_sub(1);
        let is_own = |kept: &KvContext| {
            kept.turn.is_none() && conversation.is_some() && kept.conversation.as_deref() == conversation
        };
        let own = self.kept.iter().position(is_own);
        let of = |(at, kept): (usize, &KvContext)| match own == Some(at) {
            true => reach(model, kept.sequence, prompt, most),
            false => shared_reach(model, kept.sequence, prompt, most),
        };
        let reach: Vec<usize> = self.kept.iter().enumerate().map(of).collect();
        let own_n = own.map_or(0, |own| reach[own]);
        let best = (0..reach.len()).max_by_key(|&at| reach[at]).filter(|_| !reach.is_empty());
        let best_n = best.map_or(0, |best| reach[best]);
        // all of it is read, what memory has too
        let least = best_n + best_n / TIMES_QUICKER + 1;
        if least <= most
            && let Some(sequence) = self.bring_from_disk(model, conversation, prompt, least)
        {
            return Some(self.add(conversation, sequence, turn, Origin::Disk));
        }
        if let Some(best) = best.filter(|_| best_n >= own_n + SHARE_GAIN) {
            let source = self.kept[best].sequence;
            self.drop_own(model, conversation, source);
            if self.make_room(model, Some(source))
                && let Ok(sequence) = model.fork(source)
            {
                return Some(self.add(conversation, sequence, turn, Origin::Shared));
            }
        }
        if let Some(own) = self.kept.iter().position(is_own) {
            self.set_due(own, PendingCheckpoint::default());
            let mut kept = self.kept.remove(own);
            (kept.turn, kept.from, kept.since) = (turn, Origin::Own, self.now);
            let sequence = kept.sequence;
            self.kept.push(kept);
            return Some(sequence);
        }
        let has_room = self.make_room(model, None);
        let sequence = if has_room { model.new_sequence().ok()? } else { return None };
        Some(self.add(conversation, sequence, turn, Origin::Own))
    }

    fn add(
        &mut self,
        conversation: Option<&str>,
        sequence: SequenceId,
        turn: Option<u64>,
        from: Origin,
    ) -> SequenceId {
        let conversation = conversation.map(Into::into);
        let (last, due) = ((0, 0), PendingCheckpoint::default());
        let since = self.now;
        self.kept.push(KvContext { conversation, sequence, turn, from, since, n_unstored: 0, last, due });
        sequence
    }

    /// A sequence of at least `least` tokens of the prompt, from files.
    fn bring_from_disk(
        &mut self,
        model: &mut Model,
        conversation: Option<&str>,
        prompt: &[TokenId],
        least: usize,
    ) -> Option<SequenceId> {
        let folder = self.folder()?;
        let mut told =
            Checkpoints { conversation: conversation.unwrap_or_default().into(), ..Checkpoints::default() };
        let found = checkpoint_store::find(model, &folder, prompt, &mut told);
        let mut sequence = None;
        if let Some(found) = found.filter(|found| found.n_tokens >= least) {
            self.drop_own(model, conversation, SequenceId(0));
            let has_room = self.make_room(model, None);
            self.free_pages(model, model.pages_for(found.n_tokens));
            if has_room {
                sequence = checkpoint_store::restore(model, &folder, prompt, found, least, &mut told);
            }
        }
        if !told.read.is_empty() || !told.gone.is_empty() {
            self.told.push(told);
        }
        sequence
    }

    /// Ensures one context per conversation: the previous one is stored and dropped, unless it is
    /// `source`.
    fn drop_own(&mut self, model: &mut Model, conversation: Option<&str>, source: SequenceId) {
        let is_own = |kept: &KvContext| {
            conversation.is_some()
                && kept.conversation.as_deref() == conversation
                && kept.turn.is_none()
                && kept.sequence != source
        };
        while let Some(at) = self.kept.iter().position(is_own) {
            self.give_up(model, at);
        }
    }

    /// Until a sequence is free. False: all are in use.
    fn make_room(&mut self, model: &mut Model, source: Option<SequenceId>) -> bool {
        while !model.has_free_sequence() {
            let idle = |kept: &KvContext| kept.turn.is_none() && Some(kept.sequence) != source;
            let Some(at) = self.kept.iter().position(idle) else { return false };
            self.give_up(model, at);
        }
        true
    }

    /// If pages are bounded: frees until `n` are available, or nothing is left to age or evict.
    fn free_pages(&mut self, model: &mut Model, n: usize) {
        let lacks = |model: &Model| model.is_kv_bounded() && model.n_free_pages() < n;
        while lacks(model) && (model.requantize_some() || self.give_up_oldest(model)) {}
    }

    /// Room for turns that are being answered: gives up what was used longest ago, else what a turn has that only
    /// waits; it is computed again, or read. False: there is nothing.
    pub fn yield_to(&mut self, model: &mut Model, scheduler: &Scheduler) -> bool {
        if self.give_up_oldest(model) {
            return true;
        }
        let waits = |kept: &&KvContext| {
            let is_waiting = scheduler.pending_ids().any(|number| kept.turn == Some(number));
            // what was forgotten can't be read again from the prompt
            let can_go = !model.has_evicted(kept.sequence);
            is_waiting && can_go && model.len(kept.sequence).is_ok_and(|n| n > 0)
        };
        let found = self.kept.iter().find(waits).map(|kept| kept.sequence);
        found.is_some_and(|sequence| model.truncate(sequence, 0).is_ok())
    }

    /// Gives up what was used longest ago. False: all are in use.
    pub fn give_up_oldest(&mut self, model: &mut Model) -> bool {
        let Some(at) = self.kept.iter().position(|kept| kept.turn.is_none()) else { return false };
        self.give_up(model, at);
        true
    }

    /// Stores what isn't stored, and frees it.
    fn give_up(&mut self, model: &mut Model, at: usize) {
        self.make_due(model, at);
        while self.store_one(model, at) {}
        let kept = self.kept.remove(at);
        model.free(kept.sequence);
    }

    /// A turn has ended. `done` is None where it failed.
    pub fn ended(&mut self, model: &mut Model, turn: u64, done: Option<&GenerationStats>) {
        let Some(at) = self.kept.iter().position(|kept| kept.turn == Some(turn)) else { return };
        let mut kept = self.kept.remove(at);
        (kept.turn, kept.since) = (None, self.now);
        if let Some(done) = done {
            kept.n_unstored += 1;
            kept.last = (done.n_reused, done.n_prompt);
            let n_reused = done.n_reused as u64;
            self.hits.turns += 1;
            self.hits.prompt_tokens += done.n_prompt as u64;
            match kept.from {
                Origin::Own => self.hits.memory_tokens += n_reused,
                Origin::Shared => self.hits.shared_tokens += n_reused,
                Origin::Disk => self.hits.disk_tokens += n_reused,
            }
        }
        let is_due = kept.n_unstored >= self.keeping.every.max(1);
        self.kept.push(kept);
        if is_due {
            self.make_due(model, self.kept.len() - 1);
        }
        self.trim(model);
    }

    /// Lets contexts age where they do so under pressure, then gives up what was used longest ago, until the rest is
    /// within its bytes. The last one stays.
    fn trim(&mut self, model: &mut Model) {
        while model.kv_used_bytes() > self.keeping.memory_bytes {
            if model.requantize_some() {
                continue;
            }
            let n_others = self.kept.len().saturating_sub(1);
            let Some(at) = self.kept[..n_others].iter().position(|kept| kept.turn.is_none()) else { return };
            self.give_up(model, at);
        }
    }

    /// What of a context is to be stored, if it hasn't been.
    fn make_due(&mut self, model: &Model, at: usize) {
        let kept = &mut self.kept[at];
        if self.keeping.folder.is_some() && kept.conversation.is_some() && kept.n_unstored > 0 {
            kept.n_unstored = 0;
            let due = PendingCheckpoint::of(model, kept.sequence, kept.last);
            self.set_due(at, due);
        }
    }

    /// An earlier pending checkpoint that isn't written yet is dropped; the one being written is
    /// reported.
    fn set_due(&mut self, at: usize, due: PendingCheckpoint) {
        let KvContext { conversation, due: before, .. } = &mut self.kept[at];
        let Checkpoints { written, read, error, .. } = std::mem::replace(before, due).told;
        if !written.is_empty() || !read.is_empty() || error.is_some() {
            let conversation = conversation.clone().unwrap_or_default();
            self.told.push(Checkpoints { conversation, written, read, gone: Vec::new(), error });
        }
    }

    /// Writes one file that is due. False: none was.
    fn store_one(&mut self, model: &Model, at: usize) -> bool {
        let Some(folder) = self.folder() else { return false };
        let KvContext { sequence, due, .. } = &mut self.kept[at];
        if !due.store_one(model, *sequence, &folder) {
            return false;
        }
        if due.is_done() {
            self.set_due(at, PendingCheckpoint::default());
        }
        true
    }

    /// As `store_one`, of any context. False: everything is stored that should be.
    pub fn store_some(&mut self, model: &Model) -> bool {
        (0..self.kept.len()).rev().any(|at| self.store_one(model, at))
    }

    /// At the end of the program: of turns that are cut short too.
    pub fn store_all(&mut self, model: &Model) {
        for at in 0..self.kept.len() {
            self.kept[at].n_unstored += u32::from(self.kept[at].turn.is_some());
            self.make_due(model, at);
            while self.store_one(model, at) {}
        }
    }

    /// Stores a conversation's context now: names of the files that lead to its end. None: it isn't in memory.
    pub fn store_now(&mut self, model: &Model, conversation: &str) -> Result<Option<Vec<String>>> {
        let is_it =
            |kept: &KvContext| kept.conversation.as_deref() == Some(conversation) && kept.turn.is_none();
        let Some(at) = self.kept.iter().position(is_it) else { return Ok(None) };
        let sequence = self.kept[at].sequence;
        self.kept[at].n_unstored = 1;
        self.make_due(model, at);
        while self.store_one(model, at) {}
        let error = self.told.last().and_then(|told| told.error.clone());
        let n_held = model.len(sequence)?;
        let has = |name: &String| self.folder().is_some_and(|folder| folder.has(name));
        let name =
            |piece: CheckpointPiece| piece.fallback.filter(|_| !has(&piece.name)).unwrap_or(piece.name);
        let names = model.pieces(sequence, &[n_held])?.into_iter().map(name).collect();
        error.map_or(Ok(Some(names)), Err)
    }

    /// Frees what is kept of a conversation, and stores none of it; what is in use goes when its turn has ended.
    pub fn forget(&mut self, model: &mut Model, conversation: &str) {
        for at in 0..self.kept.len() {
            if self.kept[at].conversation.as_deref() == Some(conversation) {
                self.set_due(at, PendingCheckpoint::default());
                self.kept[at].conversation = None;
            }
        }
        while let Some(at) =
            self.kept.iter().position(|kept| kept.conversation.is_none() && kept.turn.is_none())
        {
            let kept = self.kept.remove(at);
            model.free(kept.sequence);
        }
    }

    pub fn usage(&self, name: &str, model: &Model) -> ModelKv {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let tokens = self.kept.iter().map(|kept| model.len(kept.sequence).map_or(0, |n| n as u64)).sum();
        let pools = model.kv_pools().map(|pool| PoolKv {
            places: count(pool.n_slots),
            held: count(pool.n_held),
            shared: count(pool.n_shared),
            touched: count(pool.n_touched),
        });
        let (contexts, bytes) = (count(self.kept.len()), model.kv_used_bytes());
        ModelKv { model: name.into(), contexts, bytes, pools, tokens }
    }
}

/// The same for another's prompt: what has aged sooner than that one's length would have it is nothing to begin with.
fn shared_reach(model: &Model, sequence: SequenceId, prompt: &[TokenId], most: usize) -> usize {
    let n = reach(model, sequence, prompt, most);
    if model.is_requantized_by_length(sequence, n) { n } else { 0 }
}

/// Tokens of a prompt that a sequence could go on from.
fn reach(model: &Model, sequence: SequenceId, prompt: &[TokenId], most: usize) -> usize {
    let held = model.tokens(sequence).unwrap_or_default();
    let n_common = held.iter().zip(prompt).take_while(|(a, b)| a == b).count();
    model.reach(sequence, n_common.min(most)).unwrap_or(0)
}
