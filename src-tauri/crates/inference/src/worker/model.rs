//! A loaded model with its active turns and cached contexts.

mod attention_eviction;
mod constraint;
mod draft_file;
pub mod gpu_notices;
pub mod images;
pub mod logprobs;
mod profiling;
mod room;

use std::collections::VecDeque;
use std::time::Duration;

use engine::constraint::ConstraintCompiler;
use engine::reply::ReplySplitter;
use engine::scheduler::MAX_ACTIVE;
use engine::speculate::Script;
use engine::tokenizer::Tokenizer;
use engine::{Devices, DraftBlockUse, GpuHealth, Interrupt, LoadOptions, Model, Request, Scheduler, TokenId};
use io::{Clock, RealIo};

use compaction::TokenBudget;

use attention_eviction::Reading;

use super::active_turn::{ActiveTurn, Context, Times};
use super::guarded;
use super::kv_contexts::Contexts;
use super::resume;
use crate::convert::on_load;
use crate::machine::gpus::{GpuPlacement, GpuPlanner};
use crate::machine::{self, Recall};
use crate::{engine_types, memory_budget};
use contract::protocol::{
    Backend, Checkpoints, ContextRetention, GenerateRequest, Hits, LoadSpec, Location, MeasuredAnswer,
    ModelKv, ModelRef, PrefetchRequest, Prompt, Step,
};
use contract::{Error, Result, Speculation};
use draft_file::{DraftFile, MemoryShares, load_or_without_assistant, scheduler_with_draft};
use images::VisionSettings;
use platform::calendar;
use profiling::Profiling;
use prompt::context_fit::{Fit, Fitting, Why};
use prompt::render::{Vocabulary, no_vocabulary};
use weights::WeightFile;

/// Maximum idle contexts; further ones are restored from files.
const MAX_IDLE: usize = 16;

pub struct LoadedModel {
    pub reference: ModelRef,
    pub load: LoadSpec,
    pub(super) model: Model,
    vision: VisionSettings,
    pub(super) scheduler: Scheduler,
    running: Vec<ActiveTurn>,
    /// Turns among them whose prompts are read before the scheduler has them.
    pub(super) reading: VecDeque<Reading>,
    pub(super) contexts: Contexts,
    /// Its placement, while its GPUs are still being tuned.
    placed: Option<GpuPlacement>,
    /// Names for the scheduler.
    next_number: u64,
    /// What the user should know about the machine; told once.
    notices: Vec<Error>,
    /// Made for the first constrained turn.
    constraints: Option<ConstraintCompiler>,
    /// None: no turn wants to know where its time goes.
    profiling: Option<Profiling>,
    found: Vec<MeasuredAnswer>,
    /// When it was asked or answered last, and how long after that it leaves memory. None: never.
    used: Duration,
    unload_after: Option<Duration>,
    /// Turns that were taken.
    pub n_taken: u32,
    /// Bytes that the process held before the model was loaded, where the system says.
    pub used_before: Option<u64>,
    /// Ends a batch or the rendering of a prompt early.
    interrupt: Interrupt,
}

pub(super) fn devices(load: &LoadSpec) -> Devices {
    match load.backend {
        Backend::Auto => Devices::Auto,
        Backend::Cpu => Devices::Cpu,
        Backend::Gpu => Devices::Gpu { layers: load.gpus.layers },
        Backend::Scalar => Devices::Scalar,
    }
}

/// The backend that a model runs on.
fn backend(reference: &ModelRef, load: &LoadSpec) -> Backend {
    match (&reference.location, load.backend) {
        // it has answered before a GPU is opened
        (Location::BuiltIn, Backend::Auto) => Backend::Cpu,
        (_, backend) => backend,
    }
}

