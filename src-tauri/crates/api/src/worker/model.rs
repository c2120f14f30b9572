//! A model in memory with the turns it is answering and the contexts that it keeps.

use std::sync::Arc;
use std::time::Duration;

use engine::reply::ReplySplitter;
use engine::scheduler::MAX_ACTIVE;
use engine::tokenizer::Tokenizer;
use engine::{Devices, Forget, LoadOptions, Model, Request, Scheduler, SequenceId, TokenId};
use io::{Clock, RealIo};

use session::compress::Room;

use super::contexts::Contexts;
use super::continued;
use super::fit::{Fit, Fitting, Why};
use super::prompt::{Vocabulary, no_vocabulary};
use super::protocol::{
    Backend, Checkpoints, GenerateRequest, Hits, Keeping, LoadSpec, ModelKv, ModelRef, PrefetchRequest,
    Prompt, Step,
};
use super::running::{Context, Running, Times};
use crate::civil;
use crate::error::{Error, ErrorKind, Result};
use crate::machine::{self, Recall};
use crate::{quantized, resident};

/// Contexts beside those of turns that are being answered; more are brought back from files.
const MAX_IDLE: usize = 16;

pub struct LoadedModel {
    pub reference: ModelRef,
    pub load: LoadSpec,
    model: Model,
    scheduler: Scheduler,
    running: Vec<Running>,
    contexts: Contexts,
    /// Names for the scheduler.
    next_number: u64,
    /// What the user should know about the machine; told once.
    notice: Option<Error>,
    /// A turn was taken.
    has_begun: bool,
}

impl LoadedModel {
    pub fn load(
        reference: ModelRef,
        load: LoadSpec,
        clock: &dyn Clock,
        progress: &mut dyn FnMut(f32),
    ) -> Result<Self> {
        // making and loading share the progress half and half, where there is something to make
        let from = if load.quantize.is_some() { 0.5 } else { 0.0 };
        let mut making = |done: u64, total: u64| {
            progress(from * done as f32 / total.max(1) as f32);
            true
        };
        let (location, quantize) = (&reference.location, load.quantize.as_ref());
        let file = quantized::open_shared(&RealIo, location, quantize, load.machine.threads, &mut making)?;
        let mut progress = |fraction: f32| progress(from + (1.0 - from) * fraction);
        let mut options = LoadOptions {
            devices: match load.backend {
                Backend::Auto => Devices::Auto,
                Backend::Cpu => Devices::Cpu,
                Backend::Scalar => Devices::Scalar,
            },
            resident: resident::budget(load.resident, file.len_bytes()),
            // large ones would take more than is asked for
            small_pages: load.small_pages || load.memory.is_some(),
            settle: !load.small_pages && load.memory.is_none() && resident::may_settle(file.len_bytes()),
            kv: load.kv.dtype(),
            kv_window: load.kv_window,
            rope_scaling: load.rope_scaling,
            ctx: load.context,
            max_sequences: MAX_ACTIVE + MAX_IDLE,
            kv_bytes: Some(resident::for_contexts(load.context_bytes, file.len_bytes())),
            memory: load.memory.or_else(resident::free_bytes),
            ..LoadOptions::default()
        };
        let machine = match load.backend {
            Backend::Auto | Backend::Cpu => {
                let machine = machine::prepare(&RealIo, clock, &load.machine, Recall::Remember)?;
                machine.apply(&mut options);
                machine.notice()
            }
            Backend::Scalar => None,
        };
        let mut model = Model::load(file, &options, &mut progress)?;
        model.adapt(&load.lora)?;
        let mut scheduler = Scheduler::new();
        if let Some(draft) = &load.draft {
            let file = super::open(&draft.location)?;
            let draft_model = Model::load(Arc::new(file), &options, &mut |_| {})?;
            scheduler.draft_with(draft_model, &model)?;
        }
        let (running, contexts) = (Vec::new(), Contexts::default());
        Ok(Self {
            reference,
            load,
            model,
            scheduler,
            running,
            contexts,
            next_number: 0,
            notice: machine,
            has_begun: false,
        })
    }

    pub fn is_busy(&self) -> bool {
        !self.running.is_empty()
    }

