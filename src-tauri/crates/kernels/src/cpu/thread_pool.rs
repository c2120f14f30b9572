//! A pool of worker threads that share one parallel region at a time.
//! The caller is worker 0. The others spin briefly between regions and then sleep, so that an idle pool costs
//! nothing.
//!
//! Each worker owns a range of consecutive tasks, the same in every region, and takes them in order, so that
//! it knows the next one. A worker that runs out steals from the ends of others' ranges.
//! On a busy machine the pool degrades gracefully: the caller never waits for a worker that has not begun,
//! only for tasks already taken. The result of a task must not depend on which worker runs it.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};

use crate::error::KernelError;

mod work_range;

use work_range::WorkRange;

/// Most threads of a pool: the join counter has 16 bits, and no desktop has more cores.
pub const MAX_THREADS: usize = 256;

/// Spin rounds of an idle worker before it yields: about 50 µs, longer than the serial work between two
/// parallel regions.
const SPIN_ROUNDS: u32 = 1500;
/// Yields before it sleeps. With more threads than cores, others get the core at once.
const YIELD_ROUNDS: u32 = 8;

/// A task as handed to a worker, which runs one at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AssignedTask {
    /// Index of the task.
    pub task: usize,
    /// The worker's next task, unless another worker steals it; `None` after the last.
    pub next: Option<usize>,
    /// Index of the worker.
    pub worker: usize,
}

type TaskFn<'a> = &'a (dyn Fn(AssignedTask) + Sync);

/// Epoch, whether workers may still join, and the number inside, in one word: epoch << 17 | open << 16 |
/// count.
const OPEN: u64 = 1 << 16;
const EPOCH: u64 = 1 << 17;
const COUNT: u64 = OPEN - 1;

struct PoolShared {
    state: AtomicU64,
    /// (n_threads): the tasks not yet taken.
    ranges: Vec<WorkRange>,
    /// Written by the caller only while no worker is inside and the state is not open.
    job: UnsafeCell<Option<PoolJob>>,
    /// Thread to wake when the last worker leaves.
    caller: Mutex<Option<Thread>>,
    caller_sleeps: AtomicBool,
    panic: Mutex<Option<String>>,
    stop: AtomicBool,
    /// Workers from this index on do not take part.
    limit: AtomicUsize,
}

#[derive(Clone, Copy)]
struct PoolJob {
    work: *const (dyn Fn(AssignedTask) + Sync),
}

// SAFETY: `job` is written only while no worker may read it (see `ThreadPool::run`), and it points to a
// `Sync` closure.
unsafe impl Sync for PoolShared {}
// SAFETY: as above; the pointer is used only between a worker's joining and leaving.
unsafe impl Send for PoolShared {}

/// Worker threads, which end when the pool is dropped.
pub struct ThreadPool {
    shared: Arc<PoolShared>,
    workers: Vec<JoinHandle<()>>,
}

impl ThreadPool {
    /// Starts a pool of `n_threads`, including the caller. Errors: more than `MAX_THREADS`, or threads that
    /// do not start.
    pub fn new(n_threads: usize) -> Result<Self, KernelError> {
        Self::with_affinity(n_threads, &[])
    }

