//! A model in memory with the turns it is answering and the conversations whose state it keeps.

use std::sync::Arc;
use std::time::Duration;

use engine::reply::ReplySplitter;
use engine::scheduler::MAX_ACTIVE;
use engine::{Devices, LoadOptions, Model, Request, Scheduler, SequenceId};
use io::{Clock, RealIo};

use session::compress::Room;

use super::continued;
use super::fit::{Fit, Fitting, Why};
use super::prompt::{Vocabulary, no_vocabulary};
use super::protocol::{Backend, GenerateRequest, LoadSpec, ModelRef, Prompt, Step};
use super::running::{Context, Running, Times};
use crate::civil;
use crate::error::{Error, ErrorKind, Result};
use crate::machine::{self, Recall};
use crate::{quantized, resident};

/// Conversations whose keys and values stay in memory after an answer. Fewer than the sequences a model
/// has, so that requests without a conversation always find one.
const MAX_KEPT: usize = 2;

pub struct LoadedModel {
    pub reference: ModelRef,
    pub load: LoadSpec,
    model: Model,
    scheduler: Scheduler,
    running: Vec<Running>,
    /// Least recently used first.
    kept: Vec<Kept>,
    /// Names for the scheduler.
    next_number: u64,
    /// What the user should know about the machine; told once.
    notice: Option<Error>,
    /// A turn was taken.
    has_begun: bool,
}

