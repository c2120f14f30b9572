//! Encodes and submits a range of nodes for each batch, in submissions of bounded cost. The first submission of a kind
//! runs in an error scope, and a rejected step is reported by name.

use std::ops::Range;

use super::PreparedGpuGraph;
use super::context::GpuContext;
use super::device::Device;
use super::program::{Dispatch, n_fitting};
use crate::batch::Batch;
use crate::error::KernelError;
use crate::graph::Graph;
use crate::plan::step::Step;
use crate::profile::Observer;

/// The names of a step's nodes.
pub(super) fn name_of(graph: &Graph, step: &Step) -> String {
    let names: Vec<&str> = step.nodes().iter().map(|i| graph.nodes()[*i].name.as_str()).collect();
    names.join(", ")
}

/// A new command encoder.
pub(super) fn encoder(gpu: &Device) -> wgpu::CommandEncoder {
    gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
}

/// Encodes dispatches as one pass.
pub(super) fn add_pass(
    encoder: &mut wgpu::CommandEncoder,
    descriptor: &wgpu::ComputePassDescriptor,
    dispatches: &[Dispatch],
    batch: &Batch,
) {
    let mut pass = encoder.begin_compute_pass(descriptor);
    let mut last = None;
    dispatches.iter().for_each(|dispatch| dispatch.encode(&mut pass, batch, &mut last));
}

/// Groups dispatches into submissions.
fn submissions<'a>(
    gpu: &Device,
    dispatches: &'a [Dispatch],
    batch: &Batch,
) -> impl Iterator<Item = &'a [Dispatch]> {
    let mut rest = dispatches;
    std::iter::from_fn(move || {
        let costs = rest.iter().map(|dispatch| dispatch.cost_of(batch));
        let (now, later) = rest.split_at(n_fitting(costs, gpu.max_submission_cost));
        rest = later;
        (!now.is_empty()).then_some(now)
    })
}

impl PreparedGpuGraph {
    /// Encodes dispatches and submits all but the last submission, which is returned.
    pub(super) fn encode(gpu: &Device, dispatches: &[Dispatch], batch: &Batch) -> wgpu::CommandEncoder {
        let (mut all, mut submissions) = (encoder(gpu), submissions(gpu, dispatches, batch).peekable());
        while let Some(submission) = submissions.next() {
            add_pass(&mut all, &wgpu::ComputePassDescriptor::default(), submission, batch);
            if submissions.peek().is_some() {
                gpu.queue.submit([all.finish()]);
                all = encoder(gpu);
            }
        }
        all
    }

    /// Encodes and submits a range of nodes. Returns the size of the results in bytes. Errors: a rejected step, by name.
    pub(super) fn start(
        &mut self,
        context: &GpuContext,
        nodes: Range<usize>,
        batch: &Batch,
        observer: Option<Observer>,
    ) -> Result<u64, KernelError> {
        let at = self.program(context, nodes, &mut |_| ())?;
        let gpu = &context.device;
        if !self.programs[at].seen.is_new(batch) {
            return self.run_program(gpu, at, batch, observer);
        }
        match gpu.caught(|| self.run_program(gpu, at, batch, observer)) {
            (result, None) => result,
            (_, Some(error)) => Err(gpu.attributed(&self.rejected_step(gpu, at, batch), &error)),
        }
    }

    fn run_program(
        &mut self,
        gpu: &Device,
        at: usize,
        batch: &Batch,
        observer: Option<Observer>,
    ) -> Result<u64, KernelError> {
        let mut timer = self.timer.take_if(|_| observer.is_some());
        let ahead = self.take_ahead(at, batch).filter(|_| observer.is_none());
        let rest = match (observer, &mut timer) {
            (Some(observe), Some(timer)) => {
                self.run_timed(gpu, timer, at, batch, observe)?;
                encoder(gpu)
            }
            (Some(observe), None) => {
                self.run_observed(gpu, at, batch, observe)?;
                encoder(gpu)
            }
            (None, _) if ahead.is_some() => encoder(gpu),
            (None, _) => Self::encode(gpu, &self.programs[at].dispatches, batch),
        };
        self.timer = self.timer.take().or(timer);
        Ok(self.submit(gpu, (ahead, rest), at, batch))
    }

    /// The name of the step that the GPU rejects, found by encoding each separately. If it accepts all, the range.
    fn rejected_step(&self, gpu: &Device, at: usize, batch: &Batch) -> String {
        let program = &self.programs[at];
        let is_rejected = |range: &Range<usize>| {
            let encode = || {
                let mut alone = encoder(gpu);
                let dispatches = &program.dispatches[range.clone()];
                add_pass(&mut alone, &wgpu::ComputePassDescriptor::default(), dispatches, batch);
                drop(alone.finish());
            };
            gpu.caught(encode).1.is_some()
        };
        match program.steps.iter().find(|(_, range)| is_rejected(range)) {
            Some((step, _)) => name_of(&self.graph, step),
            None => {
                let name = |i: usize| &self.graph.nodes()[i].name;
                let Range { start, end } = program.nodes;
                format!("one of the steps from {} to {}", name(start), name(end - 1))
            }
        }
    }

    /// Number of kernels that ran for a range of nodes.
    pub(super) fn n_kernels(
        &mut self,
        context: &GpuContext,
        nodes: Range<usize>,
        batch: &Batch,
    ) -> Result<u64, KernelError> {
        let at = self.program(context, nodes, &mut |_| ())?;
        let runs = |dispatch: &&Dispatch| dispatch.workgroups(batch).iter().all(|n| *n > 0);
        let n_selecting = self.gpu_k(at, batch).zip(self.programs[at].top_k.as_ref());
        let n_selecting = n_selecting.map_or(0, |(k, top_k)| top_k.n_stages(k));
        Ok((self.programs[at].dispatches.iter().filter(runs).count() + n_selecting) as u64)
    }
}

#[cfg(test)]
mod tests;
