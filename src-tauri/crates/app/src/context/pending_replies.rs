//! Requests that wait for their replies: one table for each kind of reply, one shared counter.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError};

use contract::protocol::{
    EmbeddingBatch, FitOutcome, KvStats, PageImages, PassageScores, TokenCounts, VocabularyAnswer,
    WorkerEvent,
};
use contract::types::{ImageInfo, TokenAlternatives};
use contract::{Error, ModelFacts, Result};

/// Callers that wait for replies of one type, by the number of their request.
pub(crate) struct PendingReplies<T> {
    waiting: Mutex<HashMap<u64, SyncSender<T>>>,
}

impl<T> Default for PendingReplies<T> {
    fn default() -> Self {
        Self { waiting: Mutex::default() }
    }
}

impl<T> PendingReplies<T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, SyncSender<T>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, request: u64, caller: SyncSender<T>) {
        self.lock().insert(request, caller);
    }

    /// Hands the reply to its caller. Returns the reply if no caller waits for that request.
    fn complete(&self, request: u64, reply: T) {
        if let Some(caller) = self.lock().remove(&request) {
            // The caller may have given up.
            let _ = caller.send(reply);
        }
    }

    fn forget(&self, request: u64) {
        self.lock().remove(&request);
    }
}

/// Everything that callers wait for.
#[derive(Default)]
pub(crate) struct Replies {
    last_request: AtomicU64,
    pub facts: PendingReplies<Result<ModelFacts>>,
    pub counts: PendingReplies<Result<TokenCounts>>,
    pub token_logprobs: PendingReplies<Result<Vec<TokenAlternatives>>>,
    pub vocabularies: PendingReplies<Result<VocabularyAnswer>>,
    pub embeddings: PendingReplies<Result<EmbeddingBatch>>,
    pub passage_scores: PendingReplies<Result<PassageScores>>,
    pub page_images: PendingReplies<Result<PageImages>>,
    pub image_infos: PendingReplies<Result<Option<ImageInfo>>>,
    pub fits: PendingReplies<Result<FitOutcome>>,
    pub checkpoints: PendingReplies<Result<Option<Vec<String>>>>,
    pub kv_stats: PendingReplies<KvStats>,
}

impl Replies {
    /// A number that no other request has.
    pub fn next_request(&self) -> u64 {
        self.last_request.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sends a request by `ask` and waits for its reply in `table`.
    pub fn call<T>(&self, table: &PendingReplies<T>, ask: impl FnOnce(u64) -> Result<()>) -> Result<T> {
        // One reply, so that the event pump never waits for a caller.
        let (caller, reply) = mpsc::sync_channel(1);
        let request = self.next_request();
        table.add(request, caller);
        ask(request).inspect_err(|_| table.forget(request))?;
        reply.recv().map_err(|_| Error::bug("the worker ended while it was asked"))
    }

    /// Hands a reply to its caller. Other events come back.
    pub fn complete(&self, event: WorkerEvent) -> Option<WorkerEvent> {
        match event {
            WorkerEvent::Inspected { request, outcome } => self.facts.complete(request, outcome),
            WorkerEvent::TokenCounts { request, outcome } => self.counts.complete(request, outcome),
            WorkerEvent::TokenAlternatives { request, outcome } => {
                self.token_logprobs.complete(request, outcome)
            }
            WorkerEvent::VocabularyAnswer { request, outcome } => {
                self.vocabularies.complete(request, outcome)
            }
            WorkerEvent::EmbeddingBatch { request, outcome } => self.embeddings.complete(request, outcome),
            WorkerEvent::PassageScores { request, outcome } => self.passage_scores.complete(request, outcome),
            WorkerEvent::PageImages { request, outcome } => self.page_images.complete(request, outcome),
            WorkerEvent::ImageInfo { request, outcome } => self.image_infos.complete(request, outcome),
            WorkerEvent::FitOutcome { request, outcome } => self.fits.complete(request, outcome),
            WorkerEvent::Stored { request, outcome } => self.checkpoints.complete(request, outcome),
            WorkerEvent::KvStats { request, stats } => self.kv_stats.complete(request, stats),
            event @ (WorkerEvent::Turn { .. }
            | WorkerEvent::Model { .. }
            | WorkerEvent::Checkpoints(_)
            | WorkerEvent::RunFacts(_)
            | WorkerEvent::MeasuredAnswer(_)) => return Some(event),
        }
        None
    }

    /// Drops every caller's channel: the worker has ended, so no reply will come.
    pub fn close(&self) {
        self.facts.lock().clear();
        self.counts.lock().clear();
        self.token_logprobs.lock().clear();
        self.vocabularies.lock().clear();
        self.embeddings.lock().clear();
        self.passage_scores.lock().clear();
        self.page_images.lock().clear();
        self.image_infos.lock().clear();
        self.fits.lock().clear();
        self.checkpoints.lock().clear();
        self.kv_stats.lock().clear();
    }
}