struct Kept {
    conversation: String,
    sequence: SequenceId,
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
            small_pages: load.small_pages,
            kv: load.kv.dtype(),
            kv_window: load.kv_window,
            rope_scaling: load.rope_scaling,
            ctx: load.context,
            max_sequences: MAX_ACTIVE + MAX_KEPT,
            kv_bytes: Some(resident::for_contexts(load.context_bytes, file.len_bytes())),
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
        let (running, kept) = (Vec::new(), Vec::new());
        Ok(Self {
            reference,
            load,
            model,
            scheduler,
            running,
            kept,
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
        let id = &self.reference.id;
        let tokenizer = self.model.tokenizer().ok_or_else(|| no_vocabulary(id))?;
        let vocabulary = Vocabulary {
            tokenizer,
            template: self.model.template(),
            architecture: self.model.info().architecture,
            fingerprint: &self.model.info().fingerprint,
            now: &civil::date_time(
                request.resume.as_ref().map_or_else(|| clock.now_utc_ms(), |it| it.asked_ms),
            ),
        };
        let folded = match self.fit(&vocabulary, &request)? {
            None => None,
            Some(Fit::Wanting(wanted)) => {
                return Ok(vec![Step::Wanting { request: Box::new(request), wanted: Box::new(wanted) }]);
            }
            Some(Fit::Ready { messages, folded, .. }) => {
                request.prompt = Prompt::Chat(messages);
                folded
            }
        };
        let mut prepared = vocabulary.prepare(&request.prompt, &request.chat)?;
        let had = match &request.had {
            Some(had) => continued::tokens(had, vocabulary.fingerprint, tokenizer)?,
            None => Vec::new(),
        };
        prepared.ids.extend(&had);
        request.bounds.check_prompt(prepared.ids.len())?;
        self.check_room(prepared.ids.len())?;
        let splitter = ReplySplitter::new(&prepared.format, &prepared.text, &request.chat.tools);
        let number = self.next_number;
        self.next_number += 1;
        let times = Times::new(arrived, loading, clock.monotonic());
        let sequence =
            request.conversation.as_deref().and_then(|conversation| self.sequence_of(conversation));
        self.scheduler.submit(Request {
            id: number,
            prompt: prepared.ids,
            sequence,
            sampling: request.sampling,
            max_tokens: request.max_tokens,
            stop: request.stop,
            ignore_eos: request.ignore_eos,
            marks: prepared.format.marks().to_vec(),
            budget: prepared.budget,
            speculation: request.speculation,
            script: Vec::new(),
            resumed: request.resume.map_or_else(Vec::new, |resume| resume.ids),
        })?;
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
        let pre = tokenizer.and_then(engine::tokenizer::Tokenizer::notice).map(|notice| {
            Error::input("tokenizer.pre_missing", notice, "Download a newer conversion of the model.")
        });
        of_prompt.into_iter().chain(self.notice.take()).chain(pre)
    }

    /// A conversation as it is shown; None: as it is.
    fn fit(&self, vocabulary: &Vocabulary, request: &GenerateRequest) -> Result<Option<Fit>> {
        let (Some(compression), Prompt::Chat(messages)) = (&request.compression, &request.prompt) else {
            return Ok(None);
        };
        let room = Room::new(self.model.n_ctx(), request.max_tokens);
        Fitting::new(vocabulary, &request.chat, compression, messages, room).fit(Why::Need).map(Some)
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

    /// The sequence kept for a conversation, or a new one in the place of the one that was used longest
    /// ago. None: all are in use; the turn then runs without.
    fn sequence_of(&mut self, conversation: &str) -> Option<SequenceId> {
        if let Some(at) = self.kept.iter().position(|kept| kept.conversation == conversation) {
            let kept = self.kept.remove(at);
            let sequence = kept.sequence;
            self.kept.push(kept);
            return Some(sequence);
        }
        if self.kept.len() >= MAX_KEPT {
            // While anything runs, any of them may be in use.
            if self.is_busy() {
                return None;
            }
            let oldest = self.kept.remove(0);
            self.model.free(oldest.sequence);
        }
        let sequence = self.model.new_sequence().ok()?;
        self.kept.push(Kept { conversation: conversation.into(), sequence });
        Some(sequence)
    }

    /// Frees what is kept of a conversation, unless it is being used: then it goes with the next ones.
    pub fn forget(&mut self, conversation: &str) {
        if self.is_busy() {
            return;
        }
        if let Some(at) = self.kept.iter().position(|kept| kept.conversation == conversation) {
            let kept = self.kept.remove(at);
            self.model.free(kept.sequence);
        }
    }

    pub fn cancel(&mut self, turn: &str) {
        if let Some(running) = self.running.iter().find(|running| running.turn == turn) {
            self.scheduler.cancel(running.number);
        }
    }

    /// One batch. Afterwards `is_busy` says whether work is left.
    pub fn step(&mut self, clock: &dyn Clock, emit: &mut dyn FnMut(&str, Step)) {
        let mut events = Vec::new();
        let start = clock.monotonic();
        for running in &mut self.running {
            if running.is_up(start) {
                self.scheduler.cancel(running.number);
            }
        }
        while self.scheduler.lacks_room(&self.model) && self.give_room() {}
        self.scheduler.step(&mut self.model, &mut |number, event| {
            events.push((number, event, clock.monotonic()));
        });
        self.scheduler.took(clock.monotonic().saturating_sub(start).as_secs_f32());
        let info = self.model.info();
        let context =
            Context { tokenizer: self.model.tokenizer(), fingerprint: &info.fingerprint, n_ctx: info.n_ctx };
        for (number, event, now) in events {
            let ended = match &event {
                engine::GenEvent::Done(_) | engine::GenEvent::Failed(_) => true,
                engine::GenEvent::Prefill { .. } | engine::GenEvent::Token { .. } => false,
            };
            let Some(at) = self.running.iter().position(|running| running.number == number) else { continue };
            self.running[at].on(event, now, &context, emit);
            if ended {
                self.running.remove(at);
            }
        }
        for (index, number) in self.scheduler.waiting().enumerate() {
            if let Ok(at) = self.running.binary_search_by_key(&number, |running| running.number) {
                self.running[at].waits(index + 1, emit);
            }
        }
    }

    /// Frees the sequence that nobody uses for longest. False: all are in use.
    fn give_room(&mut self) -> bool {
        let Some(at) = self.kept.iter().position(|kept| !self.scheduler.uses(kept.sequence)) else {
            return false;
        };
        let kept = self.kept.remove(at);
        self.model.free(kept.sequence);
        true
    }

    /// The turns it was answering, when it can't go on.
    pub fn into_turns(mut self) -> Vec<String> {
        std::mem::take(&mut self.running).into_iter().map(|running| running.turn).collect()
    }
}