    /// Takes a turn; its steps come from `step`. Returns those that come before: what was left out of its prompt, or
    /// what is wanting; what the user should know though nothing failed.
    pub fn submit(
        &mut self,
        mut request: GenerateRequest,
        arrived: Duration,
        loading: Duration,
        clock: &dyn Clock,
    ) -> Result<Vec<Step>> {
        let asked_ms = request.resume.as_ref().map_or_else(|| clock.now_utc_ms(), |it| it.asked_ms);
        let now = civil::date_time(asked_ms);
        let vocabulary = self.vocabulary(&now)?;
        let tokenizer = vocabulary.tokenizer;
        let had = request.had.as_ref();
        let had = had.map(|had| continued::tokens(had, vocabulary.fingerprint, tokenizer)).transpose()?;
        let had = had.unwrap_or_default();
        let (folded, forget) = match self.fit(&vocabulary, &request, had.len())? {
            None => (None, None),
            Some(Fit::Wanting(wanted)) => {
                return Ok(vec![Step::Wanting { request: Box::new(request), wanted: Box::new(wanted) }]);
            }
            Some(Fit::Ready { messages, folded, forget }) => {
                request.prompt = Prompt::Chat(messages);
                (folded, forget)
            }
        };
        let mut prepared = vocabulary.prepare(&request.prompt, &request.chat)?;
        prepared.ids.extend(&had);
        request.bounds.check_prompt(prepared.ids.len())?;
        if forget.is_none() {
            self.check_room(prepared.ids.len())?;
        }
        let splitter = ReplySplitter::new(&prepared.format, &prepared.text, &request.chat.tools);
        let number = self.next_number;
        self.next_number += 1;
        let times = Times::new(arrived, loading, clock.monotonic());
        request.keeping.iter().for_each(|keeping| self.contexts.keep_as(keeping));
        let (prompt, sequence) =
            self.take_context(prepared.ids, request.conversation.as_deref(), number, forget)?;
        let submitted = self.scheduler.submit(Request {
            id: number,
            prompt,
            sequence,
            sampling: request.sampling,
            max_tokens: request.max_tokens,
            stop: request.stop,
            ignore_eos: request.ignore_eos,
            marks: prepared.format.marks().to_vec(),
            budget: prepared.budget,
            // Guesses come from the text, and what stands in for forgotten tokens is none.
            speculation: request.speculation.filter(|_| forget.is_none()),
            script: Vec::new(),
            resumed: request.resume.map_or_else(Vec::new, |resume| resume.ids),
        });
        if let Err(error) = submitted {
            self.contexts.ended(&mut self.model, number, None);
            return Err(error.into());
        }
        request.bounds.concurrent.into_iter().for_each(|n| self.scheduler.set_max_active(n));
        let (turn, bounds) = (request.turn, request.bounds);
        let mut running = Running::new(number, turn, splitter, &prepared.format, times, bounds);
        let fingerprint = &self.model.info().fingerprint;
        let began = match self.model.tokenizer() {
            Some(tokenizer) => running.read(had, tokenizer, fingerprint),
            None => return Err(no_vocabulary(&self.reference.id)),
        };
        self.running.push(running);
        let mut steps = vec![began];
        steps.extend(folded.map(|folded| Step::Compacted { folded }));
        steps.extend(self.notices(prepared.notices).map(|error| Step::Notice { error }));
        Ok(steps)
    }