/// Options from the load request; processor and GPUs are added later.
fn options(load: &LoadSpec, file: &WeightFile, draft: Option<&DraftFile>) -> LoadOptions {
    let file_bytes = file.len_bytes() + draft.map_or(0, DraftFile::len_bytes);
    LoadOptions {
        devices: devices(load),
        resident: memory_budget::budget(load.resident, file_bytes),
        // large ones would take more than is asked for
        small_pages: load.small_pages || load.memory.is_some(),
        promote_large_pages: !load.small_pages
            && load.memory.is_none()
            && memory_budget::may_settle(file_bytes),
        kv: engine_types::kv_precision(load.kv),
        kv_requantize: engine_types::kv_aging(load.kv_aging),
        kv_window: load.kv_window,
        rope_scaling: load.rope_scaling.map(engine_types::rope_scaling),
        ctx: load.context,
        max_sequences: MAX_ACTIVE + MAX_IDLE,
        draft_block: if load.draft_block { DraftBlockUse::IfPossible } else { DraftBlockUse::Off },
        kv_bytes: Some(memory_budget::for_contexts(load.context_bytes, file_bytes)),
        memory: load.memory.or_else(platform::memory::free_bytes),
        assistant: draft.and_then(DraftFile::assistant),
        ..LoadOptions::default()
    }
}

impl LoadedModel {
    pub fn load(
        reference: ModelRef,
        load: LoadSpec,
        (clock, gpu_health): (&dyn Clock, GpuHealth),
        interrupt: Interrupt,
        progress: &mut dyn FnMut(f32),
    ) -> Result<Self> {
        let used_before = platform::memory::used_bytes();
        // making and loading share the progress half and half, where there is something to make
        let from = if load.quantize.is_some() { 0.5 } else { 0.0 };
        let mut making = |done: u64, total: u64| {
            progress(from * done as f32 / total.max(1) as f32);
            true
        };
        let (location, quantize) = (&reference.location, load.quantize.as_ref());
        let (draft, mut left_out) = DraftFile::open(&load)?;
        let file = on_load::open_shared(&RealIo, location, quantize, load.machine.threads, &mut making)?;
        let mut progress = |fraction: f32| progress(from + (1.0 - from) * fraction);
        let mut options = LoadOptions { gpu_health, ..options(&load, &file, draft.as_ref()) };
        let shares = MemoryShares::new(draft.as_ref(), &file, &options)?;
        options.memory = shares.target;
        let machine = match load.backend {
            Backend::Auto | Backend::Cpu | Backend::Gpu => {
                let machine = machine::prepare(&RealIo, clock, &load.machine, Recall::Remember)?;
                machine.apply(&mut options);
                machine.notice().into_iter().chain(machine.place_memory()).collect()
            }
            Backend::Scalar => Vec::new(),
        };
        let cards = GpuPlanner::of(&load.machine, &load.gpus, clock);
        let placed = cards.place(backend(&reference, &load), &file, &mut options)?;
        let mut loads = |options: &mut LoadOptions| {
            images::load_with_tower((&reference, &load), file.clone(), options, &mut progress)
        };
        let loaded = load_or_without_assistant(&mut options, load.draft_required, &mut loads, &mut left_out);
        cards.keep(&placed, loaded.is_ok());
        let (mut model, vision) = loaded.map_err(|error| shares.explain(error))?;
        model.check_generates()?;
        model.adapt(&load.lora)?;
        model.set_interrupt(interrupt.clone());
        let scheduler =
            scheduler_with_draft(draft, shares, options, (&model, load.draft_required), &mut left_out)?;
        let notices = machine
            .into_iter()
            .chain(placed.notice.clone())
            .chain(left_out)
            .chain(gpu_notices::loaded(&mut model))
            .collect();
        Ok(Self {
            reference,
            load,
            model,
            vision,
            scheduler,
            running: Vec::new(),
            reading: VecDeque::new(),
            contexts: Contexts::default(),
            placed: Some(placed),
            next_number: 0,
            notices,
            constraints: None,
            profiling: None,
            found: Vec::new(),
            used: clock.monotonic(),
            unload_after: None,
            n_taken: 0,
            used_before,
            interrupt,
        })
    }

    fn speculation(&self, asked: Option<Speculation>) -> Option<engine::speculate::Speculation> {
        asked.map(|asked| engine_types::speculation(asked, self.model.has_draft_block()))
    }

    pub fn is_busy(&self) -> bool {
        !self.running.is_empty() || self.scheduler.n_in_flight() > 0
    }

