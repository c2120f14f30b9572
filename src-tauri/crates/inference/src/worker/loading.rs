//! Loads and evicts models. A model is loaded on a separate thread while others continue to answer.
//! Several stay as long as they fit; otherwise the least recently used are evicted first, never one
//! that is answering.

use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use engine::memory_estimate::MemoryEstimate;

use super::model::LoadedModel;
use super::{WaitingTurn, Worker, guarded};
use crate::estimate::{self, DraftEstimate};
use crate::{model_file, starter};
use contract::protocol::{GenerateRequest, LoadSpec, LoadState, ModelRef, Step, TurnResult};
use contract::settings::DEFAULT_CONTEXT;
use contract::types::ErrorAction;
use contract::{Error, Result};

/// Models in memory at once, however small they are.
const MAX_LOADED: usize = 8;

/// Share of free memory that a further model may take.
const MAY_TAKE: (u64, u64) = (4, 5);

/// Fractions that wait to be read: more than the steps that are reported.
const MAX_WAITING_FRACTIONS: usize = 64;

/// Progress is reported in steps of this fraction.
const PROGRESS_STEP: f32 = 0.02;

/// How often a worker that does nothing but load looks for requests and progress.
pub const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A model that is being loaded, and the turn that it is loaded for.
pub struct LoadJob {
    waiting: WaitingTurn,
    begun: Duration,
    heard: Receiver<LoaderMessage>,
    /// The fraction last reported.
    told: f32,
    /// Its turn was cancelled, and has been told so.
    cancelled: bool,
    /// It was taken off the library meanwhile.
    unwanted: bool,
}

enum LoaderMessage {
    Fraction(f32),
    Ended(Box<Result<LoadedModel>>),
}

/// What a turn has to wait for.
enum LoadPlan {
    /// Its model is there.
    Start,
    /// Its model can be loaded now.
    Load,
    /// Another model is being loaded; turns behind it need not wait for that.
    Loading,
    /// What others use; those behind it wait too, else it might wait for ever.
    Full,
}

impl LoadJob {
    fn request(&self) -> &GenerateRequest {
        &self.waiting.request
    }
}

