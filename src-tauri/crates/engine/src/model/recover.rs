//! What follows when a graphics card fails while it works: the weights go to a new device, to less of it, or to the CPU,
//! and what sequences held is read again there before it is needed next. Answers go on where they were.

use kernels::Batch;

use super::forget::STAND_IN;
use super::forward::{make_copies, turn};
use super::load::Moved;
use super::relief::{self, CardTrouble, Relief};
use super::{LoadOptions, Model};
use crate::error::{EngineError, Result};
use crate::kv::cache::{Again, SequenceId};
use crate::kv::size::KvBytes;

impl Model {
    /// Moves the model away from a card that failed with `error`. Afterwards every sequence is what it was, those of
    /// `back_to` without tokens beyond so many; they are read again as they are needed.
    ///
    /// Errors: what the CPU can't do either.
    pub(super) fn recover(&mut self, error: EngineError, back_to: &[(SequenceId, usize)]) -> Result<()> {
        self.cache.lose(back_to);
        let (mut error, mut told) = (error, Vec::<CardTrouble>::new());
        let moved = loop {
            let source = &mut self.source;
            let mut options = LoadOptions {
                max_rows: Some(self.executor.capacity().max_rows),
                kv_aging: self.info.kv_aging,
                ..source.options.clone()
            };
            let relief = relief::next(&error, &mut options, &source.asked, &source.health, &self.spec);
            // what was tried in vain needs no telling
            told.retain(|it| it.relief != Relief::Anew);
            told.push(CardTrouble { error: error.clone(), relief });
            match self.move_to(options) {
                Err(again) if again.is_of_gpu() => error = again,
                moved => break moved,
            }
        };
        self.source.troubles.extend(told);
        moved
    }

    /// What went wrong with the card and wasn't asked for yet, though answers go on: the oldest first.
    pub fn take_trouble(&mut self) -> Option<CardTrouble> {
        self.source.troubles.pop_front()
    }

    /// The same weights by other options. Sequences keep their places, in which nothing stands.
    fn move_to(&mut self, options: LoadOptions) -> Result<()> {
        let mut capacity = self.executor.capacity();
        let rows = options.max_rows.unwrap_or(self.cache.geometry().max_rows);
        if !self.spec.looks_ahead() {
            capacity.max_rows = rows.min(self.cache.geometry().max_rows);
            capacity.max_outputs = capacity.max_outputs.min(capacity.max_rows);
        }
        self.source.options = options;
        let n_weight_bytes = self.info.n_weight_bytes;
        let Moved { executor, identity } =
            self.source.executor(&self.spec, capacity, n_weight_bytes, &self.info.fingerprint)?;
        self.info.devices = executor.describe();
        self.info.kv_bytes = KvBytes::of(executor.graph().kv(), self.cache.geometry());
        self.info.kv_bytes_per_token = identity.bytes.page / kernels::PAGE_LEN as u64;
        self.info.kv_fixed_bytes = self.info.kv_bytes.fixed() / self.cache.geometry().max_sequences as u64;
        (self.executor, self.identity) = (executor, identity);
        Ok(())
    }

    /// Reads a sequence again that was lost with a device; nothing happens to others.
    ///
    /// Errors: it has forgotten a part of its text, which can't be read again (`kv.forgotten`), or there is no room for
    /// what had aged (`kv.memory_full`): the sequence is empty then. Others, those of devices among them: it is lost as
    /// before.
    pub(super) fn read_again(&mut self, id: SequenceId) -> Result<()> {
        let Some(again) = self.cache.begin_again(id)? else { return Ok(()) };
        let read = match again.tokens.iter().any(|token| *token >= STAND_IN) {
            true => Err(forgotten()),
            false => self.read_all(id, &again),
        };
        match read {
            Ok(()) => self.cache.end_again(id, &again),
            Err(error) => {
                self.cache.give_back(id, again);
                if matches!(error.code(), "kv.forgotten" | "kv.memory_full") {
                    self.cache.truncate(id, 0)?;
                }
                Err(error)
            }
        }
    }

    fn read_all(&mut self, id: SequenceId, again: &Again) -> Result<()> {
        let Self { cache, executor, .. } = self;
        let most = executor.capacity().max_rows;
        let zeros = vec![0; most];
        while let Some(next) = cache.next_again(id, again, most)? {
            turn(executor, &next.turning)?;
            make_copies(executor, &next.copies)?;
            if next.n == 0 {
                continue;
            }
            let start = cache.tokens(id)?.len();
            let positions: Vec<u32> = (start as u32..).take(next.n).collect();
            let window = cache.window_pages(id)?.table();
            let (window_tables, state) = (cache.geometry().window.map(|_| window), cache.state(id)?);
            executor.run(&Batch {
                tokens: &again.tokens[start..start + next.n],
                positions: &positions,
                sequence: &zeros[..next.n],
                page_tables: &[cache.pages(id)?],
                window_tables: window_tables.as_slice(),
                states: state.as_slice(),
                outputs: &[],
            })?;
            cache.commit_again(id, again, next.n)?;
        }
        Ok(())
    }
}

fn forgotten() -> EngineError {
    EngineError::new(
        "kv.forgotten",
        "the graphics card failed, and took with it a context of which the older part had been forgotten",
        "Ask again: the conversation is read anew.",
    )
}

#[cfg(test)]
mod tests;
