//! One copy of a model's weights with the pages of the sequences that are at home there, and the rows that go through it
//! next. Where there are several, they run at the same time, each on a thread of its own.

use kernels::{Batch, Capacity, Executor, Observer, TopKEntry};

use super::{Chunk, MAX_BATCH_SEQUENCES};
use crate::error::{EngineError, Result, guarded};
use crate::kv::cache::KvCache;

/// See the module.
pub(crate) struct Replica {
    pub executor: Executor,
    pub(super) rows: RowBatch,
    /// its rows have yet to run
    is_due: bool,
    /// why they didn't
    pub(super) failed: Option<EngineError>,
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

/// What went wrong, and on which replica.
#[derive(Debug)]
pub(crate) struct ReplicaFault {
    pub at: usize,
    pub error: EngineError,
}

impl Replica {
    pub fn new(executor: Executor) -> Self {
        Self {
            executor,
            rows: RowBatch::default(),
            is_due: false,
            failed: None,
            #[cfg(test)]
            poison: None,
        }
    }

    /// The rows that have gathered; `failed` says whether they did.
    fn run(&mut self, cache: &KvCache, batch: &[Chunk<'_>], observer: Option<Observer>) {
        self.is_due = false;
        self.failed = guarded(|| self.run_rows(cache, batch, observer)).err();
    }

    fn run_rows(&mut self, cache: &KvCache, batch: &[Chunk<'_>], observer: Option<Observer>) -> Result<()> {
        let Self { executor, rows, .. } = self;
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
        executor.run_observed(&batch_of_rows, observer)?;
        #[cfg(test)]
        if let Some((token, poison)) = self.poison
            && rows.tokens.contains(&token)
        {
            match poison {
                Poison::Fails => return Err(EngineError::new("kernels.panicked", "a poisoned token", "")),
                Poison::Panics => panic!("token {token} is poisoned"),
            }
        }
        Ok(())
    }
}

/// Runs the rows of all replicas, of which `n_runs` have any. One after the other where somebody observes, or the system
/// has no thread.
pub(super) fn run(
    replicas: &mut [Replica],
    (n_runs, cache): (usize, &KvCache),
    batch: &[Chunk<'_>],
    observer: &mut Option<Observer>,
) {
    for replica in &mut *replicas {
        replica.is_due = !replica.rows.tokens.is_empty();
    }
    if n_runs > 1 && observer.is_none() {
        std::thread::scope(|scope| {
            let mut due = replicas.iter_mut().filter(|replica| replica.is_due);
            let own = due.next();
            for replica in due {
                let run = move || replica.run(cache, batch, None);
                // one without a thread stays due
                _ = std::thread::Builder::new().name("replica".into()).spawn_scoped(scope, run);
            }
            own.into_iter().for_each(|replica| replica.run(cache, batch, None));
        });
    }
    for replica in replicas.iter_mut().filter(|replica| replica.is_due) {
        // spelled out: a reborrow of an Option<&mut dyn> with a shorter life
        let observer: Option<Observer> = match observer {
            Some(observe) => Some(&mut **observe),
            None => None,
        };
        replica.run(cache, batch, observer);
    }
}

/// The rows of one run, in arrays that are filled again and again.
#[derive(Debug, Default)]
pub(super) struct RowBatch {
    pub tokens: Vec<u32>,
    positions: Vec<u32>,
    /// index into `members`
    sequence: Vec<u32>,
    outputs: Vec<u32>,
    /// where the outputs stand among all that the batch wants
    places: Vec<usize>,
    /// chunks that have rows here: their place in the batch, and how many
    members: Vec<(usize, usize)>,
}

impl RowBatch {
    pub fn clear(&mut self) {
        let Self { tokens, positions, sequence, outputs, places, members } = self;
        for rows in [tokens, positions, sequence, outputs] {
            rows.clear();
        }
        places.clear();
        members.clear();
    }

    pub fn is_full(&self, capacity: Capacity, wanted: bool) -> bool {
        self.tokens.len() == capacity.max_rows || wanted && self.outputs.len() == capacity.max_outputs
    }

    pub fn members(&self) -> impl Iterator<Item = (usize, usize)> {
        self.members.iter().copied()
    }

    pub fn has(&self, index: usize) -> bool {
        self.members.iter().any(|(member, _)| *member == index)
    }

    /// RowBatch of a chunk come together. `place`: of its logits, where they are wanted.
    pub fn push(&mut self, token: u32, position: usize, index: usize, place: Option<usize>) {
        match self.members.last_mut() {
            Some((last, n)) if *last == index => *n += 1,
            Some(_) | None => self.members.push((index, 1)),
        }
        if let Some(place) = place {
            self.outputs.push(self.tokens.len() as u32);
            self.places.push(place);
        }
        self.tokens.push(token);
        self.positions.push(u32::try_from(position).expect("the context is shorter than 2^32 tokens"));
        self.sequence.push(self.members.len() as u32 - 1);
    }
}

/// Logits of several runs, or the likeliest of them.
#[derive(Debug, Default)]
pub(super) struct GatheredLogits {
    /// (rows, width)
    pub rows: Vec<f32>,
    /// (rows, as many as were asked for)
    pub likeliest: Vec<TopKEntry>,
}

impl GatheredLogits {
    pub fn clear(&mut self) {
        self.rows.clear();
        self.likeliest.clear();
    }

    /// What a run has left, of a batch that wants `n_rows` in all.
    pub fn take(&mut self, Replica { executor, rows, .. }: &Replica, n_rows: usize) {
        place(&mut self.rows, executor.output(), &rows.places, n_rows);
        place(&mut self.likeliest, executor.top_k(), &rows.places, n_rows);
    }
}

/// RowBatch (places, width) into all of them (n_rows, width).
fn place<T: Copy>(all: &mut Vec<T>, rows: &[T], places: &[usize], n_rows: usize) {
    let Some(&first) = rows.first() else { return };
    let width = rows.len() / places.len();
    all.resize(n_rows * width, first);
    for (row, &at) in rows.chunks_exact(width).zip(places) {
        all[at * width..(at + 1) * width].copy_from_slice(row);
    }
}
