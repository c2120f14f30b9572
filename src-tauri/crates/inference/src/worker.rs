//! The worker: owns models and their caches, tokenises, generates. One thread, one closed enum of
//! requests, plain data both ways (`protocol.rs`); `pipe.rs` runs it over a pipe. Every turn ends
//! with exactly one `Done` or `Failed`, unless the worker is stopped. A panic fails only its
//! model's turns, and an idle worker sleeps.

mod active_turn;
mod channel;
pub mod checkpoint_store;
mod count;
mod embed;
mod file_jobs;
mod gap_tokens;
mod kv_contexts;
mod loading;
mod model;
pub mod pipe;
mod resume;
mod run_facts;
mod vocabulary;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::Duration;

use engine::GpuHealth;
use io::Clock;

use contract::{Error, Result};
use platform::{calendar, memory};

use crate::model_file;
pub use channel::{Inbox, Requests, channel};
use contract::protocol::{
    CountRequest, FitOutcome, FitRequest, GenerateRequest, Hits, KvStats, LoadState, LogprobsRequest,
    ModelRef, PrefetchRequest, Step, TokenAlternatives, TokenCounts, TurnResult, VocabularyRequest,
    WorkerEvent, WorkerRequest,
};
use count::Counter;
use embed::{Embedding, TextJob};
use file_jobs::{FileJob, FileJobs};
use loading::{LOOK_EVERY, LoadJob};
use model::LoadedModel;
pub use model::gpu_notices::told as gpu_notice;
use model::logprobs;

/// Why a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Stopped,
    /// The requests' sender has gone.
    RequestsEnded,
    /// The events' listener has gone.
    NobodyListens,
}

/// Works until the requests end or contain `Stop`, or until `emit` returns false because the
/// listener has gone.
pub fn run(requests: &Inbox, clock: Arc<dyn Clock>, emit: &mut dyn FnMut(WorkerEvent) -> bool) -> End {
    run_within(requests, clock, &memory::free_bytes, emit)
}

/// As `run`, where `free` says how much memory a further model may have.
pub fn run_within(
    requests: &Inbox,
    clock: Arc<dyn Clock>,
    free: &dyn Fn() -> Option<u64>,
    emit: &mut dyn FnMut(WorkerEvent) -> bool,
) -> End {
    let (models, waiting, bringing) = (Vec::new(), VecDeque::new(), None);
    let (gone, may_store, hits) = (false, false, Hits::default());
    let now = clock.clone();
    let gpu_health = GpuHealth::with_clock(move || now.monotonic());
    let mut worker = Worker {
        requests,
        clock,
        gpu_health,
        free,
        emit,
        gone,
        models,
        bringing,
        waiting,
        counter: None,
        embedding: None,
        file_jobs: FileJobs::default(),
        may_store,
        hits,
    };
    while !worker.gone {
        let request = worker.next();
        worker.release_idle();
        match request {
            Ok(WorkerRequest::Stop) => return worker.end(End::Stopped),
            Err(TryRecvError::Disconnected) => return worker.end(End::RequestsEnded),
            Ok(request) => worker.handle(request),
            Err(TryRecvError::Empty) => worker.go_on(),
        }
        worker.hear_loading();
        worker.hear_embedded();
        worker.send_file_replies();
        worker.tell_checkpoints();
    }
    End::NobodyListens
}

struct Worker<'a> {
    requests: &'a Inbox,
    clock: Arc<dyn Clock>,
    /// Of the GPUs, across models.
    gpu_health: GpuHealth,
    /// Bytes of memory that a further model may have. None: the system doesn't say.
    free: &'a dyn Fn() -> Option<u64>,
    emit: &'a mut dyn FnMut(WorkerEvent) -> bool,
    /// The listener has gone.
    gone: bool,
    /// Least recently used first.
    models: Vec<LoadedModel>,
    bringing: Option<LoadJob>,
    /// Turns whose model has no room yet.
    waiting: VecDeque<WaitingTurn>,
    /// The vocabulary that a draft was last counted with.
    counter: Option<Counter>,
    /// The model that makes vectors.
    embedding: Option<Embedding>,
    /// Attached files that are being decoded.
    file_jobs: FileJobs,
    /// Something of a context may have to be stored.
    may_store: bool,
    /// Of models that have gone.
    hits: Hits,
}

