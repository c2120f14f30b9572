//! A stretch of nodes on its way to the card: encoded anew for each batch, in submissions of bounded length. What is
//! submitted for the first time goes in a scope, and what the card refuses is named.

use std::ops::Range;
use std::sync::Arc;

use super::State;
use super::device::Device;
use super::program::{Dispatch, fitting};
use crate::error::KernelError;
use crate::graph::Graph;
use crate::plan::Batch;
use crate::plan::fuse::Step;
use crate::profile::Observer;

/// The names of what a step joins.
pub(super) fn name_of(graph: &Graph, step: &Step) -> String {
    let names: Vec<&str> = step.nodes().iter().map(|i| graph.nodes()[*i].name.as_str()).collect();
    names.join(", ")
}

pub(super) fn encoder(gpu: &Device) -> wgpu::CommandEncoder {
    gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
}

/// Kernels in a pass of their own.
pub(super) fn add_pass(
    encoder: &mut wgpu::CommandEncoder,
    descriptor: &wgpu::ComputePassDescriptor,
    dispatches: &[Dispatch],
    batch: &Batch,
) {
    let mut pass = encoder.begin_compute_pass(descriptor);
    let mut last = None;
    dispatches.iter().for_each(|dispatch| dispatch.go(&mut pass, batch, &mut last));
}

/// Kernels that are submitted together, stretch after stretch.
fn stretches<'a>(
    gpu: &Device,
    dispatches: &'a [Dispatch],
    batch: &Batch,
) -> impl Iterator<Item = &'a [Dispatch]> {
    let mut rest = dispatches;
    std::iter::from_fn(move || {
        let costs = rest.iter().map(|dispatch| dispatch.cost_of(batch));
        let (now, later) = rest.split_at(fitting(costs, gpu.most_submitted));
        rest = later;
        (!now.is_empty()).then_some(now)
    })
}

impl State {
    /// Encodes kernels, and submits all but the last of them. What is left to submit.
    pub(super) fn encode(gpu: &Device, dispatches: &[Dispatch], batch: &Batch) -> wgpu::CommandEncoder {
        let (mut all, mut stretches) = (encoder(gpu), stretches(gpu, dispatches, batch).peekable());
        while let Some(stretch) = stretches.next() {
            add_pass(&mut all, &wgpu::ComputePassDescriptor::default(), stretch, batch);
            if stretches.peek().is_some() {
                gpu.queue.submit([all.finish()]);
                all = encoder(gpu);
            }
        }
        all
    }

    /// Encodes and submits a stretch of nodes. Bytes of values that come back. Errors: what the card refuses, by name.
    pub(super) fn start(
        &mut self,
        gpu: &Arc<Device>,
        nodes: Range<usize>,
        batch: &Batch,
        observer: Option<Observer>,
    ) -> Result<u64, KernelError> {
        let at = self.program(gpu, nodes, &mut |_| ())?;
        if !self.programs[at].tried.is_new(batch) {
            return self.go(gpu, at, batch, observer);
        }
        match gpu.caught(|| self.go(gpu, at, batch, observer)) {
            (gone, None) => gone,
            (_, Some(complaint)) => Err(gpu.complaint(&self.refused(gpu, at, batch), &complaint)),
        }
    }

    fn go(
        &mut self,
        gpu: &Arc<Device>,
        at: usize,
        batch: &Batch,
        observer: Option<Observer>,
    ) -> Result<u64, KernelError> {
        let mut timer = self.timer.take_if(|_| observer.is_some());
        let left = match (observer, &mut timer) {
            (Some(observe), Some(timer)) => {
                self.run_timed(gpu, timer, at, batch, observe)?;
                encoder(gpu)
            }
            (Some(observe), None) => {
                self.run_observed(gpu, at, batch, observe)?;
                encoder(gpu)
            }
            (None, _) => Self::encode(gpu, &self.programs[at].dispatches, batch),
        };
        self.timer = self.timer.take().or(timer);
        Ok(self.submit(gpu, left, at, batch))
    }

    /// Which step the card refuses to be told, each encoded by itself; where it takes all, which stretch it was.
    fn refused(&self, gpu: &Device, at: usize, batch: &Batch) -> String {
        let program = &self.programs[at];
        let is_refused = |range: &Range<usize>| {
            let tell = || {
                let mut alone = encoder(gpu);
                let dispatches = &program.dispatches[range.clone()];
                add_pass(&mut alone, &wgpu::ComputePassDescriptor::default(), dispatches, batch);
                drop(alone.finish());
            };
            gpu.caught(tell).1.is_some()
        };
        match program.steps.iter().find(|(_, range)| is_refused(range)) {
            Some((step, _)) => name_of(&self.graph, step),
            None => {
                let name = |i: usize| &self.graph.nodes()[i].name;
                let Range { start, end } = program.nodes;
                format!("one of the steps from {} to {}", name(start), name(end - 1))
            }
        }
    }

    /// Kernels that a stretch of nodes was, as it was encoded.
    pub(super) fn n_kernels(
        &mut self,
        gpu: &Arc<Device>,
        nodes: Range<usize>,
        batch: &Batch,
    ) -> Result<u64, KernelError> {
        let at = self.program(gpu, nodes, &mut |_| ())?;
        let runs = |dispatch: &&Dispatch| dispatch.of(batch).iter().all(|n| *n > 0);
        let n_selecting = self.selects(at, batch).zip(self.programs[at].likeliest.as_ref());
        let n_selecting = n_selecting.map_or(0, |(k, likeliest)| likeliest.n_stages(k));
        Ok((self.programs[at].dispatches.iter().filter(runs).count() + n_selecting) as u64)
    }
}

#[cfg(test)]
mod tests;