    /// When it has been idle for long enough to leave memory. None: it is busy, or stays.
    pub fn unload_due(&self) -> Option<Duration> {
        let after = self.unload_after.filter(|_| !self.is_busy())?;
        Some(self.used.saturating_add(after))
    }

    /// Takes a turn; its steps come from `step`. Returns those that come before: what was left out of its prompt, or
    /// what is wanting; what the user should know though nothing failed.
    ///
    /// Errors: `template.cancelled` or `kernels.interrupted` if a request that cannot wait arrived; it has to be taken
    /// again then.
    pub fn submit(
        &mut self,
        mut request: GenerateRequest,
        arrived: Duration,
        loading: Duration,
        clock: &dyn Clock,
    ) -> Result<Vec<Step>> {
        let asked_ms = request.resume.as_ref().map_or_else(|| clock.now_utc_ms(), |it| it.asked_ms);
        let now = calendar::date_time(asked_ms);
        let vocabulary = Vocabulary { interrupt: Some(&self.interrupt), ..self.vocabulary(&now, None)? };
        self.refuse_overlong(&vocabulary, &request)?;
        let had = resume::tokens_of(request.had.as_ref(), vocabulary.fingerprint, vocabulary.tokenizer)?;
        let (compacted, forget) = match self.fit(&vocabulary, &request, had.len())? {
            None => (None, None),
            Some(Fit::Wanting(wanted)) => {
                return Ok(vec![Step::Wanting { request: Box::new(request), wanted: Box::new(wanted) }]);
            }
            Some(Fit::Ready { messages, compacted, forget }) => {
                request.prompt = Prompt::Chat(messages);
                (compacted, forget)
            }
        };
        let (mut prepared, image_time) = self.prepare_timed(&request, &now, clock)?;
        prepared.ids.extend(&had);
        request.bounds.check_prompt(prepared.ids.len())?;
        if forget.is_none() {
            self.check_room(prepared.ids.len())?;
        }
        let constraint = self.constrain(&request, &mut prepared, &had)?;
        let splitter = ReplySplitter::new(&prepared.format, &prepared.text, &request.chat.tools);
        let number = self.next_number;
        self.next_number += 1;
        let times = Times::new(arrived, loading, image_time, clock.monotonic());
        self.begins(times.submitted, request.keeping.as_ref());
        let conversation = request.conversation.as_deref();
        let asked = Request {
            id: number,
            prompt: Vec::new(),
            sequence: None,
            sampling: engine_types::sampling(&request.sampling, self.model.tokenizer()),
            max_tokens: request.max_tokens,
            stop: request.stop,
            ignore_eos: request.ignore_eos,
            markup_tokens: prepared.format.markup_tokens().to_vec(),
            budget: prepared.budget,
            // Guesses come from the text, and what stands in for forgotten tokens is none.
            speculation: self.speculation(request.speculation.filter(|_| forget.is_none())),
            script: Script::default(),
            constraint,
            logprobs: request.logprobs.map(engine_types::logprobs),
            resumed: request.resume.map_or_else(Vec::new, |resume| resume.ids),
        };
        match forget {
            Some(forget) => self.read_later(prepared.ids, conversation, forget, asked)?,
            None => self.begin(prepared.ids, conversation, asked)?,
        }
        request.bounds.concurrent.into_iter().for_each(|n| self.scheduler.set_max_active(n));
        let (turn, bounds) = (request.turn, request.bounds);
        let mut running = ActiveTurn::new(number, turn, splitter, &prepared.format, times, bounds);
        let began = match self.model.tokenizer() {
            Some(tokenizer) => running.read(had, tokenizer, &self.model.info().fingerprint),
            None => return Err(no_vocabulary(&self.reference.id)),
        };
        self.running.push(running);
        self.profile_turn((request.profile, number), clock);
        let mut steps = vec![began];
        steps.extend(compacted.map(|range| Step::Compacted { range }));
        steps.extend(self.notices(prepared.notices).map(|error| Step::Notice { error }));
        Ok(steps)
    }

