//! One copy of a model's weights with the pages of its sequences, and the rows of its next run.
//!
//! Several replicas run at the same time, each on its own thread.

use kernels::{Batch, Capacity, Executor, GivenRows, N_COORDINATES, Observer, TopKEntry};

use super::{Chunk, MAX_BATCH_SEQUENCES};
use crate::error::{EngineError, Result, guarded};
use crate::kv::cache::KvCache;
use crate::vision::is_image_token;

/// Executor and next run of one copy of the weights.
pub(crate) struct Replica {
    pub executor: Executor,
    pub(super) rows: RowBatch,
    /// Whether its rows have yet to run.
    is_due: bool,
    /// Why they failed.
    pub(super) failed: Option<EngineError>,
    /// Makes batches with this token fail.
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

/// An error and the replica it happened on.
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

    /// Runs the collected rows. The outcome is in `failed`.
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
            tokens: &rows.lookups,
            positions: &rows.positions,
            kinds: &rows.kinds,
            given: GivenRows {
                rows: &rows.given_rows,
                values: &rows.given,
                image_ends: &rows.image_ends,
                coordinates: &rows.coordinates,
            },
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

/// Runs the rows of all replicas, `n_runs` of which have any. Runs them one after another when they are observed, or
/// without threads.
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
                // Without a thread it stays due.
                _ = std::thread::Builder::new().name("replica".into()).spawn_scoped(scope, run);
            }
            own.into_iter().for_each(|replica| replica.run(cache, batch, None));
        });
    }
    for replica in replicas.iter_mut().filter(|replica| replica.is_due) {
        // Spelled out: reborrows an Option<&mut dyn> for a shorter lifetime.
        let observer: Option<Observer> = match observer {
            Some(observe) => Some(&mut **observe),
            None => None,
        };
        replica.run(cache, batch, observer);
    }
}

/// Rows of one run, in reused arrays.
#[derive(Debug, Default)]
pub(super) struct RowBatch {
    pub tokens: Vec<u32>,
    /// Token whose embedding each row looks up: of images, the padding's.
    lookups: Vec<u32>,
    pub positions: Vec<u32>,
    /// Token type of each row.
    kinds: Vec<u32>,
    /// Rows of images.
    given_rows: Vec<u32>,
    /// Their embeddings. (given rows, d_model)
    given: Vec<f32>,
    /// Position after the image that each row is in, or 0.
    image_ends: Vec<u32>,
    /// Time, row and column of each row; empty where positions are those of a text.
    pub coordinates: Vec<[u32; N_COORDINATES]>,
    /// Index into `members`.
    sequence: Vec<u32>,
    outputs: Vec<u32>,
    /// Rows of logits in the batch that the outputs belong to.
    destinations: Vec<usize>,
    /// Chunks with rows here: their index in the batch, and how many rows.
    members: Vec<(usize, usize)>,
}

impl RowBatch {
    pub fn clear(&mut self) {
        let Self { tokens, lookups, positions, kinds, sequence, outputs, .. } = self;
        for rows in [tokens, lookups, positions, kinds, sequence, outputs] {
            rows.clear();
        }
        let Self { given_rows, given, image_ends, coordinates, destinations, members, .. } = self;
        coordinates.clear();
        given_rows.clear();
        given.clear();
        image_ends.clear();
        destinations.clear();
        members.clear();
    }

    /// Returns whether there is no space for `n` more rows.
    pub fn is_full(&self, capacity: Capacity, n: usize, has_output: bool) -> bool {
        self.tokens.len() + n > capacity.max_rows || has_output && self.outputs.len() == capacity.max_outputs
    }

    pub fn members(&self) -> impl Iterator<Item = (usize, usize)> {
        self.members.iter().copied()
    }

    pub fn has(&self, index: usize) -> bool {
        self.members.iter().any(|(member, _)| *member == index)
    }

    /// Adds a row. The rows of a chunk are consecutive. `output` is the row of its logits, if selected.
    pub fn push(&mut self, (token, kind): (u32, u32), position: usize, index: usize, output: Option<usize>) {
        match self.members.last_mut() {
            Some((last, n)) if *last == index => *n += 1,
            Some(_) | None => self.members.push((index, 1)),
        }
        if let Some(output) = output {
            self.outputs.push(self.tokens.len() as u32);
            self.destinations.push(output);
        }
        self.tokens.push(token);
        self.lookups.push(if is_image_token(token) { PADDING_TOKEN } else { token });
        self.image_ends.push(0);
        self.kinds.push(kind);
        self.positions.push(u32::try_from(position).expect("the context is shorter than 2^32 tokens"));
        self.sequence.push(self.members.len() as u32 - 1);
    }

    /// Gives the last row an embedding of an image. The row sees the image's rows before position `end`, also later ones;
    /// 0: none that are later. Where layers have embeddings of their own, it has those of `padding`.
    pub fn give(&mut self, embedding: &[f32], end: usize, padding: u32) {
        self.lookups.last_mut().into_iter().for_each(|last| *last = padding);
        self.given_rows.push(self.tokens.len() as u32 - 1);
        self.given.extend_from_slice(embedding);
        let end = u32::try_from(end).expect("the context is shorter than 2^32 tokens");
        self.image_ends.last_mut().into_iter().for_each(|last| *last = end);
    }
}

/// The token that rows of images look up, where a model needs one beside their embedding.
const PADDING_TOKEN: u32 = 0;

/// Logits of several runs, or their most likely tokens.
#[derive(Debug, Default)]
pub(super) struct GatheredLogits {
    /// (rows, width)
    pub rows: Vec<f32>,
    /// (rows, n_top)
    pub likeliest: Vec<TopKEntry>,
    /// (rows, d_model), where the model has a draft block
    pub hidden: Vec<f32>,
}

impl GatheredLogits {
    pub fn clear(&mut self) {
        self.rows.clear();
        self.likeliest.clear();
        self.hidden.clear();
    }

    /// Takes the output of a run for a batch with `n_rows` selected rows.
    pub fn take(&mut self, Replica { executor, rows, .. }: &Replica, n_rows: usize) {
        scatter(&mut self.rows, executor.output(), &rows.destinations, n_rows);
        scatter(&mut self.likeliest, executor.top_k(), &rows.destinations, n_rows);
        let hidden = executor.hidden(rows.destinations.len());
        scatter(&mut self.hidden, hidden, &rows.destinations, n_rows);
    }
}

/// Scatters rows (destinations, width) into all of them (n_rows, width).
fn scatter<T: Copy>(all: &mut Vec<T>, rows: &[T], destinations: &[usize], n_rows: usize) {
    let Some(&first) = rows.first() else { return };
    let width = rows.len() / destinations.len();
    all.resize(n_rows * width, first);
    for (row, &at) in rows.chunks_exact(width).zip(destinations) {
        all[at * width..(at + 1) * width].copy_from_slice(row);
    }
}