impl Worker<'_> {
    /// Hands waiting turns to their models, first come, first served.
    pub fn admit(&mut self) {
        let mut at = 0;
        while at < self.waiting.len() {
            match self.way(at) {
                LoadPlan::Full => break,
                LoadPlan::Loading => at += 1,
                LoadPlan::Start => {
                    let Some(waiting) = self.waiting.remove(at) else { break };
                    self.start(waiting, Duration::ZERO);
                    // What cannot wait is heard before the next prompt is rendered.
                    if self.requests.interrupt().is_requested() {
                        break;
                    }
                }
                LoadPlan::Load => {
                    let Some(waiting) = self.waiting.remove(at) else { break };
                    self.load(waiting);
                }
            }
        }
        if !self.waiting.is_empty() {
            self.tell_waiting();
        }
    }

    fn way(&mut self, at: usize) -> LoadPlan {
        let request = &self.waiting[at].request;
        match self.models.iter().find(|model| model.reference == request.model) {
            Some(model) if model.load == request.load => {
                return if model.has_context(request.conversation.as_deref()) {
                    LoadPlan::Start
                } else {
                    LoadPlan::Full
                };
            }
            Some(model) if model.is_busy() => return LoadPlan::Full,
            Some(_) | None => {}
        }
        if self.bringing.is_some() {
            return LoadPlan::Loading;
        }
        if self.make_room(at) { LoadPlan::Load } else { LoadPlan::Full }
    }

    /// Evicts models until the one that a turn needs fits. False: they are answering.
    fn make_room(&mut self, at: usize) -> bool {
        let request = &self.waiting[at].request;
        let same = self.models.iter().position(|model| model.reference == request.model);
        if let Some(same) = same {
            let model = self.models.remove(same);
            self.let_go(model);
        }
        while !self.models.is_empty() {
            let need = match self.waiting[at].need {
                Some(need) => need,
                None => {
                    let WaitingTurn { request, need, .. } = &mut self.waiting[at];
                    *need.insert(need_of(&request.model, &request.load))
                }
            };
            let fits = (self.free)().is_none_or(|free| need <= free / MAY_TAKE.1 * MAY_TAKE.0);
            if fits && self.models.len() < MAX_LOADED {
                return true;
            }
            if !fits && self.let_go_of_embedding() {
                continue;
            }
            let Some(idle) = self.models.iter().position(|model| !model.is_busy()) else { return false };
            let model = self.models.remove(idle);
            self.let_go(model);
        }
        true
    }

    /// Begins to load the model of a turn.
    fn load(&mut self, waiting: WaitingTurn) {
        let (send, heard) = mpsc::sync_channel(MAX_WAITING_FRACTIONS);
        let (reference, load) = (waiting.request.model.clone(), waiting.request.load.clone());
        let (clock, interrupt) = (self.clock.clone(), self.requests.interrupt().clone());
        let health = self.gpu_health.clone();
        let work = move || {
            let loaded = guarded(|| {
                LoadedModel::load(reference, load, (&*clock, health), interrupt, &mut |fraction| {
                    // Later fractions say more than one that finds no room.
                    let _ = send.try_send(LoaderMessage::Fraction(fraction));
                })
            });
            let _ = send.send(LoaderMessage::Ended(Box::new(loaded)));
        };
        let (begun, told) = (self.clock.monotonic(), f32::NEG_INFINITY);
        let thread = std::thread::Builder::new().name("inglenook-load".into()).spawn(work);
        self.bringing = Some(LoadJob { waiting, begun, heard, told, cancelled: false, unwanted: false });
        if let Err(error) = thread {
            self.brought(Err(no_thread(&error)));
        }
    }

    /// What has come of loading since the last look.
    pub fn hear_loading(&mut self) {
        while let Some(bringing) = &mut self.bringing {
            match bringing.heard.try_recv() {
                Ok(LoaderMessage::Fraction(fraction)) => self.told_fraction(fraction),
                Ok(LoaderMessage::Ended(loaded)) => self.brought(*loaded),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.brought(Err(Error::bug("the thread that loads a model ended without a word")));
                }
            }
        }
    }

    fn told_fraction(&mut self, fraction: f32) {
        let Some(bringing) = &mut self.bringing else { return };
        if fraction < bringing.told + PROGRESS_STEP && fraction < 1.0 {
            return;
        }
        bringing.told = fraction;
        let (id, turn) = (bringing.request().model.id.clone(), bringing.request().turn.clone());
        if !bringing.cancelled {
            self.tell(&turn, Step::Loading { fraction });
        }
        self.tell_model(&id, LoadState::Loading { fraction });
    }

    /// A model is there, or will not come.
    fn brought(&mut self, loaded: Result<LoadedModel>) {
        let Some(LoadJob { waiting, begun, cancelled, unwanted, .. }) = self.bringing.take() else { return };
        let (id, turn) = (waiting.request.model.id.clone(), waiting.request.turn.clone());
        let loaded = loaded.and_then(|model| if unwanted { Err(removed()) } else { Ok(model) });
        match loaded {
            Ok(model) => {
                self.models.push(model);
                self.tell_model(&id, LoadState::Ready);
                if !cancelled {
                    let loading = self.clock.monotonic().saturating_sub(begun);
                    self.start(waiting, loading);
                }
            }
            Err(error) => {
                let error = if unwanted { error } else { with_starter(error, &id) };
                let state =
                    if unwanted { LoadState::Unloaded } else { LoadState::Failed { error: error.clone() } };
                self.tell_model(&id, state);
                if !cancelled {
                    self.tell(&turn, Step::Failed { error });
                }
            }
        }
        self.admit();
    }

    /// Hands a turn to its model, which is there.
    fn start(&mut self, waiting: WaitingTurn, loading: Duration) {
        let WaitingTurn { request, arrived, .. } = waiting;
        let Some(at) = self.models.iter().position(|model| model.reference == request.model) else { return };
        // the one that was used last stands last
        let model = self.models.remove(at);
        self.models.push(model);
        let model = self.models.last_mut().expect("it was pushed");
        let clock = &*self.clock;
        let turn = request.turn.clone();
        let again = WaitingTurn { request: request.clone(), arrived, position: 0, need: None };
        match guarded(|| model.submit(request, arrived, loading, clock)) {
            Ok(steps) => steps.into_iter().for_each(|step| self.tell(&turn, step)),
            Err(error) if ["template.cancelled", "kernels.interrupted"].contains(&error.code()) => {
                self.waiting.push_front(again);
            }
            Err(error) => self.tell(&turn, Step::Failed { error }),
        }
    }

    /// The turn that a model is loaded for need not wait for it any more. The model comes all the same.
    pub fn cancel_loading(&mut self, turn: &str) {
        let Some(bringing) = &mut self.bringing else { return };
        if bringing.request().turn == turn && !std::mem::replace(&mut bringing.cancelled, true) {
            self.tell(turn, Step::Done(Box::new(TurnResult::never_started())));
        }
    }

    /// A model that is being loaded was taken off the library.
    pub fn unwant(&mut self, id: &str) {
        if let Some(bringing) = self.bringing.as_mut().filter(|it| it.request().model.id == id) {
            bringing.unwanted = true;
        }
    }

    /// When the next model has been idle for long enough to leave memory. None: none will.
    pub fn unload_due(&self) -> Option<Duration> {
        let due = self.models.iter().filter_map(LoadedModel::unload_due).min()?;
        Some(due.saturating_sub(self.clock.monotonic()))
    }

    /// Evicts models that have long been unused.
    pub fn unload_idle(&mut self) {
        let now = self.clock.monotonic();
        while let Some(at) =
            self.models.iter().position(|model| model.unload_due().is_some_and(|due| due <= now))
        {
            let model = self.models.remove(at);
            tracing::info!(model = model.reference.id, "unloaded: idle for too long");
            self.let_go(model);
        }
    }
}