    /// Hands a request to the scheduler, with its prompt and the context that it goes on from.
    fn begin(&mut self, prompt: Vec<TokenId>, conversation: Option<&str>, asked: Request) -> Result<()> {
        let number = asked.id;
        let sequence = self.contexts.take(&mut self.model, conversation, &prompt, Some(number));
        let submitted = self.scheduler.submit(Request { prompt, sequence, ..asked });
        if submitted.is_err() {
            self.contexts.ended(&mut self.model, number, None);
        }
        Ok(submitted?)
    }

    /// Registers a turn: the retention of its context, and of the model when it becomes idle.
    fn begins(&mut self, now: Duration, keeping: Option<&ContextRetention>) {
        self.used = now;
        self.contexts.at(now);
        if let Some(keeping) = keeping {
            self.contexts.keep_as(keeping);
            self.unload_after = keeping.unload_after_s.map(Duration::from_secs);
        }
    }

    /// Notices about machine and model, each reported once.
    fn notices(&mut self, of_prompt: Vec<Error>) -> impl Iterator<Item = Error> {
        self.n_taken = self.n_taken.saturating_add(1);
        let is_first = self.n_taken == 1;
        let tokenizer = self.model.tokenizer().filter(|_| is_first);
        let pre = tokenizer.and_then(Tokenizer::notice).map(|notice| {
            Error::input("tokenizer.pre_missing", notice, "Download a newer conversion of the model.")
        });
        of_prompt.into_iter().chain(std::mem::take(&mut self.notices)).chain(pre)
    }

    /// A conversation as it is shown; None: as it is. `n_had`: tokens of an answer that goes on, which have to fit too.
    fn fit(&self, vocabulary: &Vocabulary, request: &GenerateRequest, n_had: usize) -> Result<Option<Fit>> {
        let (Some(compression), Prompt::Chat(messages)) = (&request.compression, &request.prompt) else {
            return Ok(None);
        };
        let room = TokenBudget::new(self.model.n_ctx().saturating_sub(n_had), request.max_tokens);
        Fitting::new(vocabulary, &request.chat, compression, messages, room).fit(Why::Need).map(Some)
    }

    /// Frees what is kept of a conversation; what is being used goes with its turn.
    pub fn forget(&mut self, conversation: &str) {
        self.contexts.forget(&mut self.model, conversation);
    }

    /// A turn of that conversation could begin now.
    pub fn has_context(&self, conversation: Option<&str>) -> bool {
        self.contexts.has_room(&self.model, conversation)
    }

    /// Brings a conversation's context into memory. Failures are not reported: it is then read
    /// later.
    pub fn prefetch(&mut self, request: &PrefetchRequest, clock: &dyn Clock) -> Result<()> {
        let now = calendar::date_time(clock.now_utc_ms());
        let vocabulary = self.vocabulary(&now, None)?;
        if vocabulary.estimate_overlong(&request.messages, self.model.n_ctx()).is_some() {
            return Ok(());
        }
        let prepared = self.prepare(&Prompt::Chat(request.messages.clone()), &request.chat, &now)?;
        self.contexts.at(clock.monotonic());
        self.contexts.keep_as(&request.keeping);
        self.contexts.take(&mut self.model, Some(&request.conversation), &prepared.ids, None);
        Ok(())
    }

    /// When a context will have been idle for too long. None: none will.
    pub fn next_idle(&self) -> Option<Duration> {
        self.contexts.next_idle()
    }

    /// Contexts that have been idle for too long leave memory.
    pub fn release_idle(&mut self, now: Duration) {
        self.contexts.at(now);
        self.contexts.release_idle(&mut self.model);
    }

    /// Stores a part of what should be. False: there is nothing to store.
    pub fn store_some(&mut self) -> bool {
        self.contexts.store_some(&self.model)
    }

    /// Continues tuning for its GPUs, and caches the results. False: nothing is left to tune.
    pub fn tune_some(&mut self, clock: &dyn Clock) -> bool {
        let Some(placed) = &self.placed else { return false };
        let is_left = self.model.tune(&|| clock.monotonic()).unwrap_or_else(|error| {
            tracing::info!(code = error.code(), "the GPU was not tuned: {error}");
            false
        });
        if !is_left {
            GpuPlanner::of(&self.load.machine, &self.load.gpus, clock).keep(placed, true);
            self.placed = None;
        }
        is_left
    }

