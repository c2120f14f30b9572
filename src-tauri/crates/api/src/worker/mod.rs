//! The worker: owns models and their caches, tokenises, generates. One thread, one closed enum of
//! requests, plain data both ways (`protocol.rs`); `pipe.rs` runs it over a pipe.
//!
//! Guarantees that every turn ends with exactly one `Done` or `Failed` (unless the worker itself is
//! stopped), that a panic fails only the turns of the model it happened in, and that an idle worker
//! sleeps. Knows nothing of conversations, doors or the database.

mod contexts;
mod continued;
mod count;
mod fit;
mod inspect;
mod messages;
mod model;
pub mod pipe;
mod prompt;
pub mod protocol;
mod running;
pub mod stored;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use engine::Finish;
use io::Clock;

use crate::civil;
use crate::error::{Error, Result};
use count::Counter;
pub(crate) use inspect::{inspect, open};
use model::LoadedModel;
use protocol::{
    CountRequest, Counted, Finished, FitRequest, Fitted, GenerateRequest, Hits, Ids, KvStats, Loaded,
    ModelRef, PrefetchRequest, Step, WorkerEvent, WorkerRequest,
};

/// Models in memory at once: the one in use, and the one before it for those who compare.
const MAX_LOADED: usize = 2;

/// Loading is told in steps of so much.
const PROGRESS_STEP: f32 = 0.02;

/// Why a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Stopped,
    /// Whoever asked has gone.
    RequestsEnded,
    /// Whoever listened has gone.
    NobodyListens,
}

/// Works until the requests end or say `Stop`, or `emit` returns false: nobody listens.
pub fn run(
    requests: &Receiver<WorkerRequest>,
    clock: Arc<dyn Clock>,
    emit: &mut dyn FnMut(WorkerEvent) -> bool,
) -> End {
    let (early, models, waiting) = (VecDeque::new(), Vec::new(), VecDeque::new());
    let (gone, may_store, hits) = (false, false, Hits::default());
    let mut worker =
        Worker { requests, early, clock, emit, gone, models, waiting, counter: None, may_store, hits };
    while !worker.gone {
        let request = if let Some(request) = worker.early.pop_front() {
            Ok(request)
        } else if worker.is_idle() && !worker.may_store {
            requests.recv().map_err(|_| TryRecvError::Disconnected)
        } else {
            requests.try_recv()
        };
        match request {
            Ok(WorkerRequest::Stop) => return worker.end(End::Stopped),
            Err(TryRecvError::Disconnected) => return worker.end(End::RequestsEnded),
            Ok(request) => worker.handle(request),
            Err(TryRecvError::Empty) if worker.is_idle() => worker.store_some(),
            Err(TryRecvError::Empty) => worker.step(),
        }
        worker.tell_checkpoints();
    }
    End::NobodyListens
}

struct Worker<'a> {
    requests: &'a Receiver<WorkerRequest>,
    /// Came while a model was loading.
    early: VecDeque<WorkerRequest>,
    clock: Arc<dyn Clock>,
    emit: &'a mut dyn FnMut(WorkerEvent) -> bool,
    /// Nobody listens any more.
    gone: bool,
    /// Least recently used first.
    models: Vec<LoadedModel>,
    /// Turns whose model has no room yet.
    waiting: VecDeque<Waiting>,
    /// The vocabulary that a draft was last counted with.
    counter: Option<Counter>,
    /// Something of a context may have to be stored.
    may_store: bool,
    /// Of models that have gone.
    hits: Hits,
}

/// How a turn's model came to be in memory.
enum Brought {
    WasThere,
    Loaded,
    /// The turn was cancelled meanwhile, and has been told so. The model stays, if it came.
    Cancelled,
}

struct Waiting {
    request: GenerateRequest,
    arrived: Duration,
    /// The place in the queue that was told last.
    position: usize,
}

