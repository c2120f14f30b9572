//! Batches of sequences through the executor: cut into runs, each with its rows, pages and states.

use kernels::{Batch, Capacity, Executor, Interrupt, Likely, Observer, Retention, Returned};

use super::{Chunk, Logits, MAX_BATCH_SEQUENCES, Model, Wanted};
use crate::error::{EngineError, Result, guarded};
use crate::kv::cache::{Copies, SequenceId, Turning};
use crate::tokenizer::Tokenizer;

impl Model {
    /// Runs the chunks: their tokens continue their sequences, and the wanted logits come back.
    ///
    /// Errors: unknown or repeated sequence, unknown token, no room (`request.context_full`): nothing has changed. A
    /// failed kernel, a panic, or a run that was given up: every sequence holds what it held before, or of it as much as `truncate` can go back to.
    pub fn forward(&mut self, batch: &[Chunk<'_>]) -> Result<Logits<'_>> {
        self.answers()?;
        Ok(self.forward_all(batch, Returned::Rows, None)?.0)
    }

    /// As `forward`, telling `observer` of each step after it ran.
    pub fn forward_observed(&mut self, batch: &[Chunk<'_>], observer: Observer) -> Result<Logits<'_>> {
        self.answers()?;
        Ok(self.forward_all(batch, Returned::Rows, Some(observer))?.0)
    }

    /// From here on observers are told of steps by the clock of the device, where it has one. Error: no memory.
    pub fn time_steps(&mut self, wanted: bool) -> Result<()> {
        Ok(self.executor.time_steps(wanted)?)
    }

    /// As `forward`, to draw tokens from: of each wanted row only the `n_likeliest` come back, or all. With the
    /// tokenizer beside the borrowed logits.
    pub(crate) fn forward_to_draw(
        &mut self,
        batch: &[Chunk<'_>],
        n_likeliest: Option<usize>,
    ) -> Result<(Logits<'_>, Option<&Tokenizer>)> {
        self.answers()?;
        self.forward_all(batch, n_likeliest.map_or(Returned::Rows, Returned::Likeliest), None)
    }

    /// As `forward`, whatever the model's output is.
    pub(super) fn forward_all(
        &mut self,
        batch: &[Chunk<'_>],
        returned: Returned,
        mut observer: Option<Observer>,
    ) -> Result<(Logits<'_>, Option<&Tokenizer>)> {
        self.check(batch)?;
        let mut n_before = [0; MAX_BATCH_SEQUENCES];
        for (n_held, chunk) in n_before.iter_mut().zip(batch) {
            *n_held = self.cache.tokens(chunk.seq)?.len();
        }
        let ran = loop {
            self.executor.bring_back(returned);
            let error = match guarded(|| self.run_all(batch, &mut observer)) {
                Ok(ran) => break ran,
                Err(error) => error,
            };
            if error.is_of_gpu() {
                let back_to: Vec<(SequenceId, usize)> =
                    batch.iter().map(|chunk| chunk.seq).zip(n_before).collect();
                // ends on the CPU at last, which has no such errors
                self.recover(error, &back_to)?;
                continue;
            }
            for (index, (chunk, &n_held)) in batch.iter().zip(&n_before).enumerate() {
                match self.rows.has(index) {
                    true => self.cache.revert(chunk.seq, n_held)?,
                    false => self.cache.truncate(chunk.seq, n_held)?,
                };
            }
            return Err(error);
        };
        if let Some(settling) = &mut self.settling {
            settling.begin();
        }
        let (data, likeliest): (&[f32], &[Likely]) = match ran {
            Ran::Nothing => (&[], &[]),
            Ran::Once => (self.executor.output(), self.executor.likeliest()),
            Ran::Often => (&self.gathered.rows, &self.gathered.likeliest),
        };
        let width = self.spec.output_width();
        let n_likeliest = match returned {
            Returned::Rows => None,
            Returned::Likeliest(n) => Some(n.min(width)),
        };
        Ok((Logits { data, width, likeliest, n_likeliest }, self.tokenizer.as_ref()))
    }

    fn check(&self, batch: &[Chunk<'_>]) -> Result<()> {
        if batch.len() > MAX_BATCH_SEQUENCES {
            return Err(EngineError::new(
                "request.batch_too_large",
                format!("{} sequences in one batch, at most {MAX_BATCH_SEQUENCES} fit", batch.len()),
                "Send fewer at once.",
            ));
        }
        for (i, chunk) in batch.iter().enumerate() {
            self.cache.check_room(chunk.seq, chunk.tokens.len())?;
            self.check_tokens(chunk.tokens)?;
            if batch[..i].iter().any(|other| other.seq == chunk.seq) {
                return Err(EngineError::new(
                    "request.sequence_repeated",
                    format!("sequence {} appears twice in one batch", chunk.seq.0),
                    "Join its tokens into one chunk.",
                ));
            }
        }
        Ok(())
    }

    /// Cuts the batch into runs of the executor.
    fn run_all(&mut self, batch: &[Chunk<'_>], observer: &mut Option<Observer>) -> Result<Ran> {
        self.rows.clear();
        self.gathered.rows.clear();
        self.gathered.likeliest.clear();
        for chunk in batch {
            self.read_again(chunk.seq)?;
        }
        let capacity = self.executor.capacity();
        let mut ran = Ran::Nothing;
        for (index, chunk) in batch.iter().enumerate() {
            let n_held = self.cache.tokens(chunk.seq)?.len();
            for (i, &token) in chunk.tokens.iter().enumerate() {
                let wanted = match chunk.logits {
                    Wanted::None => false,
                    Wanted::Last => i + 1 == chunk.tokens.len(),
                    Wanted::Tail(n) => i + n >= chunk.tokens.len(),
                    Wanted::All => true,
                };
                // what ages does so between runs: rows on either side see other pages
                let ages = self.rows.has(index) && self.cache.ages_at(n_held + i);
                if ages || self.rows.is_full(capacity, wanted) {
                    self.run(batch, observer)?;
                    self.gather();
                    ran = Ran::Often;
                }
                self.rows.push(token, n_held + i, index, wanted);
            }
        }
        if self.rows.tokens.is_empty() {
            return Ok(ran);
        }
        self.run(batch, observer)?;
        match ran {
            Ran::Nothing | Ran::Once => Ok(Ran::Once),
            Ran::Often => {
                self.gather();
                Ok(Ran::Often)
            }
        }
    }

    fn gather(&mut self) {
        self.gathered.rows.extend_from_slice(self.executor.output());
        self.gathered.likeliest.extend_from_slice(self.executor.likeliest());
    }

    /// The rows that have gathered through the executor. Afterwards their sequences hold them, and there are none.
    fn run(&mut self, batch: &[Chunk<'_>], observer: &mut Option<Observer>) -> Result<()> {
        let Self { cache, executor, rows, .. } = self;
        for (index, n) in rows.members() {
            let aged = cache.age_due(batch[index].seq)?;
            turn(executor, &aged)?;
            make_copies(executor, &cache.reserve(batch[index].seq, n)?)?;
        }
        let mut tables: [&[u32]; MAX_BATCH_SEQUENCES] = [&[]; MAX_BATCH_SEQUENCES];
        let mut window_tables: [&[u32]; MAX_BATCH_SEQUENCES] = [&[]; MAX_BATCH_SEQUENCES];
        let mut states = [0; MAX_BATCH_SEQUENCES];
        let (mut n_sequences, mut n_states) = (0, 0);
        for (at, (index, _)) in rows.members().enumerate() {
            let seq = batch[index].seq;
            tables[at] = cache.pages(seq)?;
            window_tables[at] = cache.window_pages(seq)?.table();
            n_sequences = at + 1;
            if let Some(slot) = cache.state(seq)? {
                states[at] = slot;
                n_states = at + 1;
            }
        }
        let n_windows = cache.geometry().window.map_or(0, |_| n_sequences);
        let batch_of_rows = Batch {
            tokens: &rows.tokens,
            positions: &rows.positions,
            sequence: &rows.sequence,
            page_tables: &tables[..n_sequences],
            window_tables: &window_tables[..n_windows],
            states: &states[..n_states],
            outputs: &rows.outputs,
        };
        // spelled out: a reborrow of an Option<&mut dyn> with a shorter life
        let observer: Option<Observer> = match observer {
            Some(observe) => Some(&mut **observe),
            None => None,
        };
        executor.run_observed(&batch_of_rows, observer)?;
        #[cfg(test)]
        if let Some((token, poison)) = rows.poison
            && rows.tokens.contains(&token)
        {
            match poison {
                Poison::Fails => return Err(EngineError::new("kernels.panicked", "a poisoned token", "")),
                Poison::Panics => panic!("token {token} is poisoned"),
            }
        }
        let mut n_done = 0;
        for (index, n) in rows.members() {
            cache.commit(batch[index].seq, &rows.tokens[n_done..n_done + n])?;
            n_done += n;
        }
        rows.clear();
        Ok(())
    }
}

/// Fills the pages that have aged.
pub(super) fn turn(executor: &mut Executor, aged: &Turning) -> Result<()> {
    for &(from, to) in &aged.to_fill {
        executor.kv_age_page(from, to)?;
    }
    Ok(())
}

/// Before tokens are written: what others hold too is copied.
pub(super) fn make_copies(executor: &mut Executor, copies: &Copies) -> Result<()> {
    let Copies { page, window_page, state } = *copies;
    if let Some((from, to)) = page {
        executor.kv_copy_page(Retention::All, from, to)?;
    }
    if let Some((from, to)) = window_page {
        executor.kv_copy_page(Retention::Window, from, to)?;
    }
    if let Some((from, to)) = state {
        executor.copy_state(from, to)?;
    }
    Ok(())
}

/// How a batch went through the executor, and with that where its logits are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ran {
    /// There were no tokens.
    Nothing,
    /// The logits are the executor's output.
    Once,
    /// The logits of all runs were gathered.
    Often,
}

/// Logits of several runs, or the likeliest of them.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// (rows, width)
    rows: Vec<f32>,
    /// (rows, as many as were asked for)
    likeliest: Vec<Likely>,
}

/// The rows of one run, in arrays that are filled again and again.
#[derive(Debug, Default)]
pub(super) struct Rows {
    tokens: Vec<u32>,
    positions: Vec<u32>,
    /// index into `members`
    sequence: Vec<u32>,
    outputs: Vec<u32>,
    /// chunks that have rows here: their place in the batch, and how many
    members: Vec<(usize, usize)>,
    /// what a run may be given up by
    pub(super) interrupt: Interrupt,
    /// a batch that has it fails
    #[cfg(test)]
    pub(super) poison: Option<(u32, Poison)>,
}

/// How a batch with the poisoned token fails.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(crate) enum Poison {
    Fails,
    Panics,
}

impl Rows {
    fn clear(&mut self) {
        let Self { tokens, positions, sequence, outputs, members, .. } = self;
        for rows in [tokens, positions, sequence, outputs] {
            rows.clear();
        }
        members.clear();
    }

    fn is_full(&self, capacity: Capacity, wanted: bool) -> bool {
        self.tokens.len() == capacity.max_rows || wanted && self.outputs.len() == capacity.max_outputs
    }

    fn members(&self) -> impl Iterator<Item = (usize, usize)> {
        self.members.iter().copied()
    }

    fn has(&self, index: usize) -> bool {
        self.members.iter().any(|(member, _)| *member == index)
    }

    /// Rows of a chunk come together.
    fn push(&mut self, token: u32, position: usize, index: usize, wanted: bool) {
        match self.members.last_mut() {
            Some((last, n)) if *last == index => *n += 1,
            Some(_) | None => self.members.push((index, 1)),
        }
        if wanted {
            self.outputs.push(self.tokens.len() as u32);
        }
        self.tokens.push(token);
        self.positions.push(u32::try_from(position).expect("the context is shorter than 2^32 tokens"));
        self.sequence.push(self.members.len() as u32 - 1);
    }
}