    /// Stores all of it, that of turns which are cut short too.
    pub fn store_all(&mut self) {
        self.contexts.store_all(&self.model);
    }

    /// Names of the files that lead to the end of a conversation's context. None: it isn't here.
    pub fn store_now(
        &mut self,
        conversation: &str,
        keeping: &ContextRetention,
    ) -> Result<Option<Vec<String>>> {
        self.contexts.keep_as(keeping);
        self.contexts.store_now(&self.model, conversation)
    }

    pub fn take_told(&mut self) -> Vec<Checkpoints> {
        self.contexts.take_told()
    }

    pub fn hits(&self) -> Hits {
        self.contexts.hits()
    }

    pub fn kv(&self) -> ModelKv {
        self.contexts.usage(&self.reference.id, &self.model)
    }

    pub fn cancel(&mut self, turn: &str) {
        let number = self.running.iter().find(|running| running.turn == turn).map(|running| running.number);
        number.into_iter().for_each(|number| self.cancel_number(number));
    }

    /// One batch. Afterwards `is_busy` says whether work is left.
    pub fn step(&mut self, clock: &dyn Clock, emit: &mut dyn FnMut(&str, Step)) {
        let mut events = Vec::new();
        // contexts that age under pressure age first; then unused ones give way to those in use
        while self.scheduler.is_short_of_pages(&self.model)
            && (self.model.requantize_some()
                || self.contexts.yield_to(&mut self.model, &self.scheduler)
                || self.restart_reading())
        {}
        let now = clock.monotonic();
        let up = self.running.iter_mut().filter_map(|running| running.is_up(now).then_some(running.number));
        up.collect::<Vec<_>>().into_iter().for_each(|number| self.cancel_number(number));
        let read = self.read_some();
        events.extend(read.map(|(number, event)| (number, event, clock.monotonic())));
        let start = clock.monotonic();
        self.run_batch(clock, &mut |number, event| events.push((number, event, clock.monotonic())));
        self.used = clock.monotonic();
        self.scheduler.record_step(self.used.saturating_sub(start).as_secs_f32());
        while let Some(trouble) =
            self.model.take_gpu_incident().or_else(|| self.scheduler.take_gpu_incident())
        {
            let error = gpu_notices::told(&trouble);
            let turns = self.running.iter().map(|running| &running.turn);
            turns.for_each(|turn| emit(turn, Step::Notice { error: error.clone() }));
        }
        let info = self.model.info();
        let context =
            Context { tokenizer: self.model.tokenizer(), fingerprint: &info.fingerprint, n_ctx: info.n_ctx };
        let mut over = Vec::new();
        for (number, event, now) in events {
            let ended = match &event {
                engine::GenEvent::Done(_) | engine::GenEvent::Failed(_) => true,
                engine::GenEvent::Prefill { .. } | engine::GenEvent::Token { .. } => false,
            };
            let done = if let engine::GenEvent::Done(done) = &event { Some(*done) } else { None };
            let Some(at) = self.running.iter().position(|running| running.number == number) else {
                // its turn has failed before
                over.extend(ended.then_some((number, None)));
                continue;
            };
            let running = &mut self.running[at];
            let told = guarded(|| {
                running.on(event, now, &context, emit);
                Ok(())
            });
            if let Err(error) = &told {
                emit(&self.running[at].turn, Step::Failed { error: error.clone() });
                self.scheduler.cancel(number);
            }
            if ended || told.is_err() {
                self.running.remove(at);
            }
            if ended {
                over.push((number, done.filter(|_| told.is_ok())));
            }
        }
        self.contexts.at(clock.monotonic());
        for (number, done) in over {
            self.contexts.ended(&mut self.model, number, done.as_ref());
            self.profiled(number);
        }
        for (index, number) in self.scheduler.pending_ids().enumerate() {
            if let Ok(at) = self.running.binary_search_by_key(&number, |running| running.number) {
                self.running[at].waits(index + 1, emit);
            }
        }
    }

    /// The turns it was answering, when it can't go on.
    pub fn into_turns(mut self) -> Vec<String> {
        std::mem::take(&mut self.running).into_iter().map(|running| running.turn).collect()
    }
}
