//! Observed runs: step by step with access to queries, or timed by the GPU's clock.

use super::PreparedGpuGraph;
use super::buffers::floats_of;
use super::device::Device;
use super::program::{Dispatch, n_fitting};
use super::submissions::{add_pass, encoder};
use super::timing::{self, StepTimer};
use crate::batch::Batch;
use crate::error::KernelError;
use crate::graph::Op;
use crate::plan::step::Step;
use crate::profile::{Observer, StepProfile};

impl PreparedGpuGraph {
    /// Runs and waits for each step, then calls `observe`, which can read the queries of attention.
    pub(super) fn run_observed(
        &mut self,
        gpu: &Device,
        at: usize,
        batch: &Batch,
        observe: Observer,
    ) -> Result<(), KernelError> {
        for (step, range) in &self.programs[at].steps {
            let encoder = Self::encode(gpu, &self.programs[at].dispatches[range.clone()], batch);
            gpu.queue.submit([encoder.finish()]);
            gpu.wait()?;
            if let Step::Node(i) = step
                && let Op::Attention { q, .. } = &self.graph.nodes()[*i].op
            {
                let n_bytes = self.n_bytes(*q, batch);
                let bytes = gpu.read_back(self.values.buffer(*q), 0, n_bytes)?;
                floats_of(&bytes, self.values.mirror(*q, n_bytes as usize / size_of::<f32>()));
            }
            observe(&StepProfile { graph: &self.graph, batch, step, values: &self.values, span: None });
        }
        Ok(())
    }

    /// Runs all steps, then calls `observe` with the time of each.
    pub(super) fn run_timed(
        &self,
        gpu: &Device,
        timer: &mut StepTimer,
        at: usize,
        batch: &Batch,
        observe: Observer,
    ) -> Result<(), KernelError> {
        timer.begin();
        let program = &self.programs[at];
        for steps in program.steps.chunks(timing::MAX_TIMED_STEPS) {
            let mut encoder = encoder(gpu);
            let mut cost = 0;
            for (i, (_, range)) in steps.iter().enumerate() {
                let dispatches = &program.dispatches[range.clone()];
                Self::time(gpu, timer, (&mut encoder, &mut cost), (i, dispatches), batch);
            }
            let spans = timer.take(gpu, encoder, steps.len())?;
            for ((step, _), span) in steps.iter().zip(spans) {
                observe(&StepProfile {
                    graph: &self.graph,
                    batch,
                    step,
                    values: &self.values,
                    span: Some(span),
                });
            }
        }
        Ok(())
    }

    /// Encodes the `at`-th step, in several passes if it exceeds the submission cost. What was `encoded` before, at cost
    /// `cost`, is submitted first where both together would exceed it.
    fn time(
        gpu: &Device,
        timer: &StepTimer,
        (encoded, cost): (&mut wgpu::CommandEncoder, &mut u64),
        (at, mut rest): (usize, &[Dispatch]),
        batch: &Batch,
    ) {
        let mut begins = true;
        loop {
            let costs = rest.iter().map(|dispatch| dispatch.cost_of(batch));
            let n_now = n_fitting(costs.clone(), gpu.max_submission_cost);
            let of_these = costs.take(n_now).sum::<u64>();
            if *cost > 0 && *cost + of_these > gpu.max_submission_cost {
                gpu.queue.submit([std::mem::replace(encoded, encoder(gpu)).finish()]);
                *cost = 0;
            }
            *cost += of_these;
            let (now, later) = rest.split_at(n_now);
            add_pass(encoded, &timer.around(at, begins, later.is_empty()), now, batch);
            (rest, begins) = (later, false);
            if rest.is_empty() {
                break;
            }
        }
    }
}