    /// With what the user should know about machine and model, which is told once.
    fn notices(&mut self, of_prompt: Vec<Error>) -> impl Iterator<Item = Error> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let tokenizer = self.model.tokenizer().filter(|_| is_first);
        let pre = tokenizer.and_then(Tokenizer::notice).map(|notice| {
            Error::input("tokenizer.pre_missing", notice, "Download a newer conversion of the model.")
        });
        of_prompt.into_iter().chain(self.notice.take()).chain(pre)
    }

    /// The sequence of a prompt, and the prompt as it has it: what is forgotten is read now, and has stand-ins there.
    fn take_context(
        &mut self,
        prompt: Vec<TokenId>,
        conversation: Option<&str>,
        number: u64,
        forget: Option<Forget>,
    ) -> Result<(Vec<TokenId>, Option<SequenceId>)> {
        let Some(forget) = forget else {
            let sequence = self.contexts.take(&mut self.model, conversation, &prompt, Some(number));
            return Ok((prompt, sequence));
        };
        let shown = self.model.as_forgotten(&prompt);
        let sequence = self.contexts.take(&mut self.model, conversation, &shown, Some(number));
        let read = match sequence.filter(|_| !self.model.is_kv_bounded()) {
            Some(seq) => self.model.read_forgetting(seq, &prompt, forget, &mut |_| true).map_err(Into::into),
            None => Err(Error::new(
                ErrorKind::Limit,
                "compress.no_place",
                "There is no memory set aside in which this conversation could be forgotten in part.",
                "Try again when other answers have ended, or have older messages left out instead.",
            )),
        };
        if read.is_err() {
            self.contexts.ended(&mut self.model, number, None);
        }
        Ok((read?, sequence))
    }

    /// A conversation as it is shown; None: as it is. `n_had`: tokens of an answer that goes on, which have to fit too.
    fn fit(&self, vocabulary: &Vocabulary, request: &GenerateRequest, n_had: usize) -> Result<Option<Fit>> {
        let (Some(compression), Prompt::Chat(messages)) = (&request.compression, &request.prompt) else {
            return Ok(None);
        };
        let room = Room::new(self.model.n_ctx().saturating_sub(n_had), request.max_tokens);
        Fitting::new(vocabulary, &request.chat, compression, messages, room).fit(Why::Need).map(Some)
    }

    /// `now` as templates want it.
    fn vocabulary<'a>(&'a self, now: &'a str) -> Result<Vocabulary<'a>> {
        let tokenizer = self.model.tokenizer().ok_or_else(|| no_vocabulary(&self.reference.id))?;
        let info = self.model.info();
        let (architecture, fingerprint) = (info.architecture, &*info.fingerprint);
        Ok(Vocabulary { tokenizer, template: self.model.template(), architecture, fingerprint, now })
    }

    /// Nothing is cut silently: a prompt that doesn't fit is refused with its numbers.
    fn check_room(&self, n_prompt: usize) -> Result<()> {
        let info = self.model.info();
        if n_prompt <= info.n_ctx {
            return Ok(());
        }
        let remedy = if info.context_length > info.n_ctx {
            format!(
                "Raise the context length in the settings (this model can hold {}), have older messages folded, or start a new conversation.",
                info.context_length
            )
        } else {
            "Have older messages folded, start a new conversation, or choose a model with a longer context."
                .into()
        };
        let message = format!("This conversation needs {n_prompt} tokens; the model holds {}.", info.n_ctx);
        Err(Error::new(ErrorKind::Limit, "request.context_full", message, remedy))
    }

    /// Frees what is kept of a conversation; what is being used goes with its turn.
    pub fn forget(&mut self, conversation: &str) {
        self.contexts.forget(&mut self.model, conversation);
    }

    /// A turn of that conversation could begin now.
    pub fn has_context(&self, conversation: Option<&str>) -> bool {
        self.contexts.has_room(&self.model, conversation)
    }

    /// Brings a conversation's context into memory. Nobody is told where that can't be done: it is read later then.
    pub fn prefetch(&mut self, request: &PrefetchRequest, clock: &dyn Clock) -> Result<()> {
        let prompt = Prompt::Chat(request.messages.clone());
        let prepared =
            self.vocabulary(&civil::date_time(clock.now_utc_ms()))?.prepare(&prompt, &request.chat)?;
        self.contexts.keep_as(&request.keeping);
        self.contexts.take(&mut self.model, Some(&request.conversation), &prepared.ids, None);
        Ok(())
    }

    /// Stores a part of what should be. False: there is nothing to store.
    pub fn store_some(&mut self) -> bool {
        self.contexts.store_some(&self.model)
    }

    /// Stores all of it, that of turns which are cut short too.
    pub fn store_all(&mut self) {
        self.contexts.store_all(&self.model);
    }

    /// Names of the files that lead to the end of a conversation's context. None: it isn't here.
    pub fn store_now(&mut self, conversation: &str, keeping: &Keeping) -> Result<Option<Vec<String>>> {
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
        if let Some(running) = self.running.iter().find(|running| running.turn == turn) {
            self.scheduler.cancel(running.number);
        }
    }

    /// One batch. Afterwards `is_busy` says whether work is left.
    pub fn step(&mut self, clock: &dyn Clock, emit: &mut dyn FnMut(&str, Step)) {
        let mut events = Vec::new();
        // contexts that nobody uses make room for those in use
        while self.scheduler.lacks_room(&self.model)
            && self.contexts.yield_to(&mut self.model, &self.scheduler)
        {}
        let start = clock.monotonic();
        for running in &mut self.running {
            if running.is_up(start) {
                self.scheduler.cancel(running.number);
            }
        }
        self.scheduler.step(&mut self.model, &mut |number, event| {
            events.push((number, event, clock.monotonic()));
        });
        self.scheduler.took(clock.monotonic().saturating_sub(start).as_secs_f32());
        let info = self.model.info();
        let context =
            Context { tokenizer: self.model.tokenizer(), fingerprint: &info.fingerprint, n_ctx: info.n_ctx };
        let mut over = Vec::new();
        for (number, event, now) in events {
            let ended = match &event {
                engine::GenEvent::Done(_) | engine::GenEvent::Failed(_) => true,
                engine::GenEvent::Prefill { .. } | engine::GenEvent::Token { .. } => false,
            };
            let Some(at) = self.running.iter().position(|running| running.number == number) else { continue };
            let done = if let engine::GenEvent::Done(done) = &event { Some(*done) } else { None };
            self.running[at].on(event, now, &context, emit);
            if ended {
                self.running.remove(at);
                over.push((number, done));
            }
        }
        for (number, done) in over {
            self.contexts.ended(&mut self.model, number, done.as_ref());
        }
        for (index, number) in self.scheduler.waiting().enumerate() {
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
