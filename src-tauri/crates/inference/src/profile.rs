//! Profiles a model's runs: time, bytes and arithmetic of each operation. Layers that run the same
//! step are combined; prompts and answers are kept apart. The clock is read between steps. A GPU
//! uses its own clock, and nothing waits between steps.

mod trace;

use std::collections::HashMap;
use std::time::Duration;

use io::Clock;
use kernels::{StepCost, StepProfile};

pub use trace::{Line, Trace};

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// a prompt, or several
    Reading,
    /// one token, or a few, of each answer
    Writing,
}

impl Phase {
    pub const ALL: [Self; 2] = [Self::Reading, Self::Writing];
}

/// Steps that do the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// "matmul"
    pub op: &'static str,
    /// "attention.q+k+v Q4_K 2048→3072"
    pub what: String,
    pub line: Line,
    pub sums: Sums,
}

/// What they took.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Sums {
    pub calls: u64,
    pub time: Duration,
    pub cost: StepCost,
}

impl Sums {
    fn add(&mut self, time: Duration, cost: StepCost) {
        *self = Self { calls: self.calls + 1, time: self.time + time, cost: self.cost + cost };
    }

    /// Bytes a second, in billions. None: it read nothing that is counted, or took no time.
    pub fn gb_s(&self) -> Option<f64> {
        let seconds = self.time.as_secs_f64();
        (self.cost.bytes > 0 && seconds > 0.0).then(|| self.cost.bytes as f64 / seconds / 1e9)
    }
}

/// Label of the time that no step took.
pub const REST: &str = "rest";

type OperationKey = (&'static str, String, Line);

/// Gathers over runs.
#[derive(Debug, Default)]
pub struct Profile {
    known: HashMap<OperationKey, usize>,
    /// by phase
    operations: Vec<(OperationKey, [Sums; 2])>,
    /// steps of the run that isn't over: which operation, and what it took
    run: Vec<(usize, Duration, StepCost)>,
    /// When the run began.
    began: Duration,
    /// When the last step ended or was reported.
    last: Duration,
    /// When the steps began that a GPU reports at their end.
    gpu_since: Duration,
    /// of the run that isn't over
    run_time: Duration,
    total: [Duration; 2],
    /// Of these runs, if that is wanted.
    pub trace: Option<Trace>,
}

impl Profile {
    /// Of the same runs as `trace`, if there is one.
    pub fn traced(trace: Option<Trace>) -> Self {
        Self { trace, ..Self::default() }
    }

    /// A run begins after something that isn't counted.
    pub fn begin(&mut self, clock: &dyn Clock) {
        self.began = clock.monotonic();
        (self.last, self.gpu_since) = (self.began, self.began);
        self.run_time = Duration::ZERO;
        self.run.clear();
    }

    /// Records a step: it ran since the last one, or since `begin`; or it is one of several that a
    /// GPU ran since then.
    pub fn ran(&mut self, clock: &dyn Clock, ran: &StepProfile) {
        let now = clock.monotonic();
        self.run_time += now.saturating_sub(self.last);
        let (line, start, end) = match ran.span() {
            None => (Line::Processor, self.last, now),
            Some(span) => {
                if span.start.is_zero() {
                    self.gpu_since = self.last;
                }
                (Line::Gpu, self.gpu_since + span.start, self.gpu_since + span.end)
            }
        };
        let at = self.operation((ran.operation(), ran.label(), line));
        self.run.push((at, end.saturating_sub(start), ran.cost()));
        if let Some(trace) = &mut self.trace {
            trace.step(line, ran, start, end);
        }
        self.last = clock.monotonic();
    }

    /// Ends the run and names its purpose: the time after the last step belongs to no step.
    pub fn end(&mut self, clock: &dyn Clock, name: &str, phase: Phase) {
        let now = clock.monotonic();
        self.total[phase as usize] += self.run_time + now.saturating_sub(self.last);
        for (at, time, cost) in self.run.drain(..) {
            self.operations[at].1[phase as usize].add(time, cost);
        }
        if let Some(trace) = &mut self.trace {
            trace.run(name, self.began, now);
        }
    }

    /// Where the time of a phase went, what took longest first; what no step took is among them.
    pub fn operations(&self, phase: Phase) -> Vec<Operation> {
        let of = |((op, what, line), sums): &(OperationKey, [Sums; 2])| {
            let sums = sums[phase as usize];
            (sums.calls > 0).then(|| Operation { op, what: what.clone(), line: *line, sums })
        };
        let mut all: Vec<Operation> = self.operations.iter().filter_map(of).collect();
        let counted: Duration = all.iter().map(|operation| operation.sums.time).sum();
        if self.total(phase) > Duration::ZERO {
            let time = self.total(phase).saturating_sub(counted);
            let sums = Sums { calls: 1, time, cost: StepCost::default() };
            all.push(Operation { op: REST, what: "between steps".into(), line: Line::Processor, sums });
        }
        all.sort_by(|a, b| b.sums.time.cmp(&a.sums.time).then_with(|| a.what.cmp(&b.what)));
        all
    }

    /// Time of all runs of a phase.
    pub fn total(&self, phase: Phase) -> Duration {
        self.total[phase as usize]
    }

    fn operation(&mut self, key: OperationKey) -> usize {
        if let Some(at) = self.known.get(&key) {
            return *at;
        }
        self.known.insert(key.clone(), self.operations.len());
        self.operations.push((key, Default::default()));
        self.operations.len() - 1
    }
}

#[cfg(test)]
mod tests;
