//! Prompts whose conversation is forgotten in part by the attention strategy. They are read by runs
//! or layers between other turns' steps. The scheduler takes over when the remainder fits.

use engine::{AttentionEviction, EvictingPrefill, Finish, GenEvent, GenerationStats, Request, TokenId};

use super::LoadedModel;
use contract::{Error, ErrorKind, Result};

/// A turn whose prompt is being read.
pub struct Reading {
    forgetting: EvictingPrefill,
    /// Its prompt comes when it has been read.
    request: Request,
    n_prompt: usize,
    is_cancelled: bool,
}

impl LoadedModel {
    /// Begins to read a prompt for a request that has none yet.
    pub(super) fn read_later(
        &mut self,
        prompt: Vec<TokenId>,
        conversation: Option<&str>,
        forget: AttentionEviction,
        mut request: Request,
    ) -> Result<()> {
        let shown = self.model.as_evicted(&prompt);
        request.sequence = self.contexts.take(&mut self.model, conversation, &shown, Some(request.id));
        let Some(seq) = request.sequence else {
            return Err(Error::new(
                ErrorKind::Limit,
                "compress.no_place",
                "There is not enough memory to compact this chat by forgetting tokens.",
                "Try again when other answers are done, or leave out older messages instead.",
            ));
        };
        let (number, n_prompt) = (request.id, prompt.len());
        match self.model.begin_evicting_prefill(seq, prompt, forget) {
            Ok(forgetting) => {
                self.reading.push_back(Reading { forgetting, request, n_prompt, is_cancelled: false });
                Ok(())
            }
            Err(error) => {
                self.contexts.ended(&mut self.model, number, None);
                Err(error.into())
            }
        }
    }

    /// Ends a turn before its next token, whether its prompt is being read or it is the scheduler's.
    pub(super) fn cancel_number(&mut self, number: u64) {
        match self.reading.iter_mut().find(|reading| reading.request.id == number) {
            Some(reading) => reading.is_cancelled = true,
            None => self.scheduler.cancel(number),
        }
    }

    /// A part of the work for the prompt that came first. What became of it, if it has come to an end.
    pub(super) fn read_some(&mut self) -> Option<(u64, GenEvent)> {
        let cancelled = self.reading.iter().position(|reading| reading.is_cancelled);
        if let Some(Reading { request, n_prompt, .. }) = cancelled.and_then(|at| self.reading.remove(at)) {
            let (finish, n_generated, n_reused) = (Finish::Cancelled, 0, 0);
            let done = GenerationStats {
                finish,
                n_prompt,
                n_generated,
                n_reused,
                n_drafted: 0,
                n_accepted: 0,
                stop_index: None,
            };
            return Some((request.id, GenEvent::Done(done)));
        }
        let mut reading = self.reading.pop_front()?;
        let n_rows = self.scheduler.prefill_rows(self.model.max_rows());
        if self.must_wait(&reading, n_rows) {
            self.reading.push_front(reading);
            return None;
        }
        match self.model.step_evicting_prefill(&mut reading.forgetting, n_rows) {
            Ok(true) => {
                self.reading.push_front(reading);
                None
            }
            Ok(false) => {
                let Reading { forgetting, mut request, .. } = reading;
                let number = request.id;
                request.prompt = self.model.finish_evicting_prefill(forgetting);
                let submitted = self.scheduler.submit(request);
                submitted.err().map(|error| (number, GenEvent::Failed(error)))
            }
            Err(error) => Some((reading.request.id, GenEvent::Failed(error))),
        }
    }

    /// Others have the memory that it needs, and will give it back.
    fn must_wait(&mut self, reading: &Reading, n_rows: usize) -> bool {
        let seq = reading.forgetting.seq();
        let lacks = |model: &engine::Model| {
            model.is_kv_bounded() && model.n_pages_to_grow(seq, n_rows) > model.n_free_pages()
        };
        while lacks(&self.model) && self.contexts.give_up_oldest(&mut self.model) {}
        lacks(&self.model) && self.scheduler.n_in_flight() > 0
    }

    /// Frees memory for turns being answered by restarting the newest one that only reads. False:
    /// there is none.
    pub(super) fn restart_reading(&mut self) -> bool {
        let Self { reading, model, .. } = self;
        let mut holding =
            reading.iter_mut().rev().filter(|it| model.len(it.forgetting.seq()).is_ok_and(|n| n > 0));
        let Some(last) = holding.next() else { return false };
        model.restart_evicting_prefill(&mut last.forgetting).is_ok()
    }
}