struct WaitingTurn {
    request: GenerateRequest,
    arrived: Duration,
    /// The queue position last reported.
    position: usize,
    /// Bytes that its model takes, once somebody wanted to know.
    need: Option<u64>,
}

impl Worker<'_> {
    /// The next request; waits for one where nothing else is to be done.
    fn next(&self) -> std::result::Result<WorkerRequest, TryRecvError> {
        if self.is_computing() || (self.bringing.is_none() && self.may_store) {
            return self.requests.try_recv();
        }
        let now = self.clock.monotonic();
        let idle = self.models.iter().filter_map(LoadedModel::next_idle).min();
        let idle = idle.map(|at| at.saturating_sub(now));
        let wait = if self.bringing.is_some() || self.is_embedding() || self.file_jobs.is_busy() {
            Some(LOOK_EVERY)
        } else {
            self.unload_due().into_iter().chain(idle).min()
        };
        match wait {
            None => self.requests.recv().map_err(|_| TryRecvError::Disconnected),
            Some(wait) => self.requests.recv_timeout(wait).map_err(|error| match error {
                RecvTimeoutError::Timeout => TryRecvError::Empty,
                RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
            }),
        }
    }

    /// Continues when there are no new requests.
    fn go_on(&mut self) {
        if self.is_computing() {
            self.step();
        } else if self.bringing.is_some() {
            self.tell_waiting();
        } else {
            self.unload_idle();
            self.store_some();
        }
    }

    /// A turn is being answered, or waits though nothing is loaded for it.
    fn is_computing(&self) -> bool {
        let waits = !self.waiting.is_empty() && self.bringing.is_none();
        waits || self.models.iter().any(LoadedModel::is_busy)
    }

    fn release_idle(&mut self) {
        let now = self.clock.monotonic();
        for model in self.models.iter_mut().filter(|model| model.next_idle().is_some_and(|at| at <= now)) {
            model.release_idle(now);
        }
    }

    fn handle(&mut self, request: WorkerRequest) {
        match request {
            WorkerRequest::Generate(request) => {
                let arrived = self.clock.monotonic();
                self.waiting.push_back(WaitingTurn { request: *request, arrived, position: 0, need: None });
                self.admit();
            }
            WorkerRequest::Cancel { turn } => self.cancel(&turn),
            WorkerRequest::Unload { model } => self.unload(&model),
            WorkerRequest::Forget { conversation } => {
                self.models.iter_mut().for_each(|model| model.forget(&conversation));
                self.counter.iter_mut().for_each(|counter| counter.forget(&conversation));
            }
            WorkerRequest::Store { request, conversation, keeping } => {
                let mut models = self.models.iter_mut().rev();
                let stored = models.find_map(|model| model.store_now(&conversation, &keeping).transpose());
                self.tell_checkpoints();
                self.say(WorkerEvent::Stored { request, outcome: stored.transpose() });
            }
            WorkerRequest::Prefetch(request) => self.prefetch(&request),
            WorkerRequest::KvStats { request } => {
                let stats = self.kv_stats();
                self.say(WorkerEvent::KvStats { request, stats });
            }
            WorkerRequest::Inspect { request, location } => {
                let outcome = guarded(|| model_file::inspect(&location));
                self.say(WorkerEvent::Inspected { request, outcome });
            }
            WorkerRequest::Count { request, count } => {
                let outcome = self.count(&count);
                self.say(WorkerEvent::TokenCounts { request, outcome });
            }
            WorkerRequest::Vocabulary { request, vocabulary } => {
                let VocabularyRequest { model, query } = *vocabulary;
                let outcome = self.with_counter((&model, None), |counter, now| counter.answer(&query, now));
                self.say(WorkerEvent::VocabularyAnswer { request, outcome });
            }
            WorkerRequest::Logprobs { request, logprobs } => {
                let outcome = self.logprobs(&logprobs);
                self.say(WorkerEvent::TokenAlternatives { request, outcome });
            }
            WorkerRequest::Embed { request, embed } => self.embed(request, TextJob::Embed(*embed)),
            WorkerRequest::Rank { request, rank } => self.embed(request, TextJob::Rank(*rank)),
            WorkerRequest::Fit { request, fit } => {
                let outcome = self.fit(&fit);
                self.say(WorkerEvent::FitOutcome { request, outcome });
            }
            WorkerRequest::RenderPages { request, render } => {
                self.file_jobs.start(request, FileJob::Pages(render));
            }
            WorkerRequest::ReadImage { request, file } => {
                self.file_jobs.start(request, FileJob::Image(file));
            }
            WorkerRequest::Stop => self.gone = true,
        }
    }

    /// Of the models that are there.
    fn kv_stats(&self) -> KvStats {
        let hits = self.models.iter().fold(self.hits, |hits, model| hits.with(model.hits()));
        KvStats { hits, models: self.models.iter().map(LoadedModel::kv).collect() }
    }

    fn prefetch(&mut self, request: &PrefetchRequest) {
        let (reference, clock) = (&request.model, &*self.clock);
        let is_it = |model: &&mut LoadedModel| model.reference == *reference && model.load == request.load;
        let Some(model) = self.models.iter_mut().find(is_it).filter(|model| !model.is_busy()) else { return };
        if let Err(error) = guarded(|| model.prefetch(request, clock)) {
            tracing::info!(code = error.code(), "a context was not fetched ahead: {error}");
        }
    }

    /// By a model that is there and has nothing else to do.
    fn logprobs(&mut self, request: &LogprobsRequest) -> Result<Vec<TokenAlternatives>> {
        let now_ms = self.clock.now_utc_ms();
        let is_it = |model: &LoadedModel| model.reference == request.model && model.load == request.load;
        let Some(at) = self.models.iter().position(is_it) else { return Err(logprobs::not_there()) };
        if self.models[at].is_busy() {
            return Err(logprobs::busy());
        }
        let model = &mut self.models[at];
        guarded(|| model.logprobs(request, now_ms))
    }

    /// Stores part of what is due if nothing else is to be done; then tunes new GPUs.
    fn store_some(&mut self) {
        let clock = &*self.clock;
        self.may_store = self.models.iter_mut().any(|model| model.store_some() || model.tune_some(clock));
    }

    /// What is in memory goes to disk before it is gone.
    fn end(&mut self, end: End) -> End {
        for model in &mut self.models {
            // one that panics here has lost time, no words
            _ = guarded(|| {
                model.store_all();
                Ok(())
            });
        }
        self.tell_checkpoints();
        end
    }

    fn tell_checkpoints(&mut self) {
        let told: Vec<_> = self.models.iter_mut().flat_map(LoadedModel::take_told).collect();
        told.into_iter().for_each(|told| self.say(WorkerEvent::Checkpoints(Box::new(told))));
    }

    /// A model goes in good order: what it keeps is stored.
    fn let_go(&mut self, mut model: LoadedModel) {
        _ = guarded(|| {
            model.store_all();
            Ok(())
        });
        let told = model.take_told();
        told.into_iter().for_each(|told| self.say(WorkerEvent::Checkpoints(Box::new(told))));
        self.hits = self.hits.with(model.hits());
        self.tell_model(&model.reference.id, LoadState::Unloaded);
    }

    fn count(&mut self, request: &CountRequest) -> Result<TokenCounts> {
        let mmproj = request.load.mmproj.as_deref();
        self.with_counter((&request.model, mmproj), |counter, now| counter.count(request, now))
    }

    fn fit(&mut self, request: &FitRequest) -> Result<FitOutcome> {
        let mmproj = request.count.load.mmproj.as_deref();
        self.with_counter((&request.count.model, mmproj), |counter, now| counter.fit(request, now))
    }

    fn with_counter<T>(
        &mut self,
        (model, mmproj): (&ModelRef, Option<&str>),
        work: impl FnOnce(&mut Counter, &str) -> Result<T>,
    ) -> Result<T> {
        let now = calendar::date_time(self.clock.now_utc_ms());
        let is_there = self.counter.as_ref().is_some_and(|it| it.is_of(model, mmproj));
        // Taken out while it works: one that a panic left half done is not used again.
        let kept = self.counter.take().filter(|_| is_there);
        let mut counter = match kept {
            Some(counter) => counter,
            None => guarded(|| Counter::open(model.clone(), mmproj))?,
        };
        let done = guarded(|| work(&mut counter, &now))?;
        self.counter = Some(counter);
        Ok(done)
    }

    fn say(&mut self, event: WorkerEvent) {
        self.gone |= !(self.emit)(event);
    }

    fn tell(&mut self, turn: &str, step: Step) {
        self.say(WorkerEvent::Turn { turn: turn.into(), step });
    }

    fn tell_model(&mut self, id: &str, state: LoadState) {
        self.say(WorkerEvent::Model { id: id.into(), state });
    }

    /// One batch of every model that has work.
    fn step(&mut self) {
        for index in (0..self.models.len()).rev() {
            if !self.models[index].is_busy() {
                continue;
            }
            let mut steps = Vec::new();
            let model = &mut self.models[index];
            let clock = &*self.clock;
            let stepped = guarded(|| {
                model.step(clock, &mut |turn, step| steps.push((turn.to_owned(), step)));
                Ok(())
            });
            let ran = run_facts::of(&self.models[index], &steps, self.models.len() == 1);
            // before the ends of their turns
            let found = self.models[index].take_profiled();
            found.into_iter().for_each(|found| self.say(WorkerEvent::MeasuredAnswer(Box::new(found))));
            for (turn, step) in steps {
                self.tell(&turn, step);
            }
            ran.into_iter().for_each(|ran| self.say(WorkerEvent::RunFacts(ran)));
            if let Err(error) = stepped {
                self.drop_model(index, &error);
            }
        }
        self.may_store = true;
        self.admit();
    }

    /// A model whose state can't be trusted any more goes, and its turns fail.
    fn drop_model(&mut self, index: usize, error: &Error) {
        let model = self.models.remove(index);
        self.hits = self.hits.with(model.hits());
        let id = model.reference.id.clone();
        let turns = catch_unwind(AssertUnwindSafe(|| model.into_turns())).unwrap_or_default();
        for turn in turns {
            self.tell(&turn, Step::Failed { error: error.clone() });
        }
        self.tell_model(&id, LoadState::Unloaded);
    }

    /// Those whose time is up go, the others hear how many are before them.
    fn tell_waiting(&mut self) {
        let now = self.clock.monotonic();
        let is_up = |waiting: &WaitingTurn| {
            waiting.request.bounds.deadline(waiting.arrived).is_some_and(|deadline| deadline <= now)
        };
        let mut steps: Vec<(String, Step)> = Vec::new();
        let mut left = VecDeque::with_capacity(self.waiting.len());
        for mut waiting in std::mem::take(&mut self.waiting) {
            let position = left.len() + 1;
            if is_up(&waiting) {
                steps.push((waiting.request.turn, Step::Failed { error: waiting.request.bounds.time_up() }));
                continue;
            }
            if std::mem::replace(&mut waiting.position, position) != position {
                let position = u32::try_from(position).unwrap_or(u32::MAX);
                steps.push((waiting.request.turn.clone(), Step::Queued { position }));
            }
            left.push_back(waiting);
        }
        self.waiting = left;
        steps.into_iter().for_each(|(turn, step)| self.tell(&turn, step));
    }

    fn cancel(&mut self, turn: &str) {
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.request.turn == turn) {
            self.waiting.remove(at);
            self.tell(turn, Step::Done(Box::new(TurnResult::never_started())));
        }
        self.cancel_loading(turn);
        self.models.iter_mut().for_each(|model| model.cancel(turn));
    }

    fn unload(&mut self, id: &str) {
        self.counter.take_if(|counter| counter.reference.id == id);
        self.unwant(id);
        self.unwant_embedding(id);
        if let Some(at) = self.models.iter().position(|model| model.reference.id == id) {
            self.drop_model(at, &loading::removed());
        }
    }
}

/// Turns a panic into an error: its caller receives it, everything else continues.
pub fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Error::bug(text.unwrap_or("a panic without a message")))
    })
}

#[cfg(test)]
mod tests;
