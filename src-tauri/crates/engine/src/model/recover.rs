//! What follows when a graphics card fails while it works: the weights go to a new device, or to the CPU, all that live
//! sequences held is read again there, and the batch that failed runs again. Answers go on where they were.

use kernels::{Batch, NO_PAGE};

use super::forget::STAND_IN;
use super::load::Moved;
use super::{Devices, Model};
use crate::error::{EngineError, Result};
use crate::kv::cache::SequenceId;

/// After so many faults of one model the CPU computes as long as it is loaded.
const MOST_FAULTS: usize = 2;

/// Faults after which a card may work once it is opened anew.
const PASSING: [&str; 2] = ["kernels.gpu_lost", "kernels.gpu_time_out"];

impl Model {
    /// Moves the model away from a card that failed. Afterwards every sequence holds what it held before the batch.
    ///
    /// Errors: what it holds can't be read again, as it isn't all there any more (windows, recurrent states, texts
    /// forgotten in part, pages that have aged, which only hold what was computed before): then no sequence survives,
    /// and `error` is returned. No memory: what that says.
    pub(super) fn recover(&mut self, error: EngineError) -> Result<()> {
        self.source.n_faults += 1;
        let may_pass = PASSING.contains(&error.code()) && self.source.n_faults < MOST_FAULTS;
        let devices = if may_pass { self.source.options.devices.clone() } else { Devices::Cpu };
        match self.move_to(devices) {
            Err(again) if again.is_of_gpu() => self.move_to(Devices::Cpu)?,
            moved => moved?,
        }
        if !self.read_again()? {
            self.cache.clear();
            return Err(error);
        }
        self.source.fault = Some(error);
        Ok(())
    }

    /// What went wrong with the card since this was last asked, though answers went on.
    pub fn take_fault(&mut self) -> Option<EngineError> {
        self.source.fault.take()
    }

    /// The same weights on other devices; sequences keep their places, in which nothing stands.
    fn move_to(&mut self, devices: Devices) -> Result<()> {
        self.source.options.devices = devices;
        let Moved { executor, identity } = self.source.executor(
            &self.spec,
            self.executor.capacity(),
            self.info.n_weight_bytes,
            &self.info.fingerprint,
        )?;
        self.info.devices = executor.describe();
        (self.executor, self.identity) = (executor, identity);
        Ok(())
    }

    /// Reads the tokens of all sequences into the places that they have. False: not all of it is there.
    fn read_again(&mut self) -> Result<bool> {
        let ids = self.cache.ids();
        for &id in &ids {
            let window = self.cache.window_pages(id)?.table();
            let is_whole = self.cache.tokens(id)?.iter().all(|token| *token < STAND_IN)
                && window.iter().all(|page| *page != NO_PAGE)
                && self.n_aged(id)? == 0
                && self.cache.state(id)?.is_none();
            if !is_whole {
                return Ok(false);
            }
        }
        for id in ids {
            self.read_sequence(id)?;
        }
        Ok(true)
    }

    fn read_sequence(&mut self, id: SequenceId) -> Result<()> {
        let Self { cache, executor, .. } = self;
        let (tokens, table) = (cache.tokens(id)?, cache.pages(id)?);
        let window = cache.window_pages(id)?.table();
        let window_tables = cache.geometry().window.map(|_| window);
        let most = executor.capacity().max_rows;
        let (zeros, mut start) = (vec![0; most], 0u32);
        for tokens in tokens.chunks(most) {
            let positions: Vec<u32> = (start..).take(tokens.len()).collect();
            start += tokens.len() as u32;
            executor.run(&Batch {
                tokens,
                positions: &positions,
                sequence: &zeros[..tokens.len()],
                page_tables: &[table],
                window_tables: window_tables.as_slice(),
                states: &[],
                outputs: &[],
            })?;
        }
        Ok(())
    }
}
