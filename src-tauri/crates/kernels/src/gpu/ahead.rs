//! Encodes the next token of an answer while the GPU computes this one. On fast GPUs encoding takes about a fifth of a small
//! model's time per token. The commands of two tokens differ only where attention goes over one more chunk.

use super::PreparedGpuGraph;
use super::device::Device;
use super::program::{Dispatch, n_fitting};
use super::submissions::{add_pass, encoder};
use crate::batch::Batch;

/// The commands of a program for a batch that is yet to come.
pub(super) struct EncodedAhead {
    /// workgroups of each dispatch
    workgroups: Vec<[u32; 3]>,
    commands: wgpu::CommandBuffer,
}

fn workgroups(dispatches: &[Dispatch], batch: &Batch) -> Vec<[u32; 3]> {
    dispatches.iter().map(|dispatch| dispatch.workgroups(batch)).collect()
}

impl PreparedGpuGraph {
    /// Takes the commands of a program if they were encoded for a batch like this one.
    pub(super) fn take_ahead(&mut self, at: usize, batch: &Batch) -> Option<wgpu::CommandBuffer> {
        let program = &mut self.programs[at];
        let ahead = program.ahead.take()?;
        (ahead.workgroups == workgroups(&program.dispatches, batch)).then_some(ahead.commands)
    }

    /// Encodes the batch that follows if each sequence goes on by a token. Does nothing for other batches, and where the
    /// commands exceed a submission.
    pub(super) fn encode_ahead(&mut self, gpu: &Device, at: usize, batch: &Batch) {
        if batch.n_rows() != batch.page_tables.len() {
            return;
        }
        let positions: Vec<u32> = batch.positions.iter().map(|position| position + 1).collect();
        let next = Batch { positions: &positions, ..*batch };
        let program = &mut self.programs[at];
        let costs = program.dispatches.iter().map(|dispatch| dispatch.cost_of(&next));
        if n_fitting(costs, gpu.max_submission_cost) < program.dispatches.len() {
            return;
        }
        let mut encoder = encoder(gpu);
        add_pass(&mut encoder, &wgpu::ComputePassDescriptor::default(), &program.dispatches, &next);
        let workgroups = workgroups(&program.dispatches, &next);
        program.ahead = Some(EncodedAhead { workgroups, commands: encoder.finish() });
    }
}
