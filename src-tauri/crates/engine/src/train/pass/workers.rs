//! Divides work among the threads of a pool, in safe code: each task gets its own chunk of the output.

use std::sync::{Mutex, PoisonError};

use kernels::KernelError;
use kernels::cpu::thread_pool::ThreadPool;

/// Work on a pair of chunks: `(index, a, b)`.
type PairWork<'a, A, B> = dyn Fn(usize, &mut [A], &mut [B]) + Sync + 'a;

/// A pool of threads.
pub(super) struct Workers {
    pool: ThreadPool,
}

impl Workers {
    /// Starts the threads. Errors: threads that do not start.
    pub fn new(n_threads: usize) -> Result<Self, KernelError> {
        Ok(Self { pool: ThreadPool::new(n_threads)? })
    }

    /// Returns the number of threads.
    pub fn n_threads(&self) -> usize {
        self.pool.n_threads()
    }

    /// Calls `f(i, chunk)` for every chunk of `len` elements. Errors: a panic of `f`.
    pub fn chunks<T: Send>(
        &mut self,
        out: &mut [T],
        len: usize,
        f: &(dyn Fn(usize, &mut [T]) + Sync),
    ) -> Result<(), KernelError> {
        let chunks: Vec<_> = out.chunks_mut(len.max(1)).map(Mutex::new).collect();
        self.run(chunks.len(), &|i| f(i, &mut chunks[i].lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Calls `f(i, a, b)` for every pair of chunks of two outputs. Errors: a panic of `f`.
    pub fn chunk_pairs<A: Send, B: Send>(
        &mut self,
        (a, a_len): (&mut [A], usize),
        (b, b_len): (&mut [B], usize),
        f: &PairWork<'_, A, B>,
    ) -> Result<(), KernelError> {
        let pairs = a.chunks_mut(a_len.max(1)).zip(b.chunks_mut(b_len.max(1)));
        let pairs: Vec<_> = pairs.map(Mutex::new).collect();
        self.run(pairs.len(), &|i| {
            let (a, b) = &mut *pairs[i].lock().unwrap_or_else(PoisonError::into_inner);
            f(i, a, b);
        })
    }

    /// Returns `f(i)` for every i below `n`, in order. Errors: a panic of `f`.
    pub fn map<T: Send>(&mut self, n: usize, f: &(dyn Fn(usize) -> T + Sync)) -> Result<Vec<T>, KernelError> {
        let mut all: Vec<Option<T>> = (0..n).map(|_| None).collect();
        self.chunks(&mut all, 1, &|i, slot| slot[0] = Some(f(i)))?;
        Ok(all.into_iter().flatten().collect())
    }

    fn run(&mut self, n: usize, f: &(dyn Fn(usize) + Sync)) -> Result<(), KernelError> {
        self.pool
            .run(n, &|task, _| f(task))
            .map_err(|message| KernelError::Panicked { node: "training".to_owned(), message })
    }
}