    /// Like `new`, with worker i bound to processor `cpus[i]` if there is one and the system supports it. The
    /// caller is not bound, as its thread does not belong to the pool.
    pub fn with_affinity(n_threads: usize, cpus: &[usize]) -> Result<Self, KernelError> {
        if n_threads == 0 || n_threads > MAX_THREADS {
            let message = format!("a pool has 1 to {MAX_THREADS} threads");
            return Err(KernelError::Threads { index: n_threads, message });
        }
        let shared = Arc::new(PoolShared {
            state: AtomicU64::new(0),
            ranges: (0..n_threads).map(|_| WorkRange::default()).collect(),
            job: UnsafeCell::new(None),
            caller: Mutex::new(None),
            caller_sleeps: AtomicBool::new(false),
            panic: Mutex::new(None),
            stop: AtomicBool::new(false),
            limit: AtomicUsize::new(n_threads),
        });
        let mut pool = Self { shared, workers: Vec::with_capacity(n_threads - 1) };
        // A word of each thread.
        let (ready, all_ready) = std::sync::mpsc::sync_channel(n_threads);
        for index in 1..n_threads {
            let (shared, ready) = (pool.shared.clone(), ready.clone());
            let thread = std::thread::Builder::new().name(format!("kernel-{index}"));
            let cpu = cpus.get(index).copied();
            let worker = thread.spawn(move || {
                cpu.inspect(|cpu| bind_to_cpu(*cpu));
                // the receiver is gone if a later thread failed to start
                _ = ready.send(());
                drop(ready);
                work_until_stopped(&shared, index);
            });
            let worker = worker.map_err(|e| KernelError::Threads { index, message: e.to_string() })?;
            pool.workers.push(worker);
        }
        // Wait for all threads to run: a starting thread allocates, which must not happen during the first
        // tokens.
        drop(ready);
        all_ready.iter().for_each(drop);
        Ok(pool)
    }

    /// Returns the number of threads, including the caller. Worker indices are below it.
    pub fn n_threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Limits the threads that share the work from now on; the others sleep. Worker indices stay below
    /// `n_threads`.
    pub fn set_max_threads(&mut self, n_threads: usize) {
        // read after the state that opens a region, and written before it
        self.shared.limit.store(n_threads.max(1), Ordering::Relaxed);
    }

    /// Runs `work(task, worker)` once for every task below `n_tasks` and returns when all are done.
    /// Errors: the message of the first task that panicked. Tasks not yet taken are skipped then.
    pub fn run(&mut self, n_tasks: usize, work: &(dyn Fn(usize, usize) + Sync)) -> Result<(), String> {
        self.run_with_next(n_tasks, &|assigned| work(assigned.task, assigned.worker))
    }

    /// Like `run_with_next` on this thread alone, for work that is done before others would have woken.
    pub fn run_alone(&mut self, n_tasks: usize, work: TaskFn) -> Result<(), String> {
        run_alone(n_tasks, work)
    }

    /// Like `run`; each task also gets its worker's next task.
    pub fn run_with_next(&mut self, n_tasks: usize, work: TaskFn) -> Result<(), String> {
        assert!(u32::try_from(n_tasks).is_ok(), "tasks are counted in 32 bits");
        let shared = &*self.shared;
        let n_workers = self.workers.len().min(shared.limit.load(Ordering::Relaxed) - 1);
        if n_workers == 0 || n_tasks <= 1 {
            return run_alone(n_tasks, work);
        }
        // SAFETY: lengthens the lifetime in the type only; `run` does not return before every worker that
        // could use the pointer has left.
        let work: *const (dyn Fn(AssignedTask) + Sync) =
            unsafe { std::mem::transmute::<TaskFn<'_>, TaskFn<'static>>(work) };
        // SAFETY: the state is closed and no worker is inside (as `run` always leaves it), so no worker reads
        // `job`. `&mut self` excludes other callers.
        unsafe { *shared.job.get() = Some(PoolJob { work }) };
        let n_parts = (n_workers + 1).min(n_tasks);
        for (i, range) in shared.ranges.iter().enumerate() {
            let start = |part: usize| part.min(n_parts) * n_tasks / n_parts;
            range.set(start(i)..start(i + 1));
        }
        let epoch = shared.state.load(Ordering::Relaxed) & !(OPEN | COUNT);
        shared.state.store((epoch + EPOCH) | OPEN, Ordering::SeqCst);
        for worker in self.workers.iter().take(n_workers.min(n_tasks - 1)) {
            worker.thread().unpark();
        }
        run_tasks(shared, PoolJob { work }, 0);
        let before = shared.state.fetch_and(!OPEN, Ordering::SeqCst);
        if before & COUNT != 0 {
            wait_until_empty(shared);
        }
        match shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(message) => Err(message),
            None => Ok(()),
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // workers catch every panic of their tasks; there is nothing to report for any other
            let _ = worker.join();
        }
    }
}