/// Bytes that a model takes with one context, and with what drafts for it. What can't be opened takes none: loading says
/// why.
fn need_of(model: &ModelRef, load: &LoadSpec) -> u64 {
    let memory_estimate = guarded(|| Ok(MemoryEstimate::of(&model_file::open(&model.location)?)?));
    let of_draft = |draft: &ModelRef| guarded(|| DraftEstimate::of(&model_file::open(&draft.location)?)).ok();
    let draft = load.draft.as_ref().and_then(of_draft);
    let context = load.context.unwrap_or(DEFAULT_CONTEXT as usize);
    let needs = memory_estimate.map_or(0, |memory_estimate| {
        let tokens = u32::try_from(context.min(memory_estimate.context_length)).unwrap_or(u32::MAX);
        estimate::memory_at(&memory_estimate, draft.as_ref(), tokens, load.kv)
    });
    load.memory.map_or(needs, |most| needs.min(most))
}

pub fn removed() -> Error {
    Error::input("model.removed", "The model was removed while it was answering.", "Choose another model.")
}

pub fn no_thread(error: &std::io::Error) -> Error {
    Error::new(
        contract::ErrorKind::Limit,
        "worker.thread",
        format!("The model could not be loaded, because the system could not start a thread: {error}."),
        "Close other programs and try again.",
    )
}

/// A model that can't be loaded leaves the user with one that can, if they wish.
fn with_starter(error: Error, id: &str) -> Error {
    if id == starter::ID {
        return error;
    }
    let remedy = format!("{} Or answer with the built-in model, which is always available.", error.remedy());
    let offered = Error::new(error.kind, error.code(), error.message(), remedy);
    offered.offering(ErrorAction::UseModel { model: starter::ID.into() })
}