impl Worker<'_> {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.models.iter().all(|model| !model.is_busy())
    }

    fn handle(&mut self, request: WorkerRequest) {
        match request {
            WorkerRequest::Generate(request) => {
                let arrived = self.clock.monotonic();
                self.waiting.push_back(Waiting { request: *request, arrived, position: 0 });
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
                let outcome = guarded(|| inspect(&location));
                self.say(WorkerEvent::Inspected { request, outcome });
            }
            WorkerRequest::Count { request, count } => {
                let outcome = self.count(&count);
                self.say(WorkerEvent::Counted { request, outcome });
            }
            WorkerRequest::Fit { request, fit } => {
                let outcome = self.fit(&fit);
                self.say(WorkerEvent::Fitted { request, outcome });
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

    /// Stores a part of what should be, if nothing else is to be done.
    fn store_some(&mut self) {
        self.may_store = self.models.iter_mut().any(|model| model.store_some());
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
        self.tell_model(&model.reference.id, Loaded::Unloaded);
    }

    fn count(&mut self, request: &CountRequest) -> Result<Counted> {
        self.with_counter(&request.model, |counter, now| counter.count(request, now))
    }

    fn fit(&mut self, request: &FitRequest) -> Result<Fitted> {
        self.with_counter(&request.count.model, |counter, now| counter.fit(request, now))
    }

    fn with_counter<T>(
        &mut self,
        model: &ModelRef,
        work: impl FnOnce(&mut Counter, &str) -> Result<T>,
    ) -> Result<T> {
        let now = civil::date_time(self.clock.now_utc_ms());
        let is_there = self.counter.as_ref().is_some_and(|it| it.reference == *model);
        // Taken out while it works: one that a panic left half done is not used again.
        let kept = self.counter.take().filter(|_| is_there);
        let mut counter = match kept {
            Some(counter) => counter,
            None => guarded(|| Counter::open(model.clone()))?,
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

    fn tell_model(&mut self, id: &str, state: Loaded) {
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
            for (turn, step) in steps {
                self.tell(&turn, step);
            }
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
        self.tell_model(&id, Loaded::Unloaded);
    }

    /// Hands waiting turns to their models, first come, first served.
    fn admit(&mut self) {
        while let Some(waiting) = self.waiting.front() {
            if !self.has_room(&waiting.request) {
                return self.tell_waiting();
            }
            let Some(Waiting { request, arrived, .. }) = self.waiting.pop_front() else { return };
            let turn = request.turn.clone();
            if let Err(error) = self.start(request, arrived) {
                self.tell(&turn, Step::Failed { error });
            }
        }
    }

    /// Those whose time is up go, the others hear how many are before them.
    fn tell_waiting(&mut self) {
        let now = self.clock.monotonic();
        let is_up = |waiting: &Waiting| {
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

    /// Whether the model is there as asked for, or can be brought in without hurting a running turn.
    fn has_room(&self, request: &GenerateRequest) -> bool {
        match self.models.iter().find(|model| model.reference == request.model) {
            Some(model) if model.load == request.load => model.has_context(request.conversation.as_deref()),
            Some(model) => !model.is_busy(),
            None => self.models.len() < MAX_LOADED || self.models.iter().any(|model| !model.is_busy()),
        }
    }

    fn start(&mut self, request: GenerateRequest, arrived: Duration) -> Result<()> {
        let before = self.clock.monotonic();
        let loading = match self.bring(&request)? {
            Brought::WasThere => Duration::ZERO,
            Brought::Loaded => self.clock.monotonic().saturating_sub(before),
            Brought::Cancelled => return Ok(()),
        };
        let model = self.models.last_mut().expect("bring puts the model at the end");
        let clock = &*self.clock;
        let turn = request.turn.clone();
        for step in guarded(|| model.submit(request, arrived, loading, clock))? {
            self.tell(&turn, step);
        }
        Ok(())
    }

    /// Brings the request's model to the end of the list, loading it where it isn't there as asked for.
    fn bring(&mut self, request: &GenerateRequest) -> Result<Brought> {
        let reference = &request.model;
        if let Some(at) = self.models.iter().position(|model| model.reference == *reference) {
            let model = self.models.remove(at);
            if model.load == request.load {
                self.models.push(model);
                return Ok(Brought::WasThere);
            }
            self.let_go(model);
        }
        if self.models.len() >= MAX_LOADED
            && let Some(at) = self.models.iter().position(|model| !model.is_busy())
        {
            let model = self.models.remove(at);
            self.let_go(model);
        }
        let (mut told, mut cancelled) = (f32::NEG_INFINITY, false);
        let clock = self.clock.clone();
        let loaded = guarded(|| {
            LoadedModel::load(reference.clone(), request.load.clone(), &*clock, &mut |fraction| {
                if fraction >= told + PROGRESS_STEP || fraction >= 1.0 {
                    told = fraction;
                    if !cancelled {
                        self.tell(&request.turn, Step::Loading { fraction });
                    }
                    self.tell_model(&reference.id, Loaded::Loading { fraction });
                }
                cancelled |= self.hears_cancel(&request.turn);
            })
        });
        let loaded = loaded.map(|model| self.models.push(model));
        let state = match &loaded {
            Ok(()) => Loaded::Ready,
            Err(error) => Loaded::Failed { error: error.clone() },
        };
        self.tell_model(&reference.id, state);
        if cancelled { Ok(Brought::Cancelled) } else { loaded.map(|()| Brought::Loaded) }
    }

    /// Looks through what came while a model is loading. A turn that need not wait for it any more ends now.
    fn hears_cancel(&mut self, loading: &str) -> bool {
        let mut heard = false;
        while let Ok(request) = self.requests.try_recv() {
            match request {
                WorkerRequest::Cancel { turn } if turn == loading => {
                    if !heard {
                        self.tell(&turn, Step::Done(Box::new(never_started())));
                    }
                    heard = true;
                }
                request => self.early.push_back(request),
            }
        }
        heard
    }

    fn cancel(&mut self, turn: &str) {
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.request.turn == turn) {
            self.waiting.remove(at);
            self.tell(turn, Step::Done(Box::new(never_started())));
        }
        self.models.iter_mut().for_each(|model| model.cancel(turn));
    }

    fn unload(&mut self, id: &str) {
        self.counter.take_if(|counter| counter.reference.id == id);
        if let Some(at) = self.models.iter().position(|model| model.reference.id == id) {
            let error = Error::input(
                "model.removed",
                "The model was removed while it answered.",
                "Choose another model.",
            );
            self.drop_model(at, &error);
        }
    }
}

/// The end of a turn that was cancelled before its model saw it.
fn never_started() -> Finished {
    Finished {
        finish: Finish::Cancelled,
        called: false,
        prompt_tokens: 0,
        reused_tokens: 0,
        generated_tokens: 0,
        drafted_tokens: 0,
        accepted_tokens: 0,
        context_limit: 0,
        load_ms: 0.0,
        ttft_ms: 0.0,
        prefill_tok_s: 0.0,
        decode_tok_s: 0.0,
        log: Ids { fingerprint: String::new(), ids: Vec::new() },
        whole: Vec::new(),
    }
}

/// A panic becomes an error of ours: whoever asked hears of it, everything else goes on.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Error::bug(text.unwrap_or("a panic without a message")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_words() {
        let caught = guarded::<()>(|| panic!("row {} is not there", 7)).unwrap_err();
        assert_eq!(caught.code(), "bug");
        assert!(caught.message().contains("row 7 is not there"));
    }
}