fn run_alone(n_tasks: usize, work: TaskFn) -> Result<(), String> {
    let next = |task: usize| Some(task + 1).filter(|next| *next < n_tasks);
    let all = || (0..n_tasks).for_each(|task| work(AssignedTask { task, next: next(task), worker: 0 }));
    catch_unwind(AssertUnwindSafe(all)).map_err(|panic| panic_message(&*panic))
}

/// Runs tasks until none is left. After a panic no further task is taken by any worker.
fn run_tasks(shared: &PoolShared, job: PoolJob, worker: usize) {
    // SAFETY: the closure is alive between joining and leaving (for the caller: inside `run`).
    let work = unsafe { &*job.work };
    let all = || {
        let own = &shared.ranges[worker];
        while let Some((task, next)) = own.take_first() {
            work(AssignedTask { task, next, worker });
        }
        for i in 1..shared.ranges.len() {
            let other = &shared.ranges[(worker + i) % shared.ranges.len()];
            while let Some((task, next)) = other.take_last() {
                work(AssignedTask { task, next, worker });
            }
        }
    };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(all)) {
        shared.ranges.iter().for_each(|range| range.set(0..0));
        let mut slot = shared.panic.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert_with(|| panic_message(&*panic));
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".to_owned())
}

fn wait_until_empty(shared: &PoolShared) {
    let empty = || shared.state.load(Ordering::SeqCst) & COUNT == 0;
    for round in 0..SPIN_ROUNDS + YIELD_ROUNDS {
        if empty() {
            return;
        }
        wait_round(round);
    }
    *shared.caller.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::current());
    shared.caller_sleeps.store(true, Ordering::SeqCst);
    while !empty() {
        std::thread::park();
    }
    shared.caller_sleeps.store(false, Ordering::SeqCst);
}

/// Binds this thread to a processor. Does nothing if it is absent or not permitted.
#[cfg(target_os = "linux")]
fn bind_to_cpu(cpu: usize) {
    // SAFETY: an all-zero set is an empty set, and the call reads no more than its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if cpu < 8 * size_of::<libc::cpu_set_t>() {
            libc::CPU_SET(cpu, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn bind_to_cpu(_cpu: usize) {}

/// Waits one round: spins first, yields the time slice later.
fn wait_round(round: u32) {
    if round < SPIN_ROUNDS {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

fn work_until_stopped(shared: &PoolShared, index: usize) {
    let mut seen = 0;
    let mut idle = 0;
    while !shared.stop.load(Ordering::SeqCst) {
        let state = shared.state.load(Ordering::SeqCst);
        let epoch = state & !(OPEN | COUNT);
        if epoch == seen || state & OPEN == 0 || index >= shared.limit.load(Ordering::Relaxed) {
            if idle < SPIN_ROUNDS + YIELD_ROUNDS {
                wait_round(idle);
                idle += 1;
            } else {
                std::thread::park();
            }
            continue;
        }
        idle = 0;
        if shared.state.compare_exchange(state, state + 1, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            continue;
        }
        seen = epoch;
        // SAFETY: joined while the state was open, so the caller waits for this worker and does not touch
        // `job`.
        let job = unsafe { *shared.job.get() };
        run_tasks(shared, job.expect("an open state has a job"), index);
        let before = shared.state.fetch_sub(1, Ordering::SeqCst);
        if before & COUNT == 1 && before & OPEN == 0 && shared.caller_sleeps.load(Ordering::SeqCst) {
            let caller = shared.caller.lock().unwrap_or_else(PoisonError::into_inner).clone();
            caller.inspect(Thread::unpark);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

    use super::ThreadPool;

    #[test]
    fn every_task_runs_once() {
        for n_threads in [1, 2, 3, 8] {
            let mut pool = ThreadPool::new(n_threads).unwrap();
            for n_tasks in [0, 1, 2, 7, 100, 1000] {
                let counts: Vec<AtomicU32> = (0..n_tasks).map(|_| AtomicU32::new(0)).collect();
                pool.run(n_tasks, &|task, worker| {
                    assert!(worker < n_threads);
                    counts[task].fetch_add(1, Ordering::Relaxed);
                })
                .unwrap();
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1), "{n_threads} {n_tasks}");
            }
        }
    }

    #[test]
    fn a_worker_knows_its_next_task() {
        for n_threads in [1, 2, 3] {
            let mut pool = ThreadPool::new(n_threads).unwrap();
            for n_tasks in [1, 2, 7, 100] {
                let turns = std::sync::Mutex::new(Vec::new());
                pool.run_with_next(n_tasks, &|assigned| turns.lock().unwrap().push(assigned)).unwrap();
                let turns = turns.into_inner().unwrap();
                for assigned in &turns {
                    let next = assigned.next.unwrap_or(assigned.task);
                    assert!(next < n_tasks && next.abs_diff(assigned.task) <= 1, "{assigned:?}");
                }
                if n_threads == 1 {
                    let order: Vec<_> = turns.iter().map(|assigned| (assigned.task, assigned.next)).collect();
                    let all = (0..n_tasks).map(|task| (task, Some(task + 1).filter(|next| *next < n_tasks)));
                    assert_eq!(order, all.collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn many_short_regions_on_more_threads_than_cores() {
        let mut pool = ThreadPool::new(16).unwrap();
        let sum = AtomicUsize::new(0);
        for _ in 0..20_000 {
            pool.run(16, &|task, _| {
                sum.fetch_add(task, Ordering::Relaxed);
            })
            .unwrap();
        }
        assert_eq!(sum.load(Ordering::Relaxed), 20_000 * 120);
    }

    #[test]
    fn a_panic_is_an_error_and_the_pool_stays_usable() {
        for n_threads in [1, 4] {
            let mut pool = ThreadPool::new(n_threads).unwrap();
            let result = pool.run(64, &|task, _| assert!(task != 33, "task {task} fails"));
            assert!(result.unwrap_err().contains("task 33 fails"));
            pool.run(64, &|_, _| ()).unwrap();
        }
    }

    #[test]
    fn the_thread_limit_holds() {
        let mut pool = ThreadPool::new(4).unwrap();
        for limit in [1, 2, 3, 4, 2, 9, 1] {
            pool.set_max_threads(limit);
            for _ in 0..200 {
                let ran = AtomicUsize::new(0);
                pool.run(64, &|_, worker| {
                    assert!(worker < limit, "worker {worker} of {limit}");
                    ran.fetch_add(1, Ordering::Relaxed);
                })
                .unwrap();
                assert_eq!(ran.load(Ordering::Relaxed), 64);
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn workers_stay_on_their_processor() {
        // SAFETY: only queries the processor of this thread.
        let current_cpu = || unsafe { libc::sched_getcpu() };
        let cpu = current_cpu() as usize; // one that we may use
        let mut pool = ThreadPool::with_affinity(3, &[cpu, cpu, usize::MAX]).unwrap();
        for _ in 0..200 {
            let places = std::sync::Mutex::new(Vec::new());
            pool.run(30, &|_, worker| places.lock().unwrap().push((worker, current_cpu()))).unwrap();
            let places = places.into_inner().unwrap();
            assert!(places.iter().all(|(worker, at)| *worker != 1 || *at == cpu as i32), "{places:?}");
        }
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(ThreadPool::new(0).is_err());
        assert!(ThreadPool::new(100_000).is_err());
    }
}
